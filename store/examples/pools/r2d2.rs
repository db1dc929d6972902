//! A source of connections for the blocking twin: r2d2's pool, which many threads share.

use r2d2::{Pool, PooledConnection};
use redis::{Client, Connection, ErrorKind, RedisError, RedisResult, cmd};
use store::{op::Channel, sync::Connections};

/// A connection of a pool, checked out for as long as an operation takes; the only one that it needs, or stores would wait for each
/// other when the pool is empty.
///
/// The types behind the pool's are named here, not the pool's own: those contain redis' client, which is no connection, and
/// commits that watch are refused over it.
pub(crate) struct Pooled {
    pool: Pool<Client>,
    held: Option<PooledConnection<Client>>,
}

impl Pooled {
    /// Of this pool.
    pub(crate) fn new(pool: Pool<Client>) -> Self {
        Self { pool, held: None }
    }
}

/// Nothing was sent: no connection in time.
fn unsent(error: r2d2::Error) -> RedisError {
    (
        ErrorKind::Io,
        "no connection from the pool",
        error.to_string(),
    )
        .into()
}

impl Connections for Pooled {
    type Shared = Connection;
    type Pinned = Connection;

    fn shared(&mut self) -> RedisResult<&mut Connection> {
        self.pinned()
    }

    fn pinned(&mut self) -> RedisResult<&mut Connection> {
        let connection = match self.held.take() {
            Some(connection) => connection,
            None => self.pool.get().map_err(unsent)?,
        };
        Ok(&mut *self.held.insert(connection))
    }

    fn renew(&mut self) -> RedisResult<()> {
        cmd("UNWATCH").query(self.pinned()?)
    }

    fn lost(&mut self, _: Channel) {
        // Without a reply redis-rs closes a connection, and the pool throws a closed one away.
        self.held = None;
    }

    fn done(&mut self) {
        self.held = None;
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        // Only what may carry a watch is still here. Without an answer the connection is closed, and with it the watch.
        if let Some(connection) = &mut self.held {
            let _: RedisResult<()> = cmd("UNWATCH").query(&mut **connection);
        }
    }
}
