//! List commands that do not wait; their waiting kin are in `list_blocking`.

use std::ops::Range;

use super::{
    Args, Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words, WriteCall,
};
use crate::error::CommandError;
use crate::keyspace::{Event, Keyspace};
use crate::value::{Blob, End, List, number};
use crate::wire::Reply;
use Flag::*;

/// Where an element comes from and goes to.
pub(super) const BOTH: KeySpec = KeySpec::Range {
    first: 1,
    last: 2,
    step: 1,
};

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::List, &[
    //             name        arity  flags             keys                handler
    Command::read ("LINDEX",     3,   &[],              KeySpec::FIRST,      lindex),
    Command::write("LINSERT",    5,   &[DenyOom],       KeySpec::FIRST,      linsert).since("2.2.0"),
    Command::read ("LLEN",       2,   &[Fast],          KeySpec::FIRST,      llen),
    Command::write("LMOVE",      5,   &[DenyOom],       BOTH,                lmove).since("6.2.0"),
    Command::write("LMPOP",     -4,   &[MovableKeys],   KeySpec::CountAt(1), lmpop).since("7.0.0"),
    Command::write("LPOP",      -2,   &[Fast],          KeySpec::FIRST,      lpop),
    Command::read ("LPOS",      -3,   &[],              KeySpec::FIRST,      lpos).since("6.0.6"),
    Command::write("LPUSH",     -3,   &[DenyOom, Fast], KeySpec::FIRST,      lpush),
    Command::write("LPUSHX",    -3,   &[DenyOom, Fast], KeySpec::FIRST,      lpushx).since("2.2.0"),
    Command::read ("LRANGE",     4,   &[],              KeySpec::FIRST,      lrange),
    Command::write("LREM",       4,   &[],              KeySpec::FIRST,      lrem),
    Command::write("LSET",       4,   &[DenyOom],       KeySpec::FIRST,      lset),
    Command::write("LTRIM",      4,   &[],              KeySpec::FIRST,      ltrim),
    Command::write("RPOP",      -2,   &[Fast],          KeySpec::FIRST,      rpop),
    Command::write("RPOPLPUSH",  3,   &[DenyOom],       BOTH,                rpoplpush).since("1.2.0"),
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
    let behind = match side.to_ascii_uppercase().as_slice() {
        b"BEFORE" => 0,
        b"AFTER" => 1,
        _ => return Err(CommandError::Syntax),
    };
    let Some(list) = call.keyspace.write::<List>(key)? else {
        return Ok(Reply::Integer(0));
    };
    let Some(index) = list.iter().position(|each| each.as_bytes() == pivot) else {
        return Ok(Reply::Integer(-1));
    };
    list.insert(index + behind, element);
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

/// `LMOVE source destination LEFT|RIGHT LEFT|RIGHT`: moves an element; replies with it, or null if there is no source.
///
/// Errors: syntax; `WRONGTYPE`, of the destination only if there is a source.
fn lmove(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, source, destination, from, to] = call.words()?;
    let route = Route {
        source,
        destination,
        from: parse_end(from)?,
        to: parse_end(to)?,
    };
    let moved = route.move_element(call.keyspace)?;
    Ok(moved.unwrap_or(Reply::Null))
}

/// `LMPOP numkeys key [key ...] LEFT|RIGHT [COUNT count]`: removes elements of the first list that there is; replies with its
/// key and an array of the elements, or a null array.
///
/// Errors: a number of keys or a count below 1; syntax; `WRONGTYPE` of a key in front of the first list.
fn lmpop(call: &mut WriteCall<'_>) -> CommandResult {
    let request = MultiPop::parse(call.args())?;
    for key in &request.keys {
        if call.keyspace.peek::<List>(key)?.is_some() {
            return request.pop_from(call.keyspace, key);
        }
    }
    Ok(Reply::NullArray)
}

/// `LPOP key [count]`: removes and replies with the first element, or null; with a count, with an array of at most so many, or
/// a null array if the key is missing.
///
/// Errors: wrong number of arguments; a count that is none or negative; `WRONGTYPE`.
fn lpop(call: &mut WriteCall<'_>) -> CommandResult {
    pop(call, End::Left)
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
        call.keyspace.changed(key, Event::list("lrem"));
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
        list.trim(bounds.within(list.len()));
        call.keyspace.changed(key, Event::list("ltrim"));
    }
    Ok(Reply::OK)
}

/// `RPOP key [count]`: as LPOP, from the tail.
fn rpop(call: &mut WriteCall<'_>) -> CommandResult {
    pop(call, End::Right)
}

/// `RPOPLPUSH source destination`: `LMOVE source destination RIGHT LEFT`.
fn rpoplpush(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, source, destination] = call.words()?;
    let route = Route {
        source,
        destination,
        from: End::Right,
        to: End::Left,
    };
    let moved = route.move_element(call.keyspace)?;
    Ok(moved.unwrap_or(Reply::Null))
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
    let list = call.keyspace.write_or_create(key, List::new)?;
    for element in args.rest() {
        list.push(end, Blob::from(element));
    }
    let len = list.len();
    call.keyspace.changed(key, pushed(end));
    Ok(Reply::count(len))
}

