//! What the buffers of a connection take, as `CLIENT LIST` tells it (networking.c, `getClientMemoryUsage`).

use std::fmt;

use super::client_view::View;
use crate::keyspace::allocated;
use crate::pubsub::Topic;
use crate::session::{Session, Sink};
use crate::wire::{Buffered, Request};

/// Sizes of structures.
const CLIENT: usize = 768;
const POINTER: usize = 8;
const QUEUED: usize = 24;
const LIST_NODE: usize = 24;
const DICT_ENTRY: usize = 24;
const WATCHED_KEY: usize = 56;
const REPLY_BLOCK: usize = 16;
/// The head and the end of a string as long as a buffer is.
const STRING: usize = 6;
/// What is read at once, and with it the least room that a connection has which reads (server.h, `PROTO_IOBUF_LEN`).
const READ: usize = 16 * 1024;
/// Replies that do not fit into a connection's buffer go into blocks of this length at least.
const REPLY_BLOCK_MIN: usize = 16 * 1024;
/// Seconds after which a connection that sends nothing loses its room.
const IDLE_SECONDS: i64 = 2;

/// The figures of a connection.
#[derive(Debug)]
pub(super) struct Buffers {
    input: usize,
    input_room: usize,
    arguments: usize,
    queue: usize,
    reply_len: usize,
    reply_peak: usize,
    output: usize,
    blocks: usize,
    blocks_bytes: usize,
    total: usize,
}

impl Buffers {
    pub(super) fn of(view: &View<'_>, session: &Session) -> Buffers {
        let is_own = session.id == view.viewer;
        let buffered = session.decoder.buffered();
        let input = if is_own {
            session.received
        } else {
            buffered.unread
        };
        let room = input_room(view, session, &buffered, input);
        // Of the command that runs, or waits, or has come in part.
        let request = if is_own {
            Some(view.request)
        } else {
            session.blocked.as_ref().map(|blocked| &blocked.request)
        };
        let (arguments, argument_count) = request
            .map_or((buffered.argument_bytes, buffered.arguments), |request| {
                (request.bytes_len(), request.len())
            });
        let transaction = view.transaction(session);
        let requests = transaction.into_iter().flat_map(|it| &it.queue);
        let queue: usize = requests.map(|queued| queued_len(&queued.request)).sum();
        let places = transaction.map_or(0, |it| places(it.queue.len()));
        let mut replies = session.reply_buffer;
        replies.pass(view.now);
        let waiting = match &session.sink {
            Sink::Wire(bytes) => bytes.len(),
            Sink::Values(_) => 0,
        };
        replies.fill(waiting, view.now);
        let output = waiting.min(replies.len());
        let over = waiting - output + session.unsent;
        let block = allocated(over.max(REPLY_BLOCK_MIN) + REPLY_BLOCK);
        let (blocks, blocks_bytes) = if over > 0 {
            (1, LIST_NODE + block)
        } else {
            (0, 0)
        };
        let total = CLIENT
            + allocated(input + room + STRING)
            + replies.len()
            + arguments
            + argument_count * POINTER
            + queue
            + places * QUEUED
            + blocks_bytes
            + registrations(view, session);
        Buffers {
            input,
            input_room: room,
            arguments,
            queue,
            reply_len: replies.len(),
            reply_peak: replies.peak(),
            output,
            blocks,
            blocks_bytes,
            total,
        }
    }
}

impl fmt::Display for Buffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "qbuf={} qbuf-free={} argv-mem={} multi-mem={} rbs={} rbp={} obl={} oll={} omem={} tot-mem={}",
            self.input,
            self.input_room,
            self.arguments,
            self.queue,
            self.reply_len,
            self.reply_peak,
            self.output,
            self.blocks,
            self.blocks_bytes,
            self.total,
        )
    }
}

/// Bytes of the input buffer that are free.
fn input_room(view: &View<'_>, session: &Session, buffered: &Buffered, input: usize) -> usize {
    let idle = view.now.seconds() - session.active_at.div_euclid(1_000_000);
    if session.active_at == session.connected_at && input == 0 || idle > IDLE_SECONDS {
        return 0;
    }
    let wanted = buffered.expected.max(input).max(READ);
    allocated(wanted + STRING) - STRING - input
}

/// Bytes of a queued command's arguments and of the places that they stand in.
fn queued_len(request: &Request) -> usize {
    request.bytes_len() + request.len() * POINTER
}

/// Commands that a queue of so many has room for.
fn places(len: usize) -> usize {
    match len {
        0 => 0,
        len => len.next_power_of_two().max(2),
    }
}

/// What subscriptions and watched keys take.
fn registrations(view: &View<'_>, session: &Session) -> usize {
    let table = |len: usize| match len {
        0 => 0,
        len => len * DICT_ENTRY + len.next_power_of_two().max(4) * POINTER,
    };
    let count = |topic| view.engine.pubsub.count(topic, session.id);
    table(count(Topic::Channel))
        + table(count(Topic::Shard))
        + count(Topic::Pattern) * LIST_NODE
        + view.engine.keyspace.watch.watched(session.id).len() * WATCHED_KEY
}
