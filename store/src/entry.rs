//! What the store hands out: outbox and spawn entries, due timers, summaries and pages.

use std::{fmt, str::FromStr};

use serde_json::{Map, Value};

use crate::{Event, Rejection, Seq, Status, StoreError, Version, codec};

/// An emitted event that nobody has acknowledged yet.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct OutboxEntry {
    /// Its position, for the acknowledgement.
    pub seq: Seq,
    /// The execution that is to handle it, if any.
    pub target_id: Option<String>,
    /// The event.
    pub event: Event,
    /// The value that it was read from.
    pub(crate) stored: Stored,
}

/// An execution to start that nobody has acknowledged yet.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SpawnEntry {
    /// Its position, for the acknowledgement.
    pub seq: Seq,
    /// The execution that wants it.
    pub parent_id: String,
    /// The id of the new one.
    pub child_id: String,
    /// The part of the definition that it runs.
    pub root_path: String,
    /// Its first context. NaN and the infinities, which JSON can not say, are read as null; half of a surrogate pair is
    /// read as U+FFFD.
    pub context: Map<String, Value>,
    /// The value that it was read from.
    pub(crate) stored: Stored,
}

/// A value exactly as it is stored, by which its entry is told from another one of the same number.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Stored(Box<[u8]>);

impl Stored {
    pub(crate) fn new(value: &[u8]) -> Self {
        Self(value.into())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stored({} bytes)", self.0.len())
    }
}

/// A timer whose time has come.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DueTimer {
    /// The execution.
    pub execution_id: String,
    /// The state that waits.
    pub path: String,
    /// When it was due, in seconds since the epoch; name it to delete exactly this timer.
    pub fire_at_s: f64,
}

impl DueTimer {
    /// The id of the event that this timer causes, with the time spelled as Python spells it: two sweepers that meet the
    /// same timer name one event, so that it is handled once.
    pub fn event_id(&self) -> String {
        let Self {
            execution_id,
            path,
            fire_at_s,
        } = self;
        format!(
            "timeout:{execution_id}:{path}:{}",
            codec::python_float(*fire_at_s)
        )
    }
}

/// The part of an execution that a list shows.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ExecutionSummary {
    /// Its id.
    pub id: String,
    /// Which definition it runs.
    pub definition_id: String,
    /// Where it stands.
    pub status: Status,
    /// How it ended.
    pub outcome: Option<String>,
    /// The state that it is in.
    pub active_path: Option<String>,
    /// The version of the row.
    pub version: Version,
    /// The execution that started it.
    pub parent_id: Option<String>,
    /// When it ended, in seconds since the epoch, if its writers note that.
    pub finished_at: Option<f64>,
}

/// A part of a listing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ExecutionPage {
    /// What was found, by id within the page; there is no order between pages.
    pub items: Vec<ExecutionSummary>,
    /// Rows that could not be read. They do not stop the listing.
    pub unreadable: Vec<UnreadableRow>,
    /// Where to go on; none at the end. A page may be empty and have a successor.
    pub next_cursor: Option<Cursor>,
}

/// A key in the place of a row that is not a row.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadableRow {
    /// The key; what is not UTF-8 in it is replaced.
    pub key: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Which executions to list; every part that is given must match.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListFilter {
    /// Any of these; an empty list matches nothing.
    pub status: Option<Vec<Status>>,
    /// Exactly this definition.
    pub definition_id: Option<String>,
    /// Only executions without a parent.
    pub roots_only: bool,
}

impl ListFilter {
    /// Whether this summary is wanted.
    pub fn matches(&self, summary: &ExecutionSummary) -> bool {
        self.status
            .as_ref()
            .is_none_or(|wanted| wanted.contains(&summary.status))
            && self
                .definition_id
                .as_ref()
                .is_none_or(|wanted| *wanted == summary.definition_id)
            && (!self.roots_only || summary.parent_id.is_none())
    }
}

/// A part of a listing in the order of the index.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct OrderedPage {
    /// By the time of their first commit, then by id; as many as asked for, or fewer at the end and where
    /// [`OrderedPage::next_cursor`] says that the page was given out early.
    pub items: Vec<ExecutionSummary>,
    /// Rows that could not be read. They do not stop the listing.
    pub unreadable: Vec<UnreadableRow>,
    /// Where to go on; none at the end.
    pub next_cursor: Option<OrderedCursor>,
}

/// Where a listing in the order of the index goes on: behind an entry, whether that is still there or not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OrderedCursor {
    pub(crate) score: String,
    pub(crate) id: String,
}

impl fmt::Display for OrderedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.score, self.id)
    }
}

impl FromStr for OrderedCursor {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let parts = text
            .split_once(':')
            .filter(|(score, _)| score.parse().is_ok_and(f64::is_finite));
        let (score, id) = parts.ok_or(StoreError::Invalid {
            what: "cursor",
            reason: Rejection::Malformed,
        })?;
        Ok(Self {
            score: score.to_owned(),
            id: id.to_owned(),
        })
    }
}

/// Which executions a sweep removes.
///
/// ```
/// let sweep = store::Sweep::finished_before(1_700_000_000.0);
/// assert_eq!(sweep.undated, store::Undated::Keep);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Sweep {
    /// Those that ended before this moment, in seconds since the epoch. Longer ago than any redelivery and any retry: a
    /// child that is started again after it was swept begins anew.
    pub finished_before_s: f64,
    /// Those that ended so: done, cancelled, failed unless told otherwise. One that failed may be wanted still.
    pub status: Vec<Status>,
    /// What happens to those that do not say when they ended.
    pub undated: Undated,
}

/// What a sweep does with executions that do not say when they ended: those of the seed's dialect, and, of 0.9.0, those that
/// failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Undated {
    /// Counts them.
    #[default]
    Keep,
    /// Removes them.
    Purge,
}

impl Sweep {
    /// All that say that they ended before this moment, in seconds since the epoch.
    pub fn finished_before(seconds: f64) -> Self {
        Self {
            finished_before_s: seconds,
            status: vec![Status::Done, Status::Cancelled, Status::Failed],
            undated: Undated::Keep,
        }
    }

    /// Sets how those ended that are removed.
    #[must_use]
    pub fn status(mut self, status: impl IntoIterator<Item = Status>) -> Self {
        self.status = status.into_iter().collect();
        self
    }

    /// Sets what happens to those that do not say when they ended.
    #[must_use]
    pub fn undated(mut self, undated: Undated) -> Self {
        self.undated = undated;
        self
    }
}

/// What a page of a sweep did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SweptPage {
    /// Those that were removed.
    pub purged: Vec<String>,
    /// Those that another writer changed or removed meanwhile; they stay as they are.
    pub moved: Vec<String>,
    /// How many were kept because they do not say when they ended.
    pub undated: usize,
    /// Rows that could not be read. They do not stop the sweep.
    pub unreadable: Vec<UnreadableRow>,
    /// Where to go on; none at the end.
    pub next_cursor: Option<Cursor>,
}

/// How much waits in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WaitingCounts {
    /// Events to deliver.
    pub outbox: u64,
    /// Executions to start.
    pub spawns: u64,
    /// Timers whose time has come.
    pub due_timers: u64,
}

/// Where a listing goes on. Opaque: the numbers are the server's own and have no order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor(pub(crate) u64);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Cursor {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let malformed = || StoreError::Invalid {
            what: "cursor",
            reason: Rejection::Malformed,
        };
        text.parse().map(Self).map_err(|_| malformed())
    }
}
