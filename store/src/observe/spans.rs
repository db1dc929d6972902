//! A span around each call, by `tracing`.

#[cfg(feature = "async")]
use tracing::Instrument;
use tracing::field::Empty;

use super::Outcome;
use crate::Version;

#[derive(Debug, Clone)]
pub(crate) struct Span(tracing::Span);

impl Span {
    pub(super) fn new(
        store: &'static str,
        operation: &'static str,
        expected: Option<Version>,
    ) -> Self {
        Self(tracing::debug_span!(
            target: "store",
            "call",
            store,
            operation,
            expected = expected.map(Version::get),
            found = Empty,
            outcome = Empty,
            round_trips = Empty,
        ))
    }

    /// Does this work inside of the span.
    #[cfg(feature = "sync")]
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.in_scope(work)
    }

    /// Does this work inside of the span, whenever it is polled.
    #[cfg(feature = "async")]
    pub(crate) fn along<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        work.instrument(self.0)
    }

    pub(super) fn end(&self, outcome: Outcome, round_trips: u32, found: Option<Version>) {
        self.0.record("outcome", outcome.as_str());
        self.0.record("round_trips", round_trips);
        if let Some(found) = found {
            self.0.record("found", found.get());
        }
        if outcome.is_alarming() {
            self.0.in_scope(|| {
                tracing::warn!(target: "store", outcome = outcome.as_str(), "a call needs attention");
            });
        }
    }
}
