//! [`LaneState`]: a connection at the gate, what it has sent and what it waits for.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::task::{Context, Poll, Waker};

use foldhash::fast::FixedState;
use redis::{RedisResult, Value};
use smallvec::SmallVec;

use super::backend::Link;
use super::gate::{closed, reset};
use super::schedule::Lane;
use super::strategy::Head;
use crate::footprint::{SessionState, Static};
use crate::wire::Request;

/// Who can go on.
pub(super) type Wakers = SmallVec<[Waker; 2]>;

/// Names the replies to one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) lane: Lane,
    pub(super) number: u64,
}

/// A command at the gate.
#[derive(Debug)]
pub(super) struct Command {
    /// The write that it is a part of.
    pub(super) exchange: u64,
    pub(super) request: Request,
    pub(super) own: Static,
    /// Its place in the trace, once it has run.
    pub(super) step: usize,
}

/// A write and its replies so far.
#[derive(Debug)]
struct Exchange {
    number: u64,
    missing: usize,
    replies: Vec<Value>,
    outcome: Option<RedisResult<Vec<Value>>>,
    waker: Option<Waker>,
}

/// A connection at the gate.
#[derive(Default)]
pub(super) struct LaneState {
    pub(super) client: usize,
    pub(super) link: Option<Link>,
    /// Counts the connections that used this lane, so that a lost one does not come alive again.
    pub(super) epoch: u32,
    /// Whether the client still has the connection.
    pub(super) held: bool,
    pub(super) queue: VecDeque<Command>,
    /// The command that ran and has not been answered: the server makes it wait.
    pub(super) waiting: Option<Command>,
    pub(super) session: SessionState,
    pub(super) head: Option<Head>,
    exchanges: SmallVec<[Exchange; 1]>,
}

impl LaneState {
    /// An unused lane of this client.
    pub(super) fn of(client: usize) -> LaneState {
        LaneState {
            client,
            ..LaneState::default()
        }
    }

    /// Whether its next command can run.
    pub(super) fn is_enabled(&self) -> bool {
        self.link.is_some() && self.waiting.is_none() && !self.queue.is_empty()
    }

    /// Whether nothing is on its way.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.waiting.is_none()
    }

    pub(super) fn expect(&mut self, ticket: Ticket, count: usize) {
        self.exchanges.push(Exchange {
            number: ticket.number,
            missing: count,
            replies: Vec::with_capacity(count),
            outcome: (count == 0).then(|| Ok(Vec::new())),
            waker: None,
        });
    }

    fn position(&self, number: u64) -> Option<usize> {
        self.exchanges
            .iter()
            .position(|exchange| exchange.number == number)
    }

    pub(super) fn poll(
        &mut self,
        ticket: Ticket,
        cx: &Context<'_>,
    ) -> Poll<RedisResult<Vec<Value>>> {
        let Some(at) = self.position(ticket.number) else {
            return Poll::Ready(Err(closed()));
        };
        let Some(exchange) = self.exchanges.get_mut(at) else {
            return Poll::Ready(Err(closed()));
        };
        if let Some(outcome) = exchange.outcome.take() {
            self.exchanges.remove(at);
            return Poll::Ready(outcome);
        }
        exchange.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    pub(super) fn abandon(&mut self, ticket: Ticket) {
        if let Some(at) = self.position(ticket.number) {
            self.exchanges.remove(at);
        }
    }

    /// A reply to a command of this write; who waits for it, if it was the last.
    pub(super) fn answer(&mut self, number: u64, reply: Value) -> Option<Waker> {
        let at = self.position(number)?;
        let exchange = self.exchanges.get_mut(at)?;
        exchange.replies.push(reply);
        exchange.missing = exchange.missing.saturating_sub(1);
        if exchange.missing > 0 {
            return None;
        }
        exchange.outcome = Some(Ok(std::mem::take(&mut exchange.replies)));
        exchange.waker.take()
    }

    /// All that is under way is lost, and the replies to `unread` with it though they are here; whoever waits for it.
    pub(super) fn fail(&mut self, unread: Option<u64>) -> Wakers {
        self.queue.clear();
        self.waiting = None;
        self.head = None;
        let mut wakers = Wakers::new();
        for exchange in &mut self.exchanges {
            let arrived = exchange.missing == 0 && unread != Some(exchange.number);
            if !arrived {
                exchange.outcome = Some(Err(reset()));
                wakers.extend(exchange.waker.take());
            }
        }
        wakers
    }
}

/// A hash of a command's words.
pub(super) fn fingerprint(request: &Request) -> u64 {
    let hasher = FixedState::default();
    request
        .words()
        .fold(0, |sum, word| hasher.hash_one((sum, word)))
}
