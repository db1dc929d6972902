//! [`Engine`]: the whole server without input and output.
//!
//! A driver tells it what arrived and what time it is, and asks what to send and when to come back. A command, an EXEC and a
//! script each run to their end inside of one call, so they are atomic by construction.

mod idle;
#[cfg(feature = "explore")]
mod renew;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Weak;

use crate::acl::{Acl, UserId};
use crate::blocking::WaitQueues;
use crate::calls::Calls;
use crate::clock::Timestamp;
use crate::config::Config;
use crate::error::CommandError;
use crate::eviction::EvictionPool;
use crate::faults::Control;
use crate::keyspace::{DbIndex, Keyspace};
use crate::latency_events::LatencyEvents;
use crate::links::Links;
use crate::pause::Pause;
use crate::pubsub::PubSub;
use crate::reply_buffer::ReplyBuffer;
use crate::running::{Interlude, Running};
use crate::session::{Session, SessionId, Silence, Sink};
use crate::sleep::Sleep;
use crate::slowlog::SlowLog;
use crate::stats::{ScriptFigures, ServerStats};
use crate::value::Blob;
use crate::wire::{Limits, Protocol, ProtocolError, Reply, Request, RequestDecoder};

/// The version of redis-server that this one answers as.
pub(crate) const VERSION: &str = "7.0.15";

/// Due keys that one background slice removes at most; the rest waits for the next slice, so that a million keys that expire
/// at once delay nobody.
const EXPIRE_SLICE: usize = 100;

/// Bytes of output after which a session's further requests wait until the driver has taken what there is: a pipeline of a
/// hundred thousand reads of large values must not pile up gigabytes, nor keep the other clients waiting for its end.
const OUTPUT_BATCH: usize = 1024 * 1024;

/// Less waiting output than this is held against no limit: most replies are small, and are not worth a question.
pub(crate) const OUTPUT_CHECK_MIN: usize = 4096;

/// The server: databases, sessions and everything between them.
#[derive(Debug)]
pub struct Engine {
    pub(crate) keyspace: Keyspace,
    pub(crate) config: Config,
    pub(crate) rng: fastrand::Rng,
    pub(crate) sessions: HashMap<SessionId, Box<Session>, foldhash::fast::FixedState>,
    pub(crate) queues: WaitQueues,
    /// Sessions that no longer wait and whose further requests are to be run, once the running client's batch is done.
    pub(crate) resumed: VecDeque<SessionId>,
    /// Pushes to the session whose EXEC is running: they come between the replies of the array.
    pub(crate) exec_pushes: Option<(SessionId, Vec<Reply>)>,
    pub(crate) pubsub: PubSub,
    pub(crate) monitors: BTreeSet<SessionId>,
    /// What monitors are to see of the running command, behind its reply.
    pub(crate) monitor_feed: Vec<Reply>,
    pub(crate) pause: Pause,
    pub(crate) stats: ServerStats,
    pub(crate) slowlog: SlowLog,
    /// Memory was used up when the running client's command came in.
    pub(crate) out_of_memory: bool,
    pub(crate) eviction: EvictionPool,
    pub(crate) latency_events: LatencyEvents,
    pub(crate) control: Control,
    pub(crate) acl: Acl,
    pub(crate) sleep: Sleep,
    /// When idle clients are looked for next.
    idle_check_at: Option<Timestamp>,
    pub(crate) saving: Saving,
    pub(crate) links: Links,
    /// `SHUTDOWN` was called.
    pub(crate) shutdown: bool,
    /// How many connections were closed on a client's order, ever; a driver sees from it that it has some to close.
    pub(crate) hang_ups: u64,
    /// Sessions that have something to send or are to be closed, and of which the driver has not been told.
    pub(crate) ready: BTreeSet<SessionId>,
    pub(crate) now: Timestamp,
    pub(crate) started_at: Timestamp,
    #[cfg(feature = "lua")]
    pub(crate) scripts: crate::script::ScriptEngine,
    /// What scripts called, if somebody wants to know.
    pub(crate) calls: Option<Calls>,
    /// The script under way.
    pub(crate) running: Option<Running>,
    /// The driver, if it can let others in while a script takes long.
    pub(crate) interlude: Option<Weak<dyn Interlude>>,
    session_count: u64,
    /// Room for requests that are read from bytes, which no session keeps.
    rooms: Vec<Request>,
}

