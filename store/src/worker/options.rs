//! What a worker is told once, and how it is stopped.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::{
    RetryPolicy,
    transport::{Clock, Deliveries, Priority},
};

/// Options of a worker.
///
/// ```
/// use std::time::Duration;
/// use store::worker::WorkerOptions;
///
/// let options = WorkerOptions::new("worker-1").visibility(Duration::from_secs(10));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerOptions {
    pub(super) name: String,
    pub(super) visibility: Duration,
    pub(super) min_priority: Priority,
    pub(super) suspend_pause: Duration,
    pub(super) trouble_pause: Duration,
    pub(super) idle_pause: Duration,
    pub(super) sweep_every: Duration,
    pub(super) page: u32,
    pub(super) policy: RetryPolicy,
    pub(super) clock: Clock,
    pub(super) deliveries: Deliveries,
}

impl WorkerOptions {
    /// For a worker of this name, which is part of its leases' tokens: a lease of 30 seconds, of groups of any priority.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            visibility: Duration::from_secs(30),
            min_priority: Priority::MIN,
            suspend_pause: Duration::from_secs(5),
            trouble_pause: Duration::from_secs(5),
            idle_pause: Duration::from_millis(20),
            sweep_every: Duration::from_secs(1),
            page: 64,
            policy: RetryPolicy::default()
                .attempts(200)
                .budget(Duration::from_secs(300))
                .pauses(Duration::from_millis(50), Duration::from_secs(2)),
            clock: Clock::Server,
            deliveries: Deliveries::Uncounted,
        }
    }

    /// Sets how long a lease holds unless it is prolonged: how long an event waits after its worker has died.
    #[must_use]
    pub fn visibility(mut self, visibility: Duration) -> Self {
        self.visibility = visibility;
        self
    }

    /// Sets the least priority of groups to claim.
    #[must_use]
    pub fn min_priority(mut self, priority: Priority) -> Self {
        self.min_priority = priority;
        self
    }

    /// Sets after which pause an event of a suspended execution comes again.
    #[must_use]
    pub fn suspend_pause(mut self, pause: Duration) -> Self {
        self.suspend_pause = pause;
        self
    }

    /// Sets after which pause an event comes again that could not be handled.
    #[must_use]
    pub fn trouble_pause(mut self, pause: Duration) -> Self {
        self.trouble_pause = pause;
        self
    }

    /// Sets the longest pause of a worker that finds nothing to do: how late it may notice new events, due timers, and that it
    /// is to stop.
    #[must_use]
    pub fn idle_pause(mut self, pause: Duration) -> Self {
        self.idle_pause = pause;
        self
    }

    /// Sets how often a worker sweeps that always finds something to claim: how late it may notice due timers and what dead
    /// workers have left. An idle one sweeps each time.
    #[must_use]
    pub fn sweep_every(mut self, interval: Duration) -> Self {
        self.sweep_every = interval;
        self
    }

    /// Sets how much of each kind a sweep takes at once.
    #[must_use]
    pub fn page(mut self, limit: u32) -> Self {
        self.page = limit.max(1);
        self
    }

    /// Sets how often and how long a worker goes on whose turns fail one after the other, as while the server is away.
    #[must_use]
    pub fn policy(mut self, policy: RetryPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets whether deliveries are counted, and how many an event may have before it is put among the dead letters: one whose
    /// worker dies or loses its lease each time, or that is parked each time. Not counted unless told, as by the Python workers.
    /// What is given back after a conflict, or because the execution or the handler wants it later, does not count.
    #[must_use]
    pub fn deliveries(mut self, deliveries: Deliveries) -> Self {
        self.deliveries = deliveries;
        self
    }

    /// Sets which present decides what is due.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }
}

/// Stops a worker, from any thread or task; clones stop the same one.
#[derive(Debug, Clone, Default)]
pub struct StopHandle(Arc<AtomicBool>);

impl StopHandle {
    /// From now on nothing is claimed; what is claimed is finished.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it was told to stop.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
