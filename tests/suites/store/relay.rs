//! Outbox, spawns, timers and trace from the side of those who work them off.

use redis::{Pipeline, cmd};
use serde_json::{Map, Value, json};
use store::{
    Commit, Event, Execution, Seq, Settings, SpawnIntent, StoreError, TimerOp, op::DeleteTimer,
};

use crate::{
    backend::{Protocol, ask},
    meddling::Plan,
    twin::with_each,
};

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(members) = value else {
        panic!("not an object")
    };
    members
}

#[test]
fn entries_are_ordered_by_number_and_acknowledged_once() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        let mut execution = Execution::new("a", "d");
        let mut commit = Commit::new();
        for index in 0..12 {
            commit = commit
                .emit(Some("t"), Event::new(format!("e{index}"), "K"))
                .spawn(SpawnIntent::new(format!("c{index}"), ""));
        }
        let committed = store.commit(&mut execution, &commit).unwrap();
        assert_eq!(committed.outbox, (1..=12).map(Seq::new).collect::<Vec<_>>());
        let outbox = store.pending_outbox().unwrap();
        assert_eq!(
            outbox.iter().map(|entry| entry.seq).collect::<Vec<_>>(),
            committed.outbox
        );
        assert_eq!(outbox[11].event.id, "e11");
        let spawns = store.pending_spawns().unwrap();
        assert_eq!(
            spawns.iter().map(|entry| entry.seq).collect::<Vec<_>>(),
            committed.spawns
        );
        assert!(store.ack_outbox(Seq::new(3)).unwrap() && !store.ack_outbox(Seq::new(3)).unwrap());
        assert!(store.ack_spawn(Seq::new(3)).unwrap() && !store.ack_spawn(Seq::new(99)).unwrap());
        assert_eq!(
            (
                store.pending_outbox().unwrap().len(),
                store.pending_spawns().unwrap().len()
            ),
            (11, 11)
        );
    });
}

#[test]
fn an_entry_that_is_none_is_corrupt_with_its_key_and_field() {
    with_each(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        ask(&mut connection, &["HSET", "stm:outbox", "7", "not json"]);
        ask(&mut connection, &["HSET", "stm:spawns", "x", "{}"]);
        ask(&mut connection, &["RPUSH", "stm:trace:a", "[]"]);
        let mut store = side.store(backend);
        let corrupt = |error: StoreError| match error {
            StoreError::Corrupt { key, field, .. } => (key, field.unwrap_or_default()),
            error => panic!("{error}"),
        };
        assert_eq!(
            corrupt(store.pending_outbox().unwrap_err()),
            ("stm:outbox".into(), "7".into())
        );
        assert_eq!(
            corrupt(store.pending_spawns().unwrap_err()),
            ("stm:spawns".into(), "x".into())
        );
        assert_eq!(
            corrupt(store.read_trace("a").unwrap_err()),
            ("stm:trace:a".into(), String::new())
        );
        ask(&mut connection, &["SET", "stm:timers", "x"]);
        assert_eq!(
            corrupt(store.due_timers(1.0).unwrap_err()),
            ("stm:timers".into(), String::new())
        );
        assert_eq!(
            corrupt(store.delete_timer("a", "P", 1.0).unwrap_err()),
            ("stm:timers".into(), String::new())
        );
    });
}

#[test]
fn values_that_only_python_writes_are_readable() {
    with_each(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        ask(
            &mut connection,
            &[
                "RPUSH",
                "stm:trace:a",
                r#"{"n": NaN, "i": -Infinity, "s": "\ud83d", "index": 0}"#,
            ],
        );
        ask(
            &mut connection,
            &[
                "HSET",
                "stm:spawns",
                "1",
                r#"{"p": "a", "c": "b", "r": "", "x": {"n": NaN}}"#,
            ],
        );
        let mut store = side.store(backend);
        assert_eq!(
            store.read_trace("a").unwrap(),
            [object(
                json!({"n": null, "i": null, "s": "\u{fffd}", "index": 0})
            )]
        );
        assert_eq!(
            store.pending_spawns().unwrap()[0].context,
            object(json!({"n": null}))
        );
    });
}

