//! List commands that wait for an element if there is none.
//!
//! Each tries at once, and is run again when one of its keys is written; see [`crate::blocking`].

use super::list_pop::{BOTH, MultiPop, Route, parse_end, pop_elements};
use super::{Command, CommandResult, Family, Flag, Group, KeySpec, Words, WriteCall, timeout};
use crate::error::CommandError;
use crate::value::{Blob, End, List, ListLimits};
use crate::wire::Reply;
use Flag::*;

/// All words but the time-out at the end.
const ALL_BUT_LAST: KeySpec = KeySpec::Range {
    first: 1,
    last: -2,
    step: 1,
};

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::List, &[
    //             name         arity  flags                          keys                handler
    Command::write("BLMOVE",      6,   &[DenyOom, NoScript, Blocking], BOTH,                blmove).since("6.2.0"),
    Command::write("BLMPOP",     -5,   &[Blocking, MovableKeys],       KeySpec::CountAt(2), blmpop).since("7.0.0"),
    Command::write("BLPOP",      -3,   &[NoScript, Blocking],          ALL_BUT_LAST,        blpop).since("2.0.0"),
    Command::write("BRPOP",      -3,   &[NoScript, Blocking],          ALL_BUT_LAST,        brpop).since("2.0.0"),
    Command::write("BRPOPLPUSH",  4,   &[DenyOom, NoScript, Blocking], BOTH,                brpoplpush).since("2.2.0"),
]);

/// `BLMOVE source destination LEFT|RIGHT LEFT|RIGHT timeout`: as LMOVE, waiting for the source; replies with the element, with a
/// null array at time-out, with null in a transaction.
///
/// Errors: syntax; not a float; a negative time-out; `WRONGTYPE`.
fn blmove(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, source, destination, from, to, timeout] = call.words()?;
    let route = Route {
        source,
        destination,
        from: parse_end(from)?,
        to: parse_end(to)?,
    };
    move_or_wait(call, route, timeout::parse_seconds(timeout)?)
}

/// `BLMPOP timeout numkeys key [key ...] LEFT|RIGHT [COUNT count]`: as LMPOP, waiting for one of the lists; replies with the key
/// and an array of the elements, or with a null array.
///
/// Errors: those of LMPOP, then not a float; a negative time-out; `WRONGTYPE`.
fn blmpop(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let timeout = args.next()?;
    let request = MultiPop::parse(args)?;
    let timeout_ms = timeout::parse_seconds(timeout)?;
    for key in &request.keys {
        if call.source::<List>(key)?.is_some() {
            return request.pop_from(call.keyspace, key);
        }
    }
    call.wait_for(request.keys.into_iter().map(Blob::from), timeout_ms);
    Ok(Reply::NullArray)
}

/// `BLPOP key [key ...] timeout`: removes the first element of the first list that there is, waiting for one; replies with its
/// key and the element, or with a null array.
///
/// Errors: not a float; a negative time-out; `WRONGTYPE` of a key in front of the first list.
fn blpop(call: &mut WriteCall<'_>) -> CommandResult {
    pop_or_wait(call, End::Left)
}

/// `BRPOP key [key ...] timeout`: as BLPOP, from the tail.
fn brpop(call: &mut WriteCall<'_>) -> CommandResult {
    pop_or_wait(call, End::Right)
}

/// `BRPOPLPUSH source destination timeout`: `BLMOVE source destination RIGHT LEFT timeout`.
fn brpoplpush(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, source, destination, timeout] = call.words()?;
    let route = Route {
        source,
        destination,
        from: End::Right,
        to: End::Left,
    };
    move_or_wait(call, route, timeout::parse_seconds(timeout)?)
}

fn pop_or_wait(call: &mut WriteCall<'_>, end: End) -> CommandResult {
    let mut keys: Vec<&[u8]> = call.args().rest().collect();
    let timeout = keys.pop().ok_or(CommandError::Syntax)?;
    let timeout_ms = timeout::parse_seconds(timeout)?;
    for key in &keys {
        if call.source::<List>(key)?.is_some() {
            let popped = pop_elements(call.keyspace, key, end, 1)?;
            let element = popped.and_then(|mut elements| elements.pop());
            return Ok(Reply::Array(vec![
                Reply::bulk(key),
                element.unwrap_or(Reply::Null),
            ]));
        }
    }
    call.wait_for(keys.into_iter().map(Blob::from), timeout_ms);
    Ok(Reply::NullArray)
}

fn move_or_wait(call: &mut WriteCall<'_>, route: Route<'_>, timeout_ms: i64) -> CommandResult {
    if call.source::<List>(route.source)?.is_some() {
        let moved = route.move_element(call.keyspace, ListLimits::of(call.config))?;
        return Ok(moved.unwrap_or(Reply::Null));
    }
    call.wait_for([Blob::from(route.source)], timeout_ms);
    call.time_out_with(Reply::NullArray);
    Ok(Reply::Null)
}
