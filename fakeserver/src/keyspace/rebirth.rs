//! What outlives a server, and keys whose time is up because a test says so.

use std::cell::Cell;

use super::{Db, DbIndex, ExpiryIndex, Keyspace, KeyspaceStats, WatchRegistry};
use crate::clock::Timestamp;
use crate::value::Blob;

/// The contents of all databases at a time.
#[derive(Clone, Debug)]
pub(crate) struct Databases(Vec<Db>);

impl Keyspace {
    /// A copy of the contents.
    pub(crate) fn copy(&self) -> Databases {
        Databases(self.dbs.clone())
    }

    /// The contents, which the keyspace has no longer.
    pub(crate) fn take_databases(&mut self) -> Databases {
        Databases(std::mem::take(&mut self.dbs))
    }

    /// These are the contents from now on; for a keyspace of which nobody has seen anything.
    pub(crate) fn adopt(&mut self, databases: Databases) {
        self.dbs = databases.0;
        if self.dbs.is_empty() {
            self.dbs.push(Db::new(self.seed));
        }
    }

    /// Whether no database holds a key.
    pub(crate) fn holds_nothing(&self) -> bool {
        self.dbs.iter().all(|db| db.dict.is_empty())
    }

    /// Keys of all databases that have a deadline.
    pub(crate) fn all_deadlines(&self) -> usize {
        self.dbs.iter().map(|db| db.expiry.len()).sum()
    }

    /// The key of this number among those of all databases that have a deadline, in order of deadline, database and name.
    pub(crate) fn nth_deadline(&self, nth: usize) -> Option<(DbIndex, &Blob)> {
        let keys = self.dbs.iter().enumerate().flat_map(|(at, db)| {
            let first = db.expiry.iter().take(nth + 1);
            first.map(move |(deadline, key)| (*deadline, at, key))
        });
        let mut keys: Vec<_> = keys.collect();
        keys.sort_unstable();
        keys.get(nth).map(|(_, db, key)| (DbIndex(*db), *key))
    }

    /// The deadline of a key of any database.
    pub(crate) fn deadline_in(&self, db: DbIndex, key: &[u8]) -> Option<i64> {
        self.dbs.get(db.0)?.dict.get(key)?.deadline()
    }

    /// As newly made, with the same settings.
    pub(crate) fn renew(&mut self) {
        for db in &mut self.dbs {
            db.dict.renew();
            if !db.expiry.is_empty() {
                db.expiry = ExpiryIndex::default();
            }
        }
        self.selected = 0;
        self.now = Timestamp::default();
        self.placement = Cell::default();
        self.usage.renew(self.seed);
        self.watch = WatchRegistry::default();
        self.events.get_mut().clear();
        self.touched.clear();
        self.has_waiters = false;
        self.stats = KeyspaceStats::default();
    }

    /// The time of a key is up, whatever its deadline: it goes as if that had passed.
    pub(crate) fn let_expire(&mut self, db: DbIndex, key: &[u8]) {
        let selected = std::mem::replace(&mut self.selected, db.0);
        self.set_deadline(key, Some(self.now.millis().saturating_sub(1)));
        self.remove_if_due(key);
        self.selected = selected;
    }
}

impl Databases {
    /// A key that has expired is gone from the copy as well, unless it had another deadline then.
    pub(crate) fn forget_expired(&mut self, db: DbIndex, key: &[u8], deadline: i64) {
        if let Some(db) = self.0.get_mut(db.0)
            && db.dict.get(key).and_then(super::Entry::deadline) == Some(deadline)
        {
            db.dict.remove(key);
            db.expiry.remove(deadline, key);
        }
    }
}
