//! How much waits, and what was put aside.

use redis::{Value, cmd};

use super::{Backlog, Clock, Priority, TierBacklog, call::BACKLOG};
use crate::{
    Settings, StoreError,
    op::{Batch, Call, Operation, Replies, Step, reply, validate},
};

/// One script that only reads: [`Backlog`].
#[derive(Debug)]
pub struct ReadBacklog {
    call: Call,
}

impl ReadBacklog {
    /// Of all groups.
    pub fn new(settings: &Settings, clock: Clock) -> Self {
        let tiers = settings.keys().tiers(Priority::MIN).collect();
        Self {
            call: Call::new(&BACKLOG, tiers, vec![clock.argument()]),
        }
    }

    fn backlog(&self, answer: Value) -> Result<Backlog, StoreError> {
        let figures = reply::items(self.call.accepted(answer)?);
        let figures = figures.unwrap_or_default();
        let figures: Vec<Option<u64>> = figures.iter().map(figure).collect();
        let (now, tiers) = match figures.as_slice() {
            [Some(now_ms), tiers @ ..] => (*now_ms, tiers.chunks_exact(3)),
            _ => return Err(reply::unexpected("EVALSHA")),
        };
        let tiers = Priority::all()
            .zip(tiers)
            .map(|(priority, figures)| match *figures {
                [Some(groups), Some(due), next_ready_ms] => Ok(TierBacklog {
                    priority,
                    groups,
                    due,
                    next_ready_ms,
                }),
                _ => Err(reply::unexpected("EVALSHA")),
            });
        Ok(Backlog {
            now_ms: now,
            tiers: tiers.collect::<Result<_, _>>()?,
        })
    }
}

fn figure(value: &Value) -> Option<u64> {
    reply::integer(value)?.try_into().ok()
}

impl Operation for ReadBacklog {
    const NAME: &'static str = "backlog";

    type Output = Backlog;

    fn step(&mut self, replies: Replies) -> Step<Backlog> {
        if let Some(batch) = self.call.next(&replies) {
            return Step::Send(batch);
        }
        Step::Done(replies.harmless().and_then(|[answer]| self.backlog(answer)))
    }
}

/// `LLEN`: how many events a group has, the leased one among them.
#[derive(Debug)]
pub struct QueueLength {
    key: String,
}

impl QueueLength {
    /// Of this group.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a group that is no id of an execution.
    pub fn new(settings: &Settings, group: &str) -> Result<Self, StoreError> {
        validate::execution_id(settings, "group id", group)?;
        Ok(Self {
            key: settings.keys().queue(group),
        })
    }
}

impl Operation for QueueLength {
    const NAME: &'static str = "queue_length";

    type Output = u64;

    fn step(&mut self, replies: Replies) -> Step<u64> {
        if let Replies::Start = replies {
            return Step::Send(Batch::shared([cmd("LLEN").arg(&self.key).take()]));
        }
        Step::Done(replies.harmless().and_then(|[length]| {
            let length = reply::accepted(length, "LLEN", &self.key)?;
            figure(&length).ok_or_else(|| reply::unexpected("LLEN"))
        }))
    }
}

/// `LRANGE`: the first dead letters of a group, as they were in its queue.
#[derive(Debug)]
pub struct ReadDeadLetters {
    key: String,
    limit: u32,
}

impl ReadDeadLetters {
    /// Of this group, at most so many.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a group that is no id of an execution.
    pub fn new(settings: &Settings, group: &str, limit: u32) -> Result<Self, StoreError> {
        validate::execution_id(settings, "group id", group)?;
        Ok(Self {
            key: settings.keys().dead(group),
            limit,
        })
    }
}

impl Operation for ReadDeadLetters {
    const NAME: &'static str = "dead_letters";

    type Output = Vec<Vec<u8>>;

    fn step(&mut self, replies: Replies) -> Step<Self::Output> {
        if let Replies::Start = replies {
            // Redis takes the last position with the range; -1 would be the end of the list.
            let (first, last) = match self.limit.checked_sub(1) {
                Some(last) => (0, i64::from(last)),
                None => (1, 0),
            };
            let mut range = cmd("LRANGE");
            range.arg(&self.key).arg(first).arg(last);
            return Step::Send(Batch::shared([range]));
        }
        Step::Done(replies.harmless().and_then(|[letters]| {
            let letters = reply::accepted(letters, "LRANGE", &self.key)?;
            let letters = reply::items(letters).ok_or_else(|| reply::unexpected("LRANGE"))?;
            let letters: Option<Vec<_>> = letters.into_iter().map(reply::bytes).collect();
            letters.ok_or_else(|| reply::unexpected("LRANGE"))
        }))
    }
}

/// `LREM`: removes a dead letter, the oldest of those that are the same; whether there was one.
///
/// A lost reply is [`StoreError::Io`]; a repetition may remove another one with the same bytes.
#[derive(Debug)]
pub struct DiscardDeadLetter {
    key: String,
    payload: Vec<u8>,
}

impl DiscardDeadLetter {
    /// This one of this group.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a group that is no id of an execution.
    pub fn new(settings: &Settings, group: &str, payload: &[u8]) -> Result<Self, StoreError> {
        validate::execution_id(settings, "group id", group)?;
        Ok(Self {
            key: settings.keys().dead(group),
            payload: payload.to_vec(),
        })
    }
}

impl Operation for DiscardDeadLetter {
    const NAME: &'static str = "discard_dead_letter";

    type Output = bool;

    fn step(&mut self, replies: Replies) -> Step<bool> {
        if let Replies::Start = replies {
            let mut remove = cmd("LREM");
            remove.arg(&self.key).arg(1).arg(&self.payload);
            return Step::Send(Batch::shared([remove]));
        }
        Step::Done(replies.harmless().and_then(|[removed]| {
            let removed = reply::accepted(removed, "LREM", &self.key)?;
            figure(&removed)
                .map(|removed| removed > 0)
                .ok_or_else(|| reply::unexpected("LREM"))
        }))
    }
}
