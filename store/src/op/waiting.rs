//! How much waits.

use redis::cmd;

use super::{Batch, Operation, Replies, Step, reply};
use crate::{Rejection, Settings, StoreError, WaitingCounts, codec};

/// `HLEN` of outbox and spawns, `ZCOUNT` of timers: how much waits, at a cost that does not depend on it.
#[derive(Debug)]
pub struct CountWaiting {
    keys: [String; 3],
    now: String,
}

impl CountWaiting {
    /// At this moment, in seconds since the epoch.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if it is not a number.
    pub fn new(settings: &Settings, now_s: f64) -> Result<Self, StoreError> {
        if now_s.is_nan() {
            return Err(StoreError::Invalid {
                what: "present time",
                reason: Rejection::NotFinite,
            });
        }
        let keys = settings.keys();
        Ok(Self {
            keys: [keys.outbox(), keys.spawns(), keys.timers()],
            now: codec::python_float(now_s),
        })
    }
}

impl Operation for CountWaiting {
    const NAME: &'static str = "count_waiting";

    type Output = WaitingCounts;

    fn step(&mut self, replies: Replies) -> Step<WaitingCounts> {
        let [outbox, spawns, timers] = &self.keys;
        if let Replies::Start = replies {
            let mut due = cmd("ZCOUNT");
            due.arg(timers).arg("-inf").arg(&self.now);
            return Step::Send(Batch::shared([
                cmd("HLEN").arg(outbox).take(),
                cmd("HLEN").arg(spawns).take(),
                due,
            ]));
        }
        let count = |value, command: &'static str, key: &str| {
            let count = reply::accepted(value, command, key)?;
            let count = reply::integer(&count).and_then(|count| count.try_into().ok());
            count.ok_or_else(|| reply::unexpected(command))
        };
        Step::Done(replies.harmless().and_then(|[events, starts, due]| {
            Ok(WaitingCounts {
                outbox: count(events, "HLEN", outbox)?,
                spawns: count(starts, "HLEN", spawns)?,
                due_timers: count(due, "ZCOUNT", timers)?,
            })
        }))
    }
}
