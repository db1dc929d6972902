//! What can go wrong, and whether trying again is safe.

use std::fmt;

use redis::RedisError;

use crate::{Attempt, Version};

/// Why a call on a store did not succeed.
///
/// The execution that was passed to a commit is unchanged whenever one of these is returned.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another writer was faster: the stored version is not the one that the caller loaded. Nothing was written, but for
    /// sequence numbers that the attempt drew and that stay unused.
    ///
    /// Retry: load again and decide again; never repeat the same commit.
    #[error("stale write to {id}: expected version {expected}, found {}", found.map_or_else(|| "None".to_owned(), |version| version.to_string()))]
    Conflict {
        /// The execution.
        id: String,
        /// The version that the caller had loaded.
        expected: Version,
        /// The stored version; none if there is no row, or if it moved between the check and the write.
        found: Option<Version>,
    },
    /// An execution was to be created whose id is taken. Nothing was written.
    ///
    /// Retry: useless; load it.
    #[error("{id} exists already")]
    AlreadyExists {
        /// The execution.
        id: String,
    },
    /// A write was sent and its reply never came (connection lost, time-out): it happened wholly or not at all.
    ///
    /// Retry: not blindly. With an `attempt`, `resolve` of either store finds out whether it happened; see
    /// [`Resolution`](crate::Resolution) for what can be known.
    #[error("{operation} of {id}: sent, but the reply was lost: {source}")]
    Indeterminate {
        /// The call.
        operation: &'static str,
        /// The execution.
        id: String,
        /// The version that the caller had loaded, if the call depends on one.
        expected: Option<Version>,
        /// What was sent, if the call was a commit.
        attempt: Option<Attempt>,
        /// What the connection said.
        source: RedisError,
    },
    /// Commands inside a transaction failed while it ran; Redis does not roll the others back. Only a key of the wrong type,
    /// put there by somebody else, can cause it.
    ///
    /// Retry: not safe. The rest of the commit is stored, the new version included; repair the keys that are named here.
    #[error("commit of {id} was applied only in part; failed: {}", Listed(failed))]
    Partial {
        /// The execution.
        id: String,
        /// The commands that had no effect.
        failed: Vec<FailedCommand>,
    },
    /// A key holds something that is not what this store writes.
    ///
    /// Retry: useless until the key is repaired.
    #[error("corrupt value in {key}{}: {reason}", field.as_ref().map_or_else(String::new, |field| format!(" at {field}")))]
    Corrupt {
        /// The key.
        key: String,
        /// The field of a hash, or the member of an object, where that is known.
        field: Option<String>,
        /// What is wrong with it.
        reason: String,
    },
    /// The input can not be stored without breaking a guarantee. Redis was not asked.
    ///
    /// Retry: useless with the same input.
    #[error("invalid {what}: {reason}")]
    Invalid {
        /// Which part of the input.
        what: &'static str,
        /// The rule that it breaks.
        reason: Rejection,
    },
    /// A sharded store has another number of partitions than it was opened with. Nothing was written.
    ///
    /// Retry: useless; open it with the number that it has.
    #[error("{key} says {found}, not {expected}")]
    Layout {
        /// The key that holds the layout.
        key: String,
        /// The layout that was asked for.
        expected: String,
        /// The layout of the store.
        found: String,
    },
    /// The server answered with an error (out of memory, read only, no permission, still loading). Nothing was written.
    ///
    /// Retry: safe; useful once the cause is gone.
    #[error("{command} was refused: {message}")]
    Refused {
        /// The command that was refused first.
        command: String,
        /// The server's words.
        message: String,
    },
    /// The server would lose data or refuse commits as it is set up. Only a check says so ([`crate::op::Check`]); nothing
    /// was written.
    ///
    /// Retry: useful once the server is set up otherwise, or over a connection to another one.
    #[error("unfit server: {reason} ({found})")]
    Unfit {
        /// What is wrong with it.
        reason: Unfit,
        /// The server's own words for it.
        found: String,
    },
    /// The connection failed, and either nothing had been written or doing it again is harmless.
    ///
    /// Retry: safe.
    #[error("connection failed: {source}")]
    Io {
        /// What the connection said.
        #[from]
        source: RedisError,
    },
}

