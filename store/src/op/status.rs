//! Where an execution stands.

use redis::{Value, cmd};

use super::{Batch, Operation, Replies, Step, list::own_summary, reply};
use crate::{ExecutionSummary, Settings, StoreError, keys::Keys};

/// `GET`: the summary of an execution, if there is a row. The rest of the row is not looked at, so that a row that can
/// not be loaded may have a status.
#[derive(Debug)]
pub struct LoadStatus {
    keys: Keys,
    key: String,
}

impl LoadStatus {
    /// Of the execution with this id.
    pub fn new(settings: &Settings, id: &str) -> Self {
        Self {
            keys: settings.keys().clone(),
            key: settings.keys().execution(id),
        }
    }

    fn row(&self, value: Value) -> Result<Option<ExecutionSummary>, StoreError> {
        let row = match reply::accepted(value, "GET", &self.key)? {
            Value::Nil => return Ok(None),
            value => reply::bytes(value).ok_or_else(|| reply::unexpected("GET"))?,
        };
        let corrupt = |reason| StoreError::Corrupt {
            key: self.key.clone(),
            field: None,
            reason,
        };
        own_summary(&self.keys, self.key.as_bytes(), &row)
            .map(Some)
            .map_err(corrupt)
    }
}

impl Operation for LoadStatus {
    const NAME: &'static str = "status";

    type Output = Option<ExecutionSummary>;

    fn step(&mut self, replies: Replies) -> Step<Self::Output> {
        if let Replies::Start = replies {
            return Step::Send(Batch::shared([cmd("GET").arg(&self.key).take()]));
        }
        Step::Done(replies.harmless().and_then(|[row]| self.row(row)))
    }
}
