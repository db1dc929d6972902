//! Rows and what comes with them, written by one side and read by the other.

use std::thread;

use serde_json::{Value, json};
use store::sync::Reopening;
use store::{
    Commit, CommitPath, Dialect, Execution, RedisStore, Seq, Settings, SpawnIntent, StoreError,
    TimerOp, Version, codec,
};
use tests::peer::{Flavour, Peer};

use crate::{Table, each, event};

/// Both dialects beside a peer of the newer one; the older has the prefix `stm`, which the newer takes too.
const DIALECTS: [(Dialect, &str); 3] = [
    (Dialect::Seed, "stm"),
    (Dialect::V09, "stm"),
    (Dialect::V09, "harel"),
];

fn store_of(
    table: &Table,
    (dialect, prefix): (Dialect, &str),
    path: CommitPath,
) -> RedisStore<Reopening> {
    redis::cmd("FLUSHDB").exec(&mut table.raw()).unwrap();
    let settings = Settings::in_dialect(dialect, prefix).unwrap();
    table.store().settings(settings.commit_path(path))
}

/// A store of the older dialect that commits by this path.
fn store_by(table: &Table, path: CommitPath) -> RedisStore<Reopening> {
    table
        .store()
        .settings(Settings::default().commit_path(path))
}

fn peer_of(table: &Table, prefix: &str) -> Peer {
    Peer::start(&table.python, &table.url, prefix, table.flavour)
}

fn loaded(peer: &mut Peer, id: &str) -> Value {
    let args = json!({ "execution_id": id });
    peer.call("store.load", &args).unwrap()
}

fn row(table: &Table, prefix: &str, id: &str) -> String {
    redis::cmd("GET")
        .arg(format!("{prefix}:exe:{id}"))
        .query(&mut table.raw())
        .unwrap()
}

/// An execution of Python's with something in every field, and values that are spelled in more than one way elsewhere.
fn full() -> Value {
    json!({
        "id": "a/b \u{e4}\u{1f600}\u{2028}",
        "definition_id": "d\"\\\u{7f}",
        "definition_fqn": "pkg.mod:d",
        "root_path": "R",
        "status": "SUSPENDED",
        "outcome": "half\nway",
        "error": "E: \t",
        "active_path": "R.A",
        "history": { "R": "R.A", "z": "1", "a": "2" },
        "context": {
            "float": 1.0, "tiny": 1e-7, "large": 1e16, "minus": -0.0,
            "whole": 123_456_789_012_345_678_i64, "deep": { "list": [1, [2.5, null], { "k": true }] },
            "text": "\u{1}/<>&\u{e9}\u{10ffff}",
        },
        "processed_events": 7,
        "priority": 3,
        "parent_id": "p",
        "child_id": "c",
        "deferred": [{
            "id": "late", "kind": "K", "created_time": "2026-01-02T03:04:05.000600Z",
            "received_time": "2026-01-02T03:04:05+05:30", "data": { "n": 1.5 },
        }],
        "children": { "k": { "root_path": "R.B", "finished": true, "outcome": "ok", "result": { "v": 0.1 }, "key": "k" } },
        "invoke_seq": { "R.C": 4 },
        "created_at": 1_700_000_000.25,
        "updated_at": 1_700_000_001.0,
        "finished_at": null,
        "expires_at": 1e16,
    })
}

#[test]
fn a_row_of_either_side_is_written_again_by_the_other_with_the_same_bytes() {
    each(|table| {
        for (dialect, prefix) in DIALECTS {
            let (mut peer, mut store) = (
                peer_of(table, prefix),
                store_of(table, (dialect, prefix), CommitPath::Script),
            );
            let mut exe = full();
            let id = exe["id"].as_str().unwrap().to_owned();
            for version in 0..3 {
                exe["version"] = json!(2 * version);
                let committed = peer.call("store.commit", &json!({ "exe": exe, "emits": [] }));
                assert_eq!(committed.unwrap()["version"], 2 * version + 1);
                let before = row(table, prefix, &id);
                let mut ours = store.load(&id).unwrap().unwrap();
                assert_eq!(ours.priority, 3);
                store.save(&mut ours).unwrap();
                let bumped = |version: u64| format!("\"version\":{version}");
                let expected = before.replace(&bumped(2 * version + 1), &bumped(2 * version + 2));
                assert_eq!(row(table, prefix, &id), expected);
                exe = loaded(&mut peer, &id);
            }
        }
    });
}

