//! [`Snapshot`]: the key space as data, taken through commands, so that any server will do.

use std::collections::BTreeMap;

use super::upstream::Upstream;
use crate::value::number;
use crate::wire::Reply;

/// Where a key is.
pub(super) type Place = (usize, Vec<u8>);

/// All keys of a server.
pub(super) type Snapshot = BTreeMap<Place, Entry>;

/// A key's value and time to live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// `string`, `list`, `set`, `zset`, `hash` or `stream`.
    pub(super) kind: String,
    /// Milliseconds to live.
    pub(super) ttl: Option<i64>,
    pub(super) value: Value,
}

/// A value: its parts, in their order if they have one, or else sorted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value {
    /// A string.
    Text(Vec<u8>),
    /// List elements, or set members.
    Items(Vec<Vec<u8>>),
    /// Hash fields with values, sorted set members with scores, stream entries with their fields; the last two parts of a
    /// stream are its groups.
    Pairs(Vec<(Vec<u8>, Vec<u8>)>),
}

impl Value {
    /// How many parts it has; bytes, for a string.
    pub(super) fn len(&self) -> usize {
        match self {
            Value::Text(text) => text.len(),
            Value::Items(items) => items.len(),
            Value::Pairs(pairs) => pairs.len(),
        }
    }
}

/// Takes a snapshot of a server. Keys of types that it does not know are left out.
pub(super) fn take(upstream: &mut dyn Upstream) -> Snapshot {
    let mut snapshot = Snapshot::new();
    for db in used_databases(upstream) {
        upstream.ask(&[b"SELECT", db.to_string().as_bytes()]);
        let mut keys = flat(upstream.ask(&[b"KEYS", b"*"]));
        keys.sort_unstable();
        for key in keys {
            if let Some(entry) = entry(upstream, &key) {
                snapshot.insert((db, key), entry);
            }
        }
    }
    upstream.ask(&[b"SELECT", b"0"]);
    snapshot
}

/// Databases that hold a key.
pub(super) fn used_databases(upstream: &mut dyn Upstream) -> Vec<usize> {
    let info = flat(upstream.ask(&[b"INFO", b"keyspace"])).concat();
    let info = String::from_utf8_lossy(&info).into_owned();
    let number = |line: &str| line.strip_prefix("db")?.split(':').next()?.parse().ok();
    info.lines().filter_map(number).collect()
}

fn entry(upstream: &mut dyn Upstream, key: &[u8]) -> Option<Entry> {
    let kind = flat(upstream.ask(&[b"TYPE", key])).concat();
    let kind = String::from_utf8_lossy(&kind).into_owned();
    let value = match kind.as_str() {
        "string" => Value::Text(flat(upstream.ask(&[b"GET", key])).concat()),
        "list" => Value::Items(flat(upstream.ask(&[b"LRANGE", key, b"0", b"-1"]))),
        "set" => {
            let mut members = flat(upstream.ask(&[b"SMEMBERS", key]));
            members.sort_unstable();
            Value::Items(members)
        }
        "hash" => {
            let mut fields = paired(flat(upstream.ask(&[b"HGETALL", key])));
            fields.sort_unstable();
            Value::Pairs(fields)
        }
        "zset" => {
            let range = upstream.ask(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"]);
            Value::Pairs(paired(flat(range)))
        }
        "stream" => stream(upstream, key),
        _ => return None,
    };
    let ttl = match upstream.ask(&[b"PTTL", key]) {
        Reply::Integer(millis @ 0..) => Some(millis),
        _ => None,
    };
    Some(Entry { kind, ttl, value })
}

/// Entries, then a part for each group: its name, and what is pending for whom.
fn stream(upstream: &mut dyn Upstream, key: &[u8]) -> Value {
    let mut parts = Vec::new();
    if let Reply::Array(entries) = upstream.ask(&[b"XRANGE", key, b"-", b"+"]) {
        for entry in entries {
            let mut words = flat(entry).into_iter();
            let id = words.next().unwrap_or_default();
            parts.push((id, words.collect::<Vec<_>>().join(&b' ')));
        }
    }
    let groups = paired(flat(upstream.ask(&[b"XINFO", b"GROUPS", key])));
    for (_, name) in groups.iter().filter(|(field, _)| field == b"name") {
        let pending = upstream.ask(&[b"XPENDING", key, name, b"-", b"+", b"1000"]);
        let Reply::Array(pending) = pending else {
            continue;
        };
        // An entry's idle time says nothing about what was done.
        let told = pending.into_iter().map(|entry| {
            let words = flat(entry);
            words
                .iter()
                .take(2)
                .cloned()
                .collect::<Vec<_>>()
                .join(&b' ')
        });
        let told = told.collect::<Vec<_>>().join(&b',');
        parts.push(([b"group ", name.as_slice()].concat(), told));
    }
    Value::Pairs(parts)
}

/// Pairs of what follows each other.
fn paired(words: Vec<Vec<u8>>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut words = words.into_iter();
    let next = || Some((words.next()?, words.next().unwrap_or_default()));
    std::iter::from_fn(next).collect()
}

/// The scalars of a reply, one after the other.
pub(super) fn flat(reply: Reply) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut left = vec![reply];
    while let Some(reply) = left.pop() {
        match reply {
            Reply::Array(items)
            | Reply::Set(items)
            | Reply::Push(items)
            | Reply::Several(items) => {
                left.extend(items.into_iter().rev());
            }
            Reply::Map(pairs) | Reply::Pairs(pairs) | Reply::Streams(pairs) => {
                let words = pairs.into_iter().flat_map(|(key, value)| [key, value]);
                let mut words: Vec<_> = words.collect();
                words.reverse();
                left.append(&mut words);
            }
            Reply::Simple(text) => found.push(text.into_owned().into_bytes()),
            Reply::Status(text) | Reply::Bulk(text) | Reply::BigNumber(text) => {
                found.push(text.into_vec());
            }
            Reply::Verbatim(_, text) => found.push(text.into_vec()),
            Reply::Integer(n) => found.push(n.to_string().into_bytes()),
            Reply::Double(n) => found.push(number::format_double(n).into_bytes()),
            Reply::Null | Reply::NullArray => found.push(b"(nil)".to_vec()),
            _ => {}
        }
    }
    found
}
