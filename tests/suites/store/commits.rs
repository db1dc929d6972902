//! What a commit does, and what it leaves undone.

use serde_json::json;
use store::{
    Commit, CommitPath, Event, Execution, Rejection, Settings, SpawnIntent, StoreError, TimerOp,
    Version,
};

use crate::{
    backend::{Backend, Protocol, ask},
    keyspace::{self, Bytes, Held, Keyspace},
    meddling::Plan,
    twin::{Side, Twin, with_each, with_each_alone},
};

/// A commit with one effect of each kind.
pub(crate) fn everything(event_id: &str) -> Commit {
    Commit::for_event(event_id)
        .emit(
            Some("target"),
            Event::new(format!("{event_id}-emit"), "Kind"),
        )
        .timer(TimerOp::schedule("P", 5.5))
        .spawn(SpawnIntent::new(format!("{event_id}-child"), "P.R"))
        .trace(json!({"kind": "Go"}).as_object().unwrap().clone())
}

/// The key space now.
pub(crate) fn dump(backend: &Backend) -> Keyspace {
    keyspace::read(&mut backend.connect(Protocol::Resp2))
}

/// The key space but for its counters.
fn without_counters(mut keyspace: Keyspace) -> Keyspace {
    keyspace.retain(|key, _| !key.0.windows(4).any(|window| window == b":seq"));
    keyspace
}

fn watching(backend: &Backend, side: Side, plan: Plan) -> Twin {
    side.store_with(
        backend,
        Settings::default().commit_path(CommitPath::Watch),
        plan,
    )
}

#[test]
fn of_two_fresh_inserts_one_conflicts() {
    with_each(|backend, side| {
        for commit in [Commit::for_event("e"), everything("e")] {
            ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
            let (mut first, mut second) = (Execution::new("a", "d"), Execution::new("a", "d"));
            side.store(backend).commit(&mut first, &commit).unwrap();
            let before = without_counters(dump(backend));
            let error = side
                .store(backend)
                .commit(&mut second, &commit)
                .unwrap_err();
            assert_eq!(
                error.to_string(),
                "stale write to a: expected version 0, found 1"
            );
            assert_eq!((first.version.get(), second.version.get()), (1, 0));
            assert_eq!(without_counters(dump(backend)), before);
        }
    });
}

#[test]
fn a_rival_between_the_check_and_exec_is_a_conflict_without_a_version() {
    with_each(|backend, side| {
        let mut seed = Execution::new("a", "d");
        side.store(backend).save(&mut seed).unwrap();
        let mut rival_store = Side::Sync.store(backend);
        let mut rival = seed.clone();
        // Batches: counters, WATCH and GET, MULTI to EXEC.
        let plan = Plan::before(2, {
            let mut connection = backend.connect(Protocol::Resp2);
            move || {
                drop(ask(
                    &mut connection,
                    &["SET", "stm:exe:a", r#"{"version":9}"#],
                ));
            }
        });
        let error = side
            .store_with(backend, Settings::default(), plan)
            .commit(&mut seed, &everything("e"))
            .unwrap_err();
        assert!(
            matches!(error, StoreError::Conflict { found: None, .. }),
            "{error}"
        );
        assert_eq!(seed.version.get(), 1);
        assert_eq!(
            rival_store
                .commit(&mut rival, &everything("e"))
                .unwrap_err()
                .to_string(),
            "stale write to a: expected version 1, found 9"
        );
        let names: Vec<_> = without_counters(dump(backend)).into_keys().collect();
        assert_eq!(names, [Bytes(b"stm:exe:a".to_vec())]);
    });
}

#[test]
fn after_a_conflict_the_connection_carries_no_watch() {
    with_each(|backend, side| {
        let mut fresh = Execution::new("a", "d");
        side.store(backend).save(&mut fresh).unwrap();
        let mut store = watching(backend, side, Plan::none());
        let mut stale = Execution::new("a", "d");
        assert!(store.save(&mut stale).is_err());
        // A write under a watch that was left would abort the next transaction on that connection.
        side.store(backend).save(&mut fresh).unwrap();
        store.save(&mut Execution::new("b", "d")).unwrap();
    });
}

#[test]
fn a_state_only_commit_on_the_watch_path_leaves_the_same_key_space() {
    with_each(|backend, side| {
        let mut spaces = Vec::new();
        for path in [CommitPath::Mixed, CommitPath::Watch] {
            ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
            let mut store =
                side.store_with(backend, Settings::default().commit_path(path), Plan::none());
            let mut execution = Execution::new("a", "d");
            store.save(&mut execution).unwrap();
            store
                .commit(&mut execution, &Commit::for_event("e"))
                .unwrap();
            assert_eq!(execution.version.get(), 2);
            spaces.push(dump(backend));
        }
        assert_eq!(spaces[0], spaces[1]);
    });
}

#[test]
fn a_server_that_forgot_its_scripts_is_sent_the_source() {
    with_each_alone(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        let mut store = side.store(backend);
        let mut execution = Execution::new("a", "d");
        for version in 1..=3 {
            ask(&mut connection, &["SCRIPT", "FLUSH"]);
            store.commit(&mut execution, &everything("e")).unwrap();
            store.save(&mut execution).unwrap();
            assert_eq!(execution.version.get(), 2 * version);
            assert!(store.delete_timer("a", "P", 5.5).unwrap());
        }
    });
}

