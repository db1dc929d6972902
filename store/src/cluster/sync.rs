//! The blocking twin's connections.

use std::{collections::BTreeMap, fmt, thread, time::Duration};

use redis::{Connection, ConnectionLike, IntoConnectionInfo, RedisResult, cmd};

use super::{
    Address,
    chart::Chart,
    course::{self, Course, Next, PATIENCE_DEFAULT, To},
};
use crate::{
    StoreError,
    driver::{RESPONSE_TIMEOUT_DEFAULT, replies_of},
    keys::Keys,
    op::{self, Batch, Channel, Replies},
    sync::Connections,
};

/// Blocking connections to the nodes of a Redis Cluster, one to each that is needed, and one for commits that watch.
///
/// See [the module](super) for what is followed and what is not.
pub struct Cluster {
    chart: Chart,
    response_timeout: Duration,
    patience: Duration,
    nodes: BTreeMap<Address, Connection>,
    pinned: Option<Connection>,
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

    fn open(&self, node: &Address) -> RedisResult<Connection> {
        let client = redis::Client::open(self.chart.info(node))?;
        let connection = client.get_connection_with_timeout(self.response_timeout)?;
        connection.set_read_timeout(Some(self.response_timeout))?;
        connection.set_write_timeout(Some(self.response_timeout))?;
        Ok(connection)
    }

    fn node(&mut self, node: &Address) -> RedisResult<&mut Connection> {
        if self
            .nodes
            .get(node)
            .is_none_or(|connection| !connection.is_open())
        {
            let connection = self.open(node)?;
            self.nodes.insert(node.clone(), connection);
        }
        self.nodes
            .get_mut(node)
            .ok_or_else(|| op::protocol_error("no connection"))
    }

    /// Who serves the slot, asked for if it is not known.
    fn owner(&mut self) -> RedisResult<Address> {
        if let Some(owner) = self.chart.owner()? {
            return Ok(owner);
        }
        let mut failure = op::protocol_error("no node to ask");
        for candidate in self.chart.candidates() {
            match self.slots(&candidate) {
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

    fn slots(&mut self, node: &Address) -> RedisResult<redis::Value> {
        let connection = self.node(node)?;
        cmd("CLUSTER").arg("SLOTS").query(connection)
    }

    fn send(&mut self, course: &Course<'_>, node: &Address) -> Replies {
        if let Some(from_start) = course.scans_from_start()
            && !self.chart.may_scan(node, from_start)
        {
            // Not to be tried elsewhere.
            return Replies::Lost(course::moved_under_a_scan());
        }
        let connection = match self.node(node) {
            Ok(connection) => connection,
            Err(error) => return Replies::Unsent(error),
        };
        let (pipeline, before, count) = course.leg();
        let sent = connection.req_packed_commands(&pipeline.get_packed_pipeline(), before, count);
        let replies = replies_of(sent, count);
        if let Replies::Lost(_) = replies {
            self.nodes.remove(node);
            self.chart.doubt();
        }
        replies
    }

    fn leg(&mut self, course: &mut Course<'_>) -> Next {
        let node = match course.to() {
            To::Owner => match self.owner() {
                Ok(owner) => owner,
                Err(error) => return course.unreachable(error),
            },
            To::Asking(node) => node.clone(),
        };
        if let Some(end) = course.crosses_to(&node) {
            return end;
        }
        let replies = self.send(course, &node);
        course.after(replies, &node)
    }
}

impl Connections for Cluster {
    type Shared = Connection;
    type Pinned = Connection;

    fn aim(&mut self, keys: &Keys) -> Result<(), StoreError> {
        // Only between two operations: within one the watch goes with the connection.
        if self.chart.aim(keys)? || self.astray {
            self.pinned = None;
            self.astray = false;
        }
        Ok(())
    }

    fn exchange(&mut self, batch: &Batch) -> Replies {
        let mut course = Course::new(batch, || self.chart.probe(), self.patience);
        loop {
            match self.leg(&mut course) {
                Next::Done(replies) => return replies,
                Next::Moved(owner) => self.chart.moved(owner),
                Next::Wait { pause, doubt } => {
                    if doubt {
                        self.chart.doubt();
                    }
                    thread::sleep(pause);
                }
                Next::Go => {}
            }
        }
    }

    fn shared(&mut self) -> RedisResult<&mut Connection> {
        let owner = self.owner()?;
        self.node(&owner)
    }

    fn pinned(&mut self) -> RedisResult<&mut Connection> {
        if self.pinned.is_none() {
            let owner = self.owner()?;
            let opened = self.open(&owner).inspect_err(|_| self.chart.doubt())?;
            self.pinned = Some(opened);
        }
        match &mut self.pinned {
            // Not opened again: an operation may count on a watch that went with it.
            Some(connection) if connection.is_open() => Ok(connection),
            _ => Err(op::protocol_error("connection is closed")),
        }
    }

    fn renew(&mut self) -> RedisResult<()> {
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

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("chart", &self.chart)
            .field("open", &self.nodes.len())
            .finish_non_exhaustive()
    }
}
