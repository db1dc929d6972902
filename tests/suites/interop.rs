//! The Python store and transport beside ours on the same keys. Needs `HAREL_PYTHON`; see `tests::peer`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use store::sync::Reopening;
use store::transport::{Lease, Priority, RedisTransport};
use store::{Commit, Event, Execution, RedisStore, SpawnIntent, StoreError, TimerOp};
use tests::peer::{Flavour, Peer};
use tests::server::{Backend, Kind};

#[path = "interop/commits.rs"]
mod commits;
#[path = "interop/fleet.rs"]
mod fleet;
#[path = "interop/known.rs"]
mod known;
#[path = "interop/records.rs"]
mod records;

const PREFIX: &str = "stm";
const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(150);

/// A server, and how to reach it from both sides.
struct Table {
    url: String,
    python: String,
    flavour: Flavour,
}

impl Table {
    fn peer(&self) -> Peer {
        self.peer_at(&self.url)
    }

    /// One that reaches the server by another way.
    fn peer_at(&self, url: &str) -> Peer {
        Peer::start(&self.python, url, PREFIX, self.flavour)
    }

    fn raw(&self) -> redis::Connection {
        let client = redis::Client::open(self.url.as_str()).unwrap();
        client.get_connection().unwrap()
    }

    fn store(&self) -> RedisStore<Reopening> {
        RedisStore::from_url(&self.url).unwrap()
    }

    fn transport(&self) -> RedisTransport<Reopening> {
        RedisTransport::from_url(&self.url).unwrap()
    }
}

/// Runs a test with each Python twin on each server that listens on a port.
fn each(test: impl Fn(&Table)) {
    let Some(python) = Peer::python() else { return };
    for kind in Backend::kinds() {
        for flavour in [Flavour::Sync, Flavour::Async] {
            if *kind == Kind::Memory {
                continue;
            }
            eprintln!("{flavour:?} on {kind:?}");
            let backend = Backend::start(*kind);
            test(&Table {
                url: backend.url().unwrap(),
                python: python.clone(),
                flavour,
            });
        }
    }
}

fn event(id: &str) -> Event {
    Event::new(id, "K")
}

fn publish(peer: &mut Peer, group: &str, id: &str, priority: i64) {
    let event = json!({ "id": id, "kind": "K" });
    let args = json!({ "group_id": group, "event": event, "priority": priority });
    peer.call("transport.publish", &args).unwrap();
}

fn their_lease(peer: &mut Peer, visibility: Duration) -> Option<Value> {
    let args = json!({ "worker_id": "python", "visibility": visibility.as_secs_f64() });
    let lease = peer.call("transport.claim", &args).unwrap();
    (!lease.is_null()).then_some(lease)
}

fn our_lease(transport: &mut RedisTransport<Reopening>, visibility: Duration) -> Option<Lease> {
    let claimed = transport.claim("rust", visibility, Priority::MIN).unwrap();
    claimed.lease
}

fn their_ack(peer: &mut Peer, lease: &Value) {
    peer.call("transport.ack", &json!({ "lease": lease }))
        .unwrap();
}

#[test]
fn each_side_takes_what_the_other_has_published() {
    each(|table| {
        let (mut peer, mut transport) = (table.peer(), table.transport());
        publish(&mut peer, "a", "e1", 3);
        transport.publish("a", &event("e2"), Priority::MIN).unwrap();
        let ours = our_lease(&mut transport, LONG).unwrap();
        assert_eq!((ours.event.id.as_str(), ours.priority.get()), ("e1", 3));
        assert_eq!(their_lease(&mut peer, LONG), None);
        assert!(transport.ack(&ours).unwrap());
        let theirs = their_lease(&mut peer, LONG).unwrap();
        assert_eq!(theirs["event"]["id"], "e2");
        assert_eq!(our_lease(&mut transport, LONG), None);
        their_ack(&mut peer, &theirs);
        assert_eq!(their_lease(&mut peer, LONG), None);
        assert_eq!(transport.queue_length("a").unwrap(), 0);
        let left = transport.backlog().unwrap();
        assert!(left.tiers.iter().all(|tier| tier.groups == 0));
    });
}