/// A value whose floats are spelled in one way: the driver's answers are spelled by Python.
fn valued(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(valued).collect(),
        Value::Object(members) => {
            let members = members.iter();
            Value::Object(members.map(|(k, v)| (k.clone(), valued(v))).collect())
        }
        Value::Number(number) if number.as_i64().is_none() => json!(number.as_f64()),
        other => other.clone(),
    }
}

#[test]
fn what_python_makes_of_a_row_of_ours_is_what_we_wrote() {
    each(|table| {
        for (dialect, prefix) in DIALECTS {
            let (mut peer, mut store) = (
                peer_of(table, prefix),
                store_of(table, (dialect, prefix), CommitPath::Script),
            );
            let mut text = full();
            if dialect == Dialect::Seed {
                for member in ["created_at", "updated_at", "finished_at", "expires_at"] {
                    text.as_object_mut().unwrap().remove(member);
                }
            }
            let mut ours = codec::decode_execution(text.to_string().as_bytes()).unwrap();
            store.save(&mut ours).unwrap();
            let theirs = loaded(&mut peer, &ours.id);
            let written: Value = serde_json::from_str(&row(table, prefix, &ours.id)).unwrap();
            for (member, value) in written.as_object().unwrap() {
                assert_eq!(valued(&theirs[member]), valued(value), "{member}");
            }
            let expires_at = &theirs["expires_at"];
            assert_eq!(expires_at.is_null(), dialect == Dialect::Seed);
        }
    });
}

/// What both sides commit in a round, told apart by a letter.
fn id_of(side: &str, round: u64) -> String {
    format!("{side}{round}")
}

fn our_commit(round: u64) -> Commit {
    let id = id_of("r", round);
    let step = json!({ "by": "rust", "round": round, "text": "\u{e4}\u{1f600}" });
    let mut spawn = SpawnIntent::new(format!("{id}-child"), "R");
    spawn
        .context
        .insert("round".to_owned(), json!(round as f64 + 0.5));
    Commit::for_event(&id)
        .emit(Some("y"), event(&format!("{id}-a")))
        .emit(None, event(&format!("{id}-b")))
        .timer(TimerOp::schedule(format!("P{round}"), round as f64 + 0.25))
        .timer(TimerOp::cancel(format!("Q{round}")))
        .spawn(spawn)
        .trace(step.as_object().unwrap().clone())
}

fn their_commit(exe: &Value, round: u64) -> Value {
    let id = id_of("p", round);
    json!({
        "exe": exe,
        "emits": [["y", { "id": format!("{id}-a"), "kind": "K" }]],
        "processed_event_id": id,
        "timers": [{ "action": "schedule", "path": format!("Q{}", round + 1), "fire_at": 0.5 }],
        "spawns": [[format!("{id}-child"), "R", { "round": round, "text": "\u{e4}\u{1f600}" }]],
        "trace": { "by": "python", "round": round },
    })
}

const ROUNDS: u64 = 100;

/// Whether Python knows the event, by whatever its twin has for that.
fn is_known_to(peer: &mut Peer, flavour: Flavour, id: &str, event_id: &str) -> (Value, bool) {
    let args = json!({ "execution_id": id, "event_id": event_id });
    if flavour == Flavour::Async {
        let answer = peer.call("store.load_for_event", &args).unwrap();
        return (answer[0].clone(), answer[1] == true);
    }
    let known = peer.call("store.is_processed", &args).unwrap();
    (loaded(peer, id), known == true)
}

