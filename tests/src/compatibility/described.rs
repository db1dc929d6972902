//! [`Described`]: what a server says of its commands.

use serde_json::{Map, Value};

use super::syntax::Syntax;
use crate::json::to_json;
use crate::raw::Raw;

/// Recorded from redis-server 7.0.15: what COMMAND INFO and COMMAND DOCS say of each command.
const RECORDED: &str = include_str!("../../../fakeserver/src/command/data/commands.json");
/// Arguments that COMMAND DOCS leaves out or calls any string, written as it would describe them.
const UNDOCUMENTED: &str = include_str!("undocumented.json");

/// One command or subcommand.
#[derive(Clone, Debug)]
pub struct Described {
    /// Its full name: `config|get`.
    pub name: String,
    /// Its group in the documentation.
    pub group: String,
    /// The version that it came with.
    pub since: String,
    /// Whether it can be called; a container of subcommands cannot.
    pub callable: bool,
    /// Its arguments.
    pub syntax: Syntax,
}

impl Described {
    /// The commands of the recorded redis-server, by name.
    pub fn recorded() -> Vec<Described> {
        let entries = recorded();
        let all = entries.iter().map(|(name, entry)| {
            let prefix = format!("{name}|");
            let container = entries.keys().any(|other| other.starts_with(&prefix));
            let arity = entry["info"]["arity"].as_i64().unwrap_or_default();
            Described::new(name, &entry["docs"], arity, container)
        });
        all.collect()
    }

    /// The commands that a server on a RESP3 connection has, by name. Panics if it does not say what COMMAND has to say.
    pub fn of_server(raw: &mut Raw) -> Vec<Described> {
        let docs = documentation(raw);
        let infos = to_json(&raw.call(&["COMMAND"]));
        let mut all = Vec::new();
        for info in infos.as_array().expect("COMMAND replies with an array") {
            let subcommands = info[9].as_array().map_or(&[][..], Vec::as_slice);
            for info in std::iter::once(info).chain(subcommands) {
                let name = info[0].as_str().expect("a name").to_owned();
                let arity = info[1].as_i64().expect("an arity");
                let docs = docs.get(&name).expect("every command is documented");
                let container = info[9].as_array().is_some_and(|below| !below.is_empty());
                all.push(Described::new(&name, docs, arity, container));
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    fn new(name: &str, docs: &Value, arity: i64, container: bool) -> Described {
        let undocumented: Map<String, Value> =
            serde_json::from_str(UNDOCUMENTED).expect("our own file is JSON");
        let arguments = undocumented.get(name).unwrap_or(&docs["arguments"]);
        let text = |field: &str| docs[field].as_str().unwrap_or_default().to_owned();
        Described {
            name: name.to_owned(),
            group: text("group"),
            since: text("since"),
            // COMMAND is both.
            callable: !container || arity == -1,
            syntax: Syntax::parse(arguments, arity).unwrap_or_else(|why| panic!("{name}: {why}")),
        }
    }
}

/// The recorded file, by full name: `info` and `docs`.
pub fn recorded() -> Map<String, Value> {
    serde_json::from_str(RECORDED).expect("our own file is JSON")
}

/// COMMAND DOCS of a server on a RESP3 connection, by full name and without the subcommands inside. Panics as
/// [`Described::of_server`].
pub fn documentation(raw: &mut Raw) -> Map<String, Value> {
    let reply = to_json(&raw.call(&["COMMAND", "DOCS"]));
    let mut flat = Map::new();
    for (name, docs) in reply.as_object().expect("COMMAND DOCS replies with a map") {
        let mut docs = docs.as_object().expect("documentation is a map").clone();
        if let Some(Value::Object(subcommands)) = docs.remove("subcommands") {
            flat.extend(subcommands);
        }
        flat.insert(name.clone(), Value::Object(docs));
    }
    flat
}
