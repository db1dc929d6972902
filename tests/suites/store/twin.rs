//! Both twins behind one set of methods: a method that one of them lacks does not compile.

use std::rc::Rc;

use serde_json::{Map, Value};
use store::{
    AsyncRedisStore, Attempt, Commit, Committed, Cursor, Document, DueTimer, Execution,
    ExecutionPage, ExecutionSummary, Forkable, ListFilter, Listing, OrderedCursor, OrderedPage,
    OutboxEntry, RedisStore, Resolution, Seq, Settings, SpawnEntry, StoreError, Sweep, SweptPage,
    Version, aio, op::Operation, sync,
};
use tests::both;
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
        both!(self.load(id))
    }

    pub(crate) fn load_for_event(
        &mut self,
        id: &str,
        event_id: &str,
    ) -> Result<Option<(Execution, bool)>> {
        both!(self.load_for_event(id, event_id))
    }

    pub(crate) fn load_as<D: Document>(&mut self, id: &str) -> Result<Option<D>> {
        both!(self.load_as(id))
    }

    pub(crate) fn load_for_event_as<D: Document>(
        &mut self,
        id: &str,
        event_id: &str,
    ) -> Result<Option<(D, bool)>> {
        both!(self.load_for_event_as(id, event_id))
    }

    pub(crate) fn save<D: Document>(&mut self, document: &mut D) -> Result<Committed> {
        both!(self.save(document))
    }

    pub(crate) fn commit<D: Document>(
        &mut self,
        document: &mut D,
        commit: &Commit,
    ) -> Result<Committed> {
        both!(self.commit(document, commit))
    }

    pub(crate) fn create<D: Document>(
        &mut self,
        document: &mut D,
        commit: &Commit,
    ) -> Result<Committed> {
        both!(self.create(document, commit))
    }

    pub(crate) fn resolve<D: Document>(
        &mut self,
        document: &mut D,
        attempt: &Attempt,
    ) -> Result<Resolution> {
        both!(self.resolve(document, attempt))
    }

    pub(crate) fn is_processed(&mut self, id: &str, event_id: &str) -> Result<bool> {
        both!(self.is_processed(id, event_id))
    }

    pub(crate) fn pending_outbox(&mut self) -> Result<Vec<OutboxEntry>> {
        both!(self.pending_outbox())
    }

    pub(crate) fn ack_outbox(&mut self, seq: Seq) -> Result<bool> {
        both!(self.ack_outbox(seq))
    }

    pub(crate) fn pending_spawns(&mut self) -> Result<Vec<SpawnEntry>> {
        both!(self.pending_spawns())
    }

    pub(crate) fn ack_spawn(&mut self, seq: Seq) -> Result<bool> {
        both!(self.ack_spawn(seq))
    }

    pub(crate) fn due_timers(&mut self, now_s: f64) -> Result<Vec<DueTimer>> {
        both!(self.due_timers(now_s))
    }

    pub(crate) fn delete_timer(&mut self, id: &str, path: &str, fire_at_s: f64) -> Result<bool> {
        both!(self.delete_timer(id, path, fire_at_s))
    }

    pub(crate) fn append_trace(&mut self, id: &str, step: &Map<String, Value>) -> Result<()> {
        both!(self.append_trace(id, step))
    }

    pub(crate) fn read_trace(&mut self, id: &str) -> Result<Vec<Map<String, Value>>> {
        both!(self.read_trace(id))
    }

    pub(crate) fn list_executions(
        &mut self,
        filter: &ListFilter,
        limit: u32,
        cursor: Option<Cursor>,
    ) -> Result<ExecutionPage> {
        both!(self.list_executions(filter, limit, cursor))
    }

    pub(crate) fn purge(&mut self, id: &str, expected: Version) -> Result<bool> {
        both!(self.purge(id, expected))
    }

    pub(crate) fn list_ordered(
        &mut self,
        filter: &ListFilter,
        limit: u32,
        cursor: Option<OrderedCursor>,
    ) -> Result<OrderedPage> {
        both!(self.list_ordered(filter, limit, cursor))
    }

    pub(crate) fn rebuild_index(&mut self) -> Result<u64> {
        both!(self.rebuild_index())
    }

    pub(crate) fn check(&mut self) -> Result<()> {
        both!(self.check())
    }

    pub(crate) fn status(&mut self, id: &str) -> Result<Option<ExecutionSummary>> {
        both!(self.status(id))
    }

    pub(crate) fn fork(&mut self, id: &str, new_id: &str) -> Result<Option<Execution>> {
        both!(self.fork(id, new_id))
    }

    pub(crate) fn fork_as<D: Forkable>(&mut self, id: &str, new_id: &str) -> Result<Option<D>> {
        both!(self.fork_as(id, new_id))
    }

    pub(crate) fn sweep_finished(
        &mut self,
        sweep: &Sweep,
        limit: u32,
        cursor: Option<Cursor>,
    ) -> Result<SweptPage> {
        both!(self.sweep_finished(sweep, limit, cursor))
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
        both!(self.ids_with_prefix(id_prefix))
    }

    pub(crate) fn set_trace_max(&mut self, steps: i64) {
        match self {
            Self::Sync(store) => store.set_trace_max(steps),
            Self::Async(_, store) => store.set_trace_max(steps),
        }
    }

    pub(crate) fn run<O: Operation>(&mut self, operation: O) -> Result<O::Output> {
        both!(self.run(operation))
    }

    pub(crate) fn close(self) {
        both!(self.close());
    }
}
