//! The store against a server: golden replay of the Python store's key spaces, and behaviour call by call. Every test runs
//! through both twins on each backend that is there.

#![allow(
    clippy::unwrap_used,
    reason = "a test that can not go on has failed; the lint spares test functions only"
)]

#[path = "store/atomic.rs"]
mod atomic;
#[path = "store/backend.rs"]
mod backend;
#[path = "store/bad_input.rs"]
mod bad_input;
#[path = "store/cancelling.rs"]
mod cancelling;
#[path = "store/cancelling_worker.rs"]
mod cancelling_worker;
#[path = "store/checks.rs"]
mod checks;
#[path = "store/commits.rs"]
mod commits;
#[path = "store/creation.rs"]
mod creation;
#[path = "store/deliveries.rs"]
mod deliveries;
#[path = "store/dialects.rs"]
mod dialects;
#[path = "store/documents.rs"]
mod documents;
#[path = "store/faults.rs"]
mod faults;
#[path = "store/foreign.rs"]
mod foreign;
#[path = "store/forks.rs"]
mod forks;
#[path = "store/golden.rs"]
mod golden;
#[path = "store/keyspace.rs"]
mod keyspace;
#[path = "store/listing.rs"]
mod listing;
#[path = "store/meddling.rs"]
mod meddling;
#[path = "store/naive.rs"]
mod naive;
#[path = "store/numbers.rs"]
mod numbers;
#[path = "store/observing.rs"]
mod observing;
#[path = "store/overheard.rs"]
mod overheard;
#[path = "store/pages.rs"]
mod pages;
#[path = "store/pools.rs"]
mod pools;
#[path = "store/purge.rs"]
mod purge;
#[path = "store/relay.rs"]
mod relay;
#[path = "store/resolving.rs"]
mod resolving;
#[path = "store/retry.rs"]
mod retry;
#[path = "store/sharded_workers.rs"]
mod sharded_workers;
#[path = "store/spellings.rs"]
mod spellings;
#[path = "store/tails.rs"]
mod tails;
#[path = "store/transport.rs"]
mod transport;
#[path = "store/transport_faults.rs"]
mod transport_faults;
#[path = "store/transport_golden.rs"]
mod transport_golden;
#[path = "store/transport_model.rs"]
mod transport_model;
#[path = "store/transport_naive.rs"]
mod transport_naive;
#[path = "store/twin.rs"]
mod twin;
#[path = "store/twin_relay.rs"]
mod twin_relay;
#[path = "store/upkeep.rs"]
mod upkeep;
#[path = "store/worker.rs"]
mod worker;
#[path = "store/worker_crash.rs"]
mod worker_crash;
#[path = "store/worker_naive.rs"]
mod worker_naive;
#[path = "store/workers.rs"]
mod workers;
