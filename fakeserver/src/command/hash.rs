//! Hash commands.

use super::sample::Sample;
use super::scan::{self, ScanOptions};
use super::{Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words, WriteCall};
use crate::error::CommandError;
use crate::keyspace::Event;
use crate::value::string::Decimal;
use crate::value::{Blob, Hash, HashLimits, LongDouble, number};
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Hash, &[
    //             name           arity  flags             keys            handler
    Command::write("HDEL",         -3,   &[Fast],          KeySpec::FIRST, hdel).since("2.0.0"),
    Command::read ("HEXISTS",       3,   &[Fast],          KeySpec::FIRST, hexists).since("2.0.0"),
    Command::read ("HGET",          3,   &[Fast],          KeySpec::FIRST, hget).since("2.0.0"),
    Command::read ("HGETALL",       2,   &[],              KeySpec::FIRST, hgetall).since("2.0.0"),
    Command::write("HINCRBY",       4,   &[DenyOom, Fast], KeySpec::FIRST, hincrby).since("2.0.0"),
    Command::write("HINCRBYFLOAT",  4,   &[DenyOom, Fast], KeySpec::FIRST, hincrbyfloat).since("2.6.0"),
    Command::read ("HKEYS",         2,   &[],              KeySpec::FIRST, hkeys).since("2.0.0"),
    Command::read ("HLEN",          2,   &[Fast],          KeySpec::FIRST, hlen).since("2.0.0"),
    Command::read ("HMGET",        -3,   &[Fast],          KeySpec::FIRST, hmget).since("2.0.0"),
    Command::write("HMSET",        -4,   &[DenyOom, Fast], KeySpec::FIRST, hmset).since("2.0.0"),
    Command::read ("HRANDFIELD",   -2,   &[],              KeySpec::FIRST, hrandfield).since("6.2.0"),
    Command::read ("HSCAN",        -3,   &[],              KeySpec::FIRST, hscan).since("2.8.0"),
    Command::write("HSET",         -4,   &[DenyOom, Fast], KeySpec::FIRST, hset).since("2.0.0"),
    Command::write("HSETNX",        4,   &[DenyOom, Fast], KeySpec::FIRST, hsetnx).since("2.0.0"),
    Command::read ("HSTRLEN",       3,   &[Fast],          KeySpec::FIRST, hstrlen).since("3.2.0"),
    Command::read ("HVALS",         2,   &[],              KeySpec::FIRST, hvals).since("2.0.0"),
]);

/// `HDEL key field [field ...]`: removes fields; replies with how many there were. Errors: `WRONGTYPE`.
fn hdel(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let Some(hash) = call.keyspace.write::<Hash>(key)? else {
        return Ok(Reply::Integer(0));
    };
    let removed = args
        .rest()
        .filter(|field| hash.remove(field).is_some())
        .count();
    if removed > 0 {
        call.keyspace
            .changed(key, Event::hash("hdel").counting(removed));
    }
    Ok(Reply::count(removed))
}

/// `HEXISTS key field`: replies with 1 if there is such a field, or 0. Errors: `WRONGTYPE`.
fn hexists(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key, field] = call.words()?;
    let hash = call.keyspace.read::<Hash>(key)?;
    Ok(Reply::flag(hash.is_some_and(|hash| hash.contains(field))))
}

/// `HGET key field`: replies with the field's value, or null. Errors: `WRONGTYPE`.
fn hget(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key, field] = call.words()?;
    let hash = call.keyspace.read::<Hash>(key)?;
    Ok(bulk_or_null(hash.and_then(|hash| hash.get(field))))
}

/// `HGETALL key`: replies with a map of all fields and values, empty if the key is missing. Errors: `WRONGTYPE`.
fn hgetall(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key] = call.words()?;
    let hash = call.keyspace.read::<Hash>(key)?;
    let pairs = hash.into_iter().flat_map(Hash::iter);
    let pairs = pairs.map(|(field, value)| (bulk(field), bulk(value)));
    Ok(Reply::Map(pairs.collect()))
}

