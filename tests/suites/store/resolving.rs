//! What became of a commit whose reply was lost.

use redis::{Cmd, RedisResult, Value};
use store::{
    Attempt, Commit, CommitPath, Committed, Execution, Rejection, Resolution, Seq, Settings,
    StoreError, Version,
    op::{CommitOperation, Operation, Replies, Step},
};

use crate::{
    backend::{Backend, Protocol, ask},
    commits::{PATHS, by, everything},
    meddling::{Fault, Plan},
    naive,
    twin::{Side, with_each},
};

/// A commit of `a` whose last batch meets this fault; what it was.
fn lose(
    backend: &Backend,
    side: Side,
    path: CommitPath,
    execution: &mut Execution,
    commit: &Commit,
    fault: Fault,
) -> Attempt {
    let writes_at = match (path, commit.is_state_only()) {
        (CommitPath::Script, _) | (CommitPath::Mixed, true) => 0,
        (_, true) => 1,
        (_, false) => 2,
    };
    let plan = Plan::at(writes_at, fault);
    let mut store = side.store_with(backend, by(path), plan);
    let error = store.commit(execution, commit).unwrap_err();
    let StoreError::Indeterminate {
        attempt: Some(attempt),
        ..
    } = error
    else {
        panic!("{error}")
    };
    attempt
}

/// A server that knows the script, and an execution at version 1.
fn prepared(backend: &Backend, side: Side) -> Execution {
    ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
    let mut execution = Execution::new("a", "d");
    side.store(backend).save(&mut execution).unwrap();
    execution
}

fn version(resolution: &Resolution) -> i64 {
    match resolution {
        Resolution::Landed(committed) => committed.version.get(),
        other => panic!("{other:?}"),
    }
}

// C6
#[test]
fn naively_a_commit_that_is_sent_again_conflicts_with_itself() {
    with_each(|backend, _| {
        let mut connection = backend.connect(Protocol::Resp2);
        naive::by_script(&mut connection, &naive::row(1), 0, "e").unwrap();
        let again = naive::by_script(&mut connection, &naive::row(1), 0, "e").unwrap_err();
        assert!(again.to_string().contains("STM_CONFLICT:1"), "{again}");
    });
}

// C6
#[test]
fn what_landed_is_found_and_the_document_goes_on_from_there() {
    with_each(|backend, side| {
        for path in PATHS {
            for commit in [Commit::new(), Commit::for_event("e"), everything("e")] {
                let mut execution = prepared(backend, side);
                let attempt = lose(
                    backend,
                    side,
                    path,
                    &mut execution,
                    &commit,
                    Fault::LoseReply,
                );
                assert_eq!(execution.version.get(), 1);
                let mut store = side.store(backend);
                let resolution = store.resolve(&mut execution, &attempt).unwrap();
                assert_eq!(
                    (version(&resolution), execution.version.get()),
                    (2, 2),
                    "{path:?}"
                );
                let Resolution::Landed(Committed { outbox, .. }) = resolution else {
                    panic!("landed")
                };
                let is_known = path != CommitPath::Script && !commit.is_state_only();
                assert_eq!(outbox, vec![Seq::new(1); usize::from(is_known)], "{path:?}");
                store.save(&mut execution).unwrap();
            }
        }
    });
}

// C6
#[test]
fn what_did_not_land_is_found_and_the_document_may_be_committed_again() {
    with_each(|backend, side| {
        for path in PATHS {
            for commit in [Commit::new(), everything("e")] {
                let mut execution = prepared(backend, side);
                let attempt = lose(
                    backend,
                    side,
                    path,
                    &mut execution,
                    &commit,
                    Fault::DropBefore,
                );
                let mut store = side.store(backend);
                let resolution = store.resolve(&mut execution, &attempt).unwrap();
                let expected = Resolution::NotLanded {
                    found: Some(Version::new(1)),
                    is_final: false,
                };
                assert_eq!(
                    (resolution, execution.version.get()),
                    (expected, 1),
                    "{path:?}"
                );
                store.commit(&mut execution, &commit).unwrap();
            }
        }
        let mut fresh = Execution::new("new", "d");
        let path = CommitPath::Script;
        let attempt = lose(
            backend,
            side,
            path,
            &mut fresh,
            &everything("e"),
            Fault::DropBefore,
        );
        let resolution = side.store(backend).resolve(&mut fresh, &attempt).unwrap();
        let expected = Resolution::NotLanded {
            found: None,
            is_final: false,
        };
        assert_eq!(resolution, expected);
    });
}

