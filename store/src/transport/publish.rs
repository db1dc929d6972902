//! Putting an event into a queue.

use redis::RedisError;

use super::{Priority, call::PUBLISH};
use crate::{
    Event, Settings, StoreError, codec,
    op::{Call, Operation, Replies, Step, protocol_error, reply, validate},
};

/// One script: adds an event to the end of a group's queue; how many events the queue holds then.
///
/// A lost reply is [`StoreError::Indeterminate`]: a repetition may queue the event twice. Whoever relays an outbox repeats
/// it nevertheless, since an entry that was not published is worse; the consumer drops the second one by the event's id
/// (`processed`).
#[derive(Debug)]
pub struct Publish {
    group: String,
    call: Call,
}

impl Publish {
    /// For this group, which gets this priority if it has no events yet; else it keeps its own.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a group that is no id of an execution, or an event that could not be read back.
    pub fn new(
        settings: &Settings,
        group: &str,
        event: &Event,
        priority: Priority,
    ) -> Result<Self, StoreError> {
        validate::execution_id(settings, "group id", group)?;
        validate::event_to_publish(settings, event)?;
        let keys = settings.keys();
        let mut names = vec![keys.queue(group), keys.priorities()];
        names.extend(keys.tiers(Priority::MIN));
        let arguments = vec![
            group.as_bytes().to_vec(),
            codec::encode_event(event).into_bytes(),
            priority.get().to_string().into_bytes(),
        ];
        Ok(Self {
            group: group.to_owned(),
            call: Call::new(&PUBLISH, names, arguments),
        })
    }

    fn indeterminate(&self, source: RedisError) -> StoreError {
        StoreError::Indeterminate {
            operation: "publish",
            id: self.group.clone(),
            expected: None,
            attempt: None,
            source,
        }
    }

    fn published(&self, replies: Replies) -> Result<u64, StoreError> {
        let values = match replies {
            Replies::Received(values) => values,
            Replies::Lost(source) => return Err(self.indeterminate(source)),
            other => return Err(other.failure()),
        };
        let reply = values.into_iter().next();
        let reply = reply.ok_or_else(|| self.indeterminate(protocol_error("no reply")))?;
        let length = reply::integer(&self.call.accepted(reply)?);
        length
            .and_then(|length| length.try_into().ok())
            .ok_or_else(|| self.indeterminate(protocol_error("unexpected reply to EVALSHA")))
    }
}

impl Operation for Publish {
    const NAME: &'static str = "publish";

    type Output = u64;

    fn step(&mut self, replies: Replies) -> Step<u64> {
        match self.call.next(&replies) {
            Some(batch) => Step::Send(batch),
            None => Step::Done(self.published(replies)),
        }
    }
}
