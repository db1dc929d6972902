//! Working off what commits leave behind: events to deliver, executions to start, timers that are due.
//!
//! Everything comes in bounded pages, so that the cost of a pass does not depend on how much waits; what nobody can read is
//! set aside instead of stopping everybody; and nothing is taken off that is not exactly what was read.
//!
//! # Keys
//! Beside those of store and transport; no id of an execution begins with `seq:`, so that no group's dead letters are here:
//!
//! | key | type | holds |
//! |---|---|---|
//! | `dead:seq:outbox`, `dead:seq:spawns` | hash | entries that nobody can read, by the field that they had |
//! | `dead:seq:timers` | sorted set | timers that nobody can fire, by the score that they had |
//!
//! # Once, as far as this relay goes
//! [`Deliver`] puts an event into its queue and takes it off the outbox in one script: two relays that have read the same
//! entry deliver it once. The Python relay publishes first and acknowledges afterwards, so that in a mixed fleet, or after a
//! restart from old data, an event may still come twice; its id is the same, and the store drops the second.

mod ack;
mod counters;
mod deliver;
mod page;
mod poison;
mod probe;
mod timers;

pub use self::{
    ack::AckEntry,
    counters::{RepairCounters, Repaired},
    deliver::{Deliver, Delivered, timeout_event},
    page::{Continuation, Entry, EntryPage, PAGE_MAX, PageStart, RelayPage},
    poison::{Origin, Poison, Quarantine},
    probe::{Probe, Waiting},
    timers::TimersPage,
};
