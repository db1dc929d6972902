//! [`Server`]: the handle that tests use.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::config::Config;
use crate::engine::{Engine, Peer};
use crate::shared::Shared;
use crate::value::Blob;
use crate::wire::{Reply, Request};

#[cfg(feature = "net")]
pub use listener::StartError;

/// A server of its own: clones are the same server, and it ends when the last handle is dropped.
///
/// ```
/// let server = fakeserver::Server::new(); // no port, no thread
/// server.command(["SET", "greeting", "hello"]);
/// assert_eq!(server.command(["GET", "greeting"]), fakeserver::Reply::bulk("hello"));
/// ```
#[derive(Clone, Debug)]
pub struct Server {
    shared: Arc<Shared>,
    #[cfg(feature = "net")]
    listener: Option<Arc<listener::Listener>>,
}

/// Chooses what a [`Server`] is like before it starts.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    config: Config,
    clock: Clock,
    #[cfg(feature = "net")]
    address: listener::Address,
}

impl Server {
    /// A server without a socket, with default settings and the real clock.
    #[allow(
        clippy::new_without_default,
        reason = "each call makes a new server, which Default does not say"
    )]
    pub fn new() -> Server {
        Server::builder().build()
    }

    /// Settings for a server to be started.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Its clock. To move it use [`Server::advance`], which also lets waiting clients time out.
    pub fn clock(&self) -> &Clock {
        self.shared.clock()
    }

    /// Moves the clock on and lets everything happen that is due by then.
    pub fn advance(&self, by: Duration) {
        self.clock().advance(by);
        self.shared.catch_up();
    }

    /// Runs one command on a connection of its own, in database 0 and RESP2; its reply.
    ///
    /// A command that would block answers [`Reply::Nothing`] and is forgotten.
    pub fn command<T: AsRef<[u8]>>(&self, words: impl IntoIterator<Item = T>) -> Reply {
        let id = self.shared.connect(Peer::default(), true, Box::new(|| ()));
        let reply = self.shared.enter(|engine, now| {
            engine.submit(id, Request::new(words), now);
            engine.poll_reply(id)
        });
        self.shared.disconnect(id);
        reply.unwrap_or(Reply::Nothing)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Builder {
    /// The clock to go by; the real one by default.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Builder {
        self.clock = clock;
        self
    }

    /// The password that clients have to give; none by default.
    #[must_use]
    pub fn password(mut self, password: impl AsRef<[u8]>) -> Builder {
        self.config.requirepass = Blob::from(password.as_ref());
        self
    }

    /// The seed of every random choice and of the hash tables; the same in all servers by default.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Builder {
        self.config.seed = seed;
        self
    }

    /// Instructions of Lua after which a script is ended, 0 for no limit; see [`Config::script_instructions_max`].
    #[must_use]
    pub fn script_instructions(mut self, max: u64) -> Builder {
        self.config.script_instructions_max = max;
        self
    }

    /// Bytes that the scripts' Lua state may hold, 0 for no limit; 256 MiB by default.
    #[must_use]
    pub fn script_memory(mut self, bytes_max: usize) -> Builder {
        self.config.script_memory_max = bytes_max;
        self
    }

    /// Whether clients may steer the server with `FAKE`: its clock, its faults. Off by default, when the word is as unknown as on
    /// redis-server.
    #[must_use]
    pub fn admin(mut self, allowed: bool) -> Builder {
        self.config.admin = allowed;
        self
    }

    /// All other settings; what was chosen before is replaced.
    #[must_use]
    pub fn config(mut self, config: Config) -> Builder {
        self.config = config;
        self
    }

    /// A server without a socket and without a thread.
    pub fn build(self) -> Server {
        let engine = Engine::new(self.config, self.clock.now());
        Server {
            shared: Shared::new(engine, self.clock),
            #[cfg(feature = "net")]
            listener: None,
        }
    }
}

#[cfg(feature = "net")]
mod listener {
    //! Servers that listen on a TCP port, each on a thread of its own.

    use std::io;
    use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
    use std::sync::Arc;
    use std::thread::JoinHandle;

    use thiserror::Error;
    use tokio::sync::Notify;

    use super::{Builder, Server};
    use crate::dial::dial;
    use crate::engine::Engine;
    use crate::net::{Bell, Driver};
    use crate::shared::Shared;

