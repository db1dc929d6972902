//! Trying again within bounds, and orders that are given once however often they are sent.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Map, json};
use store::{
    Commit, Decision, Event, Execution, Retried, RetryPolicy, Settings, Status, StoreError,
    request_cancel,
};

use crate::{
    backend::{Backend, Protocol, SyncConnection, ask},
    meddling::{Fault, Plan},
    twin::{Side, Twin, with_each},
    twin_relay::Pauses,
};

/// A store on an execution `a`, where so-numbered batches go wrong; the scripts are known.
fn prepared(backend: &Backend, side: Side, faults: Vec<(usize, Fault)>) -> Twin {
    let mut seed = Execution::new("a", "d");
    side.store(backend).save(&mut seed).unwrap();
    let plan = faults
        .into_iter()
        .fold(Plan::none(), |plan, (batch, fault)| plan.and(batch, fault));
    side.store_with(backend, Settings::default(), plan)
}

fn count(execution: &mut Execution) -> Decision {
    let seen = execution
        .context
        .get("n")
        .and_then(serde_json::Value::as_i64);
    execution
        .context
        .insert("n".to_owned(), json!(seen.unwrap_or(0) + 1));
    Decision::Commit(Commit::for_event("e"))
}

fn rival(connection: &mut SyncConnection, version: u32) {
    let row = format!(
        r#"{{"id":"a","definition_id":"d","context":{{"n":{version}}},"version":{version}}}"#
    );
    ask(connection, &["SET", "stm:exe:a", &row]);
}

/// A rival that commits before each commit of ours: loads are the even batches.
fn rivals(backend: &Backend, commits: usize) -> Vec<(usize, Fault)> {
    let rival_of = |round: usize| {
        let mut connection = backend.connect(Protocol::Resp2);
        let version = round as u32 + 2;
        let fault: Box<dyn FnMut() + Send> = Box::new(move || rival(&mut connection, version));
        (2 * round + 1, Fault::Before(fault))
    };
    (0..commits).map(rival_of).collect()
}

#[test]
fn after_a_conflict_the_caller_decides_anew_on_what_is_there_then() {
    with_each(|backend, side| {
        let mut store = prepared(backend, side, rivals(backend, 2));
        let pauses = Pauses::default();
        let mut rounds = Vec::new();
        let decide = |execution: &mut Execution, round: &store::Round| {
            let conflict = matches!(round.last_error, Some(StoreError::Conflict { .. }));
            rounds.push((round.number, execution.version.get(), conflict));
            count(execution)
        };
        let done = store
            .with_retry("a", &RetryPolicy::default(), &pauses, decide)
            .unwrap();
        let Retried::Committed(execution, committed) = done else {
            panic!("{done:?}")
        };
        assert_eq!(rounds, [(1, 1, false), (2, 2, true), (3, 3, true)]);
        assert_eq!((execution.version.get(), committed.version.get()), (4, 4));
        assert_eq!(execution.context["n"], json!(4));
        assert_eq!(pauses.made(), [5, 10].map(Duration::from_millis));
    });
}

#[test]
fn attempts_and_time_have_an_end_and_the_last_error_is_the_answer() {
    with_each(|backend, side| {
        let short = RetryPolicy::default().budget(Duration::from_millis(40));
        for (policy, attempts) in [(RetryPolicy::default().attempts(3), 3), (short, 4)] {
            let mut store = prepared_again(backend, side, rivals(backend, 9));
            let pauses = Pauses::default();
            let mut asked = 0;
            let decide = |execution: &mut Execution, _: &store::Round| {
                asked += 1;
                count(execution)
            };
            let error = store.with_retry("a", &policy, &pauses, decide).unwrap_err();
            assert!(matches!(error, StoreError::Conflict { .. }), "{error}");
            assert_eq!((asked, pauses.made().len()), (attempts, attempts - 1));
        }
    });
}

fn prepared_again(backend: &Backend, side: Side, faults: Vec<(usize, Fault)>) -> Twin {
    ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
    prepared(backend, side, faults)
}

#[test]
fn a_caller_may_leave_what_it_sees_and_a_missing_row_is_no_error() {
    with_each(|backend, side| {
        let mut store = prepared(backend, side, Vec::new());
        let (policy, pauses) = (RetryPolicy::default(), Pauses::default());
        let leave = |_: &mut Execution, _: &store::Round| Decision::Leave;
        let left = store.with_retry("a", &policy, &pauses, leave).unwrap();
        assert!(matches!(left, Retried::Left(execution) if execution.version.get() == 1));
        let missing = store.with_retry("b", &policy, &pauses, leave).unwrap();
        assert_eq!(missing, Retried::Missing);
        // What trying again does not help is not tried again.
        let invalid = |_: &mut Execution, _: &store::Round| Decision::Commit(Commit::for_event(""));
        let error = store
            .with_retry("a", &policy, &pauses, invalid)
            .unwrap_err();
        assert!(matches!(error, StoreError::Invalid { .. }));
        assert!(pauses.made().is_empty());
    });
}

