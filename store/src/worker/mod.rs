//! A worker: claims an event, loads its execution, lets a handler decide, commits, relays what the commit left, acknowledges;
//! and sweeps up what others have left.
//!
//! `Worker` (feature `sync`) blocks, `AsyncWorker` (feature `async`) awaits. Queues are those of [`transport`](crate::transport),
//! on the same Redis and under the same prefix as the store: so an event goes from the outbox into its queue in one script
//! ([`Deliver`](crate::relay::Deliver)), and workers of the Python runner may share everything.
//!
//! # What happens to an event
//! | found | done |
//! |---|---|
//! | no row, or the event is marked as processed | acknowledged |
//! | the row refuses it ([`Conduct::admit`]: cancelled, suspended) | acknowledged, or given back for a while |
//! | the handler commits, and it lands | what was emitted is delivered, what was spawned is created, then acknowledged |
//! | conflict | given back at once, to be decided anew |
//! | reply to the commit lost | resolved; acknowledged if it landed, else given back |
//! | a row or a commit that trying again does not help | parked: given back for a while, and reported |
//! | connection lost | nothing: the lease ends, and another worker claims the event |
//!
//! # If a worker dies
//! Whatever it was at, nothing is lost and nothing is applied twice. Before the commit: the lease ends, and the event is
//! handled by another one. After it: the event is marked, so that its next delivery is acknowledged unseen; what the commit
//! has left in outbox and spawns is found by any worker's sweep, at its start, whenever it finds nothing to claim, and from
//! time to time when it never does.
//!
//! # Over partitions
//! `Worker::sharded` and `AsyncWorker::sharded` work at all partitions of a [sharded store](crate::sharded), a turn at each in turn, with
//! queues of its own in each. An event for an execution in another partition, and an execution to start there, cross in two
//! steps: queued or created there, then taken off here. A worker that dies in between, or another one that is at the same entry,
//! makes it come twice; the mark of the event's id drops the second. (An event without an id, which only others write, is not
//! marked.) A worker that has nothing to do looks at each partition once in a pause.
//!
//! # Stopping
//! [`StopHandle::stop`] lets the worker finish the event that it has claimed; it claims no other.

mod core;
mod handler;
mod options;
mod rounds;
mod sweep;
mod tenure;
mod territory;
mod turn;

#[cfg(feature = "async")]
mod aio;
#[cfg(feature = "sync")]
mod sync;

#[cfg(feature = "async")]
pub use self::aio::AsyncWorker;
#[cfg(feature = "sync")]
pub use self::sync::Worker;
#[cfg(feature = "cluster")]
pub(crate) use self::territory::Territory;
pub use self::{
    handler::{Admission, AsyncHandler, Conduct, Handler, Trouble, Verdict, child_of},
    options::{StopHandle, WorkerOptions},
    turn::{Handling, Swept, Turn},
};
