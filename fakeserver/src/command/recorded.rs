//! What redis-server 7.0.15 says of its commands and the rows do not know: key specs, tips, ACL categories, documentation,
//! HELP texts. The files under `data/` were recorded from it; they are parsed when first asked for.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::wire::Reply;

/// By full name: `info` as COMMAND INFO answers it, `docs` as COMMAND DOCS does.
static COMMANDS: LazyLock<Map<String, Value>> =
    LazyLock::new(|| parse(include_str!("data/commands.json")));
/// By container: the lines of its HELP subcommand.
static HELP: LazyLock<Map<String, Value>> = LazyLock::new(|| parse(include_str!("data/help.json")));

/// Parses one of our own data files.
pub(super) fn parse(text: &str) -> Map<String, Value> {
    serde_json::from_str(text)
        .expect("the data files are part of the source and were checked by a test")
}

/// What COMMAND INFO says of a command, by the field's name in the data file.
pub(super) fn info(full_name: &str, field: &str) -> Option<&'static Value> {
    COMMANDS.get(full_name)?.get("info")?.get(field)
}

/// The full names of all commands, a container in front of its subcommands.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.keys().map(String::as_str)
}

/// The ACL categories of a command with their `@`.
pub(super) fn categories(full_name: &str) -> impl Iterator<Item = &'static str> {
    let names = info(full_name, "acl").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

/// What COMMAND DOCS says of a command, without its subcommands.
pub(super) fn docs(full_name: &str) -> Option<&'static Map<String, Value>> {
    COMMANDS.get(full_name)?.get("docs")?.as_object()
}

/// The lines of a container's HELP.
pub(super) fn help(container: &str) -> Vec<&'static str> {
    let lines = HELP.get(container).and_then(Value::as_array);
    lines
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Fields whose arrays are sets in RESP3.
const SETS: [&str; 5] = ["doc_flags", "flags", "history", "key_specs", "tips"];

/// A recorded value as reply: text that begins with `+` is a simple string, an object is a map, and the field's name decides
/// whether an array is a set.
pub(super) fn reply(field: &str, value: &'static Value) -> Reply {
    match value {
        Value::String(text) => match text.strip_prefix('+') {
            Some(simple) => Reply::simple(simple),
            None => Reply::bulk(text),
        },
        Value::Array(items) => {
            let inner = if field == "arguments" { field } else { "" };
            let items = items.iter().map(|item| reply(inner, item)).collect();
            if SETS.contains(&field) {
                Reply::Set(items)
            } else {
                Reply::Array(items)
            }
        }
        Value::Object(fields) => Reply::Map(pairs(fields)),
        Value::Number(number) => Reply::Integer(number.as_i64().unwrap_or_default()),
        Value::Bool(_) | Value::Null => Reply::Null,
    }
}

/// An object's fields as pairs of a map.
pub(super) fn pairs(fields: &'static Map<String, Value>) -> Vec<(Reply, Reply)> {
    fields
        .iter()
        .map(|(name, value)| (Reply::bulk(name), reply(name, value)))
        .collect()
}
