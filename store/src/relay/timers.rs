//! Bounded pages of due timers.

use redis::{Value, cmd};

use super::{
    Origin, PAGE_MAX, Poison, RelayPage,
    page::{Continuation, PageStart, Place},
};
use crate::{
    DueTimer, Settings, StoreError, codec,
    op::{Batch, Operation, Replies, Step, reply, validate},
};

/// `ZCOUNT` and `ZRANGEBYSCORE` with a `LIMIT`, in one round trip: a page of the timers whose time has come, by time, then by
/// name. Only reads.
#[derive(Debug)]
pub struct TimersPage {
    settings: Settings,
    key: String,
    now: String,
    /// Score and how many of that score to leave out.
    from: Option<(f64, u64)>,
    limit: u32,
}

impl TimersPage {
    /// At this moment (seconds since the epoch), from there on, of so many timers ([`PAGE_MAX`] at most). Any start but
    /// [`PageStart::At`] is the oldest timer.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if the moment is not a number.
    pub fn new(
        settings: &Settings,
        now_s: f64,
        start: PageStart,
        limit: u32,
    ) -> Result<Self, StoreError> {
        validate::present(now_s)?;
        Ok(Self {
            key: settings.keys().timers(),
            settings: settings.clone(),
            now: codec::python_float(now_s),
            from: match start {
                PageStart::At(Continuation(Place::Score(bits, seen))) => {
                    Some((f64::from_bits(bits), seen))
                }
                _ => None,
            },
            limit: limit.clamp(1, PAGE_MAX),
        })
    }

    fn timer(&self, member: &[u8], fire_at_s: f64) -> Result<DueTimer, StoreError> {
        let (execution_id, path) = codec::decode_timer_member(&self.key, member)?;
        let respelled = self.settings.keys().timer_member(&execution_id, &path);
        if respelled.as_bytes() != member {
            return Err(StoreError::Corrupt {
                key: self.key.clone(),
                field: None,
                reason: "member is not an id, NUL and a path".to_owned(),
            });
        }
        validate::execution_id(&self.settings, "execution id", &execution_id)?;
        validate::time("time of a timer", fire_at_s)?;
        Ok(DueTimer {
            execution_id,
            path,
            fire_at_s,
        })
    }

    fn page(&self, replies: Replies) -> Result<RelayPage<DueTimer>, StoreError> {
        let unexpected = || reply::unexpected("ZRANGEBYSCORE");
        let [count, timers] = replies.harmless()?;
        let waiting = reply::count(count, "ZCOUNT", &self.key)?;
        let timers = reply::accepted(timers, "ZRANGEBYSCORE", &self.key)?;
        let timers = reply::pairs(timers).ok_or_else(unexpected)?;
        let timers: Option<Vec<(Vec<u8>, f64)>> = timers
            .into_iter()
            .map(|(member, score): (Value, Value)| {
                Some((reply::bytes(member)?, reply::double(&score)?))
            })
            .collect();
        let timers = timers.ok_or_else(unexpected)?;
        let mut page = RelayPage {
            entries: Vec::with_capacity(timers.len()),
            poison: Vec::new(),
            waiting,
            next: self.next(&timers),
        };
        for (member, score) in timers {
            match self.timer(&member, score) {
                Ok(timer) => page.entries.push(timer),
                Err(error) => {
                    let score = codec::python_float(score).into_bytes();
                    page.poison
                        .push(Poison::new(Origin::Timers, member, score, &error));
                }
            }
        }
        Ok(page)
    }

    /// Behind the last timer of a full page.
    fn next(&self, timers: &[(Vec<u8>, f64)]) -> Option<Continuation> {
        let (_, last) = timers.last()?;
        if timers.len() < self.limit as usize {
            return None;
        }
        let same = timers.iter().rev().take_while(|(_, score)| score == last);
        let mut seen = same.count() as u64;
        if let Some((score, before)) = self.from
            && score == *last
        {
            seen += before;
        }
        Some(Continuation(Place::Score(last.to_bits(), seen)))
    }
}

impl Operation for TimersPage {
    const NAME: &'static str = "timers_page";

    type Output = RelayPage<DueTimer>;

    fn step(&mut self, replies: Replies) -> Step<Self::Output> {
        if let Replies::Start = replies {
            let (from, skipped) = match self.from {
                Some((score, seen)) => (codec::python_float(score), seen),
                None => ("-inf".to_owned(), 0),
            };
            let mut count = cmd("ZCOUNT");
            count.arg(&self.key).arg("-inf").arg(&self.now);
            let mut range = cmd("ZRANGEBYSCORE");
            range.arg(&self.key).arg(from).arg(&self.now);
            range
                .arg("WITHSCORES")
                .arg("LIMIT")
                .arg(skipped)
                .arg(self.limit);
            return Step::Send(Batch::shared([count, range]));
        }
        Step::Done(self.page(replies))
    }
}
