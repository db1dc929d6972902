//! The program against redis-server: the server's own CPU time per operation, and start-up, as ratios.
//!
//! `cargo bench-peers`. Wall-clock time swings with whatever else the machine does; the CPU time of the server's process does
//! not. Rounds alternate between the servers, each row is the median of the rounds' ratios with their range. A ratio above 1
//! means that the fake needs less. `PEERS_ROUNDS` (at least 7) and `PEERS_OPERATIONS` change how long it takes.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Connections that send at the same time.
const CONNECTIONS: usize = 16;

/// Keys that a workload goes round.
const KEYS: usize = 4096;

/// Linux counts process times in hundredths of a second, whatever its own clock.
const TICKS_PER_SECOND: f64 = 100.0;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::from(2)
        }
    }
}

fn number(name: &str, default: usize) -> usize {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn run() -> io::Result<()> {
    let rounds = number("PEERS_ROUNDS", 7).max(7);
    let operations = number("PEERS_OPERATIONS", 40_000);
    let (ours, theirs) = (Server::start(Peer::Ours)?, Server::start(Peer::Theirs)?);
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "server CPU per operation, redis-server / fakeserver: median of {rounds} rounds (least-most)"
    )?;
    writeln!(
        out,
        "{:<10} {:>9} {:>22} {:>22}",
        "", "pipeline", "ratio", "us per operation"
    )?;
    for workload in WORKLOADS {
        for pipeline in [1, 16] {
            let row = compare(workload, pipeline, operations, rounds, &ours, &theirs)?;
            writeln!(out, "{:<10} {pipeline:>9} {row}", workload.name)?;
            out.flush()?;
        }
    }
    drop((ours, theirs));
    start_up(&mut out, rounds)
}

/// What clients send.
struct Workload {
    name: &'static str,
    /// Sent once before.
    prepare: fn(&mut TcpStream) -> io::Result<String>,
    /// One operation on a key; the text is what `prepare` has answered.
    operation: fn(&str, &str) -> Vec<u8>,
    /// Lines of the reply to one operation.
    reply_lines: usize,
}

const VALUE: &str = "0123456789abcdef";

/// A compare-and-swap of a document of 1 KB, as a store does it.
const COMMIT: &str = "local d = redis.call('GET', KEYS[1]) \
    if d and cjson.decode(d).version == nil then return -1 end \
    redis.call('SET', KEYS[1], ARGV[1]) return 1";

const WORKLOADS: &[Workload] = &[
    plain("SET", |key, _| request(&["SET", key, VALUE]), 1),
    plain(
        "GET",
        |key, _| request(&["GET", &key.replace("GET", "SET")]),
        2,
    ),
    plain("INCR", |key, _| request(&["INCR", key]), 1),
    plain(
        "HSET",
        |key, _| request(&["HSET", "HSET:hash", key, VALUE]),
        1,
    ),
    plain(
        "ZADD",
        |key, _| request(&["ZADD", "ZADD:zset", &key[key.len() - 4..], key]),
        1,
    ),
    plain(
        "LPUSH",
        |key, _| request(&["LPUSH", &format!("LPUSH:{}", &key[key.len() - 2..]), VALUE]),
        1,
    ),
    plain("MULTI+5", multi_of_five, 12),
    Workload {
        name: "EVALSHA",
        prepare: |stream| {
            stream.write_all(&request(&["SCRIPT", "LOAD", COMMIT]))?;
            let mut reply = BufReader::new(stream);
            let (mut length, mut digest) = (String::new(), String::new());
            reply.read_line(&mut length)?;
            reply.read_line(&mut digest)?;
            Ok(digest.trim_end().to_owned())
        },
        operation: |key, digest| {
            let document = format!("{{\"version\":1,\"data\":\"{}\"}}", "x".repeat(1000));
            request(&["EVALSHA", digest, "1", key, &document])
        },
        reply_lines: 1,
    },
];

const fn plain(
    name: &'static str,
    operation: fn(&str, &str) -> Vec<u8>,
    reply_lines: usize,
) -> Workload {
    Workload {
        name,
        prepare: |_| Ok(String::new()),
        operation,
        reply_lines,
    }
}

fn multi_of_five(key: &str, _: &str) -> Vec<u8> {
    let mut bytes = request(&["MULTI"]);
    for at in 0..5 {
        bytes.extend(request(&["SET", &format!("{key}:{at}"), VALUE]));
    }
    bytes.extend(request(&["EXEC"]));
    bytes
}

fn request(words: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len());
    for word in words {
        // Writing to a String cannot fail.
        let _ = write!(out, "${}\r\n{word}\r\n", word.len());
    }
    out.into_bytes()
}

/// Median and range of a row's rounds.
fn compare(
    workload: &Workload,
    pipeline: usize,
    operations: usize,
    rounds: usize,
    ours: &Server,
    theirs: &Server,
) -> io::Result<String> {
    // Pipelined operations are cheaper: more of them make a measurement as long.
    let batches = (operations * if pipeline > 1 { 4 } else { 1 }) / (CONNECTIONS * pipeline);
    let (mut ratios, mut mine, mut others) = (Vec::new(), Vec::new(), Vec::new());
    // The first round warms both up.
    for round in 0..=rounds {
        let mine_us = measure(workload, pipeline, batches, ours)?;
        let others_us = measure(workload, pipeline, batches, theirs)?;
        if round > 0 {
            ratios.push(others_us / mine_us);
            mine.push(mine_us);
            others.push(others_us);
        }
    }
    let (low, middle, high) = spread(&mut ratios);
    let ((_, mine, _), (_, others, _)) = (spread(&mut mine), spread(&mut others));
    Ok(format!(
        "{middle:>8.2} ({low:.2}-{high:.2}) {others:>10.2} / {mine:.2}"
    ))
}

