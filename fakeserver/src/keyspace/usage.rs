//! When and how often keys are used, and how much memory they take: what eviction goes by (evict.c).

use std::cell::{Cell, RefCell};

use super::{Db, DbIndex, Entry, Event, Keyspace, Reason, Value};
use crate::value::Blob;

/// A clock of 24 bits, as Redis keeps it with each value.
const CLOCK_MASK: u32 = 0xff_ffff;
/// The frequency with which a key is born.
const FREQUENCY_INITIAL: u8 = 5;
/// Elements of a container that an estimate of its memory looks at.
const SAMPLES: usize = 5;
/// Keys of the running command that are remembered as looked up.
const TOUCHED_MAX: usize = 4;
/// Bytes of a bucket of the main table.
const BUCKET_LEN: usize = 8;

/// What is noted of a key at each access (`maxmemory-policy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tracking {
    /// The time.
    #[default]
    Recency,
    /// How often there were accesses, which fades.
    Frequency {
        /// The larger, the more accesses a higher frequency takes (`lfu-log-factor`).
        log_factor: i64,
        /// Minutes after which the frequency is one less, 0 for never (`lfu-decay-time`).
        decay_minutes: i64,
    },
}

/// What a keyspace knows of the use of its keys.
#[derive(Debug)]
pub(super) struct Usage {
    tracking: Tracking,
    /// Keys that the running command has looked up to change them: it may look twice and counts once.
    touched: RefCell<Vec<(DbIndex, Blob)>>,
    /// Decides whether an access raises a frequency.
    rng: RefCell<fastrand::Rng>,
    /// Bytes of all keys and values; kept only if there is a limit for them.
    bytes: Option<usize>,
}

impl Usage {
    pub(super) fn new(seed: u64) -> Usage {
        Usage {
            tracking: Tracking::default(),
            touched: RefCell::default(),
            rng: RefCell::new(fastrand::Rng::with_seed(seed)),
            bytes: None,
        }
    }

    /// As newly made, with the same settings.
    #[cfg(feature = "explore")]
    pub(super) fn renew(&mut self, seed: u64) {
        self.touched.get_mut().clear();
        *self.rng.get_mut() = fastrand::Rng::with_seed(seed);
        self.bytes = self.bytes.map(|_| 0);
    }

    pub(super) fn tracking(&self) -> Tracking {
        self.tracking
    }
}

/// The note of the last access: seconds, or minutes and a frequency; both may be looked at as the other if the policy changes.
#[derive(Clone, Debug)]
pub(super) struct AccessNote(Cell<u32>);

impl AccessNote {
    pub(super) fn new(seconds: i64, tracking: Tracking) -> AccessNote {
        let note = match tracking {
            Tracking::Recency => seconds as u32 & CLOCK_MASK,
            Tracking::Frequency { .. } => frequent(seconds, FREQUENCY_INITIAL),
        };
        AccessNote(Cell::new(note))
    }

    fn idle_seconds(&self, seconds: i64) -> u32 {
        let (now, noted) = (seconds as u32 & CLOCK_MASK, self.0.get());
        if now >= noted {
            now - noted
        } else {
            now + (CLOCK_MASK - noted)
        }
    }

    fn frequency(&self, seconds: i64, decay_minutes: i64) -> u8 {
        let (now, noted) = ((seconds / 60) & 0xffff, i64::from(self.0.get() >> 8));
        let elapsed = if now >= noted {
            now - noted
        } else {
            0xffff - noted + now
        };
        let periods = elapsed.checked_div(decay_minutes).unwrap_or(0);
        let frequency = self.0.get() as u8;
        frequency.saturating_sub(u8::try_from(periods).unwrap_or(u8::MAX))
    }
}

/// The note of a frequency.
fn frequent(seconds: i64, frequency: u8) -> u32 {
    ((seconds / 60) & 0xffff) as u32 * 256 + u32::from(frequency)
}

impl Keyspace {
    /// What is noted of accesses from now on.
    pub(crate) fn set_tracking(&mut self, tracking: Tracking) {
        self.usage.tracking = tracking;
    }

    /// Notes an access.
    pub(super) fn touch(&self, entry: &Entry) {
        let (seconds, note) = (self.now.seconds(), &entry.note);
        match self.usage.tracking {
            Tracking::Recency => note.0.set(seconds as u32 & CLOCK_MASK),
            Tracking::Frequency {
                log_factor,
                decay_minutes,
            } => {
                let frequency = note.frequency(seconds, decay_minutes);
                let above = f64::from(frequency.saturating_sub(FREQUENCY_INITIAL));
                let chance = 1.0 / (above * log_factor as f64 + 1.0);
                let raise = self.usage.rng.borrow_mut().f64() < chance;
                let frequency = frequency.saturating_add(u8::from(raise));
                note.0.set(frequent(seconds, frequency));
            }
        }
    }

    /// Notes an access of a command that changes keys, once for each key.
    pub(super) fn touch_once(&self, key: &[u8], entry: &Entry) {
        if self.usage.tracking == Tracking::Recency {
            self.touch(entry);
            return;
        }
        let mut touched = self.usage.touched.borrow_mut();
        let db = self.selected();
        if !touched
            .iter()
            .any(|(of, known)| *of == db && **known == *key)
        {
            // Whoever looks twice looks soon again.
            if touched.len() >= TOUCHED_MAX {
                touched.remove(0);
            }
            touched.push((db, Blob::from(key)));
            self.touch(entry);
        }
    }

    /// Begins a command.
    pub(crate) fn begin_command(&mut self) {
        if self.usage.tracking != Tracking::Recency {
            self.usage.touched.get_mut().clear();
        }
    }

    /// A value without a deadline, used just now.
    pub(crate) fn new_entry(&self, value: Value) -> Entry {
        Entry::new(value, self.now, self.usage.tracking)
    }