#[test]
fn hundreds_of_commits_alternate_and_nothing_of_either_side_is_lost() {
    each(|table| {
        for ((dialect, prefix), path) in
            DIALECTS
                .into_iter()
                .zip([CommitPath::Script, CommitPath::Watch, CommitPath::Script])
        {
            let mut peer = peer_of(table, prefix);
            let mut store = store_of(table, (dialect, prefix), path);
            store.save(&mut Execution::new("x", "d")).unwrap();
            for round in 0..ROUNDS {
                let theirs = id_of("p", round.wrapping_sub(1));
                let read = store.load_for_event("x", &theirs).unwrap();
                let (mut ours, known) = read.unwrap();
                assert_eq!(known, round > 0);
                ours.context.insert("last".to_owned(), round.into());
                let committed = store.commit(&mut ours, &our_commit(round)).unwrap();
                // Three positions a round, two of them ours; nothing was drawn in vain.
                let first = 3 * round as i64 + 1;
                assert_eq!(committed.outbox, [Seq::new(first), Seq::new(first + 1)]);

                let ours = id_of("r", round);
                let (exe, known) = is_known_to(&mut peer, table.flavour, "x", &ours);
                assert!(known);
                assert_eq!(exe["context"]["last"], round);
                let answer = peer
                    .call("store.commit", &their_commit(&exe, round))
                    .unwrap();
                assert_eq!(answer["version"], 2 * round + 3);
                assert_eq!(answer["result"], json!([first + 2]));
            }
            everything_is_there(&mut peer, &mut store);
        }
    });
}

/// After all rounds: each side sees the same, and that is everything.
fn everything_is_there(peer: &mut Peer, store: &mut RedisStore<Reopening>) {
    let nothing = json!({});
    let outbox = store.pending_outbox().unwrap();
    let ids: Vec<&str> = outbox.iter().map(|entry| entry.event.id.as_str()).collect();
    let expected: Vec<String> = (0..ROUNDS)
        .flat_map(|round| {
            [
                format!("r{round}-a"),
                format!("r{round}-b"),
                format!("p{round}-a"),
            ]
        })
        .collect();
    assert_eq!(ids, expected);
    let told = peer.call("store.pending_outbox", &nothing).unwrap();
    for (entry, told) in outbox.iter().zip(told.as_array().unwrap()) {
        assert_eq!(
            (&told["seq"], &told["event"]["id"], &told["target_id"]),
            (
                &json!(entry.seq.get()),
                &json!(entry.event.id),
                &json!(entry.target_id)
            )
        );
    }
    let spawns = store.pending_spawns().unwrap();
    assert_eq!(spawns.len() as u64, 2 * ROUNDS);
    let told = peer.call("store.pending_spawns", &nothing).unwrap();
    for (spawn, told) in spawns.iter().zip(told.as_array().unwrap()) {
        assert_eq!(told["child_id"], json!(spawn.child_id));
        assert_eq!(told["context"], json!(spawn.context));
    }
    let timers = store.due_timers(1000.0).unwrap();
    let told = peer
        .call("store.due_timers", &json!({ "now": 1000.0 }))
        .unwrap();
    let read: Vec<Value> = timers
        .iter()
        .map(|timer| json!([timer.execution_id, timer.path, timer.fire_at_s]))
        .collect();
    assert_eq!(told, json!(read));
    // Each of theirs was taken back by the next of ours, but the last.
    assert_eq!(timers.len() as u64, ROUNDS + 1);
    let trace = store.read_trace("x").unwrap();
    let indices: Vec<&Value> = trace.iter().map(|step| &step["index"]).collect();
    assert_eq!(json!(indices), json!((0..2 * ROUNDS).collect::<Vec<_>>()));
    let told = peer
        .call("store.read_trace", &json!({ "execution_id": "x" }))
        .unwrap();
    assert_eq!(told, json!(trace));
    for round in 0..ROUNDS {
        for side in ["r", "p"] {
            assert!(store.is_processed("x", &id_of(side, round)).unwrap());
        }
    }
    assert_eq!(
        store.load("x").unwrap().unwrap().version,
        Version::new(2 * ROUNDS as i64 + 1)
    );
}

