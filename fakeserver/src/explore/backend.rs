//! What executes the commands: the engine, or a real server on which a finding is confirmed.

use redis::{ConnectionLike, RedisResult, Value};

use crate::clock::Timestamp;
use crate::config::Config;
use crate::engine::{Engine, Peer};
use crate::redis_client::to_value;
use crate::script::ScriptEngine;
use crate::session::SessionId;
use crate::wire::{Protocol, Request};

/// A connection of a [`Backend`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link(u64);

/// A server that runs one command at a time, when told.
pub(super) trait Backend: Send {
    /// A new connection.
    fn open(&mut self, now: Timestamp) -> RedisResult<Link>;

    /// Runs a command; its reply, and replies that it causes on other connections, come through [`Backend::poll`].
    fn submit(&mut self, link: Link, request: &Request, now: Timestamp);

    /// The next reply, and whose.
    fn poll(&mut self) -> Option<(Link, Value)>;

    /// Whether the server still holds the connection.
    fn is_open(&self, link: Link) -> bool;

    /// Ends a connection.
    fn close(&mut self, link: Link);

    /// What the next server can begin with; this one is of no use afterwards.
    fn retire(&mut self) -> Option<ScriptEngine> {
        None
    }
}

/// The engine, socketless.
pub(super) struct InProcess {
    engine: Engine,
    ready: Option<SessionId>,
}

impl InProcess {
    /// An empty server; `scripts` may come from one that has retired.
    pub(super) fn new(config: Config, now: Timestamp, scripts: Option<ScriptEngine>) -> InProcess {
        let mut engine = Engine::new(config.for_schedules(), now);
        if let Some(scripts) = scripts {
            engine.scripts = scripts;
        }
        InProcess {
            engine,
            ready: None,
        }
    }
}

impl Backend for InProcess {
    fn open(&mut self, now: Timestamp) -> RedisResult<Link> {
        Ok(Link(self.engine.connect_direct(Peer::default(), now).0))
    }

    fn submit(&mut self, link: Link, request: &Request, now: Timestamp) {
        self.engine.submit(SessionId(link.0), request.clone(), now);
    }

    fn poll(&mut self) -> Option<(Link, Value)> {
        let (session, reply) = self.engine.poll_any_reply(&mut self.ready)?;
        Some((Link(session.0), to_value(reply, Protocol::Resp2)))
    }

    fn is_open(&self, link: Link) -> bool {
        self.engine.is_connected(SessionId(link.0))
    }

    fn close(&mut self, link: Link) {
        self.engine.disconnect(SessionId(link.0));
    }

    fn retire(&mut self) -> Option<ScriptEngine> {
        let mut scripts = std::mem::take(&mut self.engine.scripts);
        scripts.renew();
        Some(scripts)
    }
}

/// A server elsewhere, each connection a socket. A command runs when its reply is here, so that the order is ours.
pub(super) struct Elsewhere {
    client: redis::Client,
    connections: Vec<Option<redis::Connection>>,
    replies: std::collections::VecDeque<(Link, Value)>,
}

impl Elsewhere {
    pub(super) fn new(client: redis::Client) -> Elsewhere {
        Elsewhere {
            client,
            connections: Vec::new(),
            replies: std::collections::VecDeque::new(),
        }
    }
}

impl Backend for Elsewhere {
    fn open(&mut self, _: Timestamp) -> RedisResult<Link> {
        self.connections.push(Some(self.client.get_connection()?));
        Ok(Link(self.connections.len() as u64 - 1))
    }

    fn submit(&mut self, link: Link, request: &Request, _: Timestamp) {
        let Some(Some(connection)) = self.connections.get_mut(link.0 as usize) else {
            return;
        };
        let mut command = redis::Cmd::new();
        for word in request.words() {
            command.arg(word);
        }
        match connection.req_packed_command(&command.get_packed_command()) {
            Ok(reply) => self.replies.push_back((link, reply)),
            Err(error) => match redis::ServerError::try_from(error) {
                Ok(error) => self.replies.push_back((link, Value::ServerError(error))),
                Err(_) => self.close(link),
            },
        }
    }

    fn poll(&mut self) -> Option<(Link, Value)> {
        self.replies.pop_front()
    }

    fn is_open(&self, link: Link) -> bool {
        matches!(self.connections.get(link.0 as usize), Some(Some(_)))
    }

    fn close(&mut self, link: Link) {
        if let Some(connection) = self.connections.get_mut(link.0 as usize) {
            *connection = None;
        }
    }
}
