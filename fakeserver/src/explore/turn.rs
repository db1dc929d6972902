//! What happens in the hook: a choice is made and carried out, or time goes on.

use std::task::Waker;
use std::time::Duration;

use redis::Value;
use smallvec::SmallVec;

use super::ORIGIN;
use super::backend::Link;
use super::gate::{DEADLOCK_AFTER, Drain, GateState, Stop};
use super::lane::{Command, LaneState, Setting, Wakers};
use super::schedule::{Act, Choice, Lane};
use super::strategy::{Candidate, Decision, EnabledBy, Head, Marks, Point, Ran, Strategy};
use super::trace::{Step, changes};
use super::{Database, Violation};
use crate::footprint::Footprint;
use crate::wire::Request;

/// The shortest time that passes: what a timer can tell apart.
const TICK: Duration = Duration::from_millis(1);

/// What is known of the connection that a command was sent on.
#[derive(Default)]
struct Sender {
    connection: u32,
    resp3: bool,
    head: Option<Head>,
}

impl GateState {
    /// One turn of the hook: who can go on because of it. `None` if there is nothing to do but to let time pass.
    pub(super) fn turn(&mut self) -> Option<Wakers> {
        let elapsed = self.start?.elapsed();
        self.note_operations();
        let now = ORIGIN.plus(elapsed);
        if now != self.now {
            self.now = now;
            let mut wakers = Wakers::new();
            self.backend.pass_time(now);
            self.deliver_all(&mut wakers);
            if !wakers.is_empty() {
                return Some(wakers);
            }
        }
        if self.held_until.is_some_and(|until| elapsed < until) {
            self.idle = true;
            return self.arm(elapsed);
        }
        self.held_until = None;
        match self.advance(elapsed) {
            None if self.drain == Drain::Wanted => {
                self.drain = Drain::Reached;
                Some(self.take_watch().into_iter().collect())
            }
            None => {
                self.idle = true;
                self.arm(elapsed)
            }
            wakers => wakers,
        }
    }

    /// Has the watching task sleep until something happens without a command; `None` if it does already.
    fn arm(&mut self, elapsed: Duration) -> Option<Wakers> {
        if self.stop.is_some() {
            return None;
        }
        let is_held = self.held_until.is_some();
        if elapsed >= DEADLOCK_AFTER && !is_held {
            self.stop = Some(Stop::Deadlock(self.who_waits()));
            return Some(self.take_watch().into_iter().collect());
        }
        let waits = self.lanes.iter().any(|lane| lane.waiting.is_some());
        let timeout = self.backend.next_timeout().filter(|_| waits);
        let timeout = timeout.map(|at| {
            let micros = at.micros().saturating_sub(ORIGIN.micros());
            let at = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
            at.max(elapsed + TICK)
        });
        let until = [
            self.held_until,
            timeout,
            (!is_held).then_some(DEADLOCK_AFTER),
        ];
        let alarm = until.into_iter().flatten().min();
        if alarm == self.alarm {
            return None;
        }
        self.alarm = alarm;
        Some(self.take_watch().into_iter().collect())
    }

    /// Which clients wait, and for what.
    fn who_waits(&self) -> String {
        let waiting = self.lanes.iter().enumerate().filter_map(|(at, lane)| {
            let waiting = lane.waiting.as_ref()?;
            let steps = self.trace.as_ref().map(|trace| &trace.steps);
            let step = steps.and_then(|steps| steps.get(waiting.step));
            let name = waiting.own.name().to_owned();
            let command = step.map_or(name, |step| brief(&step.request));
            Some(format!("{} waits in {command}", Lane::new(at)?))
        });
        let is_elsewhere = |client: &usize| {
            let mut lanes = self.lanes.iter();
            let waits = lanes.any(|lane| lane.client == *client && lane.waiting.is_some());
            !waits && !self.ended.contains(client)
        };
        let clients = 0..self.clients;
        let elsewhere = clients
            .filter(is_elsewhere)
            .filter_map(Lane::new)
            .map(|lane| {
                format!(
                    "{lane} waits for another client, or for a thread that is not under control"
                )
            });
        waiting.chain(elsewhere).collect::<Vec<_>>().join(", ")
    }

