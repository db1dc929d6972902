//! The hunt for lost updates: clients commit concurrently through the unmodified store, under every order of their commands or
//! a sample, with connections that break; what they leave is held against a sequential specification.
//!
//! # Layout
//! * [`scenario`]: what the clients do, and the explorer's view of it
//! * [`actor`]: one client; [`call`]: what it marks in the history
//! * [`spec`]: what must hold afterwards, clause by clause
//! * [`control`]: broken stores that must be caught
//! * [`runner`]: the hunt on the embedded server; [`live`]: on a real one; [`replay`]: one schedule again
//! * [`report`]: the tables; [`bytes`]: inputs of the fuzz target `schedule`
//! * [`target`]: the other fuzz targets, which have the fake alone; [`mutate`]: inputs for them on any compiler

pub mod actor;
pub mod bytes;
pub mod call;
pub mod control;
pub mod live;
pub mod mutate;
pub mod replay;
pub mod report;
pub mod runner;
pub mod scenario;
pub mod spec;
pub mod target;
