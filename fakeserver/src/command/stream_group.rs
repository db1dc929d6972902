//! XGROUP: the consumer groups of streams and their consumers.

use super::introspect::{help, subcommand_syntax};
use super::stream::{parse_id, parse_id_or_end};
use super::{Args, Command, CommandResult, Family, Flag, Group, KeySpec, Words, WriteCall};
use crate::error::CommandError;
use crate::keyspace::{Event, Keyspace, Told};
use crate::value::{self, Blob, Stream, StreamId};
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Stream, &[
    Command::container("XGROUP", -2, &[], XGROUP).since("5.0.0"),
]);

#[rustfmt::skip]
const XGROUP: &[Command] = &[
    //               name             arity  flags              keys           handler
    Command::write  ("CREATE",         -5,   &[DenyOom],        SECOND,        create).since("5.0.0"),
    Command::write  ("CREATECONSUMER",  5,   &[DenyOom],        SECOND,        createconsumer).since("6.2.0"),
    Command::write  ("DELCONSUMER",     5,   &[],               SECOND,        delconsumer).since("5.0.0"),
    Command::write  ("DESTROY",         4,   &[],               SECOND,        destroy).since("5.0.0"),
    Command::control("HELP",            2,   &[Loading, Stale], KeySpec::None, help).since("5.0.0"),
    Command::write  ("SETID",          -5,   &[],               SECOND,        setid).since("5.0.0"),
];

/// One key, behind the subcommand's name.
pub(super) const SECOND: KeySpec = KeySpec::Range {
    first: 2,
    last: 2,
    step: 1,
};

/// `XGROUP CREATE key group id | $ [MKSTREAM] [ENTRIESREAD entries-read]`: replies with `OK`.
///
/// Errors: `WRONGTYPE`; a missing key; a group that there is already; invalid id; not an integer; syntax.
fn create(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (key, group, id) = (args.next()?, args.next()?, args.next()?);
    let options = GroupOptions::parse(call, args, true)?;
    let stream = call.keyspace.peek::<Stream>(key)?;
    if stream.is_none() && !options.makes_stream {
        return Err(CommandError::GroupNeedsKey);
    }
    let is_new_key = stream.is_none();
    let id = match id {
        b"$" => stream.map_or(StreamId::ZERO, Stream::last_id),
        id => parse_id(id, 0)?,
    };
    if stream.is_some_and(|stream| stream.groups().contains_key(group)) {
        return Err(CommandError::BusyGroup);
    }
    let stream = call.keyspace.write_or_create(key, Stream::default)?;
    let made = value::Group::new(id, options.entries_read);
    stream.groups_mut().insert(Blob::from(group), made);
    let event = Event::stream("xgroup-create");
    let event = if is_new_key {
        event
    } else {
        event.unwatched().unawaited()
    };
    call.keyspace.changed(key, event.told(Told::BeforeReply));
    Ok(Reply::OK)
}

/// `XGROUP CREATECONSUMER key group consumer`: replies with 1 if the consumer is new, else with 0.
///
/// Errors: `WRONGTYPE`; a missing key; no such group.
fn createconsumer(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, _, key, group, consumer] = call.words()?;
    must_have_named_group(call.keyspace, key, group)?;
    let now = call.now.millis();
    let is_new = with_group(call.keyspace, key, group, |_, group| {
        !group.consumers().contains_key(consumer)
    })?;
    if is_new {
        see_consumer(call.keyspace, key, group, consumer, now)?;
    }
    Ok(Reply::flag(is_new))
}

/// `XGROUP DELCONSUMER key group consumer`: replies with the number of entries that it had to acknowledge.
///
/// Errors: `WRONGTYPE`; a missing key; no such group.
fn delconsumer(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, _, key, group, consumer] = call.words()?;
    must_have_named_group(call.keyspace, key, group)?;
    let removed = with_group(call.keyspace, key, group, |_, group| {
        group.remove_consumer(consumer)
    })?;
    if removed.is_some() {
        report(call.keyspace, key, "xgroup-delconsumer");
    }
    Ok(Reply::count(removed.unwrap_or(0)))
}

/// `XGROUP DESTROY key group`: replies with 1 if there was such a group, else with 0. Errors: `WRONGTYPE`; a missing key.
fn destroy(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, _, key, group] = call.words()?;
    let stream = call.keyspace.write::<Stream>(key)?;
    let stream = stream.ok_or(CommandError::GroupNeedsKey)?;
    let is_known = stream.groups_mut().remove(group).is_some();
    if is_known {
        // Who waits as a consumer of the group is to hear that it waits in vain.
        let event = Event::stream("xgroup-destroy").unwatched();
        call.keyspace.answer_here();
        call.keyspace.changed(key, event);
    }
    Ok(Reply::flag(is_known))
}

