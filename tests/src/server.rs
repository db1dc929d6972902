//! [`Backend`]: the servers that a test runs on, from one source: the fake in memory, the fake over TCP, a real redis-server.
//!
//! The real one is named by the environment variable `REDIS_URL`. Without it the tests leave it out and say so once on standard
//! error; on continuous integration, where `CI` is set, its absence is a failure. Tests flush it and change its settings: do not
//! name one whose data matters.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use fakeserver::config::Permission;
use fakeserver::{Builder, Config, Server};
use redis::{Client, ConnectionAddr, IntoConnectionInfo};

use crate::frame::Frame;
use crate::raw::Raw;

/// What kind of server a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The fake without a socket.
    Memory,
    /// The fake behind a TCP port.
    Tcp,
    /// The redis-server that `REDIS_URL` names.
    Real,
}

/// A server that one test has for itself, empty at first.
#[derive(Debug)]
pub struct Backend {
    kind: Kind,
    host: Host,
}

#[derive(Debug)]
enum Host {
    Fake(Server),
    Real(Real),
}

impl Backend {
    /// The kinds that there are here: the real server only if it is named.
    pub fn kinds() -> &'static [Kind] {
        if real_url().is_some() {
            &[Kind::Memory, Kind::Tcp, Kind::Real]
        } else {
            &[Kind::Memory, Kind::Tcp]
        }
    }

    /// Runs a test on a fresh server of every kind, one after the other.
    pub fn each(mut test: impl FnMut(&Backend)) {
        for kind in Backend::kinds() {
            test(&Backend::start(*kind));
        }
    }

    /// A fresh server of a kind. The real one is waited for until no other test uses it. Panics if it cannot be reached.
    pub fn start(kind: Kind) -> Backend {
        let host = match kind {
            Kind::Memory => Host::Fake(builder().build()),
            Kind::Tcp => Host::Fake(builder().start()),
            Kind::Real => {
                let url = real_url().expect("REDIS_URL names the real server");
                Host::Real(Real::claim(&url))
            }
        };
        Backend { kind, host }
    }

    /// A fake without a socket that was built with other settings.
    pub fn from_fake(server: Server) -> Backend {
        Backend {
            kind: Kind::Memory,
            host: Host::Fake(server),
        }
    }

    /// What kind of server this is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The URL that clients open; none for a server without a socket.
    pub fn url(&self) -> Option<String> {
        match (&self.host, self.kind) {
            (Host::Real(real), _) => Some(real.url.clone()),
            (Host::Fake(_), Kind::Memory) => None,
            (Host::Fake(server), _) => Some(server.url()),
        }
    }

    /// The fake's handle; none for the real server.
    pub fn fake(&self) -> Option<&Server> {
        match &self.host {
            Host::Fake(server) => Some(server),
            Host::Real(_) => None,
        }
    }

    /// A new connection for bytes.
    pub fn raw(&self) -> Raw {
        match (&self.host, self.kind) {
            (Host::Real(real), _) => connect(&real.url),
            (Host::Fake(server), Kind::Memory) => Raw::memory(server),
            (Host::Fake(server), _) => connect(&server.url()),
        }
    }

    /// A new blocking connection of redis-rs, of its own transport where there is a socket.
    pub fn connection(&self) -> Box<dyn redis::ConnectionLike + Send> {
        match (&self.host, self.url()) {
            (Host::Fake(server), None) => Box::new(server.connection()),
            (_, url) => {
                let client = Client::open(url.unwrap_or_default()).expect("a valid URL");
                Box::new(client.get_connection().expect("a connection"))
            }
        }
    }
}

/// DEBUG is allowed, as it has to be on the real server.
fn builder() -> Builder {
    let config = Config {
        enable_debug_command: Permission::Yes,
        ..Config::default()
    };
    Server::builder().config(config)
}

/// The real server's URL, if it is named. Panics on continuous integration if it is not.
pub fn real_url() -> Option<String> {
    static SAID: Once = Once::new();
    let url = std::env::var("REDIS_URL")
        .ok()
        .filter(|url| !url.is_empty());
    if url.is_none() {
        assert!(
            std::env::var_os("CI").is_none(),
            "REDIS_URL must name a real redis-server when CI is set"
        );
        SAID.call_once(|| eprintln!("REDIS_URL is not set: the real redis-server is left out"));
    }
    url
}

