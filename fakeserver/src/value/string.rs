//! [`StringValue`]: the value of a string key.

use super::{Blob, number};

/// Longest string that Redis keeps as `embstr`.
const EMBEDDED_LEN_MAX: usize = 44;

/// The value of a string key, in the encoding that `OBJECT ENCODING` names.
#[derive(Clone, Debug)]
pub enum StringValue {
    /// A string that is the decimal spelling of an integer.
    Integer(i64),
    /// Any other string, as it was set.
    Text(Blob),
    /// A string that was changed in place (APPEND, SETRANGE, SETBIT): `raw` whatever its length or content.
    Raw(Vec<u8>),
}

impl StringValue {
    /// A string as SET stores it: as an integer if it is the spelling of one.
    pub fn new(bytes: &[u8]) -> StringValue {
        // An i64 has at most 20 characters; longer strings need no look (object.c, `tryObjectEncoding`).
        match (bytes.len() <= 20)
            .then(|| number::parse_integer(bytes))
            .flatten()
        {
            Some(value) => StringValue::Integer(value),
            None => StringValue::Text(Blob::from(bytes)),
        }
    }

    /// The string's bytes.
    pub fn to_blob(&self) -> Blob {
        match self {
            StringValue::Integer(value) => Blob::from(value.to_string()),
            StringValue::Text(text) => text.clone(),
            StringValue::Raw(bytes) => Blob::from(bytes.as_slice()),
        }
    }

    /// The name that `OBJECT ENCODING` answers.
    pub fn encoding(&self) -> &'static str {
        match self {
            StringValue::Integer(_) => "int",
            StringValue::Text(text) if text.len() <= EMBEDDED_LEN_MAX => "embstr",
            StringValue::Text(_) | StringValue::Raw(_) => "raw",
        }
    }
}

impl From<i64> for StringValue {
    fn from(value: i64) -> StringValue {
        StringValue::Integer(value)
    }
}