/// `HINCRBY key field increment`: adds to an integer field, missing counts as 0; replies with the new value.
///
/// Errors: not an integer; `WRONGTYPE`; the field holds something else; overflow of i64.
fn hincrby(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key, field, increment] = call.words()?;
    let increment = number::parse_integer(increment).ok_or(CommandError::NotAnInteger)?;
    let hash = call.keyspace.peek::<Hash>(key)?;
    let old = match hash.and_then(|hash| hash.get(field)) {
        Some(value) => number::parse_integer(value).ok_or(CommandError::HashValueNotAnInteger)?,
        None => 0,
    };
    let new = old
        .checked_add(increment)
        .ok_or(CommandError::IncrementOverflow)?;
    set_field(call, key, field, Decimal::new(new).as_bytes().into())?;
    call.keyspace.answer_here();
    call.keyspace.changed(key, Event::hash("hincrby"));
    Ok(Reply::Integer(new))
}

/// `HINCRBYFLOAT key field increment`: adds to a field that holds a number, missing counts as 0; replies with the new value as
/// a bulk string, with 17 decimals at most and without trailing zeros.
///
/// Errors: not a float; NaN or infinity; `WRONGTYPE`; the field holds something else; an infinite result.
fn hincrbyfloat(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key, field, increment] = call.words()?;
    let increment = LongDouble::parse(increment).ok_or(CommandError::NotAFloat)?;
    if !increment.is_finite() {
        return Err(CommandError::NanOrInfinity);
    }
    let hash = call.keyspace.peek::<Hash>(key)?;
    let old = match hash.and_then(|hash| hash.get(field)) {
        Some(value) => LongDouble::parse(value).ok_or(CommandError::HashValueNotAFloat)?,
        None => LongDouble::ZERO,
    };
    let new = old
        .checked_add(increment)
        .ok_or(CommandError::IncrementNotFinite)?;
    let new = Blob::from(new.to_string());
    set_field(call, key, field, new.clone())?;
    call.keyspace.answer_here();
    call.keyspace.changed(key, Event::hash("hincrbyfloat"));
    Ok(Reply::Bulk(new))
}

/// `HKEYS key`: replies with an array of all fields. Errors: `WRONGTYPE`.
fn hkeys(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key] = call.words()?;
    let hash = call.keyspace.read::<Hash>(key)?;
    let pairs = hash.into_iter().flat_map(Hash::iter);
    Ok(Reply::Array(pairs.map(|(field, _)| bulk(field)).collect()))
}

/// `HLEN key`: replies with the number of fields. Errors: `WRONGTYPE`.
fn hlen(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key] = call.words()?;
    let hash = call.keyspace.read::<Hash>(key)?;
    Ok(Reply::count(hash.map_or(0, Hash::len)))
}

/// `HMGET key field [field ...]`: replies with an array of the fields' values, null for a missing one. Errors: `WRONGTYPE`.
fn hmget(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let hash = call.keyspace.read::<Hash>(args.next()?)?;
    let values = args
        .rest()
        .map(|field| bulk_or_null(hash.and_then(|hash| hash.get(field))));
    Ok(Reply::Array(values.collect()))
}

/// `HMSET key field value [field value ...]`: sets fields; replies with `OK`. Errors: a field without a value; `WRONGTYPE`.
fn hmset(call: &mut WriteCall<'_>) -> CommandResult {
    set_fields(call)?;
    Ok(Reply::OK)
}

/// `HRANDFIELD key [count [WITHVALUES]]`: replies with a random field or null; with a count, with an array of so many
/// different fields, or if it is negative of so many fields that may repeat, empty if the key is missing. WITHVALUES puts the
/// values behind the fields (RESP2) or answers pairs (RESP3).
///
/// Errors: not an integer; out of range; syntax; `WRONGTYPE`.
fn hrandfield(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    if args.is_empty() {
        let hash = call.keyspace.read::<Hash>(key)?;
        let chosen = hash.and_then(|hash| hash.at(call.rng.usize(..hash.len().max(1))));
        return Ok(bulk_or_null(chosen.map(|(field, _)| field)));
    }
    let count = args.integer()?;
    if count == i64::MIN {
        return Err(CommandError::OutOfRangeBetween {
            min: -i64::MAX,
            max: i64::MAX,
        });
    }
    let with_values = args.keyword("WITHVALUES");
    args.finish()?;
    // Redis counts fields and values here, and half of the range is left for either.
    if with_values && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(CommandError::OutOfRange);
    }
    let hash = call.keyspace.read::<Hash>(key)?;
    let sample = Sample::of(count)?;
    let Some(hash) = hash else {
        return Ok(Reply::Array(Vec::new()));
    };
    let indexes = sample.draw(hash.len(), call.rng);
    let pairs = indexes.into_iter().filter_map(|index| hash.at(index));
    if with_values {
        let pairs = pairs.map(|(field, value)| (bulk(field), bulk(value)));
        return Ok(Reply::Pairs(pairs.collect()));
    }
    Ok(Reply::Array(pairs.map(|(field, _)| bulk(field)).collect()))
}