fn pop(call: &mut WriteCall<'_>, end: End) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let count = args.next_if_any();
    if !args.is_empty() {
        return Err(call.wrong_arity());
    }
    let Some(count) = count else {
        let popped = pop_elements(call.keyspace, key, end, 1)?;
        let element = popped.and_then(|mut elements| elements.pop());
        return Ok(element.unwrap_or(Reply::Null));
    };
    let count = number::parse_integer(count)
        .and_then(|count| usize::try_from(count).ok())
        .ok_or(CommandError::OutOfRangePositive)?;
    let popped = pop_elements(call.keyspace, key, end, count)?;
    Ok(popped.map_or(Reply::NullArray, Reply::Array))
}

/// Removes at most `count` elements from one end; none if there is no list.
pub(super) fn pop_elements(
    keyspace: &mut Keyspace,
    key: &[u8],
    end: End,
    count: usize,
) -> Result<Option<Vec<Reply>>, CommandError> {
    let Some(list) = keyspace.write::<List>(key)? else {
        return Ok(None);
    };
    let mut popped = Vec::with_capacity(count.min(list.len()));
    while popped.len() < count
        && let Some(element) = list.pop(end)
    {
        popped.push(Reply::Bulk(element));
    }
    if !popped.is_empty() {
        keyspace.changed(key, self::popped(end));
    }
    Ok(Some(popped))
}

/// From where to where an element is to be moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route<'a> {
    pub source: &'a [u8],
    pub destination: &'a [u8],
    pub from: End,
    pub to: End,
}

impl Route<'_> {
    /// Moves an element; none if there is no source.
    pub(super) fn move_element(
        &self,
        keyspace: &mut Keyspace,
    ) -> Result<Option<Reply>, CommandError> {
        if keyspace.peek::<List>(self.source)?.is_none() {
            return Ok(None);
        }
        keyspace.peek::<List>(self.destination)?;
        let list = keyspace.write::<List>(self.source)?;
        let Some(element) = list.and_then(|list| list.pop(self.from)) else {
            return Ok(None);
        };
        let list = keyspace.write_or_create(self.destination, List::new)?;
        list.push(self.to, element.clone());
        // Redis tells of the push first.
        keyspace.changed(self.destination, pushed(self.to));
        keyspace.changed(self.source, popped(self.from));
        Ok(Some(Reply::Bulk(element)))
    }
}

/// What LMPOP and BLMPOP ask for.
#[derive(Clone, Debug)]
pub(super) struct MultiPop<'a> {
    pub keys: Vec<&'a [u8]>,
    end: End,
    count: usize,
}

impl<'a> MultiPop<'a> {
    /// Reads `numkeys key [key ...] LEFT|RIGHT [COUNT count]` to the end of the arguments.
    pub(super) fn parse(mut args: Args<'a>) -> Result<MultiPop<'a>, CommandError> {
        let keys_len = number::parse_integer(args.next()?)
            .filter(|count| *count > 0)
            .ok_or(CommandError::NumkeysNotPositive)?;
        if keys_len > args.len() as i64 {
            return Err(CommandError::Syntax);
        }
        let keys = (0..keys_len)
            .map(|_| args.next())
            .collect::<Result<_, _>>()?;
        let end = parse_end(args.next()?)?;
        let mut count = None;
        while !args.is_empty() {
            if count.is_some() || !args.keyword("COUNT") {
                return Err(CommandError::Syntax);
            }
            let given = number::parse_integer(args.next()?).filter(|count| *count > 0);
            count = Some(given.ok_or(CommandError::CountNotPositive)? as usize);
        }
        let count = count.unwrap_or(1);
        Ok(MultiPop { keys, end, count })
    }

    /// Removes elements of the list at `key`; the reply.
    pub(super) fn pop_from(&self, keyspace: &mut Keyspace, key: &[u8]) -> CommandResult {
        let popped = pop_elements(keyspace, key, self.end, self.count)?;
        let elements = popped.unwrap_or_default();
        Ok(Reply::Array(vec![Reply::bulk(key), Reply::Array(elements)]))
    }
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

/// Reads `LEFT` or `RIGHT`.
pub(super) fn parse_end(word: &[u8]) -> Result<End, CommandError> {
    match word.to_ascii_uppercase().as_slice() {
        b"LEFT" => Ok(End::Left),
        b"RIGHT" => Ok(End::Right),
        _ => Err(CommandError::Syntax),
    }
}

fn pushed(end: End) -> Event {
    match end {
        End::Left => Event::list("lpush"),
        End::Right => Event::list("rpush"),
    }
}

fn popped(end: End) -> Event {
    match end {
        End::Left => Event::list("lpop"),
        End::Right => Event::list("rpop"),
    }
}

fn bulk(element: &Blob) -> Reply {
    Reply::Bulk(element.clone())
}
