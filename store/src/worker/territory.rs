//! [`Territory`]: the stores that a worker works at, and how events get from one to another.

use std::sync::Arc;

use super::{
    Conduct,
    core::{Core, Crew},
};
use crate::{
    Document, OutboxEntry, Settings, StoreError,
    relay::{AckEntry, Deliver, Delivered, Entry},
    transport::{Priority, Publish},
};

/// One store, or the partitions of a sharded one.
#[derive(Debug, Clone)]
pub(crate) struct Territory {
    first: Settings,
    others: Arc<[Settings]>,
    /// In which of so many an execution lies, by its id.
    place: fn(&str, usize) -> usize,
}

impl Territory {
    /// Of a single store.
    pub(super) fn of_one(settings: Settings) -> Self {
        Self {
            first: settings,
            others: Arc::new([]),
            place: |_, _| 0,
        }
    }

    /// Of several: the first, the others, and in which of so many an execution lies.
    #[cfg(feature = "cluster")]
    pub(crate) fn of_several(
        first: Settings,
        others: impl IntoIterator<Item = Settings>,
        place: fn(&str, usize) -> usize,
    ) -> Self {
        Self {
            first,
            others: others.into_iter().collect(),
            place,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Settings> {
        std::iter::once(&self.first).chain(self.others.iter())
    }

    /// Where the execution with this id lies.
    pub(super) fn of(&self, id: &str) -> &Settings {
        let place = (self.place)(id, 1 + self.others.len());
        let other = place.checked_sub(1).and_then(|at| self.others.get(at));
        other.unwrap_or(&self.first)
    }
}

impl Core {
    /// Puts entries of the outbox that is there into the queues of their targets; what became of each, by its target.
    pub(super) async fn deliver<D, C>(
        &self,
        crew: &mut C,
        at: &Settings,
        entries: Vec<OutboxEntry>,
    ) -> Result<Vec<(String, Delivered)>, StoreError>
    where
        D: Document + Send,
        C: Crew<D>,
    {
        let prioritised = entries.into_iter().map(|entry| {
            let target = entry.target_id.as_deref().unwrap_or_default();
            let priority = crew.conduct().priority(target, &entry.event);
            (entry, priority)
        });
        let (near, far): (Vec<_>, Vec<_>) = prioritised.partition(|(entry, _)| {
            let target = entry.target_id.as_deref();
            target.is_none_or(|target| self.territory.of(target).keys() == at.keys())
        });
        let mut outcomes = Vec::with_capacity(near.len() + far.len());
        if !near.is_empty() {
            let delivered = crew.run(at, Deliver::outbox(at, &near)?).await?;
            let targets = near.into_iter().map(|(entry, _)| entry.target_id);
            outcomes.extend(targets.map(Option::unwrap_or_default).zip(delivered));
        }
        for (entry, priority) in far {
            let outcome = self.send_away(crew, at, &entry, priority).await?;
            outcomes.push((entry.target_id.unwrap_or_default(), outcome));
        }
        Ok(outcomes)
    }

    /// To a queue in another slot, which no script reaches from here: queued there, then taken off here. Dead in between, or in a
    /// race with another worker, it comes twice, and the mark drops the second.
    async fn send_away<D, C>(
        &self,
        crew: &mut C,
        at: &Settings,
        entry: &OutboxEntry,
        priority: Priority,
    ) -> Result<Delivered, StoreError>
    where
        D: Document + Send,
        C: Crew<D>,
    {
        entry.check(at)?;
        let target = entry.target_id.as_deref().unwrap_or_default();
        let home = self.territory.of(target);
        let publish = Publish::new(home, target, &entry.event, priority)?;
        match crew.run(home, publish).await {
            Ok(_) => {}
            Err(StoreError::Corrupt { .. }) => return Ok(Delivered::Blocked),
            Err(error) => return Err(error),
        }
        let is_ours = crew.run(at, AckEntry::new(at, entry)).await?;
        Ok(if is_ours {
            Delivered::Done
        } else {
            Delivered::Gone
        })
    }
}
