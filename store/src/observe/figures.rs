//! Counters, times and gauges, by the `metrics` facade.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

use super::Outcome;
use crate::{WaitingCounts, transport::Backlog};

const CALLS: &str = "store_calls_total";
const ROUND_TRIPS: &str = "store_round_trips_total";
const RETRIES: &str = "store_retries_total";
const TIME: &str = "store_call_duration_seconds";
const OUTBOX: &str = "store_outbox_waiting";
const SPAWNS: &str = "store_spawns_waiting";
const TIMERS: &str = "store_timers_due";
const GROUPS: &str = "store_groups_waiting";
const GROUPS_READY: &str = "store_groups_ready";

/// What the time of calls is measured by: the time since any fixed moment, never going back.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Duration + Send + Sync>);

impl Clock {
    /// This one.
    pub fn new(now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(super) fn now(&self) -> Moment {
        (self.0)()
    }

    pub(super) fn since(&self, begun: &Moment) -> Duration {
        (self.0)().saturating_sub(*begun)
    }
}

impl Default for Clock {
    /// The machine's own.
    fn default() -> Self {
        let begun = Instant::now();
        Self::new(move || begun.elapsed())
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

pub(super) type Moment = Duration;

/// Tells the recorder what the metrics are: to be called once, after it was installed.
///
/// | metric | kind | labels | is |
/// |---|---|---|---|
/// | `store_calls_total` | counter | `store`, `operation`, `outcome` | calls that ended so; conflicts are those with `outcome="conflict"` |
/// | `store_call_duration_seconds` | histogram | `store`, `operation` | their times, those that were refused before anything was sent among them |
/// | `store_round_trips_total` | counter | `store`, `operation` | batches that went out |
/// | `store_retries_total` | counter | `store`, `operation` | tries after the first, as [`Observer::retried`](crate::Observer::retried) was told |
/// | `store_outbox_waiting`, `store_spawns_waiting`, `store_timers_due` | gauge | `store` | what `record_backlog` of a store found |
/// | `store_groups_waiting`, `store_groups_ready` | gauge | `store`, `priority` | what `record_backlog` of a transport found |
///
/// Outcomes are `ok`, the [kinds of errors](crate::StoreError::kind), and `abandoned` for a call whose future was dropped or whose
/// caller panicked.
pub fn describe_metrics() {
    describe_counter!(CALLS, "Calls by how they ended.");
    describe_histogram!(TIME, Unit::Seconds, "How long calls took.");
    describe_counter!(ROUND_TRIPS, "Batches that went out.");
    describe_counter!(RETRIES, "Calls that were tried again.");
    describe_gauge!(OUTBOX, "Events that wait for delivery.");
    describe_gauge!(SPAWNS, "Executions that wait to be started.");
    describe_gauge!(TIMERS, "Timers whose time has come.");
    describe_gauge!(GROUPS, "Groups that have events.");
    describe_gauge!(GROUPS_READY, "Groups that can be claimed.");
}

pub(super) fn retried(store: &'static str, operation: &'static str) {
    counter!(RETRIES, "store" => store, "operation" => operation).increment(1);
}

pub(super) fn count(
    store: &'static str,
    operation: &'static str,
    outcome: Outcome,
    round_trips: u32,
    taken: Duration,
) {
    let outcome = outcome.as_str();
    counter!(CALLS, "store" => store, "operation" => operation, "outcome" => outcome).increment(1);
    counter!(ROUND_TRIPS, "store" => store, "operation" => operation)
        .increment(u64::from(round_trips));
    histogram!(TIME, "store" => store, "operation" => operation).record(taken.as_secs_f64());
}

pub(crate) fn gauge_waiting(store: &'static str, waiting: &WaitingCounts) {
    gauge!(OUTBOX, "store" => store).set(waiting.outbox as f64);
    gauge!(SPAWNS, "store" => store).set(waiting.spawns as f64);
    gauge!(TIMERS, "store" => store).set(waiting.due_timers as f64);
}

pub(crate) fn gauge_groups(store: &'static str, backlog: &Backlog) {
    for tier in &backlog.tiers {
        let priority = tier.priority.get().to_string();
        gauge!(GROUPS, "store" => store, "priority" => priority.clone()).set(tier.groups as f64);
        gauge!(GROUPS_READY, "store" => store, "priority" => priority).set(tier.due as f64);
    }
}
