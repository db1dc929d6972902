//! The gate in front of the server: connections leave their commands here, and whenever no client can go on without a reply,
//! the strategy says which command runs.
//!
//! # When
//! tokio calls the hook `on_thread_park` of a current-thread runtime only if no task is runnable. Then every client waits for
//! a reply or for time, so the set of commands that could run next is complete. The whole scheduler runs inside of the hook:
//! it runs commands until one of them wakes a client; if there is none to run, time goes on to the next timer.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use redis::{RedisError, RedisResult, Value};
use smallvec::SmallVec;

use super::backend::{Backend, Link};
use super::lane::{Command, LaneState, Ticket, Wakers, fingerprint};
use super::schedule::{Act, Choice, LANES_MAX, Lane};
use super::strategy::{Candidate, Decision, Head, Point, Strategy};
use super::trace::{Step, Trace};
use super::{Faults, ORIGIN};
use crate::clock::Timestamp;
use crate::footprint::{SessionState, Static};
use crate::wire::Request;

/// Why a run ended before its clients did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The strategy has seen the rest.
    Pruned,
    /// It ran another way than the strategy remembers.
    Diverged(String),
    /// More commands than allowed.
    StepLimit,
}

/// What the hook, the connections and the run share.
pub(super) struct Gate(Mutex<GateState>);

/// The state behind a [`Gate`].
pub(super) struct GateState {
    pub(super) backend: Box<dyn Backend>,
    pub(super) strategy: Option<Box<dyn Strategy>>,
    lanes: Vec<LaneState>,
    last: Option<Lane>,
    faults: Faults,
    pub(super) steps_max: usize,
    pub(super) choices: Vec<Choice>,
    pub(super) preemptions: usize,
    pub(super) trace: Option<Trace>,
    pub(super) stop: Option<Stop>,
    stop_waker: Option<Waker>,
    /// Commands that ran while the gate was open; only kept if asked for.
    pub(super) log: Option<Vec<Request>>,
    now: Timestamp,
    tickets: u64,
}

