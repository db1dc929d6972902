//! What it costs to look whether something waits, and to take a page of it, with a backlog of a thousand to a million, against
//! redis-server.
//!
//! `cargo bench -p store --bench polling`. Starts a redis-server of its own. Each figure is the median of rounds in
//! microseconds of wall-clock time; the last lines say how much more the largest backlog costs than the smallest, by wall-clock
//! time and by the server's own CPU time. The last two columns are commands of the server's alone, the fields of a page from the
//! middle and one that is not there: a hash that does not fit into the processor's cache costs that much more by itself.
//! `POLLING_ROUNDS` and `POLLING_COUNT` change how long it takes, `POLLING_MOST` the largest backlog.

mod common;

use std::hint::black_box;
use std::io::{self, Write};
use std::process::ExitCode;

use redis::{Cmd, Connection, Value, cmd, pipe};
use store::op::{Batch, Operation, Replies, Step};
use store::relay::PageStart;
use store::{Emit, Event, RedisStore, Seq, SpawnIntent, StoreError, codec, sync::Exclusive};

use common::{Server, Spent, median, number};

const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];
const PAGE: u32 = 64;

type Store = RedisStore<Exclusive<Connection>>;

/// A name, and what is measured under it.
struct Call(
    &'static str,
    fn(&mut Store, i64) -> Result<usize, StoreError>,
);

/// A name, and which time it is of.
struct Figure(&'static str, fn(&Spent) -> f64);

const CALLS: [Call; 8] = [
    Call("probe", |store, _| {
        store.waiting().map(|waiting| waiting.outbox as usize)
    }),
    Call("outbox", |store, _| {
        let page = store.outbox_page(PageStart::Anywhere, PAGE)?;
        Ok(page.entries.len())
    }),
    Call("oldest", |store, middle| {
        let start = PageStart::Oldest(Seq::new(middle));
        store
            .outbox_page(start, PAGE)
            .map(|page| page.entries.len())
    }),
    Call("spawns", |store, _| {
        let page = store.spawns_page(PageStart::Anywhere, PAGE)?;
        Ok(page.entries.len())
    }),
    Call("timers", |store, _| {
        let page = store.due_timers_page(1e9, PageStart::Anywhere, PAGE)?;
        Ok(page.entries.len())
    }),
    Call("ack", |store, middle| {
        let acked = store.ack_outbox(Seq::new(-middle))?;
        Ok(usize::from(!acked))
    }),
    Call("64 HMGET", |store, middle| {
        let fields: Vec<i64> = (middle..middle + i64::from(PAGE)).collect();
        store.run(Bare::of(
            cmd("HMGET").arg("stm:outbox").arg(fields).to_owned(),
        ))
    }),
    Call("1 HGET", |store, middle| {
        store.run(Bare::of(
            cmd("HGET").arg("stm:outbox").arg(-middle).to_owned(),
        ))
    }),
];

/// One command and no more; counts its reply.
struct Bare(Option<Cmd>);

impl Bare {
    fn of(command: Cmd) -> Bare {
        Bare(Some(command))
    }
}

impl Operation for Bare {
    type Output = usize;

    fn step(&mut self, replies: Replies) -> Step<usize> {
        match self.0.take() {
            Some(command) => Step::Send(Batch::shared([command])),
            None => Step::Done(replies.harmless().map(|replies: [Value; 1]| replies.len())),
        }
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("polling: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> io::Result<()> {
    let (rounds, count) = (
        number("POLLING_ROUNDS", 9).max(5),
        number("POLLING_COUNT", 300),
    );
    let most = number("POLLING_MOST", 1_000_000);
    let server = Server::start()?;
    let mut out = io::stdout().lock();
    write!(out, "{:>9}", "backlog")?;
    for Call(name, _) in &CALLS {
        write!(out, " {name:>9}")?;
    }
    writeln!(out, "   (us, pages of {PAGE})")?;
    let mut rows: Vec<Vec<Spent>> = Vec::new();
    for size in SIZES.into_iter().filter(|size| *size <= most) {
        let mut connection = server.connect()?;
        fill(&mut connection, size).map_err(io::Error::other)?;
        let mut store = RedisStore::new(connection);
        write!(out, "{size:>9}")?;
        let mut row = Vec::new();
        for call in &CALLS {
            let spent = measure(&server, &mut store, call, size, rounds, count)?;
            write!(out, " {:>9.1}", 1e6 * spent.wall_s)?;
            row.push(spent);
        }
        writeln!(out)?;
        rows.push(row);
    }
    if let (Some(first), Some(last)) = (rows.first(), rows.last()) {
        let wall = Figure("ratio", |spent| spent.wall_s);
        let cpu = Figure("of CPU", |spent| spent.cpu_s);
        for Figure(name, figure) in [wall, cpu] {
            write!(out, "{name:>9}")?;
            for (first, last) in first.iter().zip(last) {
                write!(out, " {:>9.2}", figure(last) / figure(first))?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// What one call takes.
fn measure(
    server: &Server,
    store: &mut Store,
    Call(name, call): &Call,
    size: usize,
    rounds: usize,
    count: usize,
) -> io::Result<Spent> {
    let middle = size as i64 / 2;
    let (mut wall, mut cpu) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let (begin, before) = (std::time::Instant::now(), server.cpu_s()?);
        for _ in 0..count {
            let found = black_box(call(store, middle)).map_err(io::Error::other)?;
            if found == 0 {
                return Err(io::Error::other(format!("{name} found nothing")));
            }
        }
        let spent = server.spent(begin, before)?;
        // The first round warms up.
        if round > 0 {
            wall.push(spent.wall_s / count as f64);
            cpu.push(spent.cpu_s / count as f64);
        }
    }
    Ok(Spent {
        wall_s: median(&mut wall),
        cpu_s: median(&mut cpu),
    })
}

/// So many events, spawn intents and due timers.
fn fill(connection: &mut Connection, size: usize) -> redis::RedisResult<()> {
    for first in (1..=size).step_by(1_000) {
        let mut batch = pipe();
        for seq in first..(first + 1_000).min(size + 1) {
            let emit = Emit {
                target: Some(format!("order-{}", seq % 1_000)),
                event: Event::new(format!("event-{seq}"), "Paid"),
            };
            let spawn = SpawnIntent::new(format!("child-{seq}"), "root");
            let spawn = codec::encode_spawn("order-17", &spawn);
            batch
                .hset("stm:outbox", seq, codec::encode_outbox(&emit))
                .ignore();
            batch.hset("stm:spawns", seq, spawn).ignore();
            batch
                .zadd("stm:timers", format!("order-{seq}\0Waiting"), seq)
                .ignore();
        }
        batch.exec(connection)?;
    }
    cmd("MSET")
        .arg(&[
            "stm:outbox:seq",
            &size.to_string(),
            "stm:spawns:seq",
            &size.to_string(),
        ])
        .exec(connection)
}
