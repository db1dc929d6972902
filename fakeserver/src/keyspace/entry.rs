//! What stands under a key: a value of one of Redis' types, its deadline, and when it was last used.

use std::cell::Cell;

use super::usage::{AccessNote, Tracking};
use crate::clock::Timestamp;
use crate::value::{Hash, List, Set, SortedSet, Stream, StringValue};

/// No deadline, in the place of one: the largest integer is a deadline that a client can ask for, the smallest is not.
const NEVER: i64 = i64::MIN;

/// A value with its deadline and its last access.
#[derive(Clone, Debug)]
pub struct Entry {
    value: Value,
    deadline: i64,
    /// The last access, or how often there were some.
    pub(super) note: AccessNote,
    /// Bytes with which the entry is counted, where they are.
    pub(super) counted: Cell<u32>,
}

impl Entry {
    /// A value without a deadline, used just now.
    pub(super) fn new(value: Value, now: Timestamp, tracking: Tracking) -> Entry {
        Entry {
            value,
            deadline: NEVER,
            note: AccessNote::new(now.seconds(), tracking),
            counted: Cell::new(0),
        }
    }

    /// The value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The value, to change.
    pub fn value_mut(&mut self) -> &mut Value {
        &mut self.value
    }

    /// The value alone.
    pub fn into_value(self) -> Value {
        self.value
    }

    /// The deadline, in milliseconds since the epoch.
    pub fn deadline(&self) -> Option<i64> {
        (self.deadline != NEVER).then_some(self.deadline)
    }

    /// Sets or removes the deadline. Inside of a keyspace use [`super::Keyspace::set_deadline`], which keeps the index.
    pub fn set_deadline(&mut self, deadline: Option<i64>) {
        self.deadline = deadline.unwrap_or(NEVER);
    }
}

/// A value of one of Redis' types.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value {
    /// A string.
    String(StringValue),
    /// A list.
    List(Box<List>),
    /// A hash.
    Hash(Box<Hash>),
    /// A set.
    Set(Box<Set>),
    /// A sorted set.
    SortedSet(Box<SortedSet>),
    /// A stream.
    Stream(Box<Stream>),
}

impl Value {
    /// The name that `TYPE` answers.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::String(_) => "string",
            Value::List(_) => "list",
            Value::Hash(_) => "hash",
            Value::Set(_) => "set",
            Value::SortedSet(_) => "zset",
            Value::Stream(_) => "stream",
        }
    }

    /// The name that `OBJECT ENCODING` answers.
    pub fn encoding(&self) -> &'static str {
        match self {
            Value::String(value) => value.encoding(),
            Value::List(value) => value.encoding(),
            Value::Hash(value) => value.encoding(),
            Value::Set(value) => value.encoding(),
            Value::SortedSet(value) => value.encoding(),
            Value::Stream(_) => "stream",
        }
    }

    /// Number of elements; of a string, its bytes.
    #[allow(
        clippy::len_without_is_empty,
        reason = "an empty string is a value, an empty container is none"
    )]
    pub fn len(&self) -> usize {
        match self {
            Value::String(value) => value.len(),
            Value::List(value) => value.len(),
            Value::Hash(value) => value.len(),
            Value::Set(value) => value.len(),
            Value::SortedSet(value) => value.len(),
            Value::Stream(value) => value.len(),
        }
    }

    /// Whether this is a container without elements, which Redis never keeps; an empty stream it does.
    pub fn is_empty_container(&self) -> bool {
        !matches!(self, Value::String(_) | Value::Stream(_)) && self.len() == 0
    }
}

/// A type that a key can hold.
pub trait Typed: Sized {
    /// The value as this type, if it is one.
    fn of(value: &Value) -> Option<&Self>;
    /// The value as this type, to change.
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
    /// This as a value.
    fn into_value(self) -> Value;
}

impl Typed for StringValue {
    fn of(value: &Value) -> Option<&StringValue> {
        if let Value::String(value) = value {
            Some(value)
        } else {
            None
        }
    }

    fn of_mut(value: &mut Value) -> Option<&mut StringValue> {
        if let Value::String(value) = value {
            Some(value)
        } else {
            None
        }
    }

    fn into_value(self) -> Value {
        Value::String(self)
    }
}

impl Typed for List {
    fn of(value: &Value) -> Option<&List> {
        if let Value::List(value) = value {
            Some(value)
        } else {
            None
        }
    }

    fn of_mut(value: &mut Value) -> Option<&mut List> {
        if let Value::List(value) = value {
            Some(value)
        } else {
            None
        }
    }

    fn into_value(self) -> Value {
        Value::List(Box::new(self))
    }
}

impl Typed for Hash {
    fn of(value: &Value) -> Option<&Hash> {
        if let Value::Hash(value) = value {
            Some(value)
        } else {
            None
        }
    }

    fn of_mut(value: &mut Value) -> Option<&mut Hash> {
        if let Value::Hash(value) = value {
            Some(value)
        } else {
            None
        }
    }

    fn into_value(self) -> Value {
        Value::Hash(Box::new(self))
    }
}

impl Typed for Set {
    fn of(value: &Value) -> Option<&Set> {
        if let Value::Set(value) = value {
            Some(value)
        } else {
            None
        }
    }

    fn of_mut(value: &mut Value) -> Option<&mut Set> {
        if let Value::Set(value) = value {
            Some(value)
        } else {
            None
        }
    }

    fn into_value(self) -> Value {
        Value::Set(Box::new(self))
    }
}

impl Typed for SortedSet {
    fn of(value: &Value) -> Option<&SortedSet> {
        if let Value::SortedSet(value) = value {
            Some(value)
        } else {
            None
        }
    }

    fn of_mut(value: &mut Value) -> Option<&mut SortedSet> {
        if let Value::SortedSet(value) = value {
            Some(value)
        } else {
            None
        }
    }

    fn into_value(self) -> Value {
        Value::SortedSet(Box::new(self))
    }
}

impl Typed for Stream {
    fn of(value: &Value) -> Option<&Stream> {
        if let Value::Stream(value) = value {
            Some(value)
        } else {
            None
        }
    }

    fn of_mut(value: &mut Value) -> Option<&mut Stream> {
        if let Value::Stream(value) = value {
            Some(value)
        } else {
            None
        }
    }

    fn into_value(self) -> Value {
        Value::Stream(Box::new(self))
    }
}
