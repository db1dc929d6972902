//! Servers to test against, each test on a logical database of its own.

use std::{
    collections::BTreeSet,
    env,
    sync::{Condvar, LazyLock, Mutex, Once, PoisonError},
};

use redis::{Client, Cmd, ConnectionLike, Pipeline, RedisFuture, RedisResult, Value, aio, cmd};

/// Any blocking connection.
pub(crate) struct SyncConnection(pub(crate) Box<dyn ConnectionLike + Send>);

impl ConnectionLike for SyncConnection {
    fn req_packed_command(&mut self, command: &[u8]) -> RedisResult<Value> {
        self.0.req_packed_command(command)
    }

    fn req_packed_commands(
        &mut self,
        commands: &[u8],
        offset: usize,
        count: usize,
    ) -> RedisResult<Vec<Value>> {
        self.0.req_packed_commands(commands, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.0.get_db()
    }

    fn check_connection(&mut self) -> bool {
        self.0.check_connection()
    }

    fn is_open(&self) -> bool {
        self.0.is_open()
    }
}

/// Any asynchronous connection.
pub(crate) struct AsyncConnection(pub(crate) Box<dyn aio::ConnectionLike + Send>);

impl aio::ConnectionLike for AsyncConnection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        self.0.req_packed_command(command)
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.0.req_packed_commands(pipeline, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.0.get_db()
    }
}

/// The protocol version that a connection speaks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Protocol {
    Resp2,
    Resp3,
}

pub(crate) const PROTOCOLS: [Protocol; 2] = [Protocol::Resp2, Protocol::Resp3];

/// One server with an empty database that no other test uses meanwhile.
pub(crate) struct Backend {
    /// Names it in messages.
    pub(crate) name: &'static str,
    url: String,
    db: Lease,
}

impl Backend {
    /// A new blocking connection.
    pub(crate) fn connect(&self, protocol: Protocol) -> SyncConnection {
        SyncConnection(Box::new(self.client(protocol).get_connection().unwrap()))
    }

    /// A new asynchronous connection, driven by the runtime that this is called on.
    pub(crate) async fn connect_async(&self, protocol: Protocol) -> AsyncConnection {
        let connection = self
            .client(protocol)
            .get_multiplexed_async_connection()
            .await;
        AsyncConnection(Box::new(connection.unwrap()))
    }

    fn client(&self, protocol: Protocol) -> Client {
        let protocol = match protocol {
            Protocol::Resp2 => "resp2",
            Protocol::Resp3 => "resp3",
        };
        Client::open(format!("{}/{}?protocol={protocol}", self.url, self.db.0)).unwrap()
    }
}

/// Runs a test on every backend that is there.
pub(crate) fn on_each(test: impl Fn(&Backend)) {
    let Some(url) = real_url() else { return };
    let backend = Backend {
        name: "redis-server",
        url,
        db: Lease::take(),
    };
    cmd("FLUSHDB")
        .exec(&mut backend.connect(Protocol::Resp2))
        .unwrap();
    test(&backend);
}

/// The real server's address without a database; none if there is no real server, which is said once.
fn real_url() -> Option<String> {
    static SAID: Once = Once::new();
    let url = env::var("REDIS_URL").ok();
    if url.is_none() {
        assert!(env::var_os("CI").is_none(), "CI needs REDIS_URL");
        SAID.call_once(|| eprintln!("store suite: left out on redis-server, REDIS_URL is not set"));
    }
    // What follows the port would be a database, and each test has its own.
    let url = url?;
    let (scheme, rest) = url.split_once("://").expect("REDIS_URL is a URL");
    let address = rest.split('/').next().unwrap_or_default();
    Some(format!("{scheme}://{address}"))
}

/// A server has 16 databases unless told otherwise; the first one is left to others.
static FREE: LazyLock<(Mutex<BTreeSet<u32>>, Condvar)> =
    LazyLock::new(|| (Mutex::new((1..16).collect()), Condvar::new()));

struct Lease(u32);

impl Lease {
    fn take() -> Self {
        let (free, freed) = &*FREE;
        let mut free = free.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(db) = free.pop_first() {
                return Self(db);
            }
            free = freed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let (free, freed) = &*FREE;
        free.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(self.0);
        freed.notify_one();
    }
}

/// One command on a connection; panics if the server refuses it.
pub(crate) fn ask(connection: &mut SyncConnection, words: &[&str]) -> Value {
    let mut command = cmd(words.first().unwrap());
    for word in words.iter().skip(1) {
        command.arg(*word);
    }
    let answer: RedisResult<Value> = command.query(connection);
    answer.unwrap_or_else(|error| panic!("{words:?}: {error}"))
}
