//! Values in Redis to types and back, spelled as the Python store spells them.
//!
//! Two spellings live side by side: rows and events are compact with raw UTF-8 ([`Spelling::Compact`]); the envelope of an
//! outbox entry, spawns and trace steps have blanks after separators and nothing but ASCII ([`Spelling::Spaced`]).

mod instance;
mod members;
mod model;
mod number;
mod parse;
mod print;
mod strict;
mod tail;

use serde_json::{Map, Value};

pub(crate) use self::model::{PRIORITY_MAX, created_at, event_depth};
pub use self::{
    instance::{decode_instance, encode_instance},
    model::{
        decode_event, decode_execution, decode_summary, encode_event, encode_execution,
        encode_execution_in, execution_depth,
    },
    number::{lax_integer, python_float},
    parse::{DEPTH_MAX as READ_DEPTH_MAX, ParseError, Surrogates, parse},
    print::{Spelling, print},
    tail::version_tail,
};
use crate::{Emit, OutboxEntry, Seq, SpawnEntry, SpawnIntent, StoreError, Version, entry::Stored};

/// How deeply a document may be nested to be written: the Python store refuses to read from 200 on.
pub const WRITE_DEPTH_MAX: usize = 199;

/// Levels of arrays and objects in a value; counting stops above [`WRITE_DEPTH_MAX`]. A scalar has none.
pub fn depth(value: &Value) -> usize {
    depth_within(value, WRITE_DEPTH_MAX)
}

/// As [`depth`], at most one more than `levels`, which bounds the recursion too.
fn depth_within(value: &Value, levels: usize) -> usize {
    match value {
        Value::Array(items) => 1 + deepest(items.iter(), levels),
        Value::Object(members) => 1 + deepest(members.values(), levels),
        _ => 0,
    }
}

fn deepest<'v>(values: impl Iterator<Item = &'v Value>, levels: usize) -> usize {
    let Some(levels) = levels.checked_sub(1) else {
        return 0;
    };
    let depths = values.map(|value| depth_within(value, levels));
    depths.max().unwrap_or(0)
}

/// As [`depth`] for an object that is not wrapped as a value; at least 1.
pub fn object_depth(members: &Map<String, Value>) -> usize {
    1 + members.values().map(depth).max().unwrap_or(0)
}

/// Value of an outbox field.
pub fn encode_outbox(emit: &Emit) -> String {
    let mut printer = print::Printer::new(Spelling::Spaced);
    let mut object = printer.object();
    object.optional_text("t", emit.target.as_deref());
    object.text("e", &encode_event(&emit.event));
    object.end();
    printer.finish()
}

/// Value of a spawn field.
pub fn encode_spawn(parent_id: &str, spawn: &SpawnIntent) -> String {
    let mut printer = print::Printer::new(Spelling::Spaced);
    let mut object = printer.object();
    object.text("p", parent_id);
    object.text("c", &spawn.child_id);
    object.text("r", &spawn.root_path);
    object.map("x", &spawn.context);
    object.end();
    printer.finish()
}

/// A trace step with its index: in the place of the step's own `index` if it has one, else last.
pub fn encode_trace_step(step: &Map<String, Value>, index: &Value) -> String {
    let mut printer = print::Printer::new(Spelling::Spaced);
    let mut object = printer.object();
    for (name, value) in step {
        object.value(name, if name == "index" { index } else { value });
    }
    if !step.contains_key("index") {
        object.value("index", index);
    }
    object.end();
    printer.finish()
}

/// As [`encode_trace_step`], as the text in front of the index and the text behind it.
pub fn encode_trace_around_index(step: &Map<String, Value>) -> (String, String) {
    let mut printer = print::Printer::new(Spelling::Spaced);
    let mut object = printer.object();
    let mut split = 0;
    for (name, value) in step {
        if name == "index" {
            split = object.member(name).len();
        } else {
            object.value(name, value);
        }
    }
    if !step.contains_key("index") {
        split = object.member("index").len();
    }
    object.end();
    let mut before = printer.finish();
    let behind = before.split_off(split);
    (before, behind)
}

