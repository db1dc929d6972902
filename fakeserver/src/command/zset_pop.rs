//! Sorted set commands that remove the members with the lowest or highest scores, at once or waiting for one.

use super::sorted_set::members_reply;
use super::{
    Args, Command, CommandResult, Family, Flag, Group, KeySpec, Words, WriteCall, timeout,
};
use crate::error::CommandError;
use crate::keyspace::{Event, Keyspace, Told};
use crate::value::ordered::Item;
use crate::value::{Blob, SortedSet};
use crate::wire::Reply;
use Flag::*;

/// All words but the time-out at the end.
const ALL_BUT_LAST: KeySpec = KeySpec::Range {
    first: 1,
    last: -2,
    step: 1,
};

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::SortedSet, &[
    //             name       arity  flags                       keys                handler
    Command::write("BZMPOP",   -5,   &[Blocking, MovableKeys],    KeySpec::CountAt(2), bzmpop).since("7.0.0"),
    Command::write("BZPOPMAX", -3,   &[NoScript, Blocking, Fast], ALL_BUT_LAST,        bzpopmax).since("5.0.0"),
    Command::write("BZPOPMIN", -3,   &[NoScript, Blocking, Fast], ALL_BUT_LAST,        bzpopmin).since("5.0.0"),
    Command::write("ZMPOP",    -4,   &[MovableKeys],              KeySpec::CountAt(1), zmpop).since("7.0.0"),
    Command::write("ZPOPMAX",  -2,   &[Fast],                     KeySpec::FIRST,      zpopmax).since("5.0.0"),
    Command::write("ZPOPMIN",  -2,   &[Fast],                     KeySpec::FIRST,      zpopmin).since("5.0.0"),
]);

/// `BZMPOP timeout numkeys key [key ...] MIN | MAX [COUNT count]`: as ZMPOP, waiting for one of the keys; replies with a null
/// array at time-out.
///
/// Errors: those of ZMPOP, then not a float; a negative time-out; `WRONGTYPE`.
fn bzmpop(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let timeout = args.next()?;
    let request = MultiPop::parse(args)?;
    let timeout_ms = timeout::parse_seconds(timeout)?;
    for key in &request.keys {
        if call.source::<SortedSet>(key)?.is_some() {
            return request.pop_from(call.keyspace, key);
        }
    }
    call.wait_for(request.keys.into_iter().map(Blob::from), timeout_ms);
    Ok(Reply::NullArray)
}

/// `BZPOPMAX key [key ...] timeout`: as BZPOPMIN, with the highest score.
fn bzpopmax(call: &mut WriteCall<'_>) -> CommandResult {
    pop_or_wait(call, End::Max)
}

/// `BZPOPMIN key [key ...] timeout`: removes the member with the lowest score of the first key that there is, waiting for
/// one; replies with the key, the member and the score as a double, or with a null array at time-out.
///
/// Errors: not a float; a negative time-out; `WRONGTYPE` of a key in front of the first sorted set.
fn bzpopmin(call: &mut WriteCall<'_>) -> CommandResult {
    pop_or_wait(call, End::Min)
}

/// `ZMPOP numkeys key [key ...] MIN | MAX [COUNT count]`: removes members of the first key that there is; replies with the
/// key and an array of pairs of members and scores, or with a null array.
///
/// Errors: number of keys or count not above 0; syntax; `WRONGTYPE`.
fn zmpop(call: &mut WriteCall<'_>) -> CommandResult {
    let request = MultiPop::parse(call.args())?;
    for key in &request.keys {
        if call.keyspace.peek::<SortedSet>(key)?.is_some() {
            return request.pop_from(call.keyspace, key);
        }
    }
    Ok(Reply::NullArray)
}

/// `ZPOPMAX key [count]`: as ZPOPMIN, from the highest score down.
fn zpopmax(call: &mut WriteCall<'_>) -> CommandResult {
    pop_one_or_count(call, End::Max)
}

/// `ZPOPMIN key [count]`: removes members from the lowest score on; replies with an array of member and score, with a count
/// with pairs, empty if the key is missing.
///
/// Errors: a count that is no integer or negative; syntax; `WRONGTYPE`.
fn zpopmin(call: &mut WriteCall<'_>) -> CommandResult {
    pop_one_or_count(call, End::Min)
}

/// From which end members are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Min,
    Max,
}

