//! Deadlines of one database, ordered by time: what is due can be found without looking at what is not.

use std::collections::BTreeSet;

use crate::value::Blob;

/// The keys that have a deadline, earliest first.
#[derive(Clone, Debug, Default)]
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

    /// Drops a deadline of an index that nobody looks into any more.
    pub(super) fn shed_one(&mut self) {
        self.by_time.pop_last();
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

    /// The keys in order of deadline, then of name.
    #[cfg(feature = "explore")]
    pub(super) fn iter(&self) -> impl Iterator<Item = &(i64, Blob)> {
        self.by_time.iter()
    }

    /// The earliest deadline.
    pub(super) fn first(&self) -> Option<i64> {
        self.by_time.first().map(|(deadline, _)| *deadline)
    }

    /// The key whose deadline is the earliest.
    pub(super) fn earliest(&self) -> Option<(i64, &Blob)> {
        self.by_time.first().map(|(deadline, key)| (*deadline, key))
    }

    /// A key at random: the first one at or behind a random time between the first and the last deadline.
    pub(super) fn random(&self, rng: &mut fastrand::Rng) -> Option<&Blob> {
        let ((first, _), (last, _)) = (self.by_time.first()?, self.by_time.last()?);
        let time = rng.i64(*first..=*last);
        let from = (time, Blob::default());
        let picked = self.by_time.range(from..).next();
        picked.or(self.by_time.last()).map(|(_, key)| key)
    }

    /// The keys that are due at `now`, earliest first.
    #[cfg(feature = "sweep")]
    pub(super) fn due(&self, now: i64) -> impl Iterator<Item = &Blob> {
        let due = self.by_time.iter().take_while(move |(at, _)| *at < now);
        due.map(|(_, key)| key)
    }

    /// The key that has been due longest at `now`.
    pub(super) fn first_due(&self, now: i64) -> Option<Blob> {
        self.by_time
            .first()
            .filter(|(deadline, _)| *deadline < now)
            .map(|(_, key)| key.clone())
    }
}
