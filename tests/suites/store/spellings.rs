//! Values at the edges of JSON: what Python writes beyond it, how deep, how large.

use serde_json::json;
use store::{Commit, DueTimer, Event, Execution, Rejection, StoreError, TimerOp, codec};

use crate::{
    backend::{Protocol, ask},
    commits::dump,
    keyspace::{Bytes, Held},
    twin::with_each,
};

/// A trace step and a spawn as Python's encoder writes them.
const STEP: &str = r#"{"n": NaN, "i": [Infinity, -Infinity], "s": "\ud83d!", "index": 0}"#;
const SPAWN: &str = r#"{"p": "a", "c": "b", "r": "", "x": {"n": NaN, "s": "\udc00"}}"#;

// C30, the naive way: the reader at hand refuses all of it, the writer at hand changes it without a word.
#[test]
fn a_plain_json_reader_refuses_what_python_wrote_and_its_writer_makes_null_of_nan() {
    for text in [STEP, SPAWN, "NaN", r#""\ud83d""#] {
        assert!(
            serde_json::from_str::<serde_json::Value>(text).is_err(),
            "{text}"
        );
    }
    assert_eq!(json!(f64::NAN), json!(null));
}

// C30
#[test]
fn steps_and_spawns_with_nan_and_halves_of_pairs_are_read() {
    with_each(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        ask(&mut connection, &["RPUSH", "stm:trace:a", STEP]);
        ask(&mut connection, &["HSET", "stm:spawns", "1", SPAWN]);
        let mut store = side.store(backend);
        let steps = store.read_trace("a").unwrap();
        assert_eq!(
            serde_json::Value::from(steps[0].clone()),
            json!({"n": null, "i": [null, null], "s": "\u{fffd}!", "index": 0})
        );
        let spawns = store.pending_spawns().unwrap();
        assert_eq!(
            serde_json::Value::from(spawns[0].context.clone()),
            json!({"n": null, "s": "\u{fffd}"})
        );
    });
}

// C30: integers of any size, and members in their order.
#[test]
fn numbers_and_order_are_kept_through_load_and_save() {
    with_each(|backend, side| {
        let context = r#"{"z":123456789012345678901234567890,"a":-9223372036854775809,"m":{"y":1e+16,"b":0.00001,"x":1e-7,"c":-0.0},"l":18446744073709551616}"#;
        let row = format!(
            r#"{{"id":"a","definition_id":"d","definition_fqn":null,"root_path":"","status":"DONE","outcome":null,"error":null,"active_path":null,"history":{{}},"context":{context},"processed_events":0,"version":1,"priority":0,"parent_id":null,"child_id":null,"deferred":[],"children":{{}},"invoke_seq":{{}}}}"#
        );
        ask(
            &mut backend.connect(Protocol::Resp2),
            &["SET", "stm:exe:a", &row],
        );
        let mut store = side.store(backend);
        let mut execution = store.load("a").unwrap().unwrap();
        store.save(&mut execution).unwrap();
        let expected = row.replace(r#""version":1,"#, r#""version":2,"#);
        assert_eq!(
            dump(backend).get(&Bytes(b"stm:exe:a".to_vec())),
            Some(&Held::String(Bytes(expected.into_bytes())))
        );
    });
}

// C11, the naive way: what a writer's limit allows and a reader's does not is stored once and never read again.
#[test]
fn a_context_deeper_than_readers_go_can_be_stored_by_a_writer_that_does_not_count() {
    with_each(|backend, _| {
        let deep = "[".repeat(210) + &"]".repeat(210);
        let row =
            format!(r#"{{"id":"a","definition_id":"d","context":{{"x":{deep}}},"version":1}}"#);
        ask(
            &mut backend.connect(Protocol::Resp2),
            &["SET", "stm:exe:a", &row],
        );
        // A reader with the limit of most of them.
        assert!(serde_json::from_str::<serde_json::Value>(&row).is_err());
    });
}

// C11
#[test]
fn what_can_not_be_read_by_all_is_not_written_and_what_is_deeper_is_read() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        for (levels, fits) in [(197, true), (198, false), (300, false)] {
            let deep = (0..levels).fold(json!(1), |inner, _| json!([inner]));
            let mut execution = Execution::new(format!("a{levels}"), "d");
            execution.context.insert("x".to_owned(), deep.clone());
            let mut event = Event::new("e", "k");
            event.data.insert("x".to_owned(), deep);
            let stored = store.save(&mut execution);
            assert_eq!(stored.is_ok(), fits, "{levels}");
            if let Err(error) = stored {
                assert!(matches!(
                    error,
                    StoreError::Invalid {
                        reason: Rejection::TooDeep,
                        ..
                    }
                ));
            }
            let emit = Commit::new().emit(None, event);
            assert_eq!(
                store.commit(&mut Execution::new("b", "d"), &emit).is_ok(),
                fits
            );
            if fits {
                assert!(store.purge("b", store::Version::new(1)).unwrap());
                assert!(store.load("a197").unwrap().is_some());
            }
        }
        let deep = "[".repeat(255) + &"]".repeat(255);
        let row =
            format!(r#"{{"id":"c","definition_id":"d","context":{{"x":{deep}}},"version":1}}"#);
        ask(
            &mut backend.connect(Protocol::Resp2),
            &["SET", "stm:exe:c", &row],
        );
        assert!(store.load("c").unwrap().is_some());
    });
}

#[test]
fn ids_of_timeouts_embed_the_time_as_python_spells_it() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        let mut commit = Commit::new();
        let times = [
            (0.00001, "1e-05"),
            (1_700_000_000.0, "1700000000.0"),
            (1_700_000_000.25, "1700000000.25"),
            (1e16, "1e+16"),
        ];
        for (time, text) in times {
            commit = commit.timer(TimerOp::schedule(text, time));
        }
        store
            .commit(&mut Execution::new("a", "d"), &commit)
            .unwrap();
        let due = store.due_timers(1e300).unwrap();
        let ids: Vec<_> = due.iter().map(DueTimer::event_id).collect();
        let expected = times.map(|(_, text)| format!("timeout:a:{text}:{text}"));
        assert_eq!(ids, expected);
        assert_eq!(codec::python_float(1e22), "1e+22");
    });
}
