//! Which elements of hashes, sets and sorted sets a command touches, and which commands do not see in which order they lie.

use super::{Deed, Kind, Part, hashed};
use crate::command::Row;
use crate::wire::Request;

/// Where a command's elements are among its words.
#[derive(Clone, Copy)]
enum Places {
    /// One, at this position.
    At(usize),
    /// From the third word on.
    All,
    /// From the third word on every other one.
    Alternate,
    /// Each behind its score, which are behind ZADD's options.
    Scored,
}

/// Commands that touch elements of one key, at position 1.
#[rustfmt::skip]
const ELEMENTS: &[(&str, Kind, Deed, Places)] = &[
    ("HDEL",         Kind::Hash,      Deed::Remove, Places::All),
    ("HEXISTS",      Kind::Hash,      Deed::Read,   Places::At(2)),
    ("HGET",         Kind::Hash,      Deed::Read,   Places::At(2)),
    ("HINCRBY",      Kind::Hash,      Deed::Put,    Places::At(2)),
    ("HINCRBYFLOAT", Kind::Hash,      Deed::Put,    Places::At(2)),
    ("HMGET",        Kind::Hash,      Deed::Read,   Places::All),
    ("HMSET",        Kind::Hash,      Deed::Put,    Places::Alternate),
    ("HSET",         Kind::Hash,      Deed::Put,    Places::Alternate),
    ("HSETNX",       Kind::Hash,      Deed::Put,    Places::At(2)),
    ("HSTRLEN",      Kind::Hash,      Deed::Read,   Places::At(2)),
    ("SADD",         Kind::Set,       Deed::Put,    Places::All),
    ("SISMEMBER",    Kind::Set,       Deed::Read,   Places::At(2)),
    ("SMISMEMBER",   Kind::Set,       Deed::Read,   Places::All),
    ("SREM",         Kind::Set,       Deed::Remove, Places::All),
    ("ZADD",         Kind::SortedSet, Deed::Put,    Places::Scored),
    ("ZINCRBY",      Kind::SortedSet, Deed::Put,    Places::At(3)),
    ("ZMSCORE",      Kind::SortedSet, Deed::Read,   Places::All),
    ("ZREM",         Kind::SortedSet, Deed::Remove, Places::All),
    ("ZSCORE",       Kind::SortedSet, Deed::Read,   Places::At(2)),
];

/// Other commands whose reply and effect do not depend on the order of a hash's or set's elements, nor on the encoding. All that
/// are not here count as if they did. Sorted sets are in order of score and member, whatever was added first.
#[cfg(feature = "explore")]
#[rustfmt::skip]
const BLIND: &[&str] = &[
    "DEL", "EXISTS", "EXPIRE", "EXPIREAT", "EXPIRETIME", "HLEN", "PERSIST", "PEXPIRE", "PEXPIREAT", "PEXPIRETIME", "PTTL",
    "SCARD", "SET", "SINTERCARD", "TOUCH", "TTL", "TYPE", "UNLINK", "WATCH",
    "ZCARD", "ZCOUNT", "ZINTERCARD", "ZLEXCOUNT", "ZMPOP", "ZPOPMAX", "ZPOPMIN", "ZRANGE", "ZRANGEBYLEX", "ZRANGEBYSCORE",
    "ZRANK", "ZREMRANGEBYLEX", "ZREMRANGEBYRANK", "ZREMRANGEBYSCORE", "ZREVRANGE", "ZREVRANGEBYLEX", "ZREVRANGEBYSCORE",
    "ZREVRANK",
];

/// The options of ZADD.
const ZADD_OPTIONS: [&[u8]; 6] = [b"NX", b"XX", b"GT", b"LT", b"CH", b"INCR"];

/// Calls `visit` with each element and what is done with it; whether the command is one that touches elements only.
pub(super) fn visit(row: &Row, request: &Request, mut visit: impl FnMut(usize, Part)) -> bool {
    if row.name() == "SMOVE" {
        if let Some(member) = request.get(3) {
            visit(1, part(Kind::Set, Deed::Remove, member));
            visit(2, part(Kind::Set, Deed::Put, member));
        }
        return true;
    }
    let known = ELEMENTS.iter().find(|(name, ..)| *name == row.name());
    let Some((_, kind, deed, places)) = known else {
        return false;
    };
    let (first, step) = match places {
        Places::At(at) => (*at, usize::MAX),
        Places::All => (2, 1),
        Places::Alternate => (2, 2),
        Places::Scored => (first_member(request), 2),
    };
    for at in (first..request.len()).step_by(step) {
        if let Some(element) = request.get(at) {
            visit(1, part(*kind, *deed, element));
        }
    }
    true
}

/// Whether the command may depend on the order of elements.
#[cfg(feature = "explore")]
pub(super) fn sees_order(row: &Row) -> bool {
    !BLIND.contains(&row.name())
}

fn part(kind: Kind, deed: Deed, element: &[u8]) -> Part {
    Part::Element {
        kind,
        element: hashed(element),
        deed,
    }
}

fn first_member(request: &Request) -> usize {
    let is_option = |word: &[u8]| {
        let mut options = ZADD_OPTIONS.iter();
        options.any(|option| word.eq_ignore_ascii_case(option))
    };
    let options = request.words().skip(2).take_while(|word| is_option(word));
    2 + options.count() + 1
}
