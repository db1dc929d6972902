//! Workers over the partitions of a sharded store.

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;
use store::{
    Event, Execution, Settings, StoreError,
    sharded::{Partitions, ShardedStore},
    sync::Exclusive,
    transport::Priority,
    worker::{Handling, Turn},
};

use crate::{
    backend::{Backend, Protocol, SyncConnection, ask},
    meddling::{Fault, Plan},
    twin::{Side, with_each},
    workers::{Hand, options},
};

pub(crate) const COUNT: u16 = 4;

fn open(backend: &Backend) -> ShardedStore<Exclusive<SyncConnection>> {
    let connections = Exclusive::new(backend.connect(Protocol::Resp3));
    let partitions = Partitions::new(COUNT).unwrap();
    ShardedStore::open(connections, &Settings::default(), partitions).unwrap()
}

fn hand(backend: &Backend, side: Side, plan: Plan) -> Hand {
    let partitions = Partitions::new(COUNT).unwrap();
    Hand::sharded(backend, side, options("w"), partitions, plan)
}

/// Turns until all partitions are idle; an error ends them.
fn work(worker: &mut Hand) -> (Vec<Turn>, Option<StoreError>) {
    let mut turns = Vec::new();
    for _ in 0..400 {
        match worker.turn() {
            Ok(turn) if !turn.wait.is_zero() => return (turns, None),
            Ok(turn) => turns.push(turn),
            Err(error) => return (turns, Some(error)),
        }
    }
    panic!("there is always something to do: {turns:?}")
}

fn log(store: &mut ShardedStore<Exclusive<SyncConnection>>, id: &str) -> Vec<String> {
    let execution = store.load(id).unwrap();
    let execution = execution.unwrap_or_else(|| panic!("no {id}"));
    let log = execution.context.get("log").and_then(Value::as_array);
    let log = log.into_iter().flatten().filter_map(Value::as_str);
    log.map(str::to_owned).collect()
}

/// Keys of outboxes, spawns, timers, queues and leases, and of groups without a lock that have a time to come.
fn left(backend: &Backend) -> Vec<String> {
    let mut connection = backend.connect(Protocol::Resp2);
    let keys: Vec<String> = redis::from_redis_value(ask(&mut connection, &["KEYS", "*"])).unwrap();
    let waits = |key: &String| {
        let (_, kind) = key.split_once("}:").unwrap_or_default();
        let kinds = ["q:", "lock:", "ready:"];
        ["outbox", "spawns", "timers", "prio"].contains(&kind)
            || kinds.iter().any(|known| kind.starts_with(known))
    };
    keys.into_iter().filter(waits).collect()
}

/// Ends all leases.
fn expire(backend: &Backend) {
    let mut connection = backend.connect(Protocol::Resp2);
    for key in left(backend) {
        if key.contains(":lock:") {
            ask(&mut connection, &["DEL", &key]);
        }
    }
}

fn prepare(backend: &Backend) {
    ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
    let mut store = open(backend);
    for id in ["a", "b"] {
        store.save(&mut Execution::new(id, "d")).unwrap();
    }
    let event = Event::new("3", "All");
    store.publish("a", &event, Priority::MIN).unwrap();
}

fn assert_whole(backend: &Backend, about: &str) {
    let mut store = open(backend);
    let expected = [
        ("a", vec!["3", "timeout:a:p:1.5"]),
        ("b", vec!["3>b"]),
        ("a*3", vec!["start:a*3:0"]),
    ];
    for (id, events) in expected {
        assert_eq!(log(&mut store, id), events, "{id}, {about}");
    }
    assert!(left(backend).is_empty(), "{about}: {:?}", left(backend));
}

#[test]
fn events_and_children_cross_partitions() {
    let partitions = Partitions::new(COUNT).unwrap();
    let homes: BTreeSet<u16> = ["a", "b", "a*3"]
        .map(|id| partitions.of(id).number())
        .into();
    assert_eq!(homes.len(), 3, "each lies in another one: {homes:?}");
    with_each(|backend, side| {
        prepare(backend);
        let mut worker = hand(backend, side, Plan::none());
        let (turns, error) = work(&mut worker);
        assert!(error.is_none(), "{error:?}");
        let committed = turns
            .iter()
            .filter(|turn| turn.handled == Some(Handling::Committed));
        assert_eq!(committed.count(), 4);
        assert_whole(backend, "one worker");
        assert_eq!(worker.status_of("a*3").unwrap().version.get(), 2);
    });
}

