//! [`Ran`]: a step as it was, and [`EnabledBy`]: what it could not come before.

use super::super::schedule::Choice;
use crate::footprint::Footprint;

/// What a command waited for before it was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnabledBy {
    steps: usize,
    timed: bool,
}

impl EnabledBy {
    /// Sent by what the last of so many steps woke; by nothing but the start if there was none.
    pub(in crate::explore) fn reply(steps: usize) -> EnabledBy {
        EnabledBy {
            steps,
            timed: false,
        }
    }

    /// Sent by what a timer woke when so many steps had run and nothing else could.
    pub(in crate::explore) fn time(steps: usize) -> EnabledBy {
        EnabledBy { steps, timed: true }
    }

    /// The step whose outcome led to the command: between two steps run only the tasks that the first has woken. `None` if it
    /// was sent at the start or by a timer.
    pub fn step(self) -> Option<usize> {
        self.steps.checked_sub(1).filter(|_| !self.timed)
    }

    /// The last step before it was sent.
    pub(in crate::explore) fn last(self) -> Option<usize> {
        self.steps.checked_sub(1)
    }

    /// So many steps from the first on had all to come before: time passes only when no command can run. 0 unless a timer
    /// led to the command.
    pub fn all_before(self) -> usize {
        if self.timed { self.steps } else { 0 }
    }
}

/// A step that ran.
#[derive(Clone, Debug)]
pub struct Ran {
    /// What was chosen.
    pub choice: Choice,
    /// Whose connection that is; none if nobody's.
    pub client: Option<usize>,
    /// What it touched. More than was predicted, if it turned out so.
    pub footprint: Footprint,
    /// What it waited for.
    pub enabled_by: EnabledBy,
    /// Whether nobody else could see it.
    pub local: bool,
    /// What the history took down between this step and the next.
    pub marks: Marks,
}

/// What the history took down at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// An operation began.
    pub begins: bool,
    /// One returned.
    pub returns: bool,
}

impl Marks {
    /// Whether an operation began or returned.
    pub fn begins_or_ends(self) -> bool {
        self.begins || self.returns
    }

    /// Whether the order of the two moments says that an operation returned before another one began.
    pub(super) fn order_matters(self, other: Marks) -> bool {
        self.begins && other.returns || self.returns && other.begins
    }
}
