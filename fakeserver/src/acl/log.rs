//! The log of what was denied (`ACL LOG`).

use std::collections::VecDeque;

use super::check::Denial;
use crate::clock::Timestamp;
use crate::value::Blob;

/// The same denial within so many milliseconds is one entry.
const GROUPED_MS: i64 = 60_000;

/// So many of the latest entries are looked at for the same denial.
const COMPARED: usize = 10;

/// What was denied, as the log names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Auth,
    Command,
    Key,
    Channel,
}

impl Reason {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Reason::Auth => "auth",
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
        }
    }
}

impl From<Denial> for Reason {
    fn from(denial: Denial) -> Reason {
        match denial {
            Denial::Command => Reason::Command,
            Denial::Key(_) => Reason::Key,
            Denial::Channel(_) => Reason::Channel,
        }
    }
}

/// Where a command was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    TopLevel,
    /// Queued, or about to be, or run by EXEC.
    Multi,
    /// Called by a script.
    #[cfg(feature = "lua")]
    Script,
}

impl Context {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Context::TopLevel => "toplevel",
            Context::Multi => "multi",
            #[cfg(feature = "lua")]
            Context::Script => "lua",
        }
    }
}

/// A denial, and how often it happened.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub count: u64,
    pub reason: Reason,
    pub context: Context,
    /// The command, key or channel.
    pub object: Blob,
    pub user: Blob,
    /// When it happened last.
    pub at: Timestamp,
    /// The client's line in CLIENT LIST.
    pub client: Blob,
}

impl Entry {
    fn is_same(&self, other: &Entry) -> bool {
        self.reason == other.reason
            && self.context == other.context
            && (self.at.millis() - other.at.millis()).abs() <= GROUPED_MS
            && self.object == other.object
            && self.user == other.user
    }
}

/// Denials, the latest first.
#[derive(Debug, Default)]
pub(crate) struct AclLog {
    entries: VecDeque<Entry>,
}

impl AclLog {
    /// Adds a denial, and forgets the oldest beyond `len_max`.
    pub(super) fn push(&mut self, mut entry: Entry, len_max: usize) {
        let mut latest = self.entries.iter().take(COMPARED);
        if let Some(at) = latest.position(|known| known.is_same(&entry)) {
            if let Some(known) = self.entries.remove(at) {
                entry.count = known.count + 1;
            }
            self.entries.push_front(entry);
            return;
        }
        self.entries.push_front(entry);
        self.entries.truncate(len_max);
    }

    /// The latest entries first.
    pub(crate) fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Forgets all entries.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}
