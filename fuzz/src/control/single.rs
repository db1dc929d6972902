//! Broken operations of one or two commands.

use redis::{Value, cmd};
use store::op::{Batch, Operation, Replies, Step, reply};
use store::{Attempt, Committed, Resolution, Settings, StoreError, codec};

/// Deletes a timer if it was there with its time a moment ago: `ZSCORE`, then `ZREM`.
#[derive(Debug)]
pub struct BrokenDelete {
    key: String,
    member: String,
    fire_at_s: f64,
    looked: bool,
}

impl BrokenDelete {
    /// The timer of this execution and path, if it fires at this moment.
    pub fn new(settings: &Settings, id: &str, path: &str, fire_at_s: f64) -> BrokenDelete {
        BrokenDelete {
            key: settings.keys().timers(),
            member: settings.keys().timer_member(id, path),
            fire_at_s,
            looked: false,
        }
    }
}

impl Operation for BrokenDelete {
    type Output = bool;

    fn step(&mut self, replies: Replies) -> Step<bool> {
        if let Replies::Start = replies {
            let score = cmd("ZSCORE").arg(&self.key).arg(&self.member).take();
            return Step::Send(Batch::shared([score]));
        }
        match replies.harmless() {
            Err(error) => Step::Done(Err(error)),
            Ok([score]) if !self.looked => {
                self.looked = true;
                if reply::double(&score) != Some(self.fire_at_s) {
                    return Step::Done(Ok(false));
                }
                let remove = cmd("ZREM").arg(&self.key).arg(&self.member).take();
                Step::Send(Batch::shared([remove]))
            }
            Ok([removed]) => Step::Done(Ok(reply::integer(&removed) == Some(1))),
        }
    }
}

/// Marks an event as processed, by itself: `SADD`.
#[derive(Debug)]
pub struct Mark {
    key: String,
    event: String,
}

impl Mark {
    /// Of this execution.
    pub fn new(settings: &Settings, id: &str, event: &str) -> Mark {
        Mark {
            key: settings.keys().processed(id),
            event: event.to_owned(),
        }
    }
}

impl Operation for Mark {
    type Output = ();

    fn step(&mut self, replies: Replies) -> Step<()> {
        if let Replies::Start = replies {
            let mark = cmd("SADD").arg(&self.key).arg(&self.event).take();
            return Step::Send(Batch::shared([mark]));
        }
        Step::Done(
            replies.harmless().and_then(|[marked]: [Value; 1]| {
                reply::accepted(marked, "SADD", &self.key).map(drop)
            }),
        )
    }
}

/// Takes an attempt for landed if the row is at the version that it makes: `GET`.
#[derive(Debug)]
pub struct BrokenResolve {
    key: String,
    attempt: Attempt,
}

impl BrokenResolve {
    /// Of this attempt.
    pub fn new(settings: &Settings, attempt: &Attempt) -> BrokenResolve {
        BrokenResolve {
            key: settings.keys().execution(attempt.id()),
            attempt: attempt.clone(),
        }
    }
}

impl Operation for BrokenResolve {
    type Output = Resolution;

    fn step(&mut self, replies: Replies) -> Step<Resolution> {
        if let Replies::Start = replies {
            return Step::Send(Batch::shared([cmd("GET").arg(&self.key).take()]));
        }
        Step::Done(replies.harmless().map(|[row]: [Value; 1]| {
            let row = reply::bytes(row).unwrap_or_default();
            let found = codec::decode_version(&row).ok();
            if found == Some(self.attempt.next()) {
                return Resolution::Landed(Committed::state_only(self.attempt.next()));
            }
            let is_final = found > Some(self.attempt.next());
            Resolution::NotLanded { found, is_final }
        }))
    }
}

/// The error of an operation that is stepped in a way that its driver never does.
pub(super) fn misused() -> StoreError {
    let text = "broken operation stepped out of order";
    redis::RedisError::from((redis::ErrorKind::UnexpectedReturnType, text)).into()
}
