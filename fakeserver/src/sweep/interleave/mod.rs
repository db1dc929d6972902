//! [`Explore`]: two or more programs under schedules with several preemptions.
//!
//! Programs take turns as in a sweep, so that nothing has to settle; who goes on is asked at every command that others can see.
//! What is right follows from all serial orders of the programs.

mod choices;
mod plan;
mod search;
mod steer;
mod tell;

pub use choices::{Choice, Fate, Interleaving, InterleavingError};
pub(super) use steer::{Crossing, Steer};

use crate::sweep::SweepError;
use crate::sweep::builder::{Replayed, Sweep};
use crate::sweep::report::Report;

/// How schedules are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// All with at most so many preemptions, those with fewer first.
    Bounded,
    /// Any program goes on at each command.
    Random,
    /// Probabilistic concurrency testing: programs have random priorities, which change at so many random places as there may be
    /// preemptions.
    Pct,
}

/// How to explore programs.
///
/// ```
/// use fakeserver::sweep::{Explore, Sweep};
/// # use std::io::{BufRead, BufReader, Write};
/// # fn ask(url: &str, commands: &[&str]) -> std::io::Result<Vec<String>> {
/// #     let mut stream = std::net::TcpStream::connect(url.trim_start_matches("redis://"))?;
/// #     let mut reader = BufReader::new(stream.try_clone()?);
/// #     commands.iter().map(|command| {
/// #         stream.write_all(format!("{command}\r\n").as_bytes())?;
/// #         let mut line = String::new();
/// #         reader.read_line(&mut line)?;
/// #         Ok(line.trim().to_owned())
/// #     }).collect()
/// # }
/// // The key must not come while somebody reads and stay until then: that takes two preemptions. `ask` sends commands, one by
/// // one.
/// let read = |url: &str| ask(url, &["EXISTS busy", "EXISTS busy"]).map(|seen| seen == [":0", ":1"]);
/// let work = |url: &str| ask(url, &["SET busy 1", "DEL busy"]);
/// let report = Sweep::new().a(read).b(work).explore(&Explore::default()).unwrap();
/// assert_eq!(report.findings[0].schedule, "explore:abab");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explore {
    /// Which schedules; [`Strategy::Bounded`] by default.
    pub strategy: Strategy,
    /// How many at most; 200 by default.
    pub schedules: usize,
    /// How often at most the turn is taken from a program that could go on. By default two; without a bound for
    /// [`Strategy::Random`].
    pub preemptions: Option<usize>,
}

impl Default for Explore {
    fn default() -> Explore {
        Explore {
            strategy: Strategy::Bounded,
            schedules: 200,
            preemptions: None,
        }
    }
}

impl Sweep {
    /// Runs the programs side by side under schedules with several preemptions. Kinds of faults play no role.
    ///
    /// # Errors
    /// As for [`Sweep::run`]; and if there is one program only.
    pub fn explore(&self, explore: &Explore) -> Result<Report, SweepError> {
        let explored = self.on_runtime(self.explore_all(explore));
        explored.map(|(report, _)| report)
    }

    /// Runs one interleaving again, and serial orders to judge it.
    ///
    /// # Errors
    /// As for [`Sweep::explore`]; [`SweepError::Diverged`] if a turn is not possible.
    pub fn replay_interleaving(&self, interleaving: &Interleaving) -> Result<Replayed, SweepError> {
        let (report, replayed) = self.on_runtime(self.explore_one(interleaving))?;
        let (steps, outcome) = replayed.unwrap_or_default();
        Ok(Replayed {
            steps,
            outcome,
            report,
        })
    }
}
