//! redis-rs without a socket: a direct connection, blocking and async, and a byte stream for `MultiplexedConnection`.
//!
//! `req_packed_command` and `req_packed_commands` of redis-rs are hidden from its documentation and may change with a major
//! version; they are implemented in this file only.

mod stream;
mod value;

use std::io;
use std::sync::Arc;
use std::time::Duration;

pub use stream::Stream;
#[cfg(feature = "explore")]
pub(crate) use value::to_reply;
pub use value::to_value;

use futures_util::FutureExt;
use redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisFuture, RedisResult, Value};
use tokio::sync::Notify;

use crate::engine::Peer;
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
        Stream::open(self)
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
            self.outcome(engine)
        })
    }

    /// Looks whether a blocked command has been answered.
    fn poll(&self) -> RedisResult<Outcome> {
        self.shared.catch_up();
        self.shared.enter(|engine, _| self.outcome(engine))
    }

    fn outcome(&self, engine: &mut crate::engine::Engine) -> RedisResult<Outcome> {
        let protocol = engine.protocol(self.id);
        while let Some(reply) = engine.poll_reply(self.id) {
            // Pushes are not the answer to a request; a direct connection has nobody to hand them to.
            if !matches!(reply, Reply::Push(_)) || protocol == Protocol::Resp2 {
                return Ok(Outcome::Answered(to_value(reply, protocol)));
            }
        }
        if !engine.is_connected(self.id) {
            Err(closed())
        } else if engine.is_blocked(self.id) {
            Ok(Outcome::Waiting)
        } else {
            Ok(Outcome::Silent)
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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use redis::aio::MultiplexedConnection;
    use redis::{AsyncConnectionConfig, RedisConnectionInfo};

    use super::*;
    use crate::clock::Clock;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
    }

    async fn multiplexed(server: &Server) -> MultiplexedConnection {
        let (info, config) = (RedisConnectionInfo::default(), AsyncConnectionConfig::new());
        let (connection, driver) =
            MultiplexedConnection::new_with_config(&info, server.stream(), config)
                .await
                .unwrap();
        tokio::spawn(driver);
        connection
    }

    #[test]
    fn all_three_connections_reach_the_same_server() {
        let server = Server::new();
        let mut sync = server.connection();
        redis::cmd("SET").arg("k").arg("v").exec(&mut sync).unwrap();
        runtime().block_on(async {
            let mut direct = server.async_connection();
            let mut stream = multiplexed(&server).await;
            let got: String = redis::cmd("GET")
                .arg("k")
                .query_async(&mut direct)
                .await
                .unwrap();
            assert_eq!(got, "v");
            let got: (String, Option<String>) = redis::pipe()
                .cmd("GET")
                .arg("k")
                .cmd("GET")
                .arg("none")
                .query_async(&mut stream)
                .await
                .unwrap();
            assert_eq!(got, ("v".to_owned(), None));
        });
        assert_eq!(server.command(["GET", "k"]), Reply::bulk("v"));
    }

    #[test]
    fn a_transaction_that_cannot_be_queued_is_an_error_and_an_aborted_one_is_nil() {
        let server = Server::new();
        let mut con = server.connection();
        let refused = redis::pipe()
            .atomic()
            .cmd("SET")
            .arg("k")
            .query::<()>(&mut con)
            .unwrap_err();
        assert!(
            refused.to_string().contains("wrong number of arguments"),
            "{refused}"
        );
        redis::cmd("WATCH").arg("k").exec(&mut con).unwrap();
        server.command(["SET", "k", "other"]);
        let aborted: Option<(String,)> = redis::pipe()
            .atomic()
            .cmd("SET")
            .arg("k")
            .arg("mine")
            .query(&mut con)
            .unwrap();
        assert_eq!(aborted, None);
        assert_eq!(server.command(["GET", "k"]), Reply::bulk("other"));
    }

    #[test]
    fn a_dropped_connection_leaves_nothing_behind() {
        let server = Server::new();
        let mut con = server.connection();
        redis::cmd("MULTI").exec(&mut con).unwrap();
        let id = con.session.id;
        drop(con);
        assert!(!server.shared().enter(|engine, _| engine.is_connected(id)));
    }

    #[test]
    fn blocked_calls_end_by_the_servers_clock_and_by_another_clients_push() {
        let server = Server::builder().clock(Clock::frozen_at(0)).build();
        let mut waiting = server.connection();
        let started = Instant::now();
        let other = server.clone();
        let waiter = std::thread::spawn(move || {
            redis::cmd("BLPOP")
                .arg("queue")
                .arg(3600)
                .query::<Value>(&mut waiting)
        });
        while !waiter.is_finished() {
            other.advance(Duration::from_secs(3600));
            std::thread::yield_now();
        }
        assert_eq!(waiter.join().unwrap().unwrap(), Value::Nil);
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "an hour must not pass"
        );
        runtime().block_on(async {
            let mut stream = multiplexed(&server).await;
            let pop = tokio::spawn(async move {
                redis::cmd("BLPOP")
                    .arg("queue")
                    .arg(0)
                    .query_async::<(String, String)>(&mut stream)
                    .await
            });
            tokio::task::yield_now().await;
            server.command(["RPUSH", "queue", "job"]);
            assert_eq!(
                pop.await.unwrap().unwrap(),
                ("queue".to_owned(), "job".to_owned())
            );
        });
    }
}
