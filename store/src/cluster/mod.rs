//! Redis Cluster: connections that find the node of a store's slot, and stores that are spread over many slots.
//!
//! All keys of a store change together, so that they must lie in one slot: the prefix needs a `{tag}` that is not empty, as in
//! `{orders}` or `shop:{orders}`. Without one every call is [`Invalid`](crate::StoreError::Invalid) before anything is sent. A
//! store that outgrows a slot is a sharded one ([`crate::sharded`]).
//!
//! ```no_run
//! use store::{Execution, RedisStore, Settings};
//!
//! let nodes = ["redis://10.0.0.1:7000/", "redis://10.0.0.2:7000/"];
//! let mut store = RedisStore::cluster(nodes, Settings::new("{orders}")?)?;
//! store.save(&mut Execution::new("order-17", "order"))?;
//! # Ok::<(), store::StoreError>(())
//! ```
//!
//! # What is sent again
//! Redis-rs' own cluster clients send a request again after a lost connection or a time-out, be it one that ran: a commit would
//! conflict with itself. So the connections here are single ones of redis-rs to nodes, and a command is sent again only
//!
//! * if a node has answered that it did not run it: `MOVED`, `ASK`, `TRYAGAIN`, `CLUSTERDOWN`, `MASTERDOWN`, `READONLY`, `LOADING`;
//! * if the node could not be reached, so that nothing went out;
//! * and in a batch with several commands only if those behind it that did run have only read.
//!
//! A cluster connection of redis-rs' own may be handed to a store like any other connection, if it was built with `retries(0)`; it
//! then follows no redirection, and a call that meets one fails.
//!
//! A lost reply is lost, and reported as on a single server. Redirections are bounded in number, pauses in total
//! (`Cluster::patience`); what a node said last is then the error, and a retry is safe.
//!
//! # While a slot moves
//! Reads of one key follow the key. Redis answers `TRYAGAIN` to whatever names several keys until all of them are on one node,
//! and counts keys that do not exist as missing: commits and listings wait until the move of their slot is done, or fail as
//! [`Refused`](crate::StoreError::Refused) when patience ends. Move slots of stores in one go.
//!
//! A listing is bound to the node that it began on; when the slot is elsewhere before it ends it fails, and has to begin again. A
//! listing that goes on in another process than it began in is not watched in this way, and neither is the walk of a purge over the
//! outbox, spawns and timers: what it misses stays, addressed to nobody.
//!
//! # When a master fails
//! Replication is asynchronous: the replica that takes over may lack the last commits that were acknowledged, all of a commit or
//! none of it, since a script or a transaction is replicated as one. A worker that still holds the later version then gets
//! [`Conflict`](crate::StoreError::Conflict) with a smaller version, or no row.
//!
//! A version counts within one history: once others have come to the same number again, nothing tells the holder of a lost version
//! from them. So a write never goes from a node that was not reached to the one that took over: the call ends as
//! [`Io`](crate::StoreError::Io), and the next attempt has to begin with a load. Do not keep a document over a fail-over while other
//! calls go on.
//!
//! Counters may go back with the rest: a position may be given to another event than before.
//!
//! # Watching
//! A commit that watches ([`CommitPath`](crate::CommitPath)) has a connection of its own to the slot's node. It follows no
//! redirection, since a watch belongs to a connection: it fails as `Refused`, nothing is written, and the next call finds the node.

mod chart;
mod course;
mod slot;

#[cfg(feature = "async")]
pub mod aio;
#[cfg(feature = "sync")]
pub mod sync;

pub use self::{
    chart::Address,
    slot::{Slot, tag_of},
};

#[cfg(test)]
mod tests;
