//! The scripts of the transport, and what their errors mean.

use redis::{ServerError, Value};

use crate::{
    StoreError,
    error::UNTAGGED,
    op::{Call, Script, reply},
};

pub(super) static PUBLISH: Script = Script::new(concat!(
    include_str!("lua/prelude.lua"),
    include_str!("lua/publish.lua")
));
pub(super) static CLAIM: Script = Script::new(concat!(
    include_str!("lua/prelude.lua"),
    include_str!("lua/claim.lua")
));
pub(super) static SETTLE: Script = Script::new(concat!(
    include_str!("lua/prelude.lua"),
    include_str!("lua/settle.lua")
));
pub(super) static BACKLOG: Script = Script::new(concat!(
    include_str!("lua/prelude.lua"),
    include_str!("lua/backlog.lua")
));

impl Call {
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
        match self.corrupt_key(error) {
            Some(key) => corrupt(key),
            None => StoreError::Refused {
                command: "EVALSHA".to_owned(),
                message: reply::error_text(error),
            },
        }
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
