//! Queues and sharded stores while slots move.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use store::{
    Commit, Event, Execution, Pacing, Settings, SpawnEntry, StoreError,
    cluster::{Slot, aio, sync},
    sharded::{AsyncShardedStore, Partitions, ShardedStore},
    transport::{AsyncRedisTransport, Deliveries, Priority, RedisTransport},
    worker::{
        AsyncHandler, AsyncWorker, Conduct, Handler, StopHandle, Trouble, Verdict, Worker,
        WorkerOptions,
    },
};
use tests::{both, cluster::Cluster};
use tokio::runtime::{Builder, Runtime};

use crate::twin::Flavour;

const PREFIX: &str = "{queues}";
const LEASE: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(20);

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn nodes(cluster: &Cluster) -> sync::Cluster {
    sync::Cluster::new(cluster.urls())
        .unwrap()
        .patience(PATIENCE)
}

fn async_nodes(cluster: &Cluster) -> aio::Cluster {
    aio::Cluster::new(cluster.urls())
        .unwrap()
        .patience(PATIENCE)
}

/// To a master that does not have it. Whether clients get on meanwhile depends on which keys are where.
fn move_in_steps(cluster: &Cluster, slot: u16) {
    let to = cluster.other_master(slot);
    cluster.begin_to_move(slot, to);
    while cluster.move_keys(slot, to, 1) > 0 {
        thread::sleep(Duration::from_millis(20));
    }
    cluster.end_move(slot, to);
}

/// The same, and clients are at work when it is done.
fn move_slowly(cluster: &Cluster, slot: u16, progress: &AtomicUsize) {
    move_in_steps(cluster, slot);
    let before = progress.load(Ordering::SeqCst);
    tests::cluster::eventually("clients get on", || {
        progress.load(Ordering::SeqCst) > before + 20
    });
}

enum Courier {
    Sync(RedisTransport<sync::Cluster>),
    Async(Runtime, AsyncRedisTransport<aio::Cluster>),
}

impl Courier {
    fn new(cluster: &Cluster, flavour: Flavour) -> Self {
        let settings = Settings::new(PREFIX).unwrap();
        match flavour {
            Flavour::Sync => {
                let transport = RedisTransport::with_connections(nodes(cluster), settings);
                Self::Sync(transport.deliveries(Deliveries::Counted))
            }
            Flavour::Async => {
                let transport =
                    AsyncRedisTransport::with_connections(async_nodes(cluster), settings);
                Self::Async(runtime(), transport.deliveries(Deliveries::Counted))
            }
        }
    }

    fn publish(&mut self, group: &str, event: &Event, priority: Priority) {
        let queued: Result<u64, StoreError> = both!(self.publish(group, event, priority));
        queued.unwrap();
    }

    /// One event, handed back once before it is taken off; which one, and of which group.
    fn consume(&mut self) -> Option<(String, String)> {
        let claimed = both!(self.claim("w", LEASE, Priority::MIN)).unwrap();
        let lease = claimed.lease?;
        if lease.delivery == Some(1) {
            assert!(both!(self.nack(&lease, Duration::ZERO)).unwrap());
            return self.consume();
        }
        assert!(both!(self.extend(&lease, LEASE)).unwrap());
        assert!(both!(self.ack(&lease)).unwrap());
        Some((lease.group_id, lease.event.id))
    }
}