/// Removes so many members, from the end inwards, and reports it: `within` leads to the first of them in the reply.
fn pop(
    keyspace: &mut Keyspace,
    key: &[u8],
    end: End,
    count: usize,
    within: &'static [usize],
) -> Result<Vec<Item>, CommandError> {
    let Some(set) = keyspace.write::<SortedSet>(key)? else {
        return Ok(Vec::new());
    };
    let len = set.len();
    let count = count.min(len);
    let (items, event) = match end {
        End::Min => (set.drain(0..count), "zpopmin"),
        End::Max => {
            let mut items = set.drain(len - count..len);
            items.reverse();
            (items, "zpopmax")
        }
    };
    if !items.is_empty() {
        keyspace.answer_around_next(within);
        let event = Event::sorted_set(event).told(Told::BeforeRemoval);
        keyspace.changed(key, event.counting(items.len()));
    }
    Ok(items)
}

fn pop_one_or_count(call: &mut WriteCall<'_>, end: End) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let count = match args.len() {
        0 => None,
        1 => {
            let count = args.integer().ok().and_then(|count| count.try_into().ok());
            Some(count.ok_or(CommandError::OutOfRangePositive)?)
        }
        _ => return Err(CommandError::Syntax),
    };
    let items = pop(call.keyspace, key, end, count.unwrap_or(1), &[0])?;
    if count.is_none() {
        let flat = items.into_iter().flat_map(member_and_score);
        return Ok(Reply::Array(flat.collect()));
    }
    if items.is_empty() {
        return Ok(Reply::Array(Vec::new()));
    }
    let members = items.into_iter().map(|item| (item.member, item.score));
    Ok(members_reply(members, true))
}

fn pop_or_wait(call: &mut WriteCall<'_>, end: End) -> CommandResult {
    let mut keys: Vec<&[u8]> = call.args().rest().collect();
    let timeout = keys.pop().ok_or(CommandError::Syntax)?;
    let timeout_ms = timeout::parse_seconds(timeout)?;
    for key in &keys {
        if call.source::<SortedSet>(key)?.is_some() {
            let items = pop(call.keyspace, key, end, 1, &[1])?;
            let popped = items.into_iter().flat_map(member_and_score);
            let reply = std::iter::once(Reply::bulk(key)).chain(popped);
            return Ok(Reply::Array(reply.collect()));
        }
    }
    call.wait_for(keys.into_iter().map(Blob::from), timeout_ms);
    Ok(Reply::NullArray)
}

fn member_and_score(item: Item) -> [Reply; 2] {
    [Reply::Bulk(item.member), Reply::Double(item.score)]
}

/// `numkeys key [key ...] MIN | MAX [COUNT count]`
#[derive(Clone, Debug)]
struct MultiPop<'a> {
    keys: Vec<&'a [u8]>,
    end: End,
    count: usize,
}

impl<'a> MultiPop<'a> {
    fn parse(mut args: Args<'a>) -> Result<MultiPop<'a>, CommandError> {
        let positive = |args: &mut Args<'a>| {
            let number = args
                .integer()
                .ok()
                .and_then(|number| number.try_into().ok());
            number.filter(|number: &usize| *number > 0)
        };
        let len = positive(&mut args).ok_or(CommandError::NumkeysNotPositive)?;
        // One word at least must be left behind the keys.
        if len >= args.len() {
            return Err(CommandError::Syntax);
        }
        let keys = (0..len).map(|_| args.next()).collect::<Result<_, _>>()?;
        let end = if args.keyword("MIN") {
            End::Min
        } else if args.keyword("MAX") {
            End::Max
        } else {
            return Err(CommandError::Syntax);
        };
        let mut count = None;
        while !args.is_empty() {
            if count.is_some() || args.len() < 2 || !args.keyword("COUNT") {
                return Err(CommandError::Syntax);
            }
            count = Some(positive(&mut args).ok_or(CommandError::CountNotPositive)?);
        }
        let count = count.unwrap_or(1);
        Ok(MultiPop { keys, end, count })
    }

    fn pop_from(&self, keyspace: &mut Keyspace, key: &[u8]) -> CommandResult {
        let items = pop(keyspace, key, self.end, self.count, &[1, 0])?;
        let pairs = items
            .into_iter()
            .map(|item| Reply::Array(member_and_score(item).into()));
        let pairs = Reply::Array(pairs.collect());
        Ok(Reply::Array(vec![Reply::bulk(key), pairs]))
    }
}