#[test]
fn a_command_that_fails_inside_exec_is_partial_and_named() {
    with_each(|backend, side| {
        ask(
            &mut backend.connect(Protocol::Resp2),
            &["SET", "stm:outbox", "not a hash"],
        );
        let mut execution = Execution::new("a", "d");
        let error = side
            .store(backend)
            .commit(&mut execution, &everything("e"))
            .unwrap_err();
        let StoreError::Partial { id, failed } = error else {
            panic!("{error}")
        };
        let failed: Vec<_> = failed
            .iter()
            .map(|failed| (failed.position, &*failed.command, &*failed.key))
            .collect();
        assert_eq!(
            (id.as_str(), failed),
            ("a", vec![(1, "HSET", "stm:outbox")])
        );
        assert_eq!(execution.version.get(), 0);
        // Redis does not roll back: that is why it has to be told.
        assert_eq!(
            side.store(backend)
                .load("a")
                .unwrap()
                .unwrap()
                .version
                .get(),
            1
        );
    });
}

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
            for path in [CommitPath::Mixed, CommitPath::Watch] {
                ask(&mut connection, &["SET", "stm:exe:a", &stored]);
                let mut store =
                    side.store_with(backend, Settings::default().commit_path(path), Plan::none());
                let mut execution = Execution::new("a", "d");
                execution.version = Version::new(loaded_at);
                match (store.save(&mut execution), expected) {
                    (Ok(committed), Ok(next)) => {
                        assert_eq!(committed.version.get(), next, "{stored} {path:?}");
                    }
                    // As a double the stored one is the even number below it; that it differs is certain.
                    (Err(StoreError::Conflict { found, .. }), Err(version)) => {
                        let found = found.map(Version::get);
                        let rounded = version.map(|version: i64| version as f64 as i64);
                        assert!(
                            found == version || found == rounded,
                            "{stored} {path:?}: {found:?}"
                        );
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

#[test]
fn an_event_is_known_as_processed_once_its_commit_landed() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        let mut execution = Execution::new("a", "d");
        assert_eq!(store.load_for_event("a", "e").unwrap(), None);
        store.save(&mut execution).unwrap();
        assert!(!store.is_processed("a", "e").unwrap());
        assert!(!store.load_for_event("a", "e").unwrap().unwrap().1);
        store
            .commit(&mut execution, &Commit::for_event("e"))
            .unwrap();
        assert!(store.is_processed("a", "e").unwrap());
        let (loaded, processed) = store.load_for_event("a", "e").unwrap().unwrap();
        assert_eq!((loaded, processed), (execution, true));
        ask(&mut backend.connect(Protocol::Resp2), &["DEL", "stm:exe:a"]);
        assert_eq!(store.load_for_event("a", "e").unwrap(), None);
    });
}

#[test]
fn a_commit_of_everything_takes_three_round_trips() {
    with_each(|backend, side| {
        let late = Plan::before(3, || panic!("a fourth round trip"));
        let mut store = side.store_with(backend, Settings::default(), late);
        store
            .commit(&mut Execution::new("a", "d"), &everything("e"))
            .unwrap();
    });
}