    /// Gives what takes the place of another value the note of its accesses: frequencies belong to the key, times to the value.
    pub(super) fn hand_on_note(&self, key: &[u8], old: &Entry, new: &Entry) {
        self.touch_once(key, old);
        new.note.0.set(old.note.0.get());
    }

    /// Seconds since the last access of an entry; none if frequencies are noted.
    pub(crate) fn idle_seconds(&self, entry: &Entry) -> Option<u32> {
        let is_noted = self.usage.tracking == Tracking::Recency;
        is_noted.then(|| entry.note.idle_seconds(self.now.seconds()))
    }

    /// How often an entry is used, of 255; none if times are noted.
    pub(crate) fn frequency(&self, entry: &Entry) -> Option<u8> {
        match self.usage.tracking {
            Tracking::Recency => None,
            Tracking::Frequency { decay_minutes, .. } => {
                Some(entry.note.frequency(self.now.seconds(), decay_minutes))
            }
        }
    }

    /// What DEBUG OBJECT shows of the note of the last access, and the seconds since then.
    pub(crate) fn access_note(&self, entry: &Entry) -> (u32, u32) {
        let idle = entry.note.idle_seconds(self.now.seconds());
        (entry.note.0.get(), idle)
    }

    /// Sets the last access to so many seconds ago (`RESTORE IDLETIME`), if times are noted.
    pub(crate) fn set_idle_seconds(&self, entry: &Entry, idle: i64) {
        if self.usage.tracking != Tracking::Recency {
            return;
        }
        let now = i64::from(self.now.seconds() as u32 & CLOCK_MASK);
        let noted = now.saturating_sub(idle);
        let half_a_round = (now + i64::from(CLOCK_MASK / 2)) % i64::from(CLOCK_MASK);
        let noted = if noted < 0 { half_a_round } else { noted };
        entry.note.0.set(noted as u32);
    }

    /// Sets the frequency (`RESTORE FREQ`), if frequencies are noted.
    pub(crate) fn set_frequency(&self, entry: &Entry, frequency: u8) {
        if self.usage.tracking != Tracking::Recency {
            let note = frequent(self.now.seconds(), frequency);
            entry.note.0.set(note);
        }
    }

    /// Begins or ceases to keep count of the memory that keys and values take.
    pub(crate) fn count_bytes(&mut self, wanted: bool) {
        if wanted == self.usage.bytes.is_some() {
            return;
        }
        self.usage.bytes = wanted.then_some(0);
        for db in &self.dbs {
            for (key, entry) in db.dict.iter() {
                entry.counted.set(0);
                if let Some(bytes) = &mut self.usage.bytes {
                    *bytes += recount(key, entry);
                }
            }
        }
    }

    /// Bytes of all keys and values, if they are counted.
    pub(crate) fn bytes(&self) -> Option<usize> {
        let bytes = self.usage.bytes?;
        let buckets = self.dbs.iter().map(|db| db.dict.len().next_power_of_two());
        Some(bytes + buckets.sum::<usize>() * BUCKET_LEN)
    }

    /// Counts what a key takes after a change.
    pub(super) fn count_changed(&mut self, key: &[u8]) {
        let Some(bytes) = self.usage.bytes else {
            return;
        };
        if let Some(entry) = self.db().dict.get(key) {
            let before = entry.counted.get() as usize;
            self.usage.bytes = Some((bytes + recount(key, entry)).saturating_sub(before));
        }
    }

    /// Counts out what is gone.
    pub(super) fn count_removed(&mut self, entry: &Entry) {
        if let Some(bytes) = &mut self.usage.bytes {
            *bytes = bytes.saturating_sub(entry.counted.replace(0) as usize);
        }
    }

    /// The same for all entries of what was a database.
    pub(super) fn count_all_removed(&mut self, db: &Db) {
        // Ten million entries are not to be looked at if nobody counts, or if nothing else is left.
        if self.usage.bytes.is_none() {
            return;
        }
        if self.dbs.iter().all(|db| db.dict.is_empty()) {
            self.usage.bytes = Some(0);
            return;
        }
        for (_, entry) in db.dict.iter() {
            self.count_removed(entry);
        }
    }

    /// A random key of a database, of those with a deadline if they are `volatile`.
    pub(crate) fn random_key(
        &self,
        db: DbIndex,
        rng: &mut fastrand::Rng,
        is_volatile: bool,
    ) -> Option<(&Blob, &Entry)> {
        let db = self.dbs.get(db.0)?;
        if is_volatile {
            let key = db.expiry.random(rng)?;
            return db.dict.get_key_value(key);
        }
        db.dict.at(rng.usize(..db.dict.len().max(1)))
    }

    /// The key of a database whose deadline is the earliest.
    pub(crate) fn earliest(&self, db: DbIndex) -> Option<(i64, &Blob)> {
        self.dbs.get(db.0)?.expiry.earliest()
    }

    /// Removes a key for its memory, which is counted and told.
    pub(crate) fn evict(&mut self, db: DbIndex, key: &[u8]) {
        let selected = self.selected();
        self.select(db);
        if let Some(entry) = self.take(key, Reason::Evicted) {
            self.bury(entry, Reason::Evicted);
            self.stats.evicted_keys += 1;
            self.touch_outside(key);
            self.notify(key, Event::evicted());
        }
        self.select(selected);
    }
}

/// Measures an entry, and keeps the figure with it.
fn recount(key: &[u8], entry: &Entry) -> usize {
    let bytes = super::footprint::key_size(key) + entry.value().footprint(SAMPLES);
    entry.counted.set(u32::try_from(bytes).unwrap_or(u32::MAX));
    entry.counted.get() as usize
}
