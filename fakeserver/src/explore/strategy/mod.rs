//! [`Strategy`]: which command runs next.
//!
//! * [`Exhaustive`]: every interleaving, or one of each class
//! * [`RandomWalk`], [`Pct`], [`Pos`]: a sample
//! * [`Replay`], [`Bytes`]: what somebody else has decided

mod bytes;
mod dependence;
mod dpor;
mod exhaustive;
mod node;
mod pct;
mod pos;
mod ran;
mod random;
mod replay;

use std::fmt;

pub use bytes::Bytes;
pub use exhaustive::{Exhaustive, Reduction};
pub use pct::Pct;
pub use pos::Pos;
pub use ran::{EnabledBy, Marks, Ran};
pub use random::RandomWalk;
pub use replay::Replay;

use super::schedule::{Choice, Lane};
use crate::footprint::Footprint;

/// The next command of a connection, as a strategy sees it.
#[derive(Debug)]
pub struct Head {
    pub(in crate::explore) footprint: Footprint,
    pub(in crate::explore) local: bool,
    pub(in crate::explore) fingerprint: u64,
    pub(in crate::explore) client: Option<usize>,
    pub(in crate::explore) enabled_by: EnabledBy,
    /// Whether its client holds other connections, whose replies may come in between.
    pub(in crate::explore) shared: bool,
}

/// Something that can happen next.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    pub(in crate::explore) choice: Choice,
    pub(in crate::explore) head: &'a Head,
}

impl<'a> Candidate<'a> {
    /// The choice that makes it happen.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// Whether the command touches nothing that others see (MULTI, a queued command, UNWATCH), so that its order does not
    /// matter. It does if its client waits on several connections at a time.
    pub fn is_local(&self) -> bool {
        self.head.local && !self.head.shared
    }

    /// Whose connection it is; none if it is about none.
    pub fn client(&self) -> Option<usize> {
        self.head.client
    }

    /// What the command waited for before it was sent.
    pub fn enabled_by(&self) -> EnabledBy {
        self.head.enabled_by
    }

    /// What the command touches.
    pub fn footprint(&self) -> &'a Footprint {
        &self.head.footprint
    }

    /// A hash of the command's words.
    pub fn fingerprint(&self) -> u64 {
        self.head.fingerprint
    }
}

/// A moment in which nobody can go on before a command has run.
#[derive(Debug)]
pub struct Point<'a> {
    pub(in crate::explore) last: Option<Lane>,
    pub(in crate::explore) candidates: &'a [Candidate<'a>],
    pub(in crate::explore) ran: &'a [Ran],
}

impl<'a> Point<'a> {
    /// What ran so far.
    pub fn ran(&self) -> &'a [Ran] {
        self.ran
    }

    /// Everything that can happen, never nothing. The first is the default: it goes on with the lane of the step before, if
    /// that can. Faults come last.
    pub fn candidates(&self) -> &'a [Candidate<'a>] {
        self.candidates
    }

    /// Whose command ran in the step before.
    pub fn last(&self) -> Option<Lane> {
        self.last
    }

    /// Whether this choice takes the turn from a lane that could have gone on.
    pub fn is_preemption(&self, choice: Choice) -> bool {
        self.last.is_some_and(|last| {
            last != choice.lane
                && choice.lane != Lane::WORLD
                && self
                    .candidates
                    .iter()
                    .any(|candidate| candidate.choice == Choice::execute(last))
        })
    }

    /// A candidate that can run at once, since nobody else can tell when it did.
    pub fn local(&self) -> Option<&'a Candidate<'a>> {
        self.candidates
            .iter()
            .find(|candidate| candidate.is_local() && !candidate.choice.is_fault())
    }

    fn has(&self, choice: Choice) -> bool {
        self.candidates
            .iter()
            .any(|candidate| candidate.choice == choice)
    }

    fn default_choice(&self) -> Option<Choice> {
        self.candidates.first().map(|candidate| candidate.choice)
    }
}

/// What a strategy answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// This happens.
    Take(Choice),
    /// Whatever happens from here on was seen already: the schedule is given up.
    Prune,
    /// The run is not the one that the strategy remembers.
    Diverged(String),
}

/// How much of a workload's interleavings a strategy shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// All of them, or one of each class that differs only in the order of commands that commute.
    Exhaustive,
    /// All with at most so many preemptions.
    Bounded(usize),
    /// Some.
    Sampled,
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Coverage::Exhaustive => f.pad("exhaustive"),
            Coverage::Bounded(preemptions) => f.pad(&format!("<= {preemptions} preemptions")),
            Coverage::Sampled => f.pad("sampled"),
        }
    }
}

/// A strategy that draws its schedules.
pub(in crate::explore) trait Sampling: Strategy {
    /// Its name, for reports.
    const NAME: &'static str;

    /// The same with other draws: its own seed and this one.
    fn reseeded(&self, seed: u64) -> Self;
}

/// Chooses the next command, over and over, schedule after schedule.
pub trait Strategy: Send {
    /// Begins a schedule. `false` if there is none left.
    fn begin(&mut self) -> bool;

    /// What happens next.
    fn choose(&mut self, point: &Point<'_>) -> Decision;

    /// A schedule is over, at its end or given up: what ran.
    fn end(&mut self, steps: &[Ran]) {
        let _ = steps;
    }

    /// Begins anew, since something that it relied on has turned out wrong.
    fn restart(&mut self) -> bool {
        false
    }

    /// From now on the order of calls and returns of different clients counts as well, as for linearizability. Told before
    /// the first schedule; a strategy that leaves out nothing need not care.
    fn keep_real_time(&mut self) {}

    /// What it covers once [`Strategy::begin`] has said `false`.
    fn coverage(&self) -> Coverage {
        Coverage::Sampled
    }
}
