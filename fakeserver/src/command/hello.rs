//! HELLO and AUTH: protocol, identity and password of a connection.

use super::{Args, Caller, CommandResult, ControlCall, Words};
use crate::acl::{Context, DEFAULT_USER, Denied};
use crate::engine::{Engine, VERSION};
use crate::error::CommandError;
use crate::session::SessionId;
use crate::value::number;
use crate::wire::{Protocol, Reply, Request};

/// `AUTH [username] password`: replies with `OK`. Errors: no password configured; wrong password; more words.
pub(super) fn auth(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let first = args.next()?;
    let second = args.next_if_any();
    args.finish()?;
    let (user, password) = match second {
        Some(password) => (first, password),
        None if call.engine.acl.takes_any_password() => {
            return Err(CommandError::AuthWithoutPassword);
        }
        None => (DEFAULT_USER, first),
    };
    sign_in(call, user, password)?;
    Ok(Reply::OK)
}

/// Whatever stands where names and passwords are wanted; too many words are none of them.
pub(super) fn auth_secrets(request: &Request) -> Vec<usize> {
    if request.len() > 3 {
        return Vec::new();
    }
    (1..request.len()).collect()
}

/// `HELLO [protover [AUTH username password] [SETNAME clientname]]`: replies with a map that describes the server.
///
/// Errors: `NOPROTO`; `WRONGPASS`; `NOAUTH`; a bad client name; an option that HELLO does not know.
pub(super) fn hello(call: &mut ControlCall<'_>) -> CommandResult {
    let (id, mut args) = (call.session, call.args());
    let protocol = match args.next_if_any() {
        Some(version) => Some(protocol(version)?),
        None => None,
    };
    while let Some(option) = args.next_if_any() {
        match (option.to_ascii_uppercase().as_slice(), args.len()) {
            (b"AUTH", 2..) => sign_in(call, args.next()?, args.next()?)?,
            (b"SETNAME", 1..) => set_name(call.engine, id, args.next()?)?,
            _ => return Err(unknown_option(option)),
        }
    }
    let Some(session) = call.engine.sessions.get_mut(&id) else {
        return Ok(Reply::Nothing);
    };
    // Even if commands need no authentication by now.
    if !session.authenticated {
        return Err(CommandError::HelloUnauthenticated);
    }
    session.protocol = protocol.unwrap_or(session.protocol);
    let version = match session.protocol {
        Protocol::Resp2 => 2,
        Protocol::Resp3 => 3,
    };
    let fields = [
        ("server", Reply::bulk("redis")),
        ("version", Reply::bulk(VERSION)),
        ("proto", Reply::Integer(version)),
        ("id", Reply::Integer(id.0 as i64)),
        ("mode", Reply::bulk("standalone")),
        ("role", Reply::bulk("master")),
        ("modules", Reply::Array(Vec::new())),
    ];
    Ok(Reply::Map(
        fields
            .map(|(name, value)| (Reply::bulk(name), value))
            .into(),
    ))
}

fn protocol(version: &[u8]) -> Result<Protocol, CommandError> {
    match number::parse_integer(version) {
        Some(2) => Ok(Protocol::Resp2),
        Some(3) => Ok(Protocol::Resp3),
        Some(_) => Err(CommandError::NoProto),
        None => Err(CommandError::custom(
            "ERR Protocol version is not an integer or out of range",
        )),
    }
}

/// The words behind each AUTH that HELLO comes to.
pub(super) fn hello_secrets(request: &Request) -> Vec<usize> {
    let mut args = Args::new(request, 1);
    let mut secrets = Vec::new();
    if args
        .next_if_any()
        .is_none_or(|version| protocol(version).is_err())
    {
        return secrets;
    }
    loop {
        let at = request.len() - args.len();
        if args.len() > 2 && args.keyword("AUTH") {
            secrets.extend([at + 1, at + 2]);
            let _ = (args.next(), args.next());
        } else if args.len() > 1 && args.keyword("SETNAME") {
            let _ = args.next();
        } else {
            return secrets;
        }
    }
}

fn sign_in(call: &mut ControlCall<'_>, user: &[u8], password: &[u8]) -> Result<(), CommandError> {
    let context = match call.caller {
        Caller::Exec => Context::Multi,
        Caller::Client | Caller::Script => Context::TopLevel,
    };
    let denied = Denied {
        context,
        ..Denied::new(call.row, call.request)
    };
    call.engine
        .authenticate(call.session, (user, password), &denied)
}

/// Names a connection; an empty name takes the name away. Errors: anything but printable ASCII without blanks.
pub(super) fn set_name(
    engine: &mut Engine,
    id: SessionId,
    name: &[u8],
) -> Result<(), CommandError> {
    if !name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Err(CommandError::ClientName);
    }
    if let Some(session) = engine.sessions.get_mut(&id) {
        session.name = name.into();
    }
    Ok(())
}

fn unknown_option(option: &[u8]) -> CommandError {
    let parts: [&[u8]; 3] = [b"ERR Syntax error in HELLO option '", option, b"'"];
    CommandError::custom(parts.concat())
}
