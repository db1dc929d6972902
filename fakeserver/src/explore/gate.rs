//! The gate in front of the server: connections leave their commands here, and whenever no client can go on without a reply,
//! the strategy says which command runs.
//!
//! # When
//! tokio calls the hook `on_thread_park` of a current-thread runtime only if no task is runnable. Then every client waits for
//! a reply or for time, so the set of commands that could run next is complete. The whole scheduler runs inside of the hook:
//! it runs commands until one of them wakes a client; if there is none to run, time goes on to the next timer.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use redis::{PushInfo, RedisError, RedisResult, Value};
use tokio::time::Instant;

use super::backend::Backend;
use super::escape::Escape;
use super::facts::Facts;
use super::history::Clock;
use super::lane::{LaneState, Replies, Ticket};
use super::schedule::{Choice, LANES_MAX, Lane};
use super::strategy::{EnabledBy, Ran, Strategy};
use super::trace::{Keys, Trace};
use super::{Faults, ORIGIN, Observer, Progress, Violation};
use crate::clock::Timestamp;
use crate::footprint::{Audience, SessionState};
use crate::wire::{Protocol, Request};

/// Virtual time after which nothing but a deadlock is left to explain that nobody went on.
pub(super) const DEADLOCK_AFTER: Duration = Duration::from_secs(1 << 30);

/// Why a run ended before its clients did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The strategy has seen the rest.
    Pruned,
    /// It ran another way than the strategy remembers.
    Diverged(String),
    /// More commands than allowed.
    StepLimit,
    /// Who looked on says that a property is broken.
    Broken(Violation),
    /// Nobody goes on, whatever time passes.
    Deadlock(String),
    /// The program left what is under control.
    Escaped(Escape),
}

/// What the hook, the connections and the run share.
pub(super) struct Gate {
    state: Mutex<GateState>,
    /// On which the clients run.
    thread: u64,
}

/// The state behind a [`Gate`].
pub(super) struct GateState {
    pub(super) backend: Box<dyn Backend>,
    pub(super) strategy: Option<Box<dyn Strategy>>,
    pub(super) lanes: Vec<LaneState>,
    pub(super) last: Option<Lane>,
    pub(super) facts: Facts,
    /// Who hears what others do.
    pub(super) audience: Audience,
    pub(super) faults: Faults,
    pub(super) steps_max: usize,
    pub(super) choices: Vec<Choice>,
    /// How long the schedule before was: the next one is about as long.
    pub(super) choices_len_last: usize,
    /// The same steps, as strategies want to know them.
    pub(super) ran: Vec<Ran>,
    /// Whether no command could run, so that time went on since the last step.
    pub(super) idle: bool,
    /// What tells which steps began or ended an operation.
    pub(super) operations: Option<Arc<Clock>>,
    pub(super) drain: Drain,
    pub(super) preemptions: usize,
    /// Whether the choice that was made last is not the default.
    pub(super) deviated: bool,
    pub(super) trace: Option<Trace>,
    /// The keys after the step before; only if changes are taken down.
    pub(super) keys: Option<Keys>,
    pub(super) stop: Option<Stop>,
    /// Of the task that watches the gate: it learns that the run is to be given up, and for how long it is to sleep.
    watch_waker: Option<Waker>,
    /// Of the runtime's main future.
    main_waker: Option<Waker>,
    /// When the run began, on the runtime's clock.
    pub(super) start: Option<Instant>,
    /// Commands that ran while the gate was open; only kept if asked for.
    pub(super) log: Option<Vec<Request>>,
    /// Looks at the server after each step.
    pub(super) observer: Option<Box<dyn Observer>>,
    /// Told of clients that come to their end.
    pub(super) progress: Progress,
    /// Those that have.
    pub(super) ended: Vec<usize>,
    /// How many there are.
    pub(super) clients: usize,
    pub(super) now: Timestamp,
    /// Until when no command runs.
    pub(super) held_until: Option<Duration>,
    /// Until when the watching task sleeps, so that time stops there.
    pub(super) alarm: Option<Duration>,
    tickets: u64,
    /// Counts connections of all runs, so that one of an earlier run is known as such.
    epochs: u64,
}