#[test]
fn a_lease_of_one_side_is_a_fence_for_the_other() {
    each(|table| {
        let (mut peer, mut transport) = (table.peer(), table.transport());
        publish(&mut peer, "a", "e", 0);
        let theirs = their_lease(&mut peer, SHORT).unwrap();
        thread::sleep(SHORT + Duration::from_millis(20));
        let ours = our_lease(&mut transport, SHORT).unwrap();
        their_ack(&mut peer, &theirs);
        let late = json!({ "lease": theirs, "delay": 5.0 });
        peer.call("transport.nack", &late).unwrap();
        assert_eq!(transport.queue_length("a").unwrap(), 1);
        thread::sleep(SHORT + Duration::from_millis(20));
        let theirs = their_lease(&mut peer, LONG).unwrap();
        assert!(!transport.ack(&ours).unwrap());
        assert!(!transport.nack(&ours, Duration::ZERO).unwrap());
        assert!(!transport.extend(&ours, LONG).unwrap());
        their_ack(&mut peer, &theirs);
        assert_eq!(transport.queue_length("a").unwrap(), 0);
    });
}

#[test]
fn each_side_respects_what_the_other_parks_and_takes_what_it_releases() {
    each(|table| {
        let (mut peer, mut transport) = (table.peer(), table.transport());
        publish(&mut peer, "a", "e", 0);
        let ours = our_lease(&mut transport, LONG).unwrap();
        assert!(transport.nack(&ours, SHORT).unwrap());
        assert_eq!(their_lease(&mut peer, LONG), None);
        thread::sleep(SHORT + Duration::from_millis(20));
        let theirs = their_lease(&mut peer, LONG).unwrap();
        let parked = json!({ "lease": theirs, "delay": SHORT.as_secs_f64() });
        peer.call("transport.nack", &parked).unwrap();
        assert_eq!(our_lease(&mut transport, LONG), None);
        thread::sleep(SHORT + Duration::from_millis(20));
        let ours = our_lease(&mut transport, LONG).unwrap();
        assert!(transport.nack(&ours, Duration::ZERO).unwrap());
        let theirs = their_lease(&mut peer, LONG).unwrap();
        peer.call("transport.nack", &json!({ "lease": theirs }))
            .unwrap();
        assert_eq!(our_lease(&mut transport, LONG).unwrap().event.id, "e");
    });
}

// C28
#[test]
fn what_makes_the_python_worker_raise_is_put_aside_by_ours() {
    each(|table| {
        let (mut peer, mut transport) = (table.peer(), table.transport());
        let mut raw = table.raw();
        redis::cmd("RPUSH")
            .arg("stm:q:a")
            .arg("not an event")
            .exec(&mut raw)
            .unwrap();
        publish(&mut peer, "a", "e", 0);
        let args = json!({ "worker_id": "python", "visibility": 0.05 });
        let error = peer.call("transport.claim", &args).unwrap_err();
        assert_eq!(error["type"], "ValidationError");
        thread::sleep(Duration::from_millis(70));
        let claimed = transport.claim("rust", LONG, Priority::MIN).unwrap();
        assert_eq!(claimed.buried.len(), 1);
        let lease = claimed.lease.unwrap();
        assert!(transport.nack(&lease, Duration::ZERO).unwrap());
        assert_eq!(their_lease(&mut peer, LONG).unwrap()["event"]["id"], "e");
    });
}

const GROUPS: usize = 6;
const EVENTS: usize = 10;

