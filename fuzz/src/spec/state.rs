//! [`State`]: what the store's keys hold, read with plain commands and without the store's own code.

use std::collections::{BTreeMap, BTreeSet};

use redis::{RedisError, RedisResult, Value, from_redis_value};
use serde_json::Value as Json;
use store::keys::Keys;
use store::op::reply::{bytes, double, items, pairs};

/// What reads: runs a command.
pub type Reader<'r> = dyn FnMut(&[&str]) -> RedisResult<Value> + 'r;

/// An execution's row as far as the specification looks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The version.
    pub version: i64,
    /// The tags of the commits that it is built on, oldest first.
    pub log: Vec<String>,
}

/// An entry of the outbox.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Who is to handle it.
    pub target: Option<String>,
    /// The event's id.
    pub event: String,
}

/// A step of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceStep {
    /// Its number.
    pub index: i64,
    /// What wrote it.
    pub tag: String,
}

/// Everything under the store's prefix.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// By execution.
    pub rows: BTreeMap<String, Row>,
    /// By position.
    pub outbox: BTreeMap<i64, Entry>,
    /// Ids of the executions to start, by position.
    pub spawns: BTreeMap<i64, String>,
    /// Event ids by execution.
    pub processed: BTreeMap<String, BTreeSet<String>>,
    /// Times by execution and path.
    pub timers: BTreeMap<(String, String), f64>,
    /// By execution.
    pub traces: BTreeMap<String, Vec<TraceStep>>,
}

impl State {
    /// Reads it, for these executions.
    ///
    /// # Errors
    /// If the server cannot be reached, or answers with something that no store wrote.
    pub fn read<'e>(
        keys: &Keys,
        executions: impl IntoIterator<Item = &'e String>,
        call: &mut Reader<'_>,
    ) -> RedisResult<State> {
        let mut state = State::default();
        for id in executions {
            if let Some(row) = bytes(call(&["GET", &keys.execution(id)])?) {
                state.rows.insert(id.clone(), row_of(&row)?);
            }
            let processed = call(&["SMEMBERS", &keys.processed(id)])?;
            state
                .processed
                .insert(id.clone(), from_redis_value(processed)?);
            let steps = items(call(&["LRANGE", &keys.trace(id), "0", "-1"])?).unwrap_or_default();
            let steps: RedisResult<Vec<TraceStep>> = steps.into_iter().map(step_of).collect();
            state.traces.insert(id.clone(), steps?);
        }
        for (seq, entry) in numbered(call(&["HGETALL", &keys.outbox()])?)? {
            let event = text(&entry, "e").and_then(|event| parse(event.as_bytes()).ok());
            let event = event.as_ref().and_then(|event| text(event, "id"));
            let event = event.ok_or_else(|| malformed("outbox"))?.to_owned();
            let target = text(&entry, "t").map(str::to_owned);
            state.outbox.insert(seq, Entry { target, event });
        }
        for (seq, entry) in numbered(call(&["HGETALL", &keys.spawns()])?)? {
            let child = text(&entry, "c").ok_or_else(|| malformed("spawns"))?;
            state.spawns.insert(seq, child.to_owned());
        }
        let timers = call(&["ZRANGE", &keys.timers(), "0", "-1", "WITHSCORES"])?;
        for (member, score) in pairs(timers).unwrap_or_default() {
            let member: String = from_redis_value(member)?;
            let (id, path) = member.split_once('\0').ok_or_else(|| malformed("timers"))?;
            let time = double(&score).ok_or_else(|| malformed("timers"))?;
            state.timers.insert((id.to_owned(), path.to_owned()), time);
        }
        Ok(state)
    }

    /// The version of an execution; 0 if there is no row.
    pub fn version(&self, execution: &str) -> i64 {
        self.rows.get(execution).map_or(0, |row| row.version)
    }

    /// Whether the row is built on the commit with this tag.
    pub fn is_logged(&self, execution: &str, tag: &str) -> bool {
        let row = self.rows.get(execution);
        row.is_some_and(|row| row.log.iter().any(|logged| logged == tag))
    }

    /// Whether the execution has handled this event.
    pub fn is_processed(&self, execution: &str, event: &str) -> bool {
        let processed = self.processed.get(execution);
        processed.is_some_and(|processed| processed.contains(event))
    }

    /// The steps of an execution's trace.
    pub fn trace(&self, execution: &str) -> &[TraceStep] {
        self.traces.get(execution).map_or(&[], Vec::as_slice)
    }
}

fn row_of(row: &[u8]) -> RedisResult<Row> {
    let row = parse(row)?;
    let version = row.get("version").and_then(Json::as_i64);
    let log = row.pointer("/context/log").and_then(Json::as_array);
    let tags = log.into_iter().flatten().filter_map(Json::as_str);
    Ok(Row {
        version: version.ok_or_else(|| malformed("row"))?,
        log: tags.map(str::to_owned).collect(),
    })
}

fn step_of(step: Value) -> RedisResult<TraceStep> {
    let step = parse(&bytes(step).ok_or_else(|| malformed("trace"))?)?;
    let index = step.get("index").and_then(Json::as_i64);
    Ok(TraceStep {
        index: index.ok_or_else(|| malformed("trace"))?,
        tag: text(&step, "tag").unwrap_or_default().to_owned(),
    })
}

fn numbered(hash: Value) -> RedisResult<Vec<(i64, Json)>> {
    let entry = |(field, value): (Value, Value)| {
        let value = bytes(value).ok_or_else(|| malformed("entry"))?;
        Ok((from_redis_value(field)?, parse(&value)?))
    };
    pairs(hash)
        .unwrap_or_default()
        .into_iter()
        .map(entry)
        .collect()
}

fn text<'j>(object: &'j Json, member: &str) -> Option<&'j str> {
    object.get(member).and_then(Json::as_str)
}

fn parse(json: &[u8]) -> RedisResult<Json> {
    serde_json::from_slice(json).map_err(|_| malformed("value"))
}

fn malformed(what: &'static str) -> RedisError {
    (
        redis::ErrorKind::UnexpectedReturnType,
        "malformed",
        what.to_owned(),
    )
        .into()
}
