//! [`Described`]: what a server says of its commands.

use serde_json::{Map, Value};

use super::syntax::Syntax;
use crate::json::to_json;
use crate::raw::Raw;

/// Recorded from redis-server 7.0.15: what COMMAND INFO and COMMAND DOCS say of each command.
const RECORDED: &str = include_str!("../../../fakeserver/src/command/data/commands.json");
/// Arguments that COMMAND DOCS leaves out or calls any string, written as it would describe them.
const UNDOCUMENTED: &str = include_str!("undocumented.json");
/// Recorded from redis-server 7.0.15: the lines of each HELP.
const HELP: &str = include_str!("../../../fakeserver/src/command/data/help.json");

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
    /// Subcommands of which only its HELP speaks and that its syntax does not have.
    pub absent: Vec<String>,
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
        let undocumented = parsed(UNDOCUMENTED);
        let ours = undocumented.get(name);
        let arguments = ours.unwrap_or(&docs["arguments"]);
        let syntax = Syntax::parse(arguments, arity).unwrap_or_else(|why| panic!("{name}: {why}"));
        let absent = ours.map_or(Vec::new(), |_| absent_from(name, &syntax));
        let text = |field: &str| docs[field].as_str().unwrap_or_default().to_owned();
        Described {
            name: name.to_owned(),
            group: text("group"),
            since: text("since"),
            // COMMAND is both.
            callable: !container || arity == -1,
            syntax,
            absent,
        }
    }
}

/// The recorded file, by full name: `info` and `docs`.
pub fn recorded() -> Map<String, Value> {
    parsed(RECORDED)
}

fn parsed(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).expect("our own file is JSON")
}

/// Subcommands that a command's HELP names and a syntax does not have.
fn absent_from(name: &str, syntax: &Syntax) -> Vec<String> {
    let choices = syntax.choices();
    let has = |word: &str| {
        let mut labels = choices.iter().map(|choice| choice.label.split(' ').next());
        labels.any(|first| first == Some(word))
    };
    let help = parsed(HELP);
    let lines = help.get(name).and_then(Value::as_array);
    // The first line is a heading, and descriptions are indented.
    let lines = lines.into_iter().flatten().skip(1);
    lines
        .filter_map(|line| line.as_str()?.split(' ').next())
        .filter(|word| !word.is_empty() && !has(word))
        .map(str::to_owned)
        .collect()
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
