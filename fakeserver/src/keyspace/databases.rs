//! Whole databases: what is in them, and what happens to all of it at once.

use super::watch::Standing;
use super::{Db, DbIndex, Entry, Keyspace, Value};
use crate::value::dict::TableStats;
use crate::value::{Blob, Dict};

impl Keyspace {
    /// A database's keys, those of them with a deadline, and the sum of the deadlines, for `INFO keyspace`.
    pub(crate) fn counts(&self, db: DbIndex) -> (usize, usize, i128) {
        self.dbs.get(db.0).map_or((0, 0, 0), |db| {
            (db.dict.len(), db.expiry.len(), db.expiry.sum())
        })
    }

    /// The first `count` entries of a database, due ones included, for estimates.
    pub(crate) fn sample(
        &self,
        db: DbIndex,
        count: usize,
    ) -> impl Iterator<Item = (&Blob, &Entry)> {
        self.dbs
            .get(db.0)
            .into_iter()
            .flat_map(|db| db.dict.iter())
            .take(count)
    }

    /// Visits the values of all databases to change what nobody sees of them.
    pub(crate) fn for_each_value(&mut self, mut visit: impl FnMut(&mut Value)) {
        for db in &mut self.dbs {
            db.dict
                .values_mut()
                .for_each(|entry| visit(entry.value_mut()));
        }
    }

    /// How full the tables of a database are: that of keys, and one of those with a deadline as it would be.
    pub(crate) fn table_stats(&self, db: DbIndex) -> Option<(Vec<TableStats>, Vec<TableStats>)> {
        let db = self.dbs.get(db.0)?;
        let mut deadlines = Dict::new(self.seed);
        for (key, entry) in db.dict.iter() {
            if let Some(deadline) = entry.deadline() {
                deadlines.insert(key, deadline);
            }
        }
        Some((db.dict.stats(), deadlines.stats()))
    }

    /// Removes every key of one database; how many there were. Watchers of keys that existed are marked, and all caches are
    /// out of date.
    ///
    /// The keys count as freed `lazily`, or not; whether they are is up to the driver.
    pub fn flush(&mut self, db: DbIndex, lazily: bool) -> usize {
        let count = self.empty(db, lazily);
        self.tell_caches_of_all();
        count
    }

    /// Removes every key of all databases, as [`Keyspace::flush`] does of one.
    pub fn flush_all(&mut self, lazily: bool) -> usize {
        let dbs = (0..self.dbs.len()).map(DbIndex);
        let count = dbs.map(|db| self.empty(db, lazily)).sum();
        self.tell_caches_of_all();
        count
    }

    /// As [`Keyspace::flush`], and no cache hears of it.
    pub(crate) fn empty(&mut self, db: DbIndex, lazily: bool) -> usize {
        let seed = self.seed;
        let Some(slot) = self.dbs.get_mut(db.0) else {
            return 0;
        };
        let old = std::mem::replace(slot, Db::new(seed));
        self.count_all_removed(&old);
        self.watch
            .replaced(db, |key| old.dict.contains(key), |_| Standing::Missing);
        self.stats.dirty += old.dict.len() as u64;
        if self.has_waiters {
            let gone = old.dict.keys().map(|key| (db, key.clone()));
            self.touched.extend(gone);
        }
        let count = old.dict.len();
        self.bury_all(old, lazily);
        count
    }

    /// Exchanges the contents of two databases. Watchers of keys that exist on either side are marked.
    pub fn swap(&mut self, a: DbIndex, b: DbIndex) {
        if a == b || a.0 >= self.dbs.len() || b.0 >= self.dbs.len() {
            return;
        }
        self.dbs.swap(a.0, b.0);
        let mut watch = std::mem::take(&mut self.watch);
        for (db, other) in [(a, b), (b, a)] {
            let before = |key: &[u8]| self.dbs[other.0].dict.contains(key);
            watch.replaced(db, before, |key| self.standing(db, key));
        }
        self.watch = watch;
        self.stats.dirty += 1;
        if self.has_waiters {
            // What came may serve a client, and what went may be what it waited for.
            for (db, other) in [(a, b), (b, a)] {
                let (came, went) = (&self.dbs[db.0].dict, &self.dbs[other.0].dict);
                let keys = came.keys().chain(went.keys()).map(|key| (db, key.clone()));
                self.touched.extend(keys);
            }
        }
    }
}
