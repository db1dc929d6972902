//! What each kind of handler may touch.

use super::{Args, Row};
use crate::blocking::Wait;
use crate::clock::Timestamp;
use crate::config::Config;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::keyspace::{Keyspace, Typed};
use crate::session::SessionId;
use crate::value::Blob;
use crate::wire::{Reply, Request};

/// Who runs a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Caller {
    /// A client, directly.
    Client,
    /// EXEC, from a transaction's queue.
    Exec,
    /// A script's `redis.call`.
    Script,
}

/// What all kinds of call have: the words of the request, by position or by cursor.
pub(crate) trait Words<'a> {
    /// The running command's row.
    fn row(&self) -> &'static Row;

    /// The request, which outlives the call.
    fn request(&self) -> &'a Request;

    /// All words as an array, the command's name first. Errors: wrong number of arguments, if there are not just `N`.
    fn words<const N: usize>(&self) -> Result<[&'a [u8]; N], CommandError> {
        let request = self.request();
        if request.len() != N {
            return Err(self.wrong_arity());
        }
        Ok(std::array::from_fn(|at| {
            request.get(at).unwrap_or_default()
        }))
    }

    /// A cursor over the arguments behind the name (and a subcommand's name).
    fn args(&self) -> Args<'a> {
        Args::new(self.request(), self.row().name_words())
    }

    /// The error of a wrong number of arguments, with this command's name.
    fn wrong_arity(&self) -> CommandError {
        CommandError::WrongArity(self.row().full_name().into())
    }
}

/// What a `read` handler sees.
pub(crate) struct ReadCall<'a> {
    pub row: &'static Row,
    pub request: &'a Request,
    pub keyspace: &'a Keyspace,
    pub config: &'a Config,
    pub rng: &'a mut fastrand::Rng,
    pub now: Timestamp,
    pub caller: Caller,
    /// The key that woke the client whose command is run again; nothing at the first try.
    pub woken_by: Option<&'a [u8]>,
    /// What the handler waits for, if it cannot be served now.
    pub wait: Option<Wait>,
}

/// What a `write` handler may change.
pub(crate) struct WriteCall<'a> {
    pub row: &'static Row,
    pub request: &'a Request,
    pub keyspace: &'a mut Keyspace,
    pub config: &'a Config,
    pub rng: &'a mut fastrand::Rng,
    pub now: Timestamp,
    pub caller: Caller,
    /// The key that woke the client whose command is run again; nothing at the first try.
    pub woken_by: Option<&'a [u8]>,
    /// The user may look at keys that the request does not name.
    pub reads_any_key: bool,
    /// Set by [`WriteCall::wait_for`].
    pub wait: Option<Wait>,
}

impl WriteCall<'_> {
    /// Whether a blocking command may be served from `key` now: when it is run again, from none but the key that woke it.
    pub(crate) fn may_be_served_from(&self, key: &[u8]) -> bool {
        self.woken_by.is_none_or(|woken_by| woken_by == key)
    }

    /// The value of a key that a blocking command may be served from. Errors: `WRONGTYPE` at the first try; a client that waits
    /// goes on waiting if its key comes to hold another type.
    pub(crate) fn source<T: Typed>(&self, key: &[u8]) -> Result<Option<&T>, CommandError> {
        if !self.may_be_served_from(key) {
            return Ok(None);
        }
        match self.keyspace.peek::<T>(key) {
            Err(CommandError::WrongType) if self.woken_by.is_some() => Ok(None),
            found => found,
        }
    }

    /// Asks to be run again when one of `keys` was written, within `timeout_ms` (0: for ever). What the handler returns next to
    /// this is the reply at time-out, and the reply at once where nothing may block: in a transaction and in a script.
    pub(crate) fn wait_for(&mut self, keys: impl IntoIterator<Item = Blob>, timeout_ms: i64) {
        self.wait = Some(Wait {
            keys: keys.into_iter().collect(),
            timeout_ms,
            timeout_reply: None,
            rewritten: None,
            needs_key: false,
        });
    }

    /// After [`WriteCall::wait_for`]: the reply at time-out is another than that where nothing may block.
    pub(crate) fn time_out_with(&mut self, reply: Reply) {
        if let Some(wait) = &mut self.wait {
            wait.timeout_reply = Some(reply);
        }
    }
}

/// What a `control` handler reaches: the whole engine.
pub(crate) struct ControlCall<'a> {
    pub row: &'static Row,
    pub request: &'a Request,
    pub engine: &'a mut Engine,
    pub session: SessionId,
    pub caller: Caller,
    pub now: Timestamp,
}

impl<'a> Words<'a> for ReadCall<'a> {
    fn row(&self) -> &'static Row {
        self.row
    }

    fn request(&self) -> &'a Request {
        self.request
    }
}

impl<'a> Words<'a> for WriteCall<'a> {
    fn row(&self) -> &'static Row {
        self.row
    }

    fn request(&self) -> &'a Request {
        self.request
    }
}

impl<'a> Words<'a> for ControlCall<'a> {
    fn row(&self) -> &'static Row {
        self.row
    }

    fn request(&self) -> &'a Request {
        self.request
    }
}
