//! A store that is spread over partitions, for what outgrows one slot of a Redis Cluster, or one outbox.
//!
//! Each partition is a store of its own under the prefix `{P:0}`, `{P:1}` and so on (P is the prefix that is named), with its own
//! rows, outbox, spawns, timers and counters in a slot of its own. An execution lies in the partition that
//! [`Partitions::of`] computes from its id. What a commit writes stays in that partition, events for executions elsewhere and
//! executions to start elsewhere included: the relay takes them from there, as it does anyway.
//!
//! The number of partitions is fixed: `{P:layout}` holds `crc16/N`, noted by the first who opens the store, and a store that is
//! opened with another number is [`StoreError::Layout`](crate::StoreError::Layout). To change it, move the executions to a store
//! under another prefix.
//!
//! Sequence numbers count within a partition: an acknowledgement goes to the partition that the entry came from.
//!
//! This layout is ours: Python peers know nothing of it and must not share such a store. It works on a single server, too.

mod layout;
mod listing;

#[cfg(feature = "async")]
mod aio;
#[cfg(feature = "sync")]
mod sync;

#[cfg(feature = "async")]
pub use self::aio::AsyncShardedStore;
#[cfg(feature = "sync")]
pub use self::sync::ShardedStore;
pub use self::{
    layout::{Partition, Partitions, RecordLayout},
    listing::{ShardedCursor, ShardedPage},
};
