//! Connection commands; CLIENT is in [`super::client`], HELLO and AUTH in [`super::hello`].

use super::client::SUBCOMMANDS as CLIENT;
use super::hello::{auth, auth_secrets, hello, hello_secrets};
use super::{Command, CommandResult, ControlCall, Family, Flag, Group, KeySpec, Words};
use crate::error::CommandError;
use crate::keyspace::DbIndex;
use crate::value::number;
use crate::wire::{Protocol, Reply};
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Connection, &[
    //                 name      arity  flags                                                                         keys           handler
    Command::control  ("AUTH",  -2,    &[NoScript, Loading, Stale, Fast, NoAuth, AllowBusy],                          KeySpec::None, auth).with_secrets(auth_secrets),
    Command::container("CLIENT",-2,    &[], CLIENT).since("2.4.0"),
    Command::control  ("ECHO",   2,    &[Fast, Loading, Stale],                                                       KeySpec::None, echo),
    Command::control  ("HELLO", -1,    &[NoScript, Loading, Stale, Fast, NoAuth, AllowBusy],                          KeySpec::None, hello).with_secrets(hello_secrets).since("6.0.0"),
    Command::control  ("PING",  -1,    &[Fast, Subscriber],                                                           KeySpec::None, ping),
    Command::control  ("QUIT",  -1,    &[NoScript, Loading, Stale, Fast, NoAuth, AllowBusy, NoQueue, Subscriber],     KeySpec::None, quit),
    Command::control  ("RESET",  1,    &[NoScript, Loading, Stale, Fast, NoAuth, AllowBusy, NoQueue, Subscriber],     KeySpec::None, reset).since("6.2.0"),
    Command::control  ("SELECT", 2,    &[Fast, Loading, Stale],                                                       KeySpec::None, select),
]);

/// `ECHO message`: replies with the message.
fn echo(call: &mut ControlCall<'_>) -> CommandResult {
    let [_, message] = call.words()?;
    Ok(Reply::bulk(message))
}

/// `PING [message]`: replies with `PONG`, or with the message; to a RESP2 subscriber with an array of `pong` and the message,
/// since everything that it reads has the form of a push.
fn ping(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let message = args.next_if_any();
    if !args.is_empty() {
        return Err(call.wrong_arity());
    }
    let id = call.session;
    let resp2 = call
        .engine
        .sessions
        .get(&id)
        .is_some_and(|session| session.protocol == Protocol::Resp2);
    if resp2 && call.engine.pubsub.is_subscriber(id) {
        return Ok(Reply::bulks([b"pong", message.unwrap_or_default()]));
    }
    Ok(message.map_or(Reply::simple("PONG"), Reply::bulk))
}

/// `QUIT [anything ...]`: replies with `OK` and closes the connection.
fn quit(call: &mut ControlCall<'_>) -> CommandResult {
    if let Some(session) = call.engine.sessions.get_mut(&call.session) {
        session.closing = true;
    }
    Ok(Reply::OK)
}

/// `RESET`: makes the connection as good as new; replies with `RESET`.
fn reset(call: &mut ControlCall<'_>) -> CommandResult {
    let (id, engine) = (call.session, &mut *call.engine);
    engine.keyspace.watch.unwatch(id);
    engine.keyspace.forget_cache(id);
    engine.pubsub.forget(id);
    engine.monitors.remove(&id);
    let authenticated = engine.acl.is_open();
    if let Some(session) = engine.sessions.get_mut(&id) {
        session.reset(authenticated);
    }
    Ok(Reply::simple("RESET"))
}

/// `SELECT index`: makes a logical database the session's. Errors: not an integer; out of range.
fn select(call: &mut ControlCall<'_>) -> CommandResult {
    let [_, index] = call.words()?;
    let index = number::parse_integer(index).ok_or(CommandError::NotAnInteger)?;
    if i32::try_from(index).is_err() {
        return Err(CommandError::OutOfRangeBetween {
            min: i32::MIN.into(),
            max: i32::MAX.into(),
        });
    }
    let db = db_index(call, index)?;
    if let Some(session) = call.engine.sessions.get_mut(&call.session) {
        session.db = db;
    }
    Ok(Reply::OK)
}

/// The database of a number. Errors: out of range.
pub(super) fn db_index(call: &ControlCall<'_>, number: i64) -> Result<DbIndex, CommandError> {
    usize::try_from(number)
        .ok()
        .filter(|index| *index < call.engine.keyspace.databases())
        .map(DbIndex)
        .ok_or(CommandError::DbIndexOutOfRange)
}
