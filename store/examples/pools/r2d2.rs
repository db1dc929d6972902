//! A source of connections for the blocking twin: r2d2's pool, which many threads share.

use std::time::Duration;

use r2d2::{ManageConnection, Pool, PooledConnection};
use redis::{Client, Connection, ConnectionLike, ErrorKind, RedisError, RedisResult, cmd};
use store::{op::Channel, sync::Connections};

/// Opens connections for a pool. Redis-rs' own manager of that kind will not do: a connection on which a reply was waited for
/// too long stays open and would go back, with the late reply in it.
pub(crate) struct Manager {
    client: Client,
    response_timeout: Duration,
}

impl Manager {
    /// To the server of this client; a reply that takes longer counts as lost.
    pub(crate) fn new(client: Client, response_timeout: Duration) -> Self {
        Self {
            client,
            response_timeout,
        }
    }
}

/// A connection of the pool.
pub(crate) struct Member {
    connection: Connection,
    /// It may carry a watch, or a late reply: the pool throws it away.
    is_spent: bool,
}

impl ManageConnection for Manager {
    type Connection = Member;
    type Error = RedisError;

    fn connect(&self) -> RedisResult<Member> {
        let timeout = self.response_timeout;
        let connection = self.client.get_connection_with_timeout(timeout)?;
        connection.set_read_timeout(Some(timeout))?;
        connection.set_write_timeout(Some(timeout))?;
        Ok(Member {
            connection,
            is_spent: false,
        })
    }

    fn is_valid(&self, member: &mut Member) -> RedisResult<()> {
        cmd("PING")
            .query::<String>(&mut member.connection)
            .map(drop)
    }

    fn has_broken(&self, member: &mut Member) -> bool {
        member.is_spent || !member.connection.is_open()
    }
}

/// A connection of a pool, checked out for as long as an operation takes; the only one that it needs, or stores would wait for each
/// other when the pool is empty.
pub(crate) struct Pooled {
    pool: Pool<Manager>,
    held: Option<PooledConnection<Manager>>,
}

impl Pooled {
    /// Of this pool.
    pub(crate) fn new(pool: Pool<Manager>) -> Self {
        Self { pool, held: None }
    }

    fn spend(&mut self) {
        if let Some(mut member) = self.held.take() {
            member.is_spent = true;
        }
    }
}

/// Nothing was sent: no connection in time.
fn unsent(error: &r2d2::Error) -> RedisError {
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
        let member = match self.held.take() {
            Some(member) => member,
            None => self.pool.get().map_err(|error| unsent(&error))?,
        };
        Ok(&mut self.held.insert(member).connection)
    }

    fn renew(&mut self) -> RedisResult<()> {
        self.spend();
        Ok(())
    }

    fn lost(&mut self, _: Channel) {
        self.spend();
    }

    fn done(&mut self) {
        self.held = None;
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        // What is still here may carry a watch.
        self.spend();
    }
}
