//! DEBUG SLEEP: the server does nothing for a while.
//!
//! Nobody sleeps here, since that would keep the driver from everything else it does. Requests stay where they are, and what is
//! to be sent waits, until the time has come; so the server is as deaf and as mute as one whose thread sleeps.

use crate::clock::Timestamp;
use crate::command::{Flag, Row};
use crate::engine::Engine;
use crate::latency_events::Sample;

/// A sleep and how long the running command has slept.
#[derive(Debug, Default)]
pub(crate) struct Sleep {
    until: Option<Timestamp>,
    /// Microseconds.
    pub taken: i64,
}

impl Sleep {
    /// Whether the server sleeps.
    pub(crate) fn is_on(&self) -> bool {
        self.until.is_some()
    }
}

impl Engine {
    /// Sleeps for so many microseconds from the running command on.
    pub(crate) fn sleep(&mut self, micros: i64) {
        if micros <= 0 {
            return;
        }
        let from = self.sleep.until.unwrap_or(self.now);
        let until = Timestamp::from_micros(from.micros().saturating_add(micros));
        self.sleep.until = Some(until);
        self.sleep.taken = self.sleep.taken.saturating_add(micros);
    }

    /// Lets the time pass that the command has slept: for what follows from it is later.
    pub(crate) fn pass_slept_time(&mut self) {
        let taken = std::mem::take(&mut self.sleep.taken);
        if taken > 0 {
            self.now = Timestamp::from_micros(self.now.micros().saturating_add(taken));
            self.keyspace.set_now(self.now);
        }
    }

    /// Until when the server sleeps.
    pub(crate) fn wakes_at(&self) -> Option<Timestamp> {
        self.sleep.until
    }

    /// Whether the server sleeps; it is told the time before it is asked.
    pub(crate) fn is_asleep(&self) -> bool {
        self.sleep.is_on()
    }

    /// Ends the sleep if its time has come: everyone's requests go on, in order of connection.
    pub(crate) fn wake_up(&mut self) {
        if self.sleep.until.is_none_or(|until| self.now < until) {
            return;
        }
        self.sleep.until = None;
        let mut ids: Vec<_> = self.sessions.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            self.resumed.push_back(id);
            if self
                .sessions
                .get(&id)
                .is_some_and(|session| session.has_output())
            {
                self.ready.insert(id);
            }
        }
    }

    /// Notes that a command took long, if it did.
    pub(crate) fn note_latency(&mut self, row: &Row, micros: i64) {
        let (threshold, millis) = (self.config.latency_monitor_threshold, micros / 1000);
        if threshold <= 0 || millis < threshold {
            return;
        }
        let event = if row.has(Flag::Fast) {
            "fast-command"
        } else {
            "command"
        };
        let at = self.now.seconds();
        self.latency_events.add(event, Sample { at, millis });
    }
}
