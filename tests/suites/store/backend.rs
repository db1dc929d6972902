//! Servers to test against, each test on a logical database of its own.

use std::{
    collections::BTreeSet,
    sync::{Condvar, LazyLock, Mutex, PoisonError, RwLock, mpsc},
    thread,
};

use fakeserver::Server;
use redis::{Client, Cmd, ConnectionLike, Pipeline, RedisFuture, RedisResult, Value, aio, cmd};
use tests::server::{Backend as Claim, Kind, real_url};

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

/// One server, empty, that no other test uses meanwhile.
pub(crate) struct Backend {
    /// Names it in messages.
    pub(crate) name: &'static str,
    host: Host,
}

enum Host {
    /// The fake without a socket.
    Memory(Server),
    /// The fake behind a TCP port.
    Tcp(Server),
    /// A real server: its address, and a database of it.
    Real(String, Lease),
}

impl Backend {
    /// A new blocking connection.
    pub(crate) fn connect(&self, protocol: Protocol) -> SyncConnection {
        match (&self.host, self.client(protocol)) {
            (Host::Memory(server), _) => {
                let mut connection = server.connection();
                hello(protocol).exec(&mut connection).unwrap();
                SyncConnection(Box::new(connection))
            }
            (_, client) => SyncConnection(Box::new(client.unwrap().get_connection().unwrap())),
        }
    }

    /// A new asynchronous connection, driven by the runtime that this is called on.
    pub(crate) async fn connect_async(&self, protocol: Protocol) -> AsyncConnection {
        match (&self.host, self.client(protocol)) {
            (Host::Memory(server), _) => {
                let mut connection = server.async_connection();
                hello(protocol).exec_async(&mut connection).await.unwrap();
                AsyncConnection(Box::new(connection))
            }
            (_, client) => {
                let connection = client.unwrap().get_multiplexed_async_connection().await;
                AsyncConnection(Box::new(connection.unwrap()))
            }
        }
    }

    /// What opens sockets; none without one.
    pub(crate) fn client(&self, protocol: Protocol) -> Option<Client> {
        let (address, db) = match &self.host {
            Host::Memory(_) => return None,
            Host::Tcp(server) => (server.url(), 0),
            Host::Real(address, lease) => (address.clone(), lease.0),
        };
        let protocol = match protocol {
            Protocol::Resp2 => "resp2",
            Protocol::Resp3 => "resp3",
        };
        Some(Client::open(format!("{address}/{db}?protocol={protocol}")).unwrap())
    }
}

fn hello(protocol: Protocol) -> Cmd {
    let version = match protocol {
        Protocol::Resp2 => 2,
        Protocol::Resp3 => 3,
    };
    cmd("HELLO").arg(version).take()
}

/// Runs a test on every backend that is there.
pub(crate) fn on_each(test: impl Fn(&Backend)) {
    let _together = GATE.read().unwrap_or_else(PoisonError::into_inner);
    run(test);
}

/// As [`on_each`] while no other test of this suite runs.
pub(crate) fn on_each_alone(test: impl Fn(&Backend)) {
    let _alone = GATE.write().unwrap_or_else(PoisonError::into_inner);
    run(test);
}

/// Databases are apart, the script cache is not.
static GATE: RwLock<()> = RwLock::new(());

fn run(test: impl Fn(&Backend)) {
    for (name, host) in hosts() {
        let backend = Backend { name, host };
        ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
        test(&backend);
    }
}

fn hosts() -> Vec<(&'static str, Host)> {
    let mut hosts = vec![
        ("fake in memory", Host::Memory(Server::new())),
        ("fake over TCP", Host::Tcp(Server::start())),
    ];
    if let Some(address) = &*REAL {
        hosts.push(("redis-server", Host::Real(address.clone(), Lease::take())));
    }
    hosts
}

/// The real server's address without a database; none if there is no real server.
///
/// The harness gives it to one test at a time; this suite asks for it once and gives each of its tests a database.
static REAL: LazyLock<Option<String>> = LazyLock::new(|| {
    let url = real_url()?;
    let (claimed, wait) = mpsc::channel();
    thread::spawn(move || {
        let _claim = Claim::start(Kind::Real);
        let _ = claimed.send(());
        // Until the process ends, and its connections with it.
        loop {
            thread::park();
        }
    });
    wait.recv().expect("the real server can be claimed");
    let (scheme, rest) = url.split_once("://").expect("REDIS_URL is a URL");
    let address = rest.split('/').next().unwrap_or_default();
    Some(format!("{scheme}://{address}"))
});

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