/// A raw connection to the server of a URL, authenticated if the URL has a password.
fn connect(url: &str) -> Raw {
    let info = url
        .into_connection_info()
        .unwrap_or_else(|error| panic!("{url}: {error}"));
    let ConnectionAddr::Tcp(host, port) = info.addr() else {
        panic!("{url}: the tests need a plain TCP address");
    };
    let mut raw = Raw::tcp((host.as_str(), *port)).unwrap_or_else(|error| panic!("{url}: {error}"));
    if let Some(password) = info.redis_settings().password() {
        let username = info.redis_settings().username().unwrap_or("default");
        let reply = raw.call(&["AUTH", username, password]);
        assert!(!reply.is_error(), "{url}: {reply:?}");
    }
    raw
}

/// The real server while one test has it.
#[derive(Debug)]
struct Real {
    url: String,
    /// Bears the name that keeps other processes away.
    control: Raw,
    /// The settings as they were.
    settings: BTreeMap<Vec<u8>, Vec<u8>>,
    _process: MutexGuard<'static, ()>,
}

/// Threads of this process take turns here; processes by the name of a connection.
static PROCESS: Mutex<()> = Mutex::new(());

/// The name of the connection of the process that has the server.
const CLAIM: &str = "claimed-by-a-test";

/// A whole run of another process's tests may come first.
const CLAIM_PATIENCE: Duration = Duration::from_secs(600);

impl Real {
    fn claim(url: &str) -> Real {
        let process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        let mut control = claim(url);
        empty(&mut control);
        Real {
            url: url.to_owned(),
            settings: settings(&mut control),
            control,
            _process: process,
        }
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        // A test that failed has said enough; a second panic would hide it.
        if std::thread::panicking() {
            return;
        }
        for (name, value) in settings(&mut self.control) {
            if let Some(before) = self.settings.get(&name)
                && *before != value
            {
                self.control.call(&[b"CONFIG", &b"SET"[..], &name, before]);
            }
        }
        empty(&mut self.control);
    }
}

/// Forgets all that an earlier test can have left behind.
fn empty(control: &mut Raw) {
    for request in [
        // A test that failed amid a pause would keep the next ones waiting.
        &["CLIENT", "UNPAUSE"][..],
        &["FLUSHALL"],
        &["SCRIPT", "FLUSH"],
        &["FUNCTION", "FLUSH"],
        &["CONFIG", "RESETSTAT"],
    ] {
        let reply = control.call(request);
        assert!(!reply.is_error(), "{request:?}: {reply:?}");
    }
}

/// A connection that has its name to itself. Whoever names its connection and then sees the name only once has the server;
/// whoever sees it twice steps back for a while. The server forgets the name with the connection, however that ends.
fn claim(url: &str) -> Raw {
    // Different in each process, so that two that met do not meet again.
    let mut random = fastrand::Rng::with_seed(u64::from(std::process::id()));
    let until = Instant::now() + CLAIM_PATIENCE;
    while Instant::now() < until {
        let mut control = connect(url);
        control.call(&["CLIENT", "SETNAME", CLAIM]);
        let Frame::Blob(_, clients) = control.call(&["CLIENT", "LIST"]) else {
            panic!("{url}: no list of clients");
        };
        let name = format!(" name={CLAIM} ");
        if String::from_utf8_lossy(&clients).matches(&name).count() == 1 {
            return control;
        }
        drop(control);
        std::thread::sleep(Duration::from_millis(random.u64(1..=20)));
    }
    panic!("{url}: another process's tests keep the server");
}

fn settings(control: &mut Raw) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let Frame::Items(_, items) = control.call(&["CONFIG", "GET", "*"]) else {
        return BTreeMap::new();
    };
    let mut words = items.into_iter().filter_map(|item| match item {
        Frame::Blob(_, bytes) => Some(bytes),
        _ => None,
    });
    let mut settings = BTreeMap::new();
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        settings.insert(name, value);
    }
    settings
}
