//! OBJECT (object.c).

use super::setting;
use super::{Command, CommandResult, ControlCall, Family, Flag, Group, KeySpec, ReadCall, Words};
use crate::config::Config;
use crate::error::CommandError;
use crate::keyspace::{Entry, Value};
use crate::value::StringValue;
use crate::wire::Reply;
use Flag::*;

/// The key behind the subcommand's name.
const KEY: KeySpec = KeySpec::Range {
    first: 2,
    last: 2,
    step: 1,
};

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Generic, &[
    //                 name      arity  flags
    Command::container("OBJECT", -2,    &[], &[
        //               name        arity  flags              keys           handler
        Command::read   ("ENCODING",  3,    &[],               KEY,           encoding).since("2.2.3"),
        Command::read   ("FREQ",      3,    &[],               KEY,           freq).since("4.0.0"),
        Command::control("HELP",      2,    &[Loading, Stale], KeySpec::None, help).since("6.2.0"),
        Command::read   ("IDLETIME",  3,    &[],               KEY,           idletime).since("2.2.3"),
        Command::read   ("REFCOUNT",  3,    &[],               KEY,           refcount).since("2.2.3"),
    ]).since("2.2.3"),
]);

/// Redis shares the objects of the integers below this one.
const SHARED_INTEGERS: i64 = 10_000;

/// `OBJECT ENCODING key`: replies with the name of the value's encoding as a bulk string, or null.
fn encoding(call: &mut ReadCall<'_>) -> CommandResult {
    let entry = entry(call)?;
    Ok(entry.map_or(Reply::Null, |entry| Reply::bulk(entry.value().encoding())))
}

/// `OBJECT FREQ key`: replies with how often the key is used, from 0 to 255, or null. Errors: no LFU policy is selected.
fn freq(call: &mut ReadCall<'_>) -> CommandResult {
    let Some(entry) = entry(call)? else {
        return Ok(Reply::Null);
    };
    let frequency = call.keyspace.frequency(entry);
    let frequency = frequency.ok_or(CommandError::NoLfuPolicy)?;
    Ok(Reply::Integer(frequency.into()))
}

/// `OBJECT HELP`: replies with an array of simple strings.
fn help(_: &mut ControlCall<'_>) -> CommandResult {
    Ok(Reply::Array(
        HELP.iter().copied().map(Reply::simple).collect(),
    ))
}

/// `OBJECT IDLETIME key`: replies with the seconds since the last access, or null. Errors: an LFU policy is selected.
fn idletime(call: &mut ReadCall<'_>) -> CommandResult {
    let Some(entry) = entry(call)? else {
        return Ok(Reply::Null);
    };
    let idle = call.keyspace.idle_seconds(entry);
    let idle = idle.ok_or(CommandError::LfuPolicy)?;
    Ok(Reply::Integer(idle.into()))
}

/// `OBJECT REFCOUNT key`: replies with 1, with the largest `i32` for an integer that Redis shares, or with null.
fn refcount(call: &mut ReadCall<'_>) -> CommandResult {
    let entry = entry(call)?;
    let references = entry.map(|entry| references(entry.value(), call.config));
    Ok(references.map_or(Reply::Null, Reply::Integer))
}

/// How often a value is referred to: what Redis shares counts as the largest number. It shares nothing where each key needs a note
/// of its accesses.
pub(super) fn references(value: &Value, config: &Config) -> i64 {
    let is_small = matches!(value, Value::String(StringValue::Integer(value))
        if (0..SHARED_INTEGERS).contains(value));
    let policy = setting(config, "maxmemory-policy");
    let needs_notes = policy.ends_with(b"-lru") || policy.ends_with(b"-lfu");
    if is_small && !(config.maxmemory > 0 && needs_notes) {
        i64::from(i32::MAX)
    } else {
        1
    }
}

/// Looking at an object is no access to it.
fn entry<'a>(call: &ReadCall<'a>) -> Result<Option<&'a Entry>, CommandError> {
    let [_, _, key] = call.words()?;
    Ok(call.keyspace.inspect_quietly(key))
}

const HELP: [&str; 15] = [
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    Return the kind of internal representation used in order to store the value",
    "    associated with a <key>.",
    "FREQ <key>",
    "    Return the access frequency index of the <key>. The returned integer is",
    "    proportional to the logarithm of the recent access frequency of the key.",
    "IDLETIME <key>",
    "    Return the idle time of the <key>, that is the approximated number of",
    "    seconds elapsed since the last access to the key.",
    "REFCOUNT <key>",
    "    Return the number of references of the value associated with the specified",
    "    <key>.",
    "HELP",
    "    Prints this help.",
];
