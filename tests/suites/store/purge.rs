//! Removing executions, one or many.

use redis::Value;
use store::{
    Commit, Dialect, Event, Execution, RedisStore, Settings, SpawnIntent, Status, StoreError,
    Sweep, TimerOp, Undated, Version, sync::Exclusive,
};

use crate::{
    backend::{Backend, Protocol, SyncConnection, ask},
    commits::{dump, everything, without_counters},
    keyspace::Keyspace,
    meddling::{Fault, Plan},
    twin::{Twin, with_each, with_each_alone},
};

/// The batches of a purge of few entries: timers, outbox, spawns, script.
const SCRIPT: usize = 3;

/// Stores an execution with something of each kind.
fn full(store: &mut Twin, id: &str) -> Execution {
    let mut execution = Execution::new(id, "d");
    let commit = everything("e").emit(Some(id), Event::new("to itself", "k"));
    store.commit(&mut execution, &commit).unwrap();
    execution
}

fn rival(backend: &Backend) -> RedisStore<Exclusive<SyncConnection>> {
    RedisStore::new(backend.connect(Protocol::Resp2))
}

// C21, the naive way: the row is removed, what stands beside it is forgotten.
#[test]
fn a_new_execution_under_the_id_of_a_deleted_row_ignores_events() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        full(&mut store, "a");
        ask(&mut backend.connect(Protocol::Resp2), &["DEL", "stm:exe:a"]);
        let mut again = Execution::new("a", "d");
        store.save(&mut again).unwrap();
        assert!(store.is_processed("a", "e").unwrap());
        assert_eq!(store.read_trace("a").unwrap().len(), 1);
    });
}

// C21
#[test]
fn a_purge_leaves_nothing_of_its_own_and_everything_of_others() {
    with_each_alone(|backend, side| {
        let mut store = side.store(backend);
        full(&mut store, "ab");
        full(&mut store, "a*");
        let others = dump(backend);
        // Names of others that only look like its own, and a value that nobody can read.
        let mut connection = backend.connect(Protocol::Resp2);
        let mut execution = full(&mut store, "a");
        ask(&mut connection, &["HSET", "stm:outbox", "77", "not json"]);
        assert!(store.due_timers(9.0).unwrap().len() == 3);
        // The server does not know the script.
        ask(&mut connection, &["SCRIPT", "FLUSH"]);
        assert!(!store.purge("a", Version::new(2)).unwrap());
        assert!(store.purge("a", Version::new(1)).unwrap());
        assert!(!store.purge("a", Version::new(1)).unwrap());
        ask(&mut connection, &["HDEL", "stm:outbox", "77"]);
        // What it emitted to others is theirs.
        let left = store.pending_outbox().unwrap();
        let of_a = left.iter().filter(|entry| entry.seq.get() > 4);
        let targets: Vec<_> = of_a.map(|entry| entry.target_id.as_deref()).collect();
        assert_eq!(targets, [Some("target")]);
        let seq = left.last().unwrap().seq;
        store.ack_outbox(seq).unwrap();
        assert_eq!(without_counters(dump(backend)), without_counters(others));
        // A new one of that name begins anew.
        execution.version = Version::NEW;
        store.save(&mut execution).unwrap();
        assert!(!store.is_processed("a", "e").unwrap());
        assert_eq!(store.read_trace("a").unwrap().len(), 0);
    });
}

// C26, the naive way: read what belongs to it, then remove that in a transaction that watches the row.
#[test]
fn an_event_emitted_while_a_watched_purge_runs_outlives_it() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        full(&mut store, "a");
        let mut connection = backend.connect(Protocol::Resp2);
        ask(&mut connection, &["WATCH", "stm:exe:a"]);
        let Value::Array(read) = ask(&mut connection, &["HKEYS", "stm:outbox"]) else {
            panic!("not a list")
        };
        let commit = Commit::new().emit(Some("a"), Event::new("late", "k"));
        rival(backend)
            .commit(&mut Execution::new("b", "d"), &commit)
            .unwrap();
        ask(&mut connection, &["MULTI"]);
        ask(&mut connection, &["DEL", "stm:exe:a"]);
        for field in 1..=read.len() {
            ask(&mut connection, &["HDEL", "stm:outbox", &field.to_string()]);
        }
        ask(&mut connection, &["EXEC"]);
        assert_eq!(store.pending_outbox().unwrap().len(), 1);
    });
}

