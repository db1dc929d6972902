//! Lost connections: what the caller is told, and whether it is true.

use std::{future::Future, task::Poll, time::Duration};

use serde_json::json;
use store::{
    AsyncRedisStore, Commit, CommitPath, Committed, Execution, RedisStore, Seq, Settings,
    StoreError, TimerOp, aio, sync,
};
use tokio::runtime::Builder;

use crate::{
    backend::{Backend, Protocol, ask, on_each, on_each_alone},
    commits::{by, dump, everything},
    keyspace::Keyspace,
    meddling::{Fault, Meddling, Plan},
    twin::{Side, Twin, with_each},
};

/// Batches of a commit with effects.
const COUNTERS: usize = 0;
const WATCH: usize = 1;
const EXEC: usize = 2;

#[test]
fn a_lost_reply_to_exec_is_indeterminate_and_the_commit_is_there() {
    with_each(|backend, side| {
        let mut store = side.store_with(
            backend,
            by(CommitPath::Mixed),
            Plan::at(EXEC, Fault::LoseReply),
        );
        let mut execution = Execution::new("a", "d");
        let error = store.commit(&mut execution, &everything("e")).unwrap_err();
        assert!(
            matches!(&error, StoreError::Indeterminate { id, expected: Some(v), .. } if id == "a" && v.get() == 0),
            "{error}"
        );
        assert_eq!(execution.version.get(), 0);
        assert_eq!(store.load("a").unwrap().unwrap().version.get(), 1);
        assert_eq!(store.pending_outbox().unwrap().len(), 1);
    });
}

#[test]
fn a_connection_lost_before_exec_is_indeterminate_and_nothing_is_there() {
    with_each(|backend, side| {
        let mut store = side.store_with(
            backend,
            by(CommitPath::Mixed),
            Plan::at(EXEC, Fault::DropBefore),
        );
        let mut execution = Execution::new("a", "d");
        let error = store.commit(&mut execution, &everything("e")).unwrap_err();
        assert!(matches!(error, StoreError::Indeterminate { .. }), "{error}");
        assert_eq!(
            (execution.version.get(), store.load("a").unwrap()),
            (0, None)
        );
        // The same object commits: its version was never bumped.
        store.commit(&mut execution, &everything("e")).unwrap();
        assert_eq!(execution.version.get(), 1);
    });
}

#[test]
fn a_lost_reply_to_the_script_is_indeterminate_and_never_a_conflict() {
    with_each(|backend, side| {
        for (fault, landed) in [(Fault::LoseReply, true), (Fault::DropBefore, false)] {
            ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
            // So that the first batch is the one that writes.
            side.store(backend)
                .save(&mut Execution::new("other", "d"))
                .unwrap();
            let mut store = side.store_with(backend, Settings::default(), Plan::at(0, fault));
            let mut execution = Execution::new("a", "d");
            let error = store
                .commit(&mut execution, &Commit::for_event("e"))
                .unwrap_err();
            assert!(matches!(error, StoreError::Indeterminate { .. }), "{error}");
            assert_eq!(execution.version.get(), 0);
            assert_eq!(store.load("a").unwrap().is_some(), landed);
            assert_eq!(store.is_processed("a", "e").unwrap(), landed);
        }
    });
}

#[test]
fn what_is_lost_before_the_writes_is_io_and_may_be_repeated() {
    with_each(|backend, side| {
        for batch in [COUNTERS, WATCH] {
            for fault in [Fault::LoseReply, Fault::DropBefore] {
                ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
                let at = format!("batch {batch}, {fault:?}");
                let mut store =
                    side.store_with(backend, by(CommitPath::Mixed), Plan::at(batch, fault));
                let mut execution = Execution::new("a", "d");
                let error = store.commit(&mut execution, &everything("e")).unwrap_err();
                assert!(matches!(error, StoreError::Io { .. }), "{at}: {error}");
                let mut left = dump(backend);
                left.retain(|key, _| !key.0.windows(4).any(|window| window == b":seq"));
                assert_eq!(
                    (execution.version.get(), left),
                    (0, Keyspace::new()),
                    "{at}"
                );
                store.commit(&mut execution, &everything("e")).unwrap();
            }
        }
    });
}

#[test]
fn a_watch_left_by_a_lost_reply_does_not_reach_the_next_commit() {
    with_each(|backend, side| {
        let settings = Settings::default().commit_path(CommitPath::Watch);
        let mut execution = Execution::new("a", "d");
        side.store(backend).save(&mut execution).unwrap();
        // WATCH and GET run, their replies are lost, and the connection lives on: as after a time-out.
        let mut store = side.store_with(backend, settings, Plan::at(0, Fault::LoseReply));
        assert!(matches!(
            store.save(&mut execution.clone()),
            Err(StoreError::Io { .. })
        ));
        side.store(backend).save(&mut execution).unwrap();
        store.save(&mut Execution::new("b", "d")).unwrap();
    });
}

