//! Both twins behind one set of methods: what relays and sweepers ask, and trying again.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use store::{
    Decision, Document, DueTimer, OutboxEntry, Pacing, Retried, RetryPolicy, Round, SpawnEntry,
    StoreError,
    relay::{Delivered, Entry, PageStart, Poison, RelayPage, Repaired, Waiting},
    transport::Priority,
};
use tests::both;

use crate::twin::Twin;

type Result<T> = std::result::Result<T, StoreError>;

impl Twin {
    pub(crate) fn waiting(&mut self) -> Result<Waiting> {
        both!(self.waiting())
    }

    pub(crate) fn outbox_page(
        &mut self,
        start: PageStart,
        limit: u32,
    ) -> Result<RelayPage<OutboxEntry>> {
        both!(self.outbox_page(start, limit))
    }

    pub(crate) fn spawns_page(
        &mut self,
        start: PageStart,
        limit: u32,
    ) -> Result<RelayPage<SpawnEntry>> {
        both!(self.spawns_page(start, limit))
    }

    pub(crate) fn due_timers_page(
        &mut self,
        now_s: f64,
        start: PageStart,
        limit: u32,
    ) -> Result<RelayPage<DueTimer>> {
        both!(self.due_timers_page(now_s, start, limit))
    }

    pub(crate) fn ack_entry<E: Entry>(&mut self, entry: &E) -> Result<bool> {
        both!(self.ack_entry(entry))
    }

    /// With the least priority.
    pub(crate) fn deliver(&mut self, entries: &[OutboxEntry]) -> Result<Vec<Delivered>> {
        let entries = with_priority(entries);
        both!(self.deliver(&entries))
    }

    /// With the least priority.
    pub(crate) fn fire(&mut self, timers: &[DueTimer]) -> Result<Vec<Delivered>> {
        let timers = with_priority(timers);
        both!(self.fire(&timers))
    }

    pub(crate) fn quarantine(&mut self, poison: &Poison) -> Result<bool> {
        both!(self.quarantine(poison))
    }

    pub(crate) fn repair_counters(&mut self) -> Result<Repaired> {
        both!(self.repair_counters())
    }

    /// With pauses that take no time, each as long as it may be; they are noted.
    pub(crate) fn with_retry<D: Document + Send>(
        &mut self,
        id: &str,
        policy: &RetryPolicy,
        pauses: &Pauses,
        decide: impl FnMut(&mut D, &Round) -> Decision + Send,
    ) -> Result<Retried<D>> {
        match self {
            Self::Sync(store) => {
                let mut pacing = pauses.pacing(|()| ());
                store.with_retry(id, policy, &mut pacing, decide)
            }
            Self::Async(runtime, store) => {
                let mut pacing = pauses.pacing(std::future::ready);
                runtime.block_on(store.with_retry(id, policy, &mut pacing, decide))
            }
        }
    }
}

fn with_priority<T: Clone>(items: &[T]) -> Vec<(T, Priority)> {
    let items = items.iter().cloned();
    items.map(|item| (item, Priority::MIN)).collect()
}

/// Pauses that were made, and by which time goes on.
#[derive(Clone, Default)]
pub(crate) struct Pauses(Arc<Mutex<Vec<Duration>>>);

impl Pauses {
    pub(crate) fn made(&self) -> Vec<Duration> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn pacing<T>(&self, done: impl Fn(()) -> T) -> Pacing<impl FnMut(Duration) -> T> {
        let (noted, passed) = (self.clone(), self.clone());
        let pacing = Pacing::new(move |pause| {
            noted.0.lock().unwrap().push(pause);
            done(())
        });
        pacing
            .random(|| u64::MAX)
            .elapsed(move || passed.made().iter().sum())
    }
}
