//! Caches that clients keep of keys (`CLIENT TRACKING`): who is to hear of a key's change (tracking.c).
//!
//! A key is known by its name alone, whatever its database, as Redis has it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Keyspace, Note};
use crate::clock::Timestamp;
use crate::session::SessionId;
use crate::value::{Blob, Dict};

/// Milliseconds between two looks at whether too many keys are remembered, when no command comes in (server.c, `serverCron`).
const CHECK_PERIOD_MS: i64 = 100;

/// Keys that are forgotten at one look; more with each look that was not enough.
const FORGET_MAX: usize = 100;

/// Of which of its reads a client hears.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Of all.
    #[default]
    All,
    /// Of those behind `CLIENT CACHING YES`.
    OptIn,
    /// Of all but those behind `CLIENT CACHING NO`.
    OptOut,
}

/// What a client asked for with `CLIENT TRACKING ON`.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are independent of each other"
)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cache {
    /// The connection that messages go to, if it is not the client's own.
    pub redirect: Option<SessionId>,
    /// That connection was gone when a message was due.
    pub is_broken: bool,
    /// The client hears of all keys that begin with one of `prefixes`, whether it has read them or not.
    pub is_broadcast: bool,
    pub choice: Choice,
    /// `CLIENT CACHING` was called for the next command.
    pub caching: bool,
    /// The client does not hear of what it changes itself.
    pub no_loop: bool,
    pub prefixes: BTreeSet<Blob>,
}

/// Who is to hear of keys that begin with a prefix, and of which, with the client that changed each last.
#[derive(Debug, Default)]
struct Broadcast {
    clients: BTreeSet<SessionId>,
    changed: BTreeMap<Blob, Option<SessionId>>,
}

/// On whose behalf something is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acting {
    /// The client whose request is being served.
    pub client: Option<SessionId>,
    /// Its command is running: what is to be told to itself comes behind the reply.
    pub is_inside: bool,
    /// It is not the client that makes the change, but a script, which Redis holds to be a client of its own, or time.
    pub is_indirect: bool,
}

/// A message about keys that are out of date; without a key it is about all of them.
pub(crate) type Stale = Option<Blob>;

/// Who caches what.
#[derive(Debug)]
pub(crate) struct ClientCaches {
    clients: BTreeMap<SessionId, Cache>,
    by_key: Dict<BTreeSet<SessionId>>,
    /// Clients of all keys, as often as they stand there.
    items: usize,
    by_prefix: BTreeMap<Blob, Broadcast>,
    /// What the acting client hears behind its reply.
    pending: Vec<(SessionId, Stale)>,
    /// `tracking-table-max-keys`; 0 is no limit.
    pub keys_max: usize,
    /// Looks in a row that found too many keys and forgot too few.
    looks: usize,
    check_at: Option<Timestamp>,
}

impl ClientCaches {
    pub(crate) fn new(seed: u64, keys_max: usize) -> ClientCaches {
        ClientCaches {
            clients: BTreeMap::new(),
            by_key: Dict::new(seed),
            items: 0,
            by_prefix: BTreeMap::new(),
            pending: Vec::new(),
            keys_max,
            looks: 0,
            check_at: None,
        }
    }

    /// What a client asked for, if it did.
    pub(crate) fn of(&self, client: SessionId) -> Option<&Cache> {
        self.clients.get(&client)
    }

    pub(crate) fn of_mut(&mut self, client: SessionId) -> Option<&mut Cache> {
        self.clients.get_mut(&client)
    }

    /// Clients that asked for messages, keys that are remembered, clients of all of them, and prefixes.
    pub(crate) fn counts(&self) -> [usize; 4] {
        let (clients, prefixes) = (self.clients.len(), self.by_prefix.len());
        [clients, self.by_key.len(), self.items, prefixes]
    }

    /// Takes a client in, or changes what it asked for: prefixes are added to those that it has.
    pub(crate) fn insert(&mut self, client: SessionId, mut cache: Cache) {
        for prefix in &cache.prefixes {
            let broadcast = self.by_prefix.entry(prefix.clone()).or_default();
            broadcast.clients.insert(client);
        }
        if let Some(old) = self.clients.remove(&client) {
            cache.prefixes.extend(old.prefixes);
            cache.caching = old.caching;
        }
        self.clients.insert(client, cache);
    }

    /// Lets a client go. That it stands at keys is left to be found when they change, as in Redis, where INFO shows it.
    pub(crate) fn remove(&mut self, client: SessionId) {
        let Some(cache) = self.clients.remove(&client) else {
            return;
        };
        for prefix in cache.prefixes {
            if let Some(broadcast) = self.by_prefix.get_mut(&prefix) {
                broadcast.clients.remove(&client);
                if broadcast.clients.is_empty() {
                    self.by_prefix.remove(&prefix);
                }
            }
        }
    }

