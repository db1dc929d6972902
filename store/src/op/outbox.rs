//! The relay's side of events to deliver.

use super::{Operation, Replies, Step, relay};
use crate::{OutboxEntry, Seq, Settings, codec};

/// `HGETALL`: all events to deliver, oldest first.
#[derive(Debug)]
pub struct PendingOutbox {
    key: String,
}

impl PendingOutbox {
    /// Of the whole store.
    pub fn new(settings: &Settings) -> Self {
        Self {
            key: settings.keys().outbox(),
        }
    }
}

impl Operation for PendingOutbox {
    const NAME: &'static str = "pending_outbox";

    type Output = Vec<OutboxEntry>;

    fn step(&mut self, replies: Replies) -> Step<Self::Output> {
        let decode = |field: &[u8], value: &[u8]| codec::decode_outbox(&self.key, field, value);
        relay::pending(&self.key, replies, decode, |entry| entry.seq)
    }
}

/// `HDEL`: takes one event off the list; whether it was there.
#[derive(Debug)]
pub struct AckOutbox {
    key: String,
    seq: Seq,
}

impl AckOutbox {
    /// The entry at this position.
    pub fn new(settings: &Settings, seq: Seq) -> Self {
        Self {
            key: settings.keys().outbox(),
            seq,
        }
    }
}

impl Operation for AckOutbox {
    const NAME: &'static str = "ack_outbox";

    type Output = bool;

    fn step(&mut self, replies: Replies) -> Step<bool> {
        relay::acknowledge(&self.key, self.seq, replies)
    }
}
