//! A worker's turns: what becomes of an event, of what its commit leaves, and of what cannot be handled.

use std::{thread, time::Duration};

use redis::Value;
use store::{
    AsyncRedisStore, Execution, Pacing, RetryPolicy, SpawnIntent, Status, StoreError,
    worker::{AsyncWorker, Handling, Swept},
};

use crate::{
    backend::{Protocol, ask},
    meddling::{Fault, Plan},
    twin::{Side, with_each},
    workers::{Hand, Ledger, expire, left, log, options, publish, seed},
};

#[test]
fn an_event_is_handled_once_and_what_its_commit_leaves_is_worked_off() {
    with_each(|backend, side| {
        seed(backend, "a", "d");
        seed(backend, "b", "d");
        for kind in ["All", "Note", "Emit"] {
            publish(backend, "a", kind, kind);
        }
        let mut worker = Hand::new(backend, side, "w");
        let turns = worker.work();
        let committed = turns
            .iter()
            .filter(|turn| turn.handled == Some(Handling::Committed));
        assert_eq!(committed.count(), 7);
        assert_eq!(
            log(backend, "a"),
            ["All", "Note", "Emit", "timeout:a:p:1.5"]
        );
        assert_eq!(log(backend, "b"), ["All>b", "Emit>b"]);
        assert_eq!(log(backend, "a*All"), ["start:a*All:0"]);
        let child = side.store(backend).load("a*All").unwrap().unwrap();
        assert_eq!(
            (
                child.definition_id.as_str(),
                child.root_path.as_str(),
                child.parent_id.as_deref()
            ),
            ("d", "root", Some("a"))
        );
        assert_eq!((left(backend), worker.troubles()), (vec![], vec![]));
    });
}

#[test]
fn what_becomes_of_an_event_is_the_rows_and_the_handlers_to_say() {
    with_each(|backend, side| {
        seed(backend, "a", "d");
        let mut worker = Hand::new(backend, side, "w");
        let mut outcome = |id: &str, kind: &str| {
            publish(backend, "a", id, kind);
            let turn = worker.turn().unwrap();
            (turn.handled.unwrap(), left(backend).is_empty())
        };
        assert_eq!(outcome("1", "Note"), (Handling::Committed, true));
        assert_eq!(outcome("1", "Note"), (Handling::Duplicate, true));
        assert_eq!(outcome("2", "Ignored"), (Handling::Ignored, true));
        assert_eq!(outcome("3", "Later"), (Handling::Postponed, false));
        let status = |status: Status| {
            ask(
                &mut backend.connect(Protocol::Resp2),
                &["DEL", "stm:q:a", "stm:lock:a", "stm:prio", "stm:ready:0"],
            );
            let mut store = side.store(backend);
            let mut execution = store.load("a").unwrap().unwrap();
            execution.status = status;
            store.save(&mut execution).unwrap();
        };
        status(Status::Suspended);
        assert_eq!(outcome("4", "Note"), (Handling::Postponed, false));
        status(Status::Cancelling);
        assert_eq!(outcome("5", "Note"), (Handling::Ignored, true));
        assert_eq!(outcome("6", "Cancel"), (Handling::Committed, true));
        status(Status::Cancelled);
        assert_eq!(outcome("7", "Cancel"), (Handling::Ignored, true));
        assert_eq!(log(backend, "a"), ["1", "6"]);
        publish(backend, "nobody", "8", "Note");
        assert_eq!(worker.turn().unwrap().handled, Some(Handling::Missing));
        assert!(left(backend).is_empty());
    });
}

#[test]
fn what_trying_again_does_not_help_is_parked_and_the_others_go_on() {
    with_each(|backend, side| {
        for id in ["a", "b", "c"] {
            seed(backend, id, "d");
        }
        ask(
            &mut backend.connect(Protocol::Resp2),
            &["SET", "stm:exe:b", "not json"],
        );
        ask(
            &mut backend.connect(Protocol::Resp2),
            &["RPUSH", "stm:q:c", "not json"],
        );
        publish(backend, "a", "1", "Invalid");
        publish(backend, "b", "2", "Note");
        publish(backend, "c", "3", "Note");
        let mut worker = Hand::new(backend, side, "w");
        worker.work();
        let mut troubles = worker.troubles();
        troubles.sort();
        assert_eq!(troubles, ["buried of c", "parked 1", "parked 2"]);
        assert_eq!(log(backend, "c"), ["3"]);
        let mut store = side.store(backend);
        assert_eq!(store.load("a").unwrap().unwrap().version.get(), 1);
        // Repaired, it is handled when it comes again.
        seed_over(backend, "b");
        expire(backend, &["b"]);
        worker.work();
        assert_eq!(log(backend, "b"), ["2"]);
    });
}

fn seed_over(backend: &crate::backend::Backend, id: &str) {
    ask(
        &mut backend.connect(Protocol::Resp2),
        &["DEL", &format!("stm:exe:{id}")],
    );
    seed(backend, id, "d");
}

