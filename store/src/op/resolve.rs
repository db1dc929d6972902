//! Finding out whether a commit landed whose reply was lost.

use redis::{Value, cmd};

use super::{Batch, Operation, Replies, Step, reply};
use crate::{Attempt, Rejection, Resolution, Settings, StoreError, Version, codec};

/// `GET`, and `SISMEMBER` if the commit had an event: what became of an attempt.
///
/// The row is read first, and marks are never taken back: a mark that is missing afterwards was missing when the row was
/// read. Bytes alone would not do, since a rival may have written the same row for another event; the version alone would
/// not do at all.
///
/// What is left in doubt: two commits of the same event that leave the same row and differ in their effects only can not be
/// told apart. One of them landed.
#[derive(Debug)]
pub struct Resolve {
    attempt: Attempt,
    row_key: String,
    processed_key: String,
}

impl Resolve {
    /// Of this attempt.
    pub fn new(settings: &Settings, attempt: &Attempt) -> Self {
        Self {
            row_key: settings.keys().execution(attempt.id()),
            processed_key: settings.keys().processed(attempt.id()),
            attempt: attempt.clone(),
        }
    }

    /// Refuses a document that is not the one that was sent, or that has moved since.
    ///
    /// # Errors
    /// [`StoreError::Invalid`].
    pub fn check<D: crate::Document>(document: &D, attempt: &Attempt) -> Result<(), StoreError> {
        if document.id() == attempt.id() && document.version() == attempt.expected() {
            Ok(())
        } else {
            Err(StoreError::Invalid {
                what: "attempt",
                reason: Rejection::OtherDocument,
            })
        }
    }

    fn judge(&self, row: Value, is_marked: Option<bool>) -> Result<Resolution, StoreError> {
        let row = match reply::accepted(row, "GET", &self.row_key)? {
            Value::Nil => None,
            row => Some(reply::bytes(row).ok_or_else(|| reply::unexpected("GET"))?),
        };
        let corrupt = |reason| StoreError::Corrupt {
            key: self.row_key.clone(),
            field: None,
            reason,
        };
        let is_ours = row.as_deref() == Some(self.attempt.row());
        if is_ours && is_marked != Some(false) {
            return Ok(Resolution::Landed(self.attempt.committed().clone()));
        }
        let found = row.as_deref().map(codec::decode_version).transpose();
        let found = found.map_err(corrupt)?;
        let next = self.attempt.next();
        let is_before = match found {
            Some(version) => version < next,
            None => self.attempt.expected() == Version::NEW,
        };
        // Its version is another's, or its mark would be there.
        let is_final = found == Some(next) || found > Some(next) && is_marked == Some(false);
        Ok(if is_before || is_final {
            Resolution::NotLanded { found, is_final }
        } else {
            Resolution::Overtaken {
                found,
                is_event_processed: is_marked,
            }
        })
    }

    fn answered(&self, replies: Replies) -> Result<Resolution, StoreError> {
        if self.attempt.event_id().is_none() {
            let [row] = replies.harmless()?;
            return self.judge(row, None);
        }
        let [row, mark] = replies.harmless()?;
        let mark = reply::accepted(mark, "SISMEMBER", &self.processed_key)?;
        let mark = reply::integer(&mark).ok_or_else(|| reply::unexpected("SISMEMBER"))?;
        self.judge(row, Some(mark != 0))
    }
}

impl Operation for Resolve {
    const NAME: &'static str = "resolve";

    type Output = Resolution;

    fn step(&mut self, replies: Replies) -> Step<Resolution> {
        if let Replies::Start = replies {
            let row = cmd("GET").arg(&self.row_key).take();
            let mark = self.attempt.event_id().map(|event_id| {
                cmd("SISMEMBER")
                    .arg(&self.processed_key)
                    .arg(event_id)
                    .take()
            });
            return Step::Send(Batch::shared([row].into_iter().chain(mark)));
        }
        Step::Done(self.answered(replies))
    }
}
