//! [`Stream`]: bytes to and from a server without a socket.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{PATIENCE, Session};
use crate::engine::Transmit;
use crate::server::Server;

impl Stream {
    pub(super) fn open(server: &Server) -> Stream {
        let (session, transmit) = (Session::open(server, false), Transmit::default());
        Stream {
            session,
            unread: Vec::new(),
            read: 0,
            transmit,
            patience: None,
        }
    }
}

/// A byte stream to a server without a socket.
///
/// Made by [`Server::stream`]. What is written is run at once; what is read are the replies. It needs no runtime unless a
/// command blocks; then a tokio runtime with time, by which time-outs are noticed.
#[derive(Debug)]
pub struct Stream {
    session: Session,
    unread: Vec<u8>,
    read: usize,
    transmit: Transmit,
    patience: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Stream {
    fn fetch(&mut self) {
        let Stream {
            session,
            unread,
            read,
            transmit,
            ..
        } = self;
        if *read == unread.len() {
            unread.clear();
            *read = 0;
        }
        session.shared.enter(|engine, now| {
            if transmit.more {
                engine.resume(session.id, now);
            }
            *transmit = engine.poll_transmit(session.id, unread);
        });
    }
}

impl Stream {
    /// Ready when it is time to look whether a blocked command's time is over; never if none is blocked.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let id = self.session.id;
        if !self.session.shared.enter(|engine, _| engine.is_blocked(id)) {
            self.patience = None;
            return Poll::Pending;
        }
        let patience = self
            .patience
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(PATIENCE)));
        ready!(patience.as_mut().poll(cx));
        self.patience = None;
        Poll::Ready(())
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Ok(mut task) = self.session.woken.stream.lock() {
            *task = Some(cx.waker().clone());
        }
        loop {
            if self.read == self.unread.len() {
                self.session.shared.catch_up();
                self.fetch();
            }
            let len = buf.remaining().min(self.unread.len() - self.read);
            if len > 0 {
                let start = self.read;
                buf.put_slice(&self.unread[start..start + len]);
                self.read += len;
                return Poll::Ready(Ok(()));
            }
            if self.transmit.close {
                return Poll::Ready(Ok(()));
            }
            ready!(self.poll_patience(cx));
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let id = self.session.id;
        let sent = self.session.shared.enter(|engine, now| {
            let open = engine.is_connected(id);
            if open {
                engine.receive(id, bytes, now);
            }
            open
        });
        Poll::Ready(if sent {
            Ok(bytes.len())
        } else {
            Err(io::ErrorKind::BrokenPipe.into())
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.session.shared.disconnect(self.session.id);
        Poll::Ready(Ok(()))
    }
}
