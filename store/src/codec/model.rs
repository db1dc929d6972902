//! Rows and events: declaration order out, lax in, unknown members kept in their places.

use std::borrow::Cow;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::{
    Surrogates, depth,
    members::Members,
    number::lax_integer,
    object, object_depth,
    print::{Printer, Spelling},
};
use crate::{ChildState, Dialect, Event, Execution, ExecutionSummary, Status, Unknown, Version};

const EXECUTION: [&str; 18] = [
    "id",
    "definition_id",
    "definition_fqn",
    "root_path",
    "status",
    "outcome",
    "error",
    "active_path",
    "history",
    "context",
    "processed_events",
    "version",
    "priority",
    "parent_id",
    "child_id",
    "deferred",
    "children",
    "invoke_seq",
];
/// Members of the newer dialect, which the older one keeps as it keeps unknown ones.
const TIMES: [&str; 4] = ["created_at", "updated_at", "finished_at", "expires_at"];
const CHILD: [&str; 6] = [
    "root_path",
    "finished",
    "outcome",
    "result",
    "submachine",
    "key",
];
const EVENT: [&str; 5] = ["id", "kind", "created_time", "received_time", "data"];

/// Bytes that most rows fit into.
const ROW_LEN_USUAL: usize = 2048;

/// Highest priority of an execution.
pub(crate) const PRIORITY_MAX: u8 = 4;

/// The row of an execution in the seed's dialect, at this version, which need not be the one that it carries.
pub fn encode_execution(execution: &Execution, version: Version) -> String {
    encode_execution_in(Dialect::Seed, execution, version)
}

/// The row of an execution in a dialect, at this version.
///
/// The four times stand where they stood in the row that was read. Those that were not in it come last: in the newer
/// dialect all of them, in the seed's those that have a value.
pub fn encode_execution_in(dialect: Dialect, execution: &Execution, version: Version) -> String {
    let mut printer = Printer::with_room(Spelling::Compact, ROW_LEN_USUAL);
    let unknown = with_times(dialect, execution);
    let mut row = printer.object_keeping(&unknown);
    row.text("id", &execution.id);
    row.text("definition_id", &execution.definition_id);
    row.optional_text("definition_fqn", execution.definition_fqn.as_deref());
    row.text("root_path", &execution.root_path);
    row.text("status", execution.status.as_str());
    row.optional_text("outcome", execution.outcome.as_deref());
    row.optional_text("error", execution.error.as_deref());
    row.optional_text("active_path", execution.active_path.as_deref());
    row.map("history", &execution.history);
    row.map("context", &execution.context);
    row.integer("processed_events", execution.processed_events);
    row.integer("version", version.get());
    row.integer("priority", execution.priority.into());
    row.optional_text("parent_id", execution.parent_id.as_deref());
    row.optional_text("child_id", execution.child_id.as_deref());
    row.member("deferred")
        .array(&execution.deferred, print_event);
    let mut children = row.member("children").object();
    for (id, child) in &execution.children {
        print_child(children.member(id), child);
    }
    children.end();
    let mut calls = row.member("invoke_seq").object();
    for (path, count) in &execution.invoke_seq {
        calls.integer(path, *count);
    }
    calls.end();
    row.end();
    printer.finish()
}

/// The unknown members with the times among them, as they are to be written.
fn with_times(dialect: Dialect, execution: &Execution) -> Cow<'_, Unknown> {
    let Times(times) = Times::of(execution);
    let needed = dialect == Dialect::V09 || times.iter().any(Option::is_some);
    if !needed && !execution.unknown.has_places() {
        return Cow::Borrowed(&execution.unknown);
    }
    let mut unknown = execution.unknown.clone();
    for (name, time) in TIMES.into_iter().zip(times) {
        match unknown.claim(name) {
            // What was read stays as it was spelled, also if it is no time at all.
            Some(value) if seconds(value) == time => {}
            Some(value) => *value = number(time),
            None if dialect == Dialect::V09 || time.is_some() => {
                unknown.push(EXECUTION.len(), name.to_owned(), number(time));
            }
            None => {}
        }
    }
    Cow::Owned(unknown)
}

/// The times of an execution, in the order of their names.
struct Times([Option<f64>; 4]);

impl Times {
    fn of(execution: &Execution) -> Self {
        Self([
            execution.created_at,
            execution.updated_at,
            execution.finished_at,
            execution.expires_at,
        ])
    }
}

fn seconds(value: &Value) -> Option<f64> {
    let seconds = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    seconds.filter(|seconds| seconds.is_finite())
}

fn number(seconds: Option<f64>) -> Value {
    // Not a number and the infinities have no spelling in a row; they are refused before.
    seconds.map_or(Value::Null, Value::from)
}