// C29
#[test]
fn a_mixed_fleet_with_wrong_clocks_drains_all_queues_in_order() {
    each(|table| {
        let mut peer = table.peer();
        let mut transport = table.transport();
        for number in 0..EVENTS {
            for group in 0..GROUPS {
                let (group, id) = (format!("g{group}"), format!("{number:02}"));
                if number % 2 == 0 {
                    publish(&mut peer, &group, &id, group.len() as i64);
                } else {
                    transport
                        .publish(&group, &event(&id), Priority::MIN)
                        .unwrap();
                }
            }
        }
        let handled = Arc::new(Mutex::new(BTreeMap::<String, Vec<String>>::new()));
        let deadline = Instant::now() + Duration::from_secs(60);
        thread::scope(|scope| {
            for offset in [60.0, -60.0] {
                let (handled, mut peer) = (Arc::clone(&handled), table.peer());
                scope.spawn(move || {
                    peer.call("clock", &json!({ "offset": offset })).unwrap();
                    while count(&handled) < GROUPS * EVENTS && Instant::now() < deadline {
                        if let Some(lease) = their_lease(&mut peer, LONG) {
                            note(&handled, &lease["group_id"], &lease["event"]["id"]);
                            their_ack(&mut peer, &lease);
                        }
                    }
                });
            }
            for _ in 0..2 {
                let (handled, mut transport) = (Arc::clone(&handled), table.transport());
                scope.spawn(move || {
                    while count(&handled) < GROUPS * EVENTS && Instant::now() < deadline {
                        let claimed = transport.claim("rust", LONG, Priority::MIN).unwrap();
                        let Some(lease) = claimed.lease else {
                            thread::sleep(Duration::from_millis(1));
                            continue;
                        };
                        let (group, id) = (lease.group_id.clone(), lease.event.id.clone());
                        note(&handled, &json!(group), &json!(id));
                        assert!(transport.ack(&lease).unwrap());
                    }
                });
            }
        });
        let in_order: Vec<String> = (0..EVENTS).map(|number| format!("{number:02}")).collect();
        let handled = handled.lock().unwrap();
        assert_eq!(handled.len(), GROUPS);
        for (group, events) in &*handled {
            assert_eq!(events, &in_order, "{group}");
        }
    });
}

fn count(handled: &Mutex<BTreeMap<String, Vec<String>>>) -> usize {
    handled.lock().unwrap().values().map(Vec::len).sum()
}

fn note(handled: &Mutex<BTreeMap<String, Vec<String>>>, group: &Value, event: &Value) {
    let (group, event) = (group.as_str().unwrap(), event.as_str().unwrap());
    let mut handled = handled.lock().unwrap();
    handled
        .entry(group.to_owned())
        .or_default()
        .push(event.to_owned());
}

#[test]
fn commits_of_both_sides_alternate_on_one_execution() {
    each(|table| {
        let (mut peer, mut store) = (table.peer(), table.store());
        let mut ours = Execution::new("x", "d");
        ours.context.insert("by".to_owned(), "rust".into());
        store.commit(&mut ours, &everything("o1")).unwrap();
        for round in 0..3_u64 {
            let theirs = peer
                .call("store.load", &json!({ "execution_id": "x" }))
                .unwrap();
            assert_eq!(theirs["version"], 2 * round + 1);
            let committed = peer
                .call("store.commit", &their_commit(theirs, round))
                .unwrap();
            assert_eq!(committed["version"], 2 * round + 2);

            // Ours is stale now, and says by how much.
            let error = store.commit(&mut ours, &Commit::new()).unwrap_err();
            let StoreError::Conflict { found, .. } = error else {
                panic!("{error}");
            };
            assert_eq!(
                found.map(|version| version.to_string()),
                Some((2 * round + 2).to_string())
            );
            ours = store.load("x").unwrap().unwrap();
            assert_eq!(ours.context["by"], "python");
            ours.context.insert("by".to_owned(), "rust".into());
            store
                .commit(&mut ours, &everything(&format!("o{}", round + 2)))
                .unwrap();
        }
        // Theirs is stale, and the same way.
        let mut stale = peer
            .call("store.load", &json!({ "execution_id": "x" }))
            .unwrap();
        stale["version"] = json!(1);
        let error = peer
            .call("store.commit", &their_commit(stale, 9))
            .unwrap_err();
        assert_eq!(
            (&error["type"], &error["found"]),
            (&json!("StoreConflict"), &json!(7))
        );
    });
}

