//! List commands that look at elements, add them or change them; those that take some from an end are in `list_pop`.

use std::ops::Range;

use super::{
    Args, Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words, WriteCall,
};
use crate::error::CommandError;
use crate::keyspace::{Event, Told};
use crate::value::{Blob, End, List, ListLimits, Side, number};
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::List, &[
    //             name        arity  flags             keys                handler
    Command::read ("LINDEX",     3,   &[],              KeySpec::FIRST,      lindex),
    Command::write("LINSERT",    5,   &[DenyOom],       KeySpec::FIRST,      linsert).since("2.2.0"),
    Command::read ("LLEN",       2,   &[Fast],          KeySpec::FIRST,      llen),
    Command::read ("LPOS",      -3,   &[],              KeySpec::FIRST,      lpos).since("6.0.6"),
    Command::write("LPUSH",     -3,   &[DenyOom, Fast], KeySpec::FIRST,      lpush),
    Command::write("LPUSHX",    -3,   &[DenyOom, Fast], KeySpec::FIRST,      lpushx).since("2.2.0"),
    Command::read ("LRANGE",     4,   &[],              KeySpec::FIRST,      lrange),
    Command::write("LREM",       4,   &[],              KeySpec::FIRST,      lrem),
    Command::write("LSET",       4,   &[DenyOom],       KeySpec::FIRST,      lset),
    Command::write("LTRIM",      4,   &[],              KeySpec::FIRST,      ltrim),
    Command::write("RPUSH",     -3,   &[DenyOom, Fast], KeySpec::FIRST,      rpush),
    Command::write("RPUSHX",    -3,   &[DenyOom, Fast], KeySpec::FIRST,      rpushx).since("2.2.0"),
]);

/// `LINDEX key index`: replies with the element, or null; a negative index counts from the tail.
///
/// Errors: `WRONGTYPE`; not an integer, unless the key is missing.
fn lindex(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key, index] = call.words()?;
    let Some(list) = call.keyspace.read::<List>(key)? else {
        return Ok(Reply::Null);
    };
    let index = number::parse_integer(index).ok_or(CommandError::NotAnInteger)?;
    let element = place(index, list.len()).and_then(|index| list.get(index));
    Ok(element.map_or(Reply::Null, bulk))
}

/// `LINSERT key BEFORE|AFTER pivot element`: inserts beside the first element equal to the pivot; replies with the length, -1 if
/// there is no such element, 0 if there is no key.
///
/// Errors: syntax; `WRONGTYPE`.
fn linsert(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key, side, pivot, element] = call.words()?;
    let side = match side.to_ascii_uppercase().as_slice() {
        b"BEFORE" => Side::Before,
        b"AFTER" => Side::After,
        _ => return Err(CommandError::Syntax),
    };
    let Some(list) = call.keyspace.write::<List>(key)? else {
        return Ok(Reply::Integer(0));
    };
    let Some(index) = list.iter().position(|each| each.as_bytes() == pivot) else {
        return Ok(Reply::Integer(-1));
    };
    list.insert(index, side, element);
    let len = list.len();
    call.keyspace.changed(key, Event::list("linsert"));
    Ok(Reply::count(len))
}

/// `LLEN key`: replies with the number of elements. Errors: `WRONGTYPE`.
fn llen(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key] = call.words()?;
    let list = call.keyspace.read::<List>(key)?;
    Ok(Reply::count(list.map_or(0, List::len)))
}

/// `LPOS key element [RANK rank] [COUNT num-matches] [MAXLEN len]`: replies with the index of the first element that is equal,
/// or null; with COUNT, with an array of the indexes of so many, 0 for all. RANK skips matches, a negative one goes from tail
/// to head. MAXLEN bounds the comparisons.
///
/// Errors: syntax; a rank of 0; a negative count or length; not an integer; `WRONGTYPE`.
fn lpos(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (key, element) = (args.next()?, args.next()?);
    let search = Search::parse(args)?;
    let list = call.keyspace.read::<List>(key)?;
    let mut found = list.map_or_else(Vec::new, |list| search.places(list, element));
    if search.count.is_some() {
        return Ok(Reply::Array(found));
    }
    Ok(found.pop().unwrap_or(Reply::Null))
}

