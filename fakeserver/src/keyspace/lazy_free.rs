//! Values that redis-server frees in a thread of its own are counted as it counts them. Here everything large is freed in slices,
//! lazily or not, if there is a driver that has moments for it; otherwise at once.

use super::{Db, Entry, Keyspace, Value};
use crate::value::stream::radix_nodes_of;
use crate::value::stream_node::Node;

/// A value of no more parts than this is freed at once whatever the settings (lazyfree.c, `LAZYFREE_THRESHOLD`).
const PARTS_MAX: usize = 64;

/// Elements that one slice frees at most.
const SLICE: usize = 2048;

/// What is no longer there and still is to be freed. Each with the objects as which it counts until then.
#[derive(Debug, Default)]
pub(super) struct Garbage {
    values: Vec<(Value, u64)>,
    dbs: Vec<(Db, u64)>,
    pending: u64,
}

/// The settings `lazyfree-lazy-*`.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a setting of its own"
)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LazyFree {
    pub eviction: bool,
    pub expire: bool,
    pub server_del: bool,
    pub user_del: bool,
    pub user_flush: bool,
}

/// Why a value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its deadline has passed, or was set to the past.
    Expired,
    /// Memory was short.
    Evicted,
    /// Another value, or none, takes its place.
    Replaced,
    /// DEL.
    Deleted,
    /// UNLINK.
    Unlinked,
    /// It is empty, or goes elsewhere.
    NotFreed,
}

impl LazyFree {
    fn applies(self, reason: Reason) -> bool {
        match reason {
            Reason::Expired => self.expire,
            Reason::Evicted => self.eviction,
            Reason::Replaced => self.server_del,
            Reason::Deleted => self.user_del,
            Reason::Unlinked => true,
            Reason::NotFreed => false,
        }
    }
}

impl Keyspace {
    /// Counts a value that goes, if redis-server would free it in the background.
    pub(super) fn count_freed(&mut self, entry: &Entry, reason: Reason) {
        if self.lazy_free.applies(reason) && parts(entry.value()) > PARTS_MAX {
            self.stats.lazyfreed_objects += 1;
        }
    }

    /// From now on [`Keyspace::free_slice`] is called as long as there is something to be freed.
    #[cfg(any(test, feature = "net"))]
    pub(crate) fn free_in_slices(&mut self) {
        self.garbage = Some(Box::default());
    }

    /// Whether anything is to be freed.
    pub(crate) fn has_garbage(&self) -> bool {
        let garbage = self.garbage.as_ref();
        garbage.is_some_and(|it| !it.values.is_empty() || !it.dbs.is_empty())
    }

    /// Frees a counted number of elements.
    pub(crate) fn free_slice(&mut self) {
        if let Some(garbage) = &mut self.garbage {
            garbage.free(SLICE);
        }
    }

    /// Objects that are to be freed in the background, and those that have been since the counters were reset.
    pub(crate) fn lazily_freed(&self) -> (u64, u64) {
        let pending = self.garbage.as_ref().map_or(0, |it| it.pending);
        let given = self.stats.lazyfreed_objects;
        (pending, given.saturating_sub(pending))
    }

    /// Gives away an entry that was removed for a reason.
    pub(super) fn bury(&mut self, entry: Entry, reason: Reason) {
        let Some(garbage) = &mut self.garbage else {
            return;
        };
        if parts(entry.value()) > PARTS_MAX {
            let counts = u64::from(self.lazy_free.applies(reason));
            garbage.pending += counts;
            garbage.values.push((entry.into_value(), counts));
        }
    }

    /// Gives away the contents of a database; they count if redis-server would free them in the background.
    pub(super) fn bury_all(&mut self, db: Db, lazily: bool) {
        let counts = if lazily { db.dict.len() as u64 } else { 0 };
        self.stats.lazyfreed_objects += counts;
        if let Some(garbage) = &mut self.garbage
            && !db.dict.is_empty()
        {
            garbage.pending += counts;
            garbage.dbs.push((db, counts));
        }
    }
}

impl Garbage {
    /// Frees so many elements of values, keys of databases and things that are left of either.
    fn free(&mut self, most: usize) {
        let mut left = most;
        while left > 0 {
            let freed = if let Some((value, counts)) = self.values.last_mut() {
                let freed = value.shed(left);
                if freed == 0 {
                    self.pending -= *counts;
                    self.values.pop();
                }
                freed
            } else if let Some((db, counts)) = self.dbs.last_mut() {
                db.expiry.shed_one();
                match db.dict.shed_one() {
                    Some(entry) if parts(entry.value()) > PARTS_MAX => {
                        self.values.push((entry.into_value(), 0));
                    }
                    Some(_) => {}
                    None => {
                        self.pending -= *counts;
                        self.dbs.pop();
                    }
                }
                1
            } else {
                return;
            };
            left = left.saturating_sub(freed.max(1));
        }
    }
}

impl Value {
    /// Drops at most so many parts of a value that nobody looks at any more; how many, none if it is best dropped as a whole.
    fn shed(&mut self, most: usize) -> usize {
        match self {
            Value::String(_) => 0,
            Value::List(list) => list.shed(most),
            Value::Hash(hash) => hash.shed(most),
            Value::Set(set) => set.shed(most),
            Value::SortedSet(set) => set.shed(most),
            Value::Stream(stream) => stream.shed(most),
        }
    }
}

