//! What a commit costs beside the Python store's, beside its script, and beside a bare call of our own script, as ratios.
//!
//! `cargo bench-store`. It starts a redis-server of its own; the rows that compare with Python need `HAREL_PYTHON` (see
//! `tests::peer`). Processor time is the client's: that of the thread that commits, and in Python that of the process. Rounds
//! alternate between the two sides; each row is the median of the rounds' ratios with their range, above 1 where ours needs
//! less. `STORE_ROUNDS` (at least 7) and `STORE_COMMITS` change how long it takes. A goal that is missed fails the run.

#[path = "store/bare.rs"]
mod bare;
#[path = "store/cost.rs"]
mod cost;
#[path = "store/documents.rs"]
mod documents;
#[path = "store/python.rs"]
mod python;

use std::io::{self, Write};
use std::process::ExitCode;

use tests::local::LocalServer;
use tests::peer::{Flavour, Peer};

use crate::cost::Cost;

/// What is compared, and what its ratio has to be at least.
pub(crate) struct Row {
    name: String,
    goal: f64,
    ratios: Vec<f64>,
    /// Microseconds for a commit of ours.
    ours_us: Vec<f64>,
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, goal: f64) -> Row {
        Row {
            name: name.into(),
            goal,
            ratios: Vec::new(),
            ours_us: Vec::new(),
        }
    }

    /// Adds a round: seconds for one commit, the other side's and ours.
    pub(crate) fn add(&mut self, theirs_s: f64, ours_s: f64) {
        self.ratios.push(theirs_s / ours_s);
        self.ours_us.push(ours_s * 1e6);
    }

    /// Prints the row; whether its goal is reached.
    fn print(&mut self, out: &mut impl Write) -> io::Result<bool> {
        self.ratios.sort_by(f64::total_cmp);
        self.ours_us.sort_by(f64::total_cmp);
        let middle = self.ratios.len() / 2;
        let (ratio, ours) = (self.ratios[middle], self.ours_us[middle]);
        let (least, most) = (self.ratios[0], self.ratios[self.ratios.len() - 1]);
        let is_reached = ratio >= self.goal;
        let verdict = if is_reached { "" } else { "  MISSED" };
        let range = format!("{ratio:.2} ({least:.2}-{most:.2})");
        writeln!(
            out,
            "{:<44} {range:>22} {ours:>10.1} us   goal {:.1}{verdict}",
            self.name, self.goal
        )?;
        out.flush()?;
        Ok(is_reached)
    }
}

fn number(name: &str, default: usize) -> usize {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("store: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> io::Result<bool> {
    let rounds = number("STORE_ROUNDS", 7).max(7);
    let commits = number("STORE_COMMITS", 1000);
    let Some(server) = LocalServer::start(&["--save", "", "--appendonly", "no"]) else {
        return Ok(true);
    };
    let url = server.url();
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{:<44} {:>22} {:>13}",
        format!("median of {rounds} rounds (least-most)"),
        "ratio",
        "ours"
    )?;
    let mut rows = bare::compare(&url, rounds, commits);
    if let Some(python) = Peer::python() {
        for flavour in [Flavour::Sync, Flavour::Async] {
            let mut peer = Peer::start(&python, &url, documents::PREFIX, flavour);
            rows.extend(python::compare(&mut peer, flavour, &url, rounds, commits));
        }
        let mut peer = Peer::start(&python, &url, documents::PREFIX, Flavour::Sync);
        rows.push(python::compare_scripts(&mut peer, &url, rounds, commits));
    }
    let mut is_reached = true;
    for row in &mut rows {
        is_reached &= row.print(&mut out)?;
    }
    Ok(is_reached)
}

/// The cost of one commit of many.
pub(crate) fn each(total: &Cost, commits: usize) -> (f64, f64) {
    let commits = commits as f64;
    (total.processor_s / commits, total.wall_s / commits)
}
