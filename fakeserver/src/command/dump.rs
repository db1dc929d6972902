//! DUMP and RESTORE (cluster.c).

use super::{
    Args, Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words, WriteCall,
};
use crate::error::CommandError;
use crate::keyspace::Event;
use crate::payload;
use crate::value::number;
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Generic, &[
    //             name      arity  flags      keys            handler
    Command::read ("DUMP",    2,    &[],        KeySpec::FIRST, dump).since("2.6.0"),
    Command::write("RESTORE", -4,   &[DenyOom], KeySpec::FIRST, restore).since("2.6.0"),
]);

#[rustfmt::skip]
pub(super) const SERVER_FAMILY: Family = Family::new(Group::Server, &[
    //             name             arity  flags              keys            handler
    Command::write("RESTORE-ASKING", -4,   &[DenyOom, Asking], KeySpec::FIRST, restore).since("3.0.0"),
]);

/// `DUMP key`: replies with the value's payload as a bulk string, or null.
fn dump(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key] = call.words()?;
    let compression = call.config.payload_compression();
    let value = call.keyspace.read_any(key);
    let payload = value.map(|value| payload::dump(value, compression));
    Ok(payload.map_or(Reply::Null, |payload| Reply::Bulk(payload.into())))
}

/// `RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`: sets a key to a payload's value,
/// with so many milliseconds to live or, with ABSTTL, until then; 0 is for ever. Replies with `OK`. A time that has passed leaves
/// no key.
///
/// Errors: syntax; an idle time, frequency or time out of range; `BUSYKEY` if the key exists and is not to be replaced; version or
/// checksum wrong; bad data.
fn restore(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (key, ttl, payload) = (args.next()?, args.next()?, args.next()?);
    let options = RestoreOptions::parse(args)?;
    if !options.replace && call.keyspace.exists_for_write(key) {
        return Err(CommandError::BusyKey);
    }
    let ttl = number::parse_integer(ttl).ok_or(CommandError::NotAnInteger)?;
    if ttl < 0 {
        return Err(CommandError::RestoreTtl);
    }
    let value = payload::verify(payload, call.config.payload_check())
        .ok_or(CommandError::PayloadChecksum)?;
    let value = payload::restore(value, call.config, call.keyspace.seed())
        .ok_or(CommandError::PayloadFormat)?;
    let replaced = call.keyspace.remove(key).is_some();
    let now = call.now.millis();
    let deadline = (ttl > 0).then(|| {
        if options.is_absolute {
            ttl
        } else {
            // As in Redis, a time beyond the end of time is long past.
            ttl.wrapping_add(now)
        }
    });
    if deadline.is_some_and(|deadline| deadline <= now) {
        if replaced {
            call.keyspace.changed(key, Event::generic("del"));
        }
        return Ok(Reply::OK);
    }
    let mut entry = call.keyspace.new_entry(value);
    entry.set_deadline(deadline);
    if let Some(idle) = options.idle_seconds {
        call.keyspace.set_idle_seconds(&entry, idle);
    }
    if let Some(frequency) = options.frequency {
        call.keyspace.set_frequency(&entry, frequency);
    }
    call.keyspace.put(key, entry);
    call.keyspace.changed(key, Event::generic("restore"));
    Ok(Reply::OK)
}

#[derive(Debug, Default)]
struct RestoreOptions {
    replace: bool,
    is_absolute: bool,
    idle_seconds: Option<i64>,
    frequency: Option<u8>,
}

impl RestoreOptions {
    fn parse(mut args: Args<'_>) -> Result<RestoreOptions, CommandError> {
        let mut options = RestoreOptions::default();
        while !args.is_empty() {
            let has_value = args.len() > 1;
            if args.keyword("REPLACE") {
                options.replace = true;
            } else if args.keyword("ABSTTL") {
                options.is_absolute = true;
            } else if has_value && options.frequency.is_none() && args.keyword("IDLETIME") {
                let idle = args.integer()?;
                if idle < 0 {
                    return Err(CommandError::RestoreIdleTime);
                }
                options.idle_seconds = Some(idle);
            } else if has_value && options.idle_seconds.is_none() && args.keyword("FREQ") {
                let frequency = u8::try_from(args.integer()?);
                options.frequency = Some(frequency.map_err(|_| CommandError::RestoreFrequency)?);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }
}