#[test]
fn no_event_is_lost_or_taken_twice_while_the_slot_of_its_queue_moves() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    cluster.empty();
    let slot = Slot::of(PREFIX).number();
    let over = AtomicBool::new(false);
    let done = AtomicUsize::new(0);
    let published = Mutex::new(BTreeMap::<String, Vec<String>>::new());
    let consumed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for (number, flavour) in [Flavour::Sync, Flavour::Async].into_iter().enumerate() {
            let (cluster, over, published) = (&*cluster, &over, &published);
            scope.spawn(move || {
                let mut courier = Courier::new(cluster, flavour);
                for round in 0.. {
                    if over.load(Ordering::SeqCst) {
                        return;
                    }
                    // Each tier has a group, so that none of their keys is missing for long.
                    let priority = Priority::clamped(round % 5);
                    let group = format!("g{number}-{}", round % 10);
                    let id = format!("e{number}-{round}");
                    courier.publish(&group, &Event::new(&*id, "K"), priority);
                    published.lock().unwrap().entry(group).or_default().push(id);
                    thread::sleep(Duration::from_millis(5));
                }
            });
        }
        for flavour in [Flavour::Sync, Flavour::Async, Flavour::Async] {
            let (cluster, over, done, consumed) = (&*cluster, &over, &done, &consumed);
            scope.spawn(move || {
                let mut courier = Courier::new(cluster, flavour);
                loop {
                    let last = over.load(Ordering::SeqCst);
                    match courier.consume() {
                        Some(event) => {
                            consumed.lock().unwrap().push(event);
                            done.fetch_add(1, Ordering::SeqCst);
                        }
                        None if last => return,
                        None => thread::sleep(Duration::from_millis(2)),
                    }
                }
            });
        }
        for _ in 0..3 {
            move_slowly(&cluster, slot, &done);
        }
        over.store(true, Ordering::SeqCst);
    });
    let mut courier = Courier::new(&cluster, Flavour::Sync);
    let mut consumed = consumed.into_inner().unwrap();
    while let Some(event) = courier.consume() {
        consumed.push(event);
    }
    let published = published.into_inner().unwrap();
    let count: usize = published.values().map(Vec::len).sum();
    let once: BTreeSet<_> = consumed.iter().cloned().collect();
    assert_eq!((once.len(), consumed.len()), (count, count));
    let all = published
        .into_iter()
        .flat_map(|(group, ids)| ids.into_iter().map(move |id| (group.clone(), id)));
    assert_eq!(once, all.collect());
}

/// All tiers are here, so that no node sends the claim elsewhere; the locks and queues that it finds out about may be gone.
#[test]
fn a_claim_waits_for_a_slot_that_moves_and_calls_nothing_corrupt() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    let slot = Slot::of(PREFIX).number();
    for flavour in [Flavour::Sync, Flavour::Async] {
        for has_moved in [false, true] {
            cluster.empty();
            let mut courier = Courier::new(&cluster, flavour);
            for priority in Priority::all() {
                let event = Event::new(format!("e{}", priority.get()), "K");
                courier.publish(&format!("g{}", priority.get()), &event, priority);
            }
            let settings = Settings::new(PREFIX).unwrap();
            let hasty = nodes(&cluster).patience(Duration::from_millis(30));
            let mut hasty = RedisTransport::with_connections(hasty, settings);
            let to = cluster.other_master(slot);
            cluster.begin_to_move(slot, to);
            if has_moved {
                let keys = (0..5).map(|group| format!("{PREFIX}:q:g{group}"));
                cluster.move_named(to, slot, &keys.collect::<Vec<_>>());
            }
            let error = hasty.claim("w", LEASE, Priority::MIN).unwrap_err();
            assert!(
                matches!(&error, StoreError::Refused { message, .. } if message.contains("TRYAGAIN")),
                "{error}"
            );
            while cluster.move_keys(slot, to, 50) > 0 {}
            cluster.end_move(slot, to);
            let mut found = BTreeSet::new();
            while let Some((_, event)) = courier.consume() {
                found.insert(event);
            }
            assert_eq!(found.len(), 5);
        }
    }
}

/// Hands an event on to the next execution, as often as its kind says.
#[derive(Clone)]
struct HandOn<'a> {
    done: &'a AtomicUsize,
}

const EXECUTIONS: usize = 12;
const HOPS: usize = 25;

impl HandOn<'_> {
    fn decide(&self, execution: &mut Execution, event: &Event) -> Verdict {
        let log = execution.context.entry("log").or_insert(json!([]));
        log.as_array_mut().unwrap().push(json!(event.id));
        self.done.fetch_add(1, Ordering::SeqCst);
        let (name, hop) = event.id.split_once('.').unwrap();
        let hop: usize = hop.parse().unwrap();
        let number: usize = execution.id[1..].parse().unwrap();
        let commit = Commit::new();
        Verdict::Commit(if hop + 1 < HOPS {
            let next = format!("x{}", (number + 1) % EXECUTIONS);
            let id = format!("{name}.{}", hop + 1);
            commit.emit(Some(&next), Event::new(id, "Hop"))
        } else {
            commit
        })
    }
}