/// One field of the outbox.
pub fn decode_outbox(key: &str, field: &[u8], value: &[u8]) -> Result<OutboxEntry, StoreError> {
    let at = Place {
        key,
        field: Some(field),
    };
    let members = object(value, Surrogates::Replace).map_err(|reason| at.corrupt(reason))?;
    let target_id = match members.get("t") {
        Some(Value::Null) => None,
        Some(Value::String(target)) => Some(target.clone()),
        _ => return Err(at.corrupt("`t` is neither text nor null")),
    };
    let Some(Value::String(event)) = members.get("e") else {
        return Err(at.corrupt("`e` is not text"));
    };
    let event = decode_event(event.as_bytes()).map_err(|reason| at.corrupt(reason))?;
    Ok(OutboxEntry {
        seq: at.seq()?,
        target_id,
        event,
        stored: Stored::new(value),
    })
}

/// One field of the spawns.
pub fn decode_spawn(key: &str, field: &[u8], value: &[u8]) -> Result<SpawnEntry, StoreError> {
    let at = Place {
        key,
        field: Some(field),
    };
    let mut members = object(value, Surrogates::Replace).map_err(|reason| at.corrupt(reason))?;
    let mut text = |name: &str| match members.get_mut(name).map(Value::take) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(at.corrupt(format!("`{name}` is not text"))),
    };
    let (parent_id, child_id, root_path) = (text("p")?, text("c")?, text("r")?);
    let Some(Value::Object(context)) = members.get_mut("x").map(Value::take) else {
        return Err(at.corrupt("`x` is not an object"));
    };
    Ok(SpawnEntry {
        seq: at.seq()?,
        parent_id,
        child_id,
        root_path,
        context,
        stored: Stored::new(value),
    })
}

/// Whom an outbox value is addressed to, the event not looked at; none if it is no such value or has no target.
pub(crate) fn outbox_target(value: &[u8]) -> Option<String> {
    text_member(value, "t")
}

/// Who wants the execution of a spawn value; none if it is no such value.
pub(crate) fn spawn_parent(value: &[u8]) -> Option<String> {
    text_member(value, "p")
}

