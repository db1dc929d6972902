//! The keyspace: databases of keys, typed access, and the one door through which every change is reported.
//!
//! Typed access hides a key whose deadline has passed, so no handler ever sees one. [`Keyspace::changed`] is the single place
//! where a write has its consequences: watchers are marked, events recorded, waiters noted, empty containers removed.

mod caches;
mod databases;
mod entry;
mod expiry;
mod footprint;
mod lazy_free;
mod notify;
mod placement;
#[cfg(feature = "explore")]
mod rebirth;
mod usage;
mod watch;

use std::cell::{Cell, RefCell};

pub use entry::{Entry, Typed, Value};
pub use lazy_free::Reason;
pub use notify::{Class, Classes, Event, KeyEvent};
#[cfg(feature = "explore")]
pub(crate) use rebirth::Databases;
pub use watch::{WatchRegistry, WatchedKey};
pub(crate) use {
    caches::Acting, caches::Cache, caches::Choice, caches::ClientCaches, caches::Stale,
    footprint::allocated, footprint::key_size, footprint::text_size, lazy_free::LazyFree,
    notify::Note, notify::Told, placement::Placement, usage::Tracking,
};

use crate::clock::Timestamp;
use crate::error::CommandError;
use crate::value::{Blob, Dict};
use expiry::ExpiryIndex;
use lazy_free::Garbage;
use usage::Usage;
use watch::Standing;

/// Index of a logical database, below the `databases` setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DbIndex(pub usize);

/// One logical database.
#[derive(Clone, Debug)]
struct Db {
    dict: Dict<Entry>,
    expiry: ExpiryIndex,
}

impl Db {
    fn new(seed: u64) -> Db {
        Db {
            dict: Dict::new(seed),
            expiry: ExpiryIndex::default(),
        }
    }
}

/// Counters that `INFO` prints.
#[derive(Debug, Default)]
pub struct KeyspaceStats {
    /// Keys removed because their deadline passed.
    pub expired_keys: u64,
    /// Keys removed since memory was short.
    pub evicted_keys: u64,
    /// Values that redis-server would free in the background, be they freed already or not.
    pub lazyfreed_objects: u64,
    /// Lookups of read commands that found a key.
    pub hits: Cell<u64>,
    /// Lookups of read commands that found none.
    pub misses: Cell<u64>,
    /// Changes since start, as `rdb_changes_since_last_save` counts them.
    pub dirty: u64,
}

impl KeyspaceStats {
    /// Starts to count anew (`CONFIG RESETSTAT`); changes since the last save are no statistics.
    pub(crate) fn reset(&mut self) {
        *self = KeyspaceStats {
            dirty: self.dirty,
            ..KeyspaceStats::default()
        };
    }
}

/// All databases of a server, seen through the one that the running command has selected.
#[derive(Debug)]
pub struct Keyspace {
    dbs: Vec<Db>,
    selected: usize,
    now: Timestamp,
    seed: u64,
    usage: Usage,
    placement: Cell<Placement>,
    /// Which classes of events are recorded (`notify-keyspace-events`).
    pub(crate) notify: Classes,
    /// Which values count as freed in the background.
    pub(crate) lazy_free: LazyFree,
    pub(crate) watch: WatchRegistry,
    /// What clients cache, since the first one has asked to hear of it.
    pub(crate) caches: Option<Box<ClientCaches>>,
    /// On whose behalf keys are changed.
    pub(crate) acting: Acting,
    /// What is to be told since the engine last took it, in order; in a cell, since a read that misses is an event too.
    pub(crate) events: RefCell<Vec<Note>>,
    /// Keys written since the engine last looked for clients that wait for them, in order.
    pub(crate) touched: Vec<(DbIndex, Blob)>,
    /// Whether any client waits for a key; without one `touched` stays empty.
    pub(crate) has_waiters: bool,
    /// What is to be freed, if there is somebody who has moments for it.
    garbage: Option<Box<Garbage>>,
    /// Counters that `INFO` prints.
    pub stats: KeyspaceStats,
}

