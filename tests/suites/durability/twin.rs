//! Both twins behind one set of methods.

use std::time::Duration;

use store::{
    AsyncRedisStore, Attempt, Commit, Committed, Execution, RedisStore, Resolution, Settings,
    StoreError, aio, sync,
};
use tests::both;
use tokio::runtime::{Builder, Runtime};

/// A reply that takes longer has been lost; a server that writes each commit to its disk may take its time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which twin to make.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    Sync,
    Async,
}

pub(crate) enum Twin {
    Sync(RedisStore<sync::Reopening>),
    Async(Runtime, AsyncRedisStore<aio::Reopening>),
}

impl Side {
    /// A store that opens its connections itself.
    pub(crate) fn store(self, url: &str, settings: &Settings) -> Twin {
        let client = redis::Client::open(url).unwrap();
        let settings = settings.clone();
        match self {
            Side::Sync => {
                let connections = sync::Reopening::new(client).response_timeout(PATIENCE);
                Twin::Sync(RedisStore::with_connections(connections, settings))
            }
            Side::Async => {
                let runtime = Builder::new_current_thread().enable_all().build().unwrap();
                let connections = aio::Reopening::new(client).response_timeout(PATIENCE);
                Twin::Async(
                    runtime,
                    AsyncRedisStore::with_connections(connections, settings),
                )
            }
        }
    }
}

impl Twin {
    pub(crate) fn load(&mut self, id: &str) -> Result<Option<Execution>, StoreError> {
        both!(self.load(id))
    }

    pub(crate) fn commit(
        &mut self,
        execution: &mut Execution,
        commit: &Commit,
    ) -> Result<Committed, StoreError> {
        both!(self.commit(execution, commit))
    }

    pub(crate) fn resolve(
        &mut self,
        execution: &mut Execution,
        attempt: &Attempt,
    ) -> Result<Resolution, StoreError> {
        both!(self.resolve(execution, attempt))
    }
}
