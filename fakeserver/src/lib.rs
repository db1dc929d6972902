//! In-memory Redis-protocol test double: answers as redis-server 7.0.15 does, with its clock and the order in which
//! concurrent clients' commands run in the test's hands.
//!
//! # Layout
//! * [`Server`]: the handle that tests use
//! * [`engine`]: the server without input and output; everything below is reached through it
//! * [`wire`]: requests and replies, RESP2 and RESP3
//! * [`command`]: the command table, one file per family
//! * [`keyspace`]: databases, typed access, the one door for changes
//! * [`value`]: what a key can hold
//! * `explore` (feature `explore`): every order of concurrent clients' commands, or a sample
//! * `sweep` (feature `sweep`): two programs in any language under every single preemption
//! * [`session`], [`error`], [`config`], [`clock`]: what the names say

pub mod clock;
pub mod command;
pub mod config;
pub mod engine;
pub mod error;
#[cfg(feature = "explore")]
pub mod explore;
pub mod keyspace;
pub mod session;
pub mod value;
pub mod wire;

mod acl;
mod blocking;
mod calls;
mod client_caches;
mod control;
#[cfg(feature = "net")]
mod dial;
mod dispatch;
mod driving;
mod dump;
mod durations;
mod eviction;
mod faults;
#[cfg(any(feature = "explore", feature = "sweep"))]
mod footprint;
mod latency_events;
mod links;
#[cfg(feature = "mutants")]
pub mod mutant;
#[cfg(feature = "net")]
mod net;
mod observe;
pub mod output_limits;
mod pause;
mod payload;
#[cfg(feature = "explore")]
mod peek;
mod pubsub;
#[cfg(feature = "redis")]
pub mod redis_client;
#[cfg(any(feature = "explore", all(feature = "sweep", unix)))]
#[cfg_attr(
    not(all(feature = "explore", feature = "sweep", unix)),
    allow(
        dead_code,
        unused_imports,
        reason = "the sweep and the explorer each need a part of it"
    )
)]
mod remote;
mod reply_buffer;
#[cfg(any(feature = "explore", all(feature = "sweep", unix)))]
#[cfg_attr(
    not(all(feature = "explore", feature = "sweep", unix)),
    allow(
        dead_code,
        unused_imports,
        reason = "the sweep and the explorer each need a part of it"
    )
)]
mod report;
mod resolve;
mod running;
#[cfg(feature = "lua")]
mod script;
mod server;
mod shared;
mod sleep;
mod slowlog;
mod stats;
#[cfg(all(feature = "sweep", unix))]
pub mod sweep;

pub use clock::Clock;
pub use config::Config;
pub use control::Failure;
pub use error::CommandError;
#[cfg(feature = "net")]
pub use server::StartError;
pub use server::{Builder, Server};
pub use wire::Reply;