/// The JSON of an event.
pub fn encode_event(event: &Event) -> String {
    let mut printer = Printer::new(Spelling::Compact);
    print_event(&mut printer, event);
    printer.finish()
}

fn print_event(printer: &mut Printer, event: &Event) {
    let mut object = printer.object_keeping(&event.unknown);
    object.text("id", &event.id);
    object.text("kind", &event.kind);
    object.optional_text("created_time", event.created_time.as_deref());
    object.optional_text("received_time", event.received_time.as_deref());
    object.map("data", &event.data);
    object.end();
}

fn print_child(printer: &mut Printer, child: &ChildState) {
    let mut object = printer.object_keeping(&child.unknown);
    object.text("root_path", &child.root_path);
    object.boolean("finished", child.finished);
    object.optional_text("outcome", child.outcome.as_deref());
    object.map("result", &child.result);
    object.boolean("submachine", child.submachine);
    object.text("key", &child.key);
    object.end();
}

/// Levels of nesting of an execution's row.
pub fn execution_depth(execution: &Execution) -> usize {
    let own = [
        object_depth(&execution.history),
        object_depth(&execution.context),
        unknown_depth(&execution.unknown),
    ];
    let deferred = execution
        .deferred
        .iter()
        .map(|event| 1 + event_depth(event));
    let children = execution.children.values();
    let children =
        children.map(|child| 2 + object_depth(&child.result).max(unknown_depth(&child.unknown)));
    1 + own
        .into_iter()
        .chain(deferred)
        .chain(children)
        .max()
        .unwrap_or(1)
}

/// Levels of nesting of an event's document.
pub(crate) fn event_depth(event: &Event) -> usize {
    1 + object_depth(&event.data).max(unknown_depth(&event.unknown))
}

fn unknown_depth(unknown: &Unknown) -> usize {
    unknown
        .members()
        .iter()
        .map(|member| depth(&member.value))
        .max()
        .unwrap_or(0)
}

/// The execution in a row.
///
/// Lax as the Python store's reader is: absent members have their defaults, `"3"` and `3.0` are the integer 3, of equal
/// names the last one counts, unknown members are kept.
///
/// # Errors
/// What is wrong with the row, in words.
pub fn decode_execution(row: &[u8]) -> Result<Execution, String> {
    let mut members = Members::new(object(row, Surrogates::Refuse)?, &EXECUTION);
    let mut execution = Execution::new(members.text("id")?, members.text("definition_id")?);
    execution.definition_fqn = members.optional_text("definition_fqn")?;
    execution.root_path = members.text_or_empty("root_path")?;
    execution.status = members
        .take("status")
        .map_or(Ok(Status::default()), |value| status(&value))?;
    execution.outcome = members.optional_text("outcome")?;
    execution.error = members.optional_text("error")?;
    execution.active_path = members.optional_text("active_path")?;
    execution.history = members.map("history")?;
    execution.context = members.map("context")?;
    execution.processed_events = members.integer("processed_events")?;
    execution.version = Version::new(members.integer("version")?);
    execution.priority = priority(members.integer("priority")?)?;
    execution.parent_id = members.optional_text("parent_id")?;
    execution.child_id = members.optional_text("child_id")?;
    execution.deferred = members
        .array("deferred")?
        .into_iter()
        .map(|value| event(value, "deferred"))
        .collect::<Result<_, _>>()?;
    execution.children = members
        .map("children")?
        .into_iter()
        .map(child)
        .collect::<Result<_, _>>()?;
    execution.invoke_seq = calls(members.map("invoke_seq")?)?;
    let mut unknown = members.unknown;
    let mut time = |name| unknown.claim(name).and_then(|value| seconds(value));
    execution.created_at = time("created_at");
    execution.updated_at = time("updated_at");
    execution.finished_at = time("finished_at");
    execution.expires_at = time("expires_at");
    execution.unknown = unknown;
    Ok(execution)
}

/// An event from its JSON.
///
/// # Errors
/// What is wrong with it, in words.
pub fn decode_event(json: &[u8]) -> Result<Event, String> {
    event(Value::Object(object(json, Surrogates::Refuse)?), "event")
}

/// The summary of a row: `id`, `definition_id` and `status` must be there, the rest may be absent.
///
/// # Errors
/// What is wrong with the row, in words.
pub fn decode_summary(row: &[u8]) -> Result<ExecutionSummary, String> {
    let mut members = Members::new(object(row, Surrogates::Replace)?, &EXECUTION);
    Ok(ExecutionSummary {
        id: members.text("id")?,
        definition_id: members.text("definition_id")?,
        status: status(&members.take("status").ok_or("no `status`")?)?,
        outcome: members.optional_text("outcome")?,
        active_path: members.optional_text("active_path")?,
        version: Version::new(members.integer("version")?),
        parent_id: members.optional_text("parent_id")?,
        finished_at: members
            .unknown
            .claim("finished_at")
            .and_then(|value| seconds(value)),
    })
}