impl StoreError {
    /// Which of the kinds it is, in a word of snake case: for labels and counters.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Conflict { .. } => "conflict",
            Self::AlreadyExists { .. } => "already_exists",
            Self::Indeterminate { .. } => "indeterminate",
            Self::Partial { .. } => "partial",
            Self::Corrupt { .. } => "corrupt",
            Self::Invalid { .. } => "invalid",
            Self::Layout { .. } => "layout",
            Self::Refused { .. } => "refused",
            Self::Unfit { .. } => "unfit",
            Self::Io { .. } => "io",
        }
    }
}

/// What makes a server unfit to hold executions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unfit {
    /// It removes keys when memory is short, rows among them, without a word: its `maxmemory-policy` is not `noeviction`.
    Evicting,
    /// It is a replica: it takes no writes, and what it shows is old.
    Replica,
    /// This user may run no scripts, or the server has none. [`crate::CommitPath::Watch`] commits without; deletion of
    /// timers, purge and fork need them all the same.
    WithoutScripts,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Evicting => {
                "it evicts keys when memory is short, `maxmemory-policy` must be `noeviction`"
            }
            Self::Replica => "it is a replica, connect to the master",
            Self::WithoutScripts => "it runs no scripts for this user",
        })
    }
}

/// A command of a transaction that the server refused while the others took effect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedCommand {
    /// Position among the commands between `MULTI` and `EXEC`, from 0.
    pub position: usize,
    /// Name of the command.
    pub command: String,
    /// The key that it was to change.
    pub key: String,
    /// The server's words.
    pub message: String,
}

/// The rule that an input breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejection {
    /// A NUL character in an id: it separates id and path of a timer, so that two executions could share one.
    Nul,
    /// An id that begins with `seq:`: the trace of execution `seq:x` and the trace counter of `x` would share a key.
    Reserved,
    /// An empty event id: the Python store does not record it in commits that change nothing else.
    Empty,
    /// A time that is not finite: never due, or refused by Redis in the middle of a commit.
    NotFinite,
    /// JSON nested more deeply than every reader of the key space can read ([`crate::codec::WRITE_DEPTH_MAX`]).
    TooDeep,
    /// A version so large that the next one is not exact as a double (2^53 - 1).
    VersionAtEdge,
    /// Outside of the range that readers accept.
    OutOfRange,
    /// Not of the form that readers accept.
    Malformed,
    /// More than may be held in memory.
    TooMany,
    /// A prefix whose keys would be another store's: empty, with NUL, or with one of the store's key names as a part.
    PrefixCollides,
    /// A version other than 0 of what is to be created: it was stored before.
    NotNew,
    /// Another document than the one that was sent, or the same one at another version.
    OtherDocument,
    /// A value that has no spelling in JSON: a map whose keys are not text, or an error of the type's own.
    NotJson,
    /// A prefix without a `{tag}` on a cluster: its keys lie in several slots, but have to change together. Nothing was written.
    Untagged,
    /// A connection that does not stay the same between two calls can not carry `WATCH`. Sequence numbers may have been
    /// drawn.
    NotOneConnection,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nul => "contains NUL",
            Self::Reserved => "begins with `seq:`",
            Self::Empty => "is empty",
            Self::NotFinite => "is not finite",
            Self::TooDeep => "is nested too deeply",
            Self::VersionAtEdge => "has reached 2^53 - 1",
            Self::OutOfRange => "is out of range",
            Self::Malformed => "is malformed",
            Self::TooMany => "is more than may be held in memory",
            Self::PrefixCollides => "collides with key names of the store",
            Self::NotNew => "was stored before",
            Self::OtherDocument => "is of another document or version",
            Self::NotJson => "has no spelling in JSON",
            Self::Untagged => "has no `{tag}`, which a cluster needs",
            Self::NotOneConnection => "does not stay the same connection between two calls",
        })
    }
}

/// The refusal of a cluster on which the keys would lie apart.
pub(crate) const UNTAGGED: StoreError = StoreError::Invalid {
    what: "prefix",
    reason: Rejection::Untagged,
};

struct Listed<'a>(&'a [FailedCommand]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, failed) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(
                f,
                "{separator}{} {} ({})",
                failed.command, failed.key, failed.message
            )?;
        }
        Ok(())
    }
}