fn text_member(value: &[u8], name: &str) -> Option<String> {
    let mut members = object(value, Surrogates::Replace).ok()?;
    match members.get_mut(name).map(Value::take) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// One item of a trace list.
pub fn decode_trace_step(key: &str, item: &[u8]) -> Result<Map<String, Value>, StoreError> {
    object(item, Surrogates::Replace).map_err(|reason| Place { key, field: None }.corrupt(reason))
}

/// The version in a row, without the rest of the model.
///
/// # Errors
/// What is wrong with the row, in words.
pub fn decode_version(row: &[u8]) -> Result<Version, String> {
    let members = object(row, Surrogates::Replace)?;
    let version = members.get("version").ok_or("no `version`")?;
    lax_integer(version)
        .map(Version::new)
        .ok_or_else(|| "`version` is not an integer".to_owned())
}

/// Id and path of a timer's member: split at the first NUL.
pub fn decode_timer_member(key: &str, member: &[u8]) -> Result<(String, String), StoreError> {
    let at = Place {
        key,
        field: Some(member),
    };
    let member = std::str::from_utf8(member).map_err(|_| at.corrupt("member is not UTF-8"))?;
    let (id, path) = member.split_once('\0').unwrap_or((member, ""));
    Ok((id.to_owned(), path.to_owned()))
}

pub(crate) fn object(json: &[u8], surrogates: Surrogates) -> Result<Map<String, Value>, String> {
    match parse(json, surrogates) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err("not an object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Where a value was found, for the error.
struct Place<'a> {
    key: &'a str,
    field: Option<&'a [u8]>,
}

impl Place<'_> {
    fn corrupt(&self, reason: impl Into<String>) -> StoreError {
        StoreError::Corrupt {
            key: self.key.to_owned(),
            field: self
                .field
                .map(|field| String::from_utf8_lossy(field).into_owned()),
            reason: reason.into(),
        }
    }

    fn seq(&self) -> Result<Seq, StoreError> {
        let number = self
            .field
            .and_then(|field| std::str::from_utf8(field).ok()?.parse().ok());
        number
            .map(Seq::new)
            .ok_or_else(|| self.corrupt("field is not a decimal number"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Event;

    fn map(value: Value) -> Map<String, Value> {
        let Value::Object(members) = value else {
            panic!("not an object")
        };
        members
    }

    #[test]
    fn an_outbox_value_holds_the_event_as_text() {
        let mut event = Event::new("e1", "K");
        event.data = map(json!({"u": "\u{e9}\u{7f}\u{1f600}\u{0}"}));
        let text = encode_outbox(&Emit {
            target: None,
            event: event.clone(),
        });
        assert_eq!(
            text,
            r#"{"t": null, "e": "{\"id\":\"e1\",\"kind\":\"K\",\"created_time\":null,\"received_time\":null,\"data\":{\"u\":\"\u00e9\u007f\ud83d\ude00\\u0000\"}}"}"#
        );
        let entry = decode_outbox("k", b"7", text.as_bytes()).unwrap();
        assert_eq!(
            (entry.seq, entry.target_id, entry.event),
            (Seq::new(7), None, event)
        );
    }

    #[test]
    fn the_index_of_a_step_is_last_or_in_its_own_place() {
        let index = Value::from(3);
        assert_eq!(
            encode_trace_step(&map(json!({"a": 1.0})), &index),
            r#"{"a": 1.0, "index": 3}"#
        );
        assert_eq!(
            encode_trace_step(&map(json!({"index": 9, "a": []})), &index),
            r#"{"index": 3, "a": []}"#
        );
        assert_eq!(encode_trace_step(&Map::new(), &index), r#"{"index": 3}"#);
        for step in [
            json!({"a": 1.0}),
            json!({"x": "index", "index": 9, "a": []}),
            json!({}),
        ] {
            let (before, behind) = encode_trace_around_index(&map(step.clone()));
            assert_eq!(
                format!("{before}3{behind}"),
                encode_trace_step(&map(step), &index)
            );
        }
    }

    #[test]
    fn spawns_and_steps_with_nan_and_half_a_pair_are_readable() {
        let text = br#"{"p": "a", "c": "b", "r": "", "x": {"n": NaN, "i": [Infinity, -Infinity], "s": "\ud83d!"}}"#;
        let entry = decode_spawn("k", b"1", text).unwrap();
        assert_eq!(
            Value::Object(entry.context),
            json!({"n": null, "i": [null, null], "s": "\u{fffd}!"})
        );
        assert!(decode_trace_step("k", br#"{"n": NaN, "s": "\udc00"}"#).is_ok());
    }

    #[test]
    fn what_is_no_entry_is_named_as_corrupt_with_key_and_field() {
        let cases: [(&[u8], &[u8]); 6] = [
            (
                b"x",
                br#"{"t": null, "e": "{\"id\":\"1\",\"kind\":\"k\"}"}"#,
            ),
            (b"1", b"not json"),
            (b"1", b"[]"),
            (b"1", br#"{"e": "{}"}"#),
            (b"1", br#"{"t": 1, "e": "{}"}"#),
            (b"1", br#"{"t": null, "e": "{}"}"#),
        ];
        for (field, value) in cases {
            let error = decode_outbox("k", field, value).unwrap_err();
            assert!(
                matches!(&error, StoreError::Corrupt { key, field: Some(_), .. } if key == "k"),
                "{error}"
            );
        }
        assert!(decode_spawn("k", b"1", br#"{"p": "a", "c": "b", "r": "", "x": []}"#).is_err());
    }

    #[test]
    fn depth_counts_levels_and_gives_up_above_the_limit() {
        assert_eq!(depth(&json!(1)), 0);
        assert_eq!(depth(&json!([])), 1);
        assert_eq!(depth(&json!([1, {"a": [2]}])), 3);
        assert_eq!(object_depth(&map(json!({"a": [[]], "b": 1}))), 3);
        let deep = (0..300).fold(json!(1), |inner, _| json!([inner]));
        assert!(depth(&deep) > WRITE_DEPTH_MAX);
    }

    #[test]
    fn versions_are_read_laxly() {
        let cases: [(&[u8], Result<i64, ()>); 8] = [
            (br#"{"version":3}"#, Ok(3)),
            (br#"{"version":"3"}"#, Ok(3)),
            (br#"{"version":3.0}"#, Ok(3)),
            (br#"{"version":-1}"#, Ok(-1)),
            (br#"{"version":1,"version":2}"#, Ok(2)),
            (br#"{"version":3.5}"#, Err(())),
            (br#"{"version":null}"#, Err(())),
            (b"{}", Err(())),
        ];
        for (row, expected) in cases {
            assert_eq!(
                decode_version(row).map(Version::get).map_err(|_| ()),
                expected,
                "{}",
                String::from_utf8_lossy(row)
            );
        }
    }

    #[test]
    fn a_member_splits_at_the_first_nul() {
        let split = |member: &[u8]| decode_timer_member("k", member).unwrap();
        assert_eq!(split(b"a\0p\0q"), ("a".to_owned(), "p\0q".to_owned()));
        assert_eq!(split(b"a"), ("a".to_owned(), String::new()));
        assert!(decode_timer_member("k", b"\xff\0p").is_err());
    }
}
