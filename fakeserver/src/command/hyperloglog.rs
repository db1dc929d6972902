//! `HyperLogLog` commands (hyperloglog.c): strings that estimate how many different elements were added.

use super::{
    Access, Command, CommandResult, ControlCall, Family, Flag, Group, KeySpec, Words, WriteCall,
};
use crate::config::Config;
use crate::error::CommandError;
use crate::keyspace::{Event, Keyspace};
use crate::value::StringValue;
use crate::value::hyperloglog::{self, Corrupted, Encoding, Union};
use crate::wire::{Reply, Request};
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::HyperLogLog, &[
    //               name     arity  flags                     keys                          handler
    Command::write  ("PFADD",   -2,  &[DenyOom, Fast],         KeySpec::FIRST,               pfadd).since("2.8.9"),
    Command::control("PFCOUNT", -2,  &[ReadOnly, MayReplicate], KeySpec::Custom(pfcount_keys), pfcount).since("2.8.9"),
    Command::write  ("PFMERGE", -2,  &[DenyOom],               KeySpec::Custom(pfmerge_keys), pfmerge).since("2.8.9"),
]);

/// `PFADD key [element ...]`: replies with 1 if the key is new or its estimate may have changed, with 0 otherwise.
///
/// Errors: `WRONGTYPE`; no `HyperLogLog`; a corrupted one, to which elements may have been added before that is noticed.
fn pfadd(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let existing = call.keyspace.peek::<StringValue>(key)?;
    existing.map(encoding_of).transpose()?;
    let mut changes = usize::from(existing.is_none());
    let sparse_len_max = sparse_len_max(call.config);
    let empty = || StringValue::Raw(hyperloglog::empty());
    let string = call.keyspace.write_or_create(key, empty)?;
    let was_raw = matches!(string, StringValue::Raw(_));
    let bytes = string.raw_mut();
    let mut failed = false;
    for element in args.rest() {
        let Ok(changed) = hyperloglog::add(bytes, element, sparse_len_max) else {
            failed = true;
            break;
        };
        changes += usize::from(changed);
    }
    if failed || changes == 0 {
        if !was_raw || changes > 0 {
            // Redis tells nobody that the string was made raw, nor of what it did before it failed.
            call.keyspace.changed_unwatched(key);
        }
        return if failed {
            Err(CommandError::HyperLogLogCorrupted)
        } else {
            Ok(Reply::Integer(0))
        };
    }
    hyperloglog::forget_count(bytes);
    let event = Event::string("pfadd").counting(changes);
    call.keyspace.changed(key, event);
    Ok(Reply::Integer(1))
}

/// `PFCOUNT key [key ...]`: replies with the estimated number of elements, for several keys of their union.
///
/// It is no `read` handler since it keeps the estimate of a single key in the string, which marks who watches it.
/// Errors: `WRONGTYPE`; no `HyperLogLog`; a corrupted one.
fn pfcount(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let keyspace = &mut call.engine.keyspace;
    if args.len() == 1 {
        return Ok(Reply::Integer(count_one(keyspace, args.next()?)? as i64));
    }
    let mut union = Union::default();
    for key in args.rest() {
        absorb(&mut union, keyspace, key)?;
    }
    Ok(Reply::Integer(union.count() as i64))
}

/// A single key is written if its count is out of date; several are only looked at.
fn pfcount_keys(request: &Request) -> Vec<(usize, Access)> {
    let access = match request.len() {
        2 => Access::Write,
        _ => Access::Read,
    };
    (1..request.len()).map(|at| (at, access)).collect()
}

fn count_one(keyspace: &mut Keyspace, key: &[u8]) -> Result<u64, CommandError> {
    if keyspace.inspect(key).is_none() {
        return Ok(0);
    }
    let Some(string) = keyspace.write::<StringValue>(key)? else {
        return Ok(0);
    };
    encoding_of(string)?;
    let bytes = string.raw_mut();
    if let Some(count) = hyperloglog::cached_count(bytes) {
        return Ok(count);
    }
    let count = hyperloglog::count(bytes)?;
    hyperloglog::cache_count(bytes, count);
    keyspace.changed_without_event(key);
    Ok(count)
}

/// `PFMERGE destkey [sourcekey ...]`: makes the destination the union of the sources and of itself, a dense one if any of them is
/// dense; replies with `OK`.
///
/// Errors: `WRONGTYPE`; no `HyperLogLog`; a corrupted one.
fn pfmerge(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (mut union, mut any_dense) = (Union::default(), false);
    for key in args.clone().rest() {
        let encoding = absorb(&mut union, call.keyspace, key)?;
        any_dense |= encoding == Some(Encoding::Dense);
    }
    let destination = args.next()?;
    let sparse_len_max = sparse_len_max(call.config);
    let empty = || StringValue::Raw(hyperloglog::empty());
    let bytes = call.keyspace.write_or_create(destination, empty)?.raw_mut();
    if any_dense {
        hyperloglog::make_dense(bytes)?;
    }
    for (register, value) in union.registers() {
        hyperloglog::raise(bytes, register, value, sparse_len_max)?;
    }
    hyperloglog::forget_count(bytes);
    call.keyspace.changed(destination, Event::string("pfadd"));
    Ok(Reply::OK)
}

fn pfmerge_keys(request: &Request) -> Vec<(usize, Access)> {
    let access = |at| if at == 1 { Access::Write } else { Access::Read };
    (1..request.len()).map(|at| (at, access(at))).collect()
}

/// Takes a key's `HyperLogLog` into a union; its encoding, if there is one.
fn absorb(
    union: &mut Union,
    keyspace: &Keyspace,
    key: &[u8],
) -> Result<Option<Encoding>, CommandError> {
    let Some(string) = keyspace.read::<StringValue>(key)? else {
        return Ok(None);
    };
    let encoding = encoding_of(string)?;
    union.absorb(&string.bytes())?;
    Ok(Some(encoding))
}

/// The encoding of a `HyperLogLog`. Errors: the string is none.
pub(super) fn encoding_of(string: &StringValue) -> Result<Encoding, CommandError> {
    hyperloglog::encoding(&string.bytes()).ok_or(CommandError::HyperLogLogInvalid)
}

fn sparse_len_max(config: &Config) -> usize {
    config.hll_sparse_max_bytes.max(0) as usize
}

impl From<Corrupted> for CommandError {
    fn from(_: Corrupted) -> CommandError {
        CommandError::HyperLogLogCorrupted
    }
}
