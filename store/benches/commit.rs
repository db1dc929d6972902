//! State-only commits against redis-server: the store's script, which compares the end of the row, and one of the Python
//! store's form, which decodes all of it.
//!
//! `cargo bench -p store --bench commit`. Starts a redis-server of its own. Rounds alternate between the two scripts; each row
//! is the median of the rounds' ratios with their range, by the server's own CPU time and by wall-clock time. A ratio above
//! 1 means that the store's script needs less. `COMMIT_ROUNDS` (at least 5) and `COMMIT_COUNT` change how long it takes.

mod common;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use redis::cmd;
use serde_json::json;
use store::{Commit, Execution, RedisStore, codec};

use common::{Server, Spent, median, number};

/// Decode, compare, set, note.
const DECODING: &str = "
    local row = redis.call('GET', KEYS[1])
    local found = 0
    if row then found = cjson.decode(row).version end
    if found ~= tonumber(ARGV[2]) then return redis.error_reply('STM_CONFLICT:' .. tostring(found)) end
    redis.call('SET', KEYS[1], ARGV[1])
    if ARGV[3] ~= '' then redis.call('SADD', KEYS[2], ARGV[3]) end
    return 1";

/// Bytes of the rows.
const SIZES: [usize; 3] = [1 << 10, 8 << 10, 64 << 10];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("commit: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> io::Result<()> {
    let rounds = number("COMMIT_ROUNDS", 7).max(5);
    let count = number("COMMIT_COUNT", 1_000);
    let server = Server::start()?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "state-only commits, decoding script / the store's script: median of {rounds} rounds (least-most)"
    )?;
    writeln!(
        out,
        "{:>8} {:>24} {:>24} {:>26}",
        "bytes", "server CPU", "wall clock", "server us per commit"
    )?;
    for size in SIZES {
        let (mut cpu, mut wall) = (Vec::new(), Vec::new());
        let (mut theirs_us, mut ours_us) = (Vec::new(), Vec::new());
        // The first round warms up.
        for round in 0..=rounds {
            let theirs = decoding(&server, size, count)?;
            let ours = comparing(&server, size, count)?;
            if round > 0 {
                cpu.push(theirs.cpu_s / ours.cpu_s);
                wall.push(theirs.wall_s / ours.wall_s);
                theirs_us.push(1e6 * theirs.cpu_s / count as f64);
                ours_us.push(1e6 * ours.cpu_s / count as f64);
            }
        }
        let per_commit = format!(
            "{:.1} / {:.1}",
            median(&mut theirs_us),
            median(&mut ours_us)
        );
        writeln!(
            out,
            "{size:>8} {:>24} {:>24} {per_commit:>26}",
            spread(&mut cpu),
            spread(&mut wall)
        )?;
    }
    Ok(())
}

fn spread(values: &mut [f64]) -> String {
    let middle = median(values);
    let (low, high) = (values.first(), values.last());
    let bound = |value: Option<&f64>| value.copied().unwrap_or(f64::NAN);
    format!("{middle:.2} ({:.2}-{:.2})", bound(low), bound(high))
}

/// An execution whose row has about so many bytes: a list of orders, as contexts have them.
fn execution(size: usize) -> Execution {
    let mut execution = Execution::new("a", "order");
    let order =
        json!({"sku": "tea-green-0042", "amount": 3, "price": 4.25, "gift": false, "note": null});
    let mut orders = vec![order.clone()];
    loop {
        let row = codec::encode_execution(&execution, execution.version);
        if row.len() >= size {
            return execution;
        }
        let missing = (size - row.len()) / 90 + 1;
        orders.extend(std::iter::repeat_n(order.clone(), missing));
        execution.context.insert("orders".to_owned(), json!(orders));
    }
}

fn comparing(server: &Server, size: usize, count: usize) -> io::Result<Spent> {
    let mut store = RedisStore::new(server.connect()?);
    let mut execution = execution(size);
    let mut commit = || {
        execution.processed_events += 1;
        store.commit(&mut execution, &Commit::for_event("event"))
    };
    commit().map_err(io::Error::other)?;
    let (begin, before) = (Instant::now(), server.cpu_s()?);
    for _ in 0..count {
        commit().map_err(io::Error::other)?;
    }
    server.spent(begin, before)
}

fn decoding(server: &Server, size: usize, count: usize) -> io::Result<Spent> {
    let mut connection = server.connect()?;
    let mut execution = execution(size);
    let digest: String = cmd("SCRIPT")
        .arg("LOAD")
        .arg(DECODING)
        .query(&mut connection)
        .map_err(io::Error::other)?;
    let mut commit = || {
        execution.processed_events += 1;
        let next = execution.version.next().unwrap_or(execution.version);
        let row = codec::encode_execution(&execution, next);
        let answer = cmd("EVALSHA")
            .arg(&digest)
            .arg(2)
            .arg(&["stm:exe:a", "stm:processed:a"])
            .arg(row)
            .arg(execution.version.get())
            .arg("event")
            .exec(&mut connection);
        execution.version = next;
        answer.map_err(io::Error::other)
    };
    commit()?;
    let (begin, before) = (Instant::now(), server.cpu_s()?);
    for _ in 0..count {
        commit()?;
    }
    server.spent(begin, before)
}
