//! Queues of events on the same Redis: one per group (an execution), one event of a group at a time in the hands of a worker.
//!
//! `RedisTransport` (feature `sync`) blocks, `AsyncRedisTransport` (feature `async`) awaits. Keys and values are those of the
//! Python transport of the same design, so that both kinds of workers can share queues; no key is also one of the store's.
//!
//! # Keys
//! | key | type | holds |
//! |---|---|---|
//! | `q:{group}` | list | events as JSON, oldest first |
//! | `lock:{group}` | string | the token of the lease, with its time to live: lease and fence in one |
//! | `ready:{0..4}` | sorted set | groups of a priority, by the time in milliseconds at which they are next claimable; 0 is at once |
//! | `prio` | hash | the priority of each group that has events: that of its first event since it was last drained |
//! | `dead:{group}` | list | what was in the queue and is no event; the Python transport does not know this key |
//! | `tries:{group}` | string | with [`Deliveries`] counted: how often the event at the head of the queue was delivered, a colon, its SHA-1; nor this one |
//!
//! # Guarantees
//! * Each call is one script: it happens wholly or not at all.
//! * A lease is a fence: once it has ended or passed to another worker, neither `ack` nor `nack` nor `extend` of its former
//!   holder changes anything, and each says so.
//! * What is due is decided by the server's clock; the worker's does not matter.
//! * Claiming and settling go on when the server's memory is full; only publishing is refused.
//! * An event that nobody can read blocks its group for one claim only.
//! * On a cluster all keys must have one tag, as in the prefix `{stm}`; else [`StoreError::Invalid`], and nothing is written.
//!
//! # Twice, but not never
//! An event is delivered at least once. A relay publishes before it acknowledges the outbox entry, and repeats after a lost
//! reply; a lease that ends while its holder still works passes the event on. The consumer drops what it has handled: the
//! store notes the event's id with the commit (`processed`), and refuses the second commit by its version.
//!
//! Among Python workers one more reason comes with them: their `nack` is not one step, and one whose lease ends in the middle of
//! it removes the lock of whoever has the group by then, ours too. Ours never does that to anybody.
//!
//! # Waiting
//! There is no blocking claim. A claim that finds nothing says when the first waiting group becomes claimable
//! ([`Claimed::next_ready`]), in the same round trip; a worker sleeps until then at most, and less if it wants to notice
//! newly published events sooner.

use std::time::Duration;

mod call;
mod claim;
mod clock;
mod figures;
mod keys;
mod lease;
mod publish;
mod settle;

#[cfg(feature = "async")]
mod aio;
#[cfg(feature = "sync")]
mod sync;

#[cfg(feature = "async")]
pub use self::aio::AsyncRedisTransport;
#[cfg(feature = "sync")]
pub use self::sync::RedisTransport;
pub use self::{
    claim::{BURIALS_MAX, Claim},
    clock::{Clock, Tokens},
    figures::{DiscardDeadLetter, QueueLength, ReadBacklog, ReadDeadLetters},
    lease::{Backlog, Claimed, DeadLetter, Deliveries, Lease, NextReady, Priority, TierBacklog},
    publish::Publish,
    settle::Settle,
};
use crate::{Rejection, StoreError};

/// Longest lease or pause, in milliseconds: a present of today and this are exact in sum as a double.
const DURATION_MS_MAX: u128 = 1 << 52;

/// A duration as Redis takes it: whole milliseconds, at least one.
fn milliseconds(what: &'static str, duration: Duration) -> Result<u64, StoreError> {
    let whole = duration.as_millis().max(1);
    if whole > DURATION_MS_MAX {
        return Err(StoreError::Invalid {
            what,
            reason: Rejection::OutOfRange,
        });
    }
    Ok(whole as u64)
}

#[cfg(test)]
mod tests;
