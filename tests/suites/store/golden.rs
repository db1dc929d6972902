//! Plays the calls that the Python store was given and compares what it left, byte for byte.

use std::{fs, path::Path};

use serde_json::{Map, Value, json};
use store::{
    Commit, CommitPath, Dialect, Emit, Event, Execution, ListFilter, Rejection, Seq, Settings,
    SpawnIntent, Status, StoreError, Strictness, TimerOp, Version, codec,
};

use crate::{
    backend::{Backend, PROTOCOLS, Protocol, on_each},
    commits::PATHS,
    keyspace,
    meddling::Plan,
    twin::{SIDES, Twin, with_each},
};

/// Scenarios in which the Python store takes ids that ours refuses.
const LENIENT: [&str; 2] = ["08_unicode_nul", "13_empty_event_id"];

/// Scenarios whose conflicts burn numbers. The script draws none before it has compared the version.
const BURNED: [&str; 1] = ["09_conflicts"];

#[test]
fn the_seeds_calls_leave_the_seeds_key_space() {
    replay_folder("seed", 14);
}

#[test]
fn the_newer_dialects_calls_leave_its_key_space() {
    replay_folder("v0.9.0", 15);
}

#[test]
fn strictly_a_nul_in_an_id_is_refused_and_nothing_is_written() {
    refused("08_unicode_nul", "execution id", Rejection::Nul);
}

#[test]
fn strictly_an_empty_event_id_is_refused_and_nothing_is_written() {
    refused("13_empty_event_id", "processed event id", Rejection::Empty);
}

/// The commits of a scenario on a strict store.
fn refused(name: &str, what: &str, reason: Rejection) {
    let scenario = read("seed", name);
    with_each(|backend, side| {
        let mut store = side.store(backend);
        let commits = scenario["steps"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|step| step["op"] == "commit");
        let mut refusals = 0;
        for step in commits {
            let mut exe = execution(&step["exe"]);
            let version = exe.version;
            let error = store.commit(&mut exe, &commit(&step["args"])).unwrap_err();
            assert!(
                matches!(error, StoreError::Invalid { what: w, reason: r } if w == what && r == reason),
                "{error}"
            );
            assert_eq!(exe.version, version);
            refusals += 1;
        }
        assert!(refusals > 0);
        assert_eq!(
            keyspace::read(&mut backend.connect(Protocol::Resp2)),
            keyspace::Keyspace::new()
        );
    });
}

fn replay_folder(folder: &str, count: usize) {
    let names = scenarios(folder);
    let names: Vec<_> = names.iter().take(count).collect();
    assert_eq!(names.len(), count);
    for name in names {
        let scenario = read(folder, name);
        let strictness = if LENIENT.contains(&name.as_str()) {
            Strictness::Lenient
        } else {
            Strictness::Strict
        };
        let dialect = match folder {
            "seed" => Dialect::Seed,
            _ => Dialect::V09,
        };
        let settings = Settings::in_dialect(dialect, scenario["prefix"].as_str().unwrap()).unwrap();
        let settings = settings
            .strictness(strictness)
            .trace_max(scenario["trace_max"].as_i64().unwrap());
        let paths = PATHS.into_iter();
        for path in
            paths.filter(|path| *path != CommitPath::Script || !BURNED.contains(&name.as_str()))
        {
            let settings = settings.clone().commit_path(path);
            for (protocol, side) in PROTOCOLS.into_iter().zip(SIDES) {
                on_each(|backend| {
                    replay(
                        &format!("{folder}/{name} {side:?} {protocol:?} {path:?}"),
                        &scenario,
                        backend,
                        || side.store_on(backend, protocol, settings.clone(), Plan::none()),
                    );
                });
            }
        }
    }
}

fn replay(name: &str, scenario: &Value, backend: &Backend, store: impl Fn() -> Twin) {
    let mut store = store();
    for (index, step) in scenario["steps"].as_array().unwrap().iter().enumerate() {
        play(
            &format!("{name} on {}, step {index}", backend.name),
            step,
            &mut store,
        );
    }
    store.close();
    let left = keyspace::read(&mut backend.connect(Protocol::Resp2));
    let expected = keyspace::from_golden(&scenario["keyspace"]);
    for (key, held) in &expected {
        assert_eq!(
            left.get(key),
            Some(held),
            "{name} on {}: {key:?}",
            backend.name
        );
    }
    assert_eq!(
        left.len(),
        expected.len(),
        "{name} on {}: {:?}",
        backend.name,
        left.keys()
    );
}

