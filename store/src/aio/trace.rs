//! The trace of an execution.

use serde_json::{Map, Value as Json};

use crate::{AsyncRedisStore, StoreError, aio::Connections, op};

impl<P: Connections> AsyncRedisStore<P> {
    /// How many trace steps are kept from now on; see [`Settings::trace_max`](crate::Settings::trace_max).
    pub fn set_trace_max(&mut self, steps: i64) {
        self.settings.set_trace_max(steps);
    }

    /// Adds a step to a trace outside of a commit; its own `index` is kept if it has one.
    ///
    /// A dropped future has added it or not, and may have used up a number; asking again may add it twice.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], [`StoreError::Indeterminate`] if the reply was lost (a repetition may add it twice).
    pub async fn append_trace(
        &mut self,
        id: &str,
        step: &Map<String, Json>,
    ) -> Result<(), StoreError> {
        let operation = self
            .link
            .built(op::AppendTrace::new(&self.settings, id, step))?;
        self.run(operation).await
    }

    /// The steps that the trace still holds, oldest first.
    ///
    /// A dropped future has changed nothing.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], [`StoreError::Corrupt`], [`StoreError::Io`].
    pub async fn read_trace(&mut self, id: &str) -> Result<Vec<Map<String, Json>>, StoreError> {
        let operation = self.link.built(op::ReadTrace::new(&self.settings, id))?;
        self.run(operation).await
    }
}
