//! Both twins behind one set of methods: a method that one of them lacks does not compile.

use std::rc::Rc;

use serde_json::{Map, Value};
use store::{
    AsyncRedisStore, Attempt, Commit, Committed, Cursor, Document, DueTimer, Execution,
    ExecutionPage, ExecutionSummary, Forkable, ListFilter, Listing, OrderedCursor, OrderedPage,
    OutboxEntry, RedisStore, Resolution, Seq, Settings, SpawnEntry, StoreError, Sweep, SweptPage,
    Version, aio, op::Operation, sync,
};
use tokio::runtime::{Builder, Runtime};

use crate::{
    backend::{AsyncConnection, Backend, Protocol, SyncConnection, on_each, on_each_alone},
    meddling::{Meddling, Plan},
};

pub(crate) enum Twin {
    Sync(Box<RedisStore<sync::Exclusive<Meddling<SyncConnection>>>>),
    Async(
        Rc<Runtime>,
        Box<AsyncRedisStore<aio::Exclusive<Meddling<AsyncConnection>>>>,
    ),
}

/// Which twin to make.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    Sync,
    Async,
}

pub(crate) const SIDES: [Side; 2] = [Side::Sync, Side::Async];

/// Runs a test with each twin on each backend, always on an empty database.
pub(crate) fn with_each(test: impl Fn(&Backend, Side)) {
    for side in SIDES {
        on_each(|backend| {
            eprintln!("{side:?} on {}", backend.name);
            test(backend, side);
        });
    }
}

/// As [`with_each`] while no other test of this suite runs: for what changes a server as a whole.
pub(crate) fn with_each_alone(test: impl Fn(&Backend, Side)) {
    for side in SIDES {
        on_each_alone(|backend| {
            eprintln!("{side:?} on {}", backend.name);
            test(backend, side);
        });
    }
}

impl Side {
    /// A store of this side with default settings.
    pub(crate) fn store(self, backend: &Backend) -> Twin {
        self.store_with(backend, Settings::default(), Plan::none())
    }

    pub(crate) fn store_with(self, backend: &Backend, settings: Settings, plan: Plan) -> Twin {
        self.store_on(backend, Protocol::Resp3, settings, plan)
    }

    pub(crate) fn store_on(
        self,
        backend: &Backend,
        protocol: Protocol,
        settings: Settings,
        plan: Plan,
    ) -> Twin {
        match self {
            Self::Sync => {
                let connection = Meddling::new(backend.connect(protocol), plan);
                Twin::Sync(Box::new(RedisStore::with_settings(connection, settings)))
            }
            Self::Async => {
                let runtime = Builder::new_current_thread().enable_all().build().unwrap();
                let connection = runtime.block_on(backend.connect_async(protocol));
                let connection = Meddling::new(connection, plan);
                Twin::Async(
                    Rc::new(runtime),
                    Box::new(AsyncRedisStore::with_settings(connection, settings)),
                )
            }
        }
    }
}

type Result<T> = std::result::Result<T, StoreError>;

impl Twin {
    pub(crate) fn load(&mut self, id: &str) -> Result<Option<Execution>> {
        match self {
            Self::Sync(store) => store.load(id),
            Self::Async(runtime, store) => runtime.block_on(store.load(id)),
        }
    }

    pub(crate) fn load_for_event(
        &mut self,
        id: &str,
        event_id: &str,
    ) -> Result<Option<(Execution, bool)>> {
        match self {
            Self::Sync(store) => store.load_for_event(id, event_id),
            Self::Async(runtime, store) => runtime.block_on(store.load_for_event(id, event_id)),
        }
    }

    pub(crate) fn load_as<D: Document>(&mut self, id: &str) -> Result<Option<D>> {
        match self {
            Self::Sync(store) => store.load_as(id),
            Self::Async(runtime, store) => runtime.block_on(store.load_as(id)),
        }
    }

    pub(crate) fn load_for_event_as<D: Document>(
        &mut self,
        id: &str,
        event_id: &str,
    ) -> Result<Option<(D, bool)>> {
        match self {
            Self::Sync(store) => store.load_for_event_as(id, event_id),
            Self::Async(runtime, store) => runtime.block_on(store.load_for_event_as(id, event_id)),
        }
    }

