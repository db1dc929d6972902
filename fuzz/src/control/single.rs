//! Broken operations of one or two commands.

use redis::{Value, cmd};
use store::op::{Batch, Operation, Replies, Step, reply};
use store::{Settings, StoreError};

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

/// The error of an operation that is stepped in a way that its driver never does.
pub(super) fn misused() -> StoreError {
    let text = "broken operation stepped out of order";
    redis::RedisError::from((redis::ErrorKind::UnexpectedReturnType, text)).into()
}