/// Allocations of a value, as far as they decide (lazyfree.c, `lazyfreeGetFreeEffort`).
fn parts(value: &Value) -> usize {
    match value {
        Value::String(_) => 1,
        Value::List(list) => list.nodes_len(),
        Value::Hash(hash) => hash.table().map_or(1, |_| hash.len()),
        Value::Set(set) => set.table().map_or(1, |_| set.len()),
        Value::SortedSet(set) => set.table().map_or(1, |_| set.len()),
        Value::Stream(stream) => {
            // Of the groups the first one stands for all.
            let groups = stream.groups();
            let pending = groups.values().next().map_or(0, |it| it.pending().len());
            radix_nodes_of(stream.nodes().map(Node::master)) + groups.len() * (1 + pending)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::keyspace::DbIndex;
    use crate::value::sorted_set::Sizing;
    use crate::value::{
        Blob, End, Hash, HashLimits, List, ListLimits, Set, SetLimits, SortedSet, StringValue,
    };

    const MANY: usize = 50_000;

    /// Sorted sets go by leaves.
    const LEAF: usize = 64;

    fn keyspace() -> Keyspace {
        let mut keyspace = Keyspace::new(2, 1);
        keyspace.free_in_slices();
        keyspace
    }

    fn text(n: usize) -> Value {
        Value::String(StringValue::from(n as i64))
    }

    /// Elements, keys and values that still are to be freed.
    fn left(keyspace: &Keyspace) -> usize {
        let garbage = keyspace.garbage.as_ref().unwrap();
        let size = |value: &Value| match value {
            Value::String(_) => 1,
            value => 1 + value.len(),
        };
        let values = garbage.values.iter().map(|(value, _)| size(value));
        let dbs = garbage.dbs.iter().map(|(db, _)| &db.dict);
        let keys = dbs.map(|dict| 1 + dict.iter().map(|it| size(it.1.value())).sum::<usize>());
        values.chain(keys).sum()
    }

    /// Frees all; the most that one slice has freed.
    fn largest_slice(keyspace: &mut Keyspace) -> usize {
        let mut most = 0;
        while keyspace.has_garbage() {
            let before = left(keyspace);
            keyspace.free_slice();
            most = most.max(before - left(keyspace));
        }
        most
    }

    #[test]
    fn a_flushed_database_is_freed_a_counted_number_of_keys_at_a_time() {
        for lazily in [true, false] {
            let mut keyspace = keyspace();
            for n in 0..MANY {
                keyspace.set(format!("key:{n}").as_bytes(), text(n));
                keyspace.set_deadline(format!("key:{n}").as_bytes(), Some(i64::MAX - 1));
            }
            assert_eq!(keyspace.flush_all(lazily), MANY);
            let counted = if lazily { MANY as u64 } else { 0 };
            assert_eq!(keyspace.lazily_freed(), (counted, 0));
            assert!(!keyspace.exists(b"key:1"));
            assert_eq!(largest_slice(&mut keyspace), SLICE);
            assert_eq!(keyspace.lazily_freed(), (0, counted));
        }
    }

    fn large_values() -> Vec<Value> {
        let fields = (0..MANY).map(|n| (format!("f{n}"), Blob::from("v")));
        let config = Config::default();
        let (limits, sizing) = (HashLimits::of(&config), Sizing::new(&config, 1));
        let mut set = Set::new(1);
        let mut sorted = SortedSet::new();
        let mut list = List::new(ListLimits::of(&config));
        for n in 0..MANY {
            let member = format!("m{n}");
            set.add(member.as_bytes(), SetLimits::of(&config));
            sorted.insert(member.as_bytes(), n as f64, sizing);
            list.push(End::Right, Blob::from(format!("{member:>30}")));
        }
        vec![
            Value::Hash(Box::new(Hash::from_pairs(fields, limits, 1))),
            Value::Set(Box::new(set)),
            Value::SortedSet(Box::new(sorted)),
            Value::List(Box::new(list)),
        ]
    }

    #[test]
    fn a_large_value_is_freed_a_counted_number_of_elements_at_a_time_whatever_removed_it() {
        for value in large_values() {
            for (reason, counted) in [(Reason::Unlinked, 1), (Reason::Deleted, 0)] {
                let mut keyspace = keyspace();
                keyspace.set(b"key", value.clone());
                assert!(keyspace.delete(b"key", reason));
                assert_eq!(keyspace.lazily_freed(), (counted, 0), "{reason:?}");
                let most = largest_slice(&mut keyspace);
                assert!(most <= SLICE + LEAF, "{most}");
                assert_eq!(keyspace.lazily_freed(), (0, counted), "{reason:?}");
            }
            // The same under a key of a database that goes.
            let mut keyspace = keyspace();
            keyspace.set(b"key", value);
            assert_eq!(keyspace.flush(DbIndex(0), true), 1);
            assert_eq!(keyspace.lazily_freed(), (1, 0));
            assert!(largest_slice(&mut keyspace) <= SLICE + LEAF);
            assert_eq!(keyspace.lazily_freed(), (0, 1));
        }
    }

    #[test]
    fn without_a_driver_that_frees_everything_is_freed_at_once() {
        let mut keyspace = Keyspace::new(1, 1);
        for value in large_values() {
            keyspace.set(b"key", value);
            assert!(keyspace.delete(b"key", Reason::Unlinked));
            assert!(!keyspace.has_garbage());
        }
        assert_eq!(keyspace.lazily_freed(), (0, 4));
    }
}