    /// Why a server could not start.
    #[derive(Debug, Error)]
    #[non_exhaustive]
    pub enum StartError {
        /// The address could not be listened on.
        #[error("cannot listen on {address}: {source}")]
        Listen {
            /// The address that was asked for.
            address: SocketAddr,
            /// What the operating system says.
            source: io::Error,
        },
        /// The thread could not be made.
        #[error("cannot start the server's thread: {0}")]
        Thread(#[from] io::Error),
    }

    #[derive(Clone, Debug)]
    pub(super) struct Address {
        ip: IpAddr,
        port: u16,
    }

    impl Default for Address {
        fn default() -> Address {
            Address {
                ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
                port: 0,
            }
        }
    }

    /// A listening thread; it is stopped and awaited on drop.
    pub(super) struct Listener {
        address: SocketAddr,
        password: Option<String>,
        shared: Arc<Shared>,
        bell: Arc<Bell>,
        /// Notified when the thread ends by itself.
        ended: Arc<Notify>,
        thread: Option<JoinHandle<()>>,
    }

    impl std::fmt::Debug for Listener {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_struct("Listener")
                .field("address", &self.address)
                .finish_non_exhaustive()
        }
    }

    impl Drop for Listener {
        fn drop(&mut self) {
            self.shared.end();
            self.bell.stop();
            if let Some(thread) = self.thread.take() {
                // A thread that panicked has said so already.
                let _ = thread.join();
            }
        }
    }

    impl Server {
        /// A server on a free port of the loopback interface, with default settings and the real clock.
        ///
        /// # Panics
        /// If there is no free port or no thread: a test cannot go on without its server. See [`Builder::try_start`].
        ///
        /// ```
        /// let server = fakeserver::Server::start();
        /// assert!(server.url().starts_with("redis://127.0.0.1:"));
        /// ```
        pub fn start() -> Server {
            Server::builder().start()
        }

        /// The URL that clients open. Empty for a server without a socket.
        pub fn url(&self) -> String {
            let Some(listener) = &self.listener else {
                return String::new();
            };
            match &listener.password {
                None => format!("redis://{}", listener.address),
                Some(password) => format!("redis://:{password}@{}", listener.address),
            }
        }

        /// Waits until a client has sent `SHUTDOWN`, or the server has stopped for another reason.
        pub async fn until_shutdown(&self) {
            if let Some(listener) = &self.listener {
                listener.ended.notified().await;
            }
        }

        /// The port that it listens on; 0 for a server without a socket.
        pub fn port(&self) -> u16 {
            self.listener
                .as_ref()
                .map_or(0, |listener| listener.address.port())
        }
    }

    impl Builder {
        /// The port to listen on; 0, a free one, by default.
        #[must_use]
        pub fn port(mut self, port: u16) -> Builder {
            self.address.port = port;
            self
        }

        /// The address to listen on; the loopback interface by default.
        #[must_use]
        pub fn bind(mut self, ip: IpAddr) -> Builder {
            self.address.ip = ip;
            self
        }

        /// Starts listening.
        ///
        /// # Panics
        /// If the port is taken or there is no thread. See [`Builder::try_start`].
        pub fn start(self) -> Server {
            match self.try_start() {
                Ok(server) => server,
                Err(error) => panic!("{error}"),
            }
        }

        /// Starts listening. Errors: the address is taken or not this machine's; no thread can be made.
        pub fn try_start(mut self) -> Result<Server, StartError> {
            let address = SocketAddr::new(self.address.ip, self.address.port);
            let listen = |source| StartError::Listen { address, source };
            let listener = TcpListener::bind(address).map_err(listen)?;
            let address = listener.local_addr().map_err(listen)?;
            self.config.port = address.port();
            let password = String::from_utf8_lossy(&self.config.requirepass).into_owned();
            let shared = Shared::new(Engine::new(self.config, self.clock.now()), self.clock);
            shared.dial_by(dial);
            let driver = Driver::new(listener)?;
            let bell = Arc::clone(driver.bell());
            let ended = Arc::new(Notify::new());
            let (served, ending) = (Arc::clone(&shared), Arc::clone(&ended));
            let thread = std::thread::Builder::new()
                .name("fakeserver".to_owned())
                .spawn(move || {
                    driver.serve(&served);
                    ending.notify_one();
                })?;
            let password = Some(password).filter(|password| !password.is_empty());
            let listener = Listener {
                address,
                password,
                shared: Arc::clone(&shared),
                bell,
                ended,
                thread: Some(thread),
            };
            Ok(Server {
                shared,
                listener: Some(Arc::new(listener)),
            })
        }
    }
}
