//! Operations without I/O: each call of a store as a state machine that says what to send next.
//!
//! An [`Operation`] is stepped with the [`Replies`] to its last [`Batch`] until it is done. The drivers
//! (`sync::run`, `aio::run`) do nothing but carry batches to a connection and replies back, so that the
//! protocol of each call exists once.
//!
//! # The contract of a driver
//! * A batch goes out in one write, in order, and is answered as a whole.
//! * [`Channel::Pinned`] batches of one operation all travel on the same connection, and nobody else writes to it from
//!   the first of them until the operation is done: `WATCH` belongs to a connection, not to a task.
//! * A batch is sent at most once. If its replies do not arrive (connection lost, time-out, half of a reply) the driver
//!   answers [`Replies::Lost`]; it answers [`Replies::Unsent`] only if no byte of it can have reached the server.
//! * After a lost pinned batch, further pinned batches of that operation are answered [`Replies::Unsent`], for the watch
//!   is gone with the connection.
//! * An operation that is abandoned half-way (its future dropped) may leave a watch: the next one must not see it.
//!
//! ```
//! use store::{Settings, op::{Load, Operation, Replies, Step}};
//!
//! let mut load = Load::new(&Settings::default(), "order-17");
//! let Step::Send(batch) = load.step(Replies::Start) else { panic!("a load asks first") };
//! assert_eq!(batch.len(), 1);
//! let Step::Done(Ok(None)) = load.step(Replies::Received(vec![redis::Value::Nil])) else { panic!("no row") };
//! ```

mod call;
mod check;
mod commit;
mod commit_script;
mod commit_watch;
mod dedupe;
mod fork;
mod index;
mod list;
mod load;
mod outbox;
mod purge;
mod relay;
pub mod reply;
mod resolve;
pub(crate) mod scan;
mod script;
mod spawns;
mod status;
mod sweep;
mod timers;
mod trace;
pub mod validate;
mod waiting;
mod writes;

use redis::{Cmd, Pipeline, RedisError, Value};

pub(crate) use self::call::Call;
pub use self::{
    check::Check,
    commit::CommitOperation,
    commit_script::CommitByScript,
    commit_watch::{CommitByWatch, Numbers},
    dedupe::IsProcessed,
    fork::Fork,
    index::{ListOrdered, RebuildIndex},
    list::{IdsWithPrefix, ListExecutions},
    load::{Load, LoadForEvent},
    outbox::{AckOutbox, PendingOutbox},
    purge::{Purge, PurgeMany},
    resolve::Resolve,
    script::Script,
    spawns::{AckSpawn, PendingSpawns},
    status::LoadStatus,
    sweep::SweepFinished,
    timers::{DeleteTimer, DueTimers},
    trace::{AppendTrace, ReadTrace},
    waiting::CountWaiting,
    writes::Writes,
};
use crate::{StoreError, Version};

/// One call of a store as a state machine.
pub trait Operation {
    /// What operations of this kind are called in spans and metrics, in snake case.
    const NAME: &'static str = "custom";

    /// What the call hands back.
    type Output;

    /// What this one is called, where those of a kind differ.
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// The version of the row that the call depends on, if it does on one.
    fn expected(&self) -> Option<Version> {
        None
    }

    /// Takes the replies to the last batch ([`Replies::Start`] at first) and says what to send next or how it ended.
    ///
    /// Not to be called again after [`Step::Done`].
    fn step(&mut self, replies: Replies) -> Step<Self::Output>;
}

/// What an operation wants.
#[derive(Debug)]
pub enum Step<T> {
    /// Send this and come back with the replies.
    Send(Batch),
    /// Finished.
    Done(Result<T, StoreError>),
}

/// What became of the last batch.
#[derive(Debug)]
pub enum Replies {
    /// There was none yet.
    Start,
    /// One reply for each command, in order; errors of the server are among them as values.
    Received(Vec<Value>),
    /// It did not leave this process: nothing can have happened.
    Unsent(RedisError),
    /// It was sent, at least in part, and the replies are not known: lost connection, time-out, unreadable reply.
    Lost(RedisError),
}

/// Which connection a batch needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channel {
    /// Any; other tasks may use it in between.
    Shared,
    /// The operation's own: from its first pinned batch to its end nobody else writes to it.
    Pinned,
}

/// Commands that travel in one write.
#[derive(Debug, Clone)]
pub struct Batch {
    pipeline: Pipeline,
    channel: Channel,
}

impl Batch {
    /// Commands that may travel on a connection that others use too.
    pub fn shared(commands: impl IntoIterator<Item = Cmd>) -> Self {
        Self::on(Channel::Shared, commands)
    }

    /// Commands that need the operation's own connection.
    pub fn pinned(commands: impl IntoIterator<Item = Cmd>) -> Self {
        Self::on(Channel::Pinned, commands)
    }

    /// Commands for this channel.
    pub fn on(channel: Channel, commands: impl IntoIterator<Item = Cmd>) -> Self {
        let mut pipeline = Pipeline::new();
        for command in commands {
            pipeline.add_command(command);
        }
        Self { pipeline, channel }
    }

    /// Which connection it needs.
    pub fn channel(&self) -> Channel {
        self.channel
    }

    /// The commands, in order.
    pub fn commands(&self) -> impl Iterator<Item = &Cmd> {
        self.pipeline.cmd_iter()
    }

    /// How many commands, and so how many replies.
    pub fn len(&self) -> usize {
        self.pipeline.len()
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.pipeline.is_empty()
    }

    /// The commands as redis' pipeline, which is not a transaction.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }
}

/// The error of an operation that is stepped after its end.
pub(crate) fn over<T>() -> Step<T> {
    Step::Done(Err(protocol_error("operation stepped after its end").into()))
}

/// An error of the conversation itself.
pub(crate) fn protocol_error(what: &'static str) -> RedisError {
    (redis::ErrorKind::UnexpectedReturnType, what).into()
}

#[cfg(test)]
mod tests;
