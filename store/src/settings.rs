//! What a store is told once.

use std::time::Duration;

use crate::{Dialect, Rejection, StoreError, keys::Keys};

/// Trace steps kept for an execution unless told otherwise.
pub const TRACE_MAX_DEFAULT: i64 = 200;

/// Which input a store refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Strictness {
    /// Refuses whatever would break a guarantee.
    #[default]
    Strict,
    /// Takes the ids that the Python store takes (NUL, leading `seq:`, empty event id), with the consequences: two
    /// executions may share a timer or a key. Meant for replaying its calls, not for work.
    Lenient,
}

/// Which commands a commit sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CommitPath {
    /// One script for every commit: one round trip, all or nothing, no numbers drawn by a commit that does not land.
    #[default]
    Script,
    /// The script if only the execution changes, `WATCH`/`MULTI`/`EXEC` otherwise: the Python store's choice.
    Mixed,
    /// `WATCH`/`MULTI`/`EXEC` always, for servers that do not allow scripts.
    Watch,
}

/// Whether the ids of all executions are kept in order beside their rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Index {
    /// No: a listing walks over all keys of the database.
    #[default]
    None,
    /// Yes, in the sorted set `index`, by the time of their first commit. Only for a store all of whose writers are of this
    /// kind and have this setting: no other writer adds to it, and none removes from it.
    Ordered,
}

/// The shortest time for which what ended can be kept: longer than the lease of any worker, so that an event that was
/// handled is not delivered again to an execution that has forgotten it.
pub const RETENTION_MIN: Duration = Duration::from_secs(60);

/// Settings of a store.
///
/// ```
/// use store::{CommitPath, Settings};
///
/// let settings = Settings::new("orders")?.trace_max(50).commit_path(CommitPath::Watch);
/// assert_eq!(settings.keys().prefix(), "orders");
/// # Ok::<(), store::StoreError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    dialect: Dialect,
    keys: Keys,
    strictness: Strictness,
    commit_path: CommitPath,
    trace_max: i64,
    index: Index,
    retention_ms: Option<u64>,
}

impl Settings {
    /// The prefix of a store that was not told another.
    pub const PREFIX: &'static str = Dialect::Seed.prefix();

    /// Settings with this prefix, all else at its default; the dialect is the seed's.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a prefix that [`Keys::new`] refuses.
    pub fn new(prefix: impl Into<String>) -> Result<Self, StoreError> {
        Self::in_dialect(Dialect::Seed, prefix)
    }

    /// Settings of this dialect with this prefix, all else at its default.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a prefix that [`Dialect::keys`] refuses.
    pub fn in_dialect(dialect: Dialect, prefix: impl Into<String>) -> Result<Self, StoreError> {
        Ok(Self {
            dialect,
            keys: dialect.keys(prefix)?,
            strictness: Strictness::default(),
            commit_path: CommitPath::default(),
            trace_max: TRACE_MAX_DEFAULT,
            index: Index::default(),
            retention_ms: None,
        })
    }

    /// Settings of this dialect with its own prefix, all else at its default.
    pub fn of_dialect(dialect: Dialect) -> Self {
        Self::in_dialect(dialect, dialect.prefix()).expect("the default prefix keeps the rules")
    }

    /// The same under other keys.
    #[cfg(all(feature = "cluster", any(feature = "sync", feature = "async")))]
    #[must_use]
    pub(crate) fn under(mut self, keys: Keys) -> Self {
        self.keys = keys;
        self
    }

    /// Sets which input is refused.
    #[must_use]
    pub fn strictness(mut self, strictness: Strictness) -> Self {
        self.strictness = strictness;
        self
    }

    /// Sets which commands a commit sends.
    #[must_use]
    pub fn commit_path(mut self, commit_path: CommitPath) -> Self {
        self.commit_path = commit_path;
        self
    }

    /// Sets how many trace steps are kept: 0 keeps all; a negative number drops that many of the oldest each time.
    #[must_use]
    pub fn trace_max(mut self, steps: i64) -> Self {
        self.set_trace_max(steps);
        self
    }

    /// As [`Settings::trace_max`], in place.
    pub fn set_trace_max(&mut self, steps: i64) {
        // Redis takes the range `-steps..-1`; the smallest number has no counterpart.
        self.trace_max = steps.max(-i64::MAX);
    }

    /// Sets whether ids are kept in order; see [`Index`].
    #[must_use]
    pub fn index(mut self, index: Index) -> Self {
        self.index = index;
        self
    }

    /// Lets the server remove an execution with its dedupe marks and its trace this long after the commit in which it
    /// ended, unless a later commit revives it. Choose a time longer than any redelivery; a failed execution that somebody
    /// may want to look at is removed too. Its timers and entries stay until they are swept or relayed and find no row. A
    /// writer without this setting that commits on what has ended keeps the row, but not the marks.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for less than [`RETENTION_MIN`], or for more milliseconds than fit 53 bits.
    pub fn retain_finished(mut self, time: Duration) -> Result<Self, StoreError> {
        let milliseconds = u64::try_from(time.as_millis()).ok();
        let milliseconds = milliseconds.filter(|ms| time >= RETENTION_MIN && *ms < 1 << 53);
        self.retention_ms = Some(milliseconds.ok_or(StoreError::Invalid {
            what: "retention",
            reason: Rejection::OutOfRange,
        })?);
        Ok(self)
    }

    /// Whether ids are kept in order.
    pub fn is_indexed(&self) -> bool {
        self.index == Index::Ordered
    }

    /// For how many milliseconds what ended is kept; none keeps it for ever.
    pub fn retention_ms(&self) -> Option<u64> {
        self.retention_ms
    }

    /// The wire dialect.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The key names.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// How many trace steps are kept.
    pub fn trace_max_steps(&self) -> i64 {
        self.trace_max
    }

    /// Which commands a commit sends.
    pub fn path(&self) -> CommitPath {
        self.commit_path
    }

    /// Whether ids that break a guarantee are refused.
    pub fn is_strict(&self) -> bool {
        self.strictness == Strictness::Strict
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::of_dialect(Dialect::default())
    }
}