// C6
#[test]
fn a_connection_that_fails_anywhere_makes_one_commit_of_it() {
    with_each(|backend, side| {
        // Load, commit, and what follows: a resolution, a load.
        for batch in 0..4 {
            for lose in [false, true] {
                let fault = |lose| {
                    if lose {
                        Fault::LoseReply
                    } else {
                        Fault::DropBefore
                    }
                };
                let faults = vec![(batch, fault(lose))];
                let faults_of_two = vec![(1, Fault::LoseReply), (batch.max(2), fault(lose))];
                for faults in [faults, faults_of_two] {
                    let mut store = prepared_again(backend, side, faults);
                    let pauses = Pauses::default();
                    let decide = |execution: &mut Execution, _: &store::Round| count(execution);
                    let done = store.with_retry("a", &RetryPolicy::default(), &pauses, decide);
                    let Ok(Retried::Committed(execution, _)) = done else {
                        panic!("batch {batch}, reply lost {lose}: {done:?}")
                    };
                    let stored = side.store(backend).load("a").unwrap().unwrap();
                    assert_eq!(stored, execution);
                    assert_eq!((stored.version.get(), &stored.context["n"]), (2, &json!(1)));
                }
            }
        }
    });
}

// C6
#[test]
fn a_commit_that_others_have_overtaken_is_known_by_its_event() {
    with_each(|backend, side| {
        for with_event in [true, false] {
            let mut connection = backend.connect(Protocol::Resp2);
            let overtake: Box<dyn FnMut() + Send> = Box::new(move || rival(&mut connection, 9));
            let faults = vec![(1, Fault::LoseReply), (2, Fault::Before(overtake))];
            let mut store = prepared_again(backend, side, faults);
            let decide = |execution: &mut Execution, _: &store::Round| match count(execution) {
                Decision::Commit(_) if !with_event => Decision::Commit(Commit::new()),
                decision => decision,
            };
            let done = store.with_retry("a", &RetryPolicy::default(), &Pauses::default(), decide);
            match done {
                Ok(Retried::Overtaken(execution)) if with_event => {
                    assert_eq!(execution.version.get(), 9);
                }
                Err(StoreError::Indeterminate { .. }) if !with_event => {}
                other => panic!("{with_event}: {other:?}"),
            }
        }
    });
}

/// The events that wait for `a`, by kind.
fn waiting(backend: &Backend, side: Side) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for entry in side.store(backend).pending_outbox().unwrap() {
        *kinds.entry(entry.event.kind).or_default() += 1;
    }
    kinds
}

// C7
#[test]
fn a_cancel_with_a_random_id_that_is_sent_again_after_a_lost_reply_is_there_twice() {
    with_each(|backend, side| {
        let mut store = prepared(backend, side, vec![(1, Fault::LoseReply)]);
        for id in ["random-1", "random-2"] {
            let mut execution = store.load("a").unwrap().unwrap();
            execution.status = Status::Cancelling;
            let commit = Commit::new().emit(Some("a"), Event::new(id, "Cancel"));
            let _ = store.commit(&mut execution, &commit);
        }
        assert_eq!(
            waiting(backend, side),
            BTreeMap::from([("Cancel".to_owned(), 2)])
        );
    });
}

// C7
#[test]
fn a_request_to_cancel_leaves_one_event_whatever_reply_is_lost_and_however_often_it_is_made() {
    with_each(|backend, side| {
        for batch in 0..4 {
            let mut store = prepared_again(backend, side, vec![(batch, Fault::LoseReply)]);
            for _ in 0..3 {
                let decide = |execution: &mut Execution, _: &store::Round| {
                    request_cancel(execution, Map::new())
                };
                let (policy, pauses) = (RetryPolicy::default(), Pauses::default());
                let done = store.with_retry("a", &policy, &pauses, decide).unwrap();
                let (Retried::Committed(execution, _) | Retried::Left(execution)) = done else {
                    panic!("{done:?}")
                };
                assert_eq!(execution.status, Status::Cancelling);
            }
            assert_eq!(
                waiting(backend, side),
                BTreeMap::from([("Cancel".to_owned(), 1)])
            );
            let entry = side.store(backend).pending_outbox().unwrap().remove(0);
            assert_eq!(entry.event.id, "cancel:a:1");
        }
    });
}
