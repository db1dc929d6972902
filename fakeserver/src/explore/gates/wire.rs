//! [`Stream`]: the gate as a byte stream, for clients that speak RESP themselves.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, PushInfo, RedisConnectionInfo, RedisResult, Value, VerbatimFormat,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::error::CommandError;
use crate::explore::Client;
use crate::explore::connection::Connector;
use crate::explore::gate::Gate;
use crate::explore::lane::Ticket;
use crate::explore::schedule::Lane;
use crate::wire::{Limits, Protocol, Reply, Request, RequestDecoder, encode};

impl<I, O> Client<I, O> {
    /// redis-rs' own connection, over a stream in memory: its pipelining and its time-outs are those of production. It speaks
    /// RESP2 and tells the server no library name; other settings take a [`Client::stream`].
    ///
    /// # Errors
    /// As for [`Connector::open`].
    pub async fn multiplexed(&self) -> RedisResult<MultiplexedConnection> {
        self.connector.multiplexed().await
    }

    /// A connection to the server as a stream of bytes.
    ///
    /// # Errors
    /// As for [`Connector::open`].
    pub fn stream(&self) -> RedisResult<Stream> {
        self.connector.stream()
    }
}

impl Connector {
    /// A new connection of redis-rs, see [`Client::multiplexed`].
    ///
    /// # Errors
    /// As for [`Connector::open`].
    pub async fn multiplexed(&self) -> RedisResult<MultiplexedConnection> {
        let info = RedisConnectionInfo::default().set_skip_set_lib_name();
        let config = AsyncConnectionConfig::new();
        let stream = self.stream()?;
        let (connection, driver) =
            MultiplexedConnection::new_with_config(&info, stream, config).await?;
        tokio::spawn(driver);
        Ok(connection)
    }

    /// A new connection as a stream of bytes.
    ///
    /// # Errors
    /// As for [`Connector::open`].
    pub fn stream(&self) -> RedisResult<Stream> {
        let (lane, epoch) = self.gate.open(self.client, Protocol::Resp2)?;
        Ok(Stream {
            gate: Arc::clone(&self.gate),
            lane,
            epoch,
            decoder: RequestDecoder::default(),
            is_opening: true,
            protocol: Protocol::Resp2,
            awaited: VecDeque::new(),
            unread: Vec::new(),
            read: 0,
            reader: None,
            lost: None,
        })
    }
}

/// A client's connection as a stream of bytes: what is written are commands, which wait at the gate one by one; what is read
/// are their replies. Made by [`Client::stream`].
///
/// How a client introduces itself (HELLO, AUTH, SELECT, CLIENT SETINFO and SETNAME in front of its first other command) is no
/// step of the schedule, so that a schedule is the same on every way to the gate.
pub struct Stream {
    gate: Arc<Gate>,
    lane: Lane,
    epoch: u64,
    decoder: RequestDecoder,
    is_opening: bool,
    protocol: Protocol,
    awaited: VecDeque<Ticket>,
    unread: Vec<u8>,
    read: usize,
    reader: Option<Waker>,
    /// The connection is lost; told once what came before has been read.
    lost: Option<io::Error>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({})", self.lane)
    }
}

impl Stream {
    fn receive(&mut self, bytes: &[u8], waker: &Waker) -> io::Result<()> {
        self.decoder.feed(bytes);
        let mut request = Request::default();
        let limits = Limits {
            authenticated: true,
            ..Limits::default()
        };
        while self
            .decoder
            .next(&mut request, &limits)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?
        {
            self.send(std::mem::take(&mut request), waker)?;
        }
        Ok(())
    }

    fn send(&mut self, request: Request, waker: &Waker) -> io::Result<()> {
        self.is_opening &= is_introduction(&request);
        if self.is_opening {
            let reply = self.gate.pass(self.lane, self.epoch, &request);
            let reply = reply.map_err(broken)?;
            if let (b"HELLO", Some(b"3"), Value::Map(_)) = (
                request.name().to_ascii_uppercase().as_slice(),
                request.get(1),
                &reply,
            ) {
                self.protocol = Protocol::Resp3;
            }
            self.answer(reply);
        } else {
            let request = std::iter::once(request);
            let sent = self.gate.send(self.lane, self.epoch, request, waker);
            let (ticket, _) = sent.map_err(broken)?;
            self.awaited.push_back(ticket);
        }
        Ok(())
    }

    fn answer(&mut self, reply: Value) {
        // What confirms a subscription is among the pushes too.
        if matches!(reply, Value::Push { .. }) {
            return;
        }
        encode(&to_reply(reply), self.protocol, &mut self.unread);
    }