#[test]
fn a_rival_at_the_same_version_is_not_taken_for_it() {
    with_each(|backend, side| {
        let mut execution = prepared(backend, side);
        let mut rival = execution.clone();
        let path = CommitPath::Script;
        let commit = Commit::for_event("e");
        let attempt = lose(
            backend,
            side,
            path,
            &mut execution,
            &commit,
            Fault::DropBefore,
        );
        let mut store = side.store(backend);
        rival.outcome = Some("another".to_owned());
        store.commit(&mut rival, &Commit::for_event("f")).unwrap();
        let lost = Resolution::NotLanded {
            found: Some(Version::new(2)),
            is_final: true,
        };
        assert_eq!(store.resolve(&mut execution, &attempt).unwrap(), lost);
        assert_eq!(execution.version.get(), 1);
    });
}

#[test]
fn a_rival_that_wrote_the_same_row_for_another_event_is_not_taken_for_it() {
    with_each(|backend, side| {
        let mut execution = prepared(backend, side);
        let mut rival = execution.clone();
        let path = CommitPath::Script;
        let attempt = lose(
            backend,
            side,
            path,
            &mut execution,
            &everything("e"),
            Fault::DropBefore,
        );
        let mut store = side.store(backend);
        store.commit(&mut rival, &everything("f")).unwrap();
        // The bytes are the same; the mark is not there.
        let resolution = store.resolve(&mut execution, &attempt).unwrap();
        let lost = Resolution::NotLanded {
            found: Some(Version::new(2)),
            is_final: true,
        };
        assert_eq!((resolution, execution.version.get()), (lost, 1));
    });
}

#[test]
fn what_others_have_written_over_is_told_by_the_mark_or_not_at_all() {
    with_each(|backend, side| {
        let overtaken = |is_event_processed| Resolution::Overtaken {
            found: Some(Version::new(3)),
            is_event_processed,
        };
        let never = Resolution::NotLanded {
            found: Some(Version::new(3)),
            is_final: true,
        };
        for (commit, fault, expected) in [
            (
                Commit::for_event("e"),
                Fault::LoseReply,
                overtaken(Some(true)),
            ),
            (Commit::for_event("e"), Fault::DropBefore, never),
            (Commit::new(), Fault::LoseReply, overtaken(None)),
            (Commit::new(), Fault::DropBefore, overtaken(None)),
        ] {
            let mut execution = prepared(backend, side);
            let path = CommitPath::Script;
            let attempt = lose(backend, side, path, &mut execution, &commit, fault);
            let mut store = side.store(backend);
            while store.load("a").unwrap().unwrap().version.get() < 3 {
                let mut other = store.load("a").unwrap().unwrap();
                store.save(&mut other).unwrap();
            }
            let resolution = store.resolve(&mut execution, &attempt).unwrap();
            assert_eq!((resolution, execution.version.get()), (expected, 1));
        }
    });
}

