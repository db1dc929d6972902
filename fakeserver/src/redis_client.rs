//! redis-rs without a socket: a direct connection, blocking and async, and a byte stream for `MultiplexedConnection`.
//!
//! `req_packed_command` and `req_packed_commands` of redis-rs are hidden from its documentation and may change with a major
//! version; they are implemented in this file only.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use redis::{
    Cmd, ErrorKind, Pipeline, PushKind, RedisError, RedisFuture, RedisResult, Value, VerbatimFormat,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use crate::engine::{Peer, Transmit};
use crate::server::Server;
use crate::session::SessionId;
use crate::shared::Shared;
use crate::wire::{Limits, Protocol, Reply, Request, RequestDecoder};

/// Longest real time between two looks at the clock while a blocking call waits for another client or for a time-out.
const PATIENCE: Duration = Duration::from_millis(5);

impl Server {
    /// A connection for blocking code: redis-rs' commands run on it at once, in the calling thread.
    pub fn connection(&self) -> Connection {
        Connection {
            session: Session::open(self, true),
        }
    }

    /// A connection for async code; it needs no runtime unless a command blocks.
    pub fn async_connection(&self) -> AsyncConnection {
        AsyncConnection {
            session: Session::open(self, true),
        }
    }

    /// A byte stream to the server, for whatever speaks RESP over `AsyncRead + AsyncWrite`, such as redis-rs'
    /// `MultiplexedConnection::new_with_config`.
    pub fn stream(&self) -> Stream {
        Stream {
            session: Session::open(self, false),
            unread: Vec::new(),
            read: 0,
            transmit: Transmit::default(),
        }
    }
}

/// A session that ends with its owner.
#[derive(Debug)]
struct Session {
    id: SessionId,
    shared: Arc<Shared>,
    woken: Arc<Wakeup>,
}

/// How the engine wakes the owner of a session.
#[derive(Debug, Default)]
struct Wakeup {
    notify: Notify,
    stream: std::sync::Mutex<Option<std::task::Waker>>,
    thread: std::sync::Mutex<()>,
    condvar: std::sync::Condvar,
}

impl Session {
    fn open(server: &Server, direct: bool) -> Session {
        let shared = Arc::clone(server.shared());
        let woken = Arc::new(Wakeup::default());
        let waker = Arc::clone(&woken);
        let wake = move || {
            waker.notify.notify_one();
            waker.condvar.notify_all();
            let task = waker.stream.lock().ok().and_then(|mut task| task.take());
            if let Some(task) = task {
                task.wake();
            }
        };
        let peer = Peer {
            address: "127.0.0.1:0".to_owned(),
            local_address: "127.0.0.1:0".to_owned(),
        };
        let id = shared.connect(peer, direct, Box::new(wake));
        Session { id, shared, woken }
    }

    /// Sends a request; its replies, of which a blocked command has none yet.
    fn submit(&self, request: Request) -> RedisResult<Outcome> {
        self.shared.enter(|engine, now| {
            if !engine.is_connected(self.id) {
                return Err(closed());
            }
            engine.submit(self.id, request, now);
            Ok(self.outcome(engine))
        })
    }

    /// Looks whether a blocked command has been answered.
    fn poll(&self) -> RedisResult<Outcome> {
        self.shared.catch_up();
        self.shared.enter(|engine, _| match self.outcome(engine) {
            Outcome::Waiting if !engine.is_connected(self.id) => Err(closed()),
            outcome => Ok(outcome),
        })
    }

    fn outcome(&self, engine: &mut crate::engine::Engine) -> Outcome {
        let protocol = engine.protocol(self.id);
        while let Some(reply) = engine.poll_reply(self.id) {
            // Pushes are not the answer to a request; a direct connection has nobody to hand them to.
            if !matches!(reply, Reply::Push(_)) || protocol == Protocol::Resp2 {
                return Outcome::Answered(to_value(reply, protocol));
            }
        }
        if engine.is_blocked(self.id) {
            Outcome::Waiting
        } else {
            Outcome::Silent
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.disconnect(self.id);
    }
}

enum Outcome {
    Answered(Value),
    /// The command blocks.
    Waiting,
    /// There will be no answer: the client has asked for none.
    Silent,
}

fn closed() -> RedisError {
    io::Error::new(
        io::ErrorKind::BrokenPipe,
        "the server has closed the connection",
    )
    .into()
}

/// A blocking connection without a socket.
///
/// Made by [`Server::connection`]; used as any `redis::ConnectionLike`.
#[derive(Debug)]
pub struct Connection {
    session: Session,
}

impl Connection {
    fn request(&mut self, request: Request) -> RedisResult<Value> {
        let mut outcome = self.session.submit(request)?;
        loop {
            match outcome {
                Outcome::Answered(value) => return Ok(value),
                Outcome::Silent => return Ok(Value::Nil),
                Outcome::Waiting => {
                    // The time-out only bounds how late a moved clock is seen: another client's write wakes at once.
                    if let Ok(guard) = self.session.woken.thread.lock() {
                        drop(self.session.woken.condvar.wait_timeout(guard, PATIENCE));
                    }
                    outcome = self.session.poll()?;
                }
            }
        }
    }
}

impl redis::ConnectionLike for Connection {
    fn req_packed_command(&mut self, cmd: &[u8]) -> RedisResult<Value> {
        let mut last = Value::Nil;
        for request in requests(cmd)? {
            last = self.request(request)?;
        }
        Ok(last)
    }

