//! What nobody can read, and where it goes.

use std::fmt;

use super::ack::script_answer;
use crate::{
    Settings, StoreError,
    keys::Keys,
    op::{Call, Operation, Replies, Script, Step},
};

static QUARANTINE: Script = Script::new(concat!(
    include_str!("../transport/lua/prelude.lua"),
    include_str!("lua/quarantine.lua")
));

/// Where something waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Events to deliver.
    Outbox,
    /// Executions to start.
    Spawns,
    /// Timers.
    Timers,
}

impl Origin {
    /// Its key.
    pub fn key(self, keys: &Keys) -> String {
        match self {
            Self::Outbox => keys.outbox(),
            Self::Spawns => keys.spawns(),
            Self::Timers => keys.timers(),
        }
    }

    /// Where goes what nobody can read.
    pub fn dead_key(self, keys: &Keys) -> String {
        keys.dead(match self {
            Self::Outbox => "seq:outbox",
            Self::Spawns => "seq:spawns",
            Self::Timers => "seq:timers",
        })
    }

    pub(super) fn counter(self, keys: &Keys) -> String {
        match self {
            Self::Outbox => keys.outbox_seq(),
            Self::Spawns | Self::Timers => keys.spawns_seq(),
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Outbox | Self::Spawns => "hash",
            Self::Timers => "zset",
        }
    }
}

/// Something that waits and that nobody can work off.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Poison {
    /// Where it is.
    pub origin: Origin,
    /// Field of the hash, or member of the sorted set.
    pub name: Vec<u8>,
    /// Value of the field, or score of the member in decimal.
    pub value: Vec<u8>,
    /// What is wrong with it.
    pub reason: String,
}

impl Poison {
    pub(crate) fn new(origin: Origin, name: Vec<u8>, value: Vec<u8>, error: &StoreError) -> Self {
        let reason = match error {
            StoreError::Corrupt { reason, .. } => reason.clone(),
            other => other.to_string(),
        };
        Self {
            origin,
            name,
            value,
            reason,
        }
    }
}

impl fmt::Debug for Poison {
    /// Without the value: what a caller stores does not belong into a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poison")
            .field("origin", &self.origin)
            .field("name", &String::from_utf8_lossy(&self.name))
            .field("value_len", &self.value.len())
            .field("reason", &self.reason)
            .finish()
    }
}

/// One script: moves an entry that nobody can work off to [`Origin::dead_key`], if it is still what was read; whether it was.
///
/// Whatever goes wrong with the connection is [`StoreError::Io`]: a repetition moves nothing else.
#[derive(Debug)]
pub struct Quarantine {
    call: Call,
}

impl Quarantine {
    /// Of this one.
    pub fn new(settings: &Settings, poison: &Poison) -> Self {
        let (keys, origin) = (settings.keys(), poison.origin);
        let arguments = vec![
            origin.kind().as_bytes().to_vec(),
            poison.name.clone(),
            poison.value.clone(),
        ];
        let keys = vec![origin.key(keys), origin.dead_key(keys)];
        Self {
            call: Call::new(&QUARANTINE, keys, arguments),
        }
    }
}

impl Operation for Quarantine {
    const NAME: &'static str = "quarantine";

    type Output = bool;

    fn step(&mut self, replies: Replies) -> Step<bool> {
        script_answer(&mut self.call, replies)
    }
}
