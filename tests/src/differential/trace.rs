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
    /// Brings the names of channels that are left at once, messages that tell a subscriber of one event by several patterns into one order, and the events of keys that were
    /// missed one after the other: the server's is that of a hash table with a random seed.
    pub(super) fn sort_patterns(&mut self) {
        for stream in &mut self.streams {
            sort_names(stream);
            sort_runs(stream, |seen| match &seen.what {
                What::Received(Received::Frame(frame)) => Some(frame),
                _ => None,
            });
            for seen in stream {
                if let What::Received(Received::Frame(Frame::Items(_, items))) = &mut seen.what {
                    sort_runs(items, |item| Some(item));
                }
            }
        }
    }
}

/// Without arguments UNSUBSCRIBE ends subscriptions in the order of a table too. The numbers that count them down stay.
fn sort_names(stream: &mut [Seen]) {
    fn ended(seen: &Seen) -> Option<&[Frame]> {
        match &seen.what {
            What::Received(Received::Frame(frame)) if frame.confirms() => match frame {
                Frame::Items(_, items) => items.get(1..2),
                _ => None,
            },
            _ => None,
        }
    }
    for run in stream.chunk_by_mut(|one, other| ended(one).is_some() && ended(other).is_some()) {
        let mut names: Vec<Frame> = run.iter().filter_map(ended).flatten().cloned().collect();
        names.sort();
        for (seen, name) in run.iter_mut().zip(names) {
            if let What::Received(Received::Frame(Frame::Items(_, items))) = &mut seen.what
                && let Some(place) = items.get_mut(1)
            {
                *place = name;
            }
        }
    }
}

fn sort_runs<T>(items: &mut [T], frame: fn(&T) -> Option<&Frame>) {
    let event = |item: &T| frame(item).and_then(event).map(<[Frame]>::to_vec);
    let bytes = |item: &T| frame(item).map(Frame::to_bytes);
    for run in items.chunk_by_mut(|one, other| event(one).is_some() && event(one) == event(other)) {
        run.sort_by_key(bytes);
    }
    let misses = |item: &T| frame(item).is_some_and(tells_of_a_miss);
    for run in items.chunk_by_mut(|one, other| misses(one) && misses(other)) {
        run.sort_by_key(bytes);
    }
}

/// Channel and message of a message that came by a pattern.
fn event(frame: &Frame) -> Option<&[Frame]> {
    match frame {
        Frame::Items(_, items) if frame.is_message() && items.len() == 4 => items.get(2..),
        _ => None,
    }
}

/// SORT looks for the weights of a set's members in the order of the set.
fn tells_of_a_miss(frame: &Frame) -> bool {
    let Frame::Items(_, items) = frame else {
        return false;
    };
    let tells = |item: &Frame| matches!(item, Frame::Blob(_, text) if text.ends_with(b"keymiss"));
    frame.is_message() && items.iter().any(tells)
}
