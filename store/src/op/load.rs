//! Reading an execution.

use redis::{Value, cmd};

use super::{Batch, Operation, Replies, Step, reply};
use crate::{Execution, Settings, StoreError, codec};

/// `GET`: the execution, if there is a row.
#[derive(Debug)]
pub struct Load {
    id: String,
    key: String,
}

impl Load {
    /// Of the execution with this id.
    pub fn new(settings: &Settings, id: &str) -> Self {
        Self {
            id: id.to_owned(),
            key: settings.keys().execution(id),
        }
    }

    fn row(&self, value: Value) -> Result<Option<Execution>, StoreError> {
        match reply::accepted(value, "GET", &self.key)? {
            Value::Nil => Ok(None),
            value => self
                .decode(&reply::bytes(value).ok_or_else(|| reply::unexpected("GET"))?)
                .map(Some),
        }
    }

    fn decode(&self, row: &[u8]) -> Result<Execution, StoreError> {
        let corrupt = |reason| StoreError::Corrupt {
            key: self.key.clone(),
            field: None,
            reason,
        };
        let execution = codec::decode_execution(row).map_err(corrupt)?;
        // A store whose prefix ends in our key names would put its rows under our keys.
        if execution.id == self.id {
            Ok(execution)
        } else {
            Err(corrupt(format!("holds execution {}", execution.id)))
        }
    }
}

impl Operation for Load {
    type Output = Option<Execution>;

    fn step(&mut self, replies: Replies) -> Step<Self::Output> {
        if let Replies::Start = replies {
            return Step::Send(Batch::shared([cmd("GET").arg(&self.key).take()]));
        }
        Step::Done(replies.harmless().and_then(|[row]| self.row(row)))
    }
}

/// `GET`, `SISMEMBER`: the execution, and whether it has handled an event, in one write.
///
/// The row is read first: a commit between the two can only yield the old row with a yes, which makes the caller
/// acknowledge an event that is indeed handled. The other order could yield the new row with a no.
#[derive(Debug)]
pub struct LoadForEvent {
    load: Load,
    processed: String,
    event_id: String,
}

impl LoadForEvent {
    /// Of the execution with this id, for this event.
    pub fn new(settings: &Settings, id: &str, event_id: &str) -> Self {
        Self {
            load: Load::new(settings, id),
            processed: settings.keys().processed(id),
            event_id: event_id.to_owned(),
        }
    }
}

impl Operation for LoadForEvent {
    type Output = Option<(Execution, bool)>;

    fn step(&mut self, replies: Replies) -> Step<Self::Output> {
        if let Replies::Start = replies {
            let member = cmd("SISMEMBER")
                .arg(&self.processed)
                .arg(&self.event_id)
                .take();
            return Step::Send(Batch::shared([
                cmd("GET").arg(&self.load.key).take(),
                member,
            ]));
        }
        Step::Done(replies.harmless().and_then(|[row, member]| {
            let Some(execution) = self.load.row(row)? else {
                return Ok(None);
            };
            let member = reply::accepted(member, "SISMEMBER", &self.processed)?;
            let member = reply::integer(&member).ok_or_else(|| reply::unexpected("SISMEMBER"))?;
            Ok(Some((execution, member != 0)))
        }))
    }
}
