//! The tokio twin's connections.

use std::{collections::BTreeMap, fmt, time::Duration};

use redis::{
    AsyncConnectionConfig, IntoConnectionInfo, RedisResult,
    aio::{ConnectionLike, MultiplexedConnection},
    cmd,
};

use super::{
    Address,
    chart::Chart,
    course::{self, Course, Next, PATIENCE_DEFAULT, To},
};
use crate::{
    StoreError,
    aio::Connections,
    driver::{RESPONSE_TIMEOUT_DEFAULT, replies_of},
    keys::Keys,
    op::{self, Batch, Channel, Replies},
};

/// Connections to the nodes of a Redis Cluster, one to each that is needed, and one for commits that watch.
///
/// A clone shares the connections that are open at that moment, all but the last one. See [the module](super) for what is
/// followed and what is not.
pub struct Cluster {
    chart: Chart,
    response_timeout: Duration,
    patience: Duration,
    nodes: BTreeMap<Address, MultiplexedConnection>,
    pinned: Option<MultiplexedConnection>,
    /// The pinned connection leads to a node that does not serve the slot: the next operation needs another.
    astray: bool,
}

impl Cluster {
    /// Of the cluster that these nodes belong to; one is enough, several are better. Nothing is opened yet.
    ///
    /// # Errors
    /// [`StoreError::Io`] if none is named, or one has no host and port.
    pub fn new<T: IntoConnectionInfo>(
        nodes: impl IntoIterator<Item = T>,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            chart: Chart::new(nodes)?,
            response_timeout: RESPONSE_TIMEOUT_DEFAULT,
            patience: PATIENCE_DEFAULT,
            nodes: BTreeMap::new(),
            pinned: None,
            astray: false,
        })
    }

    /// Sets how long to wait for a reply, or for a connection, before it counts as lost.
    #[must_use]
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    /// Sets how long a call pauses in all for a cluster that moves a slot or replaces a master; five seconds unless told
    /// otherwise. The time that nodes take to answer comes on top.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    async fn open(&self, node: &Address) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.response_timeout))
            .set_response_timeout(Some(self.response_timeout));
        let client = redis::Client::open(self.chart.info(node))?;
        client
            .get_multiplexed_async_connection_with_config(&config)
            .await
    }

    async fn node(&mut self, node: &Address) -> RedisResult<&mut MultiplexedConnection> {
        if !self.nodes.contains_key(node) {
            let connection = self.open(node).await?;
            self.nodes.insert(node.clone(), connection);
        }
        self.nodes
            .get_mut(node)
            .ok_or_else(|| op::protocol_error("no connection"))
    }

    /// Who serves the slot, asked for if it is not known.
    async fn owner(&mut self) -> RedisResult<Address> {
        if let Some(owner) = self.chart.owner()? {
            return Ok(owner);
        }
        let mut failure = op::protocol_error("no node to ask");
        for candidate in self.chart.candidates() {
            match self.slots(&candidate).await {
                Ok(answer) => match self.chart.learn(answer, &candidate) {
                    Ok(owner) => return Ok(owner),
                    Err(error) => failure = error,
                },
                Err(error) => {
                    // The connection is gone or hangs; one that is asked again is a new one.
                    self.nodes.remove(&candidate);
                    failure = error;
                }
            }
        }
        Err(failure)
    }

    async fn slots(&mut self, node: &Address) -> RedisResult<redis::Value> {
        let connection = self.node(node).await?;
        cmd("CLUSTER").arg("SLOTS").query_async(connection).await
    }

    async fn send(&mut self, course: &Course<'_>, node: &Address) -> Replies {
        if let Some(from_start) = course.scans_from_start()
            && !self.chart.may_scan(node, from_start)
        {
            // Not to be tried elsewhere.
            return Replies::Lost(course::moved_under_a_scan());
        }
        let connection = match self.node(node).await {
            Ok(connection) => connection,
            Err(error) => return Replies::Unsent(error),
        };
        let (pipeline, before, count) = course.leg();
        let sent = connection
            .req_packed_commands(&pipeline, before, count)
            .await;
        let replies = replies_of(sent, count);
        if let Replies::Lost(_) = replies {
            self.nodes.remove(node);
            self.chart.doubt();
        }
        replies
    }

    async fn leg(&mut self, course: &mut Course<'_>) -> Next {
        let node = match course.to() {
            To::Owner => match self.owner().await {
                Ok(owner) => owner,
                Err(error) => return course.unreachable(error),
            },
            To::Asking(node) => node.clone(),
        };
        if let Some(end) = course.crosses_to(&node) {
            return end;
        }
        let replies = self.send(course, &node).await;
        course.after(replies, &node)
    }
}

impl Connections for Cluster {
    type Shared = MultiplexedConnection;
    type Pinned = MultiplexedConnection;

    fn aim(&mut self, keys: &Keys) -> Result<(), StoreError> {
        // Only between two operations: within one the watch goes with the connection.
        if self.chart.aim(keys)? || self.astray {
            self.pinned = None;
            self.astray = false;
        }
        Ok(())
    }

    async fn exchange(&mut self, batch: &Batch) -> Replies {
        let mut course = Course::new(batch, || self.chart.probe(), self.patience);
        loop {
            match self.leg(&mut course).await {
                Next::Done(replies) => return replies,
                Next::Moved(owner) => self.chart.moved(owner),
                Next::Wait { pause, doubt } => {
                    if doubt {
                        self.chart.doubt();
                    }
                    tokio::time::sleep(pause).await;
                }
                Next::Go => {}
            }
        }
    }

    async fn shared(&mut self) -> RedisResult<&mut MultiplexedConnection> {
        let owner = self.owner().await?;
        self.node(&owner).await
    }

    async fn pinned(&mut self) -> RedisResult<&mut MultiplexedConnection> {
        if self.pinned.is_none() {
            let owner = self.owner().await?;
            let opened = self.open(&owner).await;
            self.pinned = Some(opened.inspect_err(|_| self.chart.doubt())?);
        }
        self.pinned
            .as_mut()
            .ok_or_else(|| op::protocol_error("no connection"))
    }

    async fn renew(&mut self) -> RedisResult<()> {
        self.pinned = None;
        Ok(())
    }

    fn answered(&mut self, replies: &Replies) {
        if course::is_elsewhere(replies) {
            self.astray = true;
            self.chart.doubt();
        }
    }

    fn lost(&mut self, channel: Channel) {
        if channel == Channel::Pinned {
            self.pinned = None;
            self.chart.doubt();
        }
    }
}

impl Clone for Cluster {
    fn clone(&self) -> Self {
        Self {
            chart: self.chart.clone(),
            response_timeout: self.response_timeout,
            patience: self.patience,
            nodes: self.nodes.clone(),
            pinned: None,
            astray: false,
        }
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("chart", &self.chart)
            .field("open", &self.nodes.len())
            .finish_non_exhaustive()
    }
}
