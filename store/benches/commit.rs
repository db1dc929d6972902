//! State-only commits against redis-server: the store's script, which compares the end of the row, and one of the Python
//! store's form, which decodes all of it.
//!
//! `cargo bench -p store --bench commit`. Starts a redis-server of its own. Rounds alternate between the two scripts; each row
//! is the median of the rounds' ratios with their range, by the server's own CPU time and by wall-clock time. A ratio above
//! 1 means that the store's script needs less. `COMMIT_ROUNDS` (at least 5) and `COMMIT_COUNT` change how long it takes.

use std::io::{self, Write};
use std::net::TcpListener;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use redis::{Connection, cmd};
use serde_json::json;
use store::{Commit, Execution, RedisStore, codec};

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

fn number(name: &str, default: usize) -> usize {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
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

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
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

/// What a round took.
struct Spent {
    cpu_s: f64,
    wall_s: f64,
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

/// A server's process, which ends with this value.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn start() -> io::Result<Server> {
        // Free a moment ago; whoever takes it in between makes the start fail, not the measurement wrong.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let text = port.to_string();
        let process = Command::new("redis-server")
            .args(["--port", &text, "--bind", "127.0.0.1", "--save", ""])
            .args(["--appendonly", "no"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| io::Error::other(format!("cannot start redis-server: {error}")))?;
        let server = Server { process, port };
        let until = Instant::now() + Duration::from_secs(20);
        while let Err(error) = server.connect() {
            if Instant::now() > until {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(server)
    }

    /// A connection to an empty server.
    fn connect(&self) -> io::Result<Connection> {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}/", self.port));
        let connection = client.and_then(|client| client.get_connection());
        let mut connection = connection.map_err(io::Error::other)?;
        cmd("FLUSHALL")
            .exec(&mut connection)
            .map_err(io::Error::other)?;
        Ok(connection)
    }

    /// User and system time of the process's main thread so far, by the kernel's nanoseconds.
    fn cpu_s(&self) -> io::Result<f64> {
        let id = self.process.id();
        let times = std::fs::read_to_string(format!("/proc/{id}/task/{id}/schedstat"))?;
        let nanos = times.split_whitespace().next();
        let nanos = nanos.and_then(|nanos| nanos.parse::<u64>().ok());
        nanos
            .map(|nanos| nanos as f64 / 1e9)
            .ok_or_else(|| io::Error::other("the kernel tells no times"))
    }

    fn spent(&self, begin: Instant, before: f64) -> io::Result<Spent> {
        Ok(Spent {
            cpu_s: self.cpu_s()? - before,
            wall_s: begin.elapsed().as_secs_f64(),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
