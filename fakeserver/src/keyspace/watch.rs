//! WATCH: which sessions watch which keys, and the dirty CAS flag that a change sets.

use std::collections::{BTreeMap, BTreeSet};

use super::DbIndex;
use crate::session::SessionId;
use crate::value::Blob;

/// Watched keys by key and by session, and the sessions whose next EXEC must fail.
#[derive(Debug, Default)]
pub struct WatchRegistry {
    by_key: BTreeMap<(DbIndex, Blob), BTreeSet<SessionId>>,
    by_session: BTreeMap<SessionId, Vec<WatchedKey>>,
    dirty: BTreeSet<SessionId>,
}

/// A key that a session watches.
#[derive(Clone, Debug)]
pub struct WatchedKey {
    /// The key's database at the time of WATCH.
    pub db: DbIndex,
    /// The key.
    pub key: Blob,
    /// Whether the key stood in the database with its deadline already passed when it was watched: then its physical removal
    /// is no change (multi.c, `watchForKey`).
    pub was_due: bool,
}

/// How a key stands in a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Not at all.
    Missing,
    /// With its deadline passed.
    Due,
    /// For all to see.
    Live,
}

impl WatchRegistry {
    /// Makes `session` watch `key`; watching a key twice is watching it once.
    pub fn watch(&mut self, session: SessionId, db: DbIndex, key: &[u8], was_due: bool) {
        let key = Blob::from(key);
        if self
            .by_key
            .entry((db, key.clone()))
            .or_default()
            .insert(session)
        {
            self.by_session
                .entry(session)
                .or_default()
                .push(WatchedKey { db, key, was_due });
        }
    }

    /// Forgets all watched keys of `session` and its dirty flag.
    pub fn unwatch(&mut self, session: SessionId) {
        self.dirty.remove(&session);
        for watched in self.by_session.remove(&session).unwrap_or_default() {
            let place = (watched.db, watched.key);
            if let Some(sessions) = self.by_key.get_mut(&place) {
                sessions.remove(&session);
                if sessions.is_empty() {
                    self.by_key.remove(&place);
                }
            }
        }
    }

    /// The keys that `session` watches, in order.
    pub fn watched(&self, session: SessionId) -> &[WatchedKey] {
        self.by_session
            .get(&session)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// Whether a watched key of `session` was changed.
    pub fn is_dirty(&self, session: SessionId) -> bool {
        self.dirty.contains(&session)
    }

    /// Marks the watchers of `key`; `exists` is whether the database holds it now.
    pub(super) fn touch(&mut self, db: DbIndex, key: &[u8], exists: bool) {
        if self.by_key.is_empty() {
            return;
        }
        for session in self
            .by_key
            .get(&(db, Blob::from(key)))
            .into_iter()
            .flatten()
        {
            let watched = self.by_session.get_mut(session).into_iter().flatten();
            for watched in
                watched.filter(|watched| watched.db == db && watched.key.as_bytes() == key)
            {
                if watched.was_due && !exists {
                    // It was gone already when it was watched; now it is gone for good.
                    watched.was_due = false;
                } else {
                    self.dirty.insert(*session);
                }
            }
        }
    }

    /// Marks the watchers of a database whose contents were replaced as a whole: `before` says whether it held a key, `after`
    /// how the key stands in it now (multi.c, `touchAllWatchedKeysInDb`).
    pub(super) fn replaced(
        &mut self,
        db: DbIndex,
        before: impl Fn(&[u8]) -> bool,
        after: impl Fn(&[u8]) -> Standing,
    ) {
        for (session, keys) in &mut self.by_session {
            for watched in keys.iter_mut().filter(|watched| watched.db == db) {
                match (before(&watched.key), after(&watched.key)) {
                    (false, Standing::Missing) => {}
                    (true, Standing::Missing) if watched.was_due => watched.was_due = false,
                    // A due key is as good as none.
                    (_, Standing::Due) if watched.was_due => {}
                    (false, Standing::Due) => watched.was_due = true,
                    _ => {
                        self.dirty.insert(*session);
                    }
                }
            }
        }
    }

    /// Whether no session watches anything.
    pub(super) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }
}