impl Keyspace {
    /// `databases` empty databases, with hash tables keyed by `seed`.
    pub fn new(databases: usize, seed: u64) -> Keyspace {
        Keyspace {
            dbs: (0..databases.max(1)).map(|_| Db::new(seed)).collect(),
            selected: 0,
            now: Timestamp::default(),
            seed,
            usage: Usage::new(seed),
            placement: Cell::default(),
            notify: Classes::default(),
            lazy_free: LazyFree::default(),
            watch: WatchRegistry::default(),
            caches: None,
            acting: Acting::default(),
            events: RefCell::default(),
            touched: Vec::new(),
            has_waiters: false,
            garbage: None,
            stats: KeyspaceStats::default(),
        }
    }

    /// Number of databases.
    pub fn databases(&self) -> usize {
        self.dbs.len()
    }

    /// The seed of all hash tables; containers that hold a [`Dict`] take it from here.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The database that the keyspace's methods act on.
    pub fn selected(&self) -> DbIndex {
        DbIndex(self.selected)
    }

    /// Makes another database the one that methods act on; the engine restores the session's before the next command.
    pub fn select(&mut self, db: DbIndex) {
        debug_assert!(
            db.0 < self.dbs.len(),
            "callers check the index against `databases`"
        );
        self.selected = db.0.min(self.dbs.len() - 1);
    }