#[test]
fn an_asynchronous_worker_runs_as_a_task_and_with_retry_in_one() {
    with_each(|backend, side| {
        let Side::Async = side else {
            return;
        };
        seed(backend, "a", "d");
        publish(backend, "a", "1", "Note");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let connections = runtime.block_on(async {
            [
                backend.connect_async(Protocol::Resp3).await,
                backend.connect_async(Protocol::Resp3).await,
            ]
        });
        let [mut store, other] = connections.map(AsyncRedisStore::new);
        let mut worker = AsyncWorker::new(other, options("task"), Ledger::default());
        let stop = worker.stop_handle();
        let work = runtime.spawn(async move { worker.run().await });
        let retry = runtime.spawn(async move {
            let policy = RetryPolicy::default().attempts(50);
            let order = |execution: &mut Execution, _: &store::Round| {
                let noted = execution.context.contains_key("log");
                if noted {
                    store::request_cancel(execution, serde_json::Map::new())
                } else {
                    store::Decision::Commit(store::Commit::new())
                }
            };
            for _ in 0..500 {
                let asked = store
                    .with_retry("a", &policy, &mut Pacing::tokio(), order)
                    .await;
                let store::Retried::Committed(execution, _) = asked.unwrap() else {
                    panic!("nothing to do")
                };
                if execution.status == Status::Cancelling {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        runtime.block_on(retry).unwrap();
        let log_of = || log(backend, "a");
        for _ in 0..500 {
            if log_of().len() == 2 {
                break;
            }
            thread::sleep(Duration::from_millis(2));
        }
        stop.stop();
        runtime.block_on(work).unwrap().unwrap();
        let events = log_of();
        assert_eq!(events.len(), 2, "{events:?}");
        assert!(events[1].starts_with("cancel:a:"), "{events:?}");
    });
}

// C10
#[test]
fn a_sweep_sets_poison_aside_and_does_the_rest() {
    with_each(|backend, side| {
        seed(backend, "a", "d");
        seed(backend, "b", "d");
        publish(backend, "a", "1", "All");
        let mut connection = backend.connect(Protocol::Resp2);
        ask(
            &mut connection,
            &["HSET", "stm:outbox", "77", "not json", "x", "y"],
        );
        ask(&mut connection, &["HSET", "stm:spawns", "77", "{}"]);
        ask(
            &mut connection,
            &[
                "HSET",
                "stm:spawns",
                "78",
                r#"{"p": "gone", "c": "x", "r": "", "x": {}}"#,
            ],
        );
        ask(
            &mut connection,
            &["ZADD", "stm:timers", "-inf", "a\0q", "1", "no-nul"],
        );
        let mut worker = Hand::new(backend, side, "w");
        worker.work();
        assert_eq!(log(backend, "a"), ["1", "timeout:a:p:1.5"]);
        assert_eq!(
            (log(backend, "b"), log(backend, "a*1").len()),
            (vec!["1>b".to_owned()], 1)
        );
        assert!(left(backend).is_empty(), "{:?}", left(backend));
        assert_eq!(worker.troubles().len(), 6);
        // Seqs go on behind what was there.
        let mut store = side.store(backend);
        let spawn = store::Commit::new().spawn(SpawnIntent::new("y", ""));
        let committed = store.commit(&mut Execution::new("z", "d"), &spawn).unwrap();
        assert_eq!(committed.spawns[0].get(), 80);
    });
}

#[test]
fn a_rival_commit_makes_the_event_come_again_and_both_land() {
    with_each(|backend, side| {
        seed(backend, "a", "d");
        Hand::new(backend, side, "warm").work();
        publish(backend, "a", "1", "Note");
        let mut rival = backend.connect(Protocol::Resp2);
        // Probe, scans of both hashes, counters, claim, load, commit.
        let mut turns = Vec::new();
        for batch in 0..12 {
            let row = r#"{"id":"a","definition_id":"d","context":{"log":["rival"]},"version":7}"#;
            let mut connection = backend.connect(Protocol::Resp2);
            let plan = Plan::before(batch, move || {
                ask(&mut connection, &["SET", "stm:exe:a", row]);
            });
            let mut worker = Hand::with(backend, side, options("w"), Ledger::default(), plan);
            turns.extend(worker.work().into_iter().filter_map(|turn| turn.handled));
            if turns.contains(&Handling::Again) {
                assert_eq!(log(backend, "a"), ["rival", "1"]);
                return;
            }
            ask(&mut rival, &["DEL", "stm:exe:a", "stm:processed:a"]);
            seed(backend, "a", "d");
            publish(backend, "a", "1", "Note");
        }
        panic!("no conflict: {turns:?}");
    });
}

#[test]
fn a_worker_stops_when_it_is_told_to_and_leaves_no_lease() {
    with_each(|backend, side| {
        seed(backend, "a", "d");
        for number in 0..30 {
            publish(backend, "a", &number.to_string(), "Note");
        }
        let ledger = Ledger {
            takes: Duration::from_millis(5),
            ..Ledger::default()
        };
        let mut worker = Hand::with(backend, side, options("w"), ledger, Plan::none());
        let stop = worker.stop_handle();
        let stopper = thread::spawn(move || {
            thread::sleep(Duration::from_millis(40));
            stop.stop();
        });
        worker.run().unwrap();
        stopper.join().unwrap();
        let handled = log(backend, "a").len();
        assert!((1..30).contains(&handled), "{handled}");
        assert!(!left(backend).contains(&"stm:lock:a".to_owned()));
        Hand::new(backend, side, "other").work();
        assert_eq!(log(backend, "a").len(), 30);
        worker.run().unwrap();
    });
}

#[test]
fn a_worker_outlives_a_connection_that_fails_and_gives_up_within_bounds() {
    with_each(|backend, side| {
        seed(backend, "a", "d");
        publish(backend, "a", "1", "Note");
        let plan = (0..50).fold(Plan::none(), |plan, batch| {
            plan.and(batch, Fault::DropBefore)
        });
        let policy = RetryPolicy::default()
            .attempts(4)
            .pauses(Duration::ZERO, Duration::ZERO);
        let options = options("w").policy(policy);
        let mut worker = Hand::with(backend, side, options, Ledger::default(), plan);
        assert!(matches!(worker.run(), Err(StoreError::Io { .. })));
        assert_eq!(worker.troubles(), ["failed"; 4]);
        for _ in 4..50 {
            assert!(worker.turn().is_err());
        }
        worker.work();
        assert_eq!(log(backend, "a"), ["1"]);
    });
}

#[test]
fn a_lease_is_prolonged_while_a_handler_awaits() {
    with_each(|backend, side| {
        if let Side::Sync = side {
            return;
        }
        seed(backend, "a", "d");
        publish(backend, "a", "1", "Note");
        let visibility = Duration::from_millis(150);
        let ledger = Ledger {
            takes: visibility * 4,
            ..Ledger::default()
        };
        let mut slow = Hand::with(
            backend,
            side,
            options("slow").visibility(visibility),
            ledger,
            Plan::none(),
        );
        let turn = thread::scope(|scope| {
            let rival = scope.spawn(|| {
                thread::sleep(visibility * 2);
                let mut rival = Hand::new(backend, Side::Sync, "rival");
                rival.turn().unwrap().handled
            });
            let turn = slow.turn().unwrap();
            assert_eq!(rival.join().unwrap(), None);
            turn
        });
        assert_eq!(turn.handled, Some(Handling::Committed));
        assert_eq!(log(backend, "a"), ["1"]);
    });
}

#[test]
fn nothing_is_committed_under_a_lease_that_was_lost() {
    with_each(|backend, side| {
        seed(backend, "a", "d");
        publish(backend, "a", "1", "Note");
        let visibility = Duration::from_millis(150);
        let ledger = Ledger {
            takes: visibility * 2,
            ..Ledger::default()
        };
        let options = options("slow").visibility(visibility);
        let mut slow = Hand::with(backend, side, options, ledger, Plan::none());
        let mut connection = backend.connect(Protocol::Resp2);
        let thief = thread::spawn(move || {
            while ask(&mut connection, &["EXISTS", "stm:lock:a"]) != Value::Int(1) {
                thread::sleep(Duration::from_millis(1));
            }
            ask(
                &mut connection,
                &["SET", "stm:lock:a", "other", "PX", "60000"],
            );
        });
        let turn = slow.turn().unwrap();
        thief.join().unwrap();
        assert_eq!(turn.handled, Some(Handling::LeaseLost));
        assert!(log(backend, "a").is_empty());
    });
}

#[test]
fn recovery_sweeps_until_nothing_moves() {
    with_each(|backend, side| {
        seed(backend, "b", "d");
        let mut store = side.store(backend);
        let commit = (0..300).fold(store::Commit::new(), |commit, index| {
            commit
                .emit(Some("b"), store::Event::new(format!("e{index}"), "Note"))
                .spawn(SpawnIntent::new(format!("c{index}"), ""))
                .timer(store::TimerOp::schedule(format!("p{index}"), 1.0))
        });
        store
            .commit(&mut Execution::new("a", "d"), &commit)
            .unwrap();
        ask(
            &mut backend.connect(Protocol::Resp2),
            &["SET", "stm:q:bad", "x"],
        );
        let bad = store::Commit::new().emit(Some("bad"), store::Event::new("x", "Note"));
        store.commit(&mut Execution::new("z", "d"), &bad).unwrap();
        let Swept {
            delivered,
            started,
            fired,
            left,
            ..
        } = Hand::with(
            backend,
            side,
            options("w").page(7),
            Ledger::default(),
            Plan::none(),
        )
        .recover()
        .unwrap();
        assert_eq!((delivered, started, fired, left), (300, 300, 300, 1));
    });
}
