//! [`Proxy`]: a TCP relay in front of a server that cuts, withholds and holds on order.
//!
//! A request or a reply that is held back is where a process can be killed, or a rival let in between, at a point that no
//! other means can reach twice.

use std::fmt;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the server.
    Request,
    /// To the client.
    Reply,
}

/// Decides which write of a client is the one; it sees each of them once.
type Picker = Box<dyn FnMut(&[u8]) -> bool + Send>;

/// A relay on a port of its own.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    orders: Arc<Orders>,
}

#[derive(Default)]
struct Orders {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    cut: Option<(Way, usize)>,
    picker: Option<(Way, Picker)>,
    hold: Hold,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Hold {
    #[default]
    Nothing,
    /// Something is held until somebody decides.
    Held,
    Released,
    Severed,
}

impl fmt::Debug for Orders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orders").finish_non_exhaustive()
    }
}

impl Proxy {
    /// In front of this port of the loopback interface. Panics if no port is free.
    pub fn start(port: u16) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let orders = Arc::new(Orders::default());
        let ours = Arc::clone(&orders);
        // Ends with the process: a listener that waits can not be woken otherwise.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else {
                    continue;
                };
                let _ = relay(&client, &server, &ours);
            }
        });
        Proxy { address, orders }
    }

    /// In front of the server of a URL such as `redis://127.0.0.1:6379`. Panics if it names no port.
    pub fn before(url: &str) -> Proxy {
        let port = url.rsplit(':').next().and_then(|tail| {
            let digits = tail.split('/').next().unwrap_or_default();
            digits.parse().ok()
        });
        Proxy::start(port.unwrap_or_else(|| panic!("{url}: no port")))
    }

    /// The URL that clients open instead of the server's.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// From now on lets so many bytes through in one direction, and then cuts the connection that carries the next one. The
    /// server is left to finish what it has received before the client sees the end.
    pub fn cut_after(&self, way: Way, bytes: usize) {
        self.orders.lock().cut = Some((way, bytes));
    }

    /// Whether the cut that was ordered is still to come; an order that was not needed is taken back.
    pub fn take_back_cut(&self) -> bool {
        self.orders.lock().cut.take().is_some()
    }

    /// Holds the write that is picked ([`Way::Request`]), or the reply to it ([`Way::Reply`]) once the server has sent it.
    pub fn hold(&self, way: Way, picker: impl FnMut(&[u8]) -> bool + Send + 'static) {
        let mut state = self.orders.lock();
        state.picker = Some((way, Box::new(picker)));
        state.hold = Hold::Nothing;
    }

    /// Holds the write of this number, counted from 0 over all connections, or the reply to it.
    pub fn hold_nth(&self, way: Way, number: usize) {
        let mut seen = 0;
        self.hold(way, move |_| {
            seen += 1;
            seen == number + 1
        });
    }

    /// Holds the first write with this text in it, or the reply to it.
    pub fn hold_text(&self, way: Way, text: &'static str) {
        let text = text.as_bytes();
        self.hold(way, move |bytes| {
            bytes.windows(text.len()).any(|window| window == text)
        });
    }

    /// Waits until something is held; `false` if nothing is after so long.
    pub fn await_held(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let mut state = self.orders.lock();
        while state.hold != Hold::Held {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.orders.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Lets go what is held.
    pub fn release(&self) {
        self.decide(Hold::Released);
    }

    /// Drops what is held, and its connection.
    pub fn sever(&self) {
        self.decide(Hold::Severed);
    }

    fn decide(&self, hold: Hold) {
        let mut state = self.orders.lock();
        state.picker = None;
        if state.hold == Hold::Held {
            state.hold = hold;
        }
        drop(state);
        self.orders.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.sever();
    }
}

impl Orders {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many of these bytes may pass before the cut, if it falls among them.
    fn before_cut(&self, way: Way, len: usize) -> Option<usize> {
        let mut state = self.lock();
        let (_, left) = state.cut.as_mut().filter(|(cut, _)| *cut == way)?;
        if *left >= len {
            *left -= len;
            return None;
        }
        let allowed = *left;
        state.cut = None;
        Some(allowed)
    }

    /// Which way this write is held, if it is the one.
    fn picked(&self, bytes: &[u8]) -> Option<Way> {
        let mut state = self.lock();
        let (way, picker) = state.picker.as_mut()?;
        let way = *way;
        picker(bytes).then(|| {
            state.picker = None;
            way
        })
    }

    /// Says that something is held, and waits for the decision; whether it may go on.
    fn held(&self) -> bool {
        let mut state = self.lock();
        state.hold = Hold::Held;
        self.changed.notify_all();
        while state.hold == Hold::Held {
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.hold == Hold::Released
    }
}

/// What the two directions of a connection tell each other.
#[derive(Default)]
struct Between {
    /// Nothing reaches the client any more.
    is_mute: bool,
    /// The next reply is held.
    is_reply_held: bool,
}

fn relay(client: &TcpStream, server: &TcpStream, orders: &Arc<Orders>) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let between = Arc::new(Mutex::new(Between::default()));
    let (from, to) = (client.try_clone()?, server.try_clone()?);
    let (theirs, told) = (Arc::clone(orders), Arc::clone(&between));
    thread::spawn(move || {
        if requests(&from, &to, &theirs, &told).is_err() {
            let _ = to.shutdown(Shutdown::Both);
        }
    });
    let (from, to, orders) = (server.try_clone()?, client.try_clone()?, Arc::clone(orders));
    thread::spawn(move || {
        let _ = replies(&from, &to, &orders, &between);
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    });
    Ok(())
}

/// As much as a client writes at once.
const CHUNK_LEN: usize = 1 << 18;

fn requests(
    mut client: &TcpStream,
    mut server: &TcpStream,
    orders: &Orders,
    between: &Mutex<Between>,
) -> std::io::Result<()> {
    let told = || between.lock().unwrap_or_else(PoisonError::into_inner);
    let mut buffer = vec![0; CHUNK_LEN];
    loop {
        let len = client.read(&mut buffer)?;
        let bytes = &buffer[..len];
        if bytes.is_empty() {
            return server.shutdown(Shutdown::Write);
        }
        if let Some(allowed) = orders.before_cut(Way::Request, len) {
            told().is_mute = true;
            server.write_all(&bytes[..allowed])?;
            return server.shutdown(Shutdown::Write);
        }
        match orders.picked(bytes) {
            Some(Way::Request) if !orders.held() => return server.shutdown(Shutdown::Both),
            Some(Way::Reply) => told().is_reply_held = true,
            _ => {}
        }
        server.write_all(bytes)?;
    }
}

fn replies(
    mut server: &TcpStream,
    mut client: &TcpStream,
    orders: &Orders,
    between: &Mutex<Between>,
) -> std::io::Result<()> {
    let told = || between.lock().unwrap_or_else(PoisonError::into_inner);
    let mut buffer = vec![0; CHUNK_LEN];
    loop {
        let len = server.read(&mut buffer)?;
        let bytes = &buffer[..len];
        if bytes.is_empty() {
            return Ok(());
        }
        if told().is_mute {
            continue;
        }
        let is_held = std::mem::take(&mut told().is_reply_held);
        if is_held && !orders.held() {
            return Ok(());
        }
        if let Some(allowed) = orders.before_cut(Way::Reply, len) {
            client.write_all(&bytes[..allowed])?;
            told().is_mute = true;
            server.shutdown(Shutdown::Write)?;
            continue;
        }
        client.write_all(bytes)?;
    }
}
