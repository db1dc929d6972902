//! Connection commands.

use super::{Command, CommandResult, ControlCall, Family, Flag, Group, KeySpec, Words};
use crate::error::CommandError;
use crate::keyspace::DbIndex;
use crate::value::number;
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Connection, &[
    //               name      arity  flags                    keys           handler
    Command::control("ECHO",    2,    &[Fast, Loading, Stale], KeySpec::None, echo),
    Command::control("PING",   -1,    &[Fast, Subscriber],     KeySpec::None, ping),
    Command::control("SELECT",  2,    &[Fast, Loading, Stale], KeySpec::None, select),
]);

/// `ECHO message`: replies with the message.
fn echo(call: &mut ControlCall<'_>) -> CommandResult {
    let [_, message] = call.words()?;
    Ok(Reply::bulk(message))
}

/// `PING [message]`: replies with `PONG`, or with the message.
fn ping(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let message = args.next_if_any();
    if !args.is_empty() {
        return Err(call.wrong_arity());
    }
    Ok(message.map_or(Reply::simple("PONG"), Reply::bulk))
}

/// `SELECT index`: makes a logical database the session's. Errors: not an integer; out of range.
fn select(call: &mut ControlCall<'_>) -> CommandResult {
    let [_, index] = call.words()?;
    let index = number::parse_integer(index).ok_or(CommandError::NotAnInteger)?;
    let index = usize::try_from(index)
        .ok()
        .filter(|index| *index < call.engine.keyspace.databases());
    let db = DbIndex(index.ok_or(CommandError::DbIndexOutOfRange)?);
    if let Some(session) = call.engine.sessions.get_mut(&call.session) {
        session.db = db;
    }
    Ok(Reply::OK)
}
