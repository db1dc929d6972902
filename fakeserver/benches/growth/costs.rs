//! The server's CPU per operation, by how much there is.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::common::request;
use crate::peer::{Client, Peer, Server};
use crate::process::kilobytes;
use crate::{LARGE, Plan, median};

/// Requests of one operation sent at once.
const PIPELINE: usize = 16;

/// Batches of one measurement.
const BATCHES: usize = 400;

/// Bytes that the two servers together need for a key and the members beside it, at most.
const BYTES_PER_SIZE: f64 = 1_100.0;

/// An operation by the number of keys or members there are and one that is drawn.
struct Row {
    name: &'static str,
    requests: fn(usize) -> Vec<Vec<u8>>,
}

fn words(text: &str) -> Vec<u8> {
    request(&text.split(' ').collect::<Vec<_>>())
}

const ROWS: &[Row] = &[
    row("GET", |at| vec![words(&format!("GET key:{at}"))]),
    row("SET", |at| vec![words(&format!("SET key:{at} value"))]),
    row("SET new + DEL", |at| {
        vec![
            words(&format!("SET new:{at} v")),
            words(&format!("DEL new:{at}")),
        ]
    }),
    row("EXPIRE", |at| {
        vec![words(&format!("EXPIRE key:{at} {}", 10_000 + at))]
    }),
    row("SCAN page", |at| {
        vec![words(&format!("SCAN {} COUNT 10", at * 7))]
    }),
    row("RANDOMKEY", |_| vec![words("RANDOMKEY")]),
    row("HSET", |at| vec![words(&format!("HSET hash m{at} w"))]),
    row("HGET", |at| vec![words(&format!("HGET hash m{at}"))]),
    row("SADD + SPOP", |at| {
        vec![words(&format!("SADD set n{at}")), words("SPOP set")]
    }),
    row("ZADD", |at| {
        vec![words(&format!("ZADD zset {} m{at}", at + 1))]
    }),
    row("ZRANK", |at| vec![words(&format!("ZRANK zset m{at}"))]),
    row("ZRANGEBYSCORE", |at| {
        vec![words(&format!("ZRANGEBYSCORE zset {at} +inf LIMIT 0 10"))]
    }),
    row("LINDEX ends", |at| {
        vec![words(if at % 2 == 0 {
            "LINDEX list 0"
        } else {
            "LINDEX list -1"
        })]
    }),
    row("LPUSH + LPOP", |at| {
        vec![words(&format!("LPUSH list m{at}")), words("LPOP list")]
    }),
    row("XADD", |at| vec![words(&format!("XADD stream * f v{at}"))]),
    row("XRANGE COUNT", |at| {
        vec![words(&format!("XRANGE stream 1-{at} + COUNT 10"))]
    }),
];

const fn row(name: &'static str, requests: fn(usize) -> Vec<Vec<u8>>) -> Row {
    Row { name, requests }
}

pub(crate) fn print(plan: &Plan, out: &mut impl Write) -> io::Result<()> {
    let mut sizes = vec![1_000, 100_000, LARGE, plan.keys];
    sizes.retain(|size| *size <= plan.keys);
    sizes.dedup();
    check_memory(plan.keys)?;
    writeln!(
        out,
        "server CPU per operation at a pipeline of {PIPELINE}: redis-server / fakeserver in us, their ratio; median of {} rounds",
        plan.rounds
    )?;
    let mut lines: Vec<String> = ROWS.iter().map(|it| format!("{:<14}", it.name)).collect();
    let mut head = format!("{:<14}", "");
    for size in sizes {
        // Writing to a String cannot fail.
        let _ = write!(head, " | {size:>22}");
        let pair = [Peer::Theirs, Peer::Ours].map(|peer| prepared(peer, size));
        let [theirs, ours] = pair;
        let (mut theirs, mut ours) = (theirs?, ours?);
        for (row, line) in ROWS.iter().zip(&mut lines) {
            let (mut a, mut b, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
            for round in 0..=plan.rounds {
                let them = measure(&mut theirs, row, size, round)?;
                let us = measure(&mut ours, row, size, round)?;
                // The first round warms both up.
                if round > 0 {
                    a.push(them);
                    b.push(us);
                    ratios.push(them / us);
                }
            }
            let figures = [&mut a, &mut b, &mut ratios].map(|it| median(it));
            let [them, us, ratio] = figures;
            let _ = write!(line, " | {them:>7.2} {us:>7.2} {ratio:>6.2}");
        }
    }
    writeln!(out, "{head}")?;
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// Errors: what is to be made does not fit into the machine, which would swap and measure that.
fn check_memory(size: usize) -> io::Result<()> {
    let needed = BYTES_PER_SIZE * size as f64;
    let free = kilobytes("/proc/meminfo", "MemAvailable:").map_or(f64::MAX, |it| it * 1024.0);
    if needed <= free {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "{size} keys and members on two servers need {:.1} GB, and {:.1} are free: set GROWTH_KEYS",
        needed / 1e9,
        free / 1e9
    )))
}

/// A server with so many keys, and as many members in one value of each type.
fn prepared(peer: Peer, size: usize) -> io::Result<(Server, Client)> {
    const AT_ONCE: usize = 500;
    let server = Server::start(peer)?;
    let mut client = server.client()?;
    client.ask(&["DEBUG", "POPULATE", &size.to_string()])?;
    let many = |head: &str, each: fn(usize) -> String, from: usize| {
        let members = (from..(from + AT_ONCE).min(size)).map(each);
        let all: Vec<String> = [head.to_owned()].into_iter().chain(members).collect();
        words(&all.join(" "))
    };
    let calls = size.div_ceil(AT_ONCE);
    client.pour(calls, |at| {
        many("HSET hash", |n| format!("m{n} v"), at * AT_ONCE)
    })?;
    client.pour(calls, |at| {
        many("SADD set", |n| format!("m{n}"), at * AT_ONCE)
    })?;
    client.pour(calls, |at| {
        many("ZADD zset", |n| format!("{n} m{n}"), at * AT_ONCE)
    })?;
    client.pour(calls, |at| {
        many("RPUSH list", |n| format!("m{n}"), at * AT_ONCE)
    })?;
    client.pour(size, |at| words(&format!("XADD stream 1-{} f v", at + 1)))?;
    Ok((server, client))
}

/// Microseconds per request.
fn measure(
    (server, client): &mut (Server, Client),
    row: &Row,
    size: usize,
    round: usize,
) -> io::Result<f64> {
    let mut draw = fastrand::Rng::with_seed(round as u64);
    let before = server.cpu_micros()?;
    let mut sent = 0;
    for _ in 0..BATCHES {
        let drawn = (0..PIPELINE).map(|_| (row.requests)(draw.usize(..size)));
        let requests: Vec<Vec<u8>> = drawn.flatten().collect();
        client.send(&requests.concat())?;
        client.replies(requests.len())?;
        sent += requests.len();
    }
    let spent = server.cpu_micros()? - before;
    Ok(spent / sent as f64)
}
