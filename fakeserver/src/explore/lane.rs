//! [`LaneState`]: a connection at the gate, what it has sent and what it waits for.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use foldhash::fast::FixedState;
use redis::{PushInfo, PushKind, RedisResult, Value};
use smallvec::SmallVec;

use super::backend::Link;
use super::facts::Facts;
use super::gate::{closed, reset};
use super::schedule::Lane;
use super::strategy::{EnabledBy, Head};
use crate::footprint::{Audience, Footprint, SessionState, Static};
use crate::wire::Request;

/// Who can go on.
pub(super) type Wakers = SmallVec<[Waker; 2]>;

/// Names the replies to one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) lane: Lane,
    pub(super) number: u64,
}

/// The replies to one write, most of which are one command.
pub(super) type Replies = SmallVec<[Value; 1]>;

/// What the commands at the gate have in common at a moment.
pub(super) struct Setting {
    /// What those would do who wait in a blocking command.
    pub(super) waiting: SmallVec<[Footprint; 2]>,
    pub(super) audience: Audience,
    /// A bit for each client that holds several connections.
    pub(super) shared: u64,
    /// Whether the states in between are looked at, so that the order of any two commands that write can be seen.
    pub(super) observed: bool,
}

/// A command at the gate.
#[derive(Debug)]
pub(super) struct Command {
    /// The write that it is a part of.
    pub(super) exchange: u64,
    pub(super) request: Request,
    own: Arc<Static>,
    pub(super) enabled_by: EnabledBy,
}

/// A command that has left the gate and is not answered yet.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) exchange: u64,
    pub(super) own: Arc<Static>,
    /// Its place in the trace.
    pub(super) step: usize,
}

impl Command {
    /// It runs, as this step of the trace.
    pub(super) fn leave(self, step: usize) -> (Waiting, Request) {
        let waiting = Waiting {
            exchange: self.exchange,
            own: self.own,
            step,
        };
        (waiting, self.request)
    }
}

/// A write and its replies so far.
#[derive(Debug)]
struct Exchange {
    number: u64,
    missing: usize,
    replies: Replies,
    outcome: Option<RedisResult<Replies>>,
    waker: Option<Waker>,
}

/// A connection at the gate.
#[derive(Default)]
pub(super) struct LaneState {
    pub(super) client: usize,
    pub(super) link: Option<Link>,
    /// Counts the connections that used this lane, so that a lost one does not come alive again.
    pub(super) epoch: u64,
    /// How many connections have used it in this run.
    pub(super) opened: u32,
    /// Whether the client still has the connection.
    pub(super) held: bool,
    pub(super) queue: VecDeque<Command>,
    /// The command that ran and has not been answered: the server makes it wait.
    pub(super) waiting: Option<Waiting>,
    pub(super) session: SessionState,
    pub(super) head: Option<Head>,
    exchanges: SmallVec<[Exchange; 1]>,
    /// Pushes that the client has not taken.
    pub(super) pushes: VecDeque<PushInfo>,
    push_waker: Option<Waker>,
}

impl LaneState {
    /// An unused lane of this client.
    pub(super) fn of(client: usize) -> LaneState {
        LaneState {
            client,
            ..LaneState::default()
        }
    }

    /// As an unused one.
    pub(super) fn clear(&mut self) {
        self.link = None;
        self.opened = 0;
        self.held = false;
        self.queue.clear();
        self.waiting = None;
        self.session = SessionState::default();
        self.head = None;
        self.exchanges.clear();
        self.pushes.clear();
        self.push_waker = None;
    }

    /// There is nobody left to be woken.
    pub(super) fn forget_wakers(&mut self) {
        self.push_waker = None;
        for exchange in &mut self.exchanges {
            exchange.waker = None;
        }
    }

