//! Whether an event was handled already.

use redis::cmd;

use super::{Batch, Operation, Replies, Step, reply};
use crate::Settings;

/// `SISMEMBER`: whether an execution has handled an event.
#[derive(Debug)]
pub struct IsProcessed {
    key: String,
    event_id: String,
}

impl IsProcessed {
    /// By the execution with this id, for this event.
    pub fn new(settings: &Settings, id: &str, event_id: &str) -> Self {
        Self {
            key: settings.keys().processed(id),
            event_id: event_id.to_owned(),
        }
    }
}

impl Operation for IsProcessed {
    const NAME: &'static str = "is_processed";

    type Output = bool;

    fn step(&mut self, replies: Replies) -> Step<bool> {
        if let Replies::Start = replies {
            return Step::Send(Batch::shared([cmd("SISMEMBER")
                .arg(&self.key)
                .arg(&self.event_id)
                .take()]));
        }
        Step::Done(replies.harmless().and_then(|[member]| {
            let member = reply::accepted(member, "SISMEMBER", &self.key)?;
            reply::integer(&member)
                .map(|member| member != 0)
                .ok_or_else(|| reply::unexpected("SISMEMBER"))
        }))
    }
}
