//! A source of connections for the blocking twin: r2d2's pool, which many threads share.

use r2d2::{Pool, PooledConnection};
use redis::{Client, Connection, ErrorKind, RedisError, RedisResult, cmd};
use store::{op::Channel, sync::Connections};

/// Connections of a pool, checked out for as long as an operation takes.
///
/// The types behind the pool's are named here, not the pool's own: those contain redis' client, which is no connection, and
/// commits that watch are refused over it.
pub(crate) struct Pooled {
    pool: Pool<Client>,
    shared: Option<PooledConnection<Client>>,
    pinned: Option<PooledConnection<Client>>,
}

impl Pooled {
    /// Of this pool.
    pub(crate) fn new(pool: Pool<Client>) -> Self {
        Self {
            pool,
            shared: None,
            pinned: None,
        }
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

fn checked_out<'p>(
    pool: &Pool<Client>,
    place: &'p mut Option<PooledConnection<Client>>,
) -> RedisResult<&'p mut Connection> {
    let connection = match place.take() {
        Some(connection) => connection,
        None => pool.get().map_err(unsent)?,
    };
    Ok(&mut *place.insert(connection))
}

impl Connections for Pooled {
    type Shared = Connection;
    type Pinned = Connection;

    fn shared(&mut self) -> RedisResult<&mut Connection> {
        checked_out(&self.pool, &mut self.shared)
    }

    fn pinned(&mut self) -> RedisResult<&mut Connection> {
        checked_out(&self.pool, &mut self.pinned)
    }

    fn renew(&mut self) -> RedisResult<()> {
        cmd("UNWATCH").query(self.pinned()?)
    }

    fn lost(&mut self, channel: Channel) {
        // Without a reply redis-rs closes a connection, and the pool throws a closed one away.
        match channel {
            Channel::Shared => self.shared = None,
            Channel::Pinned => self.pinned = None,
        }
    }

    fn done(&mut self) {
        self.shared = None;
        self.pinned = None;
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        // Only what may carry a watch is still here. Without an answer the connection is closed, and with it the watch.
        if let Some(connection) = &mut self.pinned {
            let _: RedisResult<()> = cmd("UNWATCH").query(&mut **connection);
        }
    }
}
