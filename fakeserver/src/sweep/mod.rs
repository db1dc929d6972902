//! The race sweep: two programs in any language under every schedule with a single preemption, and under every single fault.
//!
//! # How it works
//! Each program has an address of its own. What it sends arrives here and runs on an engine that nobody else uses, with a clock
//! that stands still; the commands of whoever is not on turn wait. So a run needs no settle time and repeats itself exactly. What
//! is right is not specified: a run is wrong if its outcome (how the programs ended, what they printed, the key space) is that of
//! no serial order.
//!
//! # Layout
//! * [`Sweep`]: what to run and how; [`Report`]: what came of it
//! * `conductor.rs`: one run; `doors.rs`, `program.rs`: the programs and their connections; `upstream.rs`: the server
//! * `search.rs`: which schedules there are, which of them can matter, and what is right
//! * `labels.rs`, `outcome.rs`, `rules.rs`: outcomes that can be compared
//! * `interleave/`: [`Explore`], schedules with several preemptions of up to five programs
//! * `cause.rs`, `repair/`: who is to blame, and what would help; `text.rs`, `html/`: the report
//!
//! # What it does not do
//! What programs do to each other other than through the server. A sweep has two programs and one preemption; beyond that
//! [`Sweep::explore`] goes.

mod atoms;
mod builder;
mod cause;
mod conductor;
mod doors;
mod html;
mod interleave;
mod labels;
mod outcome;
mod polls;
mod program;
mod remote;
mod repair;
pub mod report;
mod rules;
mod schedule;
mod search;
mod seen;
mod stage;
mod step;
mod task;
mod tell;
mod text;
mod upstream;
mod view;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;

use serde::Serialize;
use thiserror::Error;

pub use builder::{Replayed, Sweep};
pub use interleave::{Choice, Explore, Fate, Interleaving, InterleavingError, Strategy};
pub use outcome::Compare;
pub use program::{HostError, LaunchError};
pub use report::Report;
pub use schedule::{Act, Kind, Role, Schedule, ScheduleError};

use report::{Ending, Shown};

/// Why a sweep could not be done.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SweepError {
    /// There is nothing to sweep.
    #[error("there is no program to sweep")]
    NoProgram,
    /// There is nothing to explore.
    #[error("there is one program only: nothing can come between its commands")]
    OneProgram,
    /// A schedule that is not possible.
    #[error("the schedule is not one of these programs, or they do something else each time: {0}")]
    Diverged(String),
    /// A program cannot be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The setup failed.
    #[error("the setup failed: {0}")]
    Setup(String),
    /// A program failed before it had sent anything.
    #[error("{role} fails before it sends a command: {said}")]
    Mute {
        /// Which.
        role: Role,
        /// What it said.
        said: String,
    },
    /// A program does not end by itself.
    #[error(
        "{role} does not end by itself ({order}): a worker has to stop when there is nothing left to do"
    )]
    Endless {
        /// Which.
        role: Role,
        /// In which serial order.
        order: String,
    },
    /// Equal runs end in different ways.
    #[error(
        "the programs end with another status each time ({order}): there is nothing to compare with"
    )]
    Unsteady {
        /// In which serial order.
        order: String,
    },
    /// The host of the programs.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A program goes on though all its connections are closed.
    #[error("a program does not end, although its connections are closed")]
    Unending,
    /// The server that the programs are to talk to.
    #[error("the server: {0}")]
    Server(#[source] io::Error),
    /// Not the address of a server.
    #[error("`{0}` is not an address of the form redis://[[user]:password@]host[:port]")]
    Url(String),
    /// No socket, or no runtime.
    #[error("cannot listen: {0}")]
    Listen(#[source] io::Error),
}

impl Report {
    /// The report for a terminal.
    pub fn text(&self) -> String {
        text::text(self)
    }

    /// The report as a page of its own, for a browser.
    pub fn html(&self) -> String {
        html::html(self)
    }

    /// Hands the report and a text for its readers to the host of the programs, as the last line.
    ///
    /// # Errors
    /// Standard output cannot be written to.
    pub fn tell_host(&self, text: &str) -> io::Result<()> {
        #[derive(Serialize)]
        struct Last<'a> {
            r#do: &'static str,
            report: &'a Report,
            text: &'a str,
        }
        program::tell(&Last {
            r#do: "report",
            report: self,
            text,
        })
    }
}

/// What the server saw, a command a line, then the key space and how the programs ended, as they are: nothing is left out.
impl fmt::Display for Replayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            let note = step
                .note
                .as_ref()
                .map(|note| format!("  ({note})"))
                .unwrap_or_default();
            match step.role.as_str() {
                "server" => writeln!(f, "-- {}", step.command)?,
                role => writeln!(
                    f,
                    "{role}{} {} -> {}{note}",
                    step.connection, step.command, step.reply
                )?,
            }
        }
        let Shown {
            a, b, more, after, ..
        } = &self.outcome;
        let more = more.iter().map(|(name, end)| (name.as_str(), Some(end)));
        let ends = [("a", a.as_ref()), ("b", b.as_ref())].into_iter();
        for (name, ending) in ends.chain(more).chain([("after", after.as_ref())]) {
            if let Some(Ending { status, output }) = ending {
                writeln!(f, "{name}: status {status}, output {output:?}")?;
            }
        }
        for key in &self.outcome.keys {
            let ttl = if key.ttl { " (has a time to live)" } else { "" };
            writeln!(f, "{} {} {}{ttl}", key.r#type, key.key, key.value)?;
        }
        let verdict = if self.report.is_clean() {
            "a serial order gives this"
        } else {
            "no serial order gives this"
        };
        writeln!(f, "{verdict}")
    }
}