    /// The time of the running command; it stands still inside of EXEC and scripts.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    fn db(&self) -> &Db {
        &self.dbs[self.selected]
    }

    fn db_mut(&mut self) -> &mut Db {
        &mut self.dbs[self.selected]
    }

    fn is_due(&self, entry: &Entry) -> bool {
        entry
            .deadline()
            .is_some_and(|deadline| deadline < self.now.millis())
    }

    /// The entry of `key`, unless its deadline has passed.
    pub fn entry(&self, key: &[u8]) -> Option<&Entry> {
        self.db().dict.get(key).filter(|entry| !self.is_due(entry))
    }

    /// The entry of `key`, be it due or not.
    pub(crate) fn raw_entry(&self, key: &[u8]) -> Option<&Entry> {
        self.db().dict.get(key)
    }

    /// The value of `key`, without counting a hit or a miss.
    pub fn value(&self, key: &[u8]) -> Option<&Value> {
        self.entry(key).map(Entry::value)
    }

    /// Whether `key` exists.
    pub fn exists(&self, key: &[u8]) -> bool {
        self.entry(key).is_some()
    }

    /// Whether `key` exists, for a write command: it is used just now.
    pub fn exists_for_write(&self, key: &[u8]) -> bool {
        self.entry(key)
            .inspect(|entry| self.touch_once(key, entry))
            .is_some()
    }

    /// The value of `key` of any type, for a read command: counts a hit or a miss.
    pub fn read_any(&self, key: &[u8]) -> Option<&Value> {
        self.inspect(key)
            .inspect(|entry| self.touch(entry))
            .map(Entry::value)
    }

    /// The entry of `key` for a read command that is no access to the value: counts a hit or a miss and tells of a miss.
    pub fn inspect(&self, key: &[u8]) -> Option<&Entry> {
        let found = self.inspect_quietly(key);
        if found.is_none() {
            self.record(key, Event::key_miss());
        }
        found
    }

    /// As [`Keyspace::inspect`], but nobody is told of a miss.
    pub(crate) fn inspect_quietly(&self, key: &[u8]) -> Option<&Entry> {
        let found = self.entry(key);
        let counter = if found.is_some() {
            &self.stats.hits
        } else {
            &self.stats.misses
        };
        counter.set(counter.get() + 1);
        found
    }

    /// The value of `key` for a read command. Errors: `WRONGTYPE`.
    pub fn read<T: Typed>(&self, key: &[u8]) -> Result<Option<&T>, CommandError> {
        self.read_any(key)
            .map(|value| T::of(value).ok_or(CommandError::WrongType))
            .transpose()
    }

    /// The value of `key`, to look at before a write. Errors: `WRONGTYPE`.
    pub fn peek<T: Typed>(&self, key: &[u8]) -> Result<Option<&T>, CommandError> {
        self.entry(key)
            .inspect(|entry| self.touch_once(key, entry))
            .map(|entry| T::of(entry.value()).ok_or(CommandError::WrongType))
            .transpose()
    }

    /// The value of `key`, to change; report the change with [`Keyspace::changed`]. Errors: `WRONGTYPE`.
    pub fn write<T: Typed>(&mut self, key: &[u8]) -> Result<Option<&mut T>, CommandError> {
        match self.entry(key) {
            Some(entry) => self.touch_once(key, entry),
            None => return Ok(None),
        }
        let Some(entry) = self.db_mut().dict.get_mut(key) else {
            return Ok(None);
        };
        T::of_mut(entry.value_mut())
            .map(Some)
            .ok_or(CommandError::WrongType)
    }

    /// The value of `key`, to change, made by `make` if the key is missing. Errors: `WRONGTYPE`.
    ///
    /// A container that is still empty when [`Keyspace::changed`] is called disappears again.
    pub fn write_or_create<T: Typed>(
        &mut self,
        key: &[u8],
        make: impl FnOnce() -> T,
    ) -> Result<&mut T, CommandError> {
        self.remove_if_due(key);
        match self.db().dict.get(key) {
            Some(entry) => self.touch_once(key, entry),
            None => self.notify(key, Event::new_key()),
        }
        let (now, tracking) = (self.now, self.usage.tracking());
        let entry = self
            .db_mut()
            .dict
            .get_or_insert_with(key, || Entry::new(make().into_value(), now, tracking));
        T::of_mut(entry.value_mut()).ok_or(CommandError::WrongType)
    }

    /// Sets `key` to `value`, without a deadline, whatever it held. Report with [`Keyspace::changed`].
    pub fn set(&mut self, key: &[u8], value: Value) {
        self.remove_if_due(key);
        let entry = self.new_entry(value);
        if self.usage.tracking() != Tracking::Recency
            && let Some(old) = self.db().dict.get(key)
        {
            self.hand_on_note(key, old, &entry);
        }
        let db = self.db_mut();
        match db.dict.insert(key, entry) {
            Some(old) => {
                if let Some(deadline) = old.deadline() {
                    db.expiry.remove(deadline, key);
                }
                self.count_removed(&old);
                self.count_freed(&old, Reason::Replaced);
                self.bury(old, Reason::Replaced);
            }
            None => self.notify(key, Event::new_key()),
        }
    }

    /// Replaces the value of `key` and keeps its deadline. Report with [`Keyspace::changed`].
    pub fn replace(&mut self, key: &[u8], value: Value) {
        let deadline = self.deadline(key);
        self.set(key, value);
        if deadline.is_some() {
            self.set_deadline(key, deadline);
        }
    }

    /// Removes `key`, since something takes its place; its entry if it was there. Report with [`Keyspace::changed`].
    pub fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        self.remove_since(key, Reason::Replaced)
    }

    /// As [`Keyspace::remove`], for another reason.
    pub fn remove_since(&mut self, key: &[u8], reason: Reason) -> Option<Entry> {
        self.remove_if_due(key);
        self.take(key, reason)
    }

    /// As [`Keyspace::remove_since`], and the value is freed; whether it was there.
    pub fn delete(&mut self, key: &[u8], reason: Reason) -> bool {
        let removed = self.remove_since(key, reason);
        removed.map(|entry| self.bury(entry, reason)).is_some()
    }

    fn take(&mut self, key: &[u8], reason: Reason) -> Option<Entry> {
        let db = self.db_mut();
        let entry = db.dict.remove(key)?;
        if let Some(deadline) = entry.deadline() {
            db.expiry.remove(deadline, key);
        }
        self.count_removed(&entry);
        self.count_freed(&entry, reason);
        Some(entry)
    }

    /// Puts an entry with its deadline under `key`, which must be free; for RENAME, MOVE and their like. Report with
    /// [`Keyspace::changed`].
    pub fn put(&mut self, key: &[u8], entry: Entry) {
        let deadline = entry.deadline();
        let db = self.db_mut();
        db.dict.insert(key, entry);
        if let Some(deadline) = deadline {
            db.expiry.insert(deadline, key);
        }
        self.notify(key, Event::new_key());
    }

    /// As [`Keyspace::put`], and nobody is told.
    pub(crate) fn put_silently(&mut self, key: &[u8], entry: Entry) {
        let notify = std::mem::take(&mut self.notify);
        self.put(key, entry);
        self.notify = notify;
        self.count_changed(key);
    }

    /// The deadline of `key` in milliseconds since the epoch.
    pub fn deadline(&self, key: &[u8]) -> Option<i64> {
        self.entry(key).and_then(Entry::deadline)
    }

    /// Gives `key` a deadline in milliseconds since the epoch, or none. Report with [`Keyspace::changed`].
    pub fn set_deadline(&mut self, key: &[u8], deadline: Option<i64>) {
        let db = self.db_mut();
        let Some(entry) = db.dict.get_mut(key) else {
            return;
        };
        if let Some(old) = entry.deadline() {
            db.expiry.remove(old, key);
        }
        entry.set_deadline(deadline);
        if let Some(new) = deadline {
            db.expiry.insert(new, key);
        }
    }

    /// Reports that `key` of the selected database was changed: the one door of all consequences.
    pub fn changed(&mut self, key: &[u8], event: Event) {
        self.stats.dirty += event.changes();
        self.count_changed(key);
        let told = event.when_told();
        if event.is_watched() {
            self.mark_watchers(key);
            self.tell_caches_when(key, matches!(told, Told::First | Told::BeforeReply));
        }
        if told == Told::BeforeReply {
            self.answer_here();
        }
        if event.is_awaited() {
            self.wake_waiters(key);
        }
        self.notify(key, event);
        if told == Told::BeforeRemoval {
            self.before_answer(|keyspace| keyspace.tell_caches_when(key, true));
        }
        if self
            .db()
            .dict
            .get(key)
            .is_some_and(|entry| entry.value().is_empty_container())
        {
            self.take(key, Reason::NotFreed);
            self.notify(key, Event::generic("del"));
        }
        self.tell_caches_when(key, told == Told::Last);
    }

    /// Reports a change that counts as none and that no event tells of.
    pub(crate) fn changed_uncounted(&mut self, key: &[u8]) {
        self.count_changed(key);
        self.touch_watchers(key);
    }

    /// Counts a change that no event tells of and that nobody watches: Redis is silent about what is delivered to consumers.
    pub fn changed_silently(&mut self) {
        self.stats.dirty += 1;
    }

    /// Reports a change that no event tells of, but that marks who watches the key: a value that was only worked out anew.
    pub(crate) fn changed_without_event(&mut self, key: &[u8]) {
        self.changed_unwatched(key);
        self.touch_watchers(key);
    }

    /// Reports a change of a key's representation that nobody hears of and that marks nobody.
    pub(crate) fn changed_unwatched(&mut self, key: &[u8]) {
        self.stats.dirty += 1;
        self.count_changed(key);
    }

    /// Has the engine look whether clients that wait for a key can be served, or wait in vain.
    fn wake_waiters(&mut self, key: &[u8]) {
        if self.has_waiters {
            let db = self.selected();
            self.touched.push((db, Blob::from(key)));
        }
    }

    /// Records an event that changes nothing by itself, if its class is wanted.
    pub fn notify(&mut self, key: &[u8], event: Event) {
        self.record(key, event);
    }

    fn record(&self, key: &[u8], event: Event) {
        if self.notify.wants(event.class()) {
            let (db, key) = (self.selected(), Blob::from(key));
            let event = KeyEvent { db, key, event };
            self.events.borrow_mut().push(Note::Event(event));
        }
        self.note_event();
    }

    /// Removes `key` if its deadline has passed, as Redis does on access.
    pub(crate) fn remove_if_due(&mut self, key: &[u8]) -> bool {
        let due = !self.db().expiry.is_empty()
            && self
                .db()
                .dict
                .get(key)
                .is_some_and(|entry| self.is_due(entry));
        if due {
            if let Some(entry) = self.take(key, Reason::Expired) {
                self.bury(entry, Reason::Expired);
            }
            self.stats.expired_keys += 1;
            self.notify(key, Event::expired());
            self.touch_outside(key);
            self.wake_waiters(key);
        }
        due
    }

    /// Marks who watches a key and tells who caches it; the acting client has changed it.
    fn touch_watchers(&mut self, key: &[u8]) {
        self.tell_caches_when(key, true);
        self.mark_watchers(key);
    }

    /// The same for a change that no client has made.
    fn touch_outside(&mut self, key: &[u8]) {
        let acting = self.acting;
        self.acting.is_indirect = true;
        self.touch_watchers(key);
        self.acting = acting;
    }

    fn mark_watchers(&mut self, key: &[u8]) {
        if !self.watch.is_empty() {
            let exists = self.db().dict.contains(key);
            self.watch.touch(self.selected(), key, exists);
        }
    }

    /// Whether `key` stands in a database with its deadline passed.
    pub(crate) fn stands_due(&self, db: DbIndex, key: &[u8]) -> bool {
        self.standing(db, key) == Standing::Due
    }

    fn standing(&self, db: DbIndex, key: &[u8]) -> Standing {
        match self.dbs.get(db.0).and_then(|db| db.dict.get(key)) {
            None => Standing::Missing,
            Some(entry) if self.is_due(entry) => Standing::Due,
            Some(_) => Standing::Live,
        }
    }

    /// Removes at most `limit` due keys of all databases; whether more may be due.
    pub(crate) fn remove_due(&mut self, limit: usize) -> bool {
        let (selected, mut left) = (self.selected, limit);
        for db in 0..self.dbs.len() {
            self.selected = db;
            while let Some(key) = self.db().expiry.first_due(self.now.millis()) {
                if left == 0 {
                    self.selected = selected;
                    return true;
                }
                left -= 1;
                self.remove_if_due(&key);
            }
        }
        self.selected = selected;
        false
    }

    /// The earliest deadline of all databases, in milliseconds since the epoch.
    pub(crate) fn next_deadline(&self) -> Option<i64> {
        self.dbs.iter().filter_map(|db| db.expiry.first()).min()
    }

    /// Keys of all databases that will be due at a time, earliest first within a database.
    #[cfg(feature = "sweep")]
    pub(crate) fn due_at(&self, at: Timestamp) -> Vec<Blob> {
        let due = self.dbs.iter().flat_map(|db| db.expiry.due(at.millis()));
        due.cloned().collect()
    }

    /// Keys of the selected database, due ones included, as `DBSIZE` counts.
    pub fn len(&self) -> usize {
        self.db().dict.len()
    }

    /// Whether the selected database holds no key.
    pub fn is_empty(&self) -> bool {
        self.db().dict.is_empty()
    }

    /// Keys of the selected database that have a deadline.
    pub fn deadlines_len(&self) -> usize {
        self.db().expiry.len()
    }

    /// Makes a sorted set a skip list, whatever its size, which is no change of the key.
    pub(crate) fn enlarge_sorted_set(&mut self, key: &[u8]) {
        let seed = self.seed;
        if let Some(entry) = self.db_mut().dict.get_mut(key)
            && let Value::SortedSet(set) = entry.value_mut()
        {
            set.enlarge(seed);
        }
    }

    /// All live keys of the selected database with their entries.
    pub fn iter(&self) -> impl Iterator<Item = (&Blob, &Entry)> {
        self.db()
            .dict
            .iter()
            .filter(|(_, entry)| !self.is_due(entry))
    }

    /// Visits the selected database's keys from `cursor` on, due ones included, as [`Dict::scan`].
    pub(crate) fn scan<'a>(
        &'a self,
        cursor: u64,
        visit: impl FnMut(&'a Blob, &'a Entry),
        enough: impl FnMut() -> bool,
    ) -> u64 {
        self.db().dict.scan(cursor, visit, enough)
    }

    /// A key at a dense index below [`Keyspace::len`], due ones included; with a random index, a random key.
    pub(crate) fn key_at(&self, index: usize) -> Option<&Blob> {
        self.db().dict.at(index).map(|(key, _)| key)
    }
}
