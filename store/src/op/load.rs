//! Reading an execution.

use std::marker::PhantomData;

use redis::{Value, cmd};

use super::{Batch, Operation, Replies, Step, reply};
use crate::{Document, Execution, RowTail, Settings, StoreError};

/// `GET`: the document, if there is a row.
#[derive(Debug)]
pub struct Load<D = Execution> {
    id: String,
    key: String,
    settings: Settings,
    document: PhantomData<fn() -> D>,
}

impl Load {
    /// Of the execution with this id.
    pub fn new(settings: &Settings, id: &str) -> Self {
        Self::of(settings, id)
    }
}

impl<D: Document> Load<D> {
    /// Of the document with this id.
    pub fn of(settings: &Settings, id: &str) -> Self {
        Self {
            id: id.to_owned(),
            key: settings.keys().execution(id),
            settings: settings.clone(),
            document: PhantomData,
        }
    }

    fn row(&self, value: Value) -> Result<Option<D>, StoreError> {
        match reply::accepted(value, "GET", &self.key)? {
            Value::Nil => Ok(None),
            value => self
                .decode(&reply::bytes(value).ok_or_else(|| reply::unexpected("GET"))?)
                .map(Some),
        }
    }

    fn decode(&self, row: &[u8]) -> Result<D, StoreError> {
        let corrupt = |reason| StoreError::Corrupt {
            key: self.key.clone(),
            field: None,
            reason,
        };
        let mut document = D::decode(row, &self.settings).map_err(corrupt)?;
        // A store whose prefix ends in our key names would put its rows under our keys.
        if document.id() != self.id {
            return Err(corrupt(format!("holds execution {}", document.id())));
        }
        document.remember(RowTail::of(row, document.version()));
        Ok(document)
    }
}

impl<D: Document> Operation for Load<D> {
    const NAME: &'static str = "load";

    type Output = Option<D>;

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
pub struct LoadForEvent<D = Execution> {
    load: Load<D>,
    processed: String,
    event_id: String,
}

impl LoadForEvent {
    /// Of the execution with this id, for this event.
    pub fn new(settings: &Settings, id: &str, event_id: &str) -> Self {
        Self::of(settings, id, event_id)
    }
}

impl<D: Document> LoadForEvent<D> {
    /// Of the document with this id, for this event.
    pub fn of(settings: &Settings, id: &str, event_id: &str) -> Self {
        Self {
            load: Load::of(settings, id),
            processed: settings.keys().processed(id),
            event_id: event_id.to_owned(),
        }
    }
}

impl<D: Document> Operation for LoadForEvent<D> {
    const NAME: &'static str = "load_for_event";

    type Output = Option<(D, bool)>;

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
