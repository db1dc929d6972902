//! The program against redis-server as what it holds grows: cost per operation, other clients' delays, many connections.
//!
//! `cargo bench-growth`. `GROWTH_KEYS` is the largest number of keys and members (ten million unless set), `GROWTH_ROUNDS` how
//! often each figure is taken (three times), `GROWTH_PARTS` which parts run (`costs,delays,crowd`), and `GROWTH_PROGRAM` another build of the
//! program, to compare before and after. A ratio above 1 means that the fake needs less.

#[path = "../common/mod.rs"]
mod common;
mod costs;
mod crowd;
mod delays;
mod peer;
#[path = "../common/process.rs"]
mod process;

use std::io;
use std::process::ExitCode;

use crate::process::quantile;

/// As many keys and members as most of what delays others has at most.
const LARGE: usize = 1_000_000;

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
        keys: number("GROWTH_KEYS", 1_000, 10_000_000)?,
        rounds: number("GROWTH_ROUNDS", 1, 3)?,
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

/// A number from the environment. Errors: it is none, or too small; half an hour's run is not for a number that nobody meant.
fn number(name: &str, least: usize, default: usize) -> io::Result<usize> {
    let Some(value) = std::env::var_os(name) else {
        return Ok(default);
    };
    let number = value.to_str().and_then(|text| text.parse().ok());
    number.filter(|number| *number >= least).ok_or_else(|| {
        io::Error::other(format!(
            "{name} is a number of at least {least}, not `{}`",
            value.display()
        ))
    })
}

/// The middle one.
fn median(values: &mut [f64]) -> f64 {
    quantile(values, 0.5)
}