    /// Has what a strategy may ask of the next command at hand.
    pub(super) fn prepare(&mut self, setting: &Setting) {
        let Setting {
            waiting,
            audience,
            shared,
            observed,
        } = setting;
        if !waiting.is_empty() || *audience != Audience::Nobody {
            self.head = None;
        }
        if let (None, Some(command)) = (&self.head, self.queue.front()) {
            let mut footprint = self.session.footprint(&command.own);
            footprint.surround(waiting, *audience);
            if *observed && footprint.may_write() {
                footprint.shows_in_states();
            }
            self.head = Some(Head {
                footprint,
                local: self.session.is_local(&command.own),
                fingerprint: fingerprint(&command.request),
                client: Some(self.client),
                enabled_by: command.enabled_by,
                shared: false,
            });
        }
        if let Some(head) = &mut self.head {
            let bits = shared.checked_shr(self.client as u32);
            head.shared = bits.is_some_and(|bits| bits & 1 == 1);
        }
    }

    /// Takes in the commands of one write, sent after this step; `waker` is woken when all are answered.
    pub(super) fn send(
        &mut self,
        ticket: Ticket,
        requests: impl ExactSizeIterator<Item = Request>,
        waker: &Waker,
        enabled_by: EnabledBy,
        facts: &mut Facts,
    ) {
        let count = requests.len();
        self.exchanges.push(Exchange {
            number: ticket.number,
            missing: count,
            replies: Replies::with_capacity(count),
            outcome: (count == 0).then(|| Ok(Replies::new())),
            waker: Some(waker.clone()),
        });
        self.queue.extend(requests.map(|request| Command {
            exchange: ticket.number,
            own: facts.of(&request),
            request,
            enabled_by,
        }));
    }

    /// Whether its next command can run.
    pub(super) fn is_enabled(&self) -> bool {
        self.link.is_some() && self.waiting.is_none() && !self.queue.is_empty()
    }

    /// Whether nothing is on its way.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.waiting.is_none()
    }

    fn position(&self, number: u64) -> Option<usize> {
        self.exchanges
            .iter()
            .position(|exchange| exchange.number == number)
    }

    pub(super) fn poll(&mut self, ticket: Ticket, cx: &Context<'_>) -> Poll<RedisResult<Replies>> {
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
        match &mut exchange.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            waker => *waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// The next push; an error if there is none and the connection is gone.
    pub(super) fn poll_push(&mut self, cx: &Context<'_>) -> Poll<RedisResult<PushInfo>> {
        if let Some(push) = self.pushes.pop_front() {
            return Poll::Ready(Ok(push));
        }
        if self.link.is_none() {
            return Poll::Ready(Err(closed()));
        }
        self.push_waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Keeps a push for the client. What answers the command that waits comes back: a reply, or the first push that confirms a
    /// subscription.
    pub(super) fn take_push(&mut self, reply: Value, wakers: &mut Wakers) -> Option<Value> {
        let Value::Push { kind, data } = reply else {
            return Some(reply);
        };
        let waiting = self.waiting.as_ref();
        let confirms = is_confirmation(&kind)
            && waiting.is_some_and(|waiting| waiting.own.name().ends_with("SUBSCRIBE"));
        let answer = confirms.then(|| Value::Push {
            kind: kind.clone(),
            data: data.clone(),
        });
        self.pushes.push_back(PushInfo { kind, data });
        wakers.extend(self.push_waker.take());
        answer
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
        let mut wakers: Wakers = self.push_waker.take().into_iter().collect();
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
    let mut hasher = FixedState::default().build_hasher();
    for word in request.words() {
        hasher.write_usize(word.len());
        hasher.write(word);
    }
    hasher.finish()
}

/// Whether a push says that a subscription has begun or ended.
fn is_confirmation(kind: &PushKind) -> bool {
    matches!(
        kind,
        PushKind::Subscribe
            | PushKind::PSubscribe
            | PushKind::SSubscribe
            | PushKind::Unsubscribe
            | PushKind::PUnsubscribe
            | PushKind::SUnsubscribe
    )
}
