//! What is left of commits when the server dies, or the connection does, at any moment: each is there with all that it
//! brings, or not at all, and the caller is told which.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

#[path = "durability/crash.rs"]
mod crash;
#[path = "durability/cuts.rs"]
mod cuts;
#[path = "durability/ledger.rs"]
mod ledger;
#[path = "durability/twin.rs"]
mod twin;
