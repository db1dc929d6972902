//! [`Trace`]: everything that the connections of a program received.

use crate::frame::Frame;
use crate::program::CLIENTS;
use crate::raw::Received;

/// What one server sent, connection by connection, in the order of arrival.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// For each connection what it saw.
    pub streams: [Vec<Seen>; CLIENTS],
}

/// One thing that a connection saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The step that the connection had sent last, or that was being run.
    pub step: usize,
    /// What it was.
    pub what: What,
}

/// What a connection can see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A reply, a push, or the end of the connection.
    Received(Received),
    /// The step was not sent, since the connection was still blocked.
    Skipped,
    /// The program ended, or the connection, while it was blocked.
    Waits,
}

impl Trace {
    pub(super) fn note(&mut self, client: usize, step: usize, what: What) {
        self.streams[client].push(Seen { step, what });
    }
}

/// How a message begins.
const MESSAGES: [&[u8]; 3] = [b"message", b"pmessage", b"smessage"];

/// What a push, or in RESP2 an array that stands for one, begins with.
fn head(frame: &Frame) -> Option<&[u8]> {
    let Frame::Items(b'>' | b'*', items) = frame else {
        return None;
    };
    match items.as_slice() {
        [Frame::Blob(_, head), _, _] | [Frame::Blob(_, head), _, _, _] => Some(head),
        _ => None,
    }
}

/// Whether a frame is the answer to a subscription, or to its end. In RESP2 it looks like a reply.
fn confirms(frame: &Frame) -> bool {
    head(frame).is_some_and(|head| head.ends_with(b"subscribe"))
}

/// Whether a frame is a message that was not asked for. In RESP2 it looks like a reply.
pub fn is_message(frame: &Frame) -> bool {
    head(frame).is_some_and(|head| MESSAGES.contains(&head))
        || matches!(frame, Frame::Items(b'>', _)) && !confirms(frame)
}
