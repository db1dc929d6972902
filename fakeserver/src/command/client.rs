//! CLIENT: what connections are called, what they do, and how one client acts upon others.

use super::client_kill::kill;
use super::client_tracking::{caching, getredir, tracking, trackinginfo};
use super::client_view::View;
use super::hello::set_name;
use super::introspect::{help, subcommand_syntax};
use super::{Command, CommandResult, ControlCall, Flag, KeySpec, Words};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::pause::PauseMode;
use crate::session::{SessionId, Silence};
use crate::value::number;
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const SUBCOMMANDS: &[Command] = &[
    //               name          arity  flags                                keys           handler
    Command::control("CACHING",      3,   &[NoScript, Loading, Stale],         KeySpec::None, caching).since("6.0.0"),
    Command::control("GETNAME",      2,   &[NoScript, Loading, Stale],         KeySpec::None, getname).since("2.6.9"),
    Command::control("GETREDIR",     2,   &[NoScript, Loading, Stale],         KeySpec::None, getredir).since("6.0.0"),
    Command::control("HELP",         2,   &[Loading, Stale],                   KeySpec::None, help).since("5.0.0"),
    Command::control("ID",           2,   &[NoScript, Loading, Stale],         KeySpec::None, id).since("5.0.0"),
    Command::control("INFO",         2,   &[NoScript, Loading, Stale],         KeySpec::None, info).since("6.2.0"),
    Command::control("KILL",        -3,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, kill).since("2.4.0"),
    Command::control("LIST",        -2,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, list).since("2.4.0"),
    Command::control("NO-EVICT",     3,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, no_evict).since("7.0.0"),
    Command::control("PAUSE",       -3,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, pause).since("2.9.50"),
    Command::control("REPLY",        3,   &[NoScript, Loading, Stale],         KeySpec::None, reply).since("3.2.0"),
    Command::control("SETNAME",      3,   &[NoScript, Loading, Stale],         KeySpec::None, setname).since("2.6.9"),
    Command::control("TRACKING",    -3,   &[NoScript, Loading, Stale],         KeySpec::None, tracking).since("6.0.0"),
    Command::control("TRACKINGINFO", 2,   &[NoScript, Loading, Stale],         KeySpec::None, trackinginfo).since("6.2.0"),
    Command::control("UNBLOCK",     -3,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, unblock).since("5.0.0"),
    Command::control("UNPAUSE",      2,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, unpause).since("6.2.0"),
];

/// `CLIENT GETNAME`: replies with the connection's name, or null.
fn getname(call: &mut ControlCall<'_>) -> CommandResult {
    let session = call.engine.sessions.get(&call.session);
    let name = session
        .map(|session| &session.name)
        .filter(|name| !name.is_empty());
    Ok(name.map_or(Reply::Null, Reply::bulk))
}

/// `CLIENT ID`: replies with the connection's number.
fn id(call: &mut ControlCall<'_>) -> CommandResult {
    Ok(Reply::Integer(call.session.0 as i64))
}

/// `CLIENT INFO`: replies with the connection's line of CLIENT LIST.
fn info(call: &mut ControlCall<'_>) -> CommandResult {
    let session = call.engine.sessions.get(&call.session);
    let line = session
        .map(|session| View::of(call).line(session))
        .unwrap_or_default();
    Ok(Reply::Verbatim(*b"txt", (line + "\n").into()))
}

/// `CLIENT LIST [TYPE type | ID id ...]`: replies with a line for each connection, by number.
///
/// Errors: unknown type; an id that is no positive integer; syntax.
fn list(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let ids = if args.is_empty() {
        connected(call.engine)
    } else if args.keyword("TYPE") && args.len() == 1 {
        let kind = ClientType::parse(args.next()?)?;
        let mut ids = connected(call.engine);
        ids.retain(|id| client_type(call.engine, *id) == kind);
        ids
    } else if args.keyword("ID") && !args.is_empty() {
        let ids = args.rest().map(number::parse_integer);
        ids.map(|id| {
            id.map(|id| SessionId(id as u64))
                .ok_or(CommandError::custom("ERR Invalid client ID"))
        })
        .collect::<Result<_, _>>()?
    } else {
        return Err(CommandError::Syntax);
    };
    let sessions = ids.iter().filter_map(|id| call.engine.sessions.get(id));
    let lines: String = sessions
        .filter(|session| !session.closing)
        .map(|session| View::of(call).line(session) + "\n")
        .collect();
    Ok(Reply::Verbatim(*b"txt", lines.into()))
}

/// `CLIENT NO-EVICT ON|OFF`: replies with `OK`; no client is ever evicted here, but CLIENT LIST shows the wish.
fn no_evict(call: &mut ControlCall<'_>) -> CommandResult {
    let no_evict = match call.words::<3>()?[2].to_ascii_uppercase().as_slice() {
        b"ON" => true,
        b"OFF" => false,
        _ => return Err(CommandError::Syntax),
    };
    if let Some(session) = call.engine.sessions.get_mut(&call.session) {
        session.no_evict = no_evict;
    }
    Ok(Reply::OK)
}

