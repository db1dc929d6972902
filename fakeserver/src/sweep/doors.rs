//! [`Doors`]: an address for each program, and what comes in through them. Nothing is answered here.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::program::{Ended, HostError};
use super::schedule::Role;

/// Bytes read from a connection at once.
const READ_LEN: usize = 64 * 1024;

/// A connection of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ConnectionId(pub(super) u64);

/// What happened outside.
#[derive(Debug)]
pub(super) enum Event {
    /// A program opened a connection; bytes for it go into the channel, and dropping the channel closes it.
    Opened(Role, ConnectionId, UnboundedSender<Vec<u8>>),
    /// A program sent this in one piece.
    Received(ConnectionId, Vec<u8>),
    /// A program closed its connection.
    Closed(ConnectionId),
    /// A program ended.
    Ended(Ended),
    /// Whoever runs programs for the sweep is gone, or says what it should not.
    HostLost(HostError),
}

/// The addresses of the programs, and the line on which events arrive.
pub(super) struct Doors {
    ports: [u16; Role::ALL.len()],
    sender: UnboundedSender<Event>,
    events: UnboundedReceiver<Event>,
}

impl Doors {
    /// Listens on a free port of the loopback interface for each role. Errors: no port or no socket is left.
    pub(super) fn open() -> io::Result<Doors> {
        let (sender, events) = unbounded_channel();
        let mut ports = [0; Role::ALL.len()];
        let numbers = Arc::new(AtomicU64::new(0));
        for (role, port) in Role::ALL.into_iter().zip(&mut ports) {
            let listener = StdListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
            listener.set_nonblocking(true)?;
            *port = listener.local_addr()?.port();
            let listener = TcpListener::from_std(listener)?;
            tokio::spawn(accept(role, listener, Arc::clone(&numbers), sender.clone()));
        }
        Ok(Doors {
            ports,
            sender,
            events,
        })
    }

    /// The port of a role.
    pub(super) fn port(&self, role: Role) -> u16 {
        self.ports.get(role.index()).copied().unwrap_or_default()
    }

    /// Where others report events.
    pub(super) fn sender(&self) -> UnboundedSender<Event> {
        self.sender.clone()
    }

    /// The next event.
    pub(super) async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// The next event, if there is one already.
    pub(super) fn try_next(&mut self) -> Option<Event> {
        self.events.try_recv().ok()
    }
}

async fn accept(
    role: Role,
    listener: TcpListener,
    numbers: Arc<AtomicU64>,
    events: UnboundedSender<Event>,
) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files: those of the run will be closed soon.
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            continue;
        };
        let id = ConnectionId(numbers.fetch_add(1, Ordering::Relaxed));
        let (out, bytes) = unbounded_channel();
        if events.send(Event::Opened(role, id, out)).is_err() {
            return;
        }
        tokio::spawn(converse(id, stream, bytes, events.clone()));
    }
}

/// One connection, until either side closes it.
async fn converse(
    id: ConnectionId,
    mut stream: TcpStream,
    mut out: UnboundedReceiver<Vec<u8>>,
    events: UnboundedSender<Event>,
) {
    // Delays of small packets would be the only thing that a failure here causes.
    let _ = stream.set_nodelay(true);
    let (mut reader, mut writer) = stream.split();
    let mut buffer = vec![0; READ_LEN];
    loop {
        tokio::select! {
            biased;
            bytes = out.recv() => {
                let Some(bytes) = bytes else {
                    return;
                };
                if writer.write_all(&bytes).await.is_err() {
                    break;
                }
            }
            read = reader.read(&mut buffer) => {
                let Ok(len @ 1..) = read else {
                    break;
                };
                let received = buffer.get(..len).unwrap_or_default().to_vec();
                if events.send(Event::Received(id, received)).is_err() {
                    return;
                }
            }
        }
    }
    // Nobody listens if the run is over.
    let _ = events.send(Event::Closed(id));
}
