//! `Session`: what the server knows of one connection.

use std::collections::VecDeque;

use crate::acl::UserId;
use crate::blocking::Blocked;
use crate::command::Row;
use crate::keyspace::DbIndex;
use crate::reply_buffer::ReplyBuffer;
use crate::value::Blob;
use crate::wire::{Protocol, Reply, Request, RequestDecoder, encode};

/// A connection's number, as `CLIENT ID` answers it: never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// Where a session's replies go.
#[derive(Debug)]
pub(crate) enum Sink {
    /// Encoded, for a byte stream.
    Wire(Vec<u8>),
    /// As values, for a driver without a byte stream.
    Values(VecDeque<Reply>),
}

/// What `CLIENT REPLY` asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Silence {
    /// Replies are sent.
    #[default]
    None,
    /// No replies until further notice.
    Off,
    /// The running command asked for silence after the next one.
    SkipNext,
    /// The running command is not answered.
    Skip,
}

/// A command that waits for EXEC.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub row: &'static Row,
    pub request: Request,
}

/// The state of `MULTI`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transaction {
    pub queue: Vec<Queued>,
    /// A command could not be queued, so EXEC will be refused.
    pub dirty_exec: bool,
}

/// One connection.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are independent of each other"
)]
#[derive(Debug)]
pub(crate) struct Session {
    pub id: SessionId,
    pub db: DbIndex,
    pub protocol: Protocol,
    pub name: Blob,
    /// Peer and own address as `CLIENT LIST` prints them.
    pub address: Box<str>,
    pub local_address: Box<str>,
    pub user: UserId,
    pub authenticated: bool,
    pub transaction: Option<Transaction>,
    pub blocked: Option<Blocked>,
    /// Its next request is held back by `CLIENT PAUSE`.
    pub postponed: bool,
    pub silence: Silence,
    /// `CLIENT NO-EVICT`.
    pub no_evict: bool,
    /// The connection is to be closed once what is in the sink has been sent.
    pub closing: bool,
    /// More requests are there, but the output has to be sent first.
    pub held_back: bool,
    /// Since when more than the soft limit of output has waited, microseconds since the epoch.
    pub soft_limit_since: Option<i64>,
    pub decoder: RequestDecoder,
    /// Bytes of the input that the running batch was read from.
    pub received: usize,
    /// Requests of a driver without a byte stream that arrived while the session was blocked.
    pub pending: VecDeque<Request>,
    pub sink: Sink,
    /// What the driver has taken of the output and the peer does not take, in bytes.
    pub unsent: usize,
    pub reply_buffer: ReplyBuffer,
    /// When the connection was made and when it last sent a command, microseconds since the epoch.
    pub connected_at: i64,
    pub active_at: i64,
    /// Full name of the last command, for `CLIENT LIST`.
    pub last_command: Option<&'static Row>,
}

impl Session {
    /// Whether the client wants no replies now.
    pub(crate) fn is_silenced(&self) -> bool {
        matches!(self.silence, Silence::Off | Silence::Skip)
    }

    /// Hands a reply to the connection, unless the client wants none.
    pub(crate) fn send(&mut self, reply: Reply) {
        if self.is_silenced() {
            return self.send_pushes(reply);
        }
        self.deliver(reply);
    }

    /// What a client that wants no replies still gets.
    fn send_pushes(&mut self, reply: Reply) {
        match reply {
            Reply::Push(_) => self.deliver(reply),
            Reply::Several(several) => several
                .into_iter()
                .for_each(|reply| self.send_pushes(reply)),
            _ => {}
        }
    }

    /// Hands a reply to the connection, whether the client wants one or not.
    pub(crate) fn deliver(&mut self, reply: Reply) {
        match (&mut self.sink, reply) {
            (_, Reply::Nothing) => {}
            (Sink::Wire(out), reply) => encode(&reply, self.protocol, out),
            (Sink::Values(replies), Reply::Several(several)) => replies.extend(several),
            (Sink::Values(replies), reply) => replies.push_back(reply),
        }
    }

    /// Forgets what waits to be sent.
    pub(crate) fn drop_output(&mut self) {
        match &mut self.sink {
            Sink::Wire(out) => *out = Vec::new(),
            Sink::Values(replies) => replies.clear(),
        }
    }

    /// Bytes that wait to be sent.
    pub(crate) fn output_len(&self) -> usize {
        match &self.sink {
            Sink::Wire(out) => self.unsent + out.len(),
            Sink::Values(_) => 0,
        }
    }

    /// Ends the effect of `CLIENT REPLY SKIP` one command later.
    pub(crate) fn command_done(&mut self) {
        self.silence = match self.silence {
            Silence::SkipNext => Silence::Skip,
            Silence::Skip => Silence::None,
            silence => silence,
        };
    }

    /// Forgets all that the client has set up (`RESET`).
    pub(crate) fn reset(&mut self, authenticated: bool) {
        self.db = DbIndex::default();
        self.protocol = Protocol::Resp2;
        self.name = Blob::default();
        self.transaction = None;
        self.user = UserId::DEFAULT;
        self.authenticated = authenticated;
        self.silence = Silence::None;
        self.no_evict = false;
    }

    /// Whether something waits to be sent, or the connection to be closed.
    pub(crate) fn has_output(&self) -> bool {
        self.closing
            || match &self.sink {
                Sink::Wire(out) => !out.is_empty(),
                Sink::Values(replies) => !replies.is_empty(),
            }
    }
}
