//! The command table against what redis-server 7.0.15 says of its commands: the recorded copy always, the server itself where
//! `REDIS_URL` names one. A wrong arity, flag or key position in a row fails here.

#![expect(
    clippy::unwrap_used,
    reason = "what is not as expected here is a failure, and its line says enough"
)]

use std::collections::BTreeMap;

use fakeserver::command::{Group, Row, rows};
use serde_json::{Map, Value, json};
use tests::json::{normal, to_json};
use tests::raw::Raw;
use tests::server::{Backend, Kind, real_url};

/// Recorded from redis-server 7.0.15; the engine answers from the same file what a row does not know.
const RECORDED: &str = include_str!("../../fakeserver/src/command/data/commands.json");
const RECORDED_HELP: &str = include_str!("../../fakeserver/src/command/data/help.json");

fn recorded(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap()
}

fn all_rows() -> impl Iterator<Item = &'static Row> {
    rows()
        .iter()
        .flat_map(|row| std::iter::once(*row).chain(row.subcommands().iter().copied()))
}

/// A connection in RESP3, where sets and maps can be told from arrays.
fn connect(kind: Kind) -> (Backend, Raw) {
    let backend = Backend::start(kind);
    let mut raw = backend.raw();
    raw.call(&["HELLO", "3"]);
    (backend, raw)
}

/// COMMAND INFO's array as an object with the names of the data file, and its subcommands' objects.
fn describe(entry: &Value, into: &mut BTreeMap<String, Value>) {
    let field = |at: usize| entry[at].clone();
    for subcommand in entry[9].as_array().unwrap() {
        describe(subcommand, into);
    }
    let description = json!({
        "arity": field(1), "flags": field(2), "first": field(3), "last": field(4), "step": field(5),
        "acl": field(6), "tips": field(7), "key_specs": field(8),
    });
    into.insert(field(0).as_str().unwrap().to_owned(), description);
}

fn descriptions(raw: &mut Raw) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for entry in to_json(&raw.call(&["COMMAND"])).as_array().unwrap() {
        describe(entry, &mut all);
    }
    all
}

fn assert_same(failures: &mut Vec<String>, name: &str, ours: &Value, theirs: &Value) {
    for (field, theirs) in theirs.as_object().unwrap() {
        let ours = &ours[field];
        if ours != theirs {
            failures.push(format!(
                "{name}: {field} is {ours}, of redis-server {theirs}"
            ));
        }
    }
}

#[test]
fn every_row_equals_the_recorded_description() {
    let (_backend, mut raw) = connect(Kind::Memory);
    let ours = descriptions(&mut raw);
    let recorded = recorded(RECORDED);
    let mut failures = Vec::new();
    for row in all_rows() {
        let name = row.full_name();
        match (recorded.get(name), ours.get(name)) {
            (Some(theirs), Some(ours)) => {
                assert_same(&mut failures, name, ours, &normal("", &theirs["info"]));
                let group = &theirs["docs"]["group"];
                if group.as_str() != Some(group_name(row.group())) {
                    failures.push(format!("{name}: its group is {group}"));
                }
                let since = &theirs["docs"]["since"];
                if since.as_str() != Some(row.since()) {
                    failures.push(format!("{name}: it is there since {since}"));
                }
            }
            (None, _) => failures.push(format!("{name}: redis-server 7.0.15 does not know it")),
            (_, None) => failures.push(format!("{name}: COMMAND does not list it")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn group_name(group: Group) -> &'static str {
    match group {
        Group::Bitmap => "bitmap",
        Group::Cluster => "cluster",
        Group::Connection => "connection",
        Group::Generic => "generic",
        Group::Geo => "geo",
        Group::Hash => "hash",
        Group::HyperLogLog => "hyperloglog",
        Group::List => "list",
        Group::PubSub => "pubsub",
        Group::Scripting => "scripting",
        Group::Server => "server",
        Group::Set => "set",
        Group::SortedSet => "sorted-set",
        Group::Stream => "stream",
        Group::String => "string",
        Group::Transactions => "transactions",
    }
}

#[test]
fn a_command_that_is_not_in_the_table_is_not_listed() {
    let (_backend, mut raw) = connect(Kind::Memory);
    let known: Vec<&str> = all_rows().map(Row::full_name).collect();
    for name in descriptions(&mut raw).keys() {
        assert!(known.contains(&name.as_str()), "{name}");
    }
    assert_eq!(
        to_json(&raw.call(&["COMMAND", "COUNT"])),
        json!(rows().len())
    );
}

#[test]
fn the_recorded_descriptions_are_those_of_the_real_server() {
    if real_url().is_none() {
        return;
    }
    let (_backend, mut raw) = connect(Kind::Real);
    let theirs = descriptions(&mut raw);
    let mut failures = Vec::new();
    for (name, recorded) in recorded(RECORDED) {
        let recorded = normal("", &recorded["info"]);
        match theirs.get(&name) {
            Some(theirs) => assert_same(&mut failures, &name, &recorded, theirs),
            None => failures.push(format!("{name}: the real server does not know it")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The documentation of our commands, by name.
fn documentation(raw: &mut Raw) -> Map<String, Value> {
    let names = rows().iter().map(|row| row.full_name());
    let request: Vec<&str> = ["COMMAND", "DOCS"].into_iter().chain(names).collect();
    to_json(&raw.call(&request)).as_object().unwrap().clone()
}

#[test]
fn the_documentation_is_that_of_the_real_server() {
    if real_url().is_none() {
        return;
    }
    let (_fake, mut fake) = connect(Kind::Memory);
    let (_real, mut real) = connect(Kind::Real);
    let (ours, mut theirs) = (documentation(&mut fake), documentation(&mut real));
    for (name, ours) in &ours {
        let theirs = &mut theirs[name];
        // Subcommands that are not in the table yet are not documented either.
        if let Some(subcommands) = theirs.get_mut("subcommands").and_then(Value::as_object_mut) {
            subcommands.retain(|subcommand, _| ours["subcommands"].get(subcommand).is_some());
        }
        assert_eq!(ours, theirs, "{name}");
    }
}

#[test]
fn help_texts_are_those_of_the_real_server() {
    let (_fake, mut fake) = connect(Kind::Memory);
    let mut real = real_url().map(|_| connect(Kind::Real));
    for (container, lines) in recorded(RECORDED_HELP) {
        if let Some((_, real)) = &mut real {
            let theirs = to_json(&real.call(&[container.as_str(), "HELP"]));
            // DEBUG may be refused there.
            if theirs.is_array() {
                assert_eq!(lines, theirs, "{container}");
            }
        }
        let ours = all_rows().any(|row| row.full_name() == format!("{container}|help"));
        if ours {
            let said = to_json(&fake.call(&[container.as_str(), "HELP"]));
            assert_eq!(said, lines, "{container}");
        }
    }
}

#[test]
fn the_settings_have_the_names_of_the_real_server() {
    let names = |raw: &mut Raw| -> Vec<String> {
        let settings = to_json(&raw.call(&["CONFIG", "GET", "*"]));
        settings.as_object().unwrap().keys().cloned().collect()
    };
    let (_fake, mut fake) = connect(Kind::Memory);
    let ours = names(&mut fake);
    assert_eq!(ours.len(), 192);
    if real_url().is_some() {
        let (_real, mut real) = connect(Kind::Real);
        assert_eq!(ours, names(&mut real));
    }
}
