//! The relay's side of executions to start.

use super::{Operation, Replies, Step, relay};
use crate::{Seq, Settings, SpawnEntry, codec};

/// `HGETALL`: all executions to start, oldest first.
#[derive(Debug)]
pub struct PendingSpawns {
    key: String,
}

impl PendingSpawns {
    /// Of the whole store.
    pub fn new(settings: &Settings) -> Self {
        Self {
            key: settings.keys().spawns(),
        }
    }
}

impl Operation for PendingSpawns {
    const NAME: &'static str = "pending_spawns";

    type Output = Vec<SpawnEntry>;

    fn step(&mut self, replies: Replies) -> Step<Self::Output> {
        let decode = |field: &[u8], value: &[u8]| codec::decode_spawn(&self.key, field, value);
        relay::pending(&self.key, replies, decode, |entry| entry.seq)
    }
}

/// `HDEL`: takes one spawn off the list; whether it was there.
#[derive(Debug)]
pub struct AckSpawn {
    key: String,
    seq: Seq,
}

impl AckSpawn {
    /// The entry at this position.
    pub fn new(settings: &Settings, seq: Seq) -> Self {
        Self {
            key: settings.keys().spawns(),
            seq,
        }
    }
}

impl Operation for AckSpawn {
    const NAME: &'static str = "ack_spawn";

    type Output = bool;

    fn step(&mut self, replies: Replies) -> Step<bool> {
        relay::acknowledge(&self.key, self.seq, replies)
    }
}
