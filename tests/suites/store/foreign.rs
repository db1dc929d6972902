//! Values that somebody else put there, and input that would put such values there.

use serde_json::json;
use store::{Commit, Execution, Rejection, Settings, StoreError, TimerOp, Version};

use crate::{
    backend::{Protocol, ask},
    commits::{PATHS, dump, everything, watching, without_counters},
    keyspace::{Bytes, Held, Keyspace},
    meddling::Plan,
    twin::with_each,
};

#[test]
fn a_dedupe_set_that_is_none_stops_a_script_before_it_writes() {
    with_each(|backend, side| {
        ask(
            &mut backend.connect(Protocol::Resp2),
            &["SET", "stm:processed:a", "not a set"],
        );
        let before = dump(backend);
        let mut execution = Execution::new("a", "d");
        let error = side
            .store(backend)
            .commit(&mut execution, &Commit::for_event("e"))
            .unwrap_err();
        assert!(
            matches!(&error, StoreError::Corrupt { key, .. } if key == "stm:processed:a"),
            "{error}"
        );
        assert_eq!((execution.version.get(), dump(backend)), (0, before));
    });
}

#[test]
fn a_row_that_is_none_is_corrupt_on_both_paths_and_stays() {
    with_each(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        for row in [
            "not json",
            "[1]",
            "7",
            "",
            "{}",
            r#"{"version":6.5}"#,
            r#"{"version":null}"#,
        ] {
            ask(&mut connection, &["SET", "stm:exe:a", row]);
            let before = dump(backend);
            for mut store in [side.store(backend), watching(backend, side, Plan::none())] {
                let error = store.save(&mut Execution::new("a", "d")).unwrap_err();
                assert!(
                    matches!(&error, StoreError::Corrupt { key, .. } if key == "stm:exe:a"),
                    "{row}: {error}"
                );
                assert!(matches!(store.load("a"), Err(StoreError::Corrupt { .. })));
            }
            assert_eq!(dump(backend), before);
        }
        ask(&mut connection, &["DEL", "stm:exe:a"]);
        ask(&mut connection, &["RPUSH", "stm:exe:a", "x"]);
        for mut store in [side.store(backend), watching(backend, side, Plan::none())] {
            let error = store.save(&mut Execution::new("a", "d")).unwrap_err();
            assert!(
                matches!(&error, StoreError::Corrupt { key, .. } if key == "stm:exe:a"),
                "{error}"
            );
            assert!(matches!(store.load("a"), Err(StoreError::Corrupt { .. })));
        }
    });
}

#[test]
fn counters_of_another_type_stop_a_commit_before_it_writes() {
    with_each(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        for (counter, value) in [
            ("stm:outbox:seq", "x"),
            ("stm:spawns:seq", "1.5"),
            ("stm:trace:seq:a", ""),
        ] {
            ask(&mut connection, &["FLUSHDB"]);
            ask(&mut connection, &["SET", counter, value]);
            let mut execution = Execution::new("a", "d");
            let error = side
                .store(backend)
                .commit(&mut execution, &everything("e"))
                .unwrap_err();
            assert!(
                matches!(&error, StoreError::Corrupt { key, .. } if key == counter),
                "{error}"
            );
            assert_eq!(execution.version.get(), 0);
            assert_eq!(without_counters(dump(backend)), Keyspace::new());
        }
    });
}

#[test]
fn versions_of_foreign_writers_are_compared_exactly_or_refused() {
    const BIG: i64 = (1 << 53) - 2;
    with_each(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        let row =
            |version: &str| format!(r#"{{"id":"a","definition_id":"d","version":{version}}}"#);
        // (stored, loaded at, found)
        let cases = [
            (
                row("9007199254740993"),
                BIG,
                Err(Some(9_007_199_254_740_993)),
            ),
            (
                row("100000000000001"),
                100_000_000_000_000,
                Err(Some(100_000_000_000_001)),
            ),
            (row(r#""3""#), 3, Ok(4)),
            (row("3.0"), 3, Ok(4)),
            (row(&BIG.to_string()), BIG, Ok(BIG + 1)),
        ];
        for (stored, loaded_at, expected) in cases {
            for path in PATHS {
                ask(&mut connection, &["SET", "stm:exe:a", &stored]);
                let mut store =
                    side.store_with(backend, Settings::default().commit_path(path), Plan::none());
                let mut execution = Execution::new("a", "d");
                execution.version = Version::new(loaded_at);
                match (store.save(&mut execution), expected) {
                    (Ok(committed), Ok(next)) => {
                        assert_eq!(committed.version.get(), next, "{stored} {path:?}");
                    }
                    (Err(StoreError::Conflict { found, .. }), Err(version)) => {
                        assert_eq!(found.map(Version::get), version, "{stored} {path:?}");
                    }
                    (result, _) => panic!("{stored} {path:?}: {result:?}"),
                }
            }
        }
        let mut execution = Execution::new("a", "d");
        execution.version = Version::EDGE;
        let error = side.store(backend).save(&mut execution).unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::Invalid {
                    reason: Rejection::VersionAtEdge,
                    ..
                }
            ),
            "{error}"
        );
    });
}

