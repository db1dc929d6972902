//! From nothing to the first reply.

use std::io::{self, Write};
use std::net::TcpStream;
use std::time::Instant;

use crate::jobs::{Job, Stage};
use crate::report::{Goal, Row, Spread, percentile};
use crate::servers::{Peer, Server, skip_lines};

/// Starts of a process in a round; those in this process are cheap, so there are more of them.
const SPAWNS: usize = 3;
const STARTS: usize = 30;

/// Servers in this process at the same time, and the spawns that they are held against.
const CROWD: usize = 1000;
const SPAWNS_OF_CROWD: usize = 20;

pub(crate) fn jobs() -> Vec<Job> {
    vec![
        Job::new("start in process, TCP", true, |stage| {
            against_spawn(
                "start in process, TCP",
                stage,
                STARTS,
                Some(150.0),
                in_process,
            )
        }),
        Job::new("start of the program", true, |stage| {
            let spawn = || spawn(Peer::Ours);
            against_spawn("start of the program", stage, SPAWNS, None, spawn)
        }),
        Job::new("start socketless, us", true, socketless),
        Job::new("1000 servers started and pinged, s", false, crowd_seconds),
        Job::new("1000 servers v 20 spawns", false, crowd_against_spawns),
    ]
}

fn seconds_of<T>(start: impl FnOnce() -> io::Result<T>) -> io::Result<f64> {
    let begin = Instant::now();
    let started = start()?;
    let seconds = begin.elapsed().as_secs_f64();
    drop(started);
    Ok(seconds)
}

fn spawn(peer: Peer) -> io::Result<f64> {
    seconds_of(|| Server::start(peer))
}

fn in_process() -> io::Result<f64> {
    seconds_of(|| {
        let server = fakeserver::Server::start();
        ping(&server)?;
        Ok(server)
    })
}

fn ping(server: &fakeserver::Server) -> io::Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port()))?;
    stream.write_all(b"*1\r\n$4\r\nPING\r\n")?;
    skip_lines(&mut stream, 1)
}

/// The 10th percentiles of all rounds, theirs as a multiple of ours; the range is that of the rounds.
fn against_spawn(
    name: &str,
    stage: &Stage,
    starts: usize,
    goal: Option<f64>,
    ours: impl Fn() -> io::Result<f64>,
) -> io::Result<Row> {
    let (mut all_ours, mut all_theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..stage.rounds {
        let mut ours_s = (0..starts)
            .map(|_| ours())
            .collect::<io::Result<Vec<_>>>()?;
        let mut theirs_s = (0..SPAWNS)
            .map(|_| spawn(Peer::Redis))
            .collect::<io::Result<Vec<_>>>()?;
        ratios.push(percentile(&mut theirs_s, 10) / percentile(&mut ours_s, 10));
        all_ours.append(&mut ours_s);
        all_theirs.append(&mut theirs_s);
    }
    let mut figure = Spread::of(ratios);
    figure.middle = percentile(&mut all_theirs, 10) / percentile(&mut all_ours, 10);
    let goal = goal.map_or(Goal::None, Goal::AtLeast);
    let mut row = Row::new(name, figure, goal);
    row.note = format!(
        "p10 {:.2} / {:.3} ms, median {:.2} / {:.3} ms",
        1e3 * percentile(&mut all_theirs, 10),
        1e3 * percentile(&mut all_ours, 10),
        1e3 * percentile(&mut all_theirs, 50),
        1e3 * percentile(&mut all_ours, 50),
    );
    Ok(row)
}

fn socketless(stage: &mut Stage) -> io::Result<Row> {
    let (mut medians, mut all) = (Vec::new(), Vec::new());
    for _ in 0..stage.rounds {
        let mut round = Vec::new();
        for _ in 0..1000 {
            round.push(
                seconds_of(|| {
                    let server = fakeserver::Server::new();
                    std::hint::black_box(server.command(["PING"]));
                    Ok(server)
                })? * 1e6,
            );
        }
        medians.push(percentile(&mut round, 50));
        all.append(&mut round);
    }
    let mut row = Row::new(
        "start socketless, us",
        Spread::of(medians),
        Goal::AtMost(5.0),
    );
    row.note = format!("p10 {:.2} us", percentile(&mut all, 10));
    Ok(row)
}

/// All of them live at the same time, each with a thread of its own.
fn crowd() -> io::Result<f64> {
    seconds_of(|| {
        let servers: Vec<_> = (0..CROWD).map(|_| fakeserver::Server::start()).collect();
        servers.iter().try_for_each(ping)?;
        Ok(servers)
    })
}

fn crowd_seconds(stage: &mut Stage) -> io::Result<Row> {
    let seconds = (0..stage.rounds)
        .map(|_| crowd())
        .collect::<io::Result<_>>()?;
    let name = "1000 servers started and pinged, s";
    Ok(Row::new(name, Spread::of(seconds), Goal::AtMost(0.7)))
}

fn crowd_against_spawns(stage: &mut Stage) -> io::Result<Row> {
    let mut ratios = Vec::new();
    for _ in 0..stage.rounds {
        let ours = crowd()?;
        let spawns = (0..SPAWNS_OF_CROWD).map(|_| spawn(Peer::Redis));
        ratios.push(spawns.sum::<io::Result<f64>>()? / ours);
    }
    Ok(Row::new(
        "1000 servers v 20 spawns",
        Spread::of(ratios),
        Goal::AtLeast(1.0),
    ))
}
