//! The sweeper's side of timers.

use redis::{Value, cmd};

use super::{Batch, Call, Operation, Replies, Step, reply, script::DELETE_TIMER, validate};
use crate::{DueTimer, Settings, StoreError, codec};

/// `ZRANGEBYSCORE`: all timers whose time has come, by time, then by name.
#[derive(Debug)]
pub struct DueTimers {
    key: String,
    now: String,
}

impl DueTimers {
    /// At this moment, in seconds since the epoch.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if it is not a number.
    pub fn new(settings: &Settings, now_s: f64) -> Result<Self, StoreError> {
        validate::present(now_s)?;
        Ok(Self {
            key: settings.keys().timers(),
            now: codec::python_float(now_s),
        })
    }

    fn timer(&self, (member, score): (Value, Value)) -> Result<DueTimer, StoreError> {
        let (Some(member), Some(fire_at_s)) = (reply::bytes(member), reply::double(&score)) else {
            return Err(reply::unexpected("ZRANGEBYSCORE"));
        };
        let (execution_id, path) = codec::decode_timer_member(&self.key, &member)?;
        Ok(DueTimer {
            execution_id,
            path,
            fire_at_s,
        })
    }
}

impl Operation for DueTimers {
    const NAME: &'static str = "due_timers";

    type Output = Vec<DueTimer>;

    fn step(&mut self, replies: Replies) -> Step<Self::Output> {
        if let Replies::Start = replies {
            let mut range = cmd("ZRANGEBYSCORE");
            range
                .arg(&self.key)
                .arg("-inf")
                .arg(&self.now)
                .arg("WITHSCORES");
            return Step::Send(Batch::shared([range]));
        }
        Step::Done(replies.harmless().and_then(|[timers]| {
            let timers = reply::accepted(timers, "ZRANGEBYSCORE", &self.key)?;
            let timers = reply::pairs(timers).ok_or_else(|| reply::unexpected("ZRANGEBYSCORE"))?;
            timers.into_iter().map(|pair| self.timer(pair)).collect()
        }))
    }
}

/// One script: removes a timer if it still has the time that the caller saw; whether it did.
///
/// Reading the score and removing the member in two steps would lose a timer that is re-armed in between.
#[derive(Debug)]
pub struct DeleteTimer {
    call: Call,
}

impl DeleteTimer {
    /// The timer of this execution and path, if it fires at this moment.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for an id with NUL, or a time that is not finite.
    pub fn new(
        settings: &Settings,
        id: &str,
        path: &str,
        fire_at_s: f64,
    ) -> Result<Self, StoreError> {
        validate::execution_id(settings, "execution id", id)?;
        validate::time("time of a timer", fire_at_s)?;
        let keys = settings.keys();
        let arguments = [keys.timer_member(id, path), codec::python_float(fire_at_s)];
        let arguments = arguments.map(String::into_bytes);
        Ok(Self {
            call: Call::new(&DELETE_TIMER, vec![keys.timers()], arguments),
        })
    }
}

impl Operation for DeleteTimer {
    const NAME: &'static str = "delete_timer";

    type Output = bool;

    fn step(&mut self, replies: Replies) -> Step<bool> {
        if let Some(batch) = self.call.next(&replies) {
            return Step::Send(batch);
        }
        let key = self.call.keys().first().map_or("", String::as_str);
        Step::Done(replies.harmless().and_then(|[removed]| {
            let removed = reply::accepted(removed, "EVALSHA", key)?;
            reply::integer(&removed)
                .map(|removed| removed != 0)
                .ok_or_else(|| reply::unexpected("EVALSHA"))
        }))
    }
}
