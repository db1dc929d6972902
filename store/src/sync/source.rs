//! Where connections come from, but for a cluster's.

use std::{fmt, time::Duration};

use redis::{ConnectionLike, RedisResult, cmd};

use super::Connections;
use crate::{
    driver::RESPONSE_TIMEOUT_DEFAULT,
    op::{self, Channel},
};

/// One connection that belongs to the store and to nobody else.
#[derive(Debug)]
pub struct Exclusive<C>(pub(super) C);

impl<C: ConnectionLike> Exclusive<C> {
    /// Takes a connection. It must be one connection: a [`redis::Client`], which opens a new one for each request,
    /// can not carry a watch; commits that watch are refused over it.
    pub fn new(connection: C) -> Self {
        Self(connection)
    }

    fn open(&mut self) -> RedisResult<&mut C> {
        // A closed connection has sent nothing: worth knowing, since a lost one may have.
        if self.0.is_open() {
            Ok(&mut self.0)
        } else {
            Err(op::protocol_error("connection is closed"))
        }
    }
}

impl<C: ConnectionLike> Connections for Exclusive<C> {
    type Shared = C;
    type Pinned = C;

    fn shared(&mut self) -> RedisResult<&mut C> {
        self.open()
    }

    fn pinned(&mut self) -> RedisResult<&mut C> {
        self.open()
    }

    fn renew(&mut self) -> RedisResult<()> {
        cmd("UNWATCH").query(self.open()?)
    }

    fn lost(&mut self, _: Channel) {}
}

/// One connection that is opened when it is needed, and again after it was lost; never in the middle of an operation that
/// watches.
pub struct Reopening {
    client: redis::Client,
    response_timeout: Duration,
    connection: Option<redis::Connection>,
}

impl fmt::Debug for Reopening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reopening")
            .field("open", &self.connection.is_some())
            .finish_non_exhaustive()
    }
}

impl Reopening {
    /// Of this client; nothing is opened yet. A reply is waited for five seconds.
    pub fn new(client: redis::Client) -> Self {
        Self {
            client,
            response_timeout: RESPONSE_TIMEOUT_DEFAULT,
            connection: None,
        }
    }

    /// Sets how long to wait for a reply, or for a connection, before it counts as lost.
    #[must_use]
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    fn open(&mut self) -> RedisResult<&mut redis::Connection> {
        let connection = self
            .client
            .get_connection_with_timeout(self.response_timeout)?;
        connection.set_read_timeout(Some(self.response_timeout))?;
        connection.set_write_timeout(Some(self.response_timeout))?;
        Ok(self.connection.insert(connection))
    }
}

impl Connections for Reopening {
    type Shared = redis::Connection;
    type Pinned = redis::Connection;

    fn shared(&mut self) -> RedisResult<&mut redis::Connection> {
        if self
            .connection
            .as_ref()
            .is_some_and(|connection| !connection.is_open())
        {
            self.connection = None;
        }
        self.pinned()
    }

    fn pinned(&mut self) -> RedisResult<&mut redis::Connection> {
        match self.connection {
            None => self.open(),
            // Not opened again: an operation may count on a watch that went with it.
            Some(ref connection) if !connection.is_open() => {
                Err(op::protocol_error("connection is closed"))
            }
            Some(ref mut connection) => Ok(connection),
        }
    }

    fn renew(&mut self) -> RedisResult<()> {
        self.connection = None;
        self.open().map(drop)
    }

    fn lost(&mut self, _: Channel) {
        self.connection = None;
    }
}
