//! DUMP and RESTORE (cluster.c).

use super::{
    Args, Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words, WriteCall,
};
use crate::error::CommandError;
use crate::keyspace::{Entry, Event};
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
    let value = payload::verify(payload).ok_or(CommandError::PayloadChecksum)?;
    let value = payload::restore(value, call.config, call.keyspace.seed())
        .ok_or(CommandError::PayloadFormat)?;
    let replaced = call.keyspace.remove(key).is_some();
    let now = call.now.millis();
    let deadline = (ttl > 0).then(|| {
        if options.is_absolute {
            ttl
        } else {
            ttl.saturating_add(now)
        }
    });
    if deadline.is_some_and(|deadline| deadline <= now) {
        if replaced {
            call.keyspace.changed(key, Event::generic("del"));
        }
        return Ok(Reply::OK);
    }
    let mut entry = Entry::new(value, call.now);
    entry.set_deadline(deadline);
    if let Some(idle) = options.idle_seconds {
        entry.set_idle_seconds(call.now, u32::try_from(idle).unwrap_or(u32::MAX));
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
}

impl RestoreOptions {
    fn parse(mut args: Args<'_>) -> Result<RestoreOptions, CommandError> {
        let mut options = RestoreOptions::default();
        let mut has_frequency = false;
        while !args.is_empty() {
            let has_value = args.len() > 1;
            if args.keyword("REPLACE") {
                options.replace = true;
            } else if args.keyword("ABSTTL") {
                options.is_absolute = true;
            } else if has_value && !has_frequency && args.keyword("IDLETIME") {
                let idle = args.integer()?;
                if idle < 0 {
                    return Err(CommandError::RestoreIdleTime);
                }
                options.idle_seconds = Some(idle);
            } else if has_value && options.idle_seconds.is_none() && args.keyword("FREQ") {
                // Without an LFU policy nobody can see the frequency.
                if !(0..=255).contains(&args.integer()?) {
                    return Err(CommandError::RestoreFrequency);
                }
                has_frequency = true;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }
}
