//! [`Connection`] and [`Connector`]: what a client of the explorer talks to the server with.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use redis::aio::ConnectionLike;
use redis::{Arg, Cmd, Pipeline, RedisFuture, RedisResult, Value};

use super::gate::Gate;
use super::lane::Ticket;
use super::schedule::Lane;
use crate::redis_client::{answers, requests};
use crate::wire::Request;

/// A client's connection. Each command of a write waits for its own turn, so that others can come in between.
///
/// Once it was lost every call on it fails; a new one comes from the [`Connector`].
pub struct Connection {
    gate: Arc<Gate>,
    lane: Lane,
    epoch: u32,
}

impl Connection {
    async fn exchange(&self, requests: Vec<Request>) -> RedisResult<Vec<Value>> {
        let ticket = self.gate.send(self.lane, self.epoch, requests)?;
        Exchange {
            gate: &self.gate,
            ticket: Some(ticket),
        }
        .await
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
            let mut replies = self.exchange(vec![request_of(command)]).await?;
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
            let replies = self.exchange(requests_of(pipeline)?).await?;
            answers(replies, offset, count)
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
    /// A new connection.
    ///
    /// # Errors
    /// Only if there are too many open at a time, or if a real server that executes the commands refuses it.
    pub fn open(&self) -> RedisResult<Connection> {
        let (lane, epoch) = self.gate.open(self.client)?;
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

struct Exchange<'g> {
    gate: &'g Gate,
    ticket: Option<Ticket>,
}

impl Future for Exchange<'_> {
    type Output = RedisResult<Vec<Value>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(ticket) = self.ticket else {
            return Poll::Ready(Err(super::gate::closed()));
        };
        let polled = self.gate.poll(ticket, cx);
        if polled.is_ready() {
            self.ticket = None;
        }
        polled
    }
}

impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.gate.abandon(ticket);
        }
    }
}

/// The commands that a pipeline sends, the MULTI and EXEC of a transaction among them.
fn requests_of(pipeline: &Pipeline) -> RedisResult<Vec<Request>> {
    if pipeline.is_transaction() {
        return requests(&pipeline.get_packed_pipeline());
    }
    Ok(pipeline.cmd_iter().map(request_of).collect())
}

/// A command's words, taken over without packing and decoding them: this runs for each command of each schedule.
fn request_of(command: &Cmd) -> Request {
    let mut request = Request::default();
    for word in command.args_iter() {
        match word {
            Arg::Simple(word) => request.push(word),
            // A cursor argument stands for the number that an iteration begins with.
            _ => request.push(b"0"),
        }
    }
    request
}
