//! [`Bench`]: an engine of its own for each input, with small limits and a clock that stands still.

use fakeserver::clock::Timestamp;
use fakeserver::config::Config;
use fakeserver::engine::{Engine, Peer};
use fakeserver::session::SessionId;
use fakeserver::wire::{Protocol, Reply, Request, encode};

/// Instructions that a script may run, and bytes that it may have: enough for whatever a few thousand bytes mean.
const SCRIPT_INSTRUCTIONS_MAX: u64 = 2_000_000;
const SCRIPT_MEMORY_MAX: usize = 16 * 1024 * 1024;

/// Longest string that a request may make.
const STRING_LEN_MAX: i64 = 4 * 1024 * 1024;

/// Looks at a session's output before it is given up: each takes over a batch.
const BATCHES_MAX: usize = 1_000;

pub(super) struct Bench {
    pub engine: Engine,
    pub now: Timestamp,
}

impl Bench {
    pub(super) fn new() -> Bench {
        let config = Config {
            script_instructions_max: SCRIPT_INSTRUCTIONS_MAX,
            script_memory_max: SCRIPT_MEMORY_MAX,
            proto_max_bulk_len: STRING_LEN_MAX,
            ..Config::default()
        };
        let now = Timestamp::from_millis(1_700_000_000_000);
        Bench {
            engine: Engine::new(config, now),
            now,
        }
    }

    /// A client that exchanges bytes.
    pub(super) fn connect(&mut self) -> SessionId {
        self.engine.connect(Peer::default(), self.now)
    }

    /// All that waits to be sent to a client.
    pub(super) fn output(&mut self, id: SessionId) -> Vec<u8> {
        let mut out = Vec::new();
        for _ in 0..BATCHES_MAX {
            if !self.engine.poll_transmit(id, &mut out).more {
                break;
            }
            self.engine.resume(id, self.now);
        }
        out
    }

    /// Runs a command on a connection of its own.
    pub(super) fn call<T: AsRef<[u8]>>(&mut self, words: impl IntoIterator<Item = T>) -> Reply {
        let id = self.engine.connect_direct(Peer::default(), self.now);
        self.engine.submit(id, Request::new(words), self.now);
        let reply = self.engine.poll_reply(id);
        self.engine.disconnect(id);
        reply.unwrap_or(Reply::Nothing)
    }
}

/// A reply as RESP3 has it.
pub(super) fn bytes_of(reply: &Reply) -> Vec<u8> {
    let mut out = Vec::new();
    encode(reply, Protocol::Resp3, &mut out);
    out
}
