//! One call of a script: by hash, by source if the server does not know it, and what its errors mean.

use redis::{ServerError, Value};

use crate::{
    StoreError,
    error::UNTAGGED,
    op::{Batch, Replies, Script, reply},
};

/// What a script puts before the number of the key that holds something else.
const CORRUPT_MARKER: &str = "STM_CORRUPT:";

pub(super) static PUBLISH: Script = Script::new(
    concat!(
        include_str!("lua/prelude.lua"),
        include_str!("lua/publish.lua")
    ),
    || PUBLISH.digest(),
);
pub(super) static CLAIM: Script = Script::new(
    concat!(
        include_str!("lua/prelude.lua"),
        include_str!("lua/claim.lua")
    ),
    || CLAIM.digest(),
);
pub(super) static SETTLE: Script = Script::new(
    concat!(
        include_str!("lua/prelude.lua"),
        include_str!("lua/settle.lua")
    ),
    || SETTLE.digest(),
);
pub(super) static BACKLOG: Script = Script::new(
    concat!(
        include_str!("lua/prelude.lua"),
        include_str!("lua/backlog.lua")
    ),
    || BACKLOG.digest(),
);

/// A script with its keys and arguments, sent once by hash and once by source at most.
#[derive(Debug)]
pub(crate) struct Call {
    script: &'static Script,
    keys: Vec<String>,
    arguments: Vec<Vec<u8>>,
    asked_by_source: bool,
}

impl Call {
    pub(crate) fn new(script: &'static Script, keys: Vec<String>, arguments: Vec<Vec<u8>>) -> Self {
        Self {
            script,
            keys,
            arguments,
            asked_by_source: false,
        }
    }

    /// What to send, if these are not replies to the end of it.
    pub(crate) fn next(&mut self, replies: &Replies) -> Option<Batch> {
        match replies {
            Replies::Start => Some(self.by_hash()),
            Replies::Received(values) if !self.asked_by_source && is_no_script(values) => {
                self.asked_by_source = true;
                let command = self.script.by_source(&self.keys(), &self.arguments);
                Some(Batch::shared([command]))
            }
            _ => None,
        }
    }

    /// The same once more, after it has ended.
    pub(crate) fn by_hash(&mut self) -> Batch {
        self.asked_by_source = false;
        Batch::shared([self.script.by_hash(&self.keys(), &self.arguments)])
    }

    /// The reply, unless it is an error of the server, which means that nothing was written.
    pub(crate) fn accepted(&self, value: Value) -> Result<Value, StoreError> {
        match value {
            Value::ServerError(error) => Err(self.refused(&error)),
            value => Ok(value),
        }
    }

    fn refused(&self, error: &ServerError) -> StoreError {
        if error.code() == "CROSSSLOT" {
            return UNTAGGED;
        }
        let message = reply::error_text(error);
        let key = message
            .split_once(CORRUPT_MARKER)
            .and_then(|(_, number)| number.trim().parse::<usize>().ok())
            .and_then(|number| self.keys.get(number.checked_sub(1)?));
        match key {
            Some(key) => corrupt(key),
            None => StoreError::Refused {
                command: "EVALSHA".to_owned(),
                message,
            },
        }
    }

    fn keys(&self) -> Vec<&str> {
        self.keys.iter().map(String::as_str).collect()
    }
}

/// A key that holds what no transport has put there.
pub(super) fn corrupt(key: &str) -> StoreError {
    StoreError::Corrupt {
        key: key.to_owned(),
        field: None,
        reason: "not what a transport writes".to_owned(),
    }
}

fn is_no_script(values: &[Value]) -> bool {
    matches!(values, [Value::ServerError(error)] if reply::is_no_script(error))
}
