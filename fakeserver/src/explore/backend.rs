//! What executes the commands: the engine, or a real server on which a finding is confirmed.

use std::collections::VecDeque;

use redis::{ConnectionLike, RedisResult, Value};

use super::faults::Holdings;
use super::schedule::Act;
use super::trace::Keys;
use crate::calls::Calls;
use crate::clock::Timestamp;
use crate::config::Config;
use crate::engine::{Engine, Peer};
use crate::keyspace::{Databases, DbIndex};
use crate::redis_client::to_value;
use crate::script::Libraries;
use crate::session::SessionId;
use crate::wire::{Protocol, Request};

/// A connection of a [`Backend`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link(u64);

/// A server that runs one command at a time, when told.
pub(super) trait Backend: Send {
    /// A new connection.
    fn open(&mut self, protocol: Protocol, now: Timestamp) -> RedisResult<Link>;

    /// A command runs next that may change settings of the server.
    fn expect_change(&mut self) {}

    /// Runs a command; its reply, and replies that it causes on other connections, come through [`Backend::poll`].
    fn submit(&mut self, link: Link, request: Request, now: Timestamp);

    /// The next reply, and whose.
    fn poll(&mut self) -> Option<(Link, Value)>;

    /// Whether the server may have closed a connection since it was asked last.
    fn has_closed(&mut self) -> bool;

    /// Answers a command that only reads, outside of the schedule, on no client's connection.
    fn peek(&mut self, request: &Request, now: Timestamp) -> RedisResult<Value>;

    /// Whether the server still holds the connection.
    fn is_open(&self, link: Link) -> bool;

    /// Whether the connection speaks RESP3, so that a push can be told from a reply.
    fn speaks_resp3(&self, link: Link) -> bool;

    /// Ends a connection.
    fn close(&mut self, link: Link);

    /// What there is that something can happen to.
    fn holdings(&self) -> Holdings {
        Holdings::default()
    }

    /// From now on that many steps that write can be undone.
    fn keep_undo(&mut self, steps: u32) {
        let _ = steps;
    }

    /// Something happens to the server; if it ends, all connections have been closed before.
    fn strike(&mut self, act: Act, now: Timestamp) -> RedisResult<()>;

    /// What scripts have called since the last time; none if the server does not tell.
    fn take_calls(&mut self) -> Option<Calls> {
        None
    }

    /// When something happens though no command runs.
    fn next_timeout(&self) -> Option<Timestamp> {
        None
    }

    /// It is so late now.
    fn pass_time(&mut self, now: Timestamp) {
        let _ = now;
    }

    /// All keys, without a trace of having looked. None if that cannot be.
    fn keys(&self) -> Option<Keys> {
        None
    }

    /// As if newly made; whether that is possible.
    fn renew(&mut self, now: Timestamp) -> bool {
        let _ = now;
        false
    }
}

/// The engine, socketless.
pub(super) struct InProcess {
    engine: Engine,
    config: Config,
    /// Whose command has just run.
    answering: Option<SessionId>,
    /// Who is known to have no further reply.
    spared: Option<SessionId>,
    /// Whether the server has closed a connection.
    has_closed: bool,
    /// Whether a command ran that may have changed settings.
    is_changed: bool,
    undo_max: usize,
    /// What there was in front of each of the last steps that wrote, the latest last.
    undo: VecDeque<(Databases, Libraries)>,
}

impl InProcess {
    /// An empty server.
    pub(super) fn new(config: Config, now: Timestamp) -> InProcess {
        let config = config.for_schedules();
        InProcess {
            engine: Engine::new(config.clone(), now),
            config,
            answering: None,
            spared: None,
            has_closed: false,
            is_changed: false,
            undo_max: 0,
            undo: VecDeque::new(),
        }
    }

    /// A server that has these keys, and the functions of this one.
    fn start_again(&mut self, databases: Option<Databases>, now: Timestamp) {
        let mut engine = Engine::new(self.config.clone(), now);
        engine.scripts = std::mem::take(&mut self.engine.scripts);
        match databases {
            Some(databases) => {
                engine.keyspace.adopt(databases);
                engine.scripts.forget_scripts();
            }
            None => engine.scripts.renew(),
        }
        self.engine = engine;
        self.forget_replies();
    }

    fn forget_replies(&mut self) {
        self.answering = None;
        self.spared = None;
        self.has_closed = false;
    }

    fn expire(&mut self, nth: u32, now: Timestamp) {
        self.engine.keyspace.set_now(now);
        let Some((db, key)) = self.engine.keyspace.nth_deadline(nth as usize) else {
            return;
        };
        let key = key.clone();
        if let Some(deadline) = self.engine.keyspace.deadline_in(db, &key) {
            for (databases, _) in &mut self.undo {
                databases.forget_expired(db, &key, deadline);
            }
        }
        self.engine.keyspace.let_expire(db, &key);
        self.spared = None;
        self.engine.handle_timeout(now);
    }

