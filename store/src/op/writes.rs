//! What a commit writes, checked and spelled once for both of its ways.

use redis::RedisError;

use super::validate;
use crate::{
    Attempt, Commit, Committed, Document, Rejection, RowTail, Settings, StoreError, TimerOp,
    Version, codec, keys::Keys,
};

/// Everything that a commit writes, checked and spelled.
///
/// The parts of a commit, so that a test can put them together wrongly and see that it is noticed.
#[derive(Debug, Clone)]
pub struct Writes {
    /// The execution.
    pub id: String,
    /// The version that must be stored.
    pub expected: Version,
    /// The version that will be.
    pub next: Version,
    /// The key of the row.
    pub row_key: String,
    /// The new row.
    pub row: String,
    /// The end of the new row.
    row_tail: RowTail,
    /// Whether there must be no row at all.
    pub(super) is_creation: bool,
    /// The end of the row that must be stored, if that is known.
    pub(super) tail: RowTail,
    pub(super) keys: Keys,
    pub(super) outbox: Vec<String>,
    pub(super) spawns: Vec<String>,
    pub(super) timers: Vec<Timer>,
    pub(super) processed_event_id: Option<String>,
    pub(super) trace: Option<TraceStep>,
    pub(super) trace_max: i64,
    pub(super) is_indexed: bool,
    pub(super) lifetime: Lifetime,
}

/// What becomes of the time to live of the row and its companions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// The store does not deal with it.
    Untouched,
    /// It has not ended: for ever.
    Unlimited,
    /// It has ended: so many milliseconds.
    Milliseconds(u64),
}

/// A change to a timer.
#[derive(Debug, Clone)]
pub(super) struct Timer {
    pub(super) member: String,
    /// None removes it.
    pub(super) score: Option<String>,
}

/// A step, spelled around the place of its index.
#[derive(Debug, Clone)]
pub(super) struct TraceStep {
    pub(super) before: String,
    pub(super) behind: String,
}

impl Writes {
    /// Of this document, with these effects.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for input that can not be stored without breaking a guarantee.
    pub fn new<D: Document>(
        settings: &Settings,
        document: &D,
        commit: &Commit,
    ) -> Result<Self, StoreError> {
        let id = document.id();
        validate::execution_id(settings, "execution id", id)?;
        document.validate(settings)?;
        validate::commit(settings, commit)?;
        let expected = document.version();
        let next = validate::next_version(expected)?;
        let row = document.encode(next, settings)?;
        // The script, the other path and every reader look for it there.
        let row_tail = codec::version_tail(&row).ok_or(StoreError::Invalid {
            what: "row",
            reason: Rejection::Malformed,
        })?;
        let row_tail = RowTail::new(row_tail, next);
        let keys = settings.keys();
        let timers = commit
            .timers
            .iter()
            .map(|timer| Timer::new(keys, id, timer));
        let spawns = commit.spawns.iter();
        Ok(Self {
            id: id.to_owned(),
            expected,
            next,
            row_key: keys.execution(id),
            row,
            row_tail,
            is_creation: false,
            tail: document.tail(),
            outbox: commit.emits.iter().map(codec::encode_outbox).collect(),
            spawns: spawns.map(|spawn| codec::encode_spawn(id, spawn)).collect(),
            timers: timers.collect(),
            processed_event_id: commit.processed_event_id.clone(),
            trace: commit.trace.as_ref().map(|step| {
                let (before, behind) = codec::encode_trace_around_index(step);
                TraceStep { before, behind }
            }),
            trace_max: settings.trace_max_steps(),
            is_indexed: settings.is_indexed(),
            lifetime: match settings.retention_ms() {
                None => Lifetime::Untouched,
                Some(ms) if document.is_finished() => Lifetime::Milliseconds(ms),
                Some(_) => Lifetime::Unlimited,
            },
            keys: keys.clone(),
        })
    }

    /// As [`Writes::new`] for a document that must not be there yet.
    ///
    /// # Errors
    /// As there, and [`StoreError::Invalid`] for a document that was loaded.
    pub fn creating<D: Document>(
        settings: &Settings,
        document: &D,
        commit: &Commit,
    ) -> Result<Self, StoreError> {
        validate::is_new(document.version())?;
        let mut writes = Self::new(settings, document, commit)?;
        writes.is_creation = true;
        Ok(writes)
    }

    /// What the call is called.
    pub(super) fn name(&self) -> &'static str {
        if self.is_creation { "create" } else { "commit" }
    }

    /// The keys that live and die with the row.
    pub(super) fn companions(&self) -> [String; 3] {
        let (keys, id) = (&self.keys, &self.id);
        [keys.processed(id), keys.trace_seq(id), keys.trace(id)]
    }

    /// What the caller gets if all of it landed, but for the positions.
    pub(super) fn landed(&self) -> Committed {
        let mut committed = Committed::state_only(self.next);
        committed.tail = self.row_tail.clone();
        committed
    }

    /// What is needed to find out later whether it landed.
    pub(super) fn attempt(&self, committed: Committed) -> Attempt {
        Attempt::new(
            &self.id,
            self.expected,
            &self.row,
            self.processed_event_id.as_deref(),
            committed,
        )
    }

    /// The error for a row at another version.
    pub(super) fn conflict(&self, found: Option<Version>) -> StoreError {
        if self.is_creation {
            return StoreError::AlreadyExists {
                id: self.id.clone(),
            };
        }
        StoreError::Conflict {
            id: self.id.clone(),
            expected: self.expected,
            found,
        }
    }

    /// The error for a key that holds something else.
    pub(super) fn corrupt(&self, reason: String) -> StoreError {
        StoreError::Corrupt {
            key: self.row_key.clone(),
            field: None,
            reason,
        }
    }

    /// The error for a reply that did not come, to a request that may have done all of it.
    pub(super) fn indeterminate(&self, committed: Committed, source: RedisError) -> StoreError {
        StoreError::Indeterminate {
            operation: "commit",
            id: self.id.clone(),
            expected: Some(self.expected),
            attempt: Some(self.attempt(committed)),
            source,
        }
    }
}

impl Timer {
    fn new(keys: &Keys, id: &str, timer: &TimerOp) -> Self {
        let (path, score) = match timer {
            TimerOp::Schedule { path, fire_at_s } => (path, Some(codec::python_float(*fire_at_s))),
            TimerOp::Cancel { path } => (path, None),
        };
        Self {
            member: keys.timer_member(id, path),
            score,
        }
    }
}
