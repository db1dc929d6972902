//! The TCP driver: one thread, one queue of sockets that are ready, all connections. Nothing else touches clients' sockets.
//!
//! Sockets are served in the order in which they became ready, as Redis does. All replies of one read go out in one write. Input
//! is read on while output waits, so that a client that sends a long pipeline before it reads anything never waits for itself.

mod bell;
mod connection;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener as StdListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use slab::Slab;

pub(crate) use self::bell::Bell;
use self::connection::{Connection, Next};
use crate::engine::Peer;
use crate::session::SessionId;
use crate::shared::{Aside, Shared};

const LISTENER: Token = Token(0);
pub(super) const BELL: Token = Token(1);
/// The token of the first connection.
const FIRST: usize = 2;

/// Ready sockets that are taken from the operating system at once.
const EVENTS_MAX: usize = 128;

/// Connections that are accepted at once (networking.c, `MAX_ACCEPTS_PER_CALL`).
const ACCEPTS_MAX: usize = 1000;

/// How long to wait when there is no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(1);

thread_local! {
    /// The loop that this thread runs.
    static CURRENT: RefCell<Option<Rc<Loop>>> = const { RefCell::new(None) };
}

/// What a thread of ours does in the middle of a script that takes long.
const ATTEND: Aside = Aside {
    is_needed: || CURRENT.with_borrow(Option::is_some),
    run: || {
        let current = CURRENT.with_borrow(Clone::clone);
        if let Some(current) = current {
            // The connections go on as soon as the script does, whatever is wrong with the queue.
            let _ = current.turn(&mut Events::with_capacity(EVENTS_MAX), false);
        }
    },
};

/// A socket to be served and the queue that tells when, not yet served.
pub(crate) struct Driver {
    poll: Poll,
    listener: TcpListener,
    bell: Arc<Bell>,
}

impl Driver {
    /// Of a socket that listens. Errors: those of the operating system.
    pub(crate) fn new(listener: StdListener) -> io::Result<Driver> {
        listener.set_nonblocking(true)?;
        let mut listener = TcpListener::from_std(listener);
        let poll = Poll::new()?;
        poll.registry()
            .register(&mut listener, LISTENER, Interest::READABLE)?;
        let bell = Arc::new(Bell::new(poll.registry())?);
        Ok(Driver {
            poll,
            listener,
            bell,
        })
    }

    /// How other threads reach it.
    pub(crate) fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// Serves until it is told to stop or a client sends `SHUTDOWN`, on this thread.
    pub(crate) fn serve(self, shared: &Arc<Shared>) {
        let timer = Arc::clone(&self.bell);
        shared.set_timer(Box::new(move || timer.timer_has_moved()));
        shared.step_aside_by(ATTEND);
        let this = Rc::new(Loop {
            poll: RefCell::new(self.poll),
            listener: self.listener,
            bell: self.bell,
            shared: Arc::clone(shared),
            connections: RefCell::default(),
            queue: RefCell::default(),
            buffer: RefCell::default(),
            is_accepting: Cell::new(false),
            has_no_room: Cell::new(false),
        });
        CURRENT.set(Some(Rc::clone(&this)));
        let mut events = Events::with_capacity(EVENTS_MAX);
        // Without the queue nobody is served any more; clients see that their connections are closed.
        while !this.bell.is_stopping() && this.turn(&mut events, true).is_ok() {}
        CURRENT.set(None);
        shared.end();
        this.close_all();
    }
}

/// A driver at work. A script in the middle of one connection's command may run a turn for the others, so that nothing here
/// stays borrowed while the engine works.
struct Loop {
    poll: RefCell<Poll>,
    listener: TcpListener,
    bell: Arc<Bell>,
    shared: Arc<Shared>,
    connections: RefCell<Slab<Seat>>,
    /// Connections to be served, in this order.
    queue: RefCell<VecDeque<usize>>,
    /// What was read is handed to the engine before anything else is read, so all connections share one buffer.
    buffer: RefCell<Vec<u8>>,
    /// More connections may wait to be accepted.
    is_accepting: Cell<bool>,
    /// The last one could not be: too many open files, or a peer that is gone already. Neither is a reason to stop serving the
    /// others.
    has_no_room: Cell<bool>,
}

/// Where a connection is when it is not at work.
struct Seat {
    id: SessionId,
    connection: Option<Box<Connection>>,
    /// What was said of it meanwhile.
    ready: Readiness,
    /// Whether it stands in the queue.
    is_queued: bool,
    /// Whether the operating system is asked when it can be written to.
    is_watched_for_writing: bool,
}

/// What may be done for a connection without waiting.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are independent of each other"
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Readiness {
    read: bool,
    write: bool,
    /// The peer will send no more.
    end: bool,
    /// The engine has something for it.
    output: bool,
}

impl Readiness {
    fn of(event: &Event) -> Readiness {
        let end = event.is_read_closed() || event.is_error();
        Readiness {
            read: event.is_readable() || end,
            write: event.is_writable() || event.is_error(),
            end,
            output: false,
        }
    }