impl Gate {
    /// A gate in front of this server.
    pub(super) fn new(backend: Box<dyn Backend>) -> Gate {
        let state = GateState {
            backend,
            strategy: None,
            lanes: Vec::new(),
            last: None,
            facts: Facts::default(),
            audience: Audience::default(),
            faults: Faults::none(),
            steps_max: usize::MAX,
            choices: Vec::new(),
            choices_len_last: 0,
            ran: Vec::new(),
            idle: false,
            operations: None,
            drain: Drain::default(),
            preemptions: 0,
            deviated: false,
            trace: None,
            keys: None,
            stop: None,
            watch_waker: None,
            main_waker: None,
            start: None,
            log: None,
            observer: None,
            progress: Progress::default(),
            ended: Vec::new(),
            clients: 0,
            now: ORIGIN,
            held_until: None,
            alarm: None,
            tickets: 0,
            epochs: 0,
        };
        Gate {
            state: Mutex::new(state),
            thread: this_thread(),
        }
    }

    /// The calling thread is a client's, and runs only while the thread of all clients waits for it.
    pub(super) fn adopt_thread(&self) {
        THREAD.with(|number| number.set(self.thread));
    }

    /// Whether the caller runs on the thread of the clients.
    pub(super) fn is_on_its_thread(&self) -> bool {
        this_thread() == self.thread
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, GateState> {
        // Nothing in here is left half-done by a panic of a client, which never runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The hook: runs commands until a client can go on.
    pub(super) fn on_park(&self) {
        loop {
            let turn = self.lock().turn();
            // Waking may drop a task and with it a connection, which comes back here.
            let Some(wakers) = turn else {
                return;
            };
            if !wakers.is_empty() {
                wakers.into_iter().for_each(Waker::wake);
                return;
            }
        }
    }

    /// Leaves commands of one write; [`Gate::poll`] with the ticket gives their replies, and the waker is woken when they are
    /// there. Whether they may be there now.
    pub(super) fn send(
        &self,
        lane: Lane,
        epoch: u64,
        requests: impl ExactSizeIterator<Item = Request>,
        waker: &Waker,
    ) -> RedisResult<(Ticket, bool)> {
        self.lock().send(lane, epoch, requests, waker)
    }

    /// Runs a command at once that is no step of the schedule, since only its own connection is concerned with it.
    pub(super) fn pass(&self, lane: Lane, epoch: u64, request: &Request) -> RedisResult<Value> {
        self.lock().pass(lane, epoch, request)
    }

    /// The replies, once they are all there.
    pub(super) fn poll(&self, ticket: Ticket, cx: &Context<'_>) -> Poll<RedisResult<Replies>> {
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

    /// The next push to a connection.
    pub(super) fn poll_push(
        &self,
        lane: Lane,
        epoch: u64,
        cx: &Context<'_>,
    ) -> Poll<RedisResult<PushInfo>> {
        match self.lock().lanes.get_mut(lane.index()) {
            Some(lane) if lane.epoch == epoch => lane.poll_push(cx),
            _ => Poll::Ready(Err(closed())),
        }
    }

    /// Opens a connection for a client.
    pub(super) fn open(&self, client: usize, protocol: Protocol) -> RedisResult<(Lane, u64)> {
        self.lock().open(client, protocol)
    }

    /// A client gave up a connection: what it has sent still arrives.
    pub(super) fn release(&self, lane: Lane, epoch: u64) {
        let mut state = self.lock();
        if let Some(state_of_lane) = state.lanes.get_mut(lane.index())
            && state_of_lane.epoch == epoch
        {
            state_of_lane.held = false;
            state.close_if_released(lane);
        }
    }

    /// Whether a connection has not been lost.
    pub(super) fn is_open(&self, lane: Lane, epoch: u64) -> bool {
        let state = self.lock();
        let lane = state.lanes.get(lane.index());
        lane.is_some_and(|lane| lane.link.is_some() && lane.epoch == epoch)
    }

    /// A run begins, now.
    pub(super) fn start(&self, at: Instant) {
        self.lock().start = Some(at);
    }

    /// A run is at its end, and its clients are gone.
    pub(super) fn finish(&self) {
        let mut state = self.lock();
        state.start = None;
        state.main_waker = None;
        // Who watches is to forget the time; who is not woken keeps the waker.
        let is_asleep = state.alarm.take().is_some();
        let waker = state.watch_waker.take_if(|_| is_asleep);
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// For the task that watches: when it is to be woken. If the run is to be given up it wakes whom that concerns.
    pub(super) fn poll_watch(&self, cx: &Context<'_>) -> Option<Instant> {
        let mut state = self.lock();
        state.watch_waker = Some(cx.waker().clone());
        let is_over = state.stop.is_some() || state.drain == Drain::Reached;
        let main = state.main_waker.take_if(|_| is_over);
        let until = state.start.zip(state.alarm);
        drop(state);
        if let Some(main) = main {
            main.wake();
        }
        until.and_then(|(start, alarm)| start.checked_add(alarm))
    }

    /// Ready once the run is to be given up: why, and how many commands it may have.
    pub(super) fn poll_stopped(&self, cx: &Context<'_>) -> Poll<(Stop, usize)> {
        let mut state = self.lock();
        if let Some(stop) = state.stop.clone() {
            return Poll::Ready((stop, state.steps_max));
        }
        match &mut state.main_waker {
            Some(waker) => waker.clone_from(cx.waker()),
            waker => *waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Ready once nothing that was sent is left to run.
    pub(super) fn poll_drained(&self) -> Poll<()> {
        let mut state = self.lock();
        let is_in_use = state.lanes.iter().any(|lane| lane.link.is_some());
        if !is_in_use || state.drain == Drain::Reached {
            return Poll::Ready(());
        }
        state.drain = Drain::Wanted;
        Poll::Pending
    }

    /// A client came to its end.
    pub(super) fn ended(&self, client: usize) {
        let mut state = self.lock();
        state.ended.push(client);
        state.progress.made();
    }

    /// The program left what is under control: nothing of it runs any more.
    pub(super) fn escape(&self, escape: Escape) {
        let waker = {
            let mut state = self.lock();
            if state.stop.is_some() || state.start.is_none() {
                return;
            }
            state.stop = Some(Stop::Escaped(escape));
            state.watch_waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// How far the schedule is, in words.
    pub(super) fn progress(&self) -> String {
        let state = self.lock();
        if state.choices.is_empty() {
            return "before the first command".to_owned();
        }
        let so_far = state.choices.iter().map(Choice::to_string);
        format!("after {}", so_far.collect::<String>())
    }
}

impl GateState {
    /// Begins a run of so many clients.
    pub(super) fn begin(&mut self, clients: usize) {
        let clients = clients.min(LANES_MAX);
        self.lanes.truncate(clients);
        self.lanes.iter_mut().for_each(LaneState::clear);
        let more = self.lanes.len()..clients;
        self.lanes.extend(more.map(LaneState::of));
        self.last = None;
        self.choices = Vec::with_capacity(self.choices_len_last.max(8));
        self.ran.clear();
        self.idle = false;
        self.operations = None;
        self.drain = Drain::default();
        self.audience = Audience::default();
        self.preemptions = 0;
        self.trace = None;
        self.keys = None;
        self.stop = None;
        self.observer = None;
        self.ended.clear();
        self.clients = clients;
        self.now = ORIGIN;
        self.held_until = None;
        self.alarm = None;
    }

    /// There is nobody left to be woken.
    pub(super) fn forget_wakers(&mut self) {
        self.watch_waker = None;
        self.main_waker = None;
        self.lanes.iter_mut().for_each(LaneState::forget_wakers);
    }

    /// Whoever watches the gate.
    pub(super) fn take_watch(&mut self) -> Option<Waker> {
        self.watch_waker.take()
    }

    fn send(
        &mut self,
        lane: Lane,
        epoch: u64,
        requests: impl ExactSizeIterator<Item = Request>,
        waker: &Waker,
    ) -> RedisResult<(Ticket, bool)> {
        self.tickets += 1;
        let ticket = Ticket {
            lane,
            number: self.tickets,
        };
        let enabled_by = self.enabled_by();
        let state = self.lanes.get_mut(lane.index()).ok_or_else(closed)?;
        let link = state.link.filter(|_| state.epoch == epoch);
        let link = link.ok_or_else(closed)?;
        let before = state.queue.len();
        let is_empty = requests.len() == 0;
        state.send(ticket, requests, waker, enabled_by, &mut self.facts);
        for sent in state.queue.iter().skip(before) {
            if let Some(error) = refusal(&sent.request, || self.backend.speaks_resp3(link)) {
                state.queue.truncate(before);
                state.abandon(ticket);
                return Err(error);
            }
        }
        let is_open = self.strategy.is_none();
        if is_open {
            self.run_all(lane);
        }
        Ok((ticket, is_open || is_empty))
    }

    fn pass(&mut self, lane: Lane, epoch: u64, request: &Request) -> RedisResult<Value> {
        let state = self.lanes.get(lane.index()).ok_or_else(closed)?;
        let link = state
            .link
            .filter(|_| state.epoch == epoch && state.is_idle());
        let link = link.ok_or_else(closed)?;
        if let Some(log) = &mut self.log {
            log.push(request.clone());
        }
        self.backend.submit(link, request.clone(), self.now);
        let mut answer = None;
        while let Some((whose, reply)) = self.backend.poll() {
            if whose == link {
                answer = Some(reply);
            }
        }
        answer.ok_or_else(closed)
    }

    fn open(&mut self, client: usize, protocol: Protocol) -> RedisResult<(Lane, u64)> {
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
        let link = self.backend.open(protocol, self.now)?;
        self.epochs += 1;
        let state = self.lanes.get_mut(at).ok_or_else(closed)?;
        state.link = Some(link);
        state.held = true;
        state.epoch = self.epochs;
        state.opened += 1;
        state.session = SessionState::default();
        state.pushes.clear();
        Ok((lane, state.epoch))
    }

    /// What leads to a command that is sent now.
    pub(super) fn enabled_by(&self) -> EnabledBy {
        let steps = self.choices.len();
        if self.idle {
            EnabledBy::time(steps)
        } else {
            EnabledBy::reply(steps)
        }
    }

    /// Attributes what the clients have marked since the last step to it. What time led to comes after all steps before in any
    /// case.
    pub(super) fn note_operations(&mut self) {
        let Some(operations) = &self.operations else {
            return;
        };
        let marks = operations.marks();
        if let (false, Some(last)) = (self.idle, self.ran.last_mut()) {
            last.marks.begins |= marks.begins;
            last.marks.returns |= marks.returns;
        }
    }

    /// A run is over: the strategy learns what ran.
    pub(super) fn end(&mut self) {
        self.note_operations();
        if let Some(strategy) = &mut self.strategy {
            strategy.end(&self.ran);
        }
    }

    /// A bit for each client that holds more than one connection.
    pub(super) fn clients_with_several_lanes(&self) -> u64 {
        let (mut one, mut several) = (0, 0);
        for lane in self.lanes.iter().filter(|lane| lane.link.is_some()) {
            let client = 1_u64.checked_shl(lane.client as u32).unwrap_or(0);
            several |= one & client;
            one |= client;
        }
        several
    }

    /// Virtual time since the beginning.
    pub(super) fn elapsed(&self) -> Duration {
        Duration::from_micros(self.now.micros().abs_diff(ORIGIN.micros()))
    }

    /// Whose each lane is.
    pub(super) fn clients(&self) -> Vec<usize> {
        self.lanes.iter().map(|lane| lane.client).collect()
    }
}

/// Whether the clients are at their end, and what they sent is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Drain {
    #[default]
    No,
    Wanted,
    Reached,
}

thread_local! {
    static THREAD: Cell<u64> = const { Cell::new(0) };
}

/// The number of the calling thread.
fn this_thread() -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    THREAD.with(|number| {
        if number.get() == 0 {
            number.set(THREADS.fetch_add(1, Ordering::Relaxed) + 1);
        }
        number.get()
    })
}

/// Why a command cannot be sent here, if it cannot: what it sets off is not one reply.
fn refusal(request: &Request, speaks_resp3: impl FnOnce() -> bool) -> Option<RedisError> {
    let is = |name: &str| request.name().eq_ignore_ascii_case(name.as_bytes());
    let subscribes = match request.name().len() {
        9 => is("SUBSCRIBE"),
        10 => is("PSUBSCRIBE") || is("SSUBSCRIBE"),
        _ => false,
    };
    let text = if subscribes && !speaks_resp3() {
        "the explorer delivers messages to RESP3 connections only: Connector::open_resp3, Connection::next_push"
    } else if request.name().len() == 7 && is("MONITOR") {
        "the explorer has no MONITOR"
    } else if request.name().len() == 6
        && is("CLIENT")
        && request
            .get(1)
            .is_some_and(|word| word.eq_ignore_ascii_case(b"REPLY"))
    {
        "the explorer has no CLIENT REPLY: each command is answered"
    } else {
        return None;
    };
    Some((redis::ErrorKind::Client, text).into())
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
