//! The explorer: counted interleavings, faults, replay, shrinking, and what it refuses.

#![allow(
    clippy::unwrap_used,
    reason = "clients of a test may fail as loudly as its body"
)]

#[path = "explore/connections.rs"]
mod connections;
#[path = "explore/counter.rs"]
mod counter;
#[path = "explore/counting.rs"]
mod counting;
#[path = "explore/faults.rs"]
mod faults;
#[path = "explore/reports.rs"]
mod reports;
#[path = "explore/soundness.rs"]
mod soundness;
