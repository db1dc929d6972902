//! What a commit does, and what it leaves undone.

use serde_json::json;
use store::{Commit, CommitPath, Event, Execution, Settings, SpawnIntent, StoreError, TimerOp};

use crate::{
    backend::{Backend, Protocol, ask},
    keyspace::{self, Bytes, Keyspace},
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
pub(crate) fn without_counters(mut keyspace: Keyspace) -> Keyspace {
    keyspace.retain(|key, _| !key.0.windows(4).any(|window| window == b":seq"));
    keyspace
}

/// Settings of a store that takes this path.
pub(crate) fn by(path: CommitPath) -> Settings {
    Settings::default().commit_path(path)
}

/// Every way that a commit can take.
pub(crate) const PATHS: [CommitPath; 3] =
    [CommitPath::Script, CommitPath::Mixed, CommitPath::Watch];

/// A store that always watches.
pub(crate) fn watching(backend: &Backend, side: Side, plan: Plan) -> Twin {
    side.store_with(backend, by(CommitPath::Watch), plan)
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
            .store_with(backend, by(CommitPath::Mixed), plan)
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
        for path in PATHS {
            ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
            let mut store = side.store_with(backend, by(path), Plan::none());
            let mut execution = Execution::new("a", "d");
            store.save(&mut execution).unwrap();
            store
                .commit(&mut execution, &Commit::for_event("e"))
                .unwrap();
            assert_eq!(execution.version.get(), 2);
            spaces.push(dump(backend));
        }
        assert_eq!(spaces[0], spaces[2]);
        assert_eq!(spaces[1], spaces[2]);
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
        let error = watching(backend, side, Plan::none())
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
fn a_commit_of_everything_takes_one_round_trip_or_three_with_a_watch() {
    with_each(|backend, side| {
        for (path, trips) in [(CommitPath::Script, 1), (CommitPath::Watch, 3)] {
            ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
            // So that the server knows the script.
            side.store(backend)
                .save(&mut Execution::new("other", "d"))
                .unwrap();
            let late = Plan::before(trips, || panic!("one round trip too many"));
            side.store_with(backend, by(path), late)
                .commit(&mut Execution::new("a", "d"), &everything("e"))
                .unwrap();
        }
    });
}

#[test]
fn concurrent_writers_lose_no_commit_and_double_none() {
    const WRITERS: usize = 4;
    const COMMITS: usize = 20;
    with_each(|backend, side| {
        side.store(backend)
            .save(&mut Execution::new("a", "d"))
            .unwrap();
        let work = |writer: usize| {
            // All paths race with each other.
            let path = PATHS[writer % PATHS.len()];
            let mut store = side.store_with(backend, by(path), Plan::none());
            let mut landed = 0;
            while landed < COMMITS {
                let mut execution = store.load("a").unwrap().unwrap();
                let event_id = format!("{writer}-{landed}");
                let commit = if landed % 2 == 0 {
                    everything(&event_id)
                } else {
                    Commit::for_event(&event_id)
                };
                match store.commit(&mut execution, &commit) {
                    Ok(_) => landed += 1,
                    Err(StoreError::Conflict { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        };
        std::thread::scope(|scope| {
            let work = &work;
            for writer in 0..WRITERS {
                scope.spawn(move || work(writer));
            }
        });
        let mut store = side.store(backend);
        let landed = WRITERS * COMMITS;
        assert_eq!(
            store.load("a").unwrap().unwrap().version.get(),
            i64::try_from(landed).unwrap() + 1
        );
        let mut emitted: Vec<_> = store
            .pending_outbox()
            .unwrap()
            .into_iter()
            .map(|entry| entry.event.id)
            .collect();
        emitted.sort();
        emitted.dedup();
        assert_eq!(emitted.len(), landed / 2);
        assert_eq!(store.pending_outbox().unwrap().len(), landed / 2);
        assert_eq!(store.pending_spawns().unwrap().len(), landed / 2);
        assert_eq!(store.read_trace("a").unwrap().len(), landed / 2);
        for writer in 0..WRITERS {
            for commit in 0..COMMITS {
                assert!(
                    store
                        .is_processed("a", &format!("{writer}-{commit}"))
                        .unwrap()
                );
            }
        }
    });
}