/// What is told of the saving and loading of data, of which there is as much as a client can see.
#[derive(Clone, Debug, Default)]
pub(crate) struct Saving {
    /// When the data was last saved, in seconds since the epoch (`LASTSAVE`).
    pub at: i64,
    /// Whether it was ever saved in the background.
    pub in_background: bool,
    /// Whether the append-only file was ever rewritten.
    pub has_rewritten: bool,
    /// Keys that were loaded last, and due ones that were left out.
    pub loaded: usize,
    pub left_out: usize,
}

/// What kind of connection a session belongs to.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// The peer's address as `CLIENT LIST` prints it, `127.0.0.1:1234`.
    pub address: String,
    /// The server's own address of this connection.
    pub local_address: String,
}

/// What a driver has to do for a session.
#[derive(Debug, Default, PartialEq)]
pub struct Transmit {
    /// Close the connection once everything has been sent.
    pub close: bool,
    /// Requests are waiting for this output to be sent: call [`Engine::resume`] then.
    pub more: bool,
}

impl Engine {
    /// An empty server.
    pub fn new(config: Config, now: Timestamp) -> Engine {
        let mut engine = Engine {
            keyspace: Keyspace::new(config.databases, config.seed),
            rng: fastrand::Rng::with_seed(config.seed),
            control: Control::new(&config),
            acl: Acl::new(&config),
            config,
            sessions: HashMap::default(),
            queues: WaitQueues::default(),
            resumed: VecDeque::new(),
            exec_pushes: None,
            pubsub: PubSub::default(),
            monitors: BTreeSet::new(),
            monitor_feed: Vec::new(),
            pause: Pause::default(),
            stats: ServerStats::new(),
            slowlog: SlowLog::default(),
            out_of_memory: false,
            eviction: EvictionPool::default(),
            latency_events: LatencyEvents::default(),
            sleep: Sleep::default(),
            idle_check_at: None,
            saving: Saving {
                at: now.seconds(),
                ..Saving::default()
            },
            links: Links::default(),
            shutdown: false,
            hang_ups: 0,
            ready: BTreeSet::new(),
            now,
            started_at: now,
            #[cfg(feature = "lua")]
            scripts: crate::script::ScriptEngine::default(),
            calls: None,
            running: None,
            interlude: None,
            session_count: 0,
            rooms: Vec::new(),
        };
        engine.apply_config();
        engine
    }

    /// A new connection that exchanges bytes: use [`Engine::receive`] and [`Engine::poll_transmit`].
    pub fn connect(&mut self, peer: Peer, now: Timestamp) -> SessionId {
        self.open(peer, Sink::Wire(Vec::new()), now)
    }

    /// A new connection that exchanges values: use [`Engine::submit`] and [`Engine::poll_reply`].
    pub fn connect_direct(&mut self, peer: Peer, now: Timestamp) -> SessionId {
        self.open(peer, Sink::Values(VecDeque::new()), now)
    }

    fn open(&mut self, peer: Peer, sink: Sink, now: Timestamp) -> SessionId {
        self.session_count += 1;
        self.stats.connections_received += 1;
        let id = SessionId(self.session_count);
        let session = Session {
            id,
            db: DbIndex::default(),
            protocol: Protocol::Resp2,
            name: Blob::default(),
            address: peer.address.into(),
            local_address: peer.local_address.into(),
            user: UserId::DEFAULT,
            authenticated: self.acl.is_open(),
            transaction: None,
            blocked: None,
            postponed: false,
            silence: Silence::None,
            no_evict: false,
            closing: false,
            held_back: false,
            soft_limit_since: None,
            decoder: RequestDecoder::default(),
            pending: VecDeque::new(),
            sink,
            connected_at: now.micros(),
            active_at: now.micros(),
            last_command: None,
            received: 0,
            unsent: 0,
            reply_buffer: ReplyBuffer::new(now),
        };
        self.sessions.insert(id, Box::new(session));
        if self.sessions.len() as i64 > self.config.maxclients {
            self.stats.connections_rejected += 1;
            self.send(id, Reply::Error(CommandError::MaxClients));
            self.hang_up(id);
        }
        id
    }