/// When a row says that it was first stored.
pub(crate) fn created_at(row: &[u8]) -> Option<f64> {
    let members = object(row, Surrogates::Replace).ok()?;
    members.get("created_at").and_then(seconds)
}

pub(super) fn status(value: &Value) -> Result<Status, String> {
    value
        .as_str()
        .and_then(Status::from_name)
        .ok_or_else(|| "unknown `status`".to_owned())
}

fn priority(number: i64) -> Result<u8, String> {
    u8::try_from(number)
        .ok()
        .filter(|number| *number <= PRIORITY_MAX)
        .ok_or_else(|| "`priority` is not 0 to 4".to_owned())
}

fn event(value: Value, what: &str) -> Result<Event, String> {
    let Value::Object(object) = value else {
        return Err(format!("`{what}` holds what is not an object"));
    };
    let mut members = Members::new(object, &EVENT);
    Ok(Event {
        id: members.text("id")?,
        kind: members.text("kind")?,
        created_time: members.optional_text("created_time")?,
        received_time: members.optional_text("received_time")?,
        data: members.map("data")?,
        unknown: members.unknown,
    })
}

fn child((id, value): (String, Value)) -> Result<(String, ChildState), String> {
    let Value::Object(object) = value else {
        return Err("`children` holds what is not an object".to_owned());
    };
    let mut members = Members::new(object, &CHILD);
    let mut child = ChildState::new(members.text("root_path")?);
    child.finished = members.boolean("finished")?;
    child.outcome = members.optional_text("outcome")?;
    child.result = members.map("result")?;
    child.submachine = members.boolean("submachine")?;
    child.key = members.text_or_empty("key")?;
    child.unknown = members.unknown;
    Ok((id, child))
}

