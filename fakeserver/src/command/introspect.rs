//! COMMAND and its subcommands, made from the table; what a row does not know comes from [`super::recorded`].

use serde_json::Value;

use super::Command;
use super::key_use::{has_keys, key_flags, key_positions};
use super::{
    Access, CommandResult, ControlCall, Flag, KeySpec, Row, Words, lookup, recorded, rows,
};
use crate::error::CommandError;
use crate::resolve;
use crate::value::glob;
use crate::wire::{Reply, Request};
use Flag::*;

#[rustfmt::skip]
pub(super) const SUBCOMMANDS: &[Command] = &[
    //               name             arity  flags              keys           handler
    Command::control("COUNT",           2,   &[Loading, Stale], KeySpec::None, count).since("2.8.13"),
    Command::control("DOCS",           -2,   &[Loading, Stale], KeySpec::None, docs).since("7.0.0"),
    Command::control("GETKEYS",        -4,   &[Loading, Stale], KeySpec::None, getkeys).since("2.8.13"),
    Command::control("GETKEYSANDFLAGS",-4,   &[Loading, Stale], KeySpec::None, getkeysandflags).since("7.0.0"),
    Command::control("HELP",            2,   &[Loading, Stale], KeySpec::None, help).since("5.0.0"),
    Command::control("INFO",           -2,   &[Loading, Stale], KeySpec::None, info).since("2.8.13"),
    Command::control("LIST",           -2,   &[Loading, Stale], KeySpec::None, list).since("7.0.0"),
];

/// `COMMAND`: replies with what COMMAND INFO says of every command.
pub(super) fn command(_: &mut ControlCall<'_>) -> CommandResult {
    Ok(Reply::Array(
        rows().iter().map(|row| description(row)).collect(),
    ))
}

/// `COMMAND COUNT`: replies with the number of commands.
fn count(_: &mut ControlCall<'_>) -> CommandResult {
    Ok(Reply::count(rows().len()))
}

/// `COMMAND DOCS [name ...]`: replies with a map of names to documentation; unknown names are left out.
fn docs(call: &mut ControlCall<'_>) -> CommandResult {
    let args = call.args();
    let documented = if args.is_empty() {
        rows().iter().map(|row| documentation(row)).collect()
    } else {
        args.rest().filter_map(find).map(documentation).collect()
    };
    Ok(Reply::Map(documented))
}

/// `COMMAND GETKEYS command [arg ...]`: replies with the keys of a request.
///
/// Errors: unknown command; no key arguments; wrong number of arguments; arguments from which no keys can be read.
fn getkeys(call: &mut ControlCall<'_>) -> CommandResult {
    let FoundKeys { request, keys, .. } = keys_of_arguments(call)?;
    let keys = keys
        .iter()
        .map(|(at, _)| request.get(*at).unwrap_or_default());
    Ok(Reply::bulks(keys))
}

/// `COMMAND GETKEYSANDFLAGS command [arg ...]`: replies with the keys of a request, each with what is done to it.
///
/// Errors: as COMMAND GETKEYS.
fn getkeysandflags(call: &mut ControlCall<'_>) -> CommandResult {
    let FoundKeys { row, request, keys } = keys_of_arguments(call)?;
    let described = keys.into_iter().map(|(at, access)| {
        let key = Reply::bulk(request.get(at).unwrap_or_default());
        let flags = key_flags(row, &request, at, access);
        let flags = flags.into_iter().map(Reply::simple).collect();
        Reply::Array(vec![key, Reply::Set(flags)])
    });
    Ok(Reply::Array(described.collect()))
}

/// `<container> HELP`: replies with lines of text, for every container.
pub(super) fn help(call: &mut ControlCall<'_>) -> CommandResult {
    let container = call.row.full_name().split('|').next().unwrap_or_default();
    Ok(help_of(container))
}

/// The HELP text of a command that reads its subcommands itself.
pub(super) fn help_of(container: &str) -> Reply {
    let lines = recorded::help(container);
    Reply::Array(lines.into_iter().map(Reply::simple).collect())
}

/// The error of a subcommand that checks the number of its arguments itself.
pub(super) fn subcommand_syntax<'a>(call: &impl Words<'a>) -> CommandError {
    let typed = call.request().get(1).unwrap_or_default();
    let container = call.row().full_name().split('|').next().unwrap_or_default();
    let container = container.to_ascii_uppercase();
    let parts: [&[u8]; 5] = [
        b"ERR unknown subcommand or wrong number of arguments for '",
        resolve::printable(typed, resolve::ECHO_LEN_MAX),
        b"'. Try ",
        container.as_bytes(),
        b" HELP.",
    ];
    CommandError::custom(parts.concat())
}

/// `COMMAND INFO [name ...]`: replies with an array of descriptions, null for an unknown name.
fn info(call: &mut ControlCall<'_>) -> CommandResult {
    let args = call.args();
    if args.is_empty() {
        return command(call);
    }
    let described = args
        .rest()
        .map(|name| find(name).map_or(Reply::Null, description));
    Ok(Reply::Array(described.collect()))
}

/// `COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern]`: replies with names, subcommands included.
fn list(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let all = rows()
        .iter()
        .flat_map(|row| std::iter::once(row).chain(row.subcommands()));
    if args.is_empty() {
        return Ok(Reply::bulks(all.map(|row| row.full_name())));
    }
    if !args.keyword("FILTERBY") {
        return Err(CommandError::Syntax);
    }
    let (kind, value) = (args.next()?, args.next()?);
    args.finish()?;
    let wanted = |row: &Row| match kind.to_ascii_uppercase().as_slice() {
        b"MODULE" => Some(false),
        b"ACLCAT" => Some(has_category(row, value)),
        b"PATTERN" => Some(glob::matches(value, row.full_name().as_bytes(), true)),
        _ => None,
    };
    let mut names = Vec::new();
    for row in all {
        if wanted(row).ok_or(CommandError::Syntax)? {
            names.push(row.full_name());
        }
    }
    Ok(Reply::bulks(names))
}

