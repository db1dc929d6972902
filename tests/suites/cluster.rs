//! The store on a real Redis Cluster: three masters, three replicas. Both twins, while slots move and while a master is killed.

#![allow(
    clippy::unwrap_used,
    reason = "a test that can not go on has failed; the lint spares test functions only"
)]

#[path = "cluster/calls.rs"]
mod calls;
#[path = "cluster/failover.rs"]
mod failover;
#[path = "cluster/load.rs"]
mod load;
#[path = "cluster/moving.rs"]
mod moving;
#[path = "cluster/naive.rs"]
mod naive;
#[path = "cluster/proxy.rs"]
mod proxy;
#[path = "cluster/queues.rs"]
mod queues;
#[path = "cluster/sharded.rs"]
mod sharded;
#[path = "cluster/twin.rs"]
mod twin;
