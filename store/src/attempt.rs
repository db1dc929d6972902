//! [`Attempt`]: a commit whose outcome is not known yet, and [`Resolution`]: what can be found out about it.

use std::{fmt, sync::Arc};

use crate::{Committed, Version};

/// What was sent by a commit, kept to find out later whether it landed. Opaque; cheap to clone.
#[derive(Clone)]
pub struct Attempt(Arc<Sent>);

struct Sent {
    id: String,
    expected: Version,
    row: String,
    event_id: Option<String>,
    committed: Committed,
}

impl Attempt {
    pub(crate) fn new(
        id: &str,
        expected: Version,
        row: &str,
        event_id: Option<&str>,
        committed: Committed,
    ) -> Self {
        Self(Arc::new(Sent {
            id: id.to_owned(),
            expected,
            row: row.to_owned(),
            event_id: event_id.filter(|id| !id.is_empty()).map(str::to_owned),
            committed,
        }))
    }

    /// The execution.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// The version that it was decided on.
    pub fn expected(&self) -> Version {
        self.0.expected
    }

    /// The version that it makes.
    pub fn next(&self) -> Version {
        self.0.committed.version
    }

    /// The event that it marks as processed.
    pub fn event_id(&self) -> Option<&str> {
        self.0.event_id.as_deref()
    }

    pub(crate) fn row(&self) -> &[u8] {
        self.0.row.as_bytes()
    }

    pub(crate) fn committed(&self) -> &Committed {
        &self.0.committed
    }
}

impl fmt::Debug for Attempt {
    /// Without the row: what a caller stores does not belong into a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("id", &self.id())
            .field("expected", &self.expected())
            .field("row_len", &self.row().len())
            .finish_non_exhaustive()
    }
}

/// What became of an attempt, as far as the row and the mark of its event tell.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resolution {
    /// It landed. The positions of its events and spawn intents are known only if they were drawn before it was sent
    /// ([`CommitPath::Script`](crate::CommitPath::Script) draws them with the commit); else both lists are empty.
    Landed(Committed),
    /// It has not landed.
    ///
    /// If `is_final`, another commit took its version, or its row was there without its mark: it never will. Else the row is
    /// as it was before, and **the request may still be on its way**: in a socket, in a proxy, in front of a server that is
    /// busy. Nothing that only reads can rule that out; any other commit of this execution does, since at most one of the two
    /// can take the version. So load, decide and commit again: if that answers with a conflict, the old one has landed.
    NotLanded {
        /// The stored version; none if there is no row.
        found: Option<Version>,
        /// Whether it can not land any more.
        is_final: bool,
    },
    /// Others have committed since, so that its row, if it ever was there, is gone.
    Overtaken {
        /// The stored version; none if there is no row (any more).
        found: Option<Version>,
        /// Whether its event is marked as processed: then this commit or another one has handled it, and it must not be
        /// handled again. None if the commit had no event: then nothing is left by which to tell.
        is_event_processed: Option<bool>,
    },
}
