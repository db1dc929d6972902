//! How much waits.

use crate::{RedisStore, StoreError, WaitingCounts, op, sync::Connections};

impl<P: Connections> RedisStore<P> {
    /// How much waits at this moment (seconds since the epoch), in one round trip whose cost does not depend on it.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for NaN, [`StoreError::Corrupt`], [`StoreError::Io`]. Trying again is safe.
    pub fn count_waiting(&mut self, now_s: f64) -> Result<WaitingCounts, StoreError> {
        let operation = self
            .link
            .built(op::CountWaiting::new(&self.settings, now_s))?;
        self.run(operation)
    }
}
