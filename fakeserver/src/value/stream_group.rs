//! [`Group`]: a consumer group of a stream, its consumers and what was delivered to them and not acknowledged yet.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Blob, StreamId};

/// A consumer group.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The last id that was delivered.
    pub last_id: StreamId,
    /// How many of the stream's entries were read, if that is known.
    pub entries_read: Option<i64>,
    pending: BTreeMap<StreamId, Pending>,
    consumers: BTreeMap<Blob, Consumer>,
}

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Who got it last.
    pub consumer: Blob,
    /// When, in milliseconds since the epoch.
    pub delivered_at: i64,
    /// How often it was delivered.
    pub deliveries: i64,
}

/// A consumer of a group.
#[derive(Clone, Default)]
pub struct Consumer {
    /// When it last asked for something, in milliseconds since the epoch.
    pub seen_at: i64,
    /// What it has to acknowledge.
    pub pending: BTreeSet<StreamId>,
}

impl fmt::Debug for Consumer {
    /// When a consumer was seen is no change of the key that would be reported, so it is not told here either.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("pending", &self.pending)
            .finish_non_exhaustive()
    }
}

impl Group {
    /// A group that starts behind an id.
    pub fn new(last_id: StreamId, entries_read: Option<i64>) -> Group {
        Group {
            last_id,
            entries_read,
            ..Group::default()
        }
    }

    /// All that was delivered and not acknowledged, by id.
    pub fn pending(&self) -> &BTreeMap<StreamId, Pending> {
        &self.pending
    }

    /// The consumers by name.
    pub fn consumers(&self) -> &BTreeMap<Blob, Consumer> {
        &self.consumers
    }

    /// The consumer of this name, to change.
    pub fn consumer_mut(&mut self, name: &[u8]) -> Option<&mut Consumer> {
        self.consumers.get_mut(name)
    }

    /// Makes a consumer if there is none of this name, and notes that it was seen; whether it is new.
    pub fn see_consumer(&mut self, name: &[u8], now: i64) -> bool {
        if let Some(consumer) = self.consumers.get_mut(name) {
            consumer.seen_at = now;
            return false;
        }
        let consumer = Consumer {
            seen_at: now,
            ..Consumer::default()
        };
        self.consumers.insert(Blob::from(name), consumer);
        true
    }

    /// Removes a consumer with all that it had to acknowledge; how much that was, if there was such a consumer.
    pub fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let consumer = self.consumers.remove(name)?;
        for id in &consumer.pending {
            self.pending.remove(id);
        }
        Some(consumer.pending.len())
    }

    /// Hands an entry to a consumer, who must exist: in place of whoever had it before, and as if for the first time.
    pub fn deliver(&mut self, id: StreamId, consumer: &[u8], now: i64) {
        self.assign(id, consumer, now, 1);
    }

    /// Hands an entry to a consumer, who must exist, with a time and a number of deliveries.
    pub fn assign(&mut self, id: StreamId, consumer: &[u8], delivered_at: i64, deliveries: i64) {
        let pending = Pending {
            consumer: Blob::from(consumer),
            delivered_at,
            deliveries,
        };
        if let Some(old) = self.pending.insert(id, pending)
            && old.consumer.as_bytes() != consumer
            && let Some(old) = self.consumers.get_mut(&*old.consumer)
        {
            old.pending.remove(&id);
        }
        if let Some(consumer) = self.consumers.get_mut(consumer) {
            consumer.pending.insert(id);
        }
    }

    /// Removes an entry from what is to be acknowledged; whether it was there.
    pub fn acknowledge(&mut self, id: StreamId) -> bool {
        let Some(pending) = self.pending.remove(&id) else {
            return false;
        };
        if let Some(consumer) = self.consumers.get_mut(&*pending.consumer) {
            consumer.pending.remove(&id);
        }
        true
    }

    /// Counts another delivery of an entry to the consumer that has it.
    pub fn deliver_again(&mut self, id: StreamId, now: i64) {
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.delivered_at = now;
            pending.deliveries = pending.deliveries.saturating_add(1);
        }
    }
}