fn play(at: &str, step: &Value, store: &mut Twin) {
    match step["op"].as_str().unwrap() {
        "save" | "commit" => play_commit(at, step, store),
        "load" | "load_for_event" | "is_processed" => play_read(at, step, store),
        "pending_outbox" => play_outbox(at, step, store),
        "pending_spawns" => play_spawns(at, step, store),
        "ack_outbox" => drop(store.ack_outbox(seq(&step["seq"])).unwrap()),
        "ack_spawn" => drop(store.ack_spawn(seq(&step["seq"])).unwrap()),
        "due_timers" | "delete_timer" => play_timers(at, step, store),
        "set_trace_max" => store.set_trace_max(step["n"].as_i64().unwrap()),
        "append_trace" => store
            .append_trace(&owned(&step["id"]), &object(&step["entry"]))
            .unwrap(),
        "read_trace" => {
            let steps = store.read_trace(&owned(&step["id"])).unwrap().into_iter();
            let steps = Value::from(steps.map(Value::Object).collect::<Vec<_>>());
            assert_eq!(spelled(&steps), spelled(&step["expect"]["steps"]), "{at}");
        }
        "list_all_pages" => play_listing(at, step, store),
        "purge" => {
            let expected = Version::new(step["expected_version"].as_i64().unwrap());
            let purged = store.purge(&owned(&step["id"]), expected).unwrap();
            assert_eq!(Value::from(purged), step["expect"]["result"], "{at}");
        }
        "ids_with_prefix" => {
            let ids = store.ids_with_prefix(&owned(&step["prefix"])).unwrap();
            assert_eq!(Value::from(ids), step["expect"]["ids_sorted"], "{at}");
        }
        other => panic!("{at}: unknown call {other}"),
    }
}

fn play_read(at: &str, step: &Value, store: &mut Twin) {
    let expect = &step["expect"];
    let (id, event_id) = (
        owned(&step["id"]),
        step["event_id"].as_str().unwrap_or_default(),
    );
    match step["op"].as_str().unwrap() {
        "load" => {
            let expected = &expect["execution"];
            let expected = (!expected.is_null()).then(|| execution(expected));
            // As text: `1e-07` and `1e-7` are one number, spelled for two readers.
            let text = |execution: Execution| {
                codec::encode_execution_in(Dialect::V09, &execution, execution.version)
            };
            assert_eq!(
                store.load(&id).unwrap().map(text),
                expected.map(text),
                "{at}"
            );
        }
        "load_for_event" => {
            let loaded = store.load_for_event(&id, event_id).unwrap();
            let version = loaded
                .as_ref()
                .map(|(execution, _)| execution.version.get());
            assert_eq!(version, expect["execution_version"].as_i64(), "{at}");
            let processed = loaded.is_some_and(|(_, processed)| processed);
            assert_eq!(Value::from(processed), expect["processed"], "{at}");
        }
        _ => {
            let processed = store.is_processed(&id, event_id).unwrap();
            assert_eq!(Value::from(processed), expect["result"], "{at}");
        }
    }
}

fn play_outbox(at: &str, step: &Value, store: &mut Twin) {
    let entries = store.pending_outbox().unwrap();
    let expected = step["expect"]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), expected.len(), "{at}");
    for (entry, expected) in entries.iter().zip(expected) {
        assert_eq!(entry.seq, seq(&expected["seq"]), "{at}");
        assert_eq!(
            entry.target_id.as_deref(),
            expected["target_id"].as_str(),
            "{at}"
        );
        let expected = event(&expected["event"]);
        assert_eq!(
            codec::encode_event(&entry.event),
            codec::encode_event(&expected),
            "{at}"
        );
    }
}

fn play_spawns(at: &str, step: &Value, store: &mut Twin) {
    let entries = store.pending_spawns().unwrap().into_iter();
    let found = entries.map(|entry| {
        json!({
            "seq": entry.seq.get(),
            "parent_id": entry.parent_id,
            "child_id": entry.child_id,
            "root_path": entry.root_path,
            "context": entry.context,
        })
    });
    assert_eq!(
        Value::from(found.collect::<Vec<_>>()),
        step["expect"]["entries"],
        "{at}"
    );
}

fn play_timers(at: &str, step: &Value, store: &mut Twin) {
    if step["op"] == "delete_timer" {
        let fire_at_s = step["fire_at"].as_f64().unwrap();
        store
            .delete_timer(&owned(&step["id"]), &owned(&step["path"]), fire_at_s)
            .unwrap();
        return;
    }
    let due = store
        .due_timers(step["now"].as_f64().unwrap())
        .unwrap()
        .into_iter();
    let due: Vec<_> = due
        .map(|timer| (timer.execution_id, timer.path, timer.fire_at_s))
        .collect();
    let expected = step["expect"]["due"].as_array().unwrap().iter();
    let expected = expected.map(|timer| {
        (
            owned(&timer[0]),
            owned(&timer[1]),
            timer[2].as_f64().unwrap(),
        )
    });
    assert_eq!(due, expected.collect::<Vec<_>>(), "{at}");
}

