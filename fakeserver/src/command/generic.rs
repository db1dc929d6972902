//! Commands on keys of any type (db.c); deadlines are in `expire`, SCAN in `scan`, SORT in `sort`, OBJECT in `object`, DUMP and
//! RESTORE in `dump`.

use super::{
    Caller, Command, CommandResult, ControlCall, Family, Flag, Group, KeySpec, ReadCall, Words,
    WriteCall,
};
use crate::blocking::Wait;
use crate::error::CommandError;
use crate::keyspace::{DbIndex, Event, Keyspace, Reason};
use crate::value::{glob, number};
use crate::wire::Reply;
use Flag::*;

/// Two keys.
const PAIR: KeySpec = KeySpec::Range {
    first: 1,
    last: 2,
    step: 1,
};

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Generic, &[
    //               name         arity  flags             keys            handler
    Command::write  ("COPY",      -3,    &[DenyOom],       PAIR,           copy).since("6.2.0"),
    Command::write  ("DEL",       -2,    &[],              KeySpec::ALL,   del),
    Command::read   ("EXISTS",    -2,    &[Fast],          KeySpec::ALL,   exists),
    Command::read   ("KEYS",       2,    &[],              KeySpec::None,  keys),
    Command::write  ("MOVE",       3,    &[Fast],          KeySpec::FIRST, move_),
    Command::control("RANDOMKEY",  1,    &[ReadOnly],      KeySpec::None,  randomkey),
    Command::write  ("RENAME",     3,    &[],              PAIR,           rename),
    Command::write  ("RENAMENX",   3,    &[Fast],          PAIR,           renamenx),
    Command::read   ("TOUCH",     -2,    &[Fast],          KeySpec::ALL,   touch).since("3.2.1"),
    Command::read   ("TYPE",       2,    &[Fast],          KeySpec::FIRST, type_),
    Command::write  ("UNLINK",    -2,    &[Fast],          KeySpec::ALL,   del).since("4.0.0"),
    Command::control("WAIT",       3,    &[NoScript],      KeySpec::None,  wait).since("3.0.0"),
]);

/// `COPY source destination [DB destination-db] [REPLACE]`: copies a value with its deadline; replies with 1, or with 0 if the
/// source is missing or the destination exists.
///
/// Errors: syntax; not an integer; database out of range; source and destination the same.
fn copy(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (source, destination) = (args.next()?, args.next()?);
    let from = call.keyspace.selected();
    let (mut to, mut replace) = (from, false);
    while !args.is_empty() {
        if args.keyword("REPLACE") {
            replace = true;
        } else if args.keyword("DB") {
            to = db_index(call.keyspace, args.integer()?)?;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    if from == to && source == destination {
        return Err(CommandError::SameObject);
    }
    if call.keyspace.read_any(source).is_none() {
        return Ok(Reply::Integer(0));
    }
    let Some(original) = call.keyspace.entry(source) else {
        return Ok(Reply::Integer(0));
    };
    // A copy was never used: only the value and the deadline are the same.
    let mut entry = call.keyspace.new_entry(original.value().clone());
    entry.set_deadline(original.deadline());
    call.keyspace.select(to);
    call.keyspace.remove_if_due(destination);
    let exists = call.keyspace.exists(destination);
    if !exists || replace {
        call.keyspace.remove(destination);
        call.keyspace.put(destination, entry);
        call.keyspace
            .changed(destination, Event::generic("copy_to"));
    }
    call.keyspace.select(from);
    Ok(Reply::flag(!exists || replace))
}

/// `DEL key [key ...]`, `UNLINK key [key ...]`: removes keys; replies with how many there were.
fn del(call: &mut WriteCall<'_>) -> CommandResult {
    let reason = match call.row.full_name() {
        "unlink" => Reason::Unlinked,
        _ => Reason::Deleted,
    };
    let mut removed = 0;
    for key in call.args().rest() {
        if call.keyspace.delete(key, reason) {
            call.keyspace.changed(key, Event::generic("del"));
            removed += 1;
        }
    }
    Ok(Reply::Integer(removed))
}

/// `EXISTS key [key ...]`: replies with how many of the keys exist, one named twice counting twice.
fn exists(call: &mut ReadCall<'_>) -> CommandResult {
    let keys = call.args().rest();
    let found = keys.filter(|key| call.keyspace.inspect(key).is_some());
    Ok(Reply::count(found.count()))
}

/// `KEYS pattern`: replies with an array of all keys that match.
fn keys(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, pattern] = call.words()?;
    let keys = call.keyspace.iter().map(|(key, _)| key);
    let matching = keys.filter(|key| pattern == b"*" || glob::matches(pattern, key, false));
    Ok(Reply::Array(matching.cloned().map(Reply::Bulk).collect()))
}

/// `MOVE key db`: moves a key with its deadline; replies with 1, or with 0 if it is missing or the other database has it.
///
/// Errors: not an integer; database out of range; the selected database.
fn move_(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key, db] = call.words()?;
    let db = number::parse_integer(db).ok_or(CommandError::NotAnInteger)?;
    let (from, to) = (call.keyspace.selected(), db_index(call.keyspace, db)?);
    if from == to {
        return Err(CommandError::SameObject);
    }
    if !call.keyspace.exists(key) {
        return Ok(Reply::Integer(0));
    }
    call.keyspace.select(to);
    call.keyspace.remove_if_due(key);
    let taken = call.keyspace.exists(key);
    call.keyspace.select(from);
    if taken {
        return Ok(Reply::Integer(0));
    }
    let Some(entry) = call.keyspace.remove_since(key, Reason::NotFreed) else {
        return Ok(Reply::Integer(0));
    };
    call.keyspace.select(to);
    call.keyspace.put(key, entry);
    call.keyspace.select(from);
    call.keyspace
        .changed(key, Event::generic("move_from").counting(0));
    call.keyspace.select(to);
    call.keyspace.changed(key, Event::generic("move_to"));
    call.keyspace.select(from);
    Ok(Reply::Integer(1))
}

