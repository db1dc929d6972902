//! What a command that ran has read and written, down to the fields of hashes and the members of sets: finer than a footprint,
//! since the reply tells whether it did.

use redis::Value;

use crate::command::{Access, Flag, Group, lookup};
use crate::footprint::key_positions;
use crate::wire::Request;

/// One key, or an element of it, that a command touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) key: Vec<u8>,
    pub(super) element: Option<Vec<u8>>,
    pub(super) writes: bool,
    /// Whether what was there before is gone without having been looked at in the same step.
    pub(super) overwrites: bool,
}

/// What a command does to the transaction of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    Begins,
    Commits,
    Discards,
}

pub(super) fn effect(request: &Request) -> Effect {
    match request.name().to_ascii_uppercase().as_slice() {
        b"MULTI" => Effect::Begins,
        b"EXEC" => Effect::Commits,
        b"DISCARD" | b"RESET" => Effect::Discards,
        _ => Effect::None,
    }
}

/// Which elements a command names, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Elements {
    /// All of the key.
    Whole,
    /// The word at 2.
    One,
    /// Every word from 2 on.
    All,
    /// Every other word from 2 on.
    Pairs,
    /// Every other word from the end: score and member.
    ScoredPairs,
    /// The last word.
    Last,
}

/// Commands that replace or remove what was there whatever it was. Others that write work on what they find (`INCR`, `RPUSH`,
/// scripts), or say what it was (`GETSET`).
const OVERWRITES: [(&str, Elements); 15] = [
    ("SET", Elements::Whole),
    ("SETEX", Elements::Whole),
    ("PSETEX", Elements::Whole),
    ("MSET", Elements::Whole),
    ("DEL", Elements::Whole),
    ("UNLINK", Elements::Whole),
    ("LSET", Elements::Whole),
    ("LTRIM", Elements::Whole),
    ("SETRANGE", Elements::Whole),
    ("HSET", Elements::Pairs),
    ("HMSET", Elements::Pairs),
    ("HDEL", Elements::All),
    ("ZADD", Elements::ScoredPairs),
    ("ZREM", Elements::All),
    ("SREM", Elements::All),
];

/// Other commands that name elements.
const ELEMENTS: [(&str, Elements); 14] = [
    ("HGET", Elements::One),
    ("HMGET", Elements::All),
    ("HEXISTS", Elements::One),
    ("HSTRLEN", Elements::One),
    ("HINCRBY", Elements::One),
    ("HINCRBYFLOAT", Elements::One),
    ("HSETNX", Elements::One),
    ("SADD", Elements::All),
    ("SISMEMBER", Elements::One),
    ("SMISMEMBER", Elements::All),
    ("ZSCORE", Elements::One),
    ("ZMSCORE", Elements::All),
    ("ZRANK", Elements::One),
    ("ZINCRBY", Elements::Last),
];

/// Commands that write and leave the value as it is.
const KEEPS_VALUE: [&str; 6] = [
    "EXPIRE",
    "PEXPIRE",
    "EXPIREAT",
    "PEXPIREAT",
    "PERSIST",
    "TOUCH",
];

/// What a command has touched, given its reply.
pub(super) fn touches(request: &Request, reply: Option<&Value>) -> Vec<Touch> {
    let Some(row) = lookup(request.name()) else {
        return Vec::new();
    };
    let refused = matches!(reply, Some(Value::ServerError(_)));
    if refused || row.name() == "WATCH" || KEEPS_VALUE.contains(&row.name()) {
        return Vec::new();
    }
    let is_script = row.group() == Group::Scripting;
    let overwriting = OVERWRITES.iter().find(|(name, _)| *name == row.name());
    let conditional = is_conditional(row.name(), request);
    let named = overwriting.or_else(|| ELEMENTS.iter().find(|(name, _)| *name == row.name()));
    let elements = named.map_or(Elements::Whole, |(_, elements)| *elements);
    let mut touches = Vec::new();
    for (at, access) in key_positions(row, request) {
        let writes = access == Access::Write && !row.has(Flag::ReadOnly);
        let nothing = writes && !has_written(row.name(), conditional, reply);
        let Some(key) = request
            .get(at)
            .filter(|_| !nothing && (writes || !is_script))
        else {
            continue;
        };
        let touch = |element: Option<&[u8]>| Touch {
            key: key.to_vec(),
            element: element.map(<[u8]>::to_vec),
            writes,
            overwrites: writes && overwriting.is_some() && !conditional,
        };
        let words = elements_of(elements, request);
        if words.is_empty() {
            touches.push(touch(None));
        }
        touches.extend(words.into_iter().map(|word| touch(Some(word))));
    }
    touches
}

fn elements_of(elements: Elements, request: &Request) -> Vec<&[u8]> {
    let words = request.words().skip(2);
    match elements {
        Elements::Whole => Vec::new(),
        Elements::One => words.take(1).collect(),
        Elements::All => words.collect(),
        Elements::Pairs => words.step_by(2).collect(),
        Elements::Last => words.last().into_iter().collect(),
        Elements::ScoredPairs => {
            let words: Vec<&[u8]> = words.collect();
            let is_score = |word: &[u8]| {
                std::str::from_utf8(word).is_ok_and(|word| word.parse::<f64>().is_ok())
            };
            let begin = words.iter().position(|word| is_score(word));
            let pairs = words.get(begin.unwrap_or(words.len())..);
            let members = pairs.unwrap_or_default().iter().skip(1).step_by(2);
            members.copied().collect()
        }
    }
}

/// Whether the command looks at what is there before it writes.
fn is_conditional(name: &str, request: &Request) -> bool {
    let behind = match name {
        "SET" => 3,
        "ZADD" => 2,
        _ => return false,
    };
    let options: [&[u8]; 6] = [b"NX", b"XX", b"GT", b"LT", b"GET", b"INCR"];
    request.words().skip(behind).any(|word| {
        options
            .iter()
            .any(|option| word.eq_ignore_ascii_case(option))
    })
}

/// Whether something was written, as far as the reply tells.
fn has_written(name: &str, conditional: bool, reply: Option<&Value>) -> bool {
    match (name, reply) {
        // A client that waits has got nothing yet.
        (_, None) => false,
        ("SET" | "ZADD", Some(Value::Nil)) => !conditional,
        (
            "DEL" | "UNLINK" | "HDEL" | "SREM" | "SADD" | "ZREM" | "SETNX" | "HSETNX" | "MSETNX"
            | "LREM" | "RENAMENX" | "COPY",
            Some(Value::Int(0)),
        ) => false,
        _ => true,
    }
}