#[test]
fn invalid_input_writes_nothing_not_even_a_counter() {
    with_each(|backend, side| {
        let deep = (0..210).fold(json!(1), |inner, _| json!([inner]));
        let mut deep_context = Execution::new("a", "d");
        deep_context.context.insert("x".to_owned(), deep.clone());
        let step = json!({"x": deep}).as_object().unwrap().clone();
        let cases = [
            (
                Execution::new("a", "d"),
                everything("e").timer(TimerOp::schedule("Q", f64::NAN)),
            ),
            (
                Execution::new("a", "d"),
                everything("e").timer(TimerOp::schedule("Q", f64::NEG_INFINITY)),
            ),
            (Execution::new("seq:a", "d"), everything("e")),
            (Execution::new("a\0b", "d"), everything("e")),
            (Execution::new("a", "d"), everything("")),
            (Execution::new("a", "d"), Commit::for_event("")),
            (
                Execution::new("a", "d"),
                everything("e").trace(step.clone()),
            ),
            (deep_context, everything("e")),
        ];
        let mut store = side.store(backend);
        for (mut execution, commit) in cases {
            let error = store.commit(&mut execution, &commit).unwrap_err();
            assert!(matches!(error, StoreError::Invalid { .. }), "{error}");
            assert_eq!(execution.version.get(), 0);
        }
        assert!(
            store.append_trace("seq:a", &step).is_err() && store.append_trace("a", &step).is_err()
        );
        assert!(
            store.delete_timer("a\0", "P", 1.0).is_err()
                && store.delete_timer("a", "P", f64::NAN).is_err()
        );
        assert!(store.read_trace("seq:a").is_err() && store.due_timers(f64::NAN).is_err());
        assert_eq!(dump(backend), Keyspace::new());
    });
}

#[test]
fn a_row_too_deep_to_write_can_still_be_read() {
    with_each(|backend, side| {
        let nested = "[".repeat(254) + &"]".repeat(254);
        let row =
            format!(r#"{{"id":"a","definition_id":"d","context":{{"x":{nested}}},"version":1}}"#);
        ask(
            &mut backend.connect(Protocol::Resp2),
            &["SET", "stm:exe:a", &row],
        );
        let mut store = side.store(backend);
        let mut execution = store.load("a").unwrap().unwrap();
        let error = store.save(&mut execution).unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::Invalid {
                    reason: Rejection::TooDeep,
                    ..
                }
            ),
            "{error}"
        );
        execution.context.clear();
        store.save(&mut execution).unwrap();
    });
}

#[test]
fn members_of_newer_writers_survive_load_and_commit_in_their_places() {
    with_each(|backend, side| {
        let row = r#"{"first":{"n":1e-7},"id":"a","definition_id":"d","definition_fqn":null,"root_path":"","status":"DONE","outcome":null,"error":null,"active_path":null,"history":{},"context":{},"processed_events":0,"version":1,"priority":0,"parent_id":null,"child_id":null,"deferred":[{"id":"e","kind":"k","created_time":null,"received_time":null,"data":{},"trace_parent":"x"}],"children":{},"invoke_seq":{},"created_at":1700000000.5,"expires_at":null}"#;
        ask(
            &mut backend.connect(Protocol::Resp2),
            &["SET", "stm:exe:a", row],
        );
        let mut store = side.store(backend);
        let mut execution = store.load("a").unwrap().unwrap();
        store
            .commit(&mut execution, &Commit::for_event("e"))
            .unwrap();
        let expected = Held::String(Bytes(
            row.replace(r#""version":1"#, r#""version":2"#).into_bytes(),
        ));
        assert_eq!(
            dump(backend).get(&Bytes(b"stm:exe:a".to_vec())),
            Some(&expected)
        );
    });
}

#[test]
fn a_row_of_another_execution_is_not_loaded_as_this_one() {
    with_each(|backend, side| {
        ask(
            &mut backend.connect(Protocol::Resp2),
            &["SET", "a:exe:exe:1", r#"{"id":"1","definition_id":"d"}"#],
        );
        let mut store = side.store_with(backend, Settings::new("a").unwrap(), Plan::none());
        assert!(matches!(
            store.load("exe:1"),
            Err(StoreError::Corrupt { .. })
        ));
        assert!(Settings::new("a:exe").is_err());
    });
}
