//! [`Dict`]: the hash table of the keyspace and of large hashes, sets and sorted sets.
//!
//! Entries lie densely in one vector and are chained by index from a power-of-two table of heads. That gives three things a
//! general hash map does not: `SCAN` cursors that survive growth and shrinkage (the cursor walks buckets in reverse-binary
//! order), a random element in constant time, and an iteration order that does not depend on the hash.

use std::hash::{BuildHasher, Hasher};

use super::Blob;

const NONE: u32 = u32::MAX;
const TABLE_LEN_MIN: usize = 4;

/// A map from binary strings to values with scan cursors.
#[derive(Clone, Debug)]
pub struct Dict<V> {
    entries: Vec<Slot<V>>,
    heads: Vec<u32>,
    seed: u64,
}

/// How full a table's buckets are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableStats {
    /// Number of entries.
    pub len: usize,
    pub buckets: usize,
    /// How many buckets have so many entries as the place says.
    pub chains: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Slot<V> {
    key: Blob,
    hash: u32,
    next: u32,
    value: V,
}

impl<V> Dict<V> {
    /// An empty table whose hash function is keyed by `seed`.
    pub fn new(seed: u64) -> Dict<V> {
        Dict {
            entries: Vec::new(),
            heads: Vec::new(),
            seed,
        }
    }

    /// As newly made, but the memory is kept.
    #[cfg(feature = "explore")]
    pub(crate) fn renew(&mut self) {
        self.entries.clear();
        self.heads.clear();
    }

    /// The seed of the hash function.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether `key` is present.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.find(key).is_some()
    }

    /// The value of `key`.
    pub fn get(&self, key: &[u8]) -> Option<&V> {
        self.find(key).map(|at| &self.entries[at].value)
    }

    /// The value of `key`, to change.
    pub fn get_mut(&mut self, key: &[u8]) -> Option<&mut V> {
        self.find(key).map(|at| &mut self.entries[at].value)
    }

    /// The stored key equal to `key`, and its value.
    pub fn get_key_value(&self, key: &[u8]) -> Option<(&Blob, &V)> {
        self.find(key)
            .map(|at| (&self.entries[at].key, &self.entries[at].value))
    }

    /// Sets `key` to `value`; returns the value that it replaced.
    pub fn insert(&mut self, key: &[u8], value: V) -> Option<V> {
        if let Some(at) = self.find(key) {
            return Some(std::mem::replace(&mut self.entries[at].value, value));
        }
        self.insert_new(Blob::from(key), value);
        None
    }

    /// The value of `key`, made by `make` if it was missing.
    pub fn get_or_insert_with(&mut self, key: &[u8], make: impl FnOnce() -> V) -> &mut V {
        let at = if let Some(at) = self.find(key) {
            at
        } else {
            self.insert_new(Blob::from(key), make())
        };
        &mut self.entries[at].value
    }

    /// Removes `key`; returns its value.
    pub fn remove(&mut self, key: &[u8]) -> Option<V> {
        self.remove_entry(key).map(|(_, value)| value)
    }

    /// Removes `key`; returns the stored key and its value.
    pub fn remove_entry(&mut self, key: &[u8]) -> Option<(Blob, V)> {
        let at = self.find(key)?;
        Some(self.remove_at(at))
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.entries = Vec::new();
        self.heads = Vec::new();
    }

    /// All entries, in an order that does not depend on the hash.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Blob, &V)> + DoubleEndedIterator {
        self.entries.iter().map(|slot| (&slot.key, &slot.value))
    }

    /// All keys, in an order that does not depend on the hash.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Blob> + DoubleEndedIterator {
        self.entries.iter().map(|slot| &slot.key)
    }

    /// All values, to change.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries.iter_mut().map(|slot| &mut slot.value)
    }

    /// The entry at a dense index below [`Dict::len`]; with a random index, a random entry.
    pub fn at(&self, index: usize) -> Option<(&Blob, &V)> {
        self.entries.get(index).map(|slot| (&slot.key, &slot.value))
    }

    /// Visits the buckets from `cursor` on until `enough` says so; returns the next cursor, 0 at the end.
    ///
    /// An entry that is present from the first call to the one that returned 0 is visited at least once, whatever is inserted
    /// or removed between the calls. `visit` is told one entry at a time; `enough` is asked after each bucket.
    pub fn scan<'a>(
        &'a self,
        cursor: u64,
        mut visit: impl FnMut(&'a Blob, &'a V),
        mut enough: impl FnMut() -> bool,
    ) -> u64 {
        if self.heads.is_empty() {
            return 0;
        }
        let mask = self.heads.len() as u64 - 1;
        let mut cursor = cursor;
        loop {
            let mut at = self.heads[(cursor & mask) as usize];
            while at != NONE {
                let slot = &self.entries[at as usize];
                visit(&slot.key, &slot.value);
                at = slot.next;
            }
            cursor = next_cursor(cursor, mask);
            if cursor == 0 || enough() {
                return cursor;
            }
        }
    }

    /// How full the buckets are.
    pub(crate) fn stats(&self) -> TableStats {
        let mut chains: Vec<usize> = vec![0];
        for head in &self.heads {
            let (mut at, mut len) = (*head, 0);
            while let Some(slot) = self.entries.get(at as usize) {
                at = slot.next;
                len += 1;
            }
            if chains.len() <= len {
                chains.resize(len + 1, 0);
            }
            chains[len] += 1;
        }
        TableStats {
            len: self.entries.len(),
            buckets: self.heads.len(),
            chains,
        }
    }

    fn hash(&self, key: &[u8]) -> u32 {
        let mut hasher = foldhash::fast::FixedState::with_seed(self.seed).build_hasher();
        hasher.write(key);
        let hash = hasher.finish();
        (hash ^ (hash >> 32)) as u32
    }

    fn find(&self, key: &[u8]) -> Option<usize> {
        if self.entries.is_empty() {
            return None;
        }
        let hash = self.hash(key);
        let mut at = self.heads[self.bucket(hash)];
        while at != NONE {
            let slot = &self.entries[at as usize];
            if slot.hash == hash && slot.key.as_bytes() == key {
                return Some(at as usize);
            }
            at = slot.next;
        }
        None
    }

    fn bucket(&self, hash: u32) -> usize {
        hash as usize & (self.heads.len() - 1)
    }

    /// Adds a key that is known to be missing; returns its index.
    fn insert_new(&mut self, key: Blob, value: V) -> usize {
        if self.entries.len() >= self.heads.len() {
            self.rehash((self.heads.len() * 2).max(TABLE_LEN_MIN));
        }
        let hash = self.hash(&key);
        let bucket = self.bucket(hash);
        let at = self.entries.len();
        self.entries.push(Slot {
            key,
            hash,
            next: self.heads[bucket],
            value,
        });
        self.heads[bucket] = at as u32;
        at
    }

    fn remove_at(&mut self, at: usize) -> (Blob, V) {
        let next = self.entries[at].next;
        self.relink(at, next);
        let last = self.entries.len() - 1;
        if at != last {
            // The last entry moves into the hole, so whatever points at it must point at its new place.
            self.relink(last, at as u32);
        }
        let slot = self.entries.swap_remove(at);
        if self.heads.len() > TABLE_LEN_MIN && self.entries.len() * 8 < self.heads.len() {
            self.rehash((self.heads.len() / 4).max(TABLE_LEN_MIN));
        }
        (slot.key, slot.value)
    }

    /// Makes the link that points at entry `from` point at `to`.
    fn relink(&mut self, from: usize, to: u32) {
        let bucket = self.bucket(self.entries[from].hash);
        if self.heads[bucket] == from as u32 {
            self.heads[bucket] = to;
            return;
        }
        let mut at = self.heads[bucket];
        while at != NONE {
            let next = self.entries[at as usize].next;
            if next == from as u32 {
                self.entries[at as usize].next = to;
                return;
            }
            at = next;
        }
    }

    fn rehash(&mut self, len: usize) {
        self.heads.clear();
        self.heads.resize(len, NONE);
        self.heads.shrink_to_fit();
        for at in 0..self.entries.len() {
            let bucket = self.bucket(self.entries[at].hash);
            self.entries[at].next = self.heads[bucket];
            self.heads[bucket] = at as u32;
        }
    }
}