impl Conduct<Execution> for HandOn<'_> {
    fn child(&mut self, _: &Execution, _: &SpawnEntry) -> Option<(Execution, Commit)> {
        None
    }

    fn trouble(&mut self, trouble: &Trouble<'_>) {
        panic!("{trouble:?}");
    }
}

impl Handler<Execution> for HandOn<'_> {
    fn handle(&mut self, execution: &mut Execution, event: &Event) -> Verdict {
        self.decide(execution, event)
    }
}

impl AsyncHandler<Execution> for HandOn<'_> {
    async fn handle(&mut self, execution: &mut Execution, event: &Event) -> Verdict {
        self.decide(execution, event)
    }
}

/// A worker over all partitions, until it is stopped.
fn employ(
    cluster: &Cluster,
    flavour: Flavour,
    (settings, partitions): (&Settings, Partitions),
    handler: HandOn<'_>,
    stops: &Mutex<Vec<StopHandle>>,
) {
    let options = WorkerOptions::new("w").visibility(LEASE);
    match flavour {
        Flavour::Sync => {
            let store = ShardedStore::open(nodes(cluster), settings, partitions).unwrap();
            let mut worker = Worker::sharded(store, options, handler).unwrap();
            stops.lock().unwrap().push(worker.stop_handle());
            worker.run().unwrap();
        }
        Flavour::Async => runtime().block_on(async {
            let store = AsyncShardedStore::open(async_nodes(cluster), settings, partitions);
            let store = store.await.unwrap().sweep_from(2);
            let worker = AsyncWorker::sharded(store, options, handler).unwrap();
            let mut worker = worker.pacing(Pacing::tokio());
            stops.lock().unwrap().push(worker.stop_handle());
            worker.run().await.unwrap();
        }),
    }
}

#[test]
fn workers_over_partitions_apply_each_event_once_while_slots_move() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    cluster.empty();
    let (settings, partitions) = (Settings::new("hops").unwrap(), Partitions::new(4).unwrap());
    let mut store = ShardedStore::open(nodes(&cluster), &settings, partitions).unwrap();
    for number in 0..EXECUTIONS {
        let id = format!("x{number}");
        store.save(&mut Execution::new(&*id, "d")).unwrap();
        let event = Event::new(format!("e{number}.0"), "Hop");
        store.publish(&id, &event, Priority::MIN).unwrap();
    }
    let done = AtomicUsize::new(0);
    let stops = Mutex::new(Vec::new());
    let slots: Vec<u16> = partitions
        .iter()
        .map(|partition| {
            let settings = store.settings_of(partition).unwrap();
            Slot::of(settings.keys().prefix()).number()
        })
        .collect();
    thread::scope(|scope| {
        for flavour in [Flavour::Sync, Flavour::Async] {
            let (cluster, settings, stops) = (&*cluster, &settings, &stops);
            let handler = HandOn { done: &done };
            scope.spawn(move || employ(cluster, flavour, (settings, partitions), handler, stops));
        }
        for slot in slots {
            move_in_steps(&cluster, slot);
        }
        tests::cluster::eventually("all hops are made", || {
            done.load(Ordering::SeqCst) >= EXECUTIONS * HOPS
        });
        thread::sleep(Duration::from_millis(200));
        for stop in stops.lock().unwrap().iter() {
            stop.stop();
        }
    });
    let mut seen = BTreeSet::new();
    for number in 0..EXECUTIONS {
        let id = format!("x{number}");
        let execution = store.load(&id).unwrap().unwrap();
        let log = execution.context.get("log").and_then(Value::as_array);
        let log: Vec<String> = log
            .into_iter()
            .flatten()
            .map(|id| id.as_str().unwrap().to_owned())
            .collect();
        assert_eq!(execution.version.get(), 1 + log.len() as i64, "{id}");
        for event in log {
            assert!(seen.insert(event.clone()), "{event} was applied twice");
        }
        let partition = store.partition_of(&id);
        let left = store
            .partition(partition)
            .unwrap()
            .pending_outbox()
            .unwrap();
        assert_eq!(left, [], "{id}");
    }
    let all = (0..EXECUTIONS).flat_map(|name| (0..HOPS).map(move |hop| format!("e{name}.{hop}")));
    assert_eq!(seen, all.collect());
}