    fn add(&mut self, other: Readiness) {
        self.read |= other.read;
        self.write |= other.write;
        self.end |= other.end;
        self.output |= other.output;
    }
}

impl Loop {
    /// Waits for sockets, if there is nothing else to do, and serves those that are ready.
    fn turn(&self, events: &mut Events, may_wait: bool) -> io::Result<()> {
        let wait = if may_wait {
            self.wait()
        } else {
            Some(Duration::ZERO)
        };
        // Borrowed while nothing is served.
        let polled = self
            .bell
            .asleep(wait, |wait| self.poll.borrow_mut().poll(events, wait));
        match polled {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        self.is_accepting
            .set(self.is_accepting.get() || self.has_no_room.take());
        // Who has had a turn and has more to do comes after those who have not.
        let later = self.queue.take();
        for event in &*events {
            match event.token() {
                LISTENER => self.is_accepting.set(true),
                BELL => {}
                Token(token) => self.is_ready(token - FIRST, Readiness::of(event)),
            }
        }
        self.queue.borrow_mut().extend(later);
        self.accept();
        self.serve_woken();
        self.serve_queue();
        self.keep_time();
        Ok(())
    }

    /// Serves those that stand in the queue now; who comes to it meanwhile waits for the next turn.
    fn serve_queue(&self) {
        let count = self.queue.borrow().len();
        for _ in 0..count {
            // In the middle of a script, another turn may have been there.
            let Some(number) = self.queue.borrow_mut().pop_front() else {
                return;
            };
            if let Some(seat) = self.connections.borrow_mut().get_mut(number) {
                seat.is_queued = false;
            }
            self.serve(number, true);
            self.serve_woken();
        }
    }

    /// How long nothing happens unless a socket gets ready or the bell rings; none for ever.
    fn wait(&self) -> Option<Duration> {
        if !self.queue.borrow().is_empty() || self.is_accepting.get() {
            return Some(Duration::ZERO);
        }
        let pause = self.has_no_room.get().then_some(ACCEPT_PAUSE);
        let due = self.shared.due_in();
        pause.into_iter().chain(due).min()
    }

    /// Lets the engine do what is due, slice by slice, and ends with it.
    fn keep_time(&self) {
        let has_moved = self.bell.has_timer_moved();
        if has_moved || self.shared.due_in() == Some(Duration::ZERO) {
            self.shared.tick();
            self.serve_woken();
        }
        if has_moved && self.shared.enter(|engine, _| engine.shutdown_requested()) {
            self.bell.stop();
        }
    }

    fn accept(&self) {
        if !self.is_accepting.take() {
            return;
        }
        for _ in 0..ACCEPTS_MAX {
            match self.listener.accept() {
                Ok((stream, address)) => self.open(stream, address),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.has_no_room.set(true),
            }
        }
        self.is_accepting.set(true);
    }

    fn open(&self, mut stream: TcpStream, address: SocketAddr) {
        // Delays of small packets would be the only thing that a failure here causes.
        let _ = stream.set_nodelay(true);
        let local_address = stream.local_addr();
        let peer = Peer {
            address: address.to_string(),
            local_address: local_address.map_or_else(|_| String::new(), |at| at.to_string()),
        };
        let number = self.connections.borrow().vacant_key();
        let registered = self.poll.borrow().registry().register(
            &mut stream,
            Token(number + FIRST),
            Interest::READABLE,
        );
        if registered.is_err() {
            // It is closed at once, as without it nobody would ever look at it.
            return;
        }
        let bell = Arc::clone(&self.bell);
        let waker = Box::new(move || bell.has_output(number));
        let id = self.shared.connect(peer, false, waker);
        let seated = self.connections.borrow_mut().insert(Seat {
            id,
            connection: Some(Box::new(Connection::new(stream, id))),
            ready: Readiness::default(),
            is_queued: false,
            is_watched_for_writing: false,
        });
        debug_assert_eq!(seated, number, "nothing was opened in between");
    }

    /// A socket can be read or written.
    fn is_ready(&self, number: usize, ready: Readiness) {
        self.note(number, ready);
        self.enqueue(number);
    }

    /// Puts a connection at the end of the queue, unless it stands in it.
    fn enqueue(&self, number: usize) {
        let mut connections = self.connections.borrow_mut();
        if let Some(seat) = connections.get_mut(number)
            && !std::mem::replace(&mut seat.is_queued, true)
        {
            self.queue.borrow_mut().push_back(number);
        }
    }

    /// Keeps what was said of a connection until it is served.
    fn note(&self, number: usize, ready: Readiness) {
        if let Some(seat) = self.connections.borrow_mut().get_mut(number) {
            seat.ready.add(ready);
        }
    }

    /// Fetches what the engine has for connections that have not asked, in the order in which it came up. Nothing is read
    /// meanwhile, so that it comes to an end.
    fn serve_woken(&self) {
        let output = Readiness {
            output: true,
            ..Readiness::default()
        };
        while let Some(number) = self.bell.next_with_output() {
            self.note(number, output);
            self.serve(number, false);
        }
    }

    /// Does what can be done for a connection without waiting; nothing if it is at work already.
    fn serve(&self, number: usize, may_read: bool) {
        let Some(mut connection) = self.take(number) else {
            return;
        };
        // A turn in the middle of a script uses a buffer of its own.
        let mut buffer = self.buffer.take();
        let next = connection.work(&self.shared, may_read.then_some(&mut buffer));
        self.buffer.replace(buffer);
        // Of one that cannot be put back nobody would hear again.
        if next == Next::Close || self.put(number, connection, next).is_err() {
            let seat = self.connections.borrow_mut().remove(number);
            self.shared.disconnect(seat.id);
        }
    }

    fn take(&self, number: usize) -> Option<Box<Connection>> {
        let mut connections = self.connections.borrow_mut();
        let seat = connections.get_mut(number)?;
        let mut connection = seat.connection.take()?;
        connection.ready.add(std::mem::take(&mut seat.ready));
        Some(connection)
    }

    fn put(&self, number: usize, mut connection: Box<Connection>, next: Next) -> io::Result<()> {
        let mut connections = self.connections.borrow_mut();
        let Some(seat) = connections.get_mut(number) else {
            return Ok(());
        };
        if connection.waits_to_write() && !seat.is_watched_for_writing {
            // What has become possible in between is told at once.
            self.poll.borrow().registry().reregister(
                connection.stream(),
                Token(number + FIRST),
                Interest::READABLE | Interest::WRITABLE,
            )?;
            seat.is_watched_for_writing = true;
        }
        let has_news = seat.ready != Readiness::default();
        seat.connection = Some(connection);
        drop(connections);
        if next == Next::Again || has_news {
            self.enqueue(number);
        }
        Ok(())
    }

    fn close_all(&self) {
        let seats = self.connections.take();
        for (_, seat) in seats {
            self.shared.disconnect(seat.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::TcpStream;

    use super::connection::READ_LEN;
    use crate::Server;

    #[test]
    fn who_comes_amid_a_long_pipeline_waits_for_few_of_its_parts() {
        const LINE: usize = 1024;
        let server = Server::start();
        let connect = || TcpStream::connect(("127.0.0.1", server.port())).expect("it listens");
        let (mut long, mut other) = (connect(), connect());
        // Both are known to the server before anything else happens.
        for stream in [&mut long, &mut other] {
            stream.write_all(b"PING\r\n").expect("it is open");
            stream.read_exact(&mut [0; 7]).expect("+PONG");
        }
        let line = format!("{:<1$}\r\n", "INCR n", LINE - 2);
        let mut sent = 0;
        server.shared().enter(|_, _| {
            // As much as fits between the two ends while nothing can be run, and behind it a question.
            long.set_nonblocking(true).expect("a socket");
            let pipeline = line.repeat(64 * READ_LEN / LINE);
            while sent < pipeline.len() {
                match long.write(&pipeline.as_bytes()[sent..]) {
                    Ok(len) => sent += len,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => panic!("cannot send: {error}"),
                }
            }
            other.write_all(b"GET n\r\n").expect("it is open");
        });
        let mut reply = [0; 64];
        let len = other.read(&mut reply).expect("an answer");
        let text = String::from_utf8_lossy(&reply[..len]).into_owned();
        let count: usize = text
            .lines()
            .nth(1)
            .map_or(0, |n| n.parse().expect("a number"));
        assert!(sent > 6 * READ_LEN, "{sent} bytes are no long pipeline");
        assert!(count <= 2 * READ_LEN / LINE, "{count} came before");
    }

    #[test]
    fn a_reply_that_its_reader_does_not_take_at_once_arrives_whole() {
        const LEN: usize = 16 * 1024 * 1024;
        let server = Server::start();
        let value: Vec<u8> = (0..LEN).map(|at| b'a' + (at % 23) as u8).collect();
        server.command([b"SET".as_slice(), b"k", &value]);
        let mut slow = TcpStream::connect(("127.0.0.1", server.port())).expect("it listens");
        let mut other = TcpStream::connect(("127.0.0.1", server.port())).expect("it listens");
        // Far more than fits between the two ends, twice, and somebody else is answered meanwhile.
        slow.write_all(b"GET k\r\nGET k\r\n").expect("it is open");
        other.write_all(b"PING\r\n").expect("it is open");
        other.read_exact(&mut [0; 7]).expect("+PONG");
        let head = format!("${LEN}\r\n");
        for _ in 0..2 {
            let mut reply = vec![0; head.len() + LEN + 2];
            slow.read_exact(&mut reply).expect("a whole reply");
            assert!(reply.starts_with(head.as_bytes()));
            assert!(reply[head.len()..].starts_with(&value) && reply.ends_with(b"\r\n"));
        }
    }
}