/// `LPUSH key element [element ...]`: adds elements at the head, one by one; replies with the length. Errors: `WRONGTYPE`.
fn lpush(call: &mut WriteCall<'_>) -> CommandResult {
    push(call, End::Left, IfMissing::Create)
}

/// `LPUSHX key element [element ...]`: as LPUSH, if there is a list; replies with the length, or 0. Errors: `WRONGTYPE`.
fn lpushx(call: &mut WriteCall<'_>) -> CommandResult {
    push(call, End::Left, IfMissing::Leave)
}

/// `LRANGE key start stop`: replies with an array of the elements from start to stop, negative ones counted from the tail.
///
/// Errors: not an integer; `WRONGTYPE`.
fn lrange(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key, start, stop] = call.words()?;
    let bounds = Bounds::parse(start, stop)?;
    let Some(list) = call.keyspace.read::<List>(key)? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let elements = list.range(bounds.within(list.len()));
    Ok(Reply::Array(elements.map(bulk).collect()))
}

/// `LREM key count element`: removes elements that are equal, so many from the head, from the tail if negative, all if 0;
/// replies with how many there were.
///
/// Errors: not an integer; `WRONGTYPE`.
fn lrem(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key, count, element] = call.words()?;
    let count = number::parse_integer(count).ok_or(CommandError::NotAnInteger)?;
    let (end, count) = match count {
        0 => (End::Left, usize::MAX),
        1.. => (End::Left, count as usize),
        _ => (End::Right, count.unsigned_abs() as usize),
    };
    let Some(list) = call.keyspace.write::<List>(key)? else {
        return Ok(Reply::Integer(0));
    };
    let removed = list.remove_equal(element, end, count);
    if removed > 0 {
        call.keyspace
            .changed(key, Event::list("lrem").counting(removed));
    }
    Ok(Reply::count(removed))
}

/// `LSET key index element`: replaces an element; replies with `OK`.
///
/// Errors: no such key; `WRONGTYPE`; not an integer; index out of range.
fn lset(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key, index, element] = call.words()?;
    let list = call.keyspace.write::<List>(key)?;
    let list = list.ok_or(CommandError::NoSuchKey)?;
    let index = number::parse_integer(index).ok_or(CommandError::NotAnInteger)?;
    if !place(index, list.len()).is_some_and(|index| list.set(index, element)) {
        return Err(CommandError::IndexOutOfRange);
    }
    call.keyspace.answer_here();
    call.keyspace.changed(key, Event::list("lset"));
    Ok(Reply::OK)
}

/// `LTRIM key start stop`: removes the elements outside of the range; replies with `OK`. Errors: not an integer; `WRONGTYPE`.
///
/// To Redis this is a change even if nothing is removed.
fn ltrim(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key, start, stop] = call.words()?;
    let bounds = Bounds::parse(start, stop)?;
    if let Some(list) = call.keyspace.write::<List>(key)? {
        let range = bounds.within(list.len());
        let removed = list.len() - range.len();
        list.trim(range);
        let event = Event::list("ltrim").told(Told::Last);
        call.keyspace.changed(key, event.counting(removed));
    }
    Ok(Reply::OK)
}

/// `RPUSH key element [element ...]`: adds elements at the tail; replies with the length. Errors: `WRONGTYPE`.
fn rpush(call: &mut WriteCall<'_>) -> CommandResult {
    push(call, End::Right, IfMissing::Create)
}

/// `RPUSHX key element [element ...]`: as RPUSH, if there is a list; replies with the length, or 0. Errors: `WRONGTYPE`.
fn rpushx(call: &mut WriteCall<'_>) -> CommandResult {
    push(call, End::Right, IfMissing::Leave)
}

/// What a push does without a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IfMissing {
    Create,
    Leave,
}

fn push(call: &mut WriteCall<'_>, end: End, if_missing: IfMissing) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    if if_missing == IfMissing::Leave && call.keyspace.peek::<List>(key)?.is_none() {
        return Ok(Reply::Integer(0));
    }
    let limits = ListLimits::of(call.config);
    let list = call.keyspace.write_or_create(key, || List::new(limits))?;
    let added = args.len();
    for element in args.rest() {
        list.push(end, Blob::from(element));
    }
    let len = list.len();
    call.keyspace.answer_here();
    call.keyspace.changed(key, pushed(end).counting(added));
    Ok(Reply::count(len))
}

