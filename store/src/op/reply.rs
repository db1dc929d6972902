//! Reading replies: of either protocol version, from a server that may answer anything.

use redis::{ServerError, ServerErrorKind, Value};

use super::{Replies, protocol_error};
use crate::StoreError;

/// What a script puts before the number of the key that holds something else.
pub(super) const CORRUPT_MARKER: &str = "STM_CORRUPT:";

impl Replies {
    /// Exactly `N` replies of a batch whose repetition is harmless: whatever goes wrong with the connection is
    /// [`StoreError::Io`].
    pub fn harmless<const N: usize>(self) -> Result<[Value; N], StoreError> {
        match self {
            Self::Received(values) => values
                .try_into()
                .map_err(|_| protocol_error("wrong number of replies").into()),
            other => Err(other.failure()),
        }
    }

    /// Why there are no replies, for a batch that had no effect or whose repetition is harmless.
    pub fn failure(self) -> StoreError {
        match self {
            Self::Unsent(source) | Self::Lost(source) => source.into(),
            Self::Start => protocol_error("no batch was sent").into(),
            Self::Received(_) => protocol_error("unexpected replies").into(),
        }
    }
}

/// The value, unless it is an error of the server: `WRONGTYPE` makes the key corrupt, anything else is a refusal.
pub fn accepted(value: Value, command: &str, key: &str) -> Result<Value, StoreError> {
    match value {
        Value::ServerError(error) => Err(refusal(&error, command, key)),
        value => Ok(value),
    }
}

/// The error for a command that had no effect because the server said no; a counter that can not be counted on is corrupt.
pub fn refusal(error: &ServerError, command: &str, key: &str) -> StoreError {
    let message = error_text(error);
    let is_counter = ["value is not an integer", "would overflow"];
    if error.code() == "WRONGTYPE" || is_counter.iter().any(|words| message.contains(words)) {
        return StoreError::Corrupt {
            key: key.to_owned(),
            field: None,
            reason: message,
        };
    }
    StoreError::Refused {
        command: command.to_owned(),
        message,
    }
}

/// The server's words: code, blank, details.
pub fn error_text(error: &ServerError) -> String {
    match error.details() {
        Some(details) => format!("{} {details}", error.code()),
        None => error.code().to_owned(),
    }
}

/// Whether the server does not know the script of an `EVALSHA`.
pub fn is_no_script(error: &ServerError) -> bool {
    error.kind() == Some(ServerErrorKind::NoScript)
}

/// An integer.
pub fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::Boolean(value) => Some((*value).into()),
        Value::BulkString(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        Value::SimpleString(text) => text.parse().ok(),
        _ => None,
    }
}

/// How many: an integer that is not negative, unless the server says no.
pub(crate) fn count(value: Value, command: &'static str, key: &str) -> Result<u64, StoreError> {
    integer(&accepted(value, command, key)?)
        .and_then(|count| count.try_into().ok())
        .ok_or_else(|| unexpected(command))
}

/// A double; RESP2 sends it as text.
pub fn double(value: &Value) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::Int(number) => Some(*number as f64),
        Value::BulkString(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        Value::SimpleString(text) => text.parse().ok(),
        _ => None,
    }
}

/// Bytes.
pub fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text.into_bytes()),
        Value::Okay => Some(b"OK".to_vec()),
        Value::Int(number) => Some(number.to_string().into_bytes()),
        _ => None,
    }
}

/// Items of an array or a set.
pub fn items(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(items) | Value::Set(items) => Some(items),
        _ => None,
    }
}

/// Pairs: a map, an array of pairs, or an array in which keys and values alternate.
pub fn pairs(value: Value) -> Option<Vec<(Value, Value)>> {
    let items = match value {
        Value::Map(pairs) => return Some(pairs),
        value => items(value)?,
    };
    let mut pairs = Vec::with_capacity(items.len());
    let mut items = items.into_iter();
    while let Some(first) = items.next() {
        pairs.push(match first {
            Value::Array(pair) => <[Value; 2]>::try_from(pair).ok()?.into(),
            first => (first, items.next()?),
        });
    }
    Some(pairs)
}

/// The error for a reply of a shape that the command never has.
pub fn unexpected(command: &'static str) -> StoreError {
    let text = format!("to {command}");
    redis::RedisError::from((
        redis::ErrorKind::UnexpectedReturnType,
        "unexpected reply",
        text,
    ))
    .into()
}
