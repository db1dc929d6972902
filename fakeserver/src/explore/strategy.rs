//! [`Strategy`]: which command runs next. [`RandomWalk`], [`Replay`] and [`Bytes`]; every interleaving is
//! [`super::Exhaustive`].

use std::fmt;

use super::schedule::{Choice, Lane};
use crate::footprint::Footprint;

/// The next command of a connection, as a strategy sees it.
#[derive(Debug)]
pub struct Head {
    pub(super) footprint: Footprint,
    pub(super) local: bool,
    pub(super) fingerprint: u64,
}

/// Something that can happen next.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    pub(super) choice: Choice,
    pub(super) head: &'a Head,
}

impl<'a> Candidate<'a> {
    /// The choice that makes it happen.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// Whether the command touches nothing that others see (MULTI, a queued command, UNWATCH), so that its order does not
    /// matter.
    pub fn is_local(&self) -> bool {
        self.head.local
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
    pub(super) last: Option<Lane>,
    pub(super) candidates: &'a [Candidate<'a>],
}

impl<'a> Point<'a> {
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

/// Chooses the next command, over and over, schedule after schedule.
pub trait Strategy: Send {
    /// Begins a schedule. `false` if there is none left.
    fn begin(&mut self) -> bool;

    /// What happens next.
    fn choose(&mut self, point: &Point<'_>) -> Decision;

    /// What it covers once [`Strategy::begin`] has said `false`.
    fn coverage(&self) -> Coverage {
        Coverage::Sampled
    }
}

/// Any of the candidates, each schedule anew, from a seed.
#[derive(Clone, Debug)]
pub struct RandomWalk {
    rng: fastrand::Rng,
}

impl RandomWalk {
    /// Of this seed.
    pub fn new(seed: u64) -> RandomWalk {
        RandomWalk {
            rng: fastrand::Rng::with_seed(seed),
        }
    }
}

/// A fault is chosen once in so many steps where it is offered; else short schedules would hardly ever run undisturbed.
const FAULT_ODDS: usize = 12;

impl Strategy for RandomWalk {
    fn begin(&mut self) -> bool {
        true
    }

    fn choose(&mut self, point: &Point<'_>) -> Decision {
        let candidates = point.candidates();
        let plain = candidates
            .iter()
            .take_while(|candidate| !candidate.choice.is_fault())
            .count();
        let faulty = candidates.len() - plain;
        let at = if faulty > 0 && (plain == 0 || self.rng.usize(..FAULT_ODDS) == 0) {
            plain + self.rng.usize(..faulty)
        } else {
            self.rng.usize(..plain.max(1))
        };
        match candidates.get(at) {
            Some(candidate) => Decision::Take(candidate.choice),
            None => Decision::Diverged("nothing to choose from".to_owned()),
        }
    }
}

/// What a replay does with a choice that is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mismatch {
    Refuse,
    Skip,
}

/// A given schedule, once; behind its end the default.
#[derive(Clone, Debug)]
pub struct Replay {
    choices: Vec<Choice>,
    at: usize,
    begun: bool,
    mismatch: Mismatch,
}

impl Replay {
    /// Exactly these choices: one that is not possible is an error.
    pub fn new(choices: Vec<Choice>) -> Replay {
        Replay {
            choices,
            at: 0,
            begun: false,
            mismatch: Mismatch::Refuse,
        }
    }

    /// These choices as far as they are possible, the default in place of the others.
    pub fn leniently(choices: Vec<Choice>) -> Replay {
        Replay {
            mismatch: Mismatch::Skip,
            ..Replay::new(choices)
        }
    }
}

impl Strategy for Replay {
    fn begin(&mut self) -> bool {
        self.at = 0;
        !std::mem::replace(&mut self.begun, true)
    }

    fn choose(&mut self, point: &Point<'_>) -> Decision {
        while let Some(choice) = self.choices.get(self.at) {
            self.at += 1;
            if point.has(*choice) {
                return Decision::Take(*choice);
            }
            if self.mismatch == Mismatch::Refuse {
                let at = self.at - 1;
                return Decision::Diverged(format!(
                    "step {at} of the schedule, {choice}, is not possible"
                ));
            }
        }
        match point.default_choice() {
            Some(choice) => Decision::Take(choice),
            None => Decision::Diverged("nothing to choose from".to_owned()),
        }
    }
}

/// Bytes as deviations from the default: a pair says for how many steps the default is followed and what comes then. Without
/// bytes it is the serial run, and a changed byte stays a local change.
#[derive(Clone, Debug)]
pub struct Bytes {
    script: Vec<u8>,
    at: usize,
    gap: Option<u8>,
    begun: bool,
}

impl Bytes {
    /// These bytes, once.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Bytes {
        Bytes {
            script: bytes.into(),
            at: 0,
            gap: None,
            begun: false,
        }
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.script.get(self.at).copied();
        self.at += 1;
        byte
    }
}

/// Longest stretch of defaults that one byte asks for; longer ones are several pairs.
const GAP_MAX: u8 = 32;

impl Strategy for Bytes {
    fn begin(&mut self) -> bool {
        self.at = 0;
        self.gap = self.next().map(|byte| byte % GAP_MAX);
        !std::mem::replace(&mut self.begun, true)
    }

    fn choose(&mut self, point: &Point<'_>) -> Decision {
        let candidates = point.candidates();
        let at = match self.gap {
            None => 0,
            Some(0) => {
                let at = self.next().map_or(0, usize::from) % candidates.len().max(1);
                self.gap = self.next().map(|byte| byte % GAP_MAX);
                at
            }
            Some(left) => {
                self.gap = Some(left - 1);
                0
            }
        };
        match candidates.get(at) {
            Some(candidate) => Decision::Take(candidate.choice),
            None => Decision::Diverged("nothing to choose from".to_owned()),
        }
    }
}
