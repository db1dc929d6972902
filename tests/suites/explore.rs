//! The explorer: counted interleavings, faults, replay, shrinking, and what it refuses.

#[path = "explore/counter.rs"]
mod counter;
#[path = "explore/counting.rs"]
mod counting;
#[path = "explore/faults.rs"]
mod faults;
#[path = "explore/reports.rs"]
mod reports;