#[test]
fn a_row_that_is_gone_or_older_than_before_tells_nothing_or_that_it_is_lost() {
    with_each(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        let mut execution = prepared(backend, side);
        side.store(backend).save(&mut execution).unwrap();
        let path = CommitPath::Script;
        let commit = Commit::for_event("e");
        let attempt = lose(
            backend,
            side,
            path,
            &mut execution,
            &commit,
            Fault::LoseReply,
        );
        let mut store = side.store(backend);
        // As after a fail-over to a replica that had not got everything.
        ask(&mut connection, &["SET", "stm:exe:a", &naive::row(1)]);
        let lost = Resolution::NotLanded {
            found: Some(Version::new(1)),
            is_final: false,
        };
        assert_eq!(store.resolve(&mut execution, &attempt).unwrap(), lost);
        ask(&mut connection, &["DEL", "stm:exe:a", "stm:processed:a"]);
        let gone = Resolution::Overtaken {
            found: None,
            is_event_processed: Some(false),
        };
        assert_eq!(store.resolve(&mut execution, &attempt).unwrap(), gone);
        for odd in ["not json", "{}"] {
            ask(&mut connection, &["SET", "stm:exe:a", odd]);
            let error = store.resolve(&mut execution, &attempt).unwrap_err();
            assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
        }
    });
}

#[test]
fn a_request_that_is_still_on_its_way_is_fenced_by_the_next_commit() {
    with_each(|backend, side| {
        let mut execution = prepared(backend, side);
        let commit = everything("e");
        let mut operation =
            CommitOperation::new(&Settings::default(), &execution, &commit).unwrap();
        let attempt = operation.attempt();
        let Step::Send(batch) = operation.step(Replies::Start) else {
            panic!("nothing to send")
        };
        let request: Cmd = batch.commands().next().unwrap().clone();
        let mut store = side.store(backend);
        let mut late = backend.connect(Protocol::Resp2);
        // It arrives after the look.
        let open = Resolution::NotLanded {
            found: Some(Version::new(1)),
            is_final: false,
        };
        assert_eq!(store.resolve(&mut execution, &attempt).unwrap(), open);
        let _: Value = request.query(&mut late).unwrap();
        let error = store.commit(&mut execution.clone(), &commit).unwrap_err();
        assert!(matches!(error, StoreError::Conflict { .. }), "{error}");
        assert_eq!(
            version(&store.resolve(&mut execution, &attempt).unwrap()),
            2
        );

        // It arrives after the next commit, and has no effect.
        let mut operation =
            CommitOperation::new(&Settings::default(), &execution, &everything("f")).unwrap();
        let attempt = operation.attempt();
        let Step::Send(batch) = operation.step(Replies::Start) else {
            panic!("nothing to send")
        };
        let mut next = execution.clone();
        store.commit(&mut next, &Commit::for_event("g")).unwrap();
        let request: Cmd = batch.commands().next().unwrap().clone();
        let refused: RedisResult<Value> = request.query(&mut late);
        assert!(refused.is_err());
        let never = Resolution::NotLanded {
            found: Some(Version::new(3)),
            is_final: true,
        };
        assert_eq!(store.resolve(&mut execution, &attempt).unwrap(), never);
    });
}

#[test]
fn another_document_is_not_resolved_and_a_lost_look_may_be_repeated() {
    with_each(|backend, side| {
        let mut execution = prepared(backend, side);
        let path = CommitPath::Script;
        let commit = everything("e");
        let attempt = lose(
            backend,
            side,
            path,
            &mut execution,
            &commit,
            Fault::LoseReply,
        );
        let mut moved = execution.clone();
        moved.version = Version::new(2);
        let mut store = side.store(backend);
        for mut other in [Execution::new("b", "d"), moved] {
            let error = store.resolve(&mut other, &attempt).unwrap_err();
            assert!(
                matches!(
                    error,
                    StoreError::Invalid {
                        reason: Rejection::OtherDocument,
                        ..
                    }
                ),
                "{error}"
            );
        }
        let mut faulty = side.store_with(backend, by(path), Plan::at(0, Fault::LoseReply));
        let error = faulty.resolve(&mut execution, &attempt).unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
        assert_eq!(
            version(&faulty.resolve(&mut execution, &attempt).unwrap()),
            2
        );
        let text = format!("{attempt:?}");
        assert!(!text.contains("definition_id"), "{text}");
    });
}
