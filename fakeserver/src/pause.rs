//! `CLIENT PAUSE`: which commands are held back until when, and the clients that wait for it to end.

use std::collections::BTreeSet;

use crate::clock::Timestamp;
use crate::session::SessionId;

/// Which commands a pause holds back; the stronger one is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PauseMode {
    /// Those that may write.
    Write,
    /// All.
    All,
}

/// The pause under way.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    active: Option<(PauseMode, Timestamp)>,
    /// Clients whose next request is held back.
    pub postponed: BTreeSet<SessionId>,
}

impl Pause {
    /// Starts a pause, or prolongs and strengthens the one under way: a pause never becomes weaker or shorter by another.
    pub(crate) fn start(&mut self, mode: PauseMode, end: Timestamp) {
        let (mode, end) = match self.active {
            Some((old_mode, old_end)) => (mode.max(old_mode), end.max(old_end)),
            None => (mode, end),
        };
        self.active = Some((mode, end));
    }

    /// Ends the pause.
    pub(crate) fn stop(&mut self) {
        self.active = None;
    }

    /// What is held back at `now`.
    pub(crate) fn mode(&self, now: Timestamp) -> Option<PauseMode> {
        self.active
            .filter(|(_, end)| now < *end)
            .map(|(mode, _)| mode)
    }

    /// When the pause under way ends.
    pub(crate) fn end(&self) -> Option<Timestamp> {
        self.active.map(|(_, end)| end)
    }
}
