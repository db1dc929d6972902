//! A source of connections for the asynchronous twin: deadpool's pool, which many stores share.

use deadpool_redis::{Connection, Pool};
use redis::{ErrorKind, RedisError, RedisResult, aio::MultiplexedConnection};
use store::{aio::Connections, op::Channel};

/// Connections of a pool, checked out for as long as an operation takes.
///
/// A connection of the pool is nobody else's while it is out, so that it may carry a watch. One that may still carry a watch
/// when it is no longer needed (a future was dropped, a reply was lost) does not go back: it is taken out of the pool and closed.
pub(crate) struct Pooled {
    pool: Pool,
    shared: Option<Connection>,
    pinned: Option<Connection>,
}

impl Pooled {
    /// Of this pool.
    pub(crate) fn new(pool: Pool) -> Self {
        Self {
            pool,
            shared: None,
            pinned: None,
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

async fn checked_out<'p>(
    pool: &Pool,
    place: &'p mut Option<Connection>,
) -> RedisResult<&'p mut MultiplexedConnection> {
    let connection = match place.take() {
        Some(connection) => connection,
        None => pool.get().await.map_err(unsent)?,
    };
    Ok(&mut *place.insert(connection))
}

fn close(connection: Option<Connection>) {
    if let Some(connection) = connection {
        drop(Connection::take(connection));
    }
}

impl Connections for Pooled {
    type Shared = MultiplexedConnection;
    type Pinned = MultiplexedConnection;

    async fn shared(&mut self) -> RedisResult<&mut MultiplexedConnection> {
        checked_out(&self.pool, &mut self.shared).await
    }

    async fn pinned(&mut self) -> RedisResult<&mut MultiplexedConnection> {
        checked_out(&self.pool, &mut self.pinned).await
    }

    async fn renew(&mut self) -> RedisResult<()> {
        close(self.pinned.take());
        Ok(())
    }

    fn lost(&mut self, channel: Channel) {
        close(match channel {
            Channel::Shared => self.shared.take(),
            Channel::Pinned => self.pinned.take(),
        });
    }

    fn done(&mut self) {
        self.shared = None;
        self.pinned = None;
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        close(self.pinned.take());
    }
}