    fn req_packed_commands(
        &mut self,
        cmd: &[u8],
        offset: usize,
        count: usize,
    ) -> RedisResult<Vec<Value>> {
        let replies = requests(cmd)?
            .into_iter()
            .map(|request| self.request(request))
            .collect::<RedisResult<_>>()?;
        answers(replies, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.session
            .shared
            .enter(|engine, _| engine.db(self.session.id).0 as i64)
    }

    fn check_connection(&mut self) -> bool {
        redis::cmd("PING").query::<String>(self).is_ok()
    }

    fn is_open(&self) -> bool {
        self.session
            .shared
            .enter(|engine, _| engine.is_connected(self.session.id))
    }
}

/// An async connection without a socket.
///
/// Made by [`Server::async_connection`]; used as any `redis::aio::ConnectionLike`.
#[derive(Debug)]
pub struct AsyncConnection {
    session: Session,
}

impl AsyncConnection {
    async fn request(&mut self, request: Request) -> RedisResult<Value> {
        let mut outcome = self.session.submit(request)?;
        loop {
            match outcome {
                Outcome::Answered(value) => return Ok(value),
                Outcome::Silent => return Ok(Value::Nil),
                Outcome::Waiting => {
                    // The pause bounds how late a time-out is seen, and lets a paused tokio clock move on.
                    tokio::select! {
                        () = self.session.woken.notify.notified() => {}
                        () = tokio::time::sleep(PATIENCE) => {}
                    }
                    outcome = self.session.poll()?;
                }
            }
        }
    }
}

impl redis::aio::ConnectionLike for AsyncConnection {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        async move { self.request(request_of(cmd)?).await }.boxed()
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        async move {
            let mut replies = Vec::new();
            for request in requests(&pipeline.get_packed_pipeline())? {
                replies.push(self.request(request).await?);
            }
            answers(replies, offset, count)
        }
        .boxed()
    }

