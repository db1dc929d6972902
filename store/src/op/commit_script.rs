//! A commit that changes only the row: compare, set and note in one script.

use redis::{RedisError, Value};

use super::{Batch, Operation, Replies, Step, protocol_error, reply, script::COMMIT_CAS, validate};
use crate::{Commit, Committed, Execution, Settings, StoreError, Version, codec};

/// What the script puts before the version that it found; the server puts `ERR` before that.
const CONFLICT_MARKER: &str = "STM_CONFLICT:";
/// What the script puts before the number of the key that holds something else.
const CORRUPT_MARKER: &str = "STM_CORRUPT:";

/// One `EVALSHA`, and one `EVAL` if the server does not know the script.
///
/// The script checks the version and the type of the set before it writes anything, so that an error of the server means
/// that nothing was written. It is sent once: the same request again would conflict with its own write.
#[derive(Debug)]
pub struct CommitByScript {
    id: String,
    expected: Version,
    next: Version,
    keys: [String; 2],
    arguments: [String; 3],
    asked_by_source: bool,
}

impl CommitByScript {
    /// Of this execution; the commit's effects but for the dedupe mark are not looked at.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for input that can not be stored without breaking a guarantee.
    pub fn new(
        settings: &Settings,
        execution: &Execution,
        commit: &Commit,
    ) -> Result<Self, StoreError> {
        validate::commit(settings, execution, commit)?;
        let next = validate::next_version(execution)?;
        let keys = settings.keys();
        let row = codec::encode_execution(execution, next);
        let event_id = commit.processed_event_id.clone().unwrap_or_default();
        Ok(Self {
            id: execution.id.clone(),
            expected: execution.version,
            next,
            keys: [keys.execution(&execution.id), keys.processed(&execution.id)],
            arguments: [row, execution.version.to_string(), event_id],
            asked_by_source: false,
        })
    }

    fn keys(&self) -> [&str; 2] {
        self.keys.each_ref().map(String::as_str)
    }

    fn committed(&self, replies: Replies) -> Result<Committed, StoreError> {
        let reply = match replies {
            Replies::Received(values) => match <[Value; 1]>::try_from(values) {
                Ok([reply]) => reply,
                Err(_) => return Err(self.indeterminate(protocol_error("wrong number of replies"))),
            },
            Replies::Lost(source) => return Err(self.indeterminate(source)),
            other => return Err(other.failure()),
        };
        match reply {
            Value::ServerError(error) => Err(self.refused(&error)),
            reply if reply::integer(&reply) == Some(1) => Ok(Committed::state_only(self.next)),
            _ => Err(self.indeterminate(protocol_error("unexpected reply to EVALSHA"))),
        }
    }

    fn indeterminate(&self, source: RedisError) -> StoreError {
        StoreError::Indeterminate {
            operation: "commit",
            id: self.id.clone(),
            expected: Some(self.expected),
            source,
        }
    }

    fn refused(&self, error: &redis::ServerError) -> StoreError {
        let message = reply::error_text(error);
        if let Some((_, found)) = message.split_once(CONFLICT_MARKER) {
            let found = found.parse().ok().map(Version::new);
            return StoreError::Conflict {
                id: self.id.clone(),
                expected: self.expected,
                found,
            };
        }
        let [row, processed] = &self.keys;
        let corrupt = |key: &String, reason: &str| StoreError::Corrupt {
            key: key.clone(),
            field: None,
            reason: reason.into(),
        };
        match message.split_once(CORRUPT_MARKER) {
            Some((_, "1")) => corrupt(row, "not an object with an integer `version`"),
            Some((_, "2")) => corrupt(processed, "not a set"),
            _ => reply::refusal(error, "EVALSHA", row),
        }
    }
}

impl Operation for CommitByScript {
    type Output = Committed;

    fn step(&mut self, replies: Replies) -> Step<Committed> {
        match replies {
            Replies::Start => Step::Send(Batch::shared([
                COMMIT_CAS.by_hash(&self.keys(), &self.arguments)
            ])),
            Replies::Received(values) if !self.asked_by_source && is_no_script(&values) => {
                self.asked_by_source = true;
                Step::Send(Batch::shared([
                    COMMIT_CAS.by_source(&self.keys(), &self.arguments)
                ]))
            }
            replies => Step::Done(self.committed(replies)),
        }
    }
}

fn is_no_script(values: &[Value]) -> bool {
    matches!(values, [Value::ServerError(error)] if reply::is_no_script(error))
}
