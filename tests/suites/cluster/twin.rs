//! Both twins over a cluster behind one set of methods.

use std::time::Duration;

use store::{
    AsyncRedisStore, Commit, Committed, Cursor, DueTimer, Execution, ExecutionPage, ListFilter,
    OutboxEntry, RedisStore, Seq, Settings, SpawnEntry, StoreError, Version,
    cluster::{aio, sync},
};
use tests::cluster::Cluster;
use tokio::runtime::{Builder, Runtime};

pub(crate) enum Twin {
    Sync(RedisStore<sync::Cluster>),
    Async(Runtime, AsyncRedisStore<aio::Cluster>),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Flavour {
    Sync,
    Async,
}

pub(crate) const FLAVOURS: [Flavour; 2] = [Flavour::Sync, Flavour::Async];

/// Nodes on a busy machine may take their time.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

type Result<T> = std::result::Result<T, StoreError>;

impl Flavour {
    pub(crate) fn open(self, cluster: &Cluster, settings: Settings) -> Twin {
        self.open_patiently(cluster, settings, Duration::from_secs(20))
    }

    pub(crate) fn open_patiently(
        self,
        cluster: &Cluster,
        settings: Settings,
        patience: Duration,
    ) -> Twin {
        match self {
            Self::Sync => {
                let nodes = sync::Cluster::new(cluster.urls()).unwrap();
                let nodes = nodes.response_timeout(RESPONSE_TIMEOUT).patience(patience);
                Twin::Sync(RedisStore::with_connections(nodes, settings))
            }
            Self::Async => {
                let nodes = aio::Cluster::new(cluster.urls()).unwrap();
                let nodes = nodes.response_timeout(RESPONSE_TIMEOUT).patience(patience);
                let runtime = Builder::new_current_thread().enable_all().build().unwrap();
                Twin::Async(runtime, AsyncRedisStore::with_connections(nodes, settings))
            }
        }
    }
}

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

    pub(crate) fn save(&mut self, execution: &mut Execution) -> Result<Committed> {
        self.commit(execution, &Commit::new())
    }

    pub(crate) fn commit(
        &mut self,
        execution: &mut Execution,
        commit: &Commit,
    ) -> Result<Committed> {
        match self {
            Self::Sync(store) => store.commit(execution, commit),
            Self::Async(runtime, store) => runtime.block_on(store.commit(execution, commit)),
        }
    }

    pub(crate) fn purge(&mut self, id: &str, expected: Version) -> Result<bool> {
        match self {
            Self::Sync(store) => store.purge(id, expected),
            Self::Async(runtime, store) => runtime.block_on(store.purge(id, expected)),
        }
    }

    pub(crate) fn check(&mut self) -> Result<()> {
        match self {
            Self::Sync(store) => store.check(),
            Self::Async(runtime, store) => runtime.block_on(store.check()),
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

    pub(crate) fn read_trace(
        &mut self,
        id: &str,
    ) -> Result<Vec<serde_json::Map<String, serde_json::Value>>> {
        match self {
            Self::Sync(store) => store.read_trace(id),
            Self::Async(runtime, store) => runtime.block_on(store.read_trace(id)),
        }
    }

    pub(crate) fn list(&mut self, limit: u32, cursor: Option<Cursor>) -> Result<ExecutionPage> {
        let filter = ListFilter::default();
        match self {
            Self::Sync(store) => store.list_executions(&filter, limit, cursor),
            Self::Async(runtime, store) => {
                runtime.block_on(store.list_executions(&filter, limit, cursor))
            }
        }
    }

    /// All ids, page by page.
    pub(crate) fn ids(&mut self) -> Vec<String> {
        let mut ids = Vec::new();
        let mut cursor = None;
        loop {
            let page = self.list(20, cursor).unwrap();
            ids.extend(page.items.into_iter().map(|item| item.id));
            cursor = page.next_cursor;
            if cursor.is_none() {
                ids.sort();
                ids.dedup();
                return ids;
            }
        }
    }
}