/// Least, median and most.
fn spread(values: &mut [f64]) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    (
        at(0),
        at(values.len() / 2),
        at(values.len().saturating_sub(1)),
    )
}

/// Microseconds of the server's CPU per operation.
fn measure(
    workload: &Workload,
    pipeline: usize,
    batches: usize,
    server: &Server,
) -> io::Result<f64> {
    let mut streams = Vec::new();
    for _ in 0..CONNECTIONS {
        streams.push(server.connect()?);
    }
    let prepared = (workload.prepare)(&mut streams[0])?;
    let keys = (0..KEYS).map(|at| format!("{}:{at:08}", workload.name));
    let all: Vec<Vec<u8>> = keys
        .map(|key| (workload.operation)(&key, &prepared))
        .collect();
    let mut next = all.iter().cycle();
    let mut batch = Vec::new();
    let before = server.cpu_seconds()?;
    for _ in 0..batches {
        for stream in &mut streams {
            batch.clear();
            next.by_ref()
                .take(pipeline)
                .for_each(|bytes| batch.extend_from_slice(bytes));
            stream.write_all(&batch)?;
        }
        for stream in &mut streams {
            skip_lines(stream, pipeline * workload.reply_lines)?;
        }
    }
    let spent = server.cpu_seconds()? - before;
    Ok(1e6 * spent / (batches * CONNECTIONS * pipeline) as f64)
}

/// Reads so many lines. Values hold no line breaks, so lines tell where replies end.
fn skip_lines(stream: &mut TcpStream, mut lines: usize) -> io::Result<()> {
    let mut chunk = [0; 16 * 1024];
    while lines > 0 {
        let len = stream.read(&mut chunk)?;
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if chunk[..len].starts_with(b"-") {
            return Err(io::Error::other(
                String::from_utf8_lossy(&chunk[..len]).into_owned(),
            ));
        }
        let ends = memchr::memchr_iter(b'\n', &chunk[..len]).count();
        lines -= ends.min(lines);
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Peer {
    Ours,
    Theirs,
}

/// A server's process, which ends with this value.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn start(peer: Peer) -> io::Result<Server> {
        // Free a moment ago; whoever takes it in between makes the start fail, not the measurement wrong.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let text = port.to_string();
        let (program, arguments) = match peer {
            Peer::Ours => (env!("CARGO_BIN_EXE_fakeserver"), vec!["--port", &text]),
            Peer::Theirs => {
                let arguments = [
                    "--port",
                    &text,
                    "--bind",
                    "127.0.0.1",
                    "--save",
                    "",
                    "--appendonly",
                    "no",
                ];
                ("redis-server", arguments.to_vec())
            }
        };
        let process = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| io::Error::other(format!("cannot start {program}: {error}")))?;
        let server = Server { process, port };
        server.await_pong()?;
        Ok(server)
    }

    fn await_pong(&self) -> io::Result<()> {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let pong = self.connect().and_then(|mut stream| {
                stream.write_all(b"PING\r\n")?;
                skip_lines(&mut stream, 1)
            });
            match pong {
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_micros(100)),
                Ok(()) => return Ok(()),
            }
        }
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(stream)
    }

    /// User and system time of the process so far: by its threads' nanoseconds where the kernel tells them, or else in ticks.
    fn cpu_seconds(&self) -> io::Result<f64> {
        let process = format!("/proc/{}", self.process.id());
        if let Some(nanos) = thread_nanos(Path::new(&process)) {
            return Ok(nanos as f64 / 1e9);
        }
        let stat = std::fs::read_to_string(format!("{process}/stat"))?;
        // The program's name, in brackets, may hold blanks; what is counted comes behind it.
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        let ticks = |index: usize| {
            fields
                .get(index)
                .and_then(|field| field.parse::<f64>().ok())
                .unwrap_or(0.0)
        };
        Ok((ticks(11) + ticks(12)) / TICKS_PER_SECOND)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn thread_nanos(process: &Path) -> Option<u64> {
    let mut sum = 0;
    for thread in std::fs::read_dir(process.join("task")).ok()? {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        sum += text.split(' ').next()?.parse::<u64>().ok()?;
    }
    Some(sum)
}

fn start_up(out: &mut impl Write, rounds: usize) -> io::Result<()> {
    let (mut in_process, mut program, mut redis) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let begin = Instant::now();
        let server = fakeserver::Server::start();
        let mut stream = TcpStream::connect(("127.0.0.1", server.port()))?;
        stream.write_all(b"PING\r\n")?;
        skip_lines(&mut stream, 1)?;
        in_process.push(begin.elapsed().as_secs_f64() * 1e3);
        for (peer, times) in [(Peer::Ours, &mut program), (Peer::Theirs, &mut redis)] {
            let begin = Instant::now();
            let _server = Server::start(peer)?;
            times.push(begin.elapsed().as_secs_f64() * 1e3);
        }
    }
    writeln!(
        out,
        "\nstart to first PONG, milliseconds: median of {rounds} rounds (least-most)"
    )?;
    let (_, redis_median, _) = spread(&mut redis);
    for (name, times) in [
        ("in-process server", &mut in_process),
        ("fakeserver program", &mut program),
        ("redis-server", &mut redis),
    ] {
        let (low, middle, high) = spread(times);
        let ratio = redis_median / middle;
        writeln!(
            out,
            "{name:<20} {middle:>8.3} ({low:.3}-{high:.3})  redis-server takes {ratio:.1} times as long"
        )?;
    }
    Ok(())
}
