//! [`Connection`] and [`Connector`]: what a client of the explorer talks to the server with.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use redis::aio::ConnectionLike;
use redis::{Arg, Cmd, ErrorKind, Pipeline, PushInfo, RedisFuture, RedisResult, Value};

use super::escape::Escape;
use super::gate::Gate;
use super::lane::{Replies, Ticket};
use super::schedule::Lane;
use crate::redis_client::answers;
use crate::wire::{Protocol, Request};

/// A client's connection. Each command of a write waits for its own turn, so that others can come in between.
///
/// Once it was lost every call on it fails; a new one comes from the [`Connector`].
pub struct Connection {
    gate: Arc<Gate>,
    lane: Lane,
    epoch: u64,
}

impl Connection {
    /// The next push message, in the order in which the server sent them: subscriptions that begin and end, and messages. Only a
    /// connection that speaks RESP3 gets any, see [`Connector::open_resp3`].
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn next_push(&mut self) -> RedisResult<PushInfo> {
        poll_fn(|cx| self.gate.poll_push(self.lane, self.epoch, cx)).await
    }

    pub(super) fn exchange<I>(&self, requests: I) -> Exchange<'_, I> {
        Exchange {
            connection: self,
            requests: Some(requests),
            ticket: None,
        }
    }

    /// Errors: this is another thread than that of the clients, so that there is no order.
    fn check_thread(&self) -> RedisResult<()> {
        if self.gate.is_on_its_thread() {
            return Ok(());
        }
        let escape = Escape::to_thread(&format!("connection {}", self.lane), &self.gate.progress());
        let text = escape.to_string();
        self.gate.escape(escape);
        Err((ErrorKind::Client, "not under control", text).into())
    }

    pub(super) fn is_open(&self) -> bool {
        self.gate.is_open(self.lane, self.epoch)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({})", self.lane)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.gate.release(self.lane, self.epoch);
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let request = std::iter::once(request_of(command));
            let mut replies = self.exchange(request).await?;
            replies.pop().ok_or_else(super::gate::closed)
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let requests = requests_of(pipeline).into_iter();
            let replies = self.exchange(requests).await?;
            answers(replies.into_vec(), offset, count)
        })
    }

    fn get_db(&self) -> i64 {
        0
    }
}

/// Opens connections for one client. Opening one is no step of the schedule, and never fails.
#[derive(Clone)]
pub struct Connector {
    pub(super) gate: Arc<Gate>,
    pub(super) client: usize,
}

impl Connector {
    /// As [`Connector::open`], for code that awaits its connections.
    ///
    /// # Errors
    /// As for [`Connector::open`].
    #[allow(
        clippy::unused_async,
        reason = "other transports have to wait for a connection"
    )]
    pub async fn connect(&self) -> RedisResult<Connection> {
        self.open()
    }

    /// A new connection.
    ///
    /// # Errors
    /// Only if there are too many open at a time, or if a real server that executes the commands refuses it.
    pub fn open(&self) -> RedisResult<Connection> {
        self.open_with(Protocol::Resp2)
    }

    /// A new connection that speaks RESP3 from the start, as after `HELLO 3`. Pushes come through [`Connection::next_push`].
    ///
    /// # Errors
    /// As for [`Connector::open`].
    pub fn open_resp3(&self) -> RedisResult<Connection> {
        self.open_with(Protocol::Resp3)
    }

    fn open_with(&self, protocol: Protocol) -> RedisResult<Connection> {
        let (lane, epoch) = self.gate.open(self.client, protocol)?;
        Ok(Connection {
            gate: Arc::clone(&self.gate),
            lane,
            epoch,
        })
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connector(client {})", self.client)
    }
}

/// A write and the wait for its replies.
pub(super) struct Exchange<'c, I> {
    connection: &'c Connection,
    requests: Option<I>,
    ticket: Option<Ticket>,
}

impl<I: ExactSizeIterator<Item = Request> + Unpin> Future for Exchange<'_, I> {
    type Output = RedisResult<Replies>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let connection = self.connection;
        if let Some(requests) = self.requests.take() {
            connection.check_thread()?;
            let (lane, epoch) = (connection.lane, connection.epoch);
            let (ticket, may_be_there) = connection.gate.send(lane, epoch, requests, cx.waker())?;
            self.ticket = Some(ticket);
            if !may_be_there {
                return Poll::Pending;
            }
        }
        let Some(ticket) = self.ticket else {
            return Poll::Ready(Err(super::gate::closed()));
        };
        let polled = connection.gate.poll(ticket, cx);
        if polled.is_ready() {
            self.ticket = None;
        }
        polled
    }
}

impl<I> Drop for Exchange<'_, I> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.connection.gate.abandon(ticket);
        }
    }
}

/// The commands that a pipeline sends, the MULTI and EXEC of a transaction among them. As for a single one nothing is packed
/// and decoded: this runs for each command of each schedule.
fn requests_of(pipeline: &Pipeline) -> Vec<Request> {
    let commands = pipeline.cmd_iter();
    let mut requests = Vec::with_capacity(commands.size_hint().0 + 2);
    let is_transaction = pipeline.is_transaction();
    requests.extend(is_transaction.then(|| Request::new(["MULTI"])));
    requests.extend(commands.map(request_of));
    requests.extend(is_transaction.then(|| Request::new(["EXEC"])));
    requests
}

/// A command's words.
pub(super) fn request_of(command: &Cmd) -> Request {
    let words = command.args_iter().map(|word| match word {
        Arg::Simple(word) => word,
        // A cursor argument stands for the number that an iteration begins with.
        _ => b"0",
    });
    Request::sized(words)
}