    fn get_db(&self) -> i64 {
        self.session
            .shared
            .enter(|engine, _| engine.db(self.session.id).0 as i64)
    }
}

/// The request that a redis-rs command stands for.
pub(crate) fn request_of(cmd: &Cmd) -> RedisResult<Request> {
    requests(&cmd.get_packed_command())?
        .pop()
        .ok_or_else(|| (ErrorKind::Client, "empty command").into())
}

/// Decodes packed commands.
pub(crate) fn requests(packed: &[u8]) -> RedisResult<Vec<Request>> {
    let mut decoder = RequestDecoder::default();
    decoder.feed(packed);
    let (mut request, mut requests) = (Request::default(), Vec::new());
    let limits = Limits {
        bulk_len_max: i64::MAX,
        query_buffer_max: usize::MAX,
        authenticated: true,
    };
    let refused = |error: crate::wire::ProtocolError| {
        RedisError::from((ErrorKind::Client, "not a packed command", error.to_string()))
    };
    while decoder.next(&mut request, &limits).map_err(refused)? {
        requests.push(std::mem::take(&mut request));
    }
    Ok(requests)
}

/// The answers of a pipeline that redis-rs asks for: `count` behind the first `offset`, of which an error fails the whole.
pub(crate) fn answers(replies: Vec<Value>, offset: usize, count: usize) -> RedisResult<Vec<Value>> {
    let mut replies = replies.into_iter();
    for reply in replies.by_ref().take(offset) {
        reply.extract_error()?;
    }
    Ok(replies.take(count).collect())
}

/// A reply as redis-rs reads it from a connection of this protocol version.
pub fn to_value(reply: Reply, protocol: Protocol) -> Value {
    let resp3 = protocol == Protocol::Resp3;
    let values = |items: Vec<Reply>| {
        items
            .into_iter()
            .map(|item| to_value(item, protocol))
            .collect::<Vec<_>>()
    };
    let pairs = |pairs: Vec<(Reply, Reply)>| {
        pairs
            .into_iter()
            .map(|(key, value)| (to_value(key, protocol), to_value(value, protocol)))
            .collect::<Vec<_>>()
    };
    match reply {
        Reply::Simple(text) if text == "OK" => Value::Okay,
        Reply::Simple(text) => Value::SimpleString(text.into_owned()),
        Reply::Error(error) => error_value(&error.to_bytes()),
        Reply::Integer(n) => Value::Int(n),
        Reply::Bulk(bytes) => Value::BulkString(bytes.into_vec()),
        Reply::Null | Reply::NullArray | Reply::Nothing => Value::Nil,
        Reply::Array(items) | Reply::Several(items) => Value::Array(values(items)),
        Reply::Set(items) if resp3 => Value::Set(values(items)),
        Reply::Set(items) => Value::Array(values(items)),
        Reply::Push(items) if resp3 => {
            let mut data = values(items);
            let kind = if data.is_empty() {
                Value::Nil
            } else {
                data.remove(0)
            };
            Value::Push {
                kind: push_kind(&kind),
                data,
            }
        }
        Reply::Push(items) => Value::Array(values(items)),
        Reply::Map(map) if resp3 => Value::Map(pairs(map)),
        Reply::Map(map) => Value::Array(
            pairs(map)
                .into_iter()
                .flat_map(|(key, value)| [key, value])
                .collect(),
        ),
        Reply::Double(value) if resp3 => Value::Double(value),
        Reply::Double(value) => {
            Value::BulkString(crate::value::number::format_double(value).into_bytes())
        }
        Reply::Boolean(value) if resp3 => Value::Boolean(value),
        Reply::Boolean(value) => Value::Int(i64::from(value)),
        Reply::BigNumber(digits) if resp3 => Value::BigNumber(String::from(digits).into_bytes()),
        Reply::BigNumber(digits) => Value::BulkString(String::from(digits).into_bytes()),
        Reply::Verbatim(format, text) if resp3 => Value::VerbatimString {
            format: match &format {
                b"txt" => VerbatimFormat::Text,
                b"mkd" => VerbatimFormat::Markdown,
                other => VerbatimFormat::Unknown(String::from_utf8_lossy(other).into_owned()),
            },
            text: String::from_utf8_lossy(&text).into_owned(),
        },
        Reply::Verbatim(_, text) => Value::BulkString(text.into_vec()),
        Reply::Attribute(attributes, data) if resp3 => Value::Attribute {
            data: Box::new(to_value(*data, protocol)),
            attributes: pairs(attributes),
        },
        Reply::Attribute(_, data) => to_value(*data, protocol),
    }
}

/// redis-rs does not let others make its server errors, but it parses them.
fn error_value(text: &[u8]) -> Value {
    let line = [b"-".as_slice(), text, b"\r\n"].concat();
    redis::parse_redis_value(&line).unwrap_or(Value::Nil)
}

fn push_kind(kind: &Value) -> PushKind {
    let name = match kind {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        _ => String::new(),
    };
    match name.as_str() {
        "disconnection" => PushKind::Disconnection,
        "invalidate" => PushKind::Invalidate,
        "message" => PushKind::Message,
        "pmessage" => PushKind::PMessage,
        "smessage" => PushKind::SMessage,
        "unsubscribe" => PushKind::Unsubscribe,
        "punsubscribe" => PushKind::PUnsubscribe,
        "sunsubscribe" => PushKind::SUnsubscribe,
        "subscribe" => PushKind::Subscribe,
        "psubscribe" => PushKind::PSubscribe,
        "ssubscribe" => PushKind::SSubscribe,
        _ => PushKind::Other(name),
    }
}

/// A byte stream to a server without a socket.
///
/// Made by [`Server::stream`]. What is written is run at once; what is read are the replies. A time-out of a blocked command
/// is seen when the clock is moved with [`Server::advance`], or when anything is read or written.
#[derive(Debug)]
pub struct Stream {
    session: Session,
    unread: Vec<u8>,
    read: usize,
    transmit: Transmit,
}

impl Stream {
    fn fetch(&mut self) {
        let Stream {
            session,
            unread,
            read,
            transmit,
        } = self;
        if *read == unread.len() {
            unread.clear();
            *read = 0;
        }
        session.shared.enter(|engine, now| {
            if transmit.more {
                engine.resume(session.id, now);
            }
            *transmit = engine.poll_transmit(session.id, unread);
        });
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Ok(mut task) = self.session.woken.stream.lock() {
            *task = Some(cx.waker().clone());
        }
        if self.read == self.unread.len() {
            self.session.shared.catch_up();
            self.fetch();
        }
        let len = buf.remaining().min(self.unread.len() - self.read);
        if len == 0 {
            return if self.transmit.close {
                Poll::Ready(Ok(()))
            } else {
                Poll::Pending
            };
        }
        let start = self.read;
        buf.put_slice(&self.unread[start..start + len]);
        self.read += len;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let id = self.session.id;
        let sent = self.session.shared.enter(|engine, now| {
            let open = engine.is_connected(id);
            if open {
                engine.receive(id, bytes, now);
            }
            open
        });
        Poll::Ready(if sent {
            Ok(bytes.len())
        } else {
            Err(io::ErrorKind::BrokenPipe.into())
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.session.shared.disconnect(self.session.id);
        Poll::Ready(Ok(()))
    }
}