#[test]
fn each_partition_has_its_turn_and_a_pause_comes_when_all_are_idle() {
    with_each(|backend, side| {
        let mut store = open(backend);
        let mut ids: Vec<String> = Vec::new();
        // Two executions in each partition, with two events each.
        for partition in store.partitions().iter() {
            let names = (0..).map(|number| format!("x{number}"));
            let here = names.filter(|name| store.partition_of(name) == partition);
            ids.extend(here.take(2));
        }
        for id in &ids {
            store.save(&mut Execution::new(id, "d")).unwrap();
            for event in ["1", "2"] {
                let event = Event::new(event, "Note");
                store.publish(id, &event, Priority::MIN).unwrap();
            }
        }
        let mut worker = hand(backend, side, Plan::none());
        let mut handled = Vec::new();
        let done = |store: &mut ShardedStore<_>| {
            let counts = ids.chunks(2).map(|pair| {
                let logs = pair.iter().map(|id| log(store, id).len());
                logs.sum::<usize>()
            });
            counts.collect::<Vec<_>>()
        };
        for round in 1..=4 {
            for _ in 0..COUNT {
                let turn = worker.turn().unwrap();
                assert_eq!(turn.wait, Duration::ZERO);
                handled.extend(turn.handled);
            }
            assert_eq!(done(&mut store), [round; COUNT as usize]);
        }
        assert_eq!(handled.len(), 4 * usize::from(COUNT));
        let waits: Vec<bool> = (0..2 * COUNT)
            .map(|_| worker.turn().unwrap().wait.is_zero())
            .collect();
        assert_eq!(waits, [true, true, true, false, true, true, true, false]);
    });
}

#[test]
fn an_event_of_a_worker_that_dies_at_any_command_has_all_its_effects_once_over_partitions() {
    with_each(|backend, side| {
        let faults: [fn() -> Fault; 2] = [|| Fault::DropBefore, || Fault::LoseReply];
        for fault in faults {
            let mut batch = 1;
            loop {
                prepare(backend);
                let plan = (batch + 1..batch + 500)
                    .fold(Plan::at(batch, fault()), |plan, batch| {
                        plan.and(batch, Fault::DropBefore)
                    });
                let (_, dead) = work(&mut hand(backend, side, plan));
                expire(backend);
                let (_, error) = work(&mut hand(backend, side, Plan::none()));
                assert!(error.is_none(), "{error:?}");
                assert_whole(backend, &format!("batch {batch}, {:?}", fault()));
                if dead.is_none() {
                    break;
                }
                batch += 1;
            }
            assert!(batch > 20, "only {batch} commands");
        }
    });
}

#[test]
fn what_dead_workers_left_in_any_partition_is_recovered() {
    with_each(|backend, side| {
        let mut store = open(backend);
        for number in 0..40 {
            let mut execution = Execution::new(format!("x{number}"), "d");
            let target = format!("x{}", (number + 1) % 40);
            let commit = store::Commit::new()
                .emit(Some(&target), Event::new(format!("e{number}"), "Note"))
                .spawn(store::SpawnIntent::new(format!("c{number}"), ""));
            store.commit(&mut execution, &commit).unwrap();
        }
        let mut worker = hand(backend, side, Plan::none());
        let swept = worker.recover().unwrap();
        // Each child has an event of its own to begin with; it is delivered with its creation.
        assert_eq!((swept.delivered, swept.started, swept.left), (40, 40, 0));
        assert!(work(&mut worker).1.is_none());
        assert!(left(backend).is_empty(), "{:?}", left(backend));
        for number in 0..40 {
            let from = (number + 39) % 40;
            assert_eq!(log(&mut store, &format!("x{number}")), [format!("e{from}")]);
            let start = format!("start:c{number}:0");
            assert_eq!(log(&mut store, &format!("c{number}")), [start]);
        }
    });
}