/// Adds one to the cursor's reversed bits under the table's mask, so that cursors stay meaningful when the table grows or
/// shrinks: the visited buckets of the old table are exactly the visited buckets of the new one.
fn next_cursor(cursor: u64, mask: u64) -> u64 {
    (cursor | !mask)
        .reverse_bits()
        .wrapping_add(1)
        .reverse_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u32) -> Vec<u8> {
        format!("key:{n}").into_bytes()
    }

    #[test]
    fn what_was_inserted_is_found_until_it_is_removed() {
        let mut dict = Dict::new(7);
        for n in 0..1000 {
            assert_eq!(dict.insert(&key(n), n), None);
        }
        for n in (0..1000).step_by(3) {
            assert_eq!(dict.remove(&key(n)), Some(n));
        }
        for n in 0..1000 {
            assert_eq!(
                dict.get(&key(n)).copied(),
                (n % 3 != 0).then_some(n),
                "key {n}"
            );
        }
        assert_eq!(dict.insert(&key(1), 5), Some(1));
        assert_eq!(dict.len(), dict.iter().count());
    }

    #[test]
    fn a_scan_returns_every_survivor_while_the_caller_inserts_and_deletes() {
        for grow in [true, false] {
            let mut dict = Dict::new(1);
            (0..500).for_each(|n| assert_eq!(dict.insert(&key(n), n), None));
            let (mut cursor, mut seen, mut round) = (0, Vec::new(), 0);
            loop {
                let mut page = Vec::new();
                cursor = dict.scan(cursor, |_, n| page.push(*n), || true);
                seen.extend(page);
                if grow && round < 50 {
                    // A table that grows for ever has no last bucket, in Redis neither.
                    let new = |n| key(10_000 + round * 40 + n);
                    (0..40).for_each(|n| assert_eq!(dict.insert(&new(n), 10_000), None));
                } else if !grow {
                    for n in 0..40 {
                        dict.remove(&key(100 + round * 40 + n));
                    }
                }
                round += 1;
                if cursor == 0 {
                    break;
                }
            }
            for n in 0..100 {
                assert!(seen.contains(&n), "{n} was there all the time, grow {grow}");
            }
        }
    }

    #[test]
    fn an_empty_table_scans_to_the_end_at_once() {
        let dict: Dict<()> = Dict::new(0);
        assert_eq!(
            dict.scan(12345, |_, ()| panic!("nothing to visit"), || false),
            0
        );
    }
}
