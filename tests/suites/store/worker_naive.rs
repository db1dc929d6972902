//! How workers lose what a crash leaves, and start children under the wrong definition.

use store::{Commit, Event, Execution, SpawnIntent};

use crate::{
    backend::Backend,
    meddling::{Fault, Plan},
    twin::{Side, Twin, with_each},
    workers::{Hand, Ledger, left, log, options, publish, seed},
};

/// A worker as the Python one is: it relays after a commit of its own that emitted or spawned, and only then. Its
/// definition is the one that it was started with.
fn naive_turn(store: &mut Twin, backend: &Backend, event: &str, definition: &str, crashes: bool) {
    let (mut execution, is_processed) = store.load_for_event("a", event).unwrap().unwrap();
    if is_processed {
        return;
    }
    let commit = Commit::for_event(event)
        .emit(Some("b"), Event::new(format!("{event}>b"), "Note"))
        .spawn(SpawnIntent::new(format!("a*{event}"), "root"));
    store.commit(&mut execution, &commit).unwrap();
    if crashes {
        return;
    }
    for spawn in store.pending_spawns().unwrap() {
        let mut child = Execution::new(spawn.child_id, definition);
        store.save(&mut child).unwrap();
        store.ack_spawn(spawn.seq).unwrap();
    }
    for entry in store.pending_outbox().unwrap() {
        if let Some(target) = &entry.target_id {
            publish(backend, target, &entry.event.id, "Note");
        }
        store.ack_outbox(entry.seq).unwrap();
    }
}

// C8
#[test]
fn what_a_crash_leaves_is_stranded_if_only_commits_are_relayed() {
    with_each(|backend, side| {
        seed(backend, "a", "d");
        let mut store = side.store(backend);
        naive_turn(&mut store, backend, "1", "d", true);
        // The event comes again, and is acknowledged as handled.
        for _ in 0..5 {
            naive_turn(&mut store, backend, "1", "d", false);
        }
        let waiting = store.waiting().unwrap();
        assert_eq!((waiting.outbox, waiting.spawns), (1, 1));
        assert!(store.load("a*1").unwrap().is_none());
    });
}

// C8
#[test]
fn what_a_crash_leaves_is_swept_up_by_a_worker_that_has_nothing_else_to_do() {
    with_each(|backend, side| {
        seed(backend, "a", "d");
        seed(backend, "b", "d");
        let mut idle = Hand::new(backend, side, "idle");
        assert!(idle.turn().unwrap().is_idle());
        naive_turn(&mut side.store(backend), backend, "1", "d", true);
        idle.work();
        assert_eq!(log(backend, "b"), ["1>b"]);
        assert_eq!(log(backend, "a*1"), ["start:a*1:0"]);
        assert!(left(backend).is_empty());
    });
}

// C9
#[test]
fn a_relay_that_brings_its_own_definition_starts_the_children_of_others_with_it() {
    with_each(|backend, side| {
        seed(backend, "a", "One");
        let mut store = side.store(backend);
        let spawn = Commit::new().spawn(SpawnIntent::new("child", "Q"));
        store
            .commit(&mut Execution::new("two", "Two"), &spawn)
            .unwrap();
        naive_turn(&mut store, backend, "1", "One", false);
        assert_eq!(store.load("child").unwrap().unwrap().definition_id, "One");
    });
}

// C9
#[test]
fn a_child_runs_its_parents_definition_and_waits_for_a_worker_that_knows_it() {
    with_each(|backend, side| {
        for (id, definition) in [("one", "One"), ("two", "Two")] {
            let mut parent = Execution::new(id, definition);
            let spawn = Commit::new().spawn(SpawnIntent::new(format!("{id}*"), "Q"));
            side.store(backend).commit(&mut parent, &spawn).unwrap();
        }
        let knows = |only| Ledger {
            only: Some(only),
            ..Ledger::default()
        };
        let mut one = Hand::with(backend, side, options("one"), knows("One"), Plan::none());
        one.work();
        let mut store = side.store(backend);
        assert_eq!(store.load("one*").unwrap().unwrap().definition_id, "One");
        assert!(store.load("two*").unwrap().is_none());
        assert_eq!(store.waiting().unwrap().spawns, 1);
        let mut two = Hand::with(backend, side, options("two"), knows("Two"), Plan::none());
        two.work();
        assert_eq!(store.load("two*").unwrap().unwrap().definition_id, "Two");
        assert_eq!(store.waiting().unwrap().spawns, 0);
    });
}

// C6
#[test]
fn a_child_whose_creation_was_not_answered_is_created_once() {
    with_each(|backend, side| {
        for batch in 0..14 {
            let mut connection = backend.connect(crate::backend::Protocol::Resp2);
            crate::backend::ask(&mut connection, &["FLUSHDB"]);
            let mut parent = Execution::new("a", "d");
            let spawn = Commit::new().spawn(SpawnIntent::new("c", ""));
            Side::Sync
                .store(backend)
                .commit(&mut parent, &spawn)
                .unwrap();
            let plan = Plan::at(batch, Fault::LoseReply);
            let mut worker = Hand::with(backend, side, options("w"), Ledger::default(), plan);
            for _ in 0..4 {
                let _ = worker.turn();
            }
            crate::workers::expire(backend, &["c"]);
            worker.work();
            assert_eq!(log(backend, "c"), ["start:c:0"], "batch {batch}");
            assert!(
                left(backend).is_empty(),
                "batch {batch}: {:?}",
                left(backend)
            );
        }
    });
}
