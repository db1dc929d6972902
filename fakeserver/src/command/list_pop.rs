//! List commands that take elements from an end, to answer them or to move them; their waiting kin are in `list_blocking`.

use super::list::pushed;
use super::{Args, Command, CommandResult, Family, Flag, Group, KeySpec, Words, WriteCall};
use crate::error::CommandError;
use crate::keyspace::{Event, Keyspace, Told};
use crate::value::{End, List, ListLimits, number};
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
    Command::write("LMOVE",      5,   &[DenyOom],       BOTH,                lmove).since("6.2.0"),
    Command::write("LMPOP",     -4,   &[MovableKeys],   KeySpec::CountAt(1), lmpop).since("7.0.0"),
    Command::write("LPOP",      -2,   &[Fast],          KeySpec::FIRST,      lpop),
    Command::write("RPOP",      -2,   &[Fast],          KeySpec::FIRST,      rpop),
    Command::write("RPOPLPUSH",  3,   &[DenyOom],       BOTH,                rpoplpush).since("1.2.0"),
]);

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
    let moved = route.move_element(call.keyspace, ListLimits::of(call.config))?;
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
    let moved = route.move_element(call.keyspace, ListLimits::of(call.config))?;
    Ok(moved.unwrap_or(Reply::Null))
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
        keyspace.answer_here();
        keyspace.changed(key, self::popped(end).counting(popped.len()));
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
        limits: ListLimits,
    ) -> Result<Option<Reply>, CommandError> {
        if keyspace.peek::<List>(self.source)?.is_none() {
            return Ok(None);
        }
        keyspace.peek::<List>(self.destination)?;
        let list = keyspace.write::<List>(self.source)?;
        let Some(element) = list.and_then(|list| list.pop(self.from)) else {
            return Ok(None);
        };
        let list = keyspace.write_or_create(self.destination, || List::new(limits))?;
        list.push(self.to, element.clone());
        // Redis tells of the push first.
        keyspace.answer_behind_next();
        keyspace.changed(self.destination, pushed(self.to).counting(0));
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

/// Reads `LEFT` or `RIGHT`.
pub(super) fn parse_end(word: &[u8]) -> Result<End, CommandError> {
    match word.to_ascii_uppercase().as_slice() {
        b"LEFT" => Ok(End::Left),
        b"RIGHT" => Ok(End::Right),
        _ => Err(CommandError::Syntax),
    }
}

fn popped(end: End) -> Event {
    let event = match end {
        End::Left => Event::list("lpop"),
        End::Right => Event::list("rpop"),
    };
    event.told(Told::Last)
}
