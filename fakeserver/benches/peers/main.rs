//! Against redis-server and the other peers that are installed: processor time, memory and start-up, as ratios with goals.
//!
//! `cargo bench-peers [-- [--smoke] [--list] [PART-OF-A-NAME]...]`. Wall-clock time swings with whatever else the machine does;
//! the processor time of the server's process does not. Rounds alternate between the servers; a row is the median of the rounds'
//! ratios with their range. `PEERS_ROUNDS` (at least 7) changes how long it takes, `PEERS_JSON` where the machine-readable copy
//! goes. `--smoke`, or `PEERS_SMOKE=1`, takes less than a minute and fails only if a row is by more than a third worse than in
//! `baseline.json`.

#[path = "../common/mod.rs"]
mod common;
mod jobs;
mod measure;
mod memory;
mod options;
#[path = "../common/process.rs"]
mod process;
mod report;
mod servers;
mod start;
mod workloads;

use std::io::{self, Write};
use std::process::ExitCode;

use crate::jobs::{Job, Stage};
use crate::options::Options;
use crate::report::{Baseline, Row};

fn main() -> ExitCode {
    match Options::from_env().and_then(|options| run(&options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether no row fell below its baseline.
fn run(options: &Options) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    if let Some(kind) = options.idle {
        return memory::print_idle(kind, &mut out).map(|()| true);
    }
    let jobs: Vec<Job> = jobs::all()
        .into_iter()
        .filter(|job| options.selects(job))
        .collect();
    if jobs.is_empty() {
        return Err(io::Error::other("no row has such a name; see --list"));
    }
    if options.list {
        for job in &jobs {
            writeln!(out, "{}", job.name)?;
        }
        return Ok(true);
    }
    let mut stage = Stage::new(options, &mut out)?;
    let baseline = Baseline::read()?;
    let mut is_fine = true;
    let mut rows = Vec::new();
    report::print_head(options, &mut out)?;
    for job in &jobs {
        let mut row = (job.run)(&mut stage)?;
        if options.smoke && baseline.is_fallen(&row) {
            // One look can be unlucky; a row has fallen if a second one says so too.
            row = better((job.run)(&mut stage)?, row);
            row.is_fallen = baseline.is_fallen(&row);
            is_fine &= !row.is_fallen;
        }
        row.print(&mut out)?;
        out.flush()?;
        rows.push(row);
    }
    report::write_json(options, &rows, &mut out)?;
    Ok(is_fine)
}

fn better(a: Row, b: Row) -> Row {
    if a.is_worse_than(b.figure.middle) {
        b
    } else {
        a
    }
}
