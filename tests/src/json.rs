//! Replies as JSON, to compare what a server says of its commands with what was recorded.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::frame::Frame;

/// Fields of a recorded description whose arrays are sets in RESP3.
const SETS: [&str; 6] = ["acl", "doc_flags", "flags", "history", "key_specs", "tips"];

/// A RESP3 reply as JSON: sets sorted, simple strings without a mark. Panics on a map whose keys are no strings.
pub fn to_json(frame: &Frame) -> Value {
    match frame {
        Frame::Line(line) => {
            let text = String::from_utf8_lossy(line).into_owned();
            match text.split_at(1) {
                (":", number) => json!(number.parse::<i64>().expect("an integer")),
                ("_", _) => Value::Null,
                (_, text) => json!(text),
            }
        }
        Frame::Blob(_, bytes) => json!(String::from_utf8_lossy(bytes)),
        Frame::Items(b'%', items) => {
            let pairs = items.chunks(2).map(|pair| {
                let name = to_json(&pair[0]);
                let name = name.as_str().expect("a map's key is a string").to_owned();
                (name, to_json(&pair[1]))
            });
            let sorted: BTreeMap<String, Value> = pairs.collect();
            Value::Object(sorted.into_iter().collect())
        }
        Frame::Items(kind, items) => {
            let mut items: Vec<Value> = items.iter().map(to_json).collect();
            if *kind == b'~' {
                items.sort_by_key(Value::to_string);
            }
            Value::Array(items)
        }
    }
}

/// A recorded value in the form that [`to_json`] gives: marks of simple strings removed, sets and objects sorted.
pub fn normal(field: &str, value: &Value) -> Value {
    match value {
        Value::String(text) => json!(text.strip_prefix('+').unwrap_or(text)),
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| normal("", item)).collect();
            if SETS.contains(&field) {
                items.sort_by_key(Value::to_string);
            }
            Value::Array(items)
        }
        Value::Object(fields) => {
            let sorted: BTreeMap<String, Value> = fields
                .iter()
                .map(|(name, value)| (name.clone(), normal(name, value)))
                .collect();
            Value::Object(sorted.into_iter().collect())
        }
        value => value.clone(),
    }
}