/// `HSCAN key cursor [MATCH pattern] [COUNT count]`: replies with the next cursor and an array of fields and values.
///
/// Errors: invalid cursor; `WRONGTYPE`; not an integer; syntax.
fn hscan(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let cursor = scan::parse_cursor(args.next()?)?;
    let Some(hash) = call.keyspace.read::<Hash>(key)? else {
        return Ok(scan::reply(0, Vec::new()));
    };
    let options = ScanOptions::parse(args)?;
    let mut items = Vec::new();
    let mut visit = |field: &Blob, value: &Blob| {
        if options.matches(field) {
            items.extend([bulk(field), bulk(value)]);
        }
    };
    let next = if let Some(table) = hash.table() {
        options.page(cursor, table, visit)
    } else {
        hash.iter().for_each(|(field, value)| visit(field, value));
        0
    };
    Ok(scan::reply(next, items))
}

/// `HSET key field value [field value ...]`: sets fields; replies with how many are new. Errors: a field without a value;
/// `WRONGTYPE`.
fn hset(call: &mut WriteCall<'_>) -> CommandResult {
    Ok(Reply::count(set_fields(call)?))
}

/// `HSETNX key field value`: sets a field that is missing; replies with 1, or 0 if it was there. Errors: `WRONGTYPE`.
fn hsetnx(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key, field, value] = call.words()?;
    let hash = call.keyspace.peek::<Hash>(key)?;
    if hash.is_some_and(|hash| hash.contains(field)) {
        return Ok(Reply::Integer(0));
    }
    set_field(call, key, field, value.into())?;
    call.keyspace.answer_here();
    call.keyspace.changed(key, Event::hash("hset"));
    Ok(Reply::Integer(1))
}

/// `HSTRLEN key field`: replies with the length of the field's value, 0 if it is missing. Errors: `WRONGTYPE`.
fn hstrlen(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key, field] = call.words()?;
    let hash = call.keyspace.read::<Hash>(key)?;
    let value = hash.and_then(|hash| hash.get(field));
    Ok(Reply::count(value.map_or(0, |value| value.len())))
}

/// `HVALS key`: replies with an array of all values. Errors: `WRONGTYPE`.
fn hvals(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key] = call.words()?;
    let hash = call.keyspace.read::<Hash>(key)?;
    let pairs = hash.into_iter().flat_map(Hash::iter);
    Ok(Reply::Array(pairs.map(|(_, value)| bulk(value)).collect()))
}

/// Sets the fields and values that the request names; how many are new.
fn set_fields(call: &mut WriteCall<'_>) -> Result<usize, CommandError> {
    let mut args = call.args();
    let key = args.next()?;
    if args.len() % 2 == 1 {
        return Err(call.wrong_arity());
    }
    let (limits, seed) = (HashLimits::of(call.config), call.keyspace.seed());
    let hash = call.keyspace.write_or_create(key, || Hash::new(seed))?;
    let (mut added, pairs) = (0, args.len() / 2);
    while let (Some(field), Some(value)) = (args.next_if_any(), args.next_if_any()) {
        added += usize::from(hash.set(field, value, limits));
    }
    call.keyspace.answer_here();
    call.keyspace
        .changed(key, Event::hash("hset").counting(pairs));
    Ok(added)
}

fn set_field(
    call: &mut WriteCall<'_>,
    key: &[u8],
    field: &[u8],
    value: Blob,
) -> Result<bool, CommandError> {
    let (limits, seed) = (HashLimits::of(call.config), call.keyspace.seed());
    let hash = call.keyspace.write_or_create(key, || Hash::new(seed))?;
    Ok(hash.set(field, value, limits))
}

fn bulk(text: &Blob) -> Reply {
    Reply::Bulk(text.clone())
}

fn bulk_or_null(text: Option<&Blob>) -> Reply {
    text.map_or(Reply::Null, bulk)
}