    pub(crate) fn save<D: Document>(&mut self, document: &mut D) -> Result<Committed> {
        match self {
            Self::Sync(store) => store.save(document),
            Self::Async(runtime, store) => runtime.block_on(store.save(document)),
        }
    }

    pub(crate) fn commit<D: Document>(
        &mut self,
        document: &mut D,
        commit: &Commit,
    ) -> Result<Committed> {
        match self {
            Self::Sync(store) => store.commit(document, commit),
            Self::Async(runtime, store) => runtime.block_on(store.commit(document, commit)),
        }
    }

    pub(crate) fn create<D: Document>(
        &mut self,
        document: &mut D,
        commit: &Commit,
    ) -> Result<Committed> {
        match self {
            Self::Sync(store) => store.create(document, commit),
            Self::Async(runtime, store) => runtime.block_on(store.create(document, commit)),
        }
    }

    pub(crate) fn resolve<D: Document>(
        &mut self,
        document: &mut D,
        attempt: &Attempt,
    ) -> Result<Resolution> {
        match self {
            Self::Sync(store) => store.resolve(document, attempt),
            Self::Async(runtime, store) => runtime.block_on(store.resolve(document, attempt)),
        }
    }

    pub(crate) fn is_processed(&mut self, id: &str, event_id: &str) -> Result<bool> {
        match self {
            Self::Sync(store) => store.is_processed(id, event_id),
            Self::Async(runtime, store) => runtime.block_on(store.is_processed(id, event_id)),
        }
    }

    pub(crate) fn pending_outbox(&mut self) -> Result<Vec<OutboxEntry>> {
        match self {
            Self::Sync(store) => store.pending_outbox(),
            Self::Async(runtime, store) => runtime.block_on(store.pending_outbox()),
        }
    }

    pub(crate) fn ack_outbox(&mut self, seq: Seq) -> Result<bool> {
        match self {
            Self::Sync(store) => store.ack_outbox(seq),
            Self::Async(runtime, store) => runtime.block_on(store.ack_outbox(seq)),
        }
    }

    pub(crate) fn pending_spawns(&mut self) -> Result<Vec<SpawnEntry>> {
        match self {
            Self::Sync(store) => store.pending_spawns(),
            Self::Async(runtime, store) => runtime.block_on(store.pending_spawns()),
        }
    }

    pub(crate) fn ack_spawn(&mut self, seq: Seq) -> Result<bool> {
        match self {
            Self::Sync(store) => store.ack_spawn(seq),
            Self::Async(runtime, store) => runtime.block_on(store.ack_spawn(seq)),
        }
    }

    pub(crate) fn due_timers(&mut self, now_s: f64) -> Result<Vec<DueTimer>> {
        match self {
            Self::Sync(store) => store.due_timers(now_s),
            Self::Async(runtime, store) => runtime.block_on(store.due_timers(now_s)),
        }
    }

    pub(crate) fn delete_timer(&mut self, id: &str, path: &str, fire_at_s: f64) -> Result<bool> {
        match self {
            Self::Sync(store) => store.delete_timer(id, path, fire_at_s),
            Self::Async(runtime, store) => {
                runtime.block_on(store.delete_timer(id, path, fire_at_s))
            }
        }
    }

    pub(crate) fn append_trace(&mut self, id: &str, step: &Map<String, Value>) -> Result<()> {
        match self {
            Self::Sync(store) => store.append_trace(id, step),
            Self::Async(runtime, store) => runtime.block_on(store.append_trace(id, step)),
        }
    }

    pub(crate) fn read_trace(&mut self, id: &str) -> Result<Vec<Map<String, Value>>> {
        match self {
            Self::Sync(store) => store.read_trace(id),
            Self::Async(runtime, store) => runtime.block_on(store.read_trace(id)),
        }
    }

    pub(crate) fn list_executions(
        &mut self,
        filter: &ListFilter,
        limit: u32,
        cursor: Option<Cursor>,
    ) -> Result<ExecutionPage> {
        match self {
            Self::Sync(store) => store.list_executions(filter, limit, cursor),
            Self::Async(runtime, store) => {
                runtime.block_on(store.list_executions(filter, limit, cursor))
            }
        }
    }

