//! Commits that can be counted afterwards: the one that makes version `n` of an execution brings what names `n`.

use std::collections::{BTreeMap, BTreeSet};

use redis::{Connection, cmd};
use serde_json::{Value, json};
use store::{Commit, Event, Execution, RedisStore, Settings, SpawnIntent, TimerOp, sync};

/// Every third commit changes nothing but the row.
fn has_effects(number: i64) -> bool {
    number % 3 != 0
}

/// The next commit of an execution.
pub(crate) fn next(execution: &mut Execution) -> Commit {
    let number = execution.version.get() + 1;
    execution.context.insert("n".to_owned(), number.into());
    let name = format!("{}-{number}", execution.id);
    let commit = Commit::for_event(&name);
    if !has_effects(number) {
        return commit;
    }
    let step = json!({ "n": number });
    commit
        .emit(Some("sink"), Event::new(format!("{name}-a"), "K"))
        .emit(None, Event::new(format!("{name}-b"), "K"))
        .timer(TimerOp::schedule(format!("P{number}"), number as f64))
        .spawn(SpawnIntent::new(format!("{name}-c"), "R"))
        .trace(step.as_object().unwrap().clone())
}

/// Settings of a store whose trace keeps everything.
pub(crate) fn settings(prefix: &str) -> Settings {
    Settings::new(prefix).unwrap().trace_max(0)
}

/// What the key space holds of some executions.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The versions of the rows; 0 without one.
    pub(crate) versions: BTreeMap<String, i64>,
    /// Ids of emitted events by position.
    pub(crate) outbox: BTreeMap<i64, String>,
}

/// Reads a key space; panics if any commit is there in part.
pub(crate) fn audit(url: &str, prefix: &str, ids: &[&str]) -> Ledger {
    let client = redis::Client::open(url).unwrap();
    let mut raw = client.get_connection().unwrap();
    let connections = sync::Reopening::new(client);
    let mut store = RedisStore::with_connections(connections, settings(prefix));

    let mut ledger = Ledger::default();
    let (mut emitted, mut spawned, mut armed) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for &id in ids {
        let version = whole_alone(&mut store, &mut raw, prefix, id);
        for number in (1..=version).filter(|number| has_effects(*number)) {
            emitted.insert(format!("{id}-{number}-a"));
            emitted.insert(format!("{id}-{number}-b"));
            spawned.insert(format!("{id}-{number}-c"));
            armed.insert(format!("{id}/P{number}/{number}"));
        }
        ledger.versions.insert(id.to_owned(), version);
    }
    let outbox = store.pending_outbox().unwrap();
    let outbox = outbox
        .into_iter()
        .map(|entry| (entry.seq.get(), entry.event.id));
    ledger.outbox = outbox.collect();
    let spawns: BTreeMap<i64, String> = store
        .pending_spawns()
        .unwrap()
        .into_iter()
        .map(|entry| (entry.seq.get(), entry.child_id))
        .collect();
    for (name, entries, expected) in [
        ("outbox", &ledger.outbox, emitted),
        ("spawns", &spawns, spawned),
    ] {
        let found: BTreeSet<String> = entries.values().cloned().collect();
        same(name, &found, &expected);
        assert_eq!(entries.len(), found.len(), "{name}: something is doubled");
        let counter: Option<i64> = cmd("GET")
            .arg(format!("{prefix}:{name}:seq"))
            .query(&mut raw)
            .unwrap();
        let last = entries.last_key_value().map_or(0, |(seq, _)| *seq);
        assert!(
            counter.unwrap_or(0) >= last,
            "{name}: the counter is behind"
        );
    }
    let timers = store.due_timers(f64::MAX).unwrap();
    let timers: BTreeSet<String> = timers
        .into_iter()
        .map(|timer| format!("{}/{}/{}", timer.execution_id, timer.path, timer.fire_at_s))
        .collect();
    same("timers", &timers, &armed);
    ledger
}

fn same(name: &str, found: &BTreeSet<String>, expected: &BTreeSet<String>) {
    let missing: Vec<&String> = expected.difference(found).collect();
    let stray: Vec<&String> = found.difference(expected).collect();
    assert!(
        missing.is_empty() && stray.is_empty(),
        "{name}: missing {missing:?}, stray {stray:?}"
    );
}

/// Checks the keys that belong to one execution alone; the version of its row.
fn whole_alone(
    store: &mut RedisStore<sync::Reopening>,
    raw: &mut Connection,
    prefix: &str,
    id: &str,
) -> i64 {
    let row = store.load(id).unwrap();
    let version = row.as_ref().map_or(0, |execution| execution.version.get());
    if let Some(row) = row {
        assert_eq!(row.context["n"], version, "{id}");
    }
    let marks: BTreeSet<String> = cmd("SMEMBERS")
        .arg(format!("{prefix}:processed:{id}"))
        .query(raw)
        .unwrap();
    let expected = (1..=version).map(|number| format!("{id}-{number}"));
    same("processed", &marks, &expected.collect());
    let trace = store.read_trace(id).unwrap();
    let steps: Vec<&Value> = trace.iter().map(|step| &step["n"]).collect();
    let expected: Vec<i64> = (1..=version)
        .filter(|number| has_effects(*number))
        .collect();
    assert_eq!(json!(steps), json!(expected), "{id}: trace");
    let rising = trace
        .windows(2)
        .all(|pair| pair[0]["index"].as_u64() < pair[1]["index"].as_u64());
    assert!(rising, "{id}: trace indices");
    version
}