    /// Runs one command; who can go on because of it. `None` if there is nothing to run.
    fn advance(&mut self, elapsed: Duration) -> Option<Wakers> {
        if self.stop.is_some() {
            return None;
        }
        let mut strategy = self.strategy.take()?;
        let decision = self.decide(strategy.as_mut());
        self.strategy = Some(strategy);
        let stop = match decision? {
            Decision::Take(_) if self.choices.len() >= self.steps_max => Stop::StepLimit,
            Decision::Take(choice) => return Some(self.perform_observed(choice, elapsed)),
            Decision::Prune => Stop::Pruned,
            Decision::Diverged(how) => Stop::Diverged(how),
        };
        self.stop = Some(stop);
        Some(self.take_watch().into_iter().collect())
    }

    /// Carries out a choice, and has the server looked at if others can see what it did.
    fn perform_observed(&mut self, choice: Choice, elapsed: Duration) -> Wakers {
        let head = self.lanes.get(choice.lane.index());
        let local = head.is_some_and(|lane| lane.head.as_ref().is_some_and(|head| head.local));
        let mut wakers = self.perform(choice, elapsed);
        if !local
            && self.stop.is_none()
            && let Err(violation) = self.observe()
        {
            self.stop = Some(Stop::Broken(violation));
            wakers.extend(self.take_watch());
        }
        wakers
    }

    fn observe(&mut self) -> Result<(), Violation> {
        let (backend, now) = (&mut self.backend, self.now);
        let mut peek = |request: &Request| backend.peek(request, now);
        match &mut self.observer {
            Some(observer) => observer.stepped(&mut Database::new(&mut peek)),
            None => Ok(()),
        }
    }