    fn fail_over(&mut self, lost: u32, now: Timestamp) {
        let kept = self.undo.len().saturating_sub(lost as usize);
        let mut undone = self.undo.drain(kept..);
        let Some((databases, libraries)) = undone.next() else {
            return;
        };
        drop(undone);
        self.engine.scripts.functions.go_back_to(libraries);
        self.start_again(Some(databases), now);
    }

    /// Runs a command and keeps what it may have changed.
    fn submit_undoably(&mut self, link: Link, request: Request, now: Timestamp) {
        let before = (
            self.engine.keyspace.copy(),
            self.engine.scripts.functions.copy(),
        );
        let changes = self.engine.keyspace.stats.dirty;
        self.engine.submit(SessionId(link.0), request, now);
        if self.engine.keyspace.stats.dirty != changes {
            if self.undo.len() >= self.undo_max {
                self.undo.pop_front();
            }
            self.undo.push_back(before);
        }
    }
}

impl Backend for InProcess {
    fn open(&mut self, protocol: Protocol, now: Timestamp) -> RedisResult<Link> {
        let id = self.engine.connect_direct(Peer::default(), now);
        if let Some(session) = self.engine.sessions.get_mut(&id) {
            session.protocol = protocol;
        }
        Ok(Link(id.0))
    }

    fn expect_change(&mut self) {
        self.is_changed = true;
    }

    fn submit(&mut self, link: Link, request: Request, now: Timestamp) {
        let id = SessionId(link.0);
        self.answering = Some(id);
        // It may be another engine than before.
        if self.engine.calls.is_none() {
            self.engine.watch_calls();
        }
        if self.undo_max > 0 {
            self.submit_undoably(link, request, now);
        } else {
            self.engine.submit(id, request, now);
        }
    }

    fn poll(&mut self) -> Option<(Link, Value)> {
        if let Some(id) = self.answering {
            match self.engine.poll_spoken_reply(id) {
                Ok((reply, protocol)) => return Some((Link(id.0), to_value(reply, protocol))),
                Err(goes_on) => self.has_closed |= !goes_on,
            }
            self.answering = None;
            // Whoever ran last stays in the set, so that it is not made anew for each command.
            self.engine.ready.insert(id);
            self.spared = Some(id);
        }
        loop {
            let mut ready = self.engine.ready.iter().copied();
            let id = ready.find(|id| Some(*id) != self.spared)?;
            match self.engine.poll_spoken_reply(id) {
                Ok((reply, protocol)) => return Some((Link(id.0), to_value(reply, protocol))),
                Err(goes_on) => self.has_closed |= !goes_on,
            }
            self.engine.ready.remove(&id);
        }
    }

    fn has_closed(&mut self) -> bool {
        std::mem::take(&mut self.has_closed)
    }

    fn peek(&mut self, request: &Request, now: Timestamp) -> RedisResult<Value> {
        let reply = self.engine.peek(DbIndex::default(), request, now);
        Ok(to_value(reply, Protocol::Resp2))
    }

    fn is_open(&self, link: Link) -> bool {
        self.engine.is_connected(SessionId(link.0))
    }

    fn speaks_resp3(&self, link: Link) -> bool {
        self.engine.protocol(SessionId(link.0)) == Protocol::Resp3
    }

    fn close(&mut self, link: Link) {
        self.engine.disconnect(SessionId(link.0));
    }

    fn holdings(&self) -> Holdings {
        let keyspace = &self.engine.keyspace;
        Holdings {
            deadlines: u32::try_from(keyspace.all_deadlines()).unwrap_or(u32::MAX),
            scripts: self.engine.scripts.has_scripts(),
            data: !keyspace.holds_nothing() || self.engine.scripts.functions.len() > 0,
            undoable: u32::try_from(self.undo.len()).unwrap_or(u32::MAX),
        }
    }

    fn keep_undo(&mut self, steps: u32) {
        self.undo_max = steps as usize;
    }

    fn strike(&mut self, act: Act, now: Timestamp) -> RedisResult<()> {
        match act {
            Act::Expire(nth) => self.expire(nth, now),
            Act::FlushScripts => self.engine.scripts.forget_scripts(),
            Act::Restart { keeps_data: true } => {
                let databases = self.engine.keyspace.take_databases();
                self.start_again(Some(databases), now);
            }
            Act::Restart { keeps_data: false } => {
                self.undo.clear();
                self.start_again(None, now);
            }
            Act::Failover { lost } => self.fail_over(lost, now),
            // Time and connections are the gate's.
            Act::Advance(_) | Act::Execute | Act::DropBefore | Act::LoseReply => {}
        }
        Ok(())
    }

    fn take_calls(&mut self) -> Option<Calls> {
        self.engine.take_calls()
    }