#[test]
fn a_watch_stays_suspected_until_unwatch_was_answered() {
    with_each(|backend, side| {
        let settings = Settings::default().commit_path(CommitPath::Watch);
        let mut execution = Execution::new("a", "d");
        side.store(backend).save(&mut execution).unwrap();
        // The watch is lost, then the UNWATCH before the second attempt is.
        let plan = Plan::at(0, Fault::LoseReply).and(1, Fault::DropBefore);
        let mut store = side.store_with(backend, settings, plan);
        for _ in 0..2 {
            assert!(matches!(
                store.save(&mut execution.clone()),
                Err(StoreError::Io { .. })
            ));
        }
        side.store(backend).save(&mut execution).unwrap();
        store.save(&mut Execution::new("b", "d")).unwrap();
    });
}

#[test]
fn a_conflict_stays_a_conflict_when_unwatch_gets_no_reply() {
    with_each(|backend, side| {
        side.store(backend)
            .save(&mut Execution::new("a", "d"))
            .unwrap();
        let settings = Settings::default().commit_path(CommitPath::Watch);
        let mut store = side.store_with(backend, settings, Plan::at(1, Fault::DropBefore));
        let error = store.save(&mut Execution::new("a", "d")).unwrap_err();
        assert!(matches!(error, StoreError::Conflict { .. }), "{error}");
        let mut loaded = store.load("a").unwrap().unwrap();
        store.save(&mut loaded).unwrap();
    });
}

#[test]
fn a_lost_trace_step_is_indeterminate_and_other_calls_may_be_repeated() {
    with_each(|backend, side| {
        let step = json!({"k": 1}).as_object().unwrap().clone();
        let faulty = |batch| {
            side.store_with(
                backend,
                Settings::default(),
                Plan::at(batch, Fault::LoseReply),
            )
        };
        let error = faulty(1).append_trace("a", &step).unwrap_err();
        assert!(matches!(error, StoreError::Indeterminate { .. }), "{error}");
        assert_eq!(side.store(backend).read_trace("a").unwrap().len(), 1);
        assert!(matches!(
            faulty(0).append_trace("a", &step),
            Err(StoreError::Io { .. })
        ));
        assert_eq!(side.store(backend).read_trace("a").unwrap().len(), 1);
        assert!(matches!(faulty(0).load("a"), Err(StoreError::Io { .. })));
        assert!(matches!(
            faulty(0).ack_outbox(Seq::new(1)),
            Err(StoreError::Io { .. })
        ));
        assert!(matches!(
            faulty(0).delete_timer("a", "P", 1.0),
            Err(StoreError::Io { .. })
        ));
        assert!(matches!(
            faulty(0).pending_spawns(),
            Err(StoreError::Io { .. })
        ));
    });
}

#[test]
fn an_abandoned_commit_leaves_no_watch_behind() {
    on_each(|backend| {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let settings = Settings::default().commit_path(CommitPath::Watch);
            let connection = backend.connect_async(Protocol::Resp3).await;
            let connection = Meddling::new(connection, Plan::at(0, Fault::Hang));
            let mut store = AsyncRedisStore::with_settings(connection, settings.clone());
            let mut execution = Execution::new("a", "d");
            let abandoned =
                tokio::time::timeout(Duration::from_millis(50), store.save(&mut execution)).await;
            assert!(abandoned.is_err());
            assert_eq!(execution.version.get(), 0);
            let rival = backend.connect_async(Protocol::Resp3).await;
            AsyncRedisStore::with_settings(rival, settings)
                .save(&mut execution)
                .await
                .unwrap();
            store.save(&mut Execution::new("b", "d")).await.unwrap();
        });
    });
}

#[test]
fn a_store_that_shares_its_connection_watches_on_another() {
    on_each(|backend| {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let connect = || async {
                Ok(Meddling::new(
                    backend.connect_async(Protocol::Resp3).await,
                    Plan::none(),
                ))
            };
            // The shared one would fail with its second batch: everything that is pinned goes elsewhere.
            let shared = Meddling::new(
                backend.connect_async(Protocol::Resp3).await,
                Plan::at(1, Fault::DropBefore),
            );
            let connections = aio::Sharing::new(shared, connect);
            let mut store = AsyncRedisStore::with_connections(connections, by(CommitPath::Mixed));
            let mut execution = Execution::new("a", "d");
            let commit = Commit::new().timer(TimerOp::schedule("P", 1.0));
            store.commit(&mut execution, &commit).await.unwrap();
            store.commit(&mut execution, &commit).await.unwrap();
            store.commit(&mut execution, &commit).await.unwrap();
            assert!(store.load("a").await.is_ok());
            assert!(matches!(store.load("a").await, Err(StoreError::Io { .. })));
        });
    });
}

