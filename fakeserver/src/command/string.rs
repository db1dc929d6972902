//! String commands.

use super::{Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words, WriteCall};
use crate::keyspace::{Event, Typed};
use crate::value::StringValue;
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::String, &[
    //             name  arity  flags       keys            handler
    Command::read ("GET",  2,   &[Fast],    KeySpec::FIRST, get),
    Command::write("SET", -3,   &[DenyOom], KeySpec::FIRST, set),
]);

/// `GET key`: replies with the string, or null. Errors: `WRONGTYPE`.
fn get(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key] = call.words()?;
    let value = call.keyspace.read::<StringValue>(key)?;
    Ok(value.map_or(Reply::Null, |value| Reply::Bulk(value.to_blob())))
}

/// `SET key value`: replies with `OK`.
fn set(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key, value] = call.words()?;
    call.keyspace.set(key, StringValue::new(value).into_value());
    call.keyspace.changed(key, Event::string("set"));
    Ok(Reply::OK)
}
