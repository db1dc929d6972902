//! The program against redis-server as what it holds grows: cost per operation, other clients' delays, many connections.
//!
//! `cargo bench-growth`. `GROWTH_KEYS` is the largest number of keys and members (a million unless set), `GROWTH_ROUNDS` how
//! often each figure is taken, `GROWTH_PARTS` which parts run (`costs,delays,crowd`), and `GROWTH_PROGRAM` another build of the
//! program, to compare before and after. A ratio above 1 means that the fake needs less.

#[path = "../common/mod.rs"]
mod common;
mod costs;
mod crowd;
mod delays;
mod peer;

use std::io;
use std::process::ExitCode;

/// What the run is asked for.
struct Plan {
    keys: usize,
    rounds: usize,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("growth: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> io::Result<()> {
    let plan = Plan {
        keys: number("GROWTH_KEYS", 1_000_000).max(1_000),
        rounds: number("GROWTH_ROUNDS", 3).max(1),
    };
    let parts = std::env::var("GROWTH_PARTS").unwrap_or_else(|_| "costs,delays,crowd".to_owned());
    let mut out = io::stdout().lock();
    for part in parts.split(',') {
        match part {
            "costs" => costs::print(&plan, &mut out)?,
            "delays" => delays::print(&plan, &mut out)?,
            "crowd" => crowd::print(&mut out)?,
            _ => return Err(io::Error::other(format!("there is no part `{part}`"))),
        }
    }
    Ok(())
}

fn number(name: &str, default: usize) -> usize {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The middle one.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