/// `RANDOMKEY`: replies with a key, or null if there is none. A due key that the choice falls on is removed.
fn randomkey(call: &mut ControlCall<'_>) -> CommandResult {
    let engine = &mut *call.engine;
    while !engine.keyspace.is_empty() {
        let Some(key) = engine
            .keyspace
            .key_at(engine.rng.usize(..engine.keyspace.len()))
        else {
            break;
        };
        let key = key.clone();
        if !engine.keyspace.remove_if_due(&key) {
            return Ok(Reply::Bulk(key));
        }
    }
    Ok(Reply::Null)
}

/// `RENAME key newkey`: moves a value with its deadline, over what was there; replies with `OK`. Errors: no such key.
fn rename(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, from, to] = call.words()?;
    if !call.keyspace.exists_for_write(from) {
        return Err(CommandError::NoSuchKey);
    }
    if from != to {
        move_to(call.keyspace, from, to);
    }
    Ok(Reply::OK)
}

/// `RENAMENX key newkey`: as [`rename`] if the new key does not exist; replies with 1 or 0. Errors: no such key.
fn renamenx(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, from, to] = call.words()?;
    if !call.keyspace.exists_for_write(from) {
        return Err(CommandError::NoSuchKey);
    }
    let free = !call.keyspace.exists_for_write(to);
    if free {
        move_to(call.keyspace, from, to);
    }
    Ok(Reply::flag(free))
}

fn move_to(keyspace: &mut Keyspace, from: &[u8], to: &[u8]) {
    keyspace.remove(to);
    if let Some(entry) = keyspace.remove_since(from, Reason::NotFreed) {
        keyspace.put(to, entry);
        // Both are said to have changed before either event.
        keyspace.changed_uncounted(from);
        keyspace.changed_uncounted(to);
        let renamed_from = Event::generic("rename_from").counting(0);
        keyspace.changed(from, renamed_from.unwatched());
        keyspace.changed(to, Event::generic("rename_to").unwatched());
    }
}

/// `TOUCH key [key ...]`: as [`exists`], and the keys are used just now.
fn touch(call: &mut ReadCall<'_>) -> CommandResult {
    let keys = call.args().rest();
    let found = keys.filter(|key| call.keyspace.read_any(key).is_some());
    Ok(Reply::count(found.count()))
}

/// `TYPE key`: replies with the type's name as a simple string, `none` for a missing key.
fn type_(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key] = call.words()?;
    let entry = call.keyspace.inspect(key);
    Ok(Reply::simple(
        entry.map_or("none", |entry| entry.value().type_name()),
    ))
}

/// `WAIT numreplicas timeout`: waits until so many replicas have caught up, of which there are none; replies with 0.
///
/// Errors: not an integer; negative timeout.
fn wait(call: &mut ControlCall<'_>) -> CommandResult {
    let [_, replicas, timeout] = call.words()?;
    let replicas = number::parse_integer(replicas).ok_or(CommandError::NotAnInteger)?;
    let timeout_ms = number::parse_integer(timeout).ok_or(CommandError::TimeoutNotAnInteger)?;
    if timeout_ms < 0 {
        return Err(CommandError::TimeoutNegative);
    }
    if replicas <= 0 || call.caller != Caller::Client {
        return Ok(Reply::Integer(0));
    }
    let wait = Wait {
        keys: Vec::new(),
        timeout_ms,
        timeout_reply: None,
        rewritten: None,
        needs_key: false,
    };
    let db = call.engine.keyspace.selected();
    let at_time_out = Reply::Integer(0);
    Ok(call
        .engine
        .block(call.session, db, call.row, call.request, wait, at_time_out))
}

/// The database of this number. Errors: no 32-bit integer; out of range.
fn db_index(keyspace: &Keyspace, db: i64) -> Result<DbIndex, CommandError> {
    let (min, max) = (i64::from(i32::MIN), i64::from(i32::MAX));
    if !(min..=max).contains(&db) {
        return Err(CommandError::OutOfRangeBetween { min, max });
    }
    usize::try_from(db)
        .ok()
        .filter(|db| *db < keyspace.databases())
        .map(DbIndex)
        .ok_or(CommandError::DbIndexOutOfRange)
}
