//! Where connections come from, but for a cluster's.

use std::{future::Future, time::Duration};

use redis::{
    AsyncConnectionConfig, RedisResult,
    aio::{ConnectionLike, MultiplexedConnection},
    cmd,
};

use super::Connections;
use crate::{
    driver::RESPONSE_TIMEOUT_DEFAULT,
    op::{self, Channel},
};

/// One connection that belongs to the store and to nobody else: no clone of it may be used while the store lives.
#[derive(Debug)]
pub struct Exclusive<C>(pub(super) C);

impl<C: ConnectionLike + Send> Exclusive<C> {
    /// Takes a connection. It must stay one connection: one that reconnects on its own, such as redis' connection
    /// manager, forgets a watch without a word, and commits that watch are refused over it; use [`Sharing`] with it.
    pub fn new(connection: C) -> Self {
        Self(connection)
    }
}

impl<C: ConnectionLike + Send> Connections for Exclusive<C> {
    type Shared = C;
    type Pinned = C;

    async fn shared(&mut self) -> RedisResult<&mut C> {
        Ok(&mut self.0)
    }

    async fn pinned(&mut self) -> RedisResult<&mut C> {
        Ok(&mut self.0)
    }

    async fn renew(&mut self) -> RedisResult<()> {
        cmd("UNWATCH").query_async(&mut self.0).await
    }

    fn lost(&mut self, _: Channel) {}
}

/// A connection that others use too, and a way to open one that they do not, for commits that watch.
///
/// The shared one may be a clone, or one that reconnects on its own; the other may be neither.
#[derive(Debug)]
pub struct Sharing<S, C, F> {
    shared: S,
    open: F,
    pinned: Option<C>,
}

impl<S, C, F, O> Sharing<S, C, F>
where
    S: ConnectionLike + Send,
    C: ConnectionLike + Send,
    F: FnMut() -> O + Send,
    O: Future<Output = RedisResult<C>> + Send,
{
    /// `open` must answer with a new connection, never with a clone of one in use.
    pub fn new(shared: S, open: F) -> Self {
        Self {
            shared,
            open,
            pinned: None,
        }
    }
}

impl<S, C, F, O> Connections for Sharing<S, C, F>
where
    S: ConnectionLike + Send,
    C: ConnectionLike + Send,
    F: FnMut() -> O + Send,
    O: Future<Output = RedisResult<C>> + Send,
{
    type Shared = S;
    type Pinned = C;

    async fn shared(&mut self) -> RedisResult<&mut S> {
        Ok(&mut self.shared)
    }

    async fn pinned(&mut self) -> RedisResult<&mut C> {
        if self.pinned.is_none() {
            self.pinned = Some((self.open)().await?);
        }
        self.pinned
            .as_mut()
            .ok_or_else(|| op::protocol_error("no connection"))
    }

    async fn renew(&mut self) -> RedisResult<()> {
        self.pinned = None;
        Ok(())
    }

    fn lost(&mut self, channel: Channel) {
        if channel == Channel::Pinned {
            self.pinned = None;
        }
    }
}

/// One connection that is opened when it is needed, and again after it was lost; never in the middle of an operation that
/// watches.
#[derive(Debug)]
pub struct Reopening {
    client: redis::Client,
    response_timeout: Duration,
    connection: Option<MultiplexedConnection>,
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

    async fn open(&mut self) -> RedisResult<&mut MultiplexedConnection> {
        if self.connection.is_none() {
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(self.response_timeout))
                .set_response_timeout(Some(self.response_timeout));
            let connection = self
                .client
                .get_multiplexed_async_connection_with_config(&config)
                .await?;
            self.connection = Some(connection);
        }
        self.connection
            .as_mut()
            .ok_or_else(|| op::protocol_error("no connection"))
    }
}

impl Connections for Reopening {
    type Shared = MultiplexedConnection;
    type Pinned = MultiplexedConnection;

    async fn shared(&mut self) -> RedisResult<&mut MultiplexedConnection> {
        self.open().await
    }

    async fn pinned(&mut self) -> RedisResult<&mut MultiplexedConnection> {
        self.open().await
    }

    async fn renew(&mut self) -> RedisResult<()> {
        self.connection = None;
        Ok(())
    }

    fn lost(&mut self, _: Channel) {
        self.connection = None;
    }
}