#[test]
fn a_timer_that_was_moved_survives_the_deletion_of_its_old_time() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        let mut execution = Execution::new("a", "d");
        for time in [0.1, 1_700_000_000.123_456, 1e300, -1.5, 5e-324] {
            store
                .commit(
                    &mut execution,
                    &Commit::new().timer(TimerOp::schedule("P", time)),
                )
                .unwrap();
            assert!(!store.delete_timer("a", "P", time + 1e284).unwrap());
            assert!(!store.delete_timer("a", "Q", time).unwrap());
            let due = store.due_timers(f64::INFINITY).unwrap();
            assert_eq!((due.len(), due[0].fire_at_s), (1, time));
            assert!(store.delete_timer("a", "P", time).unwrap());
        }
        assert_eq!(store.due_timers(f64::INFINITY).unwrap(), []);
    });
}

#[test]
fn a_rearm_that_races_with_a_deletion_is_never_lost() {
    with_each(|backend, side| {
        let mut rival = backend.connect(Protocol::Resp2);
        let plan = Plan::before(0, move || {
            drop(ask(&mut rival, &["ZADD", "stm:timers", "9", "a\0P"]));
        });
        side.store(backend)
            .commit(
                &mut Execution::new("a", "d"),
                &Commit::new().timer(TimerOp::schedule("P", 1.0)),
            )
            .unwrap();
        let mut store = side.store_with(backend, Settings::default(), plan);
        assert!(
            !store
                .run(DeleteTimer::new(&Settings::default(), "a", "P", 1.0).unwrap())
                .unwrap()
        );
        assert_eq!(store.due_timers(9.0).unwrap()[0].fire_at_s, 9.0);
    });
}

#[test]
fn due_timers_come_by_time_then_by_name_and_split_at_the_first_nul() {
    with_each(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        for (score, member) in [
            ("2", "b\0P"),
            ("2", "a\0P\0Q"),
            ("1", "c"),
            ("inf", "d\0P"),
            ("3", "e\0P"),
        ] {
            ask(&mut connection, &["ZADD", "stm:timers", score, member]);
        }
        let due = side.store(backend).due_timers(2.0).unwrap();
        let due: Vec<_> = due
            .iter()
            .map(|timer| (&*timer.execution_id, &*timer.path, timer.fire_at_s))
            .collect();
        assert_eq!(due, [("c", "", 1.0), ("a", "P\0Q", 2.0), ("b", "P", 2.0)]);
    });
}

#[test]
fn the_trace_keeps_its_last_steps_for_each_size_of_ring() {
    with_each(|backend, side| {
        // A negative size drops so many of the oldest each time; -2 keeps nothing.
        for (size, kept) in [
            (0, vec![0, 1, 2, 3, 4]),
            (1, vec![4]),
            (3, vec![2, 3, 4]),
            (-2, vec![]),
            (i64::MIN, vec![]),
        ] {
            ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
            let mut store =
                side.store_with(backend, Settings::default().trace_max(size), Plan::none());
            let mut execution = Execution::new("a", "d");
            for index in 0..5 {
                if index % 2 == 0 {
                    store
                        .commit(&mut execution, &Commit::new().trace(Map::new()))
                        .unwrap();
                } else {
                    store.append_trace("a", &Map::new()).unwrap();
                }
            }
            let steps = store.read_trace("a").unwrap();
            let indexes: Vec<_> = steps
                .iter()
                .map(|step| step["index"].as_i64().unwrap())
                .collect();
            assert_eq!(indexes, kept, "{size}");
        }
    });
}

#[test]
fn a_long_backlog_is_read_whole() {
    with_each(|backend, side| {
        let mut fields = Pipeline::new();
        for seq in 1..=2_000 {
            let value = r#"{"t": null, "e": "{\"id\":\"e\",\"kind\":\"k\"}"}"#;
            fields.add_command(cmd("HSET").arg("stm:outbox").arg(seq).arg(value).take());
        }
        fields.exec(&mut backend.connect(Protocol::Resp2)).unwrap();
        let entries = side.store(backend).pending_outbox().unwrap();
        assert!(entries.is_sorted_by(|left, right| left.seq < right.seq) && entries.len() == 2_000);
    });
}
