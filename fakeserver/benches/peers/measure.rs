//! Processor time of a workload, on each server in turn.

use std::io::{self, Write};

use crate::jobs::Stage;
use crate::report::{Goal, Row, Spread};
use crate::servers::{Peer, Server, skip_lines};
use crate::workloads::Workload;

/// The other servers' time as a multiple of ours, over the rounds.
pub(crate) fn compare(workload: &Workload, stage: &mut Stage) -> io::Result<Row> {
    let others: Vec<&Server> = stage
        .others
        .iter()
        .filter(|server| workload.suits(server.peer))
        .collect();
    let (mut ratios, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    let mut other_ratios = vec![Vec::new(); others.len()];
    // The first round warms them up.
    for round in 0..=stage.rounds {
        let ours_us = measure(workload, &stage.ours, stage.smoke)?;
        let redis_us = measure(workload, &stage.redis, stage.smoke)?;
        let mut others_us = Vec::new();
        for server in &others {
            others_us.push(measure(workload, server, stage.smoke)?);
        }
        if round == 0 {
            continue;
        }
        ratios.push(redis_us / ours_us);
        ours.push(ours_us);
        theirs.push(redis_us);
        for (ratios, us) in other_ratios.iter_mut().zip(others_us) {
            ratios.push(redis_us / us);
        }
    }
    let mut row = Row::new(
        &workload.name,
        Spread::of(ratios),
        workload.goal.map_or(Goal::None, Goal::AtLeast),
    );
    let (ours, theirs) = (Spread::of(ours).middle, Spread::of(theirs).middle);
    row.note = format!("{theirs:.2} / {ours:.2} us per operation");
    let names = others.iter().map(|server| server.peer.name());
    row.peers = names
        .zip(other_ratios.into_iter().map(Spread::of))
        .collect();
    Ok(row)
}

/// Microseconds of the server's time per operation.
fn measure(workload: &Workload, server: &Server, smoke: bool) -> io::Result<f64> {
    let mut streams = Vec::new();
    for _ in 0..workload.connections {
        streams.push(server.connect()?);
    }
    let prepared = (workload.prepare)(&mut streams[0])?;
    let all: Vec<Vec<u8>> = (0..workload.distinct)
        .map(|at| (workload.operation)(at, &prepared))
        .collect();
    let fewer = match server.peer {
        Peer::FakeRedis => 10,
        _ if smoke => 4,
        _ => 1,
    };
    let per_batch = workload.connections * workload.pipeline;
    let batches = (workload.operations / fewer / per_batch).max(1);
    let mut next = all.iter().cycle();
    let mut batch = Vec::new();
    let before = server.cpu_seconds()?;
    for _ in 0..batches {
        for stream in &mut streams {
            batch.clear();
            next.by_ref()
                .take(workload.pipeline)
                .for_each(|bytes| batch.extend_from_slice(bytes));
            stream.write_all(&batch)?;
        }
        for stream in &mut streams {
            skip_lines(stream, workload.pipeline * workload.reply_lines)?;
        }
    }
    let spent = server.cpu_seconds()? - before;
    Ok(1e6 * spent / (batches * per_batch) as f64)
}