    /// Remembers that a client has read a key.
    pub(crate) fn remember(&mut self, client: SessionId, key: &[u8], now: Timestamp) {
        let readers = self.by_key.get_or_insert_with(key, BTreeSet::new);
        self.items += usize::from(readers.insert(client));
        if self.is_crowded() && self.check_at.is_none() {
            self.check_at = Some(now.plus_millis(CHECK_PERIOD_MS));
        }
    }

    /// A key has changed.
    fn changed(&mut self, key: &[u8], acting: Acting, notes: &mut Vec<Note>) {
        let by = acting.client.filter(|_| !acting.is_indirect);
        for (prefix, broadcast) in &mut self.by_prefix {
            if key.starts_with(prefix) {
                broadcast.changed.insert(Blob::from(key), by);
            }
        }
        self.forget(key, acting, notes);
    }

    /// Forgets who has read a key, and tells them.
    fn forget(&mut self, key: &[u8], acting: Acting, notes: &mut Vec<Note>) {
        let Some(readers) = self.by_key.remove(key) else {
            return;
        };
        self.items -= readers.len();
        for id in readers {
            let Some(cache) = self.clients.get(&id).filter(|cache| !cache.is_broadcast) else {
                continue;
            };
            let is_own = acting.client == Some(id);
            if is_own && cache.no_loop {
                continue;
            }
            let stale = Some(Blob::from(key));
            if is_own && acting.is_inside {
                self.pending.push((id, stale));
            } else {
                notes.push(Note::Stale(id, stale));
            }
        }
    }

    /// All keys have changed.
    fn all_changed(&mut self, acting: Acting, notes: &mut Vec<Note>) {
        for id in self.clients.keys() {
            if acting.client == Some(*id) {
                self.pending.push((*id, None));
            } else {
                notes.push(Note::Stale(*id, None));
            }
        }
        self.by_key.clear();
        self.items = 0;
    }

    fn is_crowded(&self) -> bool {
        self.keys_max > 0 && self.by_key.len() > self.keys_max
    }

    /// When to look whether there are too many keys, if no command comes in before.
    pub(crate) fn check_at(&self) -> Option<Timestamp> {
        self.check_at
    }

    /// Has that looked at a while from now, if there are too many.
    pub(crate) fn schedule_check(&mut self, now: Timestamp) {
        let at = now.plus_millis(CHECK_PERIOD_MS);
        let is_wanted = self.is_crowded() && !self.clients.is_empty();
        self.check_at = is_wanted.then_some(at);
    }

    /// Messages for the client whose command has run.
    pub(crate) fn take_pending(&mut self) -> Vec<(SessionId, Stale)> {
        std::mem::take(&mut self.pending)
    }

    /// Messages of changed keys by prefix: to whom, and which keys.
    pub(crate) fn take_broadcasts(&mut self) -> Vec<(SessionId, Vec<Blob>)> {
        let mut messages = Vec::new();
        for broadcast in self.by_prefix.values_mut() {
            let changed = std::mem::take(&mut broadcast.changed);
            if changed.is_empty() {
                continue;
            }
            for id in &broadcast.clients {
                let no_loop = self.clients.get(id).is_some_and(|cache| cache.no_loop);
                let others = changed
                    .iter()
                    .filter(|(_, by)| !no_loop || **by != Some(*id));
                let keys: Vec<_> = others.map(|(key, _)| key.clone()).collect();
                if !keys.is_empty() {
                    messages.push((*id, keys));
                }
            }
        }
        messages
    }
}

impl Keyspace {
    /// Tells whoever caches a key that it has changed, if it is time.
    pub(super) fn tell_caches_when(&mut self, key: &[u8], is_time: bool) {
        if is_time && let Some(caches) = &mut self.caches {
            caches.changed(key, self.acting, self.events.get_mut());
        }
    }

    /// Tells whoever caches anything that all keys have changed.
    pub(crate) fn tell_caches_of_all(&mut self) {
        if let Some(caches) = &mut self.caches {
            caches.all_changed(self.acting, self.events.get_mut());
        }
    }

    /// Forgets random keys while more are remembered than may be, some at each call.
    pub(crate) fn limit_caches(&mut self, rng: &mut fastrand::Rng) {
        let Some(caches) = &mut self.caches else {
            return;
        };
        if caches.clients.is_empty() {
            return;
        }
        let mut left = FORGET_MAX.saturating_mul(caches.looks + 1);
        while caches.is_crowded() && left > 0 {
            left -= 1;
            let at = rng.usize(..caches.by_key.len());
            let key = caches.by_key.at(at).map(|(key, _)| key.clone());
            if let Some(key) = key {
                caches.forget(&key, self.acting, self.events.get_mut());
            }
        }
        caches.looks = if caches.is_crowded() {
            caches.looks.saturating_add(1)
        } else {
            0
        };
    }

    /// Forgets that a connection cached anything.
    pub(crate) fn forget_cache(&mut self, client: SessionId) {
        if let Some(caches) = &mut self.caches {
            caches.remove(client);
        }
    }
}