// C26: the same can happen here; it is said so, and the relay's rule makes it harmless.
#[test]
fn an_event_emitted_while_a_purge_runs_finds_no_row_and_is_dropped_by_its_relay() {
    with_each(|backend, side| {
        full(&mut side.store(backend), "a");
        let mut writer = rival(backend);
        let plan = Plan::before(SCRIPT, move || {
            let commit = Commit::new().emit(Some("a"), Event::new("late", "k"));
            writer
                .commit(&mut Execution::new("b", "d"), &commit)
                .unwrap();
        });
        let mut store = side.store_with(backend, Settings::default(), plan);
        assert!(store.purge("a", Version::new(1)).unwrap());
        let late: Vec<_> = store.pending_outbox().unwrap();
        let late: Vec<_> = late
            .into_iter()
            .filter(|entry| entry.target_id.as_deref() == Some("a"))
            .collect();
        assert_eq!(late.len(), 1);
        assert_eq!(store.load_for_event("a", "late").unwrap(), None);
        assert!(store.ack_outbox(late[0].seq).unwrap());
    });
}

// C26: timers and spawn intents come with commits of the execution itself.
#[test]
fn a_commit_while_a_purge_runs_keeps_all_of_the_execution() {
    with_each(|backend, side| {
        let mut execution = full(&mut side.store(backend), "a");
        let mut writer = rival(backend);
        let plan = Plan::before(SCRIPT, move || {
            let commit = Commit::for_event("e2")
                .timer(TimerOp::schedule("late", 7.0))
                .spawn(SpawnIntent::new("late", "P"));
            writer.commit(&mut execution, &commit).unwrap();
        });
        let mut store = side.store_with(backend, Settings::default(), plan);
        assert!(!store.purge("a", Version::new(1)).unwrap());
        assert_eq!(store.due_timers(9.0).unwrap().len(), 2);
        assert_eq!(store.pending_spawns().unwrap().len(), 2);
        assert!(store.is_processed("a", "e2").unwrap());
        assert!(store.load("a").unwrap().is_some());
    });
}

// C26 with C22: a number that was handed out again is somebody else's.
#[test]
fn an_entry_that_took_the_place_of_a_read_one_stays() {
    with_each(|backend, side| {
        full(&mut side.store(backend), "a");
        let mut connection = backend.connect(Protocol::Resp2);
        let plan = Plan::before(SCRIPT, move || {
            let event = r#"{"t": "b", "e": "{\"id\":\"x\",\"kind\":\"k\"}"}"#;
            drop(ask(&mut connection, &["HSET", "stm:outbox", "2", event]));
        });
        let mut store = side.store_with(backend, Settings::default(), plan);
        assert!(store.purge("a", Version::new(1)).unwrap());
        let left = store.pending_outbox().unwrap();
        assert_eq!(left.last().unwrap().target_id.as_deref(), Some("b"));
    });
}

// C26: however many timers others have, no command looks at all of them.
#[test]
fn a_purge_among_many_foreign_timers_goes_in_pages() {
    with_each(|backend, side| {
        let mut timers = redis::pipe();
        for index in 0..20_000 {
            let member = format!("other-{index}\0P");
            timers.cmd("ZADD").arg("stm:timers").arg(index).arg(member);
        }
        timers.exec(&mut backend.connect(Protocol::Resp2)).unwrap();
        full(&mut side.store(backend), "a");
        let plan = Plan::at(60, Fault::Hang);
        let mut store = side.store_with(backend, Settings::default(), plan);
        assert!(store.purge("a", Version::new(1)).unwrap());
        let left = ask(
            &mut backend.connect(Protocol::Resp2),
            &["ZCARD", "stm:timers"],
        );
        assert_eq!(left, Value::Int(20_000));
    });
}

#[test]
fn what_stands_in_the_place_of_a_key_stops_a_purge_before_it_writes() {
    with_each(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        for key in ["stm:exe:a", "stm:timers", "stm:outbox", "stm:spawns"] {
            ask(&mut connection, &["FLUSHDB"]);
            let mut store = side.store(backend);
            full(&mut store, "a");
            ask(&mut connection, &["DEL", key]);
            ask(&mut connection, &["RPUSH", key, "x"]);
            let before = dump(backend);
            let error = store.purge("a", Version::new(1)).unwrap_err();
            assert!(
                matches!(&error, StoreError::Corrupt { key: found, .. } if found == key),
                "{key}: {error}"
            );
            assert_eq!(dump(backend), before, "{key}");
        }
        ask(&mut connection, &["FLUSHDB"]);
        for row in ["not json", "[]", "{}", r#"{"version":9007199254740993}"#] {
            ask(&mut connection, &["SET", "stm:exe:b", row]);
            let before = dump(backend);
            let error = side.store(backend).purge("b", Version::new(1)).unwrap_err();
            assert!(
                matches!(error, StoreError::Corrupt { .. }),
                "{row}: {error}"
            );
            assert_eq!(dump(backend), before, "{row}");
        }
    });
}

