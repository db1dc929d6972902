//! Workers of both twins behind one set of methods, and a handler whose work can be counted.

use std::{
    rc::Rc,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use store::{
    AsyncRedisStore, Commit, Event, Execution, ExecutionSummary, Pacing, RedisStore, Settings,
    SpawnEntry, SpawnIntent, Status, StoreError, TimerOp, aio,
    sharded::{AsyncShardedStore, Partitions, ShardedStore},
    sync,
    transport::Tokens,
    worker::{
        AsyncHandler, AsyncWorker, Conduct, Handler, StopHandle, Swept, Trouble, Turn, Verdict,
        Worker, WorkerOptions, child_of,
    },
};
use tests::both;
use tokio::runtime::{Builder, Runtime};

use crate::{
    backend::{AsyncConnection, Backend, Protocol, SyncConnection, ask},
    meddling::{Meddling, Plan},
    twin::Side,
};

/// Notes each event in the row of its execution; does what the event's kind says.
#[derive(Clone, Default)]
pub(crate) struct Ledger {
    /// The only definition that it knows; all of them unless told.
    pub(crate) only: Option<&'static str>,
    /// How long it takes to decide.
    pub(crate) takes: Duration,
    /// What it has heard of.
    pub(crate) troubles: Arc<Mutex<Vec<String>>>,
}

impl Ledger {
    pub(crate) fn decide(execution: &mut Execution, event: &Event) -> Verdict {
        let id = execution.id.clone();
        let log = execution.context.entry("log").or_insert(json!([]));
        log.as_array_mut().unwrap().push(json!(event.id));
        execution.status = Status::Running;
        let commit = Commit::new();
        Verdict::Commit(match event.kind.as_str() {
            "Emit" => commit
                .emit(Some("b"), Event::new(format!("{}>b", event.id), "Note"))
                .emit(None, Event::new(format!("{}>", event.id), "Note")),
            "Fork" => commit.spawn(SpawnIntent::new(format!("{id}*{}", event.id), "root")),
            "Arm" => commit.timer(TimerOp::schedule("p", 1.5)),
            "All" => commit
                .emit(Some("b"), Event::new(format!("{}>b", event.id), "Note"))
                .spawn(SpawnIntent::new(format!("{id}*{}", event.id), "root"))
                .timer(TimerOp::schedule("p", 1.5)),
            "Ignored" => return Verdict::Ignore,
            "Later" => return Verdict::Later(Duration::from_secs(60)),
            "Invalid" => commit.timer(TimerOp::schedule("p", f64::NAN)),
            _ => commit,
        })
    }
}

impl Conduct<Execution> for Ledger {
    fn child(&mut self, parent: &Execution, spawn: &SpawnEntry) -> Option<(Execution, Commit)> {
        let known = self.only.is_none_or(|only| only == parent.definition_id);
        known.then(|| child_of(parent, spawn))
    }

    fn trouble(&mut self, trouble: &Trouble<'_>) {
        let name = match trouble {
            Trouble::Buried(letter) => format!("buried of {}", letter.group_id),
            Trouble::Quarantined(poison) => format!("quarantined from {:?}", poison.origin),
            Trouble::Parked { lease, .. } => format!("parked {}", lease.event.id),
            Trouble::Left { id, .. } => format!("left of {id}"),
            _ => "failed".to_owned(),
        };
        self.troubles.lock().unwrap().push(name);
    }
}

impl Handler<Execution> for Ledger {
    fn handle(&mut self, execution: &mut Execution, event: &Event) -> Verdict {
        std::thread::sleep(self.takes);
        Self::decide(execution, event)
    }
}

impl AsyncHandler<Execution> for Ledger {
    async fn handle(&mut self, execution: &mut Execution, event: &Event) -> Verdict {
        tokio::time::sleep(self.takes).await;
        Self::decide(execution, event)
    }
}

type Blocking = Worker<sync::Exclusive<Meddling<SyncConnection>>, Ledger, Execution>;
type Awaiting = AsyncWorker<aio::Exclusive<Meddling<AsyncConnection>>, Ledger, Execution>;

pub(crate) enum Hand {
    Sync(Box<Blocking>),
    Async(Rc<Runtime>, Box<Awaiting>),
}

type Result<T> = std::result::Result<T, StoreError>;

pub(crate) fn options(name: &str) -> WorkerOptions {
    WorkerOptions::new(name).visibility(Duration::from_secs(30))
}

impl Hand {
    pub(crate) fn new(backend: &Backend, side: Side, name: &str) -> Self {
        Self::with(
            backend,
            side,
            options(name),
            Ledger::default(),
            Plan::none(),
        )
    }

    pub(crate) fn with(
        backend: &Backend,
        side: Side,
        options: WorkerOptions,
        ledger: Ledger,
        plan: Plan,
    ) -> Self {
        let settings = Settings::default();
        match side {
            Side::Sync => {
                let connection = Meddling::new(backend.connect(Protocol::Resp3), plan);
                let store = RedisStore::with_settings(connection, settings);
                let worker = Worker::new(store, options, ledger);
                Self::Sync(Box::new(worker.tokens(Tokens::random())))
            }
            Side::Async => {
                let runtime = Builder::new_current_thread().enable_all().build().unwrap();
                let connection = runtime.block_on(backend.connect_async(Protocol::Resp3));
                let store =
                    AsyncRedisStore::with_settings(Meddling::new(connection, plan), settings);
                let worker = AsyncWorker::new(store, options, ledger).pacing(Pacing::tokio());
                Self::Async(Rc::new(runtime), Box::new(worker.tokens(Tokens::random())))
            }
        }
    }

    /// Over the partitions of a sharded store.
    pub(crate) fn sharded(
        backend: &Backend,
        side: Side,
        options: WorkerOptions,
        partitions: Partitions,
        plan: Plan,
    ) -> Self {
        let (settings, ledger) = (Settings::default(), Ledger::default());
        match side {
            Side::Sync => {
                let connection = Meddling::new(backend.connect(Protocol::Resp3), plan);
                let connections = sync::Exclusive::new(connection);
                let store = ShardedStore::open(connections, &settings, partitions).unwrap();
                let worker = Worker::sharded(store, options, ledger).unwrap();
                Self::Sync(Box::new(worker))
            }
            Side::Async => {
                let runtime = Builder::new_current_thread().enable_all().build().unwrap();
                let connection = runtime.block_on(backend.connect_async(Protocol::Resp3));
                let connections = aio::Exclusive::new(Meddling::new(connection, plan));
                let opening = AsyncShardedStore::open(connections, &settings, partitions);
                let store = runtime.block_on(opening).unwrap();
                let worker = AsyncWorker::sharded(store, options, ledger).unwrap();
                Self::Async(Rc::new(runtime), Box::new(worker))
            }
        }
    }

    /// What the worker's own store says.
    pub(crate) fn status_of(&mut self, id: &str) -> Option<ExecutionSummary> {
        match self {
            Self::Sync(worker) => worker.store_of(id).status(id),
            Self::Async(runtime, worker) => runtime.block_on(worker.store_of(id).status(id)),
        }
        .unwrap()
    }

    pub(crate) fn turn(&mut self) -> Result<Turn> {
        both!(self.turn())
    }

    pub(crate) fn run(&mut self) -> Result<()> {
        both!(self.run())
    }

    pub(crate) fn recover(&mut self) -> Result<Swept> {
        both!(self.recover())
    }

    pub(crate) fn stop_handle(&self) -> StopHandle {
        match self {
            Self::Sync(worker) => worker.stop_handle(),
            Self::Async(_, worker) => worker.stop_handle(),
        }
    }

    pub(crate) fn troubles(&mut self) -> Vec<String> {
        let ledger = match self {
            Self::Sync(worker) => worker.handler(),
            Self::Async(_, worker) => worker.handler(),
        };
        ledger.troubles.lock().unwrap().clone()
    }

    /// Turns until there is nothing to do.
    pub(crate) fn work(&mut self) -> Vec<Turn> {
        let mut turns = Vec::new();
        for _ in 0..200 {
            let turn = self.turn().unwrap();
            if turn.is_idle() {
                return turns;
            }
            turns.push(turn);
        }
        panic!("there is always something to do: {turns:?}")
    }
}

/// Stores an execution.
pub(crate) fn seed(backend: &Backend, id: &str, definition: &str) {
    let mut execution = Execution::new(id, definition);
    Side::Sync.store(backend).save(&mut execution).unwrap();
}

/// Queues an event.
pub(crate) fn publish(backend: &Backend, group: &str, id: &str, kind: &str) {
    let mut courier = crate::transport::Courier::new(backend, Side::Sync);
    let event = Event::new(id, kind);
    courier
        .publish(group, &event, store::transport::Priority::MIN)
        .unwrap();
}

/// The events that an execution has noted, in order.
pub(crate) fn log(backend: &Backend, id: &str) -> Vec<String> {
    let execution = Side::Sync.store(backend).load(id).unwrap();
    let execution = execution.unwrap_or_else(|| panic!("no {id}"));
    match execution.context.get("log") {
        Some(Value::Array(log)) => log
            .iter()
            .map(|id| id.as_str().unwrap().to_owned())
            .collect(),
        _ => Vec::new(),
    }
}

/// What still waits somewhere: keys of outbox, spawns, timers, queues, leases.
pub(crate) fn left(backend: &Backend) -> Vec<String> {
    let mut connection = backend.connect(Protocol::Resp2);
    let keys: Vec<String> = redis::from_redis_value(ask(&mut connection, &["KEYS", "*"])).unwrap();
    let places = ["outbox", "spawns", "timers", "prio"].map(|name| format!("stm:{name}"));
    let kinds = ["q:", "lock:", "ready:"].map(|name| format!("stm:{name}"));
    let mut left: Vec<String> = keys
        .into_iter()
        .filter(|key| places.contains(key) || kinds.iter().any(|kind| key.starts_with(kind)))
        .collect();
    left.sort();
    left
}

/// Ends the leases of groups, as time does.
pub(crate) fn expire(backend: &Backend, groups: &[&str]) {
    let mut connection = backend.connect(Protocol::Resp2);
    for group in groups {
        ask(&mut connection, &["DEL", &format!("stm:lock:{group}")]);
        ask(&mut connection, &["ZADD", "stm:ready:0", "XX", "0", group]);
    }
}
