//! Names of keys: the only place that builds one.

use crate::{Rejection, StoreError};

/// Parts that a prefix may not have after its first one: `a` and `a:exe` would share keys.
const RESERVED_PARTS: [&str; 12] = [
    "exe",
    "outbox",
    "spawns",
    "processed",
    "timers",
    "trace",
    "q",
    "lock",
    "ready",
    "prio",
    "dead",
    "tries",
];

/// The key names of one store.
///
/// ```
/// let keys = store::keys::Keys::new("stm")?;
/// assert_eq!(keys.execution("order-17"), "stm:exe:order-17");
/// # Ok::<(), store::StoreError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    prefix: String,
}

impl Keys {
    /// The names under this prefix. A `{tag}` in it keeps all keys in one slot of a Redis Cluster.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if it is empty, contains NUL, or would share keys with the store of a shorter prefix.
    pub fn new(prefix: impl Into<String>) -> Result<Self, StoreError> {
        let prefix = prefix.into();
        let collides = prefix
            .split(':')
            .skip(1)
            .any(|part| RESERVED_PARTS.contains(&part));
        if prefix.is_empty() || prefix.contains('\0') || collides {
            return Err(StoreError::Invalid {
                what: "prefix",
                reason: Rejection::PrefixCollides,
            });
        }
        Ok(Self { prefix })
    }

    /// The prefix.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// String: the row of an execution.
    pub fn execution(&self, id: &str) -> String {
        self.key("exe:", id)
    }

    /// Set: the ids of the events that an execution has handled.
    pub fn processed(&self, id: &str) -> String {
        self.key("processed:", id)
    }

    /// List: the trace of an execution, oldest step first.
    pub fn trace(&self, id: &str) -> String {
        self.key("trace:", id)
    }

    /// String: how many trace steps an execution has numbered.
    pub fn trace_seq(&self, id: &str) -> String {
        self.key("trace:seq:", id)
    }

    /// Hash: events to deliver, by seq.
    pub fn outbox(&self) -> String {
        self.key("outbox", "")
    }

    /// String: the last seq of the outbox.
    pub fn outbox_seq(&self) -> String {
        self.key("outbox:seq", "")
    }

    /// Hash: executions to start, by seq.
    pub fn spawns(&self) -> String {
        self.key("spawns", "")
    }

    /// String: the last seq of the spawns.
    pub fn spawns_seq(&self) -> String {
        self.key("spawns:seq", "")
    }

    /// Sorted set: timers of all executions by time.
    pub fn timers(&self) -> String {
        self.key("timers", "")
    }

    /// Sorted set: ids by the time of their first commit, if the store keeps them in order. Not `exe:index`, which is the row
    /// of an execution of that name.
    pub fn index(&self) -> String {
        self.key("index", "")
    }

    /// Member of [`Keys::timers`] for one timer.
    pub fn timer_member(&self, id: &str, path: &str) -> String {
        format!("{id}\0{path}")
    }

    /// Glob pattern that matches every row of this store and, literally, nothing else.
    pub fn execution_pattern(&self) -> String {
        self.execution_pattern_of("")
    }

    /// As [`Keys::execution_pattern`], for the ids that begin with this text.
    pub fn execution_pattern_of(&self, id_prefix: &str) -> String {
        format!("{}:exe:{}*", literal(&self.prefix), literal(id_prefix))
    }

    /// Glob pattern that matches the members of [`Keys::timers`] of one execution.
    pub fn timer_pattern(&self, id: &str) -> String {
        format!("{}\0*", literal(id))
    }

    /// The execution of a row's key; none if the key is not this store's.
    pub fn execution_id<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        key.strip_prefix(self.prefix.as_bytes())?
            .strip_prefix(b":exe:")
    }

    fn key(&self, kind: &str, id: &str) -> String {
        let mut key = String::with_capacity(self.prefix.len() + 1 + kind.len() + id.len());
        key.push_str(&self.prefix);
        key.push(':');
        key.push_str(kind);
        key.push_str(id);
        key
    }
}

/// The glob pattern that matches this text and nothing else.
fn literal(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_prefix_colon_suffix() {
        let keys = Keys::new("stm").unwrap();
        let names = [
            (keys.execution("a"), "stm:exe:a"),
            (keys.processed("a"), "stm:processed:a"),
            (keys.trace("a"), "stm:trace:a"),
            (keys.trace_seq("a"), "stm:trace:seq:a"),
            (keys.outbox(), "stm:outbox"),
            (keys.outbox_seq(), "stm:outbox:seq"),
            (keys.spawns(), "stm:spawns"),
            (keys.spawns_seq(), "stm:spawns:seq"),
            (keys.timers(), "stm:timers"),
            (keys.timer_member("a", "p\0q"), "a\0p\0q"),
        ];
        for (name, expected) in names {
            assert_eq!(name, expected);
        }
    }

    #[test]
    fn glob_characters_of_a_prefix_match_themselves_only() {
        assert_eq!(
            Keys::new(r"s[t]m*?\").unwrap().execution_pattern(),
            r"s\[t\]m\*\?\\:exe:*"
        );
    }

    #[test]
    fn a_prefix_may_have_parts_and_tags_but_not_another_stores_keys() {
        for good in ["stm", "app:stm", "{stm}", "exe", "s*", "app:{t}:x"] {
            assert!(Keys::new(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "a:exe",
            "a:trace:seq",
            "a:outbox",
            "a:processed:x",
            "a\0",
        ] {
            assert!(Keys::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_foreign_key_has_no_execution_id() {
        let keys = Keys::new("s*").unwrap();
        assert_eq!(keys.execution_id(b"s*:exe:1"), Some(&b"1"[..]));
        assert_eq!(keys.execution_id(b"stm:exe:1"), None);
        assert_eq!(keys.execution_id(b"s*:outbox"), None);
    }
}
