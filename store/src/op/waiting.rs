//! How much waits.

use redis::cmd;

use super::{Batch, Operation, Replies, Step, reply, validate};
use crate::{Settings, StoreError, WaitingCounts, codec};

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
        validate::present(now_s)?;
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
        Step::Done(replies.harmless().and_then(|[events, starts, due]| {
            Ok(WaitingCounts {
                outbox: reply::count(events, "HLEN", outbox)?,
                spawns: reply::count(starts, "HLEN", spawns)?,
                due_timers: reply::count(due, "ZCOUNT", timers)?,
            })
        }))
    }
}
