//! [`Dict`]: the hash table of the keyspace and of large hashes, sets and sorted sets.
//!
//! Entries lie densely, by number, and are chained by number from a table of heads. That gives three things a general hash map
//! does not: `SCAN` cursors that survive growth and shrinkage (the cursor walks buckets in reverse-binary order), a random
//! element in constant time, and an iteration order that does not depend on the hash.
//!
//! A large table grows a few buckets at a time, with the insertions (linear hashing): each new bucket takes its share of one
//! old bucket's entries. Between two powers of two the first buckets are split and the others are not yet, which is what
//! redis-server's two tables are amid a rehash, in one table.

use std::cmp::Ordering;
use std::hash::{BuildHasher, Hasher};

use super::Blob;
use super::chunked::Chunked;

const NONE: u32 = u32::MAX;
const TABLE_LEN_MIN: usize = 4;

/// A table of no more buckets grows and shrinks at once.
const AT_ONCE_MAX: usize = 4096;

/// Buckets that an insertion or a removal adds or takes away in a larger one.
const BUCKETS_PER_CHANGE: usize = 8;

/// A map from binary strings to values with scan cursors.
#[derive(Clone, Debug)]
pub struct Dict<V> {
    entries: Chunked<Slot<V>>,
    heads: Chunked<u32>,
    /// How many buckets there are to be: a power of two, 0 at first.
    goal: usize,
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
            entries: Chunked::new(),
            heads: Chunked::new(),
            goal: 0,
            seed,
        }
    }

    /// As newly made, but the memory is kept.
    #[cfg(feature = "explore")]
    pub(crate) fn renew(&mut self) {
        self.entries.clear();
        self.heads.clear();
        self.goal = 0;
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
        self.remove_at(at)
    }

    /// Drops at most so many entries of a table that nobody looks into any more, for its buckets are no longer right; how many.
    pub(crate) fn shed(&mut self, most: usize) -> usize {
        (0..most).take_while(|_| self.shed_one().is_some()).count()
    }

    /// As [`Dict::shed`] of one entry; its value.
    pub(crate) fn shed_one(&mut self) -> Option<V> {
        // Heads are no more than twice as many, but in a table that was larger.
        for _ in 0..2 {
            self.heads.pop();
        }
        self.entries.pop().map(|slot| slot.value)
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        *self = Dict::new(self.seed);
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
        let mut cursor = cursor;
        loop {
            let (bucket, mask) = self.place(cursor as u32);
            let mut at = self.heads[bucket];
            while at != NONE {
                let slot = &self.entries[at as usize];
                visit(&slot.key, &slot.value);
                at = slot.next;
            }
            cursor = next_cursor(cursor, u64::from(mask));
            if cursor == 0 || enough() {
                return cursor;
            }
        }
    }

    /// How full the buckets are: of one table, or of the one that is left and the one that takes its place.
    pub(crate) fn stats(&self) -> Vec<TableStats> {
        let settled = self.heads.len().next_power_of_two();
        if self.heads.len() == settled || self.heads.is_empty() {
            return vec![self.stats_of(self.heads.len(), 0..self.heads.len())];
        }
        let (small, split) = (settled / 2, self.heads.len() - settled / 2);
        let unsplit = self.stats_of(small, split..small);
        let split = self.stats_of(settled, (0..split).chain(small..self.heads.len()));
        if self.heads.len() < self.goal {
            vec![unsplit, split]
        } else {
            vec![split, unsplit]
        }
    }

    /// As if these were all buckets of a table that has so many that are not empty.
    fn stats_of(&self, buckets: usize, used: impl Iterator<Item = usize>) -> TableStats {
        let (mut sum, mut chains) = (0, vec![buckets]);
        for bucket in used {
            let (mut at, mut len) = (self.heads[bucket], 0);
            while let Some(slot) = self.entries.get(at as usize) {
                at = slot.next;
                len += 1;
            }
            if chains.len() <= len {
                chains.resize(len + 1, 0);
            }
            chains[0] -= 1;
            chains[len] += 1;
            sum += len;
        }
        TableStats {
            len: sum,
            buckets,
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
        self.place(hash).0
    }

    /// The bucket of a hash, and the mask under which all its hashes are the same. There must be buckets.
    fn place(&self, hash: u32) -> (usize, u32) {
        let len = self.heads.len() as u32;
        let half = 1 << len.ilog2();
        let (small, large) = (half - 1, half | (half - 1));
        let mask = if hash & small < len - half {
            large
        } else {
            small
        };
        ((hash & mask) as usize, mask)
    }

    /// Adds a key that is known to be missing; returns its index.
    fn insert_new(&mut self, key: Blob, value: V) -> usize {
        if self.entries.len() >= self.goal {
            self.goal = (self.goal * 2).max(TABLE_LEN_MIN);
        }
        self.approach_goal();
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

    fn remove_at(&mut self, at: usize) -> Option<(Blob, V)> {
        let next = self.entries[at].next;
        self.relink(at, next);
        let last = self.entries.len() - 1;
        if at != last {
            // The last entry moves into the hole, so whatever points at it must point at its new place.
            self.relink(last, at as u32);
        }
        let slot = self.entries.swap_remove(at)?;
        if self.goal > TABLE_LEN_MIN && self.entries.len() * 8 < self.goal {
            self.goal = (self.goal / 4).max(TABLE_LEN_MIN);
        }
        self.approach_goal();
        Some((slot.key, slot.value))
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

    /// Comes nearer to the number of buckets that there are to be, by as much as one change may cost.
    fn approach_goal(&mut self) {
        let larger = self.heads.len().max(self.goal);
        let steps = if larger <= AT_ONCE_MAX {
            AT_ONCE_MAX
        } else {
            BUCKETS_PER_CHANGE
        };
        for _ in 0..steps {
            match self.heads.len().cmp(&self.goal) {
                Ordering::Less => self.add_bucket(),
                Ordering::Equal => return,
                Ordering::Greater => self.drop_bucket(),
            }
        }
    }

    /// Adds a bucket, which takes its share of the one that it halves. Both keep their order.
    fn add_bucket(&mut self) {
        let new = self.heads.len();
        if new < TABLE_LEN_MIN {
            // There is no entry yet.
            self.heads.push(NONE);
            return;
        }
        let halved = new ^ (1 << new.ilog2());
        let bit = (new ^ halved) as u32;
        let (mut firsts, mut lasts) = ([NONE; 2], [NONE; 2]);
        let mut at = self.heads[halved];
        while at != NONE {
            let slot = &self.entries[at as usize];
            let (side, next) = (usize::from(slot.hash & bit != 0), slot.next);
            match lasts[side] {
                NONE => firsts[side] = at,
                last => self.entries[last as usize].next = at,
            }
            lasts[side] = at;
            at = next;
        }
        for last in lasts.into_iter().filter(|last| *last != NONE) {
            self.entries[last as usize].next = NONE;
        }
        self.heads[halved] = firsts[0];
        self.heads.push(firsts[1]);
    }

    /// Takes the last bucket away; its entries go to the end of the one that it halved.
    fn drop_bucket(&mut self) {
        let Some(moved) = self.heads.pop() else {
            return;
        };
        let gone = self.heads.len();
        let whole = gone ^ (1 << gone.ilog2());
        let mut at = self.heads[whole];
        if at == NONE {
            self.heads[whole] = moved;
            return;
        }
        while self.entries[at as usize].next != NONE {
            at = self.entries[at as usize].next;
        }
        self.entries[at as usize].next = moved;
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

    /// A call of SCAN: the page and the next cursor.
    type Page = fn(&Dict<u32>, u64) -> (Vec<u32>, u64);

    fn page(dict: &Dict<u32>, cursor: u64) -> (Vec<u32>, u64) {
        let mut page = Vec::new();
        let next = dict.scan(cursor, |_, n| page.push(*n), || true);
        (page, next)
    }

    /// As SCAN would be if it knew of no second table: one that is half grown has buckets under two masks.
    fn page_of_one_table(dict: &Dict<u32>, cursor: u64) -> (Vec<u32>, u64) {
        let (found, _) = page(dict, cursor);
        let mask = (1 << dict.heads.len().ilog2()) - 1;
        (found, next_cursor(cursor, mask))
    }

    /// As SCAN would be if it walked the buckets in order.
    fn page_in_order(dict: &Dict<u32>, cursor: u64) -> (Vec<u32>, u64) {
        let (found, _) = page(dict, cursor);
        (found, (cursor + 1) % dict.heads.len() as u64)
    }

    /// How many of the elements that were there all the time a walk has missed, while others come and go in a random way that
    /// takes the table through several sizes, up and down.
    fn missed(page: Page, seed: u64) -> usize {
        const ALWAYS: u32 = 1_000;
        let mut draw = fastrand::Rng::with_seed(seed);
        let mut dict = Dict::new(seed);
        (0..ALWAYS).for_each(|n| assert_eq!(dict.insert(&key(n), n), None));
        let mut others = ALWAYS..ALWAYS + draw.u32(..20_000);
        for n in others.clone() {
            dict.insert(&key(n), n);
        }
        let (mut seen, mut cursor, mut calls) = (vec![false; ALWAYS as usize], 0, 0);
        loop {
            // A table that grows for ever has no last bucket, in Redis neither.
            if calls < 20_000 && draw.u32(..400) == 0 {
                for _ in 0..draw.u32(..4_000) {
                    dict.insert(&key(others.end), others.end);
                    others.end += 1;
                }
            } else if draw.u32(..300) == 0 {
                for n in others.by_ref().take(draw.usize(..8_000)) {
                    assert_eq!(dict.remove(&key(n)), Some(n));
                }
            }
            let (found, next) = page(&dict, cursor);
            let always = found.into_iter().filter(|n| *n < ALWAYS);
            always.for_each(|n| seen[n as usize] = true);
            (cursor, calls) = (next, calls + 1);
            if cursor == 0 {
                return seen.iter().filter(|seen| !**seen).count();
            }
        }
    }

    #[test]
    fn a_scan_returns_what_was_there_all_the_time_while_large_tables_grow_and_shrink() {
        for seed in 0..10 {
            assert_eq!(missed(page, seed), 0, "seed {seed}");
        }
    }

    #[test]
    fn a_scan_that_knows_one_table_or_walks_in_order_is_found_out() {
        for broken in [page_of_one_table as Page, page_in_order] {
            assert!((0..10).any(|seed| missed(broken, seed) > 0));
        }
    }

    /// The most buckets that one of these changes has added or taken away in a table that was large before it.
    fn most_buckets(dict: &mut Dict<u32>, changes: impl Iterator<Item = (bool, u32)>) -> usize {
        let mut most = 0;
        for (inserts, n) in changes {
            let before = dict.heads.len();
            if inserts {
                dict.insert(&key(n), n);
            } else {
                dict.remove(&key(n));
            }
            if before > AT_ONCE_MAX {
                most = most.max(dict.heads.len().abs_diff(before));
            }
        }
        most
    }

    #[test]
    fn no_change_of_a_large_table_costs_more_than_a_few_buckets() {
        const MANY: u32 = 100_000;
        let mut dict = Dict::new(3);
        let up = most_buckets(&mut dict, (0..MANY).map(|n| (true, n)));
        assert_eq!(up, BUCKETS_PER_CHANGE);
        let longest = |dict: &Dict<u32>| dict.stats().iter().map(|it| it.chains.len() - 1).max();
        assert!(longest(&dict) < Some(12), "{:?}", dict.stats());
        assert_eq!(dict.heads.len(), 131_072);
        let down = most_buckets(&mut dict, (0..MANY - 10).map(|n| (false, n)));
        assert_eq!(down, BUCKETS_PER_CHANGE);
        assert!(dict.heads.len() <= 128, "{}", dict.heads.len());
        assert!((MANY - 10..MANY).all(|n| dict.get(&key(n)) == Some(&n)));
    }

    #[test]
    fn a_table_that_grows_is_two_in_its_statistics() {
        let mut dict = Dict::new(3);
        (0..8_192).for_each(|n| assert_eq!(dict.insert(&key(n), n), None));
        let tables = |dict: &Dict<u32>| -> Vec<(usize, usize, usize)> {
            let all = dict.stats().into_iter();
            all.map(|it| (it.buckets, it.len, it.chains.iter().sum()))
                .collect()
        };
        assert_eq!(tables(&dict), [(8_192, 8_192, 8_192)]);
        for n in 8_192..8_700 {
            dict.insert(&key(n), n);
            let [old, new] = tables(&dict)[..] else {
                panic!("{:?}", tables(&dict));
            };
            assert_eq!((old.0, new.0, old.2, new.2), (8_192, 16_384, 8_192, 16_384));
            assert_eq!(old.1 + new.1, dict.len());
        }
    }
}