/// `XGROUP SETID key group id | $ [ENTRIESREAD entries-read]`: replies with `OK`.
///
/// Errors: `WRONGTYPE`; a missing key; no such group; invalid id; not an integer; syntax.
fn setid(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (key, group, id) = (args.next()?, args.next()?, args.next()?);
    let options = GroupOptions::parse(call, args, false)?;
    must_have_named_group(call.keyspace, key, group)?;
    let last_id = call.keyspace.peek::<Stream>(key)?.map(Stream::last_id);
    let id = match id {
        b"$" => last_id.unwrap_or_default(),
        id => parse_id_or_end(id, 0)?,
    };
    with_group(call.keyspace, key, group, |_, group| {
        group.last_id = id;
        group.entries_read = options.entries_read;
    })?;
    call.keyspace.answer_here();
    report(call.keyspace, key, "xgroup-setid");
    Ok(Reply::OK)
}

/// What groups let out: a change that no watcher sees and that serves no client that waits.
fn report(keyspace: &mut Keyspace, key: &[u8], event: &'static str) {
    keyspace.changed(key, Event::stream(event).unwatched().unawaited());
}

/// Makes a consumer of a group that there is if it is new, reports that, and notes when it was seen.
pub(super) fn see_consumer(
    keyspace: &mut Keyspace,
    key: &[u8],
    group: &[u8],
    consumer: &[u8],
    now: i64,
) -> Result<(), CommandError> {
    let is_new = with_group(keyspace, key, group, |_, group| {
        group.see_consumer(consumer, now)
    })?;
    if is_new {
        report(keyspace, key, "xgroup-createconsumer");
    }
    Ok(())
}

/// Has `act` change a group. Errors: `WRONGTYPE`; no such key or group.
pub(super) fn with_group<T>(
    keyspace: &mut Keyspace,
    key: &[u8],
    name: &[u8],
    act: impl FnOnce(&Stream, &mut value::Group) -> T,
) -> Result<T, CommandError> {
    let stream = keyspace.write::<Stream>(key)?;
    let stream = stream.ok_or_else(|| no_key_or_group(key, name))?;
    // The group leaves the stream for the time being, so that the entries can be looked at.
    let Some((name, mut group)) = stream.groups_mut().remove_entry(name) else {
        return Err(no_key_or_group(key, name));
    };
    let result = act(stream, &mut group);
    stream.groups_mut().insert(name, group);
    Ok(result)
}

/// Errors: those of XGROUP.
fn must_have_named_group(
    keyspace: &Keyspace,
    key: &[u8],
    group: &[u8],
) -> Result<(), CommandError> {
    let stream = keyspace.peek::<Stream>(key)?;
    let stream = stream.ok_or(CommandError::GroupNeedsKey)?;
    if stream.groups().contains_key(group) {
        Ok(())
    } else {
        Err(no_group(key, group))
    }
}

/// The options of XGROUP CREATE and SETID.
#[derive(Clone, Copy, Debug, Default)]
struct GroupOptions {
    makes_stream: bool,
    entries_read: Option<i64>,
}

impl GroupOptions {
    fn parse(
        call: &WriteCall<'_>,
        mut args: Args<'_>,
        may_make_stream: bool,
    ) -> Result<GroupOptions, CommandError> {
        let mut options = GroupOptions::default();
        let len_max = if may_make_stream { 3 } else { 2 };
        let is_too_long = args.len() > len_max;
        while !args.is_empty() {
            if may_make_stream && args.keyword("MKSTREAM") {
                options.makes_stream = true;
            } else if args.len() > 1 && args.keyword("ENTRIESREAD") {
                let read = args.integer()?;
                if read < -1 {
                    return Err(CommandError::EntriesReadNegative);
                }
                options.entries_read = Some(read).filter(|read| *read >= 0);
            } else {
                return Err(subcommand_syntax(call));
            }
        }
        if is_too_long {
            return Err(subcommand_syntax(call));
        }
        Ok(options)
    }
}

/// Redis prints what it echoes here as a C string.
pub(super) fn c_string(bytes: &[u8]) -> &[u8] {
    &bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())]
}

/// The error of a group or key that there is not.
pub(super) fn no_key_or_group(key: &[u8], group: &[u8]) -> CommandError {
    let parts: [&[u8]; 5] = [
        b"NOGROUP No such key '",
        c_string(key),
        b"' or consumer group '",
        c_string(group),
        b"'",
    ];
    CommandError::custom(parts.concat())
}

/// The error of a group that a stream does not have.
pub(super) fn no_group(key: &[u8], group: &[u8]) -> CommandError {
    let parts: [&[u8]; 5] = [
        b"NOGROUP No such consumer group '",
        c_string(group),
        b"' for key name '",
        c_string(key),
        b"'",
    ];
    CommandError::custom(parts.concat())
}
