//! What a turn came to.

use std::time::Duration;

/// What a worker has done in one turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Turn {
    /// What became of the event that it claimed; none if there was none.
    pub handled: Option<Handling>,
    /// What it swept up; none if it did not sweep.
    pub swept: Option<Swept>,
    /// How long to pause before the next turn: nothing, if there was something to do.
    pub wait: Duration,
}

impl Turn {
    /// Whether there was nothing to do.
    pub fn is_idle(&self) -> bool {
        self.handled.is_none() && self.swept.is_none_or(|swept| swept.moved() == 0)
    }
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Handling {
    /// Its commit has landed.
    Committed,
    /// It was handled before.
    Duplicate,
    /// There is no row for it.
    Missing,
    /// The row's status or the handler did without it.
    Ignored,
    /// It comes again later: the row's status or the handler said so.
    Postponed,
    /// Another writer was faster, or it is not known whether the commit landed: it comes again at once, and is handled if it
    /// was not.
    Again,
    /// It can not be handled as things are; it comes again after a pause.
    Parked,
    /// The lease ended while it was being handled; nothing was committed.
    LeaseLost,
}

/// What a sweep has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Swept {
    /// Events of the outbox that are in their queues now, or had no target.
    pub delivered: u64,
    /// Executions that were created, or were there already.
    pub started: u64,
    /// Timers whose event is in its queue now.
    pub fired: u64,
    /// Entries that nobody can work off and that were set aside.
    pub quarantined: u64,
    /// Entries that could not be worked off and still wait.
    pub left: u64,
}

impl Swept {
    /// How much it was in all.
    pub fn moved(self) -> u64 {
        self.delivered + self.started + self.fired + self.quarantined
    }

    pub(super) fn add(&mut self, other: Self) {
        self.delivered += other.delivered;
        self.started += other.started;
        self.fired += other.fired;
        self.quarantined += other.quarantined;
        self.left += other.left;
    }
}
