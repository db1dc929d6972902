//! Set commands that act on one set, and SMOVE; those that combine sets are in `set_algebra`.

use super::sample::{self, Sample};
use super::scan::{self, ScanOptions};
use super::{Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words, WriteCall};
use crate::error::CommandError;
use crate::keyspace::{Event, Told};
use crate::value::{Blob, Member, Set, SetLimits, number};
use crate::wire::Reply;
use Flag::*;

/// SMOVE's keys: from and to.
const BOTH: KeySpec = KeySpec::Range {
    first: 1,
    last: 2,
    step: 1,
};

/// SPOP leaves a set of its own for the survivors if there are at least so many times more members to go (`t_set.c`,
/// `SPOP_MOVE_STRATEGY_MUL`); one sees it by the encoding.
const POPPED_PER_SURVIVOR: usize = 5;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Set, &[
    //             name          arity  flags             keys            handler
    Command::write("SADD",        -3,   &[DenyOom, Fast], KeySpec::FIRST, sadd),
    Command::read ("SCARD",        2,   &[Fast],          KeySpec::FIRST, scard),
    Command::read ("SISMEMBER",    3,   &[Fast],          KeySpec::FIRST, sismember),
    Command::read ("SMEMBERS",     2,   &[],              KeySpec::FIRST, smembers),
    Command::read ("SMISMEMBER",  -3,   &[Fast],          KeySpec::FIRST, smismember).since("6.2.0"),
    Command::write("SMOVE",        4,   &[Fast],          BOTH,           smove),
    Command::write("SPOP",        -2,   &[Fast],          KeySpec::FIRST, spop),
    Command::read ("SRANDMEMBER", -2,   &[],              KeySpec::FIRST, srandmember),
    Command::write("SREM",        -3,   &[Fast],          KeySpec::FIRST, srem),
    Command::read ("SSCAN",       -3,   &[],              KeySpec::FIRST, sscan).since("2.8.0"),
]);

/// `SADD key member [member ...]`: adds members; replies with how many are new. Errors: `WRONGTYPE`.
fn sadd(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let (limits, seed) = (SetLimits::of(call.config), call.keyspace.seed());
    let set = call.keyspace.write_or_create(key, || Set::new(seed))?;
    let added = args.rest().filter(|member| set.add(member, limits)).count();
    if added > 0 {
        call.keyspace
            .changed(key, Event::set("sadd").counting(added));
    }
    Ok(Reply::count(added))
}

/// `SCARD key`: replies with the number of members. Errors: `WRONGTYPE`.
fn scard(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key] = call.words()?;
    let set = call.keyspace.read::<Set>(key)?;
    Ok(Reply::count(set.map_or(0, Set::len)))
}

/// `SISMEMBER key member`: replies with 1 if the member is in the set, or 0. Errors: `WRONGTYPE`.
fn sismember(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key, member] = call.words()?;
    let set = call.keyspace.read::<Set>(key)?;
    Ok(Reply::flag(set.is_some_and(|set| set.contains(member))))
}

/// `SMEMBERS key`: replies with a set of all members. Errors: `WRONGTYPE`.
fn smembers(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key] = call.words()?;
    let set = call.keyspace.read::<Set>(key)?;
    Ok(Reply::Set(bulks(set.into_iter().flat_map(Set::iter))))
}

/// `SMISMEMBER key member [member ...]`: replies with an array of 1 or 0 for each member. Errors: `WRONGTYPE`.
fn smismember(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let set = call.keyspace.read::<Set>(args.next()?)?;
    let found = args
        .rest()
        .map(|member| Reply::flag(set.is_some_and(|set| set.contains(member))));
    Ok(Reply::Array(found.collect()))
}

/// `SMOVE source destination member`: moves a member; replies with 1, or 0 if it was not in the source.
///
/// Errors: `WRONGTYPE` of either key, though not of the destination if there is no source.
fn smove(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, source, destination, member] = call.words()?;
    let Some(from) = call.keyspace.peek::<Set>(source)? else {
        return Ok(Reply::Integer(0));
    };
    let found = from.contains(member);
    call.keyspace.peek::<Set>(destination)?;
    if !found || source == destination {
        return Ok(Reply::flag(found));
    }
    if let Some(from) = call.keyspace.write::<Set>(source)? {
        from.remove(member);
    }
    call.keyspace
        .changed(source, Event::set("srem").told(Told::Last));
    let (limits, seed) = (SetLimits::of(call.config), call.keyspace.seed());
    let to = call
        .keyspace
        .write_or_create(destination, || Set::new(seed))?;
    if to.add(member, limits) {
        call.keyspace.changed(destination, Event::set("sadd"));
    }
    Ok(Reply::Integer(1))
}

/// `SPOP key [count]`: removes and replies with a random member, or null; with a count, a set of so many members, empty if the
/// key is missing.
///
/// Errors: a count that is none or negative; syntax; `WRONGTYPE`.
fn spop(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let count = args.next_if_any();
    args.finish()?;
    let Some(count) = count else {
        return pop_one(call, key);
    };
    let count = number::parse_integer(count)
        .and_then(|count| usize::try_from(count).ok())
        .ok_or(CommandError::OutOfRangePositive)?;
    Ok(Reply::Set(pop(call, key, count)?))
}

