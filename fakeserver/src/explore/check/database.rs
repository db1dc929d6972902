//! [`Database`]: the keys for a check to look at, at no cost to the run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use redis::{FromRedisValue, RedisResult, Value};

use crate::command::{Flag, lookup};
use crate::wire::Request;

/// The keys between two steps, or after the last one. A look takes no connection and no time, and no client can tell.
///
/// What cannot be read as asked panics, which breaks the property that looks.
pub struct Database<'a> {
    peek: &'a mut dyn FnMut(&Request) -> RedisResult<Value>,
}

impl fmt::Debug for Database<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Database")
    }
}

impl<'a> Database<'a> {
    pub(in crate::explore) fn new(
        peek: &'a mut dyn FnMut(&Request) -> RedisResult<Value>,
    ) -> Database<'a> {
        Database { peek }
    }

    /// The reply to a command that only reads.
    pub fn call<T: AsRef<[u8]>>(&mut self, words: impl IntoIterator<Item = T>) -> Value {
        let request = Request::new(words);
        let name = || request.name().escape_ascii().to_string();
        let reads = lookup(request.name()).is_some_and(|row| row.has(Flag::ReadOnly));
        assert!(reads, "a check may only read, and {} may do more", name());
        match (self.peek)(&request) {
            Ok(Value::ServerError(error)) => panic!("{}: {error}", name()),
            Ok(reply) => reply,
            Err(error) => panic!("{}: {error}", name()),
        }
    }

    /// The same, as a type of the caller's choice.
    pub fn query<R: FromRedisValue, T: AsRef<[u8]>>(
        &mut self,
        words: impl IntoIterator<Item = T>,
    ) -> R {
        let reply = self.call(words);
        let text = format!("{reply:?}");
        redis::from_redis_value(reply).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// The string at a key; none if there is no key.
    pub fn get<R: FromRedisValue>(&mut self, key: impl AsRef<[u8]>) -> Option<R> {
        self.query([b"GET", key.as_ref()])
    }

    /// A field of the hash at a key.
    pub fn hget<R: FromRedisValue>(
        &mut self,
        key: impl AsRef<[u8]>,
        field: impl AsRef<[u8]>,
    ) -> Option<R> {
        self.query([b"HGET", key.as_ref(), field.as_ref()])
    }

    /// All fields of the hash at a key.
    pub fn hgetall(&mut self, key: impl AsRef<[u8]>) -> BTreeMap<String, String> {
        self.query([b"HGETALL", key.as_ref()])
    }

    /// All elements of the list at a key.
    pub fn lrange(&mut self, key: impl AsRef<[u8]>) -> Vec<String> {
        self.query([b"LRANGE", key.as_ref(), b"0", b"-1"])
    }

    /// All members of the set at a key.
    pub fn smembers(&mut self, key: impl AsRef<[u8]>) -> BTreeSet<String> {
        self.query([b"SMEMBERS", key.as_ref()])
    }

    /// All members of the sorted set at a key with their scores, in order.
    pub fn zrange(&mut self, key: impl AsRef<[u8]>) -> Vec<(String, f64)> {
        self.query([b"ZRANGE", key.as_ref(), b"0", b"-1", b"WITHSCORES"])
    }

    /// Whether there is a key.
    pub fn exists(&mut self, key: impl AsRef<[u8]>) -> bool {
        self.query([b"EXISTS", key.as_ref()])
    }

    /// Milliseconds until a key expires; none if it never does, or is not there.
    pub fn pttl(&mut self, key: impl AsRef<[u8]>) -> Option<u64> {
        let left: i64 = self.query([b"PTTL", key.as_ref()]);
        u64::try_from(left).ok()
    }

    /// The keys that match a pattern, in order.
    pub fn keys(&mut self, pattern: impl AsRef<[u8]>) -> BTreeSet<String> {
        self.query([b"KEYS", pattern.as_ref()])
    }
}
