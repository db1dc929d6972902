//! [`StringValue`]: the value of a string key.

use super::{Blob, number};

/// Longest string that Redis keeps as `embstr`.
const EMBEDDED_LEN_MAX: usize = 44;

/// Most characters of an `i64`.
const INTEGER_LEN_MAX: usize = 20;

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

/// The decimal spelling of an integer, without an allocation.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    digits: [u8; INTEGER_LEN_MAX],
    start: usize,
}

impl Decimal {
    /// The spelling of `value`.
    pub fn new(value: i64) -> Decimal {
        let mut decimal = Decimal {
            digits: [0; INTEGER_LEN_MAX],
            start: INTEGER_LEN_MAX,
        };
        let mut rest = value.unsigned_abs();
        loop {
            decimal.push_front(b'0' + (rest % 10) as u8);
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if value < 0 {
            decimal.push_front(b'-');
        }
        decimal
    }

    fn push_front(&mut self, byte: u8) {
        self.start -= 1;
        self.digits[self.start] = byte;
    }

    /// The characters.
    pub fn as_bytes(&self) -> &[u8] {
        &self.digits[self.start..]
    }
}

/// The bytes of a string, borrowed where they stand as such.
#[derive(Clone, Copy, Debug)]
pub enum Bytes<'a> {
    /// Bytes of the value.
    Slice(&'a [u8]),
    /// The spelling of an integer.
    Decimal(Decimal),
}

impl std::ops::Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Slice(bytes) => bytes,
            Bytes::Decimal(decimal) => decimal.as_bytes(),
        }
    }
}

impl StringValue {
    /// A string as SET stores it: as an integer if it is the spelling of one.
    pub fn new(bytes: &[u8]) -> StringValue {
        match StringValue::parse(bytes) {
            Some(value) => StringValue::Integer(value),
            None => StringValue::Text(Blob::from(bytes)),
        }
    }

    /// A string as SET stores it, of bytes that are already in a blob.
    pub fn from_blob(bytes: Blob) -> StringValue {
        match StringValue::parse(&bytes) {
            Some(value) => StringValue::Integer(value),
            None => StringValue::Text(bytes),
        }
    }

    fn parse(bytes: &[u8]) -> Option<i64> {
        // An i64 has at most 20 characters; longer strings need no look (object.c, `tryObjectEncoding`).
        (bytes.len() <= INTEGER_LEN_MAX)
            .then(|| number::parse_integer(bytes))
            .flatten()
    }

    /// The string's bytes, without a copy of a long one.
    pub fn bytes(&self) -> Bytes<'_> {
        match self {
            StringValue::Integer(value) => Bytes::Decimal(Decimal::new(*value)),
            StringValue::Text(text) => Bytes::Slice(text),
            StringValue::Raw(bytes) => Bytes::Slice(bytes),
        }
    }

    /// The string's bytes.
    pub fn to_blob(&self) -> Blob {
        match self {
            StringValue::Text(text) => text.clone(),
            value => Blob::from(&*value.bytes()),
        }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    /// Whether the string is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The integer that the string spells, whatever its encoding.
    pub fn integer(&self) -> Option<i64> {
        match self {
            StringValue::Integer(value) => Some(*value),
            value => StringValue::parse(&value.bytes()),
        }
    }

    /// The bytes, to change in place: the string is `raw` from now on.
    pub fn raw_mut(&mut self) -> &mut Vec<u8> {
        let bytes = match std::mem::replace(self, StringValue::Integer(0)) {
            StringValue::Integer(value) => Decimal::new(value).as_bytes().to_vec(),
            StringValue::Text(text) => text.into_vec(),
            StringValue::Raw(bytes) => bytes,
        };
        *self = StringValue::Raw(bytes);
        match self {
            StringValue::Raw(bytes) => bytes,
            StringValue::Integer(_) | StringValue::Text(_) => {
                unreachable!("it was made raw one line above")
            }
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