    pub(crate) fn purge(&mut self, id: &str, expected: Version) -> Result<bool> {
        match self {
            Self::Sync(store) => store.purge(id, expected),
            Self::Async(runtime, store) => runtime.block_on(store.purge(id, expected)),
        }
    }

    pub(crate) fn list_ordered(
        &mut self,
        filter: &ListFilter,
        limit: u32,
        cursor: Option<OrderedCursor>,
    ) -> Result<OrderedPage> {
        match self {
            Self::Sync(store) => store.list_ordered(filter, limit, cursor),
            Self::Async(runtime, store) => {
                runtime.block_on(store.list_ordered(filter, limit, cursor))
            }
        }
    }

    pub(crate) fn rebuild_index(&mut self) -> Result<u64> {
        match self {
            Self::Sync(store) => store.rebuild_index(),
            Self::Async(runtime, store) => runtime.block_on(store.rebuild_index()),
        }
    }

    pub(crate) fn check(&mut self) -> Result<()> {
        match self {
            Self::Sync(store) => store.check(),
            Self::Async(runtime, store) => runtime.block_on(store.check()),
        }
    }

    pub(crate) fn status(&mut self, id: &str) -> Result<Option<ExecutionSummary>> {
        match self {
            Self::Sync(store) => store.status(id),
            Self::Async(runtime, store) => runtime.block_on(store.status(id)),
        }
    }

    pub(crate) fn fork(&mut self, id: &str, new_id: &str) -> Result<Option<Execution>> {
        match self {
            Self::Sync(store) => store.fork(id, new_id),
            Self::Async(runtime, store) => runtime.block_on(store.fork(id, new_id)),
        }
    }

    pub(crate) fn fork_as<D: Forkable>(&mut self, id: &str, new_id: &str) -> Result<Option<D>> {
        match self {
            Self::Sync(store) => store.fork_as(id, new_id),
            Self::Async(runtime, store) => runtime.block_on(store.fork_as(id, new_id)),
        }
    }

    pub(crate) fn sweep_finished(
        &mut self,
        sweep: &Sweep,
        limit: u32,
        cursor: Option<Cursor>,
    ) -> Result<SweptPage> {
        match self {
            Self::Sync(store) => store.sweep_finished(sweep, limit, cursor),
            Self::Async(runtime, store) => {
                runtime.block_on(store.sweep_finished(sweep, limit, cursor))
            }
        }
    }

    /// All of a listing; `after` is called after each item.
    pub(crate) fn executions(
        &mut self,
        listing: Listing,
        mut after: impl FnMut(usize),
    ) -> Vec<Result<ExecutionSummary>> {
        let mut found = Vec::new();
        match self {
            Self::Sync(store) => {
                for item in store.executions(listing) {
                    found.push(item);
                    after(found.len());
                }
            }
            Self::Async(runtime, store) => runtime.block_on(async {
                let mut executions = store.executions(listing);
                while let Some(item) = executions.next().await {
                    found.push(item);
                    after(found.len());
                }
            }),
        }
        found
    }

    pub(crate) fn ids_with_prefix(&mut self, id_prefix: &str) -> Result<Vec<String>> {
        match self {
            Self::Sync(store) => store.ids_with_prefix(id_prefix),
            Self::Async(runtime, store) => runtime.block_on(store.ids_with_prefix(id_prefix)),
        }
    }

    pub(crate) fn set_trace_max(&mut self, steps: i64) {
        match self {
            Self::Sync(store) => store.set_trace_max(steps),
            Self::Async(_, store) => store.set_trace_max(steps),
        }
    }

    pub(crate) fn run<O: Operation>(&mut self, operation: O) -> Result<O::Output> {
        match self {
            Self::Sync(store) => store.run(operation),
            Self::Async(runtime, store) => runtime.block_on(store.run(operation)),
        }
    }

    pub(crate) fn close(self) {
        match self {
            Self::Sync(store) => store.close(),
            Self::Async(runtime, store) => runtime.block_on(store.close()),
        }
    }
}