#[test]
fn a_purge_whose_reply_is_lost_can_be_repeated() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        full(&mut store, "a");
        // From now on the server knows the script.
        store.purge("none", Version::NEW).unwrap();
        for plan in [
            Plan::at(SCRIPT, Fault::LoseReply),
            Plan::at(0, Fault::DropBefore),
        ] {
            let mut store = side.store_with(backend, Settings::default(), plan);
            assert!(matches!(
                store.purge("a", Version::new(1)),
                Err(StoreError::Io { .. })
            ));
        }
        let mut store = side.store(backend);
        assert!(!store.purge("a", Version::new(1)).unwrap());
        assert!(store.load("a").unwrap().is_none());
    });
}

fn finished(store: &mut Twin, id: &str, status: Status, at: Option<f64>) {
    let mut execution = Execution::new(id, "d");
    execution.status = status;
    execution.finished_at = at;
    let commit = everything(id).emit(Some(id), Event::new("to itself", "k"));
    store.commit(&mut execution, &commit).unwrap();
}

// C21
#[test]
fn a_sweep_removes_what_ended_before_a_moment_and_nothing_else() {
    with_each(|backend, side| {
        let settings = Settings::of_dialect(Dialect::V09);
        let mut store = side.store_with(backend, settings, Plan::none());
        for index in 0..30 {
            finished(&mut store, &format!("old-{index}"), Status::Done, Some(9.5));
        }
        finished(&mut store, "failed", Status::Failed, Some(1.0));
        finished(&mut store, "undated", Status::Failed, None);
        finished(&mut store, "young", Status::Cancelled, Some(10.0));
        finished(&mut store, "running", Status::Running, Some(1.0));
        ask(
            &mut backend.connect(Protocol::Resp2),
            &["SET", "harel:exe:bad", "{}"],
        );
        let mut sweep = |sweep: Sweep| {
            let (mut purged, mut undated, mut bad, mut cursor) = (0, 0, 0, None);
            loop {
                let page = store.sweep_finished(&sweep, 5, cursor).unwrap();
                purged += page.purged.len();
                undated += page.undated;
                bad += page.unreadable.len();
                assert!(page.moved.is_empty());
                cursor = page.next_cursor;
                if cursor.is_none() {
                    return (purged, undated, bad, store.ids_with_prefix("").unwrap());
                }
            }
        };
        let before = Sweep::finished_before(10.0);
        let (purged, undated, bad, left) = sweep(before.clone().status([Status::Done]));
        assert_eq!((purged, undated, bad, left.len()), (30, 0, 1, 5));
        let (purged, undated, _, left) = sweep(before.clone());
        assert_eq!((purged, undated), (1, 1));
        assert_eq!(left, ["bad", "running", "undated", "young"]);
        let (purged, _, _, left) = sweep(before.undated(Undated::Purge));
        assert_eq!((purged, left.len()), (1, 3));
        let timers = store.due_timers(9.0).unwrap().into_iter();
        let timers: Vec<_> = timers.map(|timer| timer.execution_id).collect();
        assert_eq!(timers, ["running", "young"]);
        assert_eq!(store.pending_spawns().unwrap().len(), 2);
    });
}

#[test]
fn a_sweep_leaves_what_was_revived_meanwhile() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        for id in ["a", "b"] {
            finished(&mut store, id, Status::Done, Some(1.0));
        }
        let mut writer = rival(backend);
        // Scan, rows, timers, outbox, spawns.
        let plan = Plan::before(5, move || {
            let mut revived = writer.load("b").unwrap().unwrap();
            revived.status = Status::Running;
            writer.save(&mut revived).unwrap();
        });
        let mut store = side.store_with(backend, Settings::default(), plan);
        let page = store
            .sweep_finished(&Sweep::finished_before(2.0), 100, None)
            .unwrap();
        assert_eq!(
            (page.purged, page.moved),
            (vec!["a".into()], vec!["b".into()])
        );
        assert_eq!(store.due_timers(9.0).unwrap().len(), 1);
    });
}

#[test]
fn a_sweep_that_could_remove_what_still_runs_is_refused() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        for sweep in [
            Sweep::finished_before(f64::NAN),
            Sweep::finished_before(1.0).status([Status::Done, Status::Running]),
        ] {
            let error = store.sweep_finished(&sweep, 1, None).unwrap_err();
            assert!(matches!(error, StoreError::Invalid { .. }), "{error}");
        }
        assert_eq!(dump(backend), Keyspace::new());
    });
}
