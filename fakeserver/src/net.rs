//! The TCP driver: a runtime with one worker, one task per connection. The only file that awaits sockets.
//!
//! All replies of one read go out in one write. Input is read on while output waits, as Redis does, so that a client that
//! sends a long pipeline before it reads anything never waits for itself.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::yield_now;

use crate::clock::Timestamp;
use crate::engine::{Engine, Peer, Transmit};
use crate::session::SessionId;
use crate::shared::Shared;
use crate::turns::{Turns, in_turn};

/// Bytes read from a connection at once.
const READ_LEN: usize = 64 * 1024;

/// A read of so many bytes is a part of something long, most likely. It is what Redis reads at once (`PROTO_IOBUF_LEN`).
const LONG_LEN: usize = 16 * 1024;

thread_local! {
    /// What was read is handed to the engine before anything else is read, so all connections of a thread share one buffer.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_LEN]);

    /// Whether the thread is one of a runtime of ours.
    static IS_OURS: Cell<bool> = const { Cell::new(false) };
}

/// Serves `listener` until `stop` is notified or a client sends `SHUTDOWN`.
pub(crate) fn serve(listener: StdListener, shared: &Arc<Shared>, stop: &Notify) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .on_thread_start(|| IS_OURS.set(true))
        .enable_io()
        .enable_time()
        .build()?;
    shared.step_aside_by(step_aside);
    runtime.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        // Everything happens on the worker, so that one thread rarely has to wake another.
        let time = tokio::spawn(keep_time(Arc::clone(shared)));
        let accepting = tokio::spawn(accept(listener, Arc::clone(shared)));
        tokio::select! {
            _ = time => {}
            _ = accepting => {}
            () = stop.notified() => {}
        }
        shared.end();
        Ok(())
    })
}

/// Lets another thread take over the connections while this one, in the middle of a script, lends the engine.
fn step_aside(lend: &mut dyn FnMut()) {
    // On a thread of somebody else's runtime its tasks are not ours to move.
    if IS_OURS.get() {
        tokio::task::block_in_place(lend);
    } else {
        lend();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let turns = Arc::new(Turns::default());
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                let conversation = converse(stream, address, Arc::clone(&shared));
                tokio::spawn(in_turn(Arc::clone(&turns), conversation));
            }
            // Too many open files, or a peer that is gone already: neither is a reason to stop serving the others.
            Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

/// Wakes the engine when it has asked for it, until a client sends `SHUTDOWN`.
async fn keep_time(shared: Arc<Shared>) {
    let moved = Arc::new(Notify::new());
    let waker = Arc::clone(&moved);
    shared.set_timer(Box::new(move || waker.notify_one()));
    loop {
        let next = shared.tick();
        if shared.enter(|engine, _| engine.shutdown_requested()) {
            return;
        }
        let wait = next
            .map(|at| until(at, shared.clock().now()))
            .filter(|_| !shared.clock().is_frozen());
        tokio::select! {
            () = moved.notified() => {}
            () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => {}
        }
    }
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::from_micros(at.micros().saturating_sub(now.micros()).max(0) as u64)
}

/// One connection, from accept to close.
async fn converse(mut stream: TcpStream, address: SocketAddr, shared: Arc<Shared>) {
    // Delays of small packets would be the only thing that a failure here causes.
    let _ = stream.set_nodelay(true);
    let local_address = stream
        .local_addr()
        .map(|address| address.to_string())
        .unwrap_or_default();
    let woken = Arc::new(Notify::new());
    let waker = Arc::clone(&woken);
    let peer = Peer {
        address: address.to_string(),
        local_address,
    };
    let id = shared.connect(peer, false, Box::new(move || waker.notify_one()));
    let session = OpenSession {
        id,
        shared: &shared,
    };
    // An error is a peer that is gone; the session ends either way.
    let _ = exchange(&mut stream, &session, &woken).await;
}

/// Disconnects the session whatever ends the task.
struct OpenSession<'a> {
    id: SessionId,
    shared: &'a Shared,
}

impl Drop for OpenSession<'_> {
    fn drop(&mut self) {
        self.shared.disconnect(self.id);
    }
}

