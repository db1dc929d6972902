//! Other ways to the gate than the asynchronous [`super::Connection`]: blocking code on a thread of its own, and a byte stream
//! for clients that speak RESP themselves. Both leave their commands at the same lanes, so that a schedule means the same.

mod blocking;
mod coroutine;
mod wire;

pub use blocking::{BlockingClient, BlockingConnection, BlockingConnector, OnThread};
pub use wire::Stream;
