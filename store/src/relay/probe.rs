//! Whether anything waits.

use redis::cmd;

use crate::{
    Settings, StoreError,
    op::{Batch, Operation, Replies, Step, reply},
};

/// How much waits.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Waiting {
    /// Events to deliver.
    pub outbox: u64,
    /// Executions to start.
    pub spawns: u64,
    /// When the first timer fires, in seconds since the epoch.
    pub next_timer_s: Option<f64>,
    /// The server's present, in seconds since the epoch.
    pub now_s: f64,
}

/// `TIME`, `HLEN`, `HLEN`, `ZRANGE`, in one round trip that costs the same whatever waits: how much it is. Only reads.
#[derive(Debug)]
pub struct Probe {
    settings: Settings,
}

impl Probe {
    /// Of this store.
    pub fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
        }
    }

    fn waiting(&self, replies: Replies) -> Result<Waiting, StoreError> {
        let keys = self.settings.keys();
        let [time, outbox, spawns, timer] = replies.harmless()?;
        let time = reply::items(reply::accepted(time, "TIME", "")?);
        let time: Option<Vec<i64>> =
            time.and_then(|time| time.iter().map(reply::integer).collect());
        let Some([seconds, micros]) = time.as_deref() else {
            return Err(reply::unexpected("TIME"));
        };
        let timer = reply::accepted(timer, "ZRANGE", &keys.timers())?;
        let timer = reply::pairs(timer).ok_or_else(|| reply::unexpected("ZRANGE"))?;
        let next_timer_s = timer.first().and_then(|(_, score)| reply::double(score));
        Ok(Waiting {
            outbox: reply::count(outbox, "HLEN", &keys.outbox())?,
            spawns: reply::count(spawns, "HLEN", &keys.spawns())?,
            next_timer_s,
            now_s: *seconds as f64 + *micros as f64 / 1e6,
        })
    }
}

impl Operation for Probe {
    const NAME: &'static str = "probe";

    type Output = Waiting;

    fn step(&mut self, replies: Replies) -> Step<Waiting> {
        if let Replies::Start = replies {
            let keys = self.settings.keys();
            let mut first = cmd("ZRANGE");
            first.arg(keys.timers()).arg(0).arg(0).arg("WITHSCORES");
            return Step::Send(Batch::shared([
                cmd("TIME"),
                cmd("HLEN").arg(keys.outbox()).take(),
                cmd("HLEN").arg(keys.spawns()).take(),
                first,
            ]));
        }
        Step::Done(self.waiting(replies))
    }
}
