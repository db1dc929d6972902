//! Both twins over a cluster behind one set of methods.

use std::time::Duration;

use store::{
    AsyncRedisStore, Commit, Committed, Cursor, DueTimer, Execution, ExecutionPage, ListFilter,
    OutboxEntry, RedisStore, Seq, Settings, SpawnEntry, StoreError, Version,
    cluster::{aio, sync},
};
use tests::{both, cluster::Cluster};
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
        both!(self.load(id))
    }

    pub(crate) fn load_for_event(
        &mut self,
        id: &str,
        event_id: &str,
    ) -> Result<Option<(Execution, bool)>> {
        both!(self.load_for_event(id, event_id))
    }

    pub(crate) fn save(&mut self, execution: &mut Execution) -> Result<Committed> {
        self.commit(execution, &Commit::new())
    }

    pub(crate) fn commit(
        &mut self,
        execution: &mut Execution,
        commit: &Commit,
    ) -> Result<Committed> {
        both!(self.commit(execution, commit))
    }

    pub(crate) fn purge(&mut self, id: &str, expected: Version) -> Result<bool> {
        both!(self.purge(id, expected))
    }

    pub(crate) fn check(&mut self) -> Result<()> {
        both!(self.check())
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

    pub(crate) fn due_timers(&mut self, now_s: f64) -> Result<Vec<DueTimer>> {
        both!(self.due_timers(now_s))
    }

    pub(crate) fn delete_timer(&mut self, id: &str, path: &str, fire_at_s: f64) -> Result<bool> {
        both!(self.delete_timer(id, path, fire_at_s))
    }

    pub(crate) fn read_trace(
        &mut self,
        id: &str,
    ) -> Result<Vec<serde_json::Map<String, serde_json::Value>>> {
        both!(self.read_trace(id))
    }

    pub(crate) fn list(&mut self, limit: u32, cursor: Option<Cursor>) -> Result<ExecutionPage> {
        let filter = ListFilter::default();
        both!(self.list_executions(&filter, limit, cursor))
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
