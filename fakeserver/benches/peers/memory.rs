//! Resident memory: of keys, and of servers that idle.

use std::io::{self, Write};
use std::process::Command;

use crate::jobs::{Job, Stage};
use crate::process::rss_bytes;
use crate::report::{Goal, Row, Spread};
use crate::servers::{Peer, Server};
use crate::workloads::fill;

const KEYS: usize = 1_000_000;
const IDLE_SERVERS: usize = 1000;

/// Rounds of what hardly differs from one to the next.
const ROUNDS: usize = 3;

/// Which servers idle.
#[derive(Clone, Copy)]
pub(crate) enum Idle {
    Tcp,
    Socketless,
}

pub(crate) fn jobs() -> Vec<Job> {
    vec![
        Job::new("RSS of a small key, v redis-server", false, small_key),
        Job::new("RSS of an idle server, TCP, kB", false, |_| {
            idle("RSS of an idle server, TCP, kB", "--idle-tcp", 32.0)
        }),
        Job::new("RSS of an idle server, socketless, kB", false, |_| {
            let name = "RSS of an idle server, socketless, kB";
            idle(name, "--idle-socketless", 10.0)
        }),
    ]
}

fn small_key(_: &mut Stage) -> io::Result<Row> {
    let (mut ratios, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (mine, others) = (bytes_per_key(Peer::Ours)?, bytes_per_key(Peer::Redis)?);
        ratios.push(mine / others);
        ours.push(mine);
        theirs.push(others);
    }
    let name = "RSS of a small key, v redis-server";
    let mut row = Row::new(name, Spread::of(ratios), Goal::AtMost(0.9));
    let (ours, theirs) = (Spread::of(ours).middle, Spread::of(theirs).middle);
    row.note = format!("{theirs:.0} / {ours:.0} bytes a key of 16 B with 16 B");
    Ok(row)
}

fn bytes_per_key(peer: Peer) -> io::Result<f64> {
    let server = Server::start(peer)?;
    let before = server.rss_bytes()?;
    fill(&mut server.connect()?, "none", KEYS, 100, |words, at| {
        if words.is_empty() {
            words.push("MSET".to_owned());
        }
        words.extend([format!("key:{at:012}"), format!("value:{at:010}")]);
    })?;
    Ok((server.rss_bytes()? - before) / KEYS as f64)
}

/// In a process of its own: what was freed before is memory that new servers would get for nothing.
fn idle(name: &str, flag: &str, goal: f64) -> io::Result<Row> {
    let mut figures = Vec::new();
    for _ in 0..ROUNDS {
        let output = Command::new(std::env::current_exe()?).arg(flag).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let figure = text.trim().parse::<f64>();
        figures.push(figure.map_err(|_| io::Error::other("no figure from the idle servers"))?);
    }
    Ok(Row::new(name, Spread::of(figures), Goal::AtMost(goal)))
}

/// Kilobytes for each of many servers.
pub(crate) fn print_idle(kind: Idle, out: &mut impl Write) -> io::Result<()> {
    let start = || match kind {
        Idle::Tcp => fakeserver::Server::start(),
        Idle::Socketless => fakeserver::Server::new(),
    };
    let first = start();
    first.command(["PING"]);
    let before = rss_bytes("self")?;
    let servers: Vec<_> = (0..IDLE_SERVERS).map(|_| start()).collect();
    for server in &servers {
        server.command(["PING"]);
    }
    let spent = rss_bytes("self")? - before;
    writeln!(out, "{:.2}", spent / 1000.0 / IDLE_SERVERS as f64)
}
