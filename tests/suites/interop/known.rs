//! Faults of the Python store that it shares a server with: each is provoked at the very step where it shows, and stands
//! beside ours at the same step.

use std::time::Duration;

use serde_json::{Value, json};
use store::transport::{Priority, RedisTransport};
use store::{
    Commit, Event, Execution, RedisStore, Resolution, Seq, Status, StoreError, TimerOp, Version,
};
use tests::fleet::{Worker, member, step};
use tests::proxy::{Proxy, Way};

use crate::{LONG, PREFIX, SHORT, Table, each, event, our_lease, their_lease};

/// How long a request may take to reach the proxy.
const PATIENCE: Duration = Duration::from_secs(20);

fn arm(table: &Table, fire_at_s: f64) {
    let mut store = table.store();
    let mut execution = store
        .load("x")
        .unwrap()
        .unwrap_or_else(|| Execution::new("x", "d"));
    let commit = Commit::new().timer(TimerOp::schedule("P", fire_at_s));
    store.commit(&mut execution, &commit).unwrap();
}

fn armed(table: &Table) -> Vec<f64> {
    let due = table.store().due_timers(f64::MAX).unwrap();
    due.iter().map(|timer| timer.fire_at_s).collect()
}

// C1
#[test]
fn a_timer_that_is_moved_while_python_deletes_it_is_lost_and_kept_by_ours() {
    each(|table| {
        let proxy = Proxy::before(&table.url);
        let mut peer = table.peer_at(&proxy.url());
        arm(table, 1.0);
        proxy.hold_text(Way::Request, "ZREM");
        let args = json!({ "execution_id": "x", "path": "P", "fire_at": 1.0 });
        peer.send("store.delete_timer", &args).unwrap();
        assert!(proxy.await_held(PATIENCE));
        arm(table, 2.0);
        proxy.release();
        peer.answer().unwrap().unwrap();
        assert_eq!(armed(table), Vec::<f64>::new(), "the known fault is gone");

        arm(table, 1.0);
        let mut store = RedisStore::from_url(&proxy.url()).unwrap();
        store.load("x").unwrap();
        proxy.hold_text(Way::Request, "EVAL");
        std::thread::scope(|scope| {
            let deleting = scope.spawn(|| store.delete_timer("x", "P", 1.0));
            assert!(proxy.await_held(PATIENCE));
            arm(table, 2.0);
            proxy.release();
            assert!(!deleting.join().unwrap().unwrap());
        });
        assert_eq!(armed(table), [2.0]);
    });
}

/// The arguments of a commit of Python's with a row of ours.
fn theirs(exe: &Value, event_id: &str, emits: &Value) -> Value {
    json!({ "exe": exe, "emits": emits, "processed_event_id": event_id })
}

