//! The relay's side of events to deliver.

use redis::{Value, cmd};

use super::{Batch, Operation, Replies, Step, reply};
use crate::{OutboxEntry, Seq, Settings, StoreError, codec};

/// `HGETALL`: all events to deliver, oldest first.
#[derive(Debug)]
pub struct PendingOutbox {
    key: String,
}

impl PendingOutbox {
    /// Of the whole store.
    pub fn new(settings: &Settings) -> Self {
        Self {
            key: settings.keys().outbox(),
        }
    }

    fn entry(&self, (field, value): (Value, Value)) -> Result<OutboxEntry, StoreError> {
        let (Some(field), Some(value)) = (reply::bytes(field), reply::bytes(value)) else {
            return Err(reply::unexpected("HGETALL"));
        };
        codec::decode_outbox(&self.key, &field, &value)
    }
}

impl Operation for PendingOutbox {
    type Output = Vec<OutboxEntry>;

    fn step(&mut self, replies: Replies) -> Step<Self::Output> {
        if let Replies::Start = replies {
            return Step::Send(Batch::shared([cmd("HGETALL").arg(&self.key).take()]));
        }
        Step::Done(replies.harmless().and_then(|[fields]| {
            let fields = reply::accepted(fields, "HGETALL", &self.key)?;
            let fields = reply::pairs(fields).ok_or_else(|| reply::unexpected("HGETALL"))?;
            let entries = fields
                .into_iter()
                .map(|pair| self.entry(pair))
                .collect::<Result<Vec<_>, _>>();
            entries.map(|mut entries| {
                entries.sort_by_key(|entry| entry.seq);
                entries
            })
        }))
    }
}

/// `HDEL`: takes one event off the list; whether it was there.
#[derive(Debug)]
pub struct AckOutbox {
    key: String,
    seq: Seq,
}

impl AckOutbox {
    /// The entry at this position.
    pub fn new(settings: &Settings, seq: Seq) -> Self {
        Self {
            key: settings.keys().outbox(),
            seq,
        }
    }
}

impl Operation for AckOutbox {
    type Output = bool;

    fn step(&mut self, replies: Replies) -> Step<bool> {
        if let Replies::Start = replies {
            return Step::Send(Batch::shared([cmd("HDEL")
                .arg(&self.key)
                .arg(self.seq.get())
                .take()]));
        }
        // Sequence numbers are not used twice, so that a repetition removes nothing else.
        Step::Done(replies.harmless().and_then(|[removed]| {
            let removed = reply::accepted(removed, "HDEL", &self.key)?;
            reply::integer(&removed)
                .map(|removed| removed != 0)
                .ok_or_else(|| reply::unexpected("HDEL"))
        }))
    }
}