/// The row of a full name, `config|get` for a subcommand.
fn find(name: &[u8]) -> Option<&'static Row> {
    let mut parts = name.splitn(2, |byte| *byte == b'|');
    let row = lookup(parts.next()?)?;
    match parts.next() {
        Some(subcommand) => row.subcommand(subcommand),
        None => Some(row),
    }
}

/// Redis' order of flags in COMMAND INFO; the rows' flags that are not here are never printed.
const PRINTED: [(Flag, &str); 19] = [
    (Write, "write"),
    (ReadOnly, "readonly"),
    (DenyOom, "denyoom"),
    (Admin, "admin"),
    (PubSub, "pubsub"),
    (NoScript, "noscript"),
    (Blocking, "blocking"),
    (Loading, "loading"),
    (Stale, "stale"),
    (SkipMonitor, "skip_monitor"),
    (SkipSlowlog, "skip_slowlog"),
    (Asking, "asking"),
    (Fast, "fast"),
    (NoAuth, "no_auth"),
    (NoMandatoryKeys, "no_mandatory_keys"),
    (NoAsyncLoading, "no_async_loading"),
    (NoMulti, "no_multi"),
    (MovableKeys, "movablekeys"),
    (AllowBusy, "allow_busy"),
];

/// What COMMAND INFO says of one command.
fn description(row: &'static Row) -> Reply {
    let flags = PRINTED.iter().filter(|(flag, _)| row.has(*flag));
    let flags = flags.map(|(_, name)| Reply::simple(name)).collect();
    let (first, last, step) = legacy_range(row);
    let recorded_set = |field| {
        let value = recorded::info(row.full_name(), field);
        value.map_or(Reply::Set(Vec::new()), |value| {
            recorded::reply(field, value)
        })
    };
    let categories = recorded::categories(row.full_name()).map(Reply::simple);
    let subcommands = row.subcommands().iter().map(|row| description(row));
    // The empty set, but an array of those that are there.
    let subcommands = match subcommands.len() {
        0 => Reply::Set(Vec::new()),
        _ => Reply::Array(subcommands.collect()),
    };
    Reply::Array(vec![
        Reply::bulk(row.full_name()),
        Reply::Integer(row.arity().into()),
        Reply::Set(flags),
        Reply::Integer(first),
        Reply::Integer(last),
        Reply::Integer(step),
        Reply::Set(categories.collect()),
        recorded_set("tips"),
        recorded_set("key_specs"),
        subcommands,
    ])
}

/// First key, last key and step, as servers before key specs described them.
fn legacy_range(row: &Row) -> (i64, i64, i64) {
    match row.keys() {
        KeySpec::None | KeySpec::CountAt(_) => (0, 0, 0),
        KeySpec::Range { first, last, step } => (*first as i64, i64::from(*last), *step as i64),
        KeySpec::DestinationAndCount => (1, 1, 1),
        // A function says nothing of itself.
        KeySpec::Custom(_) => {
            let field = |name| {
                recorded::info(row.full_name(), name)
                    .and_then(Value::as_i64)
                    .unwrap_or_default()
            };
            (field("first"), field("last"), field("step"))
        }
    }
}

fn has_category(row: &Row, category: &[u8]) -> bool {
    let bare = |name: &'static str| name.trim_start_matches('@').as_bytes();
    recorded::categories(row.full_name()).any(|name| bare(name).eq_ignore_ascii_case(category))
}

/// What COMMAND DOCS says of one command, under its name.
fn documentation(row: &'static Row) -> (Reply, Reply) {
    let mut fields = recorded::docs(row.full_name())
        .map(recorded::pairs)
        .unwrap_or_default();
    if !row.subcommands().is_empty() {
        let subcommands = row.subcommands().iter().map(|row| documentation(row));
        let subcommands = Reply::Map(subcommands.collect());
        fields.push((Reply::bulk("subcommands"), subcommands));
    }
    (Reply::bulk(row.full_name()), Reply::Map(fields))
}

/// A request among the arguments, with its row and the places of its keys.
struct FoundKeys {
    row: &'static Row,
    request: Request,
    keys: Vec<(usize, Access)>,
}

/// Reads the arguments as a request.
fn keys_of_arguments(call: &ControlCall<'_>) -> Result<FoundKeys, CommandError> {
    let refuse = |text: &'static str| Err(CommandError::custom(text));
    let request = Request::new(call.args().rest());
    let row = match resolve::resolve(&request) {
        Ok(row) => row,
        Err(CommandError::WrongArity(_)) => {
            let row = resolve::find(&request).filter(|row| has_keys(row));
            return match row {
                Some(_) => refuse("ERR Invalid number of arguments specified for command"),
                None => refuse("ERR The command has no key arguments"),
            };
        }
        Err(_) => return refuse("ERR Invalid command specified"),
    };
    if !has_keys(row) {
        return refuse("ERR The command has no key arguments");
    }
    let keys = key_positions(row, &request);
    let keys = keys.filter(|keys| !keys.is_empty() || row.has(NoMandatoryKeys));
    let Some(keys) = keys else {
        return refuse("ERR Invalid arguments specified for command");
    };
    Ok(FoundKeys { row, request, keys })
}