fn play_commit(at: &str, step: &Value, store: &mut Twin) {
    let mut exe = execution(&step["exe"]);
    let expect = &step["expect"];
    let result = if step["op"] == "save" {
        store.save(&mut exe)
    } else {
        store.commit(&mut exe, &commit(&step["args"]))
    };
    match result {
        Ok(committed) => {
            assert_eq!(expect["ok"], true, "{at}");
            assert_eq!(committed.version, exe.version, "{at}");
            if let Some(seqs) = expect["returned_seqs"].as_array() {
                let seqs: Vec<_> = seqs
                    .iter()
                    .map(|seq| Seq::new(seq.as_i64().unwrap()))
                    .collect();
                assert_eq!(committed.outbox, seqs, "{at}");
            }
        }
        Err(error) => {
            let conflict = &expect["conflict"];
            assert_eq!(Value::from(error.to_string()), conflict["message"], "{at}");
            let StoreError::Conflict {
                id,
                expected,
                found,
            } = error
            else {
                panic!("{at}: {error}")
            };
            assert_eq!(Value::from(id), conflict["execution_id"], "{at}");
            assert_eq!(Value::from(expected.get()), conflict["expected"], "{at}");
            assert_eq!(
                found.map_or(Value::Null, |found| found.get().into()),
                conflict["found"],
                "{at}"
            );
        }
    }
    assert_eq!(
        Value::from(exe.version.get()),
        expect["version_after"],
        "{at}"
    );
}

fn play_listing(at: &str, step: &Value, store: &mut Twin) {
    let filters = &step["filters"];
    let status = |name: &Value| Status::from_name(name.as_str().unwrap()).unwrap();
    let filter = ListFilter {
        status: filters["status"]
            .as_array()
            .map(|names| names.iter().map(status).collect()),
        definition_id: filters["definition_id"].as_str().map(str::to_owned),
        roots_only: filters["roots_only"].as_bool().unwrap_or_default(),
    };
    let limit = u32::try_from(step["limit"].as_u64().unwrap()).unwrap();
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = store.list_executions(&filter, limit, cursor).unwrap();
        assert!(page.unreadable.is_empty(), "{at}: {:?}", page.unreadable);
        found.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    found.sort_by(|left, right| left.id.cmp(&right.id));
    let expected = step["expect"]["summaries_sorted_by_id"].as_array().unwrap();
    assert_eq!(found.len(), expected.len(), "{at}");
    for (summary, expected) in found.iter().zip(expected) {
        let row = serde_json::to_vec(expected).unwrap();
        assert_eq!(*summary, codec::decode_summary(&row).unwrap(), "{at}");
    }
}

fn commit(args: &Value) -> Commit {
    let each = |name: &str| args[name].as_array().into_iter().flatten();
    let mut commit = Commit::new();
    commit.processed_event_id = args["processed_event_id"].as_str().map(str::to_owned);
    commit.emits = each("emits")
        .map(|emit| Emit {
            target: emit["target"].as_str().map(str::to_owned),
            event: event(&emit["event"]),
        })
        .collect();
    commit.timers = each("timers").map(timer).collect();
    commit.spawns = each("spawns").map(spawn).collect();
    commit.trace = args["trace"].as_object().cloned();
    commit
}

fn timer(timer: &Value) -> TimerOp {
    let path = owned(&timer["path"]);
    if timer["action"] == "schedule" {
        return TimerOp::schedule(path, timer["fire_at"].as_f64().unwrap_or_default());
    }
    TimerOp::cancel(path)
}

fn spawn(spawn: &Value) -> SpawnIntent {
    SpawnIntent {
        context: object(&spawn["context"]),
        ..SpawnIntent::new(owned(&spawn["child_id"]), owned(&spawn["root_path"]))
    }
}

fn execution(json: &Value) -> Execution {
    codec::decode_execution(&serde_json::to_vec(json).unwrap()).unwrap()
}

fn event(json: &Value) -> Event {
    codec::decode_event(&serde_json::to_vec(json).unwrap()).unwrap()
}

fn seq(number: &Value) -> Seq {
    Seq::new(number.as_i64().unwrap())
}

fn owned(text: &Value) -> String {
    text.as_str().unwrap().to_owned()
}

fn object(json: &Value) -> Map<String, Value> {
    json.as_object().unwrap().clone()
}

/// The same numbers in the same spelling.
fn spelled(value: &Value) -> String {
    codec::print(value, codec::Spelling::Spaced)
}

fn scenarios(folder: &str) -> Vec<String> {
    let files = fs::read_dir(golden(folder))
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut names: Vec<_> = files
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

fn read(folder: &str, name: &str) -> Value {
    let text = fs::read_to_string(golden(folder).join(format!("{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn golden(folder: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(folder)
}
