//! CONFIG: the settings by name.

use super::introspect::help;
use super::parameter::{Parameter, parameter, parameters};
use super::{Command, CommandResult, ControlCall, Flag, KeySpec, Words};
use crate::error::CommandError;
use crate::value::glob;
use crate::wire::{Reply, Request};
use Flag::*;

#[rustfmt::skip]
pub(super) const SUBCOMMANDS: &[Command] = &[
    //               name       arity  flags                                keys           handler
    Command::control("GET",      -3,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, get).since("2.0.0"),
    Command::control("HELP",      2,   &[Loading, Stale],                   KeySpec::None, help).since("5.0.0"),
    Command::control("RESETSTAT", 2,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, resetstat).since("2.0.0"),
    Command::control("REWRITE",   2,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, rewrite).since("2.8.0"),
    Command::control("SET",      -4,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, set).with_secrets(set_secrets).since("2.0.0"),
];

/// `CONFIG GET pattern [pattern ...]`: replies with a map of names to values, each name once.
fn get(call: &mut ControlCall<'_>) -> CommandResult {
    let config = &call.engine.config;
    let mut found: Vec<(&[u8], &Parameter)> = Vec::new();
    for pattern in call.args().rest() {
        let mut add = |name, parameter: &'static Parameter| {
            if !found.iter().any(|(_, known)| known.is_same(parameter)) {
                found.push((name, parameter));
            }
        };
        if pattern.iter().any(|byte| b"*?[".contains(byte)) {
            let fits = |name: &str| glob::matches(pattern, name.as_bytes(), true);
            parameters()
                .filter(|parameter| !parameter.is_hidden && fits(parameter.name))
                .for_each(|parameter| add(parameter.name.as_bytes(), parameter));
        } else if let Some(parameter) = parameter(pattern) {
            // Redis repeats a plain name as it was spelled.
            add(pattern, parameter);
        }
    }
    let pair = |(name, parameter): (&[u8], &Parameter)| {
        (Reply::bulk(name), Reply::Bulk(parameter.get(config)))
    };
    Ok(Reply::Map(found.into_iter().map(pair).collect()))
}

/// `CONFIG RESETSTAT`: starts to count anew; replies with `OK`.
fn resetstat(call: &mut ControlCall<'_>) -> CommandResult {
    call.engine.stats.reset();
    call.engine.keyspace.stats.reset();
    Ok(Reply::OK)
}

/// `CONFIG REWRITE`: always an error, since there is no configuration file.
fn rewrite(_: &mut ControlCall<'_>) -> CommandResult {
    Err(CommandError::custom(
        "ERR The server is running without a config file",
    ))
}

/// `CONFIG SET parameter value [parameter value ...]`: sets all or none; replies with `OK`.
///
/// Errors: odd number of words; an unknown name; a name twice; a parameter that cannot be changed; a value that it refuses.
fn set(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    if !args.len().is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    let mut changes: Vec<(&'static Parameter, &[u8])> = Vec::new();
    while let (Some(name), Ok(value)) = (args.next_if_any(), args.next()) {
        let parameter = parameter(name).ok_or_else(|| unknown(name))?;
        if let Some(reason) = parameter.refusal() {
            return Err(failed(parameter, reason));
        }
        if changes.iter().any(|(known, _)| known.is_same(parameter)) {
            return Err(failed(parameter, "duplicate parameter"));
        }
        changes.push((parameter, value));
    }
    let mut config = call.engine.config.clone();
    for (parameter, value) in changes {
        parameter
            .set(&mut config, value)
            .map_err(|reason| failed(parameter, &reason))?;
    }
    let before = std::mem::replace(&mut call.engine.config, config);
    call.engine.apply_config();
    call.engine.apply_password(&before);
    call.engine.lacks_memory();
    Ok(Reply::OK)
}

/// The values of passwords and of what belongs to them.
fn set_secrets(request: &Request) -> Vec<usize> {
    const SECRET: [&[u8]; 3] = [b"masterauth", b"masteruser", b"requirepass"];
    if !request.len().is_multiple_of(2) {
        return Vec::new();
    }
    let is_secret = |at: &usize| {
        let name = request.get(at - 1).unwrap_or_default();
        SECRET
            .iter()
            .any(|secret| name.eq_ignore_ascii_case(secret))
    };
    (3..request.len()).step_by(2).filter(is_secret).collect()
}

fn failed(parameter: &Parameter, reason: &str) -> CommandError {
    let name = parameter.name;
    CommandError::custom(format!(
        "ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}"
    ))
}

fn unknown(name: &[u8]) -> CommandError {
    let parts: [&[u8]; 3] = [
        b"ERR Unknown option or number of arguments for CONFIG SET - '",
        name,
        b"'",
    ];
    CommandError::custom(parts.concat())
}