// C6
#[test]
fn a_lost_reply_is_a_conflict_to_python_although_it_committed_and_is_resolved_by_ours() {
    each(|table| {
        let mut store = table.store();
        store.save(&mut Execution::new("x", "d")).unwrap();
        let proxy = Proxy::before(&table.url);
        let mut peer = table.peer_at(&proxy.url());
        // So that the script of the second is known to the server, and its hash is what is held.
        let warm = json!({ "exe": { "id": "w", "definition_id": "d" }, "emits": [] });
        peer.call("store.commit", &warm).unwrap();
        let mut version = 1;
        let emits = json!([["y", { "id": "e", "kind": "K" }]]);
        // A commit with effects, and two that only change the row: as a client from a URL does it, and as one that was told
        // to send again what was not answered, and then finds its own version in the way.
        for (id, text, emits, retries, told) in [
            ("a", "EXEC", &emits, 0, ("StoreConflict", json!(null))),
            (
                "b",
                "EVALSHA",
                &json!([]),
                0,
                ("ConnectionError", json!(null)),
            ),
            ("c", "EVALSHA", &json!([]), 3, ("StoreConflict", json!(4))),
        ] {
            peer.call("retries", &json!({ "n": retries })).unwrap();
            let exe = peer.call("store.load", &json!({ "execution_id": "x" }));
            let mut exe = exe.unwrap();
            exe["context"]["by"] = json!(id);
            proxy.hold_text(Way::Reply, text);
            peer.send("store.commit", &theirs(&exe, id, emits)).unwrap();
            assert!(proxy.await_held(PATIENCE));
            proxy.sever();
            let error = peer.answer().unwrap().unwrap_err();
            version += 1;
            assert_eq!((&error["type"], &error["found"]), (&json!(told.0), &told.1));
            let stored = store.load("x").unwrap().unwrap();
            assert_eq!(stored.version, Version::new(version), "it has landed");
            assert_eq!(stored.context["by"], id);
            assert!(store.is_processed("x", id).unwrap());
        }

        let mut ours = RedisStore::from_url(&proxy.url()).unwrap();
        let mut execution = ours.load("x").unwrap().unwrap();
        proxy.hold_text(Way::Reply, "EVAL");
        let commit = Commit::for_event("ours").emit(Some("y"), event("ours-emitted"));
        let error = std::thread::scope(|scope| {
            let committing = scope.spawn(|| ours.commit(&mut execution, &commit));
            assert!(proxy.await_held(PATIENCE));
            proxy.sever();
            committing.join().unwrap().unwrap_err()
        });
        let StoreError::Indeterminate { attempt, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(execution.version, Version::new(version));
        let resolution = ours.resolve(&mut execution, &attempt.unwrap()).unwrap();
        assert!(
            matches!(resolution, Resolution::Landed(_)),
            "{resolution:?}"
        );
        assert_eq!(execution.version, Version::new(version + 1));
    });
}

/// Cancels as Python's control plane does, but with what ours adds: an id that is the same for the same decision, and a
/// look at what became of a lost reply.
fn cancel(store: &mut RedisStore<store::sync::Reopening>) {
    let mut execution = store.load("x").unwrap().unwrap();
    execution.status = Status::Cancelling;
    let id = format!("cancel:x:{}", execution.version);
    let commit = Commit::new().emit(Some("x"), Event::new(id, "Cancel"));
    match store.commit(&mut execution, &commit) {
        Err(StoreError::Indeterminate {
            attempt: Some(attempt),
            ..
        }) => {
            let resolution = store.resolve(&mut execution, &attempt).unwrap();
            assert!(
                matches!(resolution, Resolution::Landed(_)),
                "{resolution:?}"
            );
        }
        other => panic!("the reply was lost: {other:?}"),
    }
}

// C7
#[test]
fn a_cancel_with_a_lost_reply_is_doubled_by_python_and_single_by_ours() {
    each(|table| {
        for is_ours in [false, true] {
            redis::cmd("FLUSHDB").exec(&mut table.raw()).unwrap();
            let mut store = table.store();
            let mut execution = Execution::new("x", "d");
            execution.status = Status::Running;
            execution.active_path = Some("A".to_owned());
            store.save(&mut execution).unwrap();
            let proxy = Proxy::before(&table.url);
            if is_ours {
                let mut ours = RedisStore::from_url(&proxy.url()).unwrap();
                // The script that the first call tries is none to hold.
                ours.check().unwrap();
                proxy.hold_text(Way::Reply, "EVAL");
                std::thread::scope(|scope| {
                    scope.spawn(|| cancel(&mut ours));
                    assert!(proxy.await_held(PATIENCE));
                    proxy.sever();
                });
            } else {
                let mut peer = table.peer_at(&proxy.url());
                proxy.hold_text(Way::Reply, "EXEC");
                let args = json!({ "execution_id": "x" });
                peer.send("control.cancel", &args).unwrap();
                assert!(proxy.await_held(PATIENCE));
                proxy.sever();
                peer.answer().unwrap().unwrap();
            }
            let cancels = store.pending_outbox().unwrap();
            assert!(cancels.iter().all(|entry| entry.event.kind == "Cancel"));
            if is_ours {
                assert_eq!(cancels.len(), 1);
            } else {
                assert_eq!(cancels.len(), 2, "the known fault is gone");
                assert_ne!(cancels[0].event.id, cancels[1].event.id);
            }
        }
    });
}

// C10
#[test]
fn two_python_relays_deliver_one_event_twice_and_a_worker_of_ours_handles_it_once() {
    each(|table| {
        let mut worker = Worker::new(&table.url, PREFIX, LONG).unwrap();
        worker.begin(member("y", "y"), &[]).unwrap();
        let mut store = table.store();
        let commit = Commit::new().emit(Some("y"), step("e", 0));
        store
            .commit(&mut Execution::new("x", "d"), &commit)
            .unwrap();
        let mut relays = [table.peer(), table.peer()];
        let read = relays
            .each_mut()
            .map(|relay| relay.call("store.pending_outbox", &json!({})).unwrap());
        for (relay, entries) in relays.iter_mut().zip(&read) {
            let publish = json!({ "group_id": "y", "event": entries[0]["event"] });
            relay.call("transport.publish", &publish).unwrap();
            let ack = json!({ "seq": entries[0]["seq"] });
            relay.call("store.ack_outbox", &ack).unwrap();
        }
        let queued = table.transport().queue_length("y").unwrap();
        assert_eq!(queued, 2, "the known fault is gone");
        for _ in 0..2 {
            worker.turn().unwrap();
        }
        assert_eq!(table.transport().queue_length("y").unwrap(), 0);
        let handled = store.load("y").unwrap().unwrap();
        assert_eq!(handled.context["seen"], json!(["e"]));
        assert_eq!(handled.version, Version::new(2));
    });
}

// C10
#[test]
fn one_entry_that_nobody_can_read_stops_every_python_relay() {
    each(|table| {
        let mut store = table.store();
        let commit = Commit::new().emit(Some("y"), event("e"));
        store
            .commit(&mut Execution::new("x", "d"), &commit)
            .unwrap();
        redis::cmd("HSET")
            .arg("stm:outbox")
            .arg("99")
            .arg("not an entry")
            .exec(&mut table.raw())
            .unwrap();
        let mut peer = table.peer();
        let error = peer.call("store.pending_outbox", &json!({})).unwrap_err();
        assert_eq!(error["type"], "JSONDecodeError", "{error}");
        // What can be read is still to be had one by one.
        assert!(store.ack_outbox(Seq::new(1)).unwrap());
    });
}

// C27
#[test]
fn a_late_nack_of_python_takes_the_lock_of_another_worker_and_one_of_ours_does_not() {
    each(|table| {
        let proxy = Proxy::before(&table.url);
        let (mut peer, mut second) = (table.peer_at(&proxy.url()), table.transport());
        let mut third = table.transport();
        second.publish("a", &event("e"), Priority::MIN).unwrap();
        let late = their_lease(&mut peer, SHORT).unwrap();
        proxy.hold_text(Way::Request, "ZADD");
        peer.send("transport.nack", &json!({ "lease": late }))
            .unwrap();
        assert!(proxy.await_held(PATIENCE));
        std::thread::sleep(SHORT + Duration::from_millis(20));
        let held = our_lease(&mut second, LONG).unwrap();
        proxy.release();
        peer.answer().unwrap().unwrap();
        let robber = our_lease(&mut third, SHORT).expect("the known fault is gone");
        assert_eq!(robber.event.id, held.event.id);
        // The fence holds: only one of the two can take the event off.
        assert!(!second.ack(&held).unwrap());
        std::thread::sleep(SHORT + Duration::from_millis(20));

        let mut first = RedisTransport::from_url(&proxy.url()).unwrap();
        let late = our_lease(&mut first, SHORT).unwrap();
        proxy.hold_text(Way::Request, "EVAL");
        std::thread::scope(|scope| {
            let giving = scope.spawn(|| first.nack(&late, Duration::ZERO));
            assert!(proxy.await_held(PATIENCE));
            std::thread::sleep(SHORT + Duration::from_millis(20));
            let held = our_lease(&mut second, LONG).unwrap();
            proxy.release();
            assert!(!giving.join().unwrap().unwrap());
            assert_eq!(our_lease(&mut third, LONG), None);
            assert!(second.ack(&held).unwrap());
        });
    });
}