impl Gate {
    /// A gate for so many clients, open: commands run as they arrive until [`Gate::shut`].
    pub(super) fn new(backend: Box<dyn Backend>, clients: usize, faults: Faults) -> Gate {
        let lanes = (0..clients.min(LANES_MAX)).map(LaneState::of);
        Gate(Mutex::new(GateState {
            backend,
            strategy: None,
            lanes: lanes.collect(),
            last: None,
            faults,
            steps_max: usize::MAX,
            choices: Vec::new(),
            preemptions: 0,
            trace: None,
            stop: None,
            stop_waker: None,
            log: None,
            now: ORIGIN,
            tickets: 0,
        }))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, GateState> {
        // Nothing in here is left half-done by a panic of a client, which never runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the strategy decides.
    pub(super) fn shut(&self, strategy: Box<dyn Strategy>) {
        self.lock().strategy = Some(strategy);
    }

    /// The hook: runs commands until a client can go on.
    pub(super) fn on_park(&self, elapsed: Duration) {
        loop {
            let mut state = self.lock();
            state.now = ORIGIN.plus(elapsed);
            let Some(wakers) = state.advance() else {
                return;
            };
            // Waking may drop a task and with it a connection, which comes back here.
            drop(state);
            if !wakers.is_empty() {
                wakers.into_iter().for_each(Waker::wake);
                return;
            }
        }
    }

    /// Leaves commands of one write; [`Gate::poll`] with the ticket gives their replies.
    pub(super) fn send(
        &self,
        lane: Lane,
        epoch: u32,
        requests: Vec<Request>,
    ) -> RedisResult<Ticket> {
        self.lock().send(lane, epoch, requests)
    }

    /// The replies, once they are all there.
    pub(super) fn poll(&self, ticket: Ticket, cx: &Context<'_>) -> Poll<RedisResult<Vec<Value>>> {
        let mut state = self.lock();
        match state.lanes.get_mut(ticket.lane.index()) {
            Some(lane) => lane.poll(ticket, cx),
            None => Poll::Ready(Err(closed())),
        }
    }

    /// Nobody waits for these replies any more; the commands are on their way all the same.
    pub(super) fn abandon(&self, ticket: Ticket) {
        if let Some(lane) = self.lock().lanes.get_mut(ticket.lane.index()) {
            lane.abandon(ticket);
        }
    }

    /// Opens a connection for a client.
    pub(super) fn open(&self, client: usize) -> RedisResult<(Lane, u32)> {
        self.lock().open(client)
    }

    /// A client gave up a connection: what it has sent still arrives.
    pub(super) fn release(&self, lane: Lane, epoch: u32) {
        let mut state = self.lock();
        if let Some(lane) = state.lanes.get_mut(lane.index())
            && lane.epoch == epoch
        {
            lane.held = false;
            if lane.is_idle()
                && let Some(link) = lane.link.take()
            {
                state.backend.close(link);
            }
        }
    }

    /// Ready once the run is to be given up.
    pub(super) fn poll_stopped(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.stop.is_some() {
            return Poll::Ready(());
        }
        state.stop_waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Which clients wait for the server, and with what.
    pub(super) fn waiting(&self) -> Vec<String> {
        let state = self.lock();
        let waiting = state.lanes.iter().enumerate().filter_map(|(at, lane)| {
            let command = lane.waiting.as_ref()?;
            let name = command.request.name().escape_ascii().to_string();
            Some(format!("{} waits in {name}", Lane::new(at)?))
        });
        waiting.collect()
    }
}

impl GateState {
    fn send(&mut self, lane: Lane, epoch: u32, requests: Vec<Request>) -> RedisResult<Ticket> {
        self.tickets += 1;
        let ticket = Ticket {
            lane,
            number: self.tickets,
        };
        let state = self.lanes.get_mut(lane.index()).ok_or_else(closed)?;
        if state.link.is_none() || state.epoch != epoch {
            return Err(closed());
        }
        state.send(ticket, requests);
        if self.strategy.is_none() {
            while self
                .lanes
                .get(lane.index())
                .is_some_and(LaneState::is_enabled)
            {
                let wakers = self.perform(Choice::execute(lane));
                wakers.into_iter().for_each(Waker::wake);
            }
        }
        Ok(ticket)
    }

    fn open(&mut self, client: usize) -> RedisResult<(Lane, u32)> {
        let free =
            |lane: &LaneState| lane.client == client && lane.link.is_none() && lane.is_idle();
        let at = self.lanes.iter().position(free).unwrap_or_else(|| {
            self.lanes.push(LaneState::of(client));
            self.lanes.len() - 1
        });
        let Some(lane) = Lane::new(at) else {
            self.lanes.pop();
            return Err((redis::ErrorKind::Client, "too many connections to explore").into());
        };
        let link = self.backend.open(self.now)?;
        let state = self.lanes.get_mut(at).ok_or_else(closed)?;
        state.link = Some(link);
        state.held = true;
        state.epoch += 1;
        state.session = SessionState::default();
        Ok((lane, state.epoch))
    }

    /// Runs one command; who can go on because of it. `None` if there is nothing to run.
    fn advance(&mut self) -> Option<Wakers> {
        if self.stop.is_some() {
            return None;
        }
        let mut strategy = self.strategy.take()?;
        let decision = self.decide(strategy.as_mut());
        self.strategy = Some(strategy);
        let stop = match decision? {
            Decision::Take(_) if self.choices.len() >= self.steps_max => Stop::StepLimit,
            Decision::Take(choice) => return Some(self.perform(choice)),
            Decision::Prune => Stop::Pruned,
            Decision::Diverged(how) => Stop::Diverged(how),
        };
        self.stop = Some(stop);
        Some(self.stop_waker.take().into_iter().collect())
    }

    fn decide(&mut self, strategy: &mut dyn Strategy) -> Option<Decision> {
        let mut enabled: SmallVec<[(Lane, usize); 8]> = SmallVec::new();
        for (at, state) in self.lanes.iter_mut().enumerate() {
            if let (true, Some(lane)) = (state.is_enabled(), Lane::new(at)) {
                state.prepare();
                enabled.push((lane, at));
            }
        }
        // The default comes first: whoever had the turn keeps it.
        if let Some(at) = enabled
            .iter()
            .position(|(lane, _)| Some(*lane) == self.last)
        {
            enabled[..=at].rotate_right(1);
        }
        let heads: SmallVec<[(Lane, &Head); 8]> = enabled
            .iter()
            .filter_map(|(lane, at)| Some((*lane, self.lanes.get(*at)?.head.as_ref()?)))
            .collect();
        let mut candidates: SmallVec<[Candidate<'_>; 12]> = SmallVec::new();
        candidates.extend(heads.iter().map(|&(lane, head)| Candidate {
            choice: Choice::execute(lane),
            head,
        }));
        for &(lane, head) in &heads {
            for act in self.faults.acts(head) {
                let choice = Choice { lane, act };
                candidates.push(Candidate { choice, head });
            }
        }
        if candidates.is_empty() {
            return None;
        }
        let point = Point {
            last: self.last,
            candidates: &candidates,
        };
        let decision = strategy.choose(&point);
        match decision {
            Decision::Take(choice) if !candidates.iter().any(|one| one.choice == choice) => {
                Some(Decision::Diverged(format!("{choice} is not possible")))
            }
            Decision::Take(choice) => {
                self.preemptions += usize::from(point.is_preemption(choice));
                Some(decision)
            }
            decision => Some(decision),
        }
    }

    fn perform(&mut self, choice: Choice) -> Wakers {
        let mut wakers = Wakers::new();
        let Some(lane) = self.lanes.get_mut(choice.lane.index()) else {
            return wakers;
        };
        let head = lane.head.take();
        let (Some(command), Some(link)) = (lane.queue.pop_front(), lane.link) else {
            return wakers;
        };
        if self.strategy.is_some() {
            self.choices.push(choice);
            self.last = Some(choice.lane);
        }
        if let Some(log) = &mut self.log {
            log.push(command.request.clone());
        }
        if let Some(trace) = &mut self.trace {
            trace.steps.push(Step {
                choice,
                request: command.request.clone(),
                reply: None,
                local: head.is_some_and(|head| head.local),
            });
        }
        if choice.is_fault() {
            self.faults.left = self.faults.left.saturating_sub(1);
        }
        let exchange = command.exchange;
        if choice.act != Act::DropBefore {
            self.submit(choice.lane, link, command, &mut wakers);
        }
        if choice.is_fault() {
            self.lose(choice.lane, Some(exchange), &mut wakers);
        } else if !self.backend.is_open(link) {
            self.lose(choice.lane, None, &mut wakers);
        }
        self.close_if_released(choice.lane);
        wakers
    }

    fn submit(&mut self, lane: Lane, link: Link, command: Command, wakers: &mut Wakers) {
        let Some(state) = self.lanes.get_mut(lane.index()) else {
            return;
        };
        let step = self.choices.len().saturating_sub(1);
        let command = state.waiting.insert(Command { step, ..command });
        self.backend.submit(link, &command.request, self.now);
        while let Some((link, reply)) = self.backend.poll() {
            self.deliver(link, reply, wakers);
        }
    }

    fn deliver(&mut self, link: Link, reply: Value, wakers: &mut Wakers) {
        let to = |lane: &&mut LaneState| lane.link == Some(link);
        let Some(lane) = self.lanes.iter_mut().find(to) else {
            return;
        };
        // What nobody waits for is a push message; these connections do not subscribe.
        let Some(command) = lane.waiting.take() else {
            return;
        };
        let refused = matches!(reply, Value::ServerError(_));
        lane.session.ran(&command.own, refused);
        if let Some(trace) = &mut self.trace
            && let Some(step) = trace.steps.get_mut(command.step)
        {
            step.reply = Some(reply.clone());
        }
        wakers.extend(lane.answer(command.exchange, reply));
    }

    /// The connection breaks: whoever waits for a reply learns it.
    fn lose(&mut self, lane: Lane, unread: Option<u64>, wakers: &mut Wakers) {
        if let Some(state) = self.lanes.get_mut(lane.index()) {
            if let Some(link) = state.link.take() {
                self.backend.close(link);
            }
            wakers.extend(state.fail(unread));
        }
    }

    fn close_if_released(&mut self, lane: Lane) {
        if let Some(state) = self.lanes.get_mut(lane.index())
            && !state.held
            && state.is_idle()
            && let Some(link) = state.link.take()
        {
            self.backend.close(link);
        }
    }

    /// Runs commands on a connection of their own, outside of the schedule.
    pub(super) fn call_all<'r>(
        &mut self,
        requests: impl IntoIterator<Item = &'r Request>,
    ) -> RedisResult<Vec<Value>> {
        let link = self.backend.open(self.now)?;
        let mut replies = Vec::new();
        for request in requests {
            self.backend.submit(link, request, self.now);
            while let Some((whose, reply)) = self.backend.poll() {
                if whose == link {
                    replies.push(reply);
                }
            }
        }
        self.backend.close(link);
        Ok(replies)
    }
}

impl LaneState {
    /// Has what a strategy may ask of the next command at hand.
    fn prepare(&mut self) {
        if let (None, Some(command)) = (&self.head, self.queue.front()) {
            self.head = Some(Head {
                footprint: self.session.footprint(&command.own),
                local: self.session.is_local(&command.own),
                fingerprint: fingerprint(&command.request),
            });
        }
    }

    fn send(&mut self, ticket: Ticket, requests: Vec<Request>) {
        self.expect(ticket, requests.len());
        let commands = requests.into_iter().map(|request| Command {
            exchange: ticket.number,
            own: Static::of(&request),
            request,
            step: 0,
        });
        let mut commands: VecDeque<Command> = commands.collect();
        self.queue.append(&mut commands);
    }
}

/// The error of a connection that broke while somebody waited for a reply.
pub(super) fn reset() -> RedisError {
    std::io::Error::new(
        std::io::ErrorKind::ConnectionReset,
        "connection lost by the schedule",
    )
    .into()
}

/// The error of a connection that was broken before.
pub(super) fn closed() -> RedisError {
    std::io::Error::new(std::io::ErrorKind::BrokenPipe, "connection is closed").into()
}
