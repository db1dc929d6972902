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

impl Trace {
    /// Brings messages that tell a subscriber of one event by several patterns into one order, and the events of keys that were
    /// missed one after the other: the server's is that of a hash table with a random seed.
    pub(super) fn sort_patterns(&mut self) {
        for stream in &mut self.streams {
            for run in stream.chunk_by_mut(|one, other| {
                event(one).is_some_and(|event_of_one| Some(event_of_one) == event(other))
            }) {
                run.sort_by(|one, other| pattern(one).cmp(&pattern(other)));
            }
            for run in stream.chunk_by_mut(|one, other| tells_of_a_miss(one) && tells_of_a_miss(other)) {
                run.sort_by_key(|seen| format!("{:?}", seen.what));
            }
        }
    }
}

/// Channel and message of a message that came by a pattern.
fn event(seen: &Seen) -> Option<&[Frame]> {
    match &seen.what {
        What::Received(Received::Frame(frame)) if head(frame) == Some(b"pmessage") => {
            let Frame::Items(_, items) = frame else {
                return None;
            };
            items.get(2..)
        }
        _ => None,
    }
}

/// SORT looks for the weights of a set's members in the order of the set.
fn tells_of_a_miss(seen: &Seen) -> bool {
    let What::Received(Received::Frame(Frame::Items(_, items))) = &seen.what else {
        return false;
    };
    is_message_head(items) && items.iter().any(|item| match item {
        Frame::Blob(_, text) => text.ends_with(b"keymiss"),
        _ => false,
    })
}

fn is_message_head(items: &[Frame]) -> bool {
    matches!(items.first(), Some(Frame::Blob(_, head)) if MESSAGES.contains(&head.as_slice()))
}

fn pattern(seen: &Seen) -> Option<&Frame> {
    match &seen.what {
        What::Received(Received::Frame(Frame::Items(_, items))) => items.get(1),
        _ => None,
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