    /// Takes in bytes from a connection and runs every request that they complete.
    ///
    /// Afterwards ask [`Engine::poll_ready`] who has something to send: it may be others too.
    pub fn receive(&mut self, id: SessionId, bytes: &[u8], now: Timestamp) {
        self.pass_time(now);
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        self.stats.reads += 1;
        self.stats.input_bytes += bytes.len() as u64;
        session.active_at = now.micros();
        session.decoder.feed(bytes);
        let limit = self.config.client_query_buffer_limit.max(0) as usize;
        if session.held_back && session.decoder.pending_len() > limit {
            self.refuse(id, &ProtocolError::QueryBufferLimit);
            return;
        }
        self.run_batch(id);
    }

    /// Runs one request of a connection that exchanges values; the replies come through [`Engine::poll_reply`].
    pub fn submit(&mut self, id: SessionId, request: Request, now: Timestamp) {
        self.pass_time(now);
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        session.pending.push_back(request);
        self.run_batch(id);
    }

    /// Appends what is to be sent to a session to `out`. Call it for each session that [`Engine::poll_ready`] names.
    pub fn poll_transmit(&mut self, id: SessionId, out: &mut Vec<u8>) -> Transmit {
        let Some(session) = self.sessions.get_mut(&id) else {
            return Transmit {
                close: true,
                more: false,
            };
        };
        self.ready.remove(&id);
        if self.sleep.is_on() {
            return Transmit::default();
        }
        if let Sink::Wire(bytes) = &mut session.sink {
            self.stats.writes += 1;
            self.stats.output_bytes += bytes.len() as u64;
            session.reply_buffer.fill(bytes.len(), self.now);
            if out.is_empty() {
                std::mem::swap(out, bytes);
            } else {
                out.append(bytes);
            }
        }
        Transmit {
            close: session.closing,
            more: session.held_back,
        }
    }

