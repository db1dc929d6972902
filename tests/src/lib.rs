//! Harness for everything that needs both packages: servers to run on, transcripts, random programs.
//!
//! # Layout
//! * [`server`]: the fake in memory, the fake over TCP and the real redis-server behind one door
//! * [`cluster`]: a real Redis Cluster
//! * [`raw`], [`frame`], [`compare`]: a connection of bytes, replies taken apart, and when two count as the same
//! * [`peer`]: the Python store and transport in a process of their own
//! * [`fleet`]: what the workers of a mixed fleet do with an event, and what must be left in the end
//! * [`proxy`]: a relay that cuts, withholds and holds; [`local`]: a redis-server that a test may kill
//! * [`transcript`]: `.resp` files, run and recorded
//! * [`json`], [`compatibility`]: what a server says of its commands, and which options the transcripts show
//! * [`program`]: random programs drawn from the command table
//! * [`differential`]: two servers, one program; [`mutants`]: faulty engines that it has to notice

pub mod cluster;
pub mod compare;
pub mod compatibility;
pub mod differential;
pub mod fleet;
pub mod frame;
pub mod json;
pub mod local;
pub mod mutants;
pub mod peer;
pub mod program;
pub mod proxy;
pub mod raw;
pub mod server;
pub mod transcript;

/// The same call of either twin; the asynchronous one's on its runtime. For enums of `Sync(twin)` and `Async(runtime, twin)`.
#[macro_export]
macro_rules! both {
    ($twin:ident.$method:ident($($argument:expr),*)) => {
        match $twin {
            Self::Sync(twin) => twin.$method($($argument),*),
            Self::Async(runtime, twin) => runtime.block_on(twin.$method($($argument),*)),
        }
    };
}

/// The examples of the README, which are compiled and run as they stand there.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