    fn keys(&self) -> Option<Keys> {
        Some(crate::dump::lines_of(&self.engine.keyspace, super::ORIGIN))
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.engine.poll_timeout()
    }

    fn pass_time(&mut self, now: Timestamp) {
        self.spared = None;
        self.engine.catch_up(|| now);
    }

    fn renew(&mut self, now: Timestamp) -> bool {
        self.undo.clear();
        self.undo_max = 0;
        if std::mem::take(&mut self.is_changed) {
            self.start_again(None, now);
            return true;
        }
        self.engine.scripts.renew();
        self.engine.renew(now);
        self.forget_replies();
        true
    }
}

/// A server elsewhere, each connection a socket. A command runs when its reply is here, so that the order is ours.
pub(super) struct Elsewhere {
    client: redis::Client,
    connections: Vec<Option<(redis::Connection, Protocol)>>,
    onlooker: Option<redis::Connection>,
    replies: VecDeque<(Link, Value)>,
    /// Whether a command ran that leaves a script in the cache.
    has_scripts: bool,
}

impl Elsewhere {
    pub(super) fn new(client: redis::Client) -> Elsewhere {
        Elsewhere {
            client,
            connections: Vec::new(),
            onlooker: None,
            replies: VecDeque::new(),
            has_scripts: false,
        }
    }

    fn connection(&mut self, link: Link) -> Option<&mut redis::Connection> {
        let (connection, _) = self.connections.get_mut(link.0 as usize)?.as_mut()?;
        Some(connection)
    }

    /// Runs commands of the explorer's own.
    fn order(&mut self, orders: &[&[&str]]) -> RedisResult<()> {
        let mut connection = self.client.get_connection()?;
        for words in orders {
            let mut command = redis::Cmd::new();
            words.iter().for_each(|word| {
                command.arg(*word);
            });
            command.exec(&mut connection)?;
        }
        Ok(())
    }
}

impl Backend for Elsewhere {
    fn open(&mut self, protocol: Protocol, _: Timestamp) -> RedisResult<Link> {
        let mut connection = self.client.get_connection()?;
        if protocol == Protocol::Resp3 {
            redis::cmd("HELLO").arg(3).exec(&mut connection)?;
        }
        self.connections.push(Some((connection, protocol)));
        Ok(Link(self.connections.len() as u64 - 1))
    }

    fn submit(&mut self, link: Link, request: Request, _: Timestamp) {
        let name = request.name().to_ascii_uppercase();
        self.has_scripts |= matches!(name.as_slice(), b"EVAL" | b"EVAL_RO" | b"SCRIPT");
        let Some(connection) = self.connection(link) else {
            return;
        };
        match exchange(connection, &request) {
            Ok(reply) => self.replies.push_back((link, reply)),
            Err(_) => self.close(link),
        }
    }

    fn poll(&mut self) -> Option<(Link, Value)> {
        self.replies.pop_front()
    }

    fn has_closed(&mut self) -> bool {
        true
    }

    fn peek(&mut self, request: &Request, _: Timestamp) -> RedisResult<Value> {
        let onlooker = match self.onlooker.take() {
            Some(connection) => connection,
            None => self.client.get_connection()?,
        };
        exchange(self.onlooker.insert(onlooker), request)
    }

    fn is_open(&self, link: Link) -> bool {
        matches!(self.connections.get(link.0 as usize), Some(Some(_)))
    }

    fn speaks_resp3(&self, link: Link) -> bool {
        let connection = self.connections.get(link.0 as usize);
        matches!(connection, Some(Some((_, Protocol::Resp3))))
    }

    fn close(&mut self, link: Link) {
        if let Some(connection) = self.connections.get_mut(link.0 as usize) {
            *connection = None;
        }
    }

    /// Time, deadlines and replicas of a real server are out of reach, so that nothing of them is offered.
    fn holdings(&self) -> Holdings {
        Holdings {
            scripts: self.has_scripts,
            data: true,
            ..Holdings::default()
        }
    }

    fn strike(&mut self, act: Act, _: Timestamp) -> RedisResult<()> {
        let scripts: &[&str] = &["SCRIPT", "FLUSH"];
        match act {
            Act::FlushScripts | Act::Restart { keeps_data: true } => self.order(&[scripts])?,
            Act::Restart { keeps_data: false } => {
                self.order(&[scripts, &["FLUSHALL"], &["FUNCTION", "FLUSH"]])?;
            }
            _ => {}
        }
        self.has_scripts = false;
        Ok(())
    }
}

/// A command and its reply, the server's errors among them; what else goes wrong is the connection's.
fn exchange(connection: &mut redis::Connection, request: &Request) -> RedisResult<Value> {
    let mut command = redis::Cmd::new();
    for word in request.words() {
        command.arg(word);
    }
    match connection.req_packed_command(&command.get_packed_command()) {
        Ok(reply) => Ok(reply),
        Err(error) => redis::ServerError::try_from(error).map(Value::ServerError),
    }
}