#[test]
fn a_stale_commit_of_either_side_changes_nothing_and_names_the_version_found() {
    each(|table| {
        let mut peer = table.peer();
        let mut store = table.store();
        let mut current = Execution::new("x", "d");
        let mut stale = current.clone();
        store.save(&mut current).unwrap();
        stale.version = current.version;
        store.save(&mut current).unwrap();
        let before = row(table, "stm", "x");
        let their_stale =
            json!({ "id": "x", "definition_id": "d", "version": 1, "context": { "lost": true } });
        for (is_complex, found) in [(false, json!(2)), (true, json!(2))] {
            let mut args = their_commit(&their_stale, 0);
            if !is_complex {
                args = json!({ "exe": their_stale, "emits": [] });
            }
            let error = peer.call("store.commit", &args).unwrap_err();
            assert_eq!(
                (&error["type"], &error["expected"], &error["found"]),
                (&json!("StoreConflict"), &json!(1), &found)
            );
        }
        for path in [CommitPath::Script, CommitPath::Mixed, CommitPath::Watch] {
            let mut store = store_by(table, path);
            for commit in [Commit::new(), our_commit(0)] {
                let error = store.commit(&mut stale, &commit).unwrap_err();
                let StoreError::Conflict {
                    expected, found, ..
                } = error
                else {
                    panic!("{error}");
                };
                assert_eq!(
                    (expected, found),
                    (Version::new(1), Some(Version::new(2))),
                    "{path:?}"
                );
            }
        }
        assert_eq!(row(table, "stm", "x"), before);
        assert!(store.pending_outbox().unwrap().is_empty());
        assert!(store.pending_spawns().unwrap().is_empty());
        assert!(store.read_trace("x").unwrap().is_empty());
        assert!(store.due_timers(f64::MAX).unwrap().is_empty());
        for id in ["p0", "r0"] {
            assert!(!store.is_processed("x", id).unwrap());
        }
    });
}

const RACES: u64 = 40;

/// Counts once for each of these events, loading again after each conflict.
fn race_in_rust(mut store: RedisStore<Reopening>, side: &str, is_complex: bool) {
    for round in 0..RACES {
        loop {
            let mut execution = store.load("x").unwrap().unwrap();
            let count = execution.context["count"].as_u64().unwrap();
            execution.context.insert("count".into(), (count + 1).into());
            let mut commit = Commit::for_event(id_of(side, round));
            if is_complex {
                commit = commit.emit(None, event(&id_of(side, round)));
            }
            match store.commit(&mut execution, &commit) {
                Ok(_) => break,
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

fn race_in_python(mut peer: Peer, side: &str, is_complex: bool) {
    for round in 0..RACES {
        loop {
            let mut exe = loaded(&mut peer, "x");
            exe["context"]["count"] = json!(exe["context"]["count"].as_u64().unwrap() + 1);
            let id = id_of(side, round);
            let emits = if is_complex {
                json!([[null, { "id": id, "kind": "K" }]])
            } else {
                json!([])
            };
            let args = json!({ "exe": exe, "emits": emits, "processed_event_id": id });
            match peer.call("store.commit", &args) {
                Ok(_) => break,
                Err(error) => assert_eq!(error["type"], "StoreConflict", "{error}"),
            }
        }
    }
}

#[test]
fn writers_of_both_sides_race_for_one_execution_and_no_update_is_lost() {
    each(|table| {
        let mut store = table.store();
        let mut execution = Execution::new("x", "d");
        execution.context.insert("count".into(), 0.into());
        store.save(&mut execution).unwrap();
        thread::scope(|scope| {
            for (side, path, is_complex) in [
                ("a", CommitPath::Script, true),
                ("b", CommitPath::Script, false),
                ("c", CommitPath::Watch, true),
            ] {
                let store = store_by(table, path);
                scope.spawn(move || race_in_rust(store, side, is_complex));
            }
            for (side, is_complex) in [("p", true), ("q", false)] {
                let peer = table.peer();
                scope.spawn(move || race_in_python(peer, side, is_complex));
            }
        });
        let execution = store.load("x").unwrap().unwrap();
        assert_eq!(execution.context["count"], 5 * RACES);
        assert_eq!(execution.version.get() as u64, 5 * RACES + 1);
        let mut emitted: Vec<String> = store
            .pending_outbox()
            .unwrap()
            .into_iter()
            .map(|entry| entry.event.id)
            .collect();
        emitted.sort();
        let mut expected: Vec<String> = ["a", "c", "p"]
            .iter()
            .flat_map(|side| (0..RACES).map(move |round| id_of(side, round)))
            .collect();
        expected.sort();
        assert_eq!(emitted, expected);
        for side in ["a", "b", "c", "p", "q"] {
            for round in 0..RACES {
                assert!(store.is_processed("x", &id_of(side, round)).unwrap());
            }
        }
    });
}