    /// Tells how much of what was taken for a session its peer has left untaken so far: it counts as output that waits.
    pub fn set_unsent(&mut self, id: SessionId, bytes: usize) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.unsent = bytes;
        }
    }

    /// Goes on with requests that [`Transmit::more`] spoke of.
    pub fn resume(&mut self, id: SessionId, now: Timestamp) {
        self.pass_time(now);
        self.run_batch(id);
    }

    /// The next reply (or push) to a session that exchanges values.
    pub fn poll_reply(&mut self, id: SessionId) -> Option<Reply> {
        if self.is_asleep() {
            return None;
        }
        match &mut self.sessions.get_mut(&id)?.sink {
            Sink::Values(replies) => replies.pop_front(),
            Sink::Wire(_) => None,
        }
    }

    /// A session that has something to send or is to be closed; each is named once per occasion.
    pub fn poll_ready(&mut self) -> Option<SessionId> {
        if self.is_asleep() {
            return None;
        }
        self.ready.pop_first()
    }

    /// When [`Engine::handle_timeout`] has something to do: a client's patience ends, or a key is due.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        if self.is_busy() {
            return None;
        }
        if self.is_asleep() {
            return self.wakes_at();
        }
        let due = self
            .keyspace
            .next_deadline()
            .filter(|_| self.config.active_expire && !self.is_paused());
        // A key is due once its deadline has passed, hence the millisecond more.
        let due = due.map(|deadline| Timestamp::from_millis(deadline.saturating_add(1)));
        [
            due,
            self.queues.next_deadline(),
            self.pause.end(),
            self.idle_check_at,
            self.caches_check_at(),
            self.links.next_close(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Lets time pass: ends the waiting of clients whose time is over and removes a slice of the due keys.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        if self.is_busy() {
            return;
        }
        self.now = now;
        self.wake_up();
        if self.is_asleep() {
            return;
        }
        self.keyspace.set_now(now);
        if self.pause.end().is_some_and(|end| end <= now) {
            self.end_pause();
        }
        self.hang_up_on_idle();
        while let Some(id) = self.queues.first_due(now) {
            self.time_out(id);
        }
        if self.config.active_expire && !self.is_paused() {
            self.keyspace.remove_due(EXPIRE_SLICE);
        }
        self.check_caches();
        self.links.close_idle(now);
        self.after_command();
        self.run_resumed();
    }

    /// Forgets a connection: whatever it watched, waited for or had queued is gone.
    pub fn disconnect(&mut self, id: SessionId) {
        let Some(session) = self.sessions.remove(&id) else {
            return;
        };
        self.keyspace.watch.unwatch(id);
        self.keyspace.forget_cache(id);
        self.pubsub.forget(id);
        self.monitors.remove(&id);
        self.pause.postponed.remove(&id);
        if let Some(blocked) = session.blocked {
            self.queues.remove(&blocked);
            self.keyspace.has_waiters = !self.queues.is_empty();
        }
        self.ready.remove(&id);
    }

    /// The protocol version that a session speaks.
    pub fn protocol(&self, id: SessionId) -> Protocol {
        self.sessions
            .get(&id)
            .map(|session| session.protocol)
            .unwrap_or_default()
    }

    /// The database that a session has selected.
    pub fn db(&self, id: SessionId) -> DbIndex {
        self.sessions
            .get(&id)
            .map(|session| session.db)
            .unwrap_or_default()
    }

    /// Whether a session waits in a blocking command.
    pub fn is_blocked(&self, id: SessionId) -> bool {
        self.sessions
            .get(&id)
            .is_some_and(|session| session.blocked.is_some())
    }

    /// What scripts and functions there are; without the feature `lua` none.
    #[cfg_attr(
        not(feature = "lua"),
        allow(
            clippy::unused_self,
            reason = "an engine without Lua has no scripts to look at"
        )
    )]
    pub(crate) fn script_figures(&self) -> ScriptFigures {
        #[cfg(feature = "lua")]
        return self.scripts.figures();
        #[cfg(not(feature = "lua"))]
        ScriptFigures::default()
    }

    /// Closes a connection on another client's order: it takes part in nothing any more.
    pub(crate) fn hang_up(&mut self, id: SessionId) {
        self.unblock(id);
        self.keyspace.watch.unwatch(id);
        self.keyspace.forget_cache(id);
        self.pubsub.forget(id);
        self.monitors.remove(&id);
        self.pause.postponed.remove(&id);
        if let Some(session) = self.sessions.get_mut(&id) {
            self.hang_ups += 1;
            session.closing = true;
            session.transaction = None;
            self.ready.insert(id);
        }
    }

    /// As [`Engine::hang_up`], and the command under way is not answered.
    pub(crate) fn hang_up_unanswered(&mut self, id: SessionId) {
        self.hang_up(id);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.silence = Silence::Off;
        }
    }

    /// Whether a client has asked the server to end (`SHUTDOWN`); what that means is the driver's business.
    pub fn shutdown_requested(&self) -> bool {
        self.shutdown
    }

    /// Whether a connection is still known; an unknown one has been closed by the server.
    pub fn is_connected(&self, id: SessionId) -> bool {
        self.sessions
            .get(&id)
            .is_some_and(|session| !session.closing)
    }

    /// The time of what comes next; it stands still for a script.
    fn pass_time(&mut self, now: Timestamp) {
        if !self.is_busy() {
            self.now = now;
        }
    }

    /// Runs what a session has sent, and then what those have sent that are no longer blocked because of it.
    fn run_batch(&mut self, id: SessionId) {
        self.run_buffered(id);
        // Amid a script only who has sent something is answered.
        if !self.is_busy() {
            self.run_resumed();
        }
    }

    /// Redis too lets unblocked clients go on only when it is back in its event loop (blocked.c, `processUnblockedClients`). A
    /// loop, so that a long chain of clients that unblock each other needs no deep stack.
    fn run_resumed(&mut self) {
        while let Some(id) = self.resumed.pop_front() {
            self.run_buffered(id);
        }
        self.broadcast_stale();
    }

    /// Runs the requests that a session has sent and that nothing holds back.
    pub(crate) fn run_buffered(&mut self, id: SessionId) {
        // The decoder leaves the session for the batch, so that a request can be run without a copy.
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let mut decoder = std::mem::take(&mut session.decoder);
        session.received = decoder.buffered().received;
        let mut request = self.rooms.pop().unwrap_or_default();
        decoder.lend(self.rooms.pop().unwrap_or_default());
        while let Some(session) = self.sessions.get_mut(&id) {
            if session.blocked.is_some()
                || session.postponed
                || session.closing
                || self.sleep.is_on()
            {
                break;
            }
            session.held_back = session.output_len() >= OUTPUT_BATCH;
            if session.held_back {
                break;
            }
            if let Some(next) = session.pending.pop_front() {
                self.run(id, &next);
                continue;
            }
            let limits = Limits {
                bulk_len_max: self.config.proto_max_bulk_len,
                query_buffer_max: self.config.client_query_buffer_limit.max(0) as usize,
                authenticated: session.authenticated || self.acl.is_open(),
            };
            let found = decoder.next(&mut request, &limits);
            self.skip(id, decoder.take_skipped());
            match found {
                Ok(true) => self.run(id, &request),
                Ok(false) => break,
                Err(error) => {
                    self.refuse(id, &error);
                    break;
                }
            }
        }
        request.clear();
        self.rooms.push(request);
        self.rooms.extend(decoder.give_back());
        if let Some(session) = self.sessions.get_mut(&id) {
            session.decoder = decoder;
            if session.has_output() {
                self.ready.insert(id);
            }
        }
    }

    /// Answers a request that cannot be read and closes the connection.
    fn refuse(&mut self, id: SessionId, error: &ProtocolError) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        session.closing = true;
        if *error != ProtocolError::QueryBufferLimit {
            let text = format!("ERR Protocol error: {error}");
            session.send(Reply::Error(CommandError::custom(text)));
        }
    }

    /// Ends the pause: whoever was held back goes on, in order of connection.
    pub(crate) fn end_pause(&mut self) {
        self.pause.stop();
        for id in std::mem::take(&mut self.pause.postponed) {
            if let Some(session) = self.sessions.get_mut(&id) {
                session.postponed = false;
                self.resumed.push_back(id);
            }
        }
    }

    /// Hands a reply or a push to a session and remembers to tell its driver.
    pub(crate) fn send(&mut self, id: SessionId, reply: Reply) {
        if let Some((executing, pushes)) = &mut self.exec_pushes
            && *executing == id
        {
            pushes.push(reply);
            return;
        }
        if let Some(session) = self.sessions.get_mut(&id) {
            session.send(reply);
            if session.has_output() {
                self.ready.insert(id);
            }
            if session.output_len() >= OUTPUT_CHECK_MIN {
                self.check_output(id);
            }
        }
    }

    /// Closes a connection for which too much output waits.
    pub(crate) fn check_output(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let limits = &self.config.client_output_buffer_limit;
        let len = session.output_len();
        let limit = if self.pubsub.is_subscriber(id) {
            limits.pubsub
        } else {
            limits.normal
        };
        if limit.is_exceeded(len, self.now.micros(), &mut session.soft_limit_since) {
            session.drop_output();
            self.hang_up(id);
        }
    }
}
