//! [`Raw`]: a connection that sends bytes and reads replies, over a socket or straight into a server in memory.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use fakeserver::Server;
use fakeserver::redis_client::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::Runtime;

use crate::frame::{Frame, Malformed, printable};

/// How long a reply that must come may take; servers and tests share few cores.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A server in memory is looked at so often while nothing comes.
const POLL_PERIOD: Duration = Duration::from_millis(1);

/// A connection of a test.
#[derive(Debug)]
pub struct Raw {
    transport: Transport,
    buffer: Vec<u8>,
    closed: bool,
}

#[derive(Debug)]
enum Transport {
    Memory(Stream),
    Tcp(TcpStream),
}

/// What came, or did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A whole reply.
    Frame(Frame),
    /// Nothing so far.
    Silence,
    /// The server has closed the connection.
    Closed,
    /// Something that is not RESP.
    Malformed(Malformed),
}

impl Raw {
    /// A connection to a server in memory.
    pub fn memory(server: &Server) -> Raw {
        Raw::new(Transport::Memory(server.stream()))
    }

    /// A connection over a socket.
    pub fn tcp(address: impl ToSocketAddrs) -> std::io::Result<Raw> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Raw::new(Transport::Tcp(stream)))
    }

    fn new(transport: Transport) -> Raw {
        Raw {
            transport,
            buffer: Vec::new(),
            closed: false,
        }
    }

    /// Sends bytes as they are. A connection that the server has closed swallows them, as a socket may.
    pub fn send(&mut self, mut bytes: &[u8]) {
        match &mut self.transport {
            Transport::Memory(stream) => {
                let mut cx = Context::from_waker(Waker::noop());
                while !bytes.is_empty() {
                    match Pin::new(&mut *stream).poll_write(&mut cx, bytes) {
                        Poll::Ready(Ok(len)) => bytes = &bytes[len..],
                        Poll::Ready(Err(_)) => return,
                        Poll::Pending => std::thread::sleep(POLL_PERIOD),
                    }
                }
            }
            Transport::Tcp(stream) => {
                // What the server said before it closed the connection is still to be read, so this is not the end.
                let _ = stream.write_all(bytes);
            }
        }
    }

    /// Sends a request of these words.
    pub fn request<T: AsRef<[u8]>>(&mut self, words: &[T]) {
        self.send(&request(words));
    }

    /// Waits for the next reply.
    pub fn receive(&mut self, patience: Duration) -> Received {
        let until = Instant::now() + patience;
        loop {
            match Frame::parse(&self.buffer) {
                Ok(Some((frame, len))) => {
                    self.buffer.drain(..len);
                    return Received::Frame(frame);
                }
                Ok(None) if self.closed => return Received::Closed,
                Ok(None) => {}
                Err(malformed) => return Received::Malformed(malformed),
            }
            if !self.fill(until.saturating_duration_since(Instant::now())) {
                return Received::Silence;
            }
        }
    }

    /// Sends a request and waits for its reply. Panics without one: for what a test needs before it can begin.
    pub fn call<T: AsRef<[u8]>>(&mut self, words: &[T]) -> Frame {
        self.request(words);
        match self.receive(PATIENCE) {
            Received::Frame(frame) => frame,
            other => panic!("no reply to {}: {other:?}", printable(&request(words))),
        }
    }

    /// Takes in what has arrived; false if nothing has by the end of `patience`.
    fn fill(&mut self, patience: Duration) -> bool {
        let read = match &mut self.transport {
            Transport::Memory(stream) => read_memory(stream, patience, &mut self.buffer),
            Transport::Tcp(stream) => read_socket(stream, patience, &mut self.buffer),
        };
        self.closed |= read == Some(0);
        read.is_some()
    }
}

/// The bytes of a request of these words.
pub fn request<T: AsRef<[u8]>>(words: &[T]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        let word = word.as_ref();
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// A stream of a blocked client asks for a runtime with time. Its time-outs are noticed without one that runs, since each look
/// at the stream lets the server catch up with its clock.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.expect("a runtime without threads and files")
});

/// How many bytes came: 0 at the end of the stream, none if there was nothing to wait for.
fn read_memory(stream: &mut Stream, patience: Duration, buffer: &mut Vec<u8>) -> Option<usize> {
    let _runtime = RUNTIME.enter();
    let until = Instant::now() + patience;
    let mut chunk = [0; 16 * 1024];
    loop {
        let mut cx = Context::from_waker(Waker::noop());
        let mut read = ReadBuf::new(&mut chunk);
        match Pin::new(&mut *stream).poll_read(&mut cx, &mut read) {
            Poll::Ready(Ok(())) => {
                buffer.extend_from_slice(read.filled());
                return Some(read.filled().len());
            }
            Poll::Ready(Err(_)) => return Some(0),
            Poll::Pending if Instant::now() < until => std::thread::sleep(POLL_PERIOD),
            Poll::Pending => return None,
        }
    }
}

fn read_socket(stream: &mut TcpStream, patience: Duration, buffer: &mut Vec<u8>) -> Option<usize> {
    // A socket refuses a time-out of zero.
    let patience = patience.max(Duration::from_millis(1));
    let mut chunk = [0; 16 * 1024];
    let read = stream
        .set_read_timeout(Some(patience))
        .and_then(|()| stream.read(&mut chunk));
    match read {
        Ok(len) => {
            buffer.extend_from_slice(&chunk[..len]);
            Some(len)
        }
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
        Err(_) => Some(0),
    }
}
