//! A durable store of executions over Redis: versioned compare-and-swap commits with a transactional outbox, dedupe marks,
//! spawn intents, timers and a trace ring.
//!
//! `RedisStore` (feature `sync`, on by default) blocks, `AsyncRedisStore` (feature `async`) awaits; both run the same operations ([`op`]), which do
//! no I/O. Key names, values and the order of commands are those of the Python store of the same design, so that both can
//! work on one Redis.
//!
//! # Layout
//! * [`execution`](Execution), [`commit`](Commit), entries: the types that go in and come out.
//! * [`keys`]: names of keys. [`codec`]: values to types and back.
//! * [`op`]: the calls as state machines. `sync`, `aio`: their drivers.
//! * `cluster`, `sharded` (feature `cluster`): connections to a Redis Cluster; a store over many slots.
//! * [`transport`]: queues of events beside the store, with the same drivers.
//! * [`relay`]: pages of what commits leave behind, and its way into the queues.
//! * `worker`: claim, load, decide, commit, relay, acknowledge. [`RetryPolicy`]: trying again within bounds.
//! * `Observer` (features `tracing`, `metrics`): what is told about calls.
//! * [`StoreError`]: what can go wrong, and whether trying again is safe.
//!
//! # Keys
//! Under the prefix (`stm` unless told otherwise):
//!
//! | key | type | holds |
//! |---|---|---|
//! | `exe:{id}` | string | the execution as JSON, its version inside |
//! | `outbox` | hash | events to deliver, by seq |
//! | `spawns` | hash | executions to start, by seq |
//! | `outbox:seq`, `spawns:seq` | string | the last seq handed out |
//! | `processed:{id}` | set | ids of the events that were handled |
//! | `timers` | sorted set | id, NUL, path, by time in seconds |
//! | `trace:{id}` | list | the last steps, oldest first |
//! | `trace:seq:{id}` | string | how many steps were numbered |
//! | `index` | sorted set | ids by the time of their first commit; only with [`Index::Ordered`] |
//!
//! # Guarantees
//! * A commit lands only on the version that its execution was loaded at, and then with all of its effects.
//! * The execution in memory changes its version only if the commit is known to have landed.
//! * A write whose reply was lost is reported as such, never as a conflict, and is never sent twice.
//! * Input that would break one of these is refused before Redis is asked.

mod attempt;
mod commit;
#[cfg(any(feature = "sync", feature = "async"))]
mod control;
mod dialect;
mod document;
#[cfg(any(feature = "sync", feature = "async"))]
mod driver;
mod entry;
mod error;
mod execution;
mod instance;
mod listing;
#[cfg(any(feature = "sync", feature = "async"))]
mod observe;
mod settings;

#[cfg(feature = "async")]
pub mod aio;
#[cfg(all(feature = "cluster", any(feature = "sync", feature = "async")))]
pub mod cluster;
pub mod codec;
pub mod keys;
pub mod op;
pub mod relay;
#[cfg(any(feature = "sync", feature = "async"))]
mod retry;
#[cfg(all(feature = "cluster", any(feature = "sync", feature = "async")))]
pub mod sharded;
#[cfg(feature = "sync")]
pub mod sync;
pub mod transport;
#[cfg(any(feature = "sync", feature = "async"))]
pub mod worker;

#[cfg(feature = "async")]
pub use self::aio::AsyncRedisStore;
#[cfg(any(feature = "sync", feature = "async"))]
pub use self::observe::Observer;
#[cfg(all(any(feature = "sync", feature = "async"), feature = "metrics"))]
pub use self::observe::{Clock as ObserverClock, describe_metrics};
#[cfg(feature = "sync")]
pub use self::sync::RedisStore;
pub use self::{
    attempt::{Attempt, Resolution},
    commit::{Commit, Committed, Emit, Seq, SpawnIntent, TimerOp},
    dialect::Dialect,
    document::{Document, Forkable, RowTail},
    entry::{
        Cursor, DueTimer, ExecutionPage, ExecutionSummary, ListFilter, OrderedCursor, OrderedPage,
        OutboxEntry, SpawnEntry, Sweep, SweptPage, Undated, UnreadableRow, WaitingCounts,
    },
    error::{FailedCommand, Rejection, StoreError, Unfit},
    execution::{ChildState, Event, Execution, Status, Unknown, Version},
    instance::Instance,
    listing::{Listing, SEEN_MAX_DEFAULT},
    settings::{CommitPath, Index, RETENTION_MIN, Settings, Strictness, TRACE_MAX_DEFAULT},
};
#[cfg(any(feature = "sync", feature = "async"))]
pub use self::{
    control::{control_event, request_cancel},
    retry::{Decision, Pacing, Retried, RetryPolicy, Round},
};
