//! Gauges of what waits.

use crate::{
    RedisStore, StoreError, WaitingCounts,
    observe::{gauge_groups, gauge_waiting},
    sync::Connections,
    transport::{Backlog, RedisTransport},
};

impl<P: Connections> RedisStore<P> {
    /// As [`RedisStore::count_waiting`], and sets the gauges of the store to it. Nothing calls it but its users, as often as they
    /// like to know.
    ///
    /// # Errors
    /// As there; the gauges then stay as they were.
    pub fn record_backlog(&mut self, now_s: f64) -> Result<WaitingCounts, StoreError> {
        let waiting = self.count_waiting(now_s)?;
        gauge_waiting(self.link.observer.name(), &waiting);
        Ok(waiting)
    }
}

impl<P: Connections> RedisTransport<P> {
    /// As [`RedisTransport::backlog`], and sets the gauges of the transport to it.
    ///
    /// # Errors
    /// As there; the gauges then stay as they were.
    pub fn record_backlog(&mut self) -> Result<Backlog, StoreError> {
        let backlog = self.backlog()?;
        gauge_groups(self.observer().name(), &backlog);
        Ok(backlog)
    }
}