/// `CLIENT PAUSE milliseconds [WRITE|ALL]`: holds back all commands, or those that may write; replies with `OK`.
fn pause(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let timeout = args.next()?;
    let mode = args.next_if_any();
    if !args.is_empty() {
        return Err(subcommand_syntax(call));
    }
    let mode = match mode.map(<[u8]>::to_ascii_uppercase).as_deref() {
        None | Some(b"ALL") => PauseMode::All,
        Some(b"WRITE") => PauseMode::Write,
        Some(_) => {
            return Err(CommandError::custom(
                "ERR CLIENT PAUSE mode must be WRITE or ALL",
            ));
        }
    };
    let timeout = number::parse_integer(timeout).ok_or(CommandError::custom(
        "ERR timeout is not an integer or out of range",
    ))?;
    if timeout < 0 {
        return Err(CommandError::custom("ERR timeout is negative"));
    }
    // Redis adds without a look at the result: a time beyond the end of time lies in the past.
    if timeout.checked_add(call.now.millis()).is_some() {
        call.engine.pause.start(mode, call.now.plus_millis(timeout));
    }
    Ok(Reply::OK)
}

/// `CLIENT REPLY ON|OFF|SKIP`: whether commands are answered; only ON is itself answered, with `OK`.
fn reply(call: &mut ControlCall<'_>) -> CommandResult {
    let mode = call.words::<3>()?[2].to_ascii_uppercase();
    let Some(session) = call.engine.sessions.get_mut(&call.session) else {
        return Ok(Reply::Nothing);
    };
    match mode.as_slice() {
        b"ON" => {
            session.silence = Silence::None;
            return Ok(Reply::OK);
        }
        b"OFF" => session.silence = Silence::Off,
        b"SKIP" if session.silence != Silence::Off => session.silence = Silence::SkipNext,
        b"SKIP" => {}
        _ => return Err(CommandError::Syntax),
    }
    Ok(Reply::Nothing)
}

/// `CLIENT SETNAME name`: replies with `OK`; an empty name takes the name away. Errors: a name with blanks or the like.
fn setname(call: &mut ControlCall<'_>) -> CommandResult {
    let [_, _, name] = call.words()?;
    set_name(call.engine, call.session, name)?;
    Ok(Reply::OK)
}

/// `CLIENT UNBLOCK id [TIMEOUT|ERROR]`: ends another client's waiting, as if its time were over or with an error; replies with
/// 1 if it waited.
fn unblock(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let id = args.next()?;
    let reason = args.next_if_any();
    if !args.is_empty() {
        return Err(subcommand_syntax(call));
    }
    let with_error = match reason.map(<[u8]>::to_ascii_uppercase).as_deref() {
        None | Some(b"TIMEOUT") => false,
        Some(b"ERROR") => true,
        Some(_) => {
            return Err(CommandError::custom(
                "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR",
            ));
        }
    };
    let id = number::parse_integer(id).ok_or(CommandError::NotAnInteger)?;
    let id = SessionId(id as u64);
    let Some(blocked) = call.engine.unblock(id) else {
        return Ok(Reply::flag(false));
    };
    let reply = if with_error {
        let error = CommandError::custom("UNBLOCKED client unblocked via CLIENT UNBLOCK");
        call.engine.stats.failed(blocked.row, &error);
        Reply::Error(error)
    } else {
        // Redis counts a failure even though there is no error.
        call.engine.stats.interrupted(blocked.row);
        blocked.timeout_reply
    };
    call.engine.send(id, reply);
    call.engine.resumed.push_back(id);
    Ok(Reply::flag(true))
}

/// `CLIENT UNPAUSE`: lets all clients go on; replies with `OK`.
fn unpause(call: &mut ControlCall<'_>) -> CommandResult {
    call.engine.end_pause();
    Ok(Reply::OK)
}

/// The kinds of client that CLIENT LIST and CLIENT KILL tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientType {
    Normal,
    Replica,
    Master,
    PubSub,
}

impl ClientType {
    /// Reads a type's name. Errors: unknown.
    pub(super) fn parse(name: &[u8]) -> Result<ClientType, CommandError> {
        match name.to_ascii_lowercase().as_slice() {
            b"normal" => Ok(ClientType::Normal),
            b"slave" | b"replica" => Ok(ClientType::Replica),
            b"master" => Ok(ClientType::Master),
            b"pubsub" => Ok(ClientType::PubSub),
            _ => Err(CommandError::custom(
                [b"ERR Unknown client type '", name, b"'"].concat(),
            )),
        }
    }
}

/// What kind of client a session is; there are no replicas and no master.
pub(super) fn client_type(engine: &Engine, id: SessionId) -> ClientType {
    if engine.pubsub.is_subscriber(id) {
        ClientType::PubSub
    } else {
        ClientType::Normal
    }
}

/// Numbers of all connections that are not about to be closed, in order.
pub(super) fn connected(engine: &Engine) -> Vec<SessionId> {
    let sessions = engine.sessions.values().filter(|session| !session.closing);
    let mut ids: Vec<_> = sessions.map(|session| session.id).collect();
    ids.sort_unstable();
    ids
}
