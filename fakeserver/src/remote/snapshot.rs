//! [`Snapshot`]: the key space as data, taken through commands, so that any server will do.

use std::collections::BTreeMap;

use crate::observe::quote;
use crate::value::number;
use crate::wire::Reply;

/// Where a key is.
pub(crate) type Place = (usize, Vec<u8>);

/// All keys of a server.
pub(crate) type Snapshot = BTreeMap<Place, Entry>;

/// A key's value and time to live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// `string`, `list`, `set`, `zset`, `hash` or `stream`.
    pub(crate) kind: String,
    /// Milliseconds to live.
    pub(crate) ttl: Option<i64>,
    pub(crate) value: Value,
}

/// A value: its parts, in their order if they have one, or else sorted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
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
    pub(crate) fn len(&self) -> usize {
        match self {
            Value::Text(text) => text.len(),
            Value::Items(items) => items.len(),
            Value::Pairs(pairs) => pairs.len(),
        }
    }
}

/// Runs a command of our own on the server.
pub(crate) type Ask<'a> = dyn FnMut(&[&[u8]]) -> Reply + 'a;

/// Takes a snapshot of a server. Keys of types that it does not know are left out.
pub(crate) fn take(ask: &mut Ask<'_>) -> Snapshot {
    let mut snapshot = Snapshot::new();
    for db in used_databases(ask) {
        ask(&[b"SELECT", db.to_string().as_bytes()]);
        let mut keys = flat(ask(&[b"KEYS", b"*"]));
        keys.sort_unstable();
        for key in keys {
            if let Some(entry) = entry(ask, &key) {
                snapshot.insert((db, key), entry);
            }
        }
    }
    ask(&[b"SELECT", b"0"]);
    snapshot
}

/// Databases that hold a key.
pub(crate) fn used_databases(ask: &mut Ask<'_>) -> Vec<usize> {
    let info = flat(ask(&[b"INFO", b"keyspace"])).concat();
    let info = String::from_utf8_lossy(&info).into_owned();
    let number = |line: &str| line.strip_prefix("db")?.split(':').next()?.parse().ok();
    info.lines().filter_map(number).collect()
}

fn entry(ask: &mut Ask<'_>, key: &[u8]) -> Option<Entry> {
    let kind = flat(ask(&[b"TYPE", key])).concat();
    let kind = String::from_utf8_lossy(&kind).into_owned();
    let value = match kind.as_str() {
        "string" => Value::Text(flat(ask(&[b"GET", key])).concat()),
        "list" => Value::Items(flat(ask(&[b"LRANGE", key, b"0", b"-1"]))),
        "set" => {
            let mut members = flat(ask(&[b"SMEMBERS", key]));
            members.sort_unstable();
            Value::Items(members)
        }
        "hash" => {
            let mut fields = paired(flat(ask(&[b"HGETALL", key])));
            fields.sort_unstable();
            Value::Pairs(fields)
        }
        "zset" => {
            let range = ask(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"]);
            Value::Pairs(paired(flat(range)))
        }
        "stream" => stream(ask, key),
        _ => return None,
    };
    let ttl = match ask(&[b"PTTL", key]) {
        Reply::Integer(millis @ 0..) => Some(millis),
        _ => None,
    };
    Some(Entry { kind, ttl, value })
}

/// Entries, then a part for each group: its name, and what is pending for whom.
fn stream(ask: &mut Ask<'_>, key: &[u8]) -> Value {
    let mut parts = Vec::new();
    if let Reply::Array(entries) = ask(&[b"XRANGE", key, b"-", b"+"]) {
        for entry in entries {
            let mut words = flat(entry).into_iter();
            let id = words.next().unwrap_or_default();
            parts.push((id, words.collect::<Vec<_>>().join(&b' ')));
        }
    }
    let groups = paired(flat(ask(&[b"XINFO", b"GROUPS", key])));
    for (_, name) in groups.iter().filter(|(field, _)| field == b"name") {
        let pending = ask(&[b"XPENDING", key, name, b"-", b"+", b"1000"]);
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
pub(crate) fn flat(reply: Reply) -> Vec<Vec<u8>> {
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

/// Bytes as redis-cli quotes them.
pub(crate) fn quoted(text: &[u8]) -> String {
    format!("\"{}\"", quote(text))
}

/// A value for readers.
pub(crate) fn shown_value(value: &Value) -> String {
    match value {
        Value::Text(text) => quoted(text),
        Value::Items(items) => {
            let items: Vec<_> = items.iter().map(|item| quoted(item)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Pairs(pairs) => {
            let pair =
                |(left, right): &(Vec<u8>, Vec<u8>)| format!("{}: {}", quoted(left), quoted(right));
            let pairs: Vec<_> = pairs.iter().map(pair).collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}