fn everything(event_id: &str) -> Commit {
    let step = json!({ "step": event_id });
    Commit::for_event(event_id)
        .emit(Some("y"), event(&format!("{event_id}-emitted")))
        .timer(TimerOp::schedule("P", 17.5))
        .spawn(SpawnIntent::new(format!("{event_id}-child"), "R"))
        .trace(step.as_object().unwrap().clone())
}

fn their_commit(mut exe: Value, round: u64) -> Value {
    exe["context"]["by"] = json!("python");
    json!({
        "exe": exe,
        "emits": [["y", { "id": format!("p{round}-emitted"), "kind": "K" }], [null, { "id": format!("p{round}-none"), "kind": "K" }]],
        "processed_event_id": format!("p{round}"),
        "timers": [{ "action": "schedule", "path": "P", "fire_at": 17.25 }],
        "spawns": [[format!("p{round}-child"), "R", { "n": round }]],
        "trace": { "step": format!("p{round}") },
    })
}

#[test]
fn each_side_reads_and_takes_off_what_the_other_has_committed() {
    each(|table| {
        let (mut peer, mut store) = (table.peer(), table.store());
        let mut ours = Execution::new("x", "d");
        store.commit(&mut ours, &everything("o1")).unwrap();
        let theirs = peer
            .call("store.load", &json!({ "execution_id": "x" }))
            .unwrap();
        peer.call("store.commit", &their_commit(theirs, 1)).unwrap();

        let nothing = json!({});
        let told = peer.call("store.pending_outbox", &nothing).unwrap();
        let read = store.pending_outbox().unwrap();
        let ids: Vec<&str> = read.iter().map(|entry| entry.event.id.as_str()).collect();
        assert_eq!(ids, ["o1-emitted", "p1-emitted", "p1-none"]);
        let told: Vec<&Value> = told.as_array().unwrap().iter().collect();
        for (entry, told) in read.iter().zip(told) {
            assert_eq!(told["seq"], entry.seq.get());
            assert_eq!(told["target_id"], json!(entry.target_id));
            assert_eq!(told["event"]["id"], json!(entry.event.id));
        }
        let told = peer.call("store.pending_spawns", &nothing).unwrap();
        let read = store.pending_spawns().unwrap();
        assert_eq!((told.as_array().unwrap().len(), read.len()), (2, 2));
        assert_eq!(told[0]["child_id"], json!(read[0].child_id));
        assert_eq!(read[1].context["n"], 1);

        let told = peer
            .call("store.due_timers", &json!({ "now": 20.0 }))
            .unwrap();
        assert_eq!(told, json!([["x", "P", 17.25]]));
        assert!(store.delete_timer("x", "P", 17.25).unwrap());
        let told = peer
            .call("store.read_trace", &json!({ "execution_id": "x" }))
            .unwrap();
        assert_eq!(told, json!(store.read_trace("x").unwrap()));
        for id in ["o1", "p1"] {
            assert!(store.is_processed("x", id).unwrap());
            let args = json!({ "execution_id": "x", "event_id": id });
            assert_eq!(peer.call("store.is_processed", &args).unwrap(), json!(true));
        }

        assert!(store.ack_outbox(store::Seq::new(2)).unwrap());
        peer.call("store.ack_outbox", &json!({ "seq": 1 })).unwrap();
        assert_eq!(store.pending_outbox().unwrap().len(), 1);
        let purge = json!({ "execution_id": "x", "expected_version": 2 });
        assert_eq!(peer.call("store.purge", &purge).unwrap(), json!(true));
        assert_eq!(store.load("x").unwrap(), None);
        assert!(store.pending_spawns().unwrap().is_empty());
        assert!(store.read_trace("x").unwrap().is_empty());
    });
}