fn calls(members: Map<String, Value>) -> Result<IndexMap<String, i64>, String> {
    let integer = |value: &Value| {
        lax_integer(value).ok_or_else(|| "`invoke_seq` holds what is not an integer".to_owned())
    };
    members
        .into_iter()
        .map(|(path, value)| Ok((path, integer(&value)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FRESH: &str = r#"{"id":"exe-1","definition_id":"order","definition_fqn":null,"root_path":"","status":"PENDING","outcome":null,"error":null,"active_path":null,"history":{},"context":{},"processed_events":0,"version":1,"priority":0,"parent_id":null,"child_id":null,"deferred":[],"children":{},"invoke_seq":{}}"#;

    #[test]
    fn a_fresh_row_has_every_member_in_declaration_order() {
        assert_eq!(
            encode_execution(&Execution::new("exe-1", "order"), Version::new(1)),
            FRESH
        );
    }

    #[test]
    fn a_row_is_read_back_as_it_was() {
        let mut execution = Execution::new("a", "d");
        execution.priority = 4;
        execution.deferred.push(Event::new("e", "k"));
        execution
            .children
            .insert("c".to_owned(), ChildState::new("r"));
        execution.invoke_seq.insert("z".to_owned(), 2);
        execution.invoke_seq.insert("b".to_owned(), 1);
        execution.version = Version::new(7);
        let row = encode_execution(&execution, Version::new(7));
        assert_eq!(decode_execution(row.as_bytes()).unwrap(), execution);
    }

    #[test]
    fn unknown_members_come_back_in_their_places() {
        let row = FRESH
            .replace(r#""status""#, r#""before":[1,{"x":1.0}],"status""#)
            .replace(
                r#""invoke_seq":{}"#,
                r#""invoke_seq":{},"created_at":1.5,"updated_at":null"#,
            )
            .replace(r#"{"id":"#, r#"{"first":1,"id":"#);
        let execution = decode_execution(row.as_bytes()).unwrap();
        assert_eq!(
            execution
                .unknown
                .iter()
                .map(|(name, _)| name)
                .collect::<Vec<_>>(),
            ["first", "before"]
        );
        assert_eq!(execution.created_at, Some(1.5));
        assert_eq!(encode_execution(&execution, execution.version), row);
        let event = r#"{"v":1,"id":"e","kind":"k","created_time":null,"x":2,"received_time":null,"data":{},"y":3}"#;
        assert_eq!(
            encode_event(&decode_event(event.as_bytes()).unwrap()),
            event
        );
    }

    #[test]
    fn the_times_stand_where_they_stood_or_last() {
        const NEWER: &str =
            r#","created_at":1.5,"updated_at":null,"finished_at":null,"expires_at":null}"#;
        let row =
            |end: &str| FRESH.replace(r#""invoke_seq":{}}"#, &format!(r#""invoke_seq":{{}}{end}"#));
        let read = |row: &str| decode_execution(row.as_bytes()).unwrap();
        let text = |dialect, execution: &Execution| {
            encode_execution_in(dialect, execution, execution.version)
        };
        let both = [Dialect::Seed, Dialect::V09];

        let mut fresh = read(FRESH);
        assert_eq!(text(Dialect::Seed, &fresh), FRESH);
        assert_eq!(
            text(Dialect::V09, &fresh),
            row(&NEWER.replace("1.5", "null"))
        );
        fresh.created_at = Some(1.5);
        assert_eq!(text(Dialect::Seed, &fresh), row(r#","created_at":1.5}"#));
        assert_eq!(text(Dialect::V09, &fresh), row(NEWER));
        assert_eq!(read(&text(Dialect::V09, &fresh)), fresh);

        for foreign in [
            row(NEWER),
            row(
                r#","x":1,"expires_at":1700000000,"y":2,"created_at":"7","updated_at":[],"finished_at":null}"#,
            ),
            row(NEWER).replace(r#"{"id":"#, r#"{"z":{"created_at":3},"id":"#),
        ] {
            for dialect in both {
                assert_eq!(text(dialect, &read(&foreign)), foreign);
            }
        }
        let early = FRESH.replace(r#"{"id":"#, r#"{"finished_at":2.5,"id":"#);
        let mut execution = read(&early);
        assert_eq!(text(Dialect::Seed, &execution), early);
        execution.finished_at = None;
        assert_eq!(
            text(Dialect::Seed, &execution),
            early.replace("2.5", "null")
        );
        assert_eq!(
            decode_summary(early.as_bytes()).unwrap().finished_at,
            Some(2.5)
        );
    }

    #[test]
    fn reading_is_lax_where_python_is() {
        let row = br#" {"definition_id":"d","id":"x","version":"3","priority":2.0,"context":{"n":NaN,"big":1e400}} "#;
        let execution = decode_execution(row).unwrap();
        assert_eq!(
            (
                execution.version.get(),
                execution.priority,
                execution.status
            ),
            (3, 2, Status::Pending)
        );
        assert_eq!(execution.context.get("n"), Some(&Value::Null));
    }

    #[test]
    fn reading_is_strict_where_python_is() {
        for (from, to) in [
            (r#""id":"exe-1""#, r#""id":1"#),
            (r#""id":"exe-1","#, ""),
            (r#""history":{}"#, r#""history":null"#),
            (r#""priority":0"#, r#""priority":5"#),
            (r#""version":1"#, r#""version":3.5"#),
            ("PENDING", "pending"),
            (r#""status":"PENDING""#, r#""status":null"#),
            (r#""root_path":"""#, r#""root_path":"\ud800""#),
            (r#""deferred":[]"#, r#""deferred":[{}]"#),
            (r#""children":{}"#, r#""children":{"a":{}}"#),
            (r#""invoke_seq":{}"#, r#""invoke_seq":{"a":"b"}"#),
        ] {
            let row = FRESH.replace(from, to);
            assert_ne!(row, FRESH, "{from}");
            assert!(decode_execution(row.as_bytes()).is_err(), "{to}");
        }
    }

    #[test]
    fn a_summary_needs_three_members() {
        let summary = decode_summary(br#"{"id":"a","definition_id":"d","status":"DONE"}"#).unwrap();
        assert_eq!((summary.version, summary.parent_id), (Version::NEW, None));
        for row in [
            r#"{"definition_id":"d","status":"DONE"}"#,
            r#"{"id":"a","status":"DONE"}"#,
            r#"{"id":"a","definition_id":"d"}"#,
        ] {
            assert!(decode_summary(row.as_bytes()).is_err(), "{row}");
        }
    }

    #[test]
    fn depth_looks_everywhere() {
        let deep = |levels: usize| {
            let mut map = Map::new();
            map.insert(
                "x".to_owned(),
                (0..levels).fold(json!(0), |inner, _| json!([inner])),
            );
            map
        };
        let fresh = Execution::new("a", "d");
        assert_eq!(execution_depth(&fresh), 2);
        let mut execution = fresh.clone();
        execution.context = deep(3);
        assert_eq!(execution_depth(&execution), 5);
        let mut execution = fresh.clone();
        execution.deferred = vec![Event {
            data: deep(3),
            ..Event::new("e", "k")
        }];
        assert_eq!(execution_depth(&execution), 7);
        let mut execution = fresh;
        execution.children.insert(
            "c".to_owned(),
            ChildState {
                result: deep(3),
                ..ChildState::new("")
            },
        );
        assert_eq!(execution_depth(&execution), 7);
    }
}