/// `SRANDMEMBER key [count]`: replies with a random member or null; with a count, with an array of so many different members,
/// or if it is negative of so many members that may repeat, empty if the key is missing.
///
/// Errors: syntax; not an integer; out of range; `WRONGTYPE`.
fn srandmember(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    if args.is_empty() {
        let set = call.keyspace.read::<Set>(key)?;
        let chosen = set.and_then(|set| set.at(call.rng.usize(..set.len().max(1))));
        return Ok(chosen.map_or(Reply::Null, bulk));
    }
    let count = args.next()?;
    args.finish()?;
    let count = number::parse_integer(count).ok_or(CommandError::NotAnInteger)?;
    if count == i64::MIN {
        return Err(CommandError::OutOfRangeBetween {
            min: -i64::MAX,
            max: i64::MAX,
        });
    }
    let set = call.keyspace.read::<Set>(key)?;
    let sample = Sample::of(count)?;
    let Some(set) = set else {
        return Ok(Reply::Array(Vec::new()));
    };
    let indexes = sample.draw(set.len(), call.rng);
    Ok(Reply::Array(bulks(
        indexes.into_iter().filter_map(|index| set.at(index)),
    )))
}

/// `SREM key member [member ...]`: removes members; replies with how many there were. Errors: `WRONGTYPE`.
fn srem(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let Some(set) = call.keyspace.write::<Set>(key)? else {
        return Ok(Reply::Integer(0));
    };
    let removed = args.rest().filter(|member| set.remove(member)).count();
    if removed > 0 {
        call.keyspace
            .changed(key, Event::set("srem").counting(removed));
    }
    Ok(Reply::count(removed))
}

/// `SSCAN key cursor [MATCH pattern] [COUNT count]`: replies with the next cursor and an array of members.
///
/// Errors: invalid cursor; `WRONGTYPE`; not an integer; syntax.
fn sscan(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let cursor = scan::parse_cursor(args.next()?)?;
    let Some(set) = call.keyspace.read::<Set>(key)? else {
        return Ok(scan::reply(0, Vec::new()));
    };
    let options = ScanOptions::parse(args)?;
    let mut items = Vec::new();
    let mut visit = |member: &Blob| {
        if options.matches(member) {
            items.push(Reply::Bulk(member.clone()));
        }
    };
    let next = if let Some(table) = set.table() {
        options.page(cursor, table, |member, ()| visit(member))
    } else {
        set.iter().for_each(|member| visit(&member.to_blob()));
        0
    };
    Ok(scan::reply(next, items))
}

/// Removes one random member; the reply.
fn pop_one(call: &mut WriteCall<'_>, key: &[u8]) -> CommandResult {
    let Some(set) = call.keyspace.write::<Set>(key)? else {
        return Ok(Reply::Null);
    };
    let index = call.rng.usize(..set.len().max(1));
    let Some(member) = set.at(index).map(Member::to_blob) else {
        return Ok(Reply::Null);
    };
    set.remove(&member);
    call.keyspace.answer_behind_next();
    call.keyspace
        .changed(key, Event::set("spop").told(Told::Last));
    Ok(Reply::Bulk(member))
}

/// Removes at most `count` random members.
fn pop(call: &mut WriteCall<'_>, key: &[u8], count: usize) -> Result<Vec<Reply>, CommandError> {
    let (limits, seed) = (SetLimits::of(call.config), call.keyspace.seed());
    let Some(set) = call.keyspace.write::<Set>(key)? else {
        return Ok(Vec::new());
    };
    if count == 0 {
        return Ok(Vec::new());
    }
    let survivors = set.len().saturating_sub(count);
    let popped = if survivors.saturating_mul(POPPED_PER_SURVIVOR) <= count {
        let mut left = Set::new(seed);
        for index in sample::distinct(set.len(), survivors, call.rng) {
            if let Some(member) = set.at(index) {
                left.add_member(member, limits);
            }
        }
        let popped = set.iter().filter(|member| !left.contains_member(*member));
        let popped = bulks(popped);
        *set = left;
        popped
    } else {
        let indexes = sample::distinct(set.len(), count, call.rng);
        let popped: Vec<Blob> = indexes
            .into_iter()
            .filter_map(|index| set.at(index))
            .map(Member::to_blob)
            .collect();
        for member in &popped {
            set.remove(member);
        }
        popped.into_iter().map(Reply::Bulk).collect()
    };
    call.keyspace.answer_behind_next();
    let event = Event::set("spop").told(Told::Last);
    call.keyspace.changed(key, event.counting(popped.len()));
    Ok(popped)
}

/// Members as bulk strings.
pub(super) fn bulks<'a>(members: impl Iterator<Item = Member<'a>>) -> Vec<Reply> {
    members.map(bulk).collect()
}

fn bulk(member: Member<'_>) -> Reply {
    Reply::Bulk(member.to_blob())
}
