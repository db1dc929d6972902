//! What clients that cache keys are told (`CLIENT TRACKING`): invalidation messages, to whom and when.

use crate::clock::Timestamp;
use crate::command::{Access, Flag, Group, Row, lookup, setting};
use crate::engine::Engine;
use crate::keyspace::{Choice, ClientCaches, Stale};
use crate::session::SessionId;
use crate::value::{Blob, number};
use crate::wire::{Protocol, Reply, Request};

/// The channel on which clients in RESP2 hear of keys that are out of date.
const CHANNEL: &str = "__redis__:invalidate";

impl Engine {
    /// What is known of clients' caches, from now on.
    pub(crate) fn client_caches(&mut self) -> &mut ClientCaches {
        let (seed, keys_max) = (self.keyspace.seed(), self.caches_keys_max());
        let make = || Box::new(ClientCaches::new(seed, keys_max));
        self.keyspace.caches.get_or_insert_with(make)
    }

    fn caches_keys_max(&self) -> usize {
        let keys_max = number::parse_integer(&setting(&self.config, "tracking-table-max-keys"));
        keys_max.map_or(0, |keys_max| usize::try_from(keys_max).unwrap_or(0))
    }

    /// Has the setting `tracking-table-max-keys` take effect.
    pub(crate) fn apply_caches_limit(&mut self) {
        let (now, keys_max) = (self.now, self.caches_keys_max());
        if let Some(caches) = &mut self.keyspace.caches {
            caches.keys_max = keys_max;
            caches.schedule_check(now);
        }
    }

    /// Remembers which keys a client has read with a command that has run (server.c, `call`).
    pub(crate) fn remember_keys(&mut self, id: SessionId, row: &'static Row, request: &Request) {
        if row.has(Flag::ReadOnly) && row.group() != Group::Scripting {
            self.remember_keys_of(id, row, request);
        }
    }

    /// The same, whatever the command: for a script that has called one that reads.
    pub(crate) fn remember_keys_of(&mut self, id: SessionId, row: &'static Row, request: &Request) {
        let now = self.now;
        let Some(caches) = &mut self.keyspace.caches else {
            return;
        };
        let is_wanted = caches.of(id).is_some_and(|cache| {
            !cache.is_broadcast
                && match cache.choice {
                    Choice::All => true,
                    Choice::OptIn => cache.caching,
                    Choice::OptOut => !cache.caching,
                }
        });
        if is_wanted && !row.has(Flag::PubSub) {
            row.keys().visit(request, Access::Read, |at, _| {
                if let Some(key) = request.get(at) {
                    caches.remember(id, key, now);
                }
            });
        }
    }

    /// Ends the effect of `CLIENT CACHING` behind the next command or transaction (networking.c, `resetClient`).
    pub(crate) fn end_caching(&mut self, id: SessionId, request: &Request) {
        let Some(caches) = &mut self.keyspace.caches else {
            return;
        };
        let Some(cache) = caches.of_mut(id).filter(|cache| cache.caching) else {
            return;
        };
        let lasts = self
            .sessions
            .get(&id)
            .is_some_and(|session| session.transaction.is_some() || session.postponed);
        let subcommand = |row: &'static Row| row.subcommand(request.get(1)?);
        let is_client = request.name().eq_ignore_ascii_case(b"client")
            && lookup(request.name()).and_then(subcommand).is_some();
        cache.caching = lasts || is_client;
    }

    /// Makes room when clients have read too many keys, before a command.
    pub(crate) fn limit_caches(&mut self) {
        if self.keyspace.caches.is_some() {
            self.keyspace.limit_caches(&mut self.rng);
        }
        // They come before the reply, be it an EXEC's.
        self.publish_events();
    }

    /// When clients' keys are to be looked at, if no command comes in before.
    pub(crate) fn caches_check_at(&self) -> Option<Timestamp> {
        self.keyspace.caches.as_ref()?.check_at()
    }

    /// Makes room when clients have read too many keys, if it is time to look.
    pub(crate) fn check_caches(&mut self) {
        let now = self.now;
        if self.caches_check_at().is_none_or(|at| now < at) {
            return;
        }
        self.keyspace.limit_caches(&mut self.rng);
        if let Some(caches) = &mut self.keyspace.caches {
            caches.schedule_check(now);
        }
    }

    /// Tells a client that a key, or all of them, is out of date.
    pub(crate) fn send_stale(&mut self, id: SessionId, stale: Stale) {
        let keys = match stale {
            Some(key) => Reply::Array(vec![Reply::Bulk(key)]),
            None => Reply::Null,
        };
        self.invalidate(id, keys);
    }

    /// Sends what the client whose command has run is to hear behind its reply.
    pub(crate) fn send_pending_stale(&mut self) {
        let Some(caches) = &mut self.keyspace.caches else {
            return;
        };
        for (id, stale) in caches.take_pending() {
            self.send_stale(id, stale);
        }
    }

    /// Tells clients of the keys with their prefixes that have changed since the last time, all at once.
    pub(crate) fn broadcast_stale(&mut self) {
        let Some(caches) = &mut self.keyspace.caches else {
            return;
        };
        for (id, keys) in caches.take_broadcasts() {
            let keys = keys.into_iter().map(Reply::Bulk).collect();
            self.invalidate(id, Reply::Array(keys));
        }
    }

    /// Sends a message on a client's keys to where it wants it, if that connection can take one (tracking.c,
    /// `sendTrackingMessage`).
    fn invalidate(&mut self, id: SessionId, keys: Reply) {
        let caches = self.keyspace.caches.as_mut();
        let Some(cache) = caches.and_then(|caches| caches.of_mut(id)) else {
            return;
        };
        let own_protocol = self.sessions.get(&id).map(|session| session.protocol);
        let receiver = cache.redirect.unwrap_or(id);
        let receiving = self.sessions.get(&receiver);
        let Some(session) = receiving.filter(|session| !session.closing) else {
            cache.is_broken = true;
            if own_protocol == Some(Protocol::Resp3) {
                let broken = vec![
                    Reply::bulk("tracking-redir-broken"),
                    Reply::Integer(receiver.0 as i64),
                ];
                self.send(id, Reply::Push(broken));
            }
            return;
        };
        // The null for all keys is spelled in the protocol of who asked.
        let keys = match own_protocol {
            Some(own) if own != session.protocol => Reply::Spoken(own, Box::new(keys)),
            _ => keys,
        };
        let message = if session.protocol == Protocol::Resp3 {
            vec![Reply::bulk("invalidate"), keys]
        } else if cache.redirect.is_some() && self.pubsub.is_subscriber(receiver) {
            vec![
                Reply::bulk("message"),
                Reply::Bulk(Blob::from(CHANNEL)),
                keys,
            ]
        } else {
            return;
        };
        self.send(receiver, Reply::Push(message));
    }
}
