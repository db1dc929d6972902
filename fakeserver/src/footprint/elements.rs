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
    ("hdel",         Kind::Hash,      Deed::Remove, Places::All),
    ("hexists",      Kind::Hash,      Deed::Read,   Places::At(2)),
    ("hget",         Kind::Hash,      Deed::Read,   Places::At(2)),
    ("hincrby",      Kind::Hash,      Deed::Put,    Places::At(2)),
    ("hincrbyfloat", Kind::Hash,      Deed::Put,    Places::At(2)),
    ("hmget",        Kind::Hash,      Deed::Read,   Places::All),
    ("hmset",        Kind::Hash,      Deed::Put,    Places::Alternate),
    ("hset",         Kind::Hash,      Deed::Put,    Places::Alternate),
    ("hsetnx",       Kind::Hash,      Deed::Put,    Places::At(2)),
    ("hstrlen",      Kind::Hash,      Deed::Read,   Places::At(2)),
    ("sadd",         Kind::Set,       Deed::Put,    Places::All),
    ("sismember",    Kind::Set,       Deed::Read,   Places::At(2)),
    ("smismember",   Kind::Set,       Deed::Read,   Places::All),
    ("srem",         Kind::Set,       Deed::Remove, Places::All),
    ("zadd",         Kind::SortedSet, Deed::Put,    Places::Scored),
    ("zincrby",      Kind::SortedSet, Deed::Put,    Places::At(3)),
    ("zmscore",      Kind::SortedSet, Deed::Read,   Places::All),
    ("zrem",         Kind::SortedSet, Deed::Remove, Places::All),
    ("zscore",       Kind::SortedSet, Deed::Read,   Places::At(2)),
];

/// Other commands whose reply and effect do not depend on the order of a hash's or set's elements, nor on the encoding. All that
/// are not here count as if they did. Sorted sets are in order of score and member, whatever was added first.
#[cfg(feature = "explore")]
#[rustfmt::skip]
const BLIND: &[&str] = &[
    "del", "exists", "expire", "expireat", "expiretime", "hlen", "persist", "pexpire", "pexpireat", "pexpiretime", "pttl",
    "scard", "set", "sintercard", "touch", "ttl", "type", "unlink", "watch",
    "zcard", "zcount", "zintercard", "zlexcount", "zmpop", "zpopmax", "zpopmin", "zrange", "zrangebylex", "zrangebyscore",
    "zrank", "zremrangebylex", "zremrangebyrank", "zremrangebyscore", "zrevrange", "zrevrangebylex", "zrevrangebyscore",
    "zrevrank",
];

/// The options of ZADD.
const ZADD_OPTIONS: [&[u8]; 6] = [b"NX", b"XX", b"GT", b"LT", b"CH", b"INCR"];

/// Calls `visit` with each element and what is done with it; whether the command is one that touches elements only.
pub(super) fn visit(row: &Row, request: &Request, mut visit: impl FnMut(usize, Part)) -> bool {
    if row.full_name() == "smove" {
        if let Some(member) = request.get(3) {
            visit(1, part(Kind::Set, Deed::Remove, member));
            visit(2, part(Kind::Set, Deed::Put, member));
        }
        return true;
    }
    let known = ELEMENTS.iter().find(|(name, ..)| *name == row.full_name());
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
    !BLIND.contains(&row.full_name())
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