/// What LPOS looks for.
#[derive(Clone, Copy, Debug)]
struct Search {
    from: End,
    /// Number of the first match that counts, from 1 on.
    rank: u64,
    count: Option<u64>,
    compared_max: usize,
}

impl Search {
    fn parse(mut args: Args<'_>) -> Result<Search, CommandError> {
        let mut search = Search {
            from: End::Left,
            rank: 1,
            count: None,
            compared_max: usize::MAX,
        };
        while !args.is_empty() {
            if args.keyword("RANK") {
                let rank = args.integer()?;
                (search.from, search.rank) = match rank {
                    0 => return Err(CommandError::RankZero),
                    1.. => (End::Left, rank as u64),
                    // Redis cannot negate this one, and any match has a higher rank.
                    i64::MIN => (End::Right, 1),
                    _ => (End::Right, rank.unsigned_abs()),
                };
            } else if args.keyword("COUNT") {
                let count = number::parse_integer(args.next()?);
                let count = count.and_then(|count| u64::try_from(count).ok());
                search.count = Some(count.ok_or(CommandError::CountNegative)?);
            } else if args.keyword("MAXLEN") {
                let len = number::parse_integer(args.next()?);
                let len = len.and_then(|len| usize::try_from(len).ok());
                let len = len.ok_or(CommandError::MaxlenNegative)?;
                search.compared_max = if len == 0 { usize::MAX } else { len };
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(search)
    }

    /// The indexes of the matches that count, in the order of the search.
    fn places(&self, list: &List, element: &[u8]) -> Vec<Reply> {
        let wanted = match self.count {
            None => 1,
            Some(0) => usize::MAX,
            Some(count) => count as usize,
        };
        let skipped = usize::try_from(self.rank - 1).unwrap_or(usize::MAX);
        let hit = |(_, each): &(usize, &Blob)| each.as_bytes() == element;
        let indexes = list.iter().enumerate();
        let reply = |(index, _): (usize, &Blob)| Reply::count(index);
        match self.from {
            End::Left => indexes
                .take(self.compared_max)
                .filter(hit)
                .skip(skipped)
                .take(wanted)
                .map(reply)
                .collect(),
            End::Right => indexes
                .rev()
                .take(self.compared_max)
                .filter(hit)
                .skip(skipped)
                .take(wanted)
                .map(reply)
                .collect(),
        }
    }
}

/// The bounds of LRANGE and LTRIM, both included.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    start: i64,
    stop: i64,
}

impl Bounds {
    fn parse(start: &[u8], stop: &[u8]) -> Result<Bounds, CommandError> {
        let start = number::parse_integer(start).ok_or(CommandError::NotAnInteger)?;
        let stop = number::parse_integer(stop).ok_or(CommandError::NotAnInteger)?;
        Ok(Bounds { start, stop })
    }

    /// The indexes that are meant in a list of so many elements.
    fn within(self, len: usize) -> Range<usize> {
        let len = len as i64;
        let from_head = |index: i64| {
            if index < 0 {
                index.saturating_add(len)
            } else {
                index
            }
        };
        let (start, stop) = (from_head(self.start).max(0), from_head(self.stop));
        if start > stop || start >= len {
            return 0..0;
        }
        start as usize..stop.min(len - 1) as usize + 1
    }
}

/// The place that an index means in a list of so many elements, negative ones counted from the tail.
fn place(index: i64, len: usize) -> Option<usize> {
    let index = if index < 0 {
        index.checked_add(len as i64)?
    } else {
        index
    };
    usize::try_from(index).ok().filter(|index| *index < len)
}

/// The event of a push.
pub(super) fn pushed(end: End) -> Event {
    match end {
        End::Left => Event::list("lpush"),
        End::Right => Event::list("rpush"),
    }
}

fn bulk(element: &Blob) -> Reply {
    Reply::Bulk(element.clone())
}
