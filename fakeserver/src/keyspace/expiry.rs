//! Deadlines of one database, ordered by time: what is due can be found without looking at what is not.

use std::collections::BTreeSet;

use crate::value::Blob;

/// The keys that have a deadline, earliest first.
#[derive(Debug, Default)]
pub(super) struct ExpiryIndex {
    by_time: BTreeSet<(i64, Blob)>,
    sum: i128,
}

impl ExpiryIndex {
    pub(super) fn insert(&mut self, deadline: i64, key: &[u8]) {
        if self.by_time.insert((deadline, Blob::from(key))) {
            self.sum += i128::from(deadline);
        }
    }

    pub(super) fn remove(&mut self, deadline: i64, key: &[u8]) {
        if self.by_time.remove(&(deadline, Blob::from(key))) {
            self.sum -= i128::from(deadline);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_time.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.by_time.len()
    }

    /// Sum of all deadlines.
    pub(super) fn sum(&self) -> i128 {
        self.sum
    }

    /// The earliest deadline.
    pub(super) fn first(&self) -> Option<i64> {
        self.by_time.first().map(|(deadline, _)| *deadline)
    }

    /// The key that has been due longest at `now`.
    pub(super) fn first_due(&self, now: i64) -> Option<Blob> {
        self.by_time
            .first()
            .filter(|(deadline, _)| *deadline < now)
            .map(|(_, key)| key.clone())
    }
}