    /// Takes in the pushes and replies that are there.
    fn fetch(&mut self, cx: &Context<'_>) {
        let is_closed = loop {
            match self.gate.poll_push(self.lane, self.epoch, cx) {
                Poll::Ready(Ok(PushInfo { kind, data })) => {
                    let push = to_reply(Value::Push { kind, data });
                    encode(&push, self.protocol, &mut self.unread);
                }
                Poll::Ready(Err(error)) => break Some(error),
                Poll::Pending => break None,
            }
        };
        while let Some(ticket) = self.awaited.front() {
            let Poll::Ready(replies) = self.gate.poll(*ticket, cx) else {
                break;
            };
            self.awaited.pop_front();
            match replies {
                Ok(replies) => replies.into_iter().for_each(|reply| self.answer(reply)),
                Err(error) => {
                    self.lost.get_or_insert(reset(error));
                }
            }
        }
        if let Some(error) = is_closed.filter(|_| self.awaited.is_empty()) {
            self.lost.get_or_insert(reset(error));
        }
    }
}

/// The error of a connection that was lost before.
fn broken(error: redis::RedisError) -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, error)
}

/// The error of a connection that is lost while replies are awaited.
fn reset(error: redis::RedisError) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, error)
}

fn is_introduction(request: &Request) -> bool {
    match request.name().to_ascii_uppercase().as_slice() {
        b"HELLO" | b"AUTH" | b"SELECT" => true,
        b"CLIENT" => {
            let sub = request.get(1).unwrap_or_default().to_ascii_uppercase();
            matches!(sub.as_slice(), b"SETINFO" | b"SETNAME")
        }
        _ => false,
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read == self.unread.len() {
            self.unread.clear();
            self.read = 0;
            self.fetch(cx);
        }
        let len = buf.remaining().min(self.unread.len() - self.read);
        if len == 0 {
            if let Some(error) = self.lost.take() {
                return Poll::Ready(Err(error));
            }
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let end = self.read + len;
        buf.put_slice(self.unread.get(self.read..end).unwrap_or_default());
        self.read = end;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.receive(bytes, cx.waker())?;
        // Whoever reads in another task has to ask for the new replies.
        self.reader.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.gate.release(self.lane, self.epoch);
        Poll::Ready(Ok(()))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        for ticket in self.awaited.drain(..) {
            self.gate.abandon(ticket);
        }
        self.gate.release(self.lane, self.epoch);
    }
}

/// The reply that redis-rs reads as this value.
fn to_reply(value: Value) -> Reply {
    let list = |items: Vec<Value>| items.into_iter().map(to_reply).collect::<Vec<_>>();
    let pairs = |pairs: Vec<(Value, Value)>| {
        let pair = |(key, value)| (to_reply(key), to_reply(value));
        pairs.into_iter().map(pair).collect::<Vec<_>>()
    };
    match value {
        Value::Int(number) => Reply::Integer(number),
        Value::BulkString(bytes) => Reply::bulk(bytes),
        Value::Array(items) => Reply::Array(list(items)),
        Value::SimpleString(text) => Reply::status(text.into_bytes()),
        Value::Okay => Reply::OK,
        Value::Map(map) => Reply::Map(pairs(map)),
        Value::Attribute { data, attributes } => {
            Reply::Attribute(pairs(attributes), Box::new(to_reply(*data)))
        }
        Value::Set(items) => Reply::Set(list(items)),
        Value::Double(number) => Reply::Double(number),
        Value::Boolean(yes) => Reply::Boolean(yes),
        Value::VerbatimString { format, text } => {
            Reply::Verbatim(tag(&format), text.into_bytes().into())
        }
        Value::BigNumber(digits) => Reply::BigNumber(digits.into()),
        Value::Push { kind, data } => {
            let kind = Reply::bulk(kind.to_string());
            Reply::Push(std::iter::once(kind).chain(list(data)).collect())
        }
        Value::ServerError(error) => {
            let text = match error.details() {
                Some(details) => format!("{} {details}", error.code()),
                None => error.code().to_owned(),
            };
            Reply::Error(CommandError::custom(text))
        }
        // Nil, and what a later version may add.
        _ => Reply::Null,
    }
}

fn tag(format: &VerbatimFormat) -> [u8; 3] {
    match format {
        VerbatimFormat::Markdown => *b"mkd",
        VerbatimFormat::Unknown(name) => name.as_bytes().try_into().unwrap_or(*b"txt"),
        _ => *b"txt",
    }
}