    fn decide(&mut self, strategy: &mut dyn Strategy) -> Option<Decision> {
        let observer = self.observer.as_ref();
        let setting = Setting {
            waiting: self.waiting_footprints(),
            audience: self.audience,
            shared: self.clients_with_several_lanes(),
            observed: observer.is_some_and(|observer| observer.sees_states()),
        };
        let mut can_run = 0;
        for state in &mut self.lanes {
            if state.is_enabled() {
                state.prepare(&setting);
                can_run += 1;
            }
        }
        if can_run == 0 {
            return None;
        }
        let mut world: SmallVec<[(Act, Head); 1]> = SmallVec::new();
        let mut candidates: SmallVec<[Candidate<'_>; 8]> = SmallVec::new();
        let heads = self.lanes.iter().enumerate().filter_map(|(at, state)| {
            let head = state.head.as_ref().filter(|_| state.is_enabled())?;
            let choice = Choice::execute(Lane::new(at)?);
            Some(Candidate { choice, head })
        });
        candidates.extend(heads);
        // The default comes first: whoever had the turn keeps it.
        let of_last = |one: &Candidate<'_>| Some(one.choice.lane) == self.last;
        if let Some(at) = candidates.iter().position(of_last) {
            candidates[..=at].rotate_right(1);
        }
        if self.faults.left > 0 {
            for at in 0..candidates.len() {
                let Candidate { choice, head } = candidates[at];
                let acts = self.faults.acts(head);
                candidates.extend(acts.map(|act| Candidate {
                    choice: Choice { act, ..choice },
                    head,
                }));
            }
        }
        // A command that nobody else sees comes first: what happens to the server is the same in front of it and behind it.
        if self.faults.strikes_world() && candidates.iter().all(|one| !one.head.local) {
            world.extend(self.world_heads());
        }
        candidates.extend(world.iter().map(|(act, head)| Candidate {
            choice: Choice::world(*act),
            head,
        }));
        let point = Point {
            last: self.last,
            candidates: &candidates,
            ran: &self.ran,
        };
        let decision = strategy.choose(&point);
        match decision {
            Decision::Take(choice) if !candidates.iter().any(|one| one.choice == choice) => {
                Some(Decision::Diverged(format!("{choice} is not possible")))
            }
            Decision::Take(choice) => {
                self.preemptions += usize::from(point.is_preemption(choice));
                let default = candidates.first().map(|one| one.choice);
                self.deviated = default != Some(choice);
                Some(decision)
            }
            decision => Some(decision),
        }
    }

    /// What may happen to the server, as a strategy sees it.
    fn world_heads(&self) -> SmallVec<[(Act, Head); 1]> {
        let before = self.choices.last().filter(|one| one.lane == Lane::WORLD);
        let holdings = self.backend.holdings();
        let acts = self.faults.world_acts(holdings, before.map(|one| one.act));
        let heads = acts.into_iter().map(|act| (act, world_head(act)));
        heads.collect()
    }

    /// Has all commands of a lane run, since the gate is open.
    pub(super) fn run_all(&mut self, lane: Lane) {
        let is_enabled = |lane: Option<&LaneState>| lane.is_some_and(LaneState::is_enabled);
        while is_enabled(self.lanes.get(lane.index())) {
            let wakers = self.perform(Choice::execute(lane), Duration::ZERO);
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    fn perform(&mut self, choice: Choice, elapsed: Duration) -> Wakers {
        let mut wakers = Wakers::new();
        if choice.is_fault() {
            self.faults.left = self.faults.left.saturating_sub(1);
        }
        if choice.lane == Lane::WORLD {
            let sender = Sender {
                head: Some(world_head(choice.act)),
                ..Sender::default()
            };
            self.note(choice, None, sender);
            self.strike(choice.act, elapsed, &mut wakers);
            self.note_changes();
            return wakers;
        }
        let Some(lane) = self.lanes.get_mut(choice.lane.index()) else {
            return wakers;
        };
        let head = lane.head.take();
        let (Some(command), Some(link)) = (lane.queue.pop_front(), lane.link) else {
            return wakers;
        };
        if self.strategy.is_some() {
            self.last = Some(choice.lane);
        }
        let sender = Sender {
            connection: lane.opened,
            resp3: self.trace.is_some() && self.backend.speaks_resp3(link),
            head,
        };
        self.note(choice, Some(&command), sender);
        let exchange = command.exchange;
        if choice.act != Act::DropBefore {
            self.submit(choice.lane, link, command, &mut wakers);
        }
        if choice.is_fault() {
            self.lose(choice.lane, Some(exchange), &mut wakers);
        }
        if self.backend.has_closed() {
            self.lose_closed(&mut wakers);
        }
        self.close_if_released(choice.lane);
        self.note_changes();
        wakers
    }

    /// Takes down what happens.
    fn note(&mut self, choice: Choice, command: Option<&Command>, sender: Sender) {
        let Sender {
            connection,
            resp3,
            head,
        } = sender;
        let local = head.as_ref().is_some_and(|head| head.local);
        let traced = self.trace.as_ref().zip(head.as_ref());
        let footprint = traced.map(|(_, head)| head.footprint.clone());
        if self.strategy.is_some() {
            self.choices.push(choice);
            self.idle = false;
            self.ran.extend(head.map(|head| Ran {
                choice,
                client: head.client,
                footprint: head.footprint,
                enabled_by: head.enabled_by,
                local,
                marks: Marks::default(),
            }));
        }
        let request = command.map(|command| &command.request);
        if let (Some(log), Some(request)) = (&mut self.log, request) {
            log.push(request.clone());
        }
        let at = self.elapsed();
        if let Some(trace) = &mut self.trace {
            trace.steps.push(Step {
                choice,
                connection,
                resp3,
                request: request.cloned().unwrap_or_default(),
                reply: None,
                answered_by: None,
                answered_at: None,
                local,
                footprint: footprint.unwrap_or_default(),
                enabled_by: command.and_then(|command| command.enabled_by.last()),
                deviates: self.deviated,
                at,
                changes: Vec::new(),
            });
        }
    }

    /// Takes down what the last step changed, if that was asked for.
    fn note_changes(&mut self) {
        if let (Some(before), Some(trace)) = (&mut self.keys, &mut self.trace)
            && let (Some(step), Some(after)) = (trace.steps.last_mut(), self.backend.keys())
        {
            step.changes = changes(before, &after);
            *before = after;
        }
    }

    /// Something happens to the server.
    fn strike(&mut self, act: Act, elapsed: Duration, wakers: &mut Wakers) {
        if let Act::Advance(by) = act {
            self.held_until = elapsed.checked_add(by);
            return;
        }
        if matches!(act, Act::Restart { .. } | Act::Failover { .. }) {
            for lane in (0..self.lanes.len()).filter_map(Lane::new) {
                self.lose(lane, None, wakers);
            }
        }
        if let Err(error) = self.backend.strike(act, self.now) {
            self.stop = Some(Stop::Diverged(error.to_string()));
            wakers.extend(self.take_watch());
        }
        self.deliver_all(wakers);
    }

    fn submit(&mut self, lane: Lane, link: Link, command: Command, wakers: &mut Wakers) {
        let Some(state) = self.lanes.get_mut(lane.index()) else {
            return;
        };
        let step = self.choices.len().saturating_sub(1);
        let (waiting, request) = command.leave(step);
        if waiting.own.is_admin() {
            self.backend.expect_change();
        }
        state.waiting = Some(waiting);
        self.backend.submit(link, request, self.now);
        self.deliver_all(wakers);
    }

    fn deliver_all(&mut self, wakers: &mut Wakers) {
        while let Some((link, reply)) = self.backend.poll() {
            self.deliver(link, reply, wakers);
        }
    }

    fn deliver(&mut self, link: Link, reply: Value, wakers: &mut Wakers) {
        let (steps, enabled_by, at) = (self.choices.len(), self.enabled_by(), self.elapsed());
        let to = |lane: &&mut LaneState| lane.link == Some(link);
        let Some(lane) = self.lanes.iter_mut().find(to) else {
            return;
        };
        let Some(reply) = lane.take_push(reply, wakers) else {
            return;
        };
        let Some(command) = lane.waiting.take() else {
            return;
        };
        let refused = matches!(reply, Value::ServerError(_));
        if let (Some(next), true) = (lane.queue.front_mut(), command.step + 1 < steps) {
            // Another one's command, or time, has answered a blocked one, behind which this one waited.
            next.enabled_by = enabled_by;
        }
        let exact = if lane.session.scripts(&command.own).is_empty() {
            None
        } else {
            let calls = self.backend.take_calls();
            calls.map(|calls| self.facts.observe(&lane.session, &command.own, &calls))
        };
        self.audience = self.audience.max(lane.session.ran(&command.own, refused));
        if let (Some(exact), Some(ran)) = (&exact, self.ran.get_mut(command.step)) {
            ran.footprint.clone_from(exact);
        }
        if let Some(trace) = &mut self.trace {
            let now = trace.steps.len().checked_sub(1);
            if let Some(step) = trace.steps.get_mut(command.step) {
                step.reply = Some(reply.clone());
                step.answered_by = now;
                step.answered_at = Some(at);
                step.footprint = exact.unwrap_or_else(|| std::mem::take(&mut step.footprint));
            }
        }
        wakers.extend(lane.answer(command.exchange, reply));
    }

    /// What those would do who wait in a blocking command.
    fn waiting_footprints(&self) -> SmallVec<[Footprint; 2]> {
        let waiting = self.lanes.iter().filter_map(|lane| lane.waiting.as_ref());
        waiting.map(|waiting| waiting.own.own().clone()).collect()
    }

    /// Whoever waits on a connection that the server has closed learns it.
    fn lose_closed(&mut self, wakers: &mut Wakers) {
        for at in 0..self.lanes.len() {
            let link = self.lanes.get(at).and_then(|lane| lane.link);
            if let (Some(link), Some(lane)) = (link, Lane::new(at))
                && !self.backend.is_open(link)
            {
                self.lose(lane, None, wakers);
            }
        }
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

    pub(super) fn close_if_released(&mut self, lane: Lane) {
        if let Some(state) = self.lanes.get_mut(lane.index())
            && !state.held
            && state.is_idle()
            && let Some(link) = state.link.take()
        {
            self.backend.close(link);
        }
    }
}

/// What happens to the server, as a strategy sees it.
fn world_head(act: Act) -> Head {
    let footprint = match act {
        Act::FlushScripts => Footprint::script_cache(),
        // A number names another key when a deadline changes, and all else is seen by everybody.
        _ => Footprint::everything(),
    };
    Head {
        footprint,
        local: false,
        fingerprint: 0,
        client: None,
        enabled_by: EnabledBy::default(),
        shared: false,
    }
}

/// A command in a few words.
fn brief(request: &Request) -> String {
    const LEN_MAX: usize = 60;
    let words: Vec<String> = request
        .words()
        .take(8)
        .map(|word| word[..word.len().min(LEN_MAX)].escape_ascii().to_string())
        .collect();
    words.join(" ").chars().take(LEN_MAX).collect()
}