#[test]
fn futures_of_the_async_twin_can_be_sent() {
    fn sendable<F: Future + Send>(future: F) -> F {
        future
    }
    let mut store = AsyncRedisStore::from_url("redis://127.0.0.1:1/").unwrap();
    let (mut execution, commit) = (Execution::new("a", "d"), everything("e"));
    let mut future = Box::pin(sendable(store.commit(&mut execution, &commit)));
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let error = runtime.block_on(async {
        let first =
            std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending()))
                .await;
        assert!(first);
        future.await.unwrap_err()
    });
    // Nobody listens there, so nothing was sent.
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
}

#[test]
fn a_server_that_is_not_there_is_io_for_both_twins() {
    let mut execution = Execution::new("a", "d");
    let mut store = RedisStore::from_url("redis://127.0.0.1:1/").unwrap();
    for commit in [Commit::for_event("e"), everything("e")] {
        assert!(matches!(
            store.commit(&mut execution, &commit),
            Err(StoreError::Io { .. })
        ));
    }
    assert!(matches!(store.load("a"), Err(StoreError::Io { .. })));
    assert!(
        RedisStore::from_url("nonsense").is_err() && AsyncRedisStore::from_url("nonsense").is_err()
    );
    assert_eq!(execution.version.get(), 0);
}

#[test]
fn a_client_that_opens_a_connection_for_each_request_may_not_watch() {
    let client = redis::Client::open("redis://127.0.0.1:1/").unwrap();
    let mut store = RedisStore::with_settings(client, by(CommitPath::Mixed));
    let commit = Commit::new().timer(TimerOp::cancel("P"));
    let error = store
        .commit(&mut Execution::new("a", "d"), &commit)
        .unwrap_err();
    assert!(matches!(error, StoreError::Invalid { .. }), "{error}");
}

/// How long the server is paused, how long the store waits for it, and how long a test waits for the server.
const PAUSE: Duration = Duration::from_millis(400);
const PATIENCE: Duration = Duration::from_millis(100);
const AFTERWARDS: Duration = Duration::from_millis(600);

/// What must be true after a commit whose reply did not come in time.
fn timed_out(result: &Result<Committed, StoreError>, execution: &Execution, mut reader: Twin) {
    assert!(
        matches!(result, Err(StoreError::Indeterminate { .. })),
        "{result:?}"
    );
    assert_eq!(execution.version.get(), 1);
    std::thread::sleep(AFTERWARDS);
    let stored = reader.load("a").unwrap().unwrap().version.get();
    assert!(stored == 1 || stored == 2, "{stored}");
}

fn pause(backend: &Backend) {
    let pause = PAUSE.as_millis().to_string();
    ask(
        &mut backend.connect(Protocol::Resp2),
        &["CLIENT", "PAUSE", &pause, "WRITE"],
    );
}

#[test]
fn a_reply_that_does_not_come_in_time_is_indeterminate_and_the_store_goes_on() {
    on_each_alone(|backend| {
        let Some(client) = backend.client(Protocol::Resp3) else {
            return;
        };
        let connections = sync::Reopening::new(client).response_timeout(PATIENCE);
        let mut store = RedisStore::with_connections(connections, Settings::default());
        let mut execution = Execution::new("a", "d");
        store.save(&mut execution).unwrap();
        pause(backend);
        let result = store.commit(&mut execution, &Commit::for_event("e"));
        timed_out(&result, &execution, Side::Sync.store(backend));
        let mut loaded = store.load("a").unwrap().unwrap();
        store.commit(&mut loaded, &everything("f")).unwrap();
    });
}

#[test]
fn a_reply_that_does_not_come_in_time_is_indeterminate_for_the_async_twin_too() {
    on_each_alone(|backend| {
        let Some(client) = backend.client(Protocol::Resp3) else {
            return;
        };
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let connections = aio::Reopening::new(client).response_timeout(PATIENCE);
        let mut store = AsyncRedisStore::with_connections(connections, Settings::default());
        let mut execution = Execution::new("a", "d");
        runtime.block_on(store.save(&mut execution)).unwrap();
        pause(backend);
        let result = runtime.block_on(store.commit(&mut execution, &Commit::for_event("e")));
        timed_out(&result, &execution, Side::Async.store(backend));
        let mut loaded = runtime.block_on(store.load("a")).unwrap().unwrap();
        runtime
            .block_on(store.commit(&mut loaded, &everything("f")))
            .unwrap();
    });
}
