//! What a store tells about its calls: spans (feature `tracing`) and metrics (feature `metrics`).
//!
//! Both drivers report each call here, and nobody else does. What is told is the name of the call, how it ended, versions, round
//! trips and time. Nothing that came in or went out is: no ids, not even hashed (a hash of a short id is as good as the id), no
//! names of keys, no values, no words of the server, since those may name keys. The name of the store, which tells several apart,
//! is a part of the program (`&'static str`), not of the data.

#[cfg(feature = "metrics")]
mod figures;
#[cfg(not(feature = "metrics"))]
#[path = "no_figures.rs"]
mod figures;
mod outcome;
#[cfg(feature = "tracing")]
mod spans;
#[cfg(not(feature = "tracing"))]
#[path = "no_spans.rs"]
mod spans;

#[cfg(not(feature = "metrics"))]
use self::figures::Clock;
#[cfg(feature = "metrics")]
pub use self::figures::{Clock, describe_metrics};
#[cfg(feature = "metrics")]
pub(crate) use self::figures::{gauge_groups, gauge_waiting};
pub(crate) use self::outcome::Outcome;
use self::spans::Span;
use crate::{StoreError, Version, op::Operation};

/// Who observes a store: under which name, and by which clock. Without the features `tracing` and `metrics` nobody does.
///
/// ```
/// # #[cfg(feature = "sync")] {
/// # fn example() -> Result<(), store::StoreError> {
/// use store::{Observer, RedisStore};
///
/// let store = RedisStore::from_url("redis://127.0.0.1/")?.observed(Observer::named("orders"));
/// # let _ = store;
/// # Ok(())
/// # }
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Observer {
    name: &'static str,
    clock: Clock,
}

impl Default for Observer {
    fn default() -> Self {
        Self {
            name: "store",
            clock: Clock::default(),
        }
    }
}

impl Observer {
    /// Under this name, which tells several stores of one program apart; `store` unless told otherwise.
    pub fn named(name: &'static str) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    /// Counts that a call of this name is tried again: for loops of one's own. `with_retry` and the worker count by
    /// themselves, as retries of `commit`.
    pub fn retried(&self, operation: &'static str) {
        figures::retried(self.name, operation);
    }
}

#[cfg(feature = "metrics")]
impl Observer {
    /// Measures by this clock instead of the machine's.
    #[must_use]
    pub fn timed_by(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }
}

#[cfg(feature = "metrics")]
impl Observer {
    /// The name.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }
}

impl Observer {
    /// A call begins.
    pub(crate) fn call<O: Operation>(&self, operation: &O) -> Call {
        self.begin(operation.name(), operation.expected())
    }

    /// Reports a call that ends before it has begun, if this is an error.
    pub(crate) fn built<T>(
        &self,
        name: &'static str,
        built: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if built.is_err() {
            self.begin(name, None).end(&built);
        }
        built
    }

    fn begin(&self, operation: &'static str, expected: Option<Version>) -> Call {
        Call {
            observer: self.clone(),
            operation,
            span: Span::new(self.name, operation, expected),
            begun: self.clock.now(),
            round_trips: 0,
            has_ended: false,
        }
    }
}

/// A call that is under way. Dropped before its end, it is reported as abandoned.
#[derive(Debug)]
pub(crate) struct Call {
    observer: Observer,
    operation: &'static str,
    span: Span,
    begun: figures::Moment,
    round_trips: u32,
    has_ended: bool,
}

impl Call {
    /// The span that its work belongs to.
    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// A batch goes out.
    pub(crate) fn round_trip(&mut self) {
        self.round_trips = self.round_trips.saturating_add(1);
    }

    /// The call ends so.
    pub(crate) fn end<T>(mut self, result: &Result<T, StoreError>) {
        let found = match result {
            Err(StoreError::Conflict { found, .. }) => *found,
            _ => None,
        };
        self.report(Outcome::of(result), found);
    }

    fn report(&mut self, outcome: Outcome, found: Option<Version>) {
        self.has_ended = true;
        self.span.end(outcome, self.round_trips, found);
        let observer = &self.observer;
        let taken = observer.clock.since(&self.begun);
        figures::count(
            observer.name,
            self.operation,
            outcome,
            self.round_trips,
            taken,
        );
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.has_ended {
            self.report(Outcome::Abandoned, None);
        }
    }
}
