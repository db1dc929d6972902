//! [`Connection`]: one socket, what was read from it and what is to be written to it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;

use mio::net::TcpStream;

use super::Readiness;
use crate::engine::{Engine, Transmit};
use crate::session::SessionId;
use crate::shared::Shared;

/// Bytes read from a connection at once.
pub(super) const READ_LEN: usize = 64 * 1024;

/// One connection.
pub(super) struct Connection {
    stream: TcpStream,
    id: SessionId,
    out: Output,
    pub(super) ready: Readiness,
    /// Other connections are to be closed first: Redis closes a killed client before it answers the one who killed it
    /// (networking.c, `freeClient`), so whoever has read the reply finds that connection closed.
    after_others: bool,
}

/// What is to become of a connection that has done what it could.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It waits for its socket or for the engine.
    Wait,
    /// There is more to do, but the others are let in first: amid a long pipeline they would wait for dozens of its parts.
    Again,
    /// It is over.
    Close,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, id: SessionId) -> Connection {
        Connection {
            stream,
            id,
            out: Output::default(),
            // It can be until it says that it cannot.
            ready: Readiness {
                write: true,
                ..Readiness::default()
            },
            after_others: false,
        }
    }

    pub(super) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Whether its peer has to take something first.
    pub(super) fn waits_to_write(&self) -> bool {
        !self.out.is_sent() && !self.ready.write
    }

    /// Writes what waits to be sent, reads once if there is a buffer to read into, and writes what that is answered.
    pub(super) fn work(&mut self, shared: &Shared, buffer: Option<&mut Vec<u8>>) -> Next {
        // An error is a peer that is gone.
        self.try_work(shared, buffer).unwrap_or(Next::Close)
    }

    fn try_work(&mut self, shared: &Shared, buffer: Option<&mut Vec<u8>>) -> io::Result<Next> {
        if std::mem::take(&mut self.ready.output) {
            shared.enter(|engine, _| self.out.take(engine, self.id));
        }
        if let Some(next) = self.send(shared)? {
            return Ok(next);
        }
        let Some(buffer) = buffer.filter(|_| self.ready.read && !self.out.transmit.close) else {
            return Ok(Next::Wait);
        };
        match self.receive(shared, buffer)? {
            None => return Ok(Next::Wait),
            Some(0) => return Ok(Next::Close),
            Some(_) => {}
        }
        if std::mem::take(&mut self.after_others) {
            return Ok(Next::Again);
        }
        if let Some(next) = self.send(shared)? {
            return Ok(next);
        }
        if self.ready.read && !self.out.transmit.close {
            Ok(Next::Again)
        } else {
            Ok(Next::Wait)
        }
    }

    /// Writes as much as the peer takes; what follows from it if that ends the connection's turn.
    fn send(&mut self, shared: &Shared) -> io::Result<Option<Next>> {
        while !self.out.is_sent() && self.ready.write {
            match self.stream.write(self.out.unsent()) {
                Ok(len) => self.out.sent += len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.ready.write = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.tell_unsent(shared);
        if !self.out.is_sent() {
            return Ok(None);
        }
        if self.out.transmit.close {
            // What a peer has not read yet is lost if it sends on to a closed socket, but not if the end is announced first.
            let _ = self.stream.shutdown(Shutdown::Write);
            return Ok(Some(Next::Close));
        }
        if !self.out.transmit.more {
            return Ok(None);
        }
        shared.enter(|engine, now| {
            engine.resume(self.id, now);
            self.out.take(engine, self.id);
        });
        Ok(Some(Next::Again))
    }

    /// Lets the engine know what a peer that reads slowly has not taken.
    fn tell_unsent(&mut self, shared: &Shared) {
        let unsent = self.out.unsent().len();
        if self.out.told != unsent {
            self.out.told = unsent;
            shared.enter(|engine, _| engine.set_unsent(self.id, unsent));
        }
    }

    /// Reads what there is, hands it to the engine and takes what it answers; the number of bytes, 0 at the end of the stream, none
    /// if there is nothing to read.
    fn receive(&mut self, shared: &Shared, buffer: &mut Vec<u8>) -> io::Result<Option<usize>> {
        if buffer.is_empty() {
            *buffer = vec![0; READ_LEN];
        }
        let len = loop {
            match self.stream.read(buffer) {
                Ok(len) => break len,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.ready.read = false;
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        };
        // What comes later is told again, but for the end of the stream if that was told already.
        self.ready.read = len == buffer.len() || self.ready.end;
        if len > 0 {
            let bytes = buffer.get(..len).unwrap_or_default();
            shared.enter(|engine, now| {
                let hang_ups = engine.hang_ups;
                engine.receive(self.id, bytes, now);
                self.after_others = engine.hang_ups > hang_ups;
                self.out.take(engine, self.id);
            });
        }
        Ok(Some(len))
    }
}

/// Bytes on their way to the peer.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    sent: usize,
    transmit: Transmit,
    /// What the engine was told to be unsent.
    told: usize,
}

impl Output {
    fn is_sent(&self) -> bool {
        self.sent == self.bytes.len()
    }

    fn unsent(&self) -> &[u8] {
        self.bytes.get(self.sent..).unwrap_or_default()
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
