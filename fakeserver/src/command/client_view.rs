//! [`View`]: connections as `CLIENT LIST` shows them.

use super::ControlCall;
use super::client_memory::Buffers;
use super::client_tracking::redirection;
use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::pubsub::Topic;
use crate::session::{Session, SessionId, Transaction};
use crate::wire::{Protocol, Request};

/// Who looks at connections, and when; of its own the viewer sees the request that runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub engine: &'a Engine,
    pub viewer: SessionId,
    pub request: &'a Request,
    /// The viewer's transaction while EXEC runs it.
    pub executing: Option<&'a Transaction>,
    pub now: Timestamp,
}

impl<'a> View<'a> {
    pub(super) fn of(call: &'a ControlCall<'_>) -> View<'a> {
        View {
            engine: call.engine,
            viewer: call.session,
            request: call.request,
            executing: None,
            now: call.now,
        }
    }

    /// A session's line, without its line break.
    pub(crate) fn line(&self, session: &Session) -> String {
        let engine = self.engine;
        let id = session.id;
        let seconds_since = |micros: i64| (self.now.micros() - micros).max(0) / 1_000_000;
        let subscriptions = |topic| engine.pubsub.count(topic, id);
        let queue = self
            .transaction(session)
            .map(|transaction| &transaction.queue);
        format!(
            "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} multi={} {} events=r cmd={} user={} redir={} resp={}",
            id.0,
            session.address,
            session.local_address,
            // There is no descriptor; clients that parse the line want a number of the connection's own.
            id.0,
            String::from_utf8_lossy(&session.name),
            seconds_since(session.connected_at),
            seconds_since(session.active_at),
            self.flags(session),
            session.db.0,
            subscriptions(Topic::Channel),
            subscriptions(Topic::Pattern),
            subscriptions(Topic::Shard),
            queue.map_or(-1, |queue| queue.len() as i64),
            Buffers::of(self, session),
            session.last_command.map_or("NULL", |row| row.full_name()),
            String::from_utf8_lossy(engine.acl.name(session.user)),
            redirection(engine, id),
            if session.protocol == Protocol::Resp2 {
                2
            } else {
                3
            },
        )
    }

    /// The transaction that a session is in.
    pub(super) fn transaction(&self, session: &'a Session) -> Option<&'a Transaction> {
        let executing = self.executing.filter(|_| session.id == self.viewer);
        executing.or(session.transaction.as_ref())
    }

    /// The letters of `flags=`, in Redis' order.
    fn flags(&self, session: &Session) -> String {
        let engine = self.engine;
        let caches = engine.keyspace.caches.as_ref();
        let cache = caches.and_then(|caches| caches.of(session.id));
        let letters = [
            ('O', engine.monitors.contains(&session.id)),
            ('P', engine.pubsub.is_subscriber(session.id)),
            ('x', self.transaction(session).is_some()),
            ('b', session.blocked.is_some() || session.postponed),
            ('t', cache.is_some()),
            ('R', cache.is_some_and(|cache| cache.is_broken)),
            ('B', cache.is_some_and(|cache| cache.is_broadcast)),
            ('d', engine.keyspace.watch.is_dirty(session.id)),
            ('c', session.closing),
            ('e', session.no_evict),
        ];
        let set: String = letters
            .iter()
            .filter(|(_, set)| *set)
            .map(|(letter, _)| *letter)
            .collect();
        if set.is_empty() { "N".to_owned() } else { set }
    }
}
