//! [`Upstream`]: the server behind the held programs: an engine of our own, or a real server on which a finding is confirmed.

use std::io;
use std::time::Duration;

use crate::calls::Calls;
use crate::clock::Timestamp;
use crate::config::Config;
use crate::engine::{Engine, Peer};
use crate::error::CommandError;
use crate::session::SessionId;
use crate::value::Blob;
use crate::wire::{Protocol, Reply, Request, encode};

/// A connection to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Link(pub(super) u64);

/// A reply, or a push, on its way to a program.
#[derive(Debug)]
pub(super) struct Delivery {
    /// Whose.
    pub(super) link: Link,
    /// What it says.
    pub(super) reply: Reply,
    /// The same as it is sent.
    pub(super) bytes: Vec<u8>,
}

/// A server that runs one command at a time, when told.
pub(super) trait Upstream: Send {
    /// A new connection.
    fn open(&mut self) -> io::Result<Link>;

    /// Runs a command; its reply, and what it causes on other connections, come through [`Upstream::poll`].
    fn submit(&mut self, link: Link, request: &Request);

    /// The next reply, and whose.
    fn poll(&mut self) -> Option<Delivery>;

    /// Ends a connection.
    fn close(&mut self, link: Link);

    /// Whether the server still holds the connection.
    fn is_open(&self, link: Link) -> bool;

    /// Whether the connection waits in a blocking command.
    fn is_blocked(&self, link: Link) -> bool;

    /// Changes so far: two equal numbers mean that nothing was changed between.
    fn changes(&mut self) -> u64;

    /// Lets time go on to the next thing that time brings: a key expires, a client's patience ends. None if nothing is due ever.
    fn pass_time(&mut self) -> Option<Duration>;

    /// When the next keys are gone.
    fn next_expiry(&mut self) -> Option<Timestamp>;

    /// Lets time go on until then; which keys expired.
    fn pass_until(&mut self, at: Timestamp) -> Vec<Blob>;

    /// What scripts have called since the last time; none if the server does not tell.
    fn take_calls(&mut self) -> Option<Calls> {
        None
    }

    /// Runs a command of the sweep's own; its reply as in RESP2.
    fn ask(&mut self, words: &[&[u8]]) -> Reply;
}

/// An engine without a socket, and with a clock that only the sweep moves.
pub(super) struct Embedded {
    engine: Engine,
    now: Timestamp,
    ready: Option<SessionId>,
    own: SessionId,
}

impl Embedded {
    /// An empty server.
    pub(super) fn new(seed: u64, now: Timestamp) -> Embedded {
        let config = Config {
            seed,
            ..Config::default()
        };
        let mut engine = Engine::new(config.for_schedules(), now);
        engine.watch_calls();
        let own = engine.connect_direct(Peer::default(), now);
        Embedded {
            engine,
            now,
            ready: None,
            own,
        }
    }

    fn move_to(&mut self, at: Timestamp) {
        self.now = self.now.max(at);
        self.engine.catch_up(|| self.now);
    }
}

impl Upstream for Embedded {
    fn open(&mut self) -> io::Result<Link> {
        let peer = Peer {
            address: "127.0.0.1:0".to_owned(),
            local_address: "127.0.0.1:6379".to_owned(),
        };
        Ok(Link(self.engine.connect_direct(peer, self.now).0))
    }

    fn submit(&mut self, link: Link, request: &Request) {
        self.engine
            .submit(SessionId(link.0), request.clone(), self.now);
    }

    fn poll(&mut self) -> Option<Delivery> {
        let (session, reply) = self.engine.poll_any_reply(&mut self.ready)?;
        let mut bytes = Vec::new();
        encode(&reply, self.engine.protocol(session), &mut bytes);
        Some(Delivery {
            link: Link(session.0),
            reply,
            bytes,
        })
    }

    fn close(&mut self, link: Link) {
        self.engine.disconnect(SessionId(link.0));
    }

    fn is_open(&self, link: Link) -> bool {
        self.engine.is_connected(SessionId(link.0))
    }

    fn is_blocked(&self, link: Link) -> bool {
        self.engine.is_blocked(SessionId(link.0))
    }

    fn changes(&mut self) -> u64 {
        self.engine.keyspace.stats.dirty + self.engine.keyspace.stats.expired_keys
    }

    fn pass_time(&mut self) -> Option<Duration> {
        let at = self.engine.poll_timeout()?;
        let before = self.now;
        self.move_to(at);
        let micros = self.now.micros().saturating_sub(before.micros());
        Some(Duration::from_micros(micros.max(0) as u64))
    }

    fn next_expiry(&mut self) -> Option<Timestamp> {
        let deadline = self.engine.keyspace.next_deadline()?;
        Some(Timestamp::from_millis(deadline.saturating_add(1)))
    }

    fn pass_until(&mut self, at: Timestamp) -> Vec<Blob> {
        let keys = self.engine.keyspace.due_at(at);
        self.move_to(at);
        keys
    }

    fn take_calls(&mut self) -> Option<Calls> {
        self.engine.take_calls()
    }

    fn ask(&mut self, words: &[&[u8]]) -> Reply {
        self.engine.submit(self.own, Request::new(words), self.now);
        let reply = self.engine.poll_reply(self.own);
        debug_assert_eq!(self.engine.protocol(self.own), Protocol::Resp2);
        reply.unwrap_or_else(|| Reply::Error(CommandError::custom("ERR no reply")))
    }
}
