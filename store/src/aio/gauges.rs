//! Gauges of what waits.

use crate::{
    AsyncRedisStore, StoreError, WaitingCounts,
    aio::Connections,
    observe::{gauge_groups, gauge_waiting},
    transport::{AsyncRedisTransport, Backlog},
};

impl<P: Connections> AsyncRedisStore<P> {
    /// As [`AsyncRedisStore::count_waiting`], and sets the gauges of the store to it. Nothing calls it but its users, as often as they
    /// like to know.
    ///
    /// # Errors
    /// As there; the gauges then stay as they were.
    ///
    /// A dropped future has changed nothing; the gauges stay as they were.
    pub async fn record_backlog(&mut self, now_s: f64) -> Result<WaitingCounts, StoreError> {
        let waiting = self.count_waiting(now_s).await?;
        gauge_waiting(self.link.observer.name(), &waiting);
        Ok(waiting)
    }
}

impl<P: Connections> AsyncRedisTransport<P> {
    /// As [`AsyncRedisTransport::backlog`], and sets the gauges of the transport to it.
    ///
    /// # Errors
    /// As there; the gauges then stay as they were.
    ///
    /// A dropped future has changed nothing; the gauges stay as they were.
    pub async fn record_backlog(&mut self) -> Result<Backlog, StoreError> {
        let backlog = self.backlog().await?;
        gauge_groups(self.observer().name(), &backlog);
        Ok(backlog)
    }
}
