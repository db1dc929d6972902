//! String commands that work on parts of a string (`t_string.c`).

use super::{Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words, WriteCall};
use crate::config::Config;
use crate::error::CommandError;
use crate::keyspace::{Event, Typed};
use crate::value::{StringValue, number};
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::String, &[
    //             name        arity  flags             keys            handler
    Command::write("APPEND",    3,    &[DenyOom, Fast], KeySpec::FIRST, append).since("2.0.0"),
    Command::read ("GETRANGE",  4,    &[],              KeySpec::FIRST, getrange).since("2.4.0"),
    Command::write("SETRANGE",  4,    &[DenyOom],       KeySpec::FIRST, setrange).since("2.2.0"),
    Command::read ("STRLEN",    2,    &[Fast],          KeySpec::FIRST, strlen).since("2.2.0"),
    Command::read ("SUBSTR",    4,    &[],              KeySpec::FIRST, getrange),
]);

/// `APPEND key value`: appends to the string, missing counts as empty; replies with the new length.
///
/// Errors: `WRONGTYPE`; a result beyond `proto-max-bulk-len`.
fn append(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key, suffix] = call.words()?;
    let len = if let Some(string) = call.keyspace.write::<StringValue>(key)? {
        check_len(call.config, string.len(), suffix.len())?;
        let bytes = string.raw_mut();
        bytes.extend_from_slice(suffix);
        bytes.len()
    } else {
        call.keyspace
            .set(key, StringValue::new(suffix).into_value());
        suffix.len()
    };
    call.keyspace.changed(key, Event::string("append"));
    Ok(Reply::count(len))
}

/// `GETRANGE key start end` (`SUBSTR` is its old name): replies with the bytes from `start` to `end`, both included, negative
/// ones counted from the end; empty if there are none. Errors: not an integer; `WRONGTYPE`.
fn getrange(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (key, start, end) = (args.next()?, args.integer()?, args.integer()?);
    let Some(string) = call.keyspace.read::<StringValue>(key)? else {
        return Ok(Reply::bulk(b""));
    };
    let bytes = string.bytes();
    let range = byte_range(start, end, bytes.len());
    Ok(Reply::bulk(bytes.get(range).unwrap_or_default()))
}

/// The indexes that GETRANGE's `start` and `end` mean in a string of `len` bytes.
fn byte_range(start: i64, end: i64, len: usize) -> std::ops::Range<usize> {
    let len = len as i64;
    // Both before the first byte: the order of the two decides, before they are cut to 0.
    if len == 0 || (start < 0 && end < 0 && start > end) {
        return 0..0;
    }
    let from_end = |at: i64| if at < 0 { at.saturating_add(len) } else { at };
    let (start, end) = (from_end(start).max(0), from_end(end).max(0).min(len - 1));
    if start > end {
        0..0
    } else {
        start as usize..end as usize + 1
    }
}

/// `SETRANGE key offset value`: overwrites bytes from `offset` on, filling up with zeros; replies with the new length.
///
/// An empty value changes nothing. Errors: not an integer; negative offset; `WRONGTYPE`; beyond `proto-max-bulk-len`.
fn setrange(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key, offset, patch] = call.words()?;
    let offset = number::parse_integer(offset).ok_or(CommandError::NotAnInteger)?;
    let offset = usize::try_from(offset).map_err(|_| CommandError::OffsetOutOfRange)?;
    let len = call
        .keyspace
        .peek::<StringValue>(key)?
        .map_or(0, StringValue::len);
    if patch.is_empty() {
        return Ok(Reply::count(len));
    }
    check_len(call.config, offset, patch.len())?;
    let empty = || StringValue::Raw(Vec::new());
    let bytes = call.keyspace.write_or_create(key, empty)?.raw_mut();
    let end = offset + patch.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset..end].copy_from_slice(patch);
    let len = bytes.len();
    call.keyspace.changed(key, Event::string("setrange"));
    Ok(Reply::count(len))
}

/// `STRLEN key`: replies with the length in bytes, 0 for a missing key. Errors: `WRONGTYPE`.
fn strlen(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key] = call.words()?;
    let string = call.keyspace.read::<StringValue>(key)?;
    Ok(Reply::count(string.map_or(0, StringValue::len)))
}

/// Whether a string of `len` bytes may get `more`.
fn check_len(config: &Config, len: usize, more: usize) -> Result<(), CommandError> {
    let max = config.proto_max_bulk_len.max(0) as usize;
    match len.checked_add(more) {
        Some(total) if total <= max => Ok(()),
        _ => Err(CommandError::StringTooLong),
    }
}