async fn exchange(
    stream: &mut TcpStream,
    session: &OpenSession<'_>,
    woken: &Notify,
) -> io::Result<()> {
    let (mut reader, mut writer) = stream.split();
    let mut out = Output::default();
    loop {
        if out.is_sent() {
            if out.transmit.close {
                return writer.shutdown().await;
            }
            if out.transmit.more {
                session.shared.enter(|engine, now| {
                    engine.resume(session.id, now);
                    out.take(engine, session.id);
                });
                continue;
            }
        }
        tokio::select! {
            biased;
            open = poll_fn(|cx| progress(&mut reader, &mut writer, session, &mut out, cx)) => {
                if !open? {
                    return Ok(());
                }
            }
            () = woken.notified() => session.shared.enter(|engine, _| out.take(engine, session.id)),
        }
    }
}

/// Writes what waits to be sent, or else reads; false at the end of the peer's stream.
fn progress(
    reader: &mut ReadHalf<'_>,
    writer: &mut WriteHalf<'_>,
    session: &OpenSession<'_>,
    out: &mut Output,
    cx: &mut Context<'_>,
) -> Poll<io::Result<bool>> {
    if std::mem::take(&mut out.is_long) {
        // The runtime asks for ready sockets when nothing else is to be done, or seldom. This is not done until it has asked,
        // or else whoever comes amid a long pipeline waits for dozens of its parts.
        return pin!(yield_now()).poll(cx).map(|()| Ok(true));
    }
    if std::mem::take(&mut out.after_others) {
        // To the end of the queue, where the tasks of the closed connections stand already.
        cx.waker().wake_by_ref();
        return Poll::Pending;
    }
    if !out.is_sent()
        && let Poll::Ready(written) = Pin::new(writer).poll_write(cx, out.unsent())
    {
        out.sent += written?;
        if out.is_sent() {
            out.tell_unsent(session);
        }
        return Poll::Ready(Ok(true));
    }
    out.tell_unsent(session);
    if out.transmit.close {
        return Poll::Pending;
    }
    let received = ready!(receive(reader, session, out, cx))?;
    Poll::Ready(Ok(received > 0))
}

/// Bytes on their way to the peer.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    sent: usize,
    transmit: Transmit,
    /// Other connections are to be closed first: Redis closes a killed client before it answers the one who killed it
    /// (networking.c, `freeClient`), so whoever has read the reply finds that connection closed.
    after_others: bool,
    /// What was read last was long: others are let in before it goes on.
    is_long: bool,
    /// What the engine was told to be unsent.
    told: usize,
}

impl Output {
    fn is_sent(&self) -> bool {
        self.sent == self.bytes.len()
    }

    fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Lets the engine know what a peer that reads slowly has not taken.
    fn tell_unsent(&mut self, session: &OpenSession<'_>) {
        let unsent = self.unsent().len();
        if self.told != unsent {
            self.told = unsent;
            session
                .shared
                .enter(|engine, _| engine.set_unsent(session.id, unsent));
        }
    }

    /// Takes over what the engine has for the session.
    fn take(&mut self, engine: &mut Engine, id: SessionId) {
        if self.is_sent() {
            self.bytes.clear();
            self.sent = 0;
            if self.bytes.capacity() > READ_LEN {
                self.bytes = Vec::new();
            }
        }
        self.transmit = engine.poll_transmit(id, &mut self.bytes);
    }
}

/// Reads what there is, hands it to the engine and takes what it answers; the number of bytes read, 0 at the end.
fn receive(
    reader: &mut ReadHalf<'_>,
    session: &OpenSession<'_>,
    out: &mut Output,
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    BUFFER.with_borrow_mut(|buffer| {
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(reader).poll_read(cx, &mut buffer))?;
        let bytes = buffer.filled();
        if !bytes.is_empty() {
            session.shared.enter(|engine, now| {
                let hang_ups = engine.hang_ups;
                engine.receive(session.id, bytes, now);
                out.after_others |= engine.hang_ups > hang_ups;
                out.take(engine, session.id);
            });
            out.is_long = bytes.len() >= LONG_LEN;
        }
        Poll::Ready(Ok(bytes.len()))
    })
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::TcpStream;

    use super::READ_LEN;
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
}
