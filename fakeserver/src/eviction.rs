//! Eviction: keys that go when memory is short, as `maxmemory-policy` says (evict.c).

use crate::command::setting;
use crate::engine::Engine;
use crate::keyspace::{DbIndex, LazyFree, Tracking};
use crate::value::{Blob, number};

/// Candidates that are kept from one choice to the next.
const POOL_LEN_MAX: usize = 16;

/// Which keys go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Those that were not used for the longest time, or least often: whatever is noted of accesses.
    LeastUsed,
    /// Those whose deadline is the earliest.
    Deadline,
    /// Any.
    Random,
}

/// A policy that evicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Policy {
    /// Only keys with a deadline go.
    is_volatile: bool,
    order: Order,
}

impl Policy {
    fn parse(name: &[u8]) -> Option<Policy> {
        let (is_volatile, order) = match name {
            b"allkeys-lru" | b"allkeys-lfu" => (false, Order::LeastUsed),
            b"allkeys-random" => (false, Order::Random),
            b"volatile-lru" | b"volatile-lfu" => (true, Order::LeastUsed),
            b"volatile-random" => (true, Order::Random),
            b"volatile-ttl" => (true, Order::Deadline),
            _ => return None,
        };
        Some(Policy { is_volatile, order })
    }
}

/// A key that may go; the higher its score, the sooner.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    score: u64,
    db: DbIndex,
    key: Blob,
}

/// What eviction remembers.
#[derive(Debug, Default)]
pub(crate) struct EvictionPool {
    /// In ascending order of scores.
    candidates: Vec<Candidate>,
    /// The database from which a random key was last taken.
    last_db: usize,
}

impl EvictionPool {
    /// Keeps the candidates with the highest scores.
    fn add(&mut self, candidate: Candidate) {
        let is_known = |other: &Candidate| other.db == candidate.db && other.key == candidate.key;
        self.candidates.retain(|other| !is_known(other));
        let place = self
            .candidates
            .partition_point(|other| other.score < candidate.score);
        self.candidates.insert(place, candidate);
        if self.candidates.len() > POOL_LEN_MAX {
            self.candidates.remove(0);
        }
    }
}

impl Engine {
    /// Has settings take effect that are looked at elsewhere than in the configuration.
    pub(crate) fn apply_config(&mut self) {
        self.keyspace.notify = self.config.notify_keyspace_events;
        let number = |name: &str| number::parse_integer(&setting(&self.config, name)).unwrap_or(0);
        let policy = setting(&self.config, "maxmemory-policy");
        let tracking = if policy.ends_with(b"-lfu") {
            Tracking::Frequency {
                log_factor: number("lfu-log-factor"),
                decay_minutes: number("lfu-decay-time"),
            }
        } else {
            Tracking::Recency
        };
        self.keyspace.set_tracking(tracking);
        let is_on = |name: &str| setting(&self.config, name).as_bytes() == b"yes";
        self.keyspace.lazy_free = LazyFree {
            eviction: is_on("lazyfree-lazy-eviction"),
            expire: is_on("lazyfree-lazy-expire"),
            server_del: is_on("lazyfree-lazy-server-del"),
            user_del: is_on("lazyfree-lazy-user-del"),
            user_flush: is_on("lazyfree-lazy-user-flush"),
        };
        self.keyspace.count_bytes(self.config.maxmemory > 0);
        self.schedule_idle_check();
        self.apply_caches_limit();
    }

    /// Evicts keys while there is too little memory; whether there is too little still. Nothing goes while clients are paused.
    pub(crate) fn lacks_memory(&mut self) -> bool {
        let limit = self.config.maxmemory;
        if limit == 0 || self.is_paused() || self.used_memory() <= limit {
            return false;
        }
        let Some(policy) = Policy::parse(&setting(&self.config, "maxmemory-policy")) else {
            return true;
        };
        let samples = number::parse_integer(&setting(&self.config, "maxmemory-samples"));
        let samples = samples.unwrap_or(1).clamp(1, 64);
        while self.used_memory() > limit {
            let Some((db, key)) = self.choose_victim(policy, samples) else {
                return true;
            };
            self.keyspace.evict(db, &key);
        }
        false
    }

    fn choose_victim(&mut self, policy: Policy, samples: i64) -> Option<(DbIndex, Blob)> {
        let dbs = self.keyspace.databases();
        match policy.order {
            Order::Random => (1..=dbs).find_map(|step| {
                let db = DbIndex((self.eviction.last_db + step) % dbs);
                let (key, _) = self
                    .keyspace
                    .random_key(db, &mut self.rng, policy.is_volatile)?;
                self.eviction.last_db = db.0;
                Some((db, key.clone()))
            }),
            Order::Deadline => {
                let earliest = |db| Some((self.keyspace.earliest(db)?, db));
                let found = (0..dbs).map(DbIndex).filter_map(earliest).min();
                found.map(|((_, key), db)| (db, key.clone()))
            }
            Order::LeastUsed => {
                for db in (0..dbs).map(DbIndex) {
                    self.sample(db, policy, samples);
                }
                while let Some(candidate) = self.eviction.candidates.pop() {
                    if self.may_go(&candidate, policy) {
                        return Some((candidate.db, candidate.key));
                    }
                }
                None
            }
        }
    }

    /// Adds random keys of a database to the candidates.
    fn sample(&mut self, db: DbIndex, policy: Policy, samples: i64) {
        for _ in 0..samples {
            let keyspace = &self.keyspace;
            let picked = keyspace.random_key(db, &mut self.rng, policy.is_volatile);
            let Some((key, entry)) = picked else {
                return;
            };
            let score = match keyspace.frequency(entry) {
                Some(frequency) => u64::from(u8::MAX - frequency),
                None => keyspace.idle_seconds(entry).unwrap_or(0).into(),
            };
            let key = key.clone();
            self.eviction.add(Candidate { score, db, key });
        }
    }

    /// Whether a key that was a candidate is one still.
    fn may_go(&mut self, candidate: &Candidate, policy: Policy) -> bool {
        let selected = self.keyspace.selected();
        self.keyspace.select(candidate.db);
        let entry = self.keyspace.raw_entry(&candidate.key);
        let may_go = entry.is_some_and(|entry| !policy.is_volatile || entry.deadline().is_some());
        self.keyspace.select(selected);
        may_go
    }
}
