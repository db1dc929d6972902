//! [`Stage`]: what stays the same through all runs of a sweep.

use std::io;
use std::time::Duration;

use super::doors::Doors;
use super::program::Program;
use super::schedule::Role;

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// One run.
    pub(super) time_limit: Duration,
    /// A silent program waits for the other.
    pub(super) patience: Duration,
}

/// The programs, their addresses, and the number of runs so far.
pub(super) struct Stage {
    pub(super) doors: Doors,
    pub(super) settings: Limits,
    /// The machine's time when the sweep began, in seconds: times near it are all the same.
    pub(super) wall_seconds: f64,
    programs: [Option<Program>; Role::ALL.len()],
    runs: u64,
}

impl Stage {
    /// Opens an address for each role. Errors: no port is left.
    pub(super) fn new(
        programs: [Option<Program>; Role::ALL.len()],
        settings: Limits,
        wall_seconds: f64,
    ) -> io::Result<Stage> {
        Ok(Stage {
            doors: Doors::open()?,
            settings,
            wall_seconds,
            programs,
            runs: 0,
        })
    }

    /// What a role runs.
    pub(super) fn program(&self, role: Role) -> Option<&Program> {
        self.programs.get(role.index())?.as_ref()
    }

    /// The number of the run that begins now.
    pub(super) fn next_run(&mut self) -> u64 {
        self.runs += 1;
        self.runs
    }
}
