//! COMMAND and its subcommands, made from the table; what a row does not know comes from [`super::recorded`].

use serde_json::Value;

use super::Command;
use super::{
    Access, CommandResult, ControlCall, Flag, Group, KeySpec, Row, Words, lookup, recorded, rows,
};
use crate::dispatch;
use crate::error::CommandError;
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
        Reply::Array(vec![key, key_flags(row, &request, at, access)])
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
        dispatch::printable(typed, dispatch::ECHO_LEN_MAX),
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
    let categories = categories(row).map(|name| Reply::Simple(name.into()));
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

/// ACL categories with their `@`.
fn categories(row: &Row) -> impl Iterator<Item = &'static str> {
    recorded::info(row.full_name(), "acl")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

fn has_category(row: &Row, category: &[u8]) -> bool {
    let bare = |name: &'static str| name.trim_start_matches('@').as_bytes();
    categories(row).any(|name| bare(name).eq_ignore_ascii_case(category))
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
    let row = match dispatch::resolve(&request) {
        Ok(row) => row,
        Err(CommandError::WrongArity(_)) => {
            let row = lookup(request.name()).filter(|row| has_keys(row));
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
    let kind = if row.has(ReadOnly) {
        Access::Read
    } else {
        Access::Write
    };
    let keys = row.keys().positions(&request, kind);
    // A destination alone is what is left of a count that cannot be read.
    let half = matches!(row.keys(), KeySpec::DestinationAndCount) && keys.len() < 2;
    if half || lacks_keys(row, &request) || keys.is_empty() && !row.has(NoMandatoryKeys) {
        return refuse("ERR Invalid arguments specified for command");
    }
    Ok(FoundKeys { row, request, keys })
}

/// Whether keys that a spec places at an index are missing, though the command does without (PFMERGE of no source).
fn lacks_keys(row: &Row, request: &Request) -> bool {
    key_specs(row)
        .filter_map(|spec| {
            spec.get("begin_search")?
                .get("spec")?
                .get("index")?
                .as_u64()
        })
        .any(|index| index >= request.len() as u64)
}

/// Whether a command (or one of its subcommands) has keys; shard channels stand where keys stand, but are none.
fn has_keys(row: &Row) -> bool {
    let names_channels = key_specs(row)
        .filter_map(|spec| spec.get("flags")?.as_array())
        .flatten()
        .any(|flag| flag == "+not_key");
    !matches!(row.keys(), KeySpec::None) && !names_channels
        || row.subcommands().iter().any(|row| has_keys(row))
}

fn key_specs(row: &Row) -> impl Iterator<Item = &'static Value> {
    recorded::info(row.full_name(), "key_specs")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// What a command does to the key at `at`, as its key specs name it.
fn key_flags(row: &Row, request: &Request, at: usize, access: Access) -> Reply {
    let spec = key_specs(row).find(|spec| covers(spec, request, at));
    let flags = spec.and_then(|spec| spec.get("flags")?.as_array());
    let names: Vec<&'static str> = flags
        .into_iter()
        .flatten()
        .filter_map(|flag| flag.as_str()?.strip_prefix('+'))
        .collect();
    let names = if names.contains(&"variable_flags") {
        variable_flags(row, request)
    } else if names.is_empty() {
        match access {
            Access::Read => &["RO", "access"],
            Access::Write => &["OW", "update"],
        }
    } else {
        names.as_slice()
    };
    Reply::Set(names.iter().map(|name| Reply::simple(name)).collect())
}

/// Whether a recorded key spec places a key at `at`.
fn covers(spec: &Value, request: &Request, at: usize) -> bool {
    let number = |value: Option<&Value>| value.and_then(Value::as_i64);
    let search = spec
        .get("begin_search")
        .and_then(|search| search.get("spec"));
    let Some(search) = search else { return false };
    let begin = match search.get("keyword").and_then(Value::as_str) {
        Some(keyword) => {
            let found = request
                .words()
                .position(|word| word.eq_ignore_ascii_case(keyword.as_bytes()));
            found.map(|found| found as i64 + 1)
        }
        None => number(search.get("index")),
    };
    let find = spec.get("find_keys").and_then(|find| find.get("spec"));
    let (Some(begin), Some(find)) = (begin, find) else {
        return false;
    };
    let at = at as i64;
    if let Some(count_at) = number(find.get("keynumidx")) {
        return at > begin + count_at;
    }
    let last = match number(find.get("lastkey")) {
        Some(last) if last >= 0 => begin + last,
        _ => request.len() as i64,
    };
    (begin..=last).contains(&at)
}

/// Commands whose effect on the key depends on an option (SET with GET, BITFIELD with anything but GET).
fn variable_flags(row: &Row, request: &Request) -> &'static [&'static str] {
    const BOTH: &[&str] = &["RW", "access", "update"];
    let is_bitmap = row.group() == Group::Bitmap;
    let mut words = request.words().skip(if is_bitmap { 2 } else { 3 });
    while let Some(word) = words.next() {
        let is = |option: &[u8]| word.eq_ignore_ascii_case(option);
        if is_bitmap {
            let values = if is(b"GET") {
                2
            } else if is(b"OVERFLOW") {
                1
            } else {
                return BOTH;
            };
            // What is cut short might become anything.
            if words.by_ref().take(values).count() < values {
                return BOTH;
            }
        } else if is(b"GET") {
            return BOTH;
        }
    }
    if is_bitmap {
        &["RO", "access"]
    } else {
        &["OW", "update"]
    }
}
