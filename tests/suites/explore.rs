//! The explorer: counted interleavings, faults, replay, shrinking, and what it refuses.

#![allow(
    clippy::unwrap_used,
    reason = "clients of a test may fail as loudly as its body"
)]

#[path = "explore/bugs.rs"]
mod bugs;
#[path = "explore/builder.rs"]
mod builder;
#[path = "explore/checks.rs"]
mod checks;
#[path = "explore/confirming.rs"]
mod confirming;
#[path = "explore/connections.rs"]
mod connections;
#[path = "explore/counter.rs"]
mod counter;
#[path = "explore/counting.rs"]
mod counting;
#[path = "explore/dpor.rs"]
mod dpor;
#[path = "explore/elements.rs"]
mod elements;
#[path = "explore/faults.rs"]
mod faults;
#[path = "explore/gates.rs"]
mod gates;
#[path = "explore/generated.rs"]
mod generated;
#[path = "explore/outside.rs"]
mod outside;
#[path = "explore/programs.rs"]
mod programs;
#[path = "explore/races.rs"]
mod races;
#[path = "explore/real_time.rs"]
mod real_time;
#[path = "explore/reports.rs"]
mod reports;
#[path = "explore/sampling.rs"]
mod sampling;
#[path = "explore/script.rs"]
mod script;
#[path = "explore/serial.rs"]
mod serial;
#[path = "explore/shrinking.rs"]
mod shrinking;
#[path = "explore/soundness.rs"]
mod soundness;
#[path = "explore/waiting.rs"]
mod waiting;
#[path = "explore/world.rs"]
mod world;
