//! `client-output-buffer-limit`: how much output may wait for a client that does not read it.

use std::fmt;

/// Limits of one class of clients; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputLimit {
    /// Bytes at which the connection is closed at once.
    pub hard: u64,
    /// Bytes at which it is closed if that lasts.
    pub soft: u64,
    /// How long it may last, in seconds.
    pub soft_seconds: u64,
}

/// Limits of all classes, as `CONFIG GET` prints them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// Clients that do not subscribe.
    pub normal: OutputLimit,
    /// Replicas, of which there are none.
    pub replica: OutputLimit,
    /// Clients that subscribe.
    pub pubsub: OutputLimit,
}

impl Default for OutputLimits {
    fn default() -> OutputLimits {
        const MIB: u64 = 1024 * 1024;
        let limit = |hard, soft| OutputLimit {
            hard,
            soft,
            soft_seconds: 60,
        };
        OutputLimits {
            normal: OutputLimit::default(),
            replica: limit(256 * MIB, 64 * MIB),
            pubsub: limit(32 * MIB, 8 * MIB),
        }
    }
}

impl OutputLimits {
    /// The limits of a class, by its name.
    pub(crate) fn class_mut(&mut self, name: &[u8]) -> Option<&mut OutputLimit> {
        match name.to_ascii_lowercase().as_slice() {
            b"normal" => Some(&mut self.normal),
            b"slave" | b"replica" => Some(&mut self.replica),
            b"pubsub" => Some(&mut self.pubsub),
            _ => None,
        }
    }
}

impl OutputLimit {
    /// Whether so many waiting bytes end a connection at `now`; `since` is when the soft limit was reached, which this keeps.
    pub(crate) fn is_exceeded(&self, len: usize, now_micros: i64, since: &mut Option<i64>) -> bool {
        let len = len as u64;
        if self.hard > 0 && len >= self.hard {
            return true;
        }
        if self.soft == 0 || len < self.soft {
            *since = None;
            return false;
        }
        let began = *since.get_or_insert(now_micros);
        (now_micros - began) / 1_000_000 > self.soft_seconds as i64
    }
}

impl fmt::Display for OutputLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let classes = [
            ("normal", self.normal),
            (" slave", self.replica),
            (" pubsub", self.pubsub),
        ];
        classes.iter().try_for_each(|(name, limit)| {
            write!(
                f,
                "{name} {} {} {}",
                limit.hard, limit.soft, limit.soft_seconds
            )
        })
    }
}
