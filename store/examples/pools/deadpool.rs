//! A source of connections for the asynchronous twin: deadpool's pool, which many stores share.

use deadpool_redis::{Connection, Pool};
use redis::{ErrorKind, RedisError, RedisResult, aio::MultiplexedConnection};
use store::{aio::Connections, op::Channel};

/// A connection of a pool, checked out for as long as an operation takes.
///
/// It is nobody else's while it is out, so that it may carry a watch; and it is the only one that the operation needs: a second one
/// beside it, and stores would wait for each other for ever when the pool is empty. One that may still carry a watch
/// when it is no longer needed (a future was dropped, a reply was lost) does not go back: it is taken out of the pool and closed.
pub(crate) struct Pooled {
    pool: Pool,
    held: Option<Connection>,
}

impl Pooled {
    /// Of this pool.
    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool, held: None }
    }

    fn close(&mut self) {
        if let Some(connection) = self.held.take() {
            drop(Connection::take(connection));
        }
    }
}

/// Nothing was sent: no connection, or none in time.
fn unsent(error: deadpool_redis::PoolError) -> RedisError {
    match error {
        deadpool_redis::PoolError::Backend(error) => error,
        other => (
            ErrorKind::Io,
            "no connection from the pool",
            other.to_string(),
        )
            .into(),
    }
}

impl Connections for Pooled {
    type Shared = MultiplexedConnection;
    type Pinned = MultiplexedConnection;

    async fn shared(&mut self) -> RedisResult<&mut MultiplexedConnection> {
        self.pinned().await
    }

    async fn pinned(&mut self) -> RedisResult<&mut MultiplexedConnection> {
        let connection = match self.held.take() {
            Some(connection) => connection,
            None => self.pool.get().await.map_err(unsent)?,
        };
        Ok(&mut *self.held.insert(connection))
    }

    async fn renew(&mut self) -> RedisResult<()> {
        self.close();
        Ok(())
    }

    fn lost(&mut self, _: Channel) {
        self.close();
    }

    fn done(&mut self) {
        self.held = None;
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        // What is still here may carry a watch.
        self.close();
    }
}
