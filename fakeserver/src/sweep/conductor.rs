//! [`Conductor`]: one run. Programs take turns; the server holds back what others send meanwhile.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use super::SweepError;
use super::doors::{ConnectionId, Event};
use super::polls::Polls;
use super::program::{Ended, Program, Running, start};
use super::report::{Ending, Status};
use super::schedule::{Act, Role, Schedule};
use super::stage::Stage;
use super::step::{Step, is_quiet};
use super::upstream::{Delivery, Link, Upstream};
use crate::error::CommandError;
use crate::footprint::{SessionState, Static};
use crate::wire::{Limits, Protocol, Reply, Request, RequestDecoder, encode};

/// How long a program whose connection waits in a blocking command may stay silent before the other goes on: it may have other
/// connections and other things to do.
const BLOCKED_PATIENCE: Duration = Duration::from_millis(15);

/// How long connections of a program that has ended are waited for.
const CLOSE_PATIENCE: Duration = Duration::from_millis(200);

/// How long a program that was told to end may take for it.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// How often time may be moved on in one run.
const TIME_STEPS_MAX: usize = 1000;

/// Commands that one run may have.
const STEPS_MAX: usize = 100_000;

/// What happens in a run, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// A program runs, to its end if nothing interrupts it.
    Run(Role),
    /// Time goes on until a key expires.
    Expire,
    /// The server loses its keys.
    Wipe,
}

/// One run's plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) turns: Vec<Turn>,
    pub(super) interruption: Option<Schedule>,
}

/// What a run gave, but for the key space, which is the server's.
#[derive(Debug)]
pub(super) struct Performance {
    pub(super) endings: [Option<Ending>; Role::ALL.len()],
    pub(super) steps: Vec<Step>,
    pub(super) labels: BTreeSet<String>,
    /// The first thing that a program said on standard error.
    pub(super) complaint: Option<String>,
    /// Whether the interruption took place.
    pub(super) interrupted: bool,
    /// The programs wait for each other, or for nothing.
    pub(super) stuck: bool,
}

/// A program's connection.
struct Connection {
    role: Role,
    number: usize,
    link: Option<Link>,
    out: Option<UnboundedSender<Vec<u8>>>,
    decoder: RequestDecoder,
    queue: VecDeque<Pending>,
    batches: u64,
    session: SessionState,
    queued: Vec<Request>,
    /// The batch to which the last visible command belonged.
    last_batch: u64,
    /// Its next replies are lost, up to the end of this batch.
    loses: Option<u64>,
}

struct Pending {
    request: Request,
    own: Static,
    batch: u64,
    arrival: u64,
}

/// What is known of a role in this run.
#[derive(Default)]
struct Actor {
    running: Option<Running>,
    ended: Option<Ending>,
    ended_at: Option<Instant>,
    dead: bool,
    visible: usize,
    connections: usize,
    polls: Polls,
    /// It waits, and this was the number of changes when it began to.
    waits_since: Option<u64>,
}

impl Actor {
    fn is_live(&self) -> bool {
        self.running.is_some() && self.ended.is_none()
    }
}

/// One run under way.
pub(super) struct Conductor<'a> {
    stage: &'a mut Stage,
    upstream: &'a mut dyn Upstream,
    run: u64,
    connections: BTreeMap<ConnectionId, Connection>,
    links: BTreeMap<Link, ConnectionId>,
    awaited: BTreeMap<Link, usize>,
    actors: [Actor; Role::ALL.len()],
    turns: VecDeque<Turn>,
    schedule: Option<Schedule>,
    current: Option<Role>,
    /// Programs that wait for their turn to go on.
    suspended: Vec<Role>,
    /// Nobody is held back any more, since everybody waits.
    free: bool,
    arrivals: u64,
    time_steps: usize,
    active_at: Instant,
    ends_at: Instant,
    performance: Performance,
}

impl<'a> Conductor<'a> {
    pub(super) fn new(
        stage: &'a mut Stage,
        upstream: &'a mut dyn Upstream,
        plan: &Plan,
    ) -> Conductor<'a> {
        let run = stage.next_run();
        let now = Instant::now();
        let ends_at = now + stage.settings.time_limit;
        Conductor {
            stage,
            upstream,
            run,
            connections: BTreeMap::new(),
            links: BTreeMap::new(),
            awaited: BTreeMap::new(),
            actors: Default::default(),
            turns: plan.turns.iter().copied().collect(),
            schedule: plan.interruption,
            current: None,
            suspended: Vec::new(),
            free: false,
            arrivals: 0,
            time_steps: 0,
            active_at: now,
            ends_at,
            performance: Performance {
                endings: Default::default(),
                steps: Vec::new(),
                labels: BTreeSet::new(),
                complaint: None,
                interrupted: false,
                stuck: false,
            },
        }
    }

    /// Runs the plan to its end.
    pub(super) async fn conduct(mut self) -> Result<Performance, SweepError> {
        // What came in behind the end of the run before belongs to nobody.
        while let Some(event) = self.stage.doors.try_next() {
            self.handle(event)?;
        }
        self.start_early()?;
        loop {
            while let Some(event) = self.stage.doors.try_next() {
                self.handle(event)?;
            }
            let Some(current) = self.current else {
                if !self.take_turn()? {
                    break;
                }
                continue;
            };
            if self.work(current)? {
                continue;
            }
            if self.has_ended(current) {
                self.hand_over(current);
                continue;
            }
            if Instant::now() >= self.ends_at || self.performance.steps.len() >= STEPS_MAX {
                if self.performance.stuck {
                    break;
                }
                self.give_up("time limit");
            }
            self.wait(current).await?;
        }
        self.finish().await
    }

    fn actor(&mut self, role: Role) -> &mut Actor {
        let index = role.index();
        // There is one for each role.
        &mut self.actors[index]
    }

    /// Starts what takes long to start, so that it is there when its turn comes.
    fn start_early(&mut self) -> Result<(), SweepError> {
        for turn in self.turns.clone() {
            if let Turn::Run(role @ (Role::A | Role::B)) = turn
                && let Some(program) = self.stage.program(role)
                && program.is_slow_to_start()
            {
                self.launch(role)?;
            }
        }
        Ok(())
    }

    fn launch(&mut self, role: Role) -> Result<(), SweepError> {
        if self.actor(role).running.is_some() {
            return Ok(());
        }
        let program = self.stage.program(role).cloned();
        let program = program.unwrap_or(Program::Process(Vec::new()));
        let (port, events) = (self.stage.doors.port(role), self.stage.doors.sender());
        let running = start(&program, role, self.run, port, &events)?;
        self.actor(role).running = Some(running);
        self.active_at = Instant::now();
        Ok(())
    }

    /// Begins what is next; false if nothing is.
    fn take_turn(&mut self) -> Result<bool, SweepError> {
        match self.turns.pop_front() {
            None => return Ok(false),
            Some(Turn::Run(role)) => {
                if !self.has_ended(role) {
                    self.launch(role)?;
                    self.current = Some(role);
                }
            }
            Some(Turn::Expire) => self.expire(),
            Some(Turn::Wipe) => self.wipe(),
        }
        Ok(true)
    }

    /// Whether a program has ended and all that it has sent is done.
    fn has_ended(&mut self, role: Role) -> bool {
        let Some(ended_at) = self.actor(role).ended_at else {
            return false;
        };
        // A process closes its connections when it ends, unless it has left a child behind. Others may keep theirs.
        let is_slow = self
            .stage
            .program(role)
            .is_some_and(Program::is_slow_to_start);
        !is_slow
            || ended_at.elapsed() >= CLOSE_PATIENCE
            || !self
                .connections
                .values()
                .any(|connection| connection.role == role)
    }

    /// The current program has ended: whoever was suspended last goes on.
    fn hand_over(&mut self, ended: Role) {
        self.current = None;
        self.suspended.retain(|role| *role != ended);
        while let Some(role) = self.suspended.pop() {
            if self.actor(role).is_live() {
                self.current = Some(role);
                self.active_at = Instant::now();
                self.actor(role).waits_since = None;
                return;
            }
        }
    }

    /// Runs the next command that may run, or interrupts; false if nothing is there to be done.
    fn work(&mut self, current: Role) -> Result<bool, SweepError> {
        let Some((id, is_visible)) = self.next_command(current) else {
            return Ok(false);
        };
        let schedule = self.schedule.filter(|schedule| {
            is_visible
                && schedule.of == current
                && self
                    .connections
                    .get(&id)
                    .is_some_and(|connection| connection.role == current)
        });
        if let Some(schedule) = schedule
            && schedule.point == self.actor(current).visible
        {
            self.schedule = None;
            self.performance.interrupted = true;
            self.interrupt(schedule, id)?;
            return Ok(true);
        }
        self.execute(id, is_visible);
        if let Some(connection) = self.connections.get(&id) {
            let role = connection.role;
            if is_visible && self.actor(role).polls.is_waiting() {
                self.someone_polls(role)?;
            }
        }
        Ok(true)
    }

    /// The connection whose first command may run now and came first, and whether others can see that command.
    fn next_command(&self, current: Role) -> Option<(ConnectionId, bool)> {
        let ready = self.connections.iter().filter_map(|(id, connection)| {
            let pending = connection.queue.front()?;
            let is_blocked = |link| self.upstream.is_blocked(link);
            if connection.link.is_some_and(is_blocked) {
                return None;
            }
            let is_visible =
                !connection.session.is_local(&pending.own) && !is_quiet(&pending.request);
            let may_run = !is_visible || self.free || connection.role == current;
            may_run.then_some((pending.arrival, *id, is_visible))
        });
        ready.min().map(|(_, id, is_visible)| (id, is_visible))
    }

    /// Runs a connection's first command.
    fn execute(&mut self, id: ConnectionId, is_visible: bool) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let Some(pending) = connection.queue.pop_front() else {
            return;
        };
        let link = match connection.link {
            Some(link) => link,
            None => match self.upstream.open() {
                Ok(link) => {
                    connection.link = Some(link);
                    self.links.insert(link, id);
                    link
                }
                Err(_) => return self.close(id),
            },
        };
        let footprint = connection.session.footprint(&pending.own);
        let begins = is_visible && connection.last_batch != pending.batch;
        if is_visible {
            connection.last_batch = pending.batch;
        }
        let name = pending.request.name().to_ascii_uppercase();
        let queued = if name == b"EXEC" {
            std::mem::take(&mut connection.queued)
        } else {
            Vec::new()
        };
        let (role, number, loses) = (connection.role, connection.number, connection.loses);
        let actor = &mut self.actors[role.index()];
        let point = is_visible.then(|| {
            actor.visible += 1;
            actor.visible - 1
        });
        let at = self.performance.steps.len();
        self.performance.steps.push(Step {
            role: Some(role),
            connection: number,
            request: pending.request.clone(),
            queued,
            reply: None,
            footprint,
            point,
            begins,
            changed: false,
            mortal: false,
            note: loses.map(|_| "the reply is lost".to_owned()),
        });
        let before = self.upstream.changes();
        self.awaited.insert(link, at);
        self.upstream.submit(link, &pending.request);
        self.deliver();
        let changed = self.upstream.changes() != before;
        self.note_run(id, at, &pending, changed);
        self.close_what_is_done(id);
        self.active_at = Instant::now();
    }

    /// Takes note of what a command did.
    fn note_run(&mut self, id: ConnectionId, at: usize, pending: &Pending, changed: bool) {
        let Some(step) = self.performance.steps.get_mut(at) else {
            return;
        };
        step.changed = changed;
        step.mortal = self.upstream.has_mortals();
        let refused = step.reply.as_ref().is_some_and(Reply::is_error);
        if let (Some(role), Some(_)) = (step.role, step.point) {
            let polls = &mut self.actors[role.index()].polls;
            polls.note(&step.request, step.reply.as_ref(), changed);
        }
        if let Some(connection) = self.connections.get_mut(&id) {
            let was_local = connection.session.is_queueing();
            connection.session.ran(&pending.own, refused);
            if was_local && connection.session.is_queueing() && !refused {
                connection.queued.push(pending.request.clone());
            } else {
                connection.queued.clear();
            }
        }
    }

    /// Hands out what the server has for its connections.
    fn deliver(&mut self) {
        while let Some(Delivery { link, reply, bytes }) = self.upstream.poll() {
            if !matches!(reply, Reply::Push(_))
                && let Some(at) = self.awaited.remove(&link)
                && let Some(step) = self.performance.steps.get_mut(at)
            {
                step.reply = Some(reply);
            }
            let connection = self
                .links
                .get(&link)
                .and_then(|id| self.connections.get_mut(id));
            if let Some(connection) = connection
                && connection.loses.is_none()
                && let Some(out) = &connection.out
            {
                // A connection that the program has closed takes nothing more.
                let _ = out.send(bytes);
            }
        }
    }

    /// Closes a connection whose replies were to be lost, or which the server has closed, or the program.
    fn close_what_is_done(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get(&id) else {
            return;
        };
        let next = connection.queue.front();
        let has_lost = connection
            .loses
            .is_some_and(|batch| next.is_none_or(|pending| pending.batch != batch));
        let is_shut = connection
            .link
            .is_some_and(|link| !self.upstream.is_open(link));
        let is_left = connection.out.is_none() && next.is_none();
        if has_lost || is_shut || is_left {
            self.close(id);
        }
        let shut: Vec<_> = self
            .connections
            .iter()
            .filter(|(_, other)| other.link.is_some_and(|link| !self.upstream.is_open(link)))
            .map(|(id, _)| *id)
            .collect();
        for id in shut {
            self.close(id);
        }
    }

    fn close(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.remove(&id)
            && let Some(link) = connection.link
        {
            self.links.remove(&link);
            self.awaited.remove(&link);
            self.upstream.close(link);
        }
    }

    fn close_all(&mut self, whose: impl Fn(Role) -> bool) {
        let ids: Vec<_> = self
            .connections
            .iter()
            .filter(|(_, connection)| whose(connection.role))
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            self.close(id);
        }
    }

    /// Does what the schedule wants at this point.
    fn interrupt(&mut self, schedule: Schedule, id: ConnectionId) -> Result<(), SweepError> {
        let of = schedule.of;
        match schedule.act {
            Act::RunOther => self.run_other(of)?,
            Act::Die => {
                self.event(format!("{of} dies"), Request::default());
                self.close_all(|role| role == of);
                let actor = self.actor(of);
                actor.dead = true;
                if let Some(running) = &mut actor.running {
                    running.kill();
                }
            }
            Act::LoseReply => {
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.loses = connection.queue.front().map(|pending| pending.batch);
                }
            }
            Act::Expire => self.expire(),
            Act::ExpireAndRunOther => {
                self.expire();
                self.run_other(of)?;
            }
            Act::FlushScripts => {
                self.event("the script cache is emptied".to_owned(), Request::default());
                self.upstream.ask(&[b"SCRIPT", b"FLUSH", b"SYNC"]);
            }
            Act::Reset => {
                self.event("all connections are reset".to_owned(), Request::default());
                self.close_all(|_| true);
            }
            Act::RestartKept => {
                let what = "the server restarts with its data".to_owned();
                self.event(what, Request::default());
                self.close_all(|_| true);
                self.upstream.ask(&[b"SCRIPT", b"FLUSH", b"SYNC"]);
            }
            Act::RestartEmpty => {
                self.close_all(|_| true);
                self.wipe();
            }
        }
        Ok(())
    }

    fn run_other(&mut self, of: Role) -> Result<(), SweepError> {
        let other = of.rival();
        self.turns.retain(|turn| *turn != Turn::Run(other));
        self.suspended.push(of);
        self.launch(other)?;
        self.current = Some(other);
        self.active_at = Instant::now();
        Ok(())
    }

    fn event(&mut self, what: String, keys: Request) {
        self.performance.steps.push(Step::event(what, keys));
    }

    fn expire(&mut self) {
        let keys = self.upstream.expire();
        if keys.is_empty() {
            return;
        }
        let named: Vec<_> = keys
            .iter()
            .map(|key| key.escape_ascii().to_string())
            .collect();
        let verb = if keys.len() == 1 { "expires" } else { "expire" };
        let what = format!("time passes: {} {verb}", named.join(", "));
        self.event(what, Request::new(keys));
        self.deliver();
    }

    fn wipe(&mut self) {
        let what = "the server restarts without its data".to_owned();
        self.event(what, Request::default());
        self.upstream.ask(&[b"FLUSHALL", b"SYNC"]);
        self.upstream.ask(&[b"SCRIPT", b"FLUSH", b"SYNC"]);
        self.upstream.ask(&[b"FUNCTION", b"FLUSH", b"SYNC"]);
        self.deliver();
    }

    /// Waits for something to happen outside, and thinks about it if nothing does.
    async fn wait(&mut self, current: Role) -> Result<(), SweepError> {
        let until = self.patience(current).min(self.ends_at);
        match tokio::time::timeout_at(until, self.stage.doors.next()).await {
            Ok(Some(event)) => self.handle(event),
            Ok(None) => Err(SweepError::Host(super::program::HostError::Gone)),
            Err(_) if until < self.ends_at && !self.free && self.actor(current).is_live() => {
                self.falls_silent(current)
            }
            Err(_) => Ok(()),
        }
    }

    fn is_blocked(&self, role: Role) -> bool {
        self.connections.values().any(|connection| {
            connection.role == role
                && connection
                    .link
                    .is_some_and(|link| self.upstream.is_blocked(link))
        })
    }

    /// Until when the current program may stay silent.
    fn patience(&mut self, current: Role) -> Instant {
        if let Some(ended_at) = self.actor(current).ended_at {
            return ended_at + CLOSE_PATIENCE;
        }
        if self.is_blocked(current) {
            return self.active_at + BLOCKED_PATIENCE;
        }
        if self.actor(current).visible > 0 {
            return self.active_at + self.stage.settings.patience;
        }
        // It has not begun: some languages take their time.
        self.ends_at
    }

    /// The current program has said nothing for longer than it may.
    fn falls_silent(&mut self, current: Role) -> Result<(), SweepError> {
        if self.give_way(current)? {
            return Ok(());
        }
        if self.is_blocked(current) {
            if !self.pass_time() {
                self.give_up("waits for ever");
            }
            return Ok(());
        }
        // It sleeps, or computes: that takes as long as it takes.
        self.active_at = Instant::now();
        Ok(())
    }

    /// A program asks the same again and again, and nothing changes.
    fn someone_polls(&mut self, role: Role) -> Result<(), SweepError> {
        if self.current != Some(role) || self.give_way(role)? {
            return Ok(());
        }
        // There is nobody else whom it could wait for, so it waits for time.
        let patience = self.stage.settings.patience;
        if self.actor(role).polls.lasts(patience) {
            self.actor(role).polls.clear();
            if !self.pass_time() {
                self.free = true;
            }
        }
        Ok(())
    }

    /// Lets the other program go on since this one waits; false if there is none that could.
    fn give_way(&mut self, current: Role) -> Result<bool, SweepError> {
        let changes = self.upstream.changes();
        self.actor(current).waits_since = Some(changes);
        let other = match self.turns.front() {
            Some(Turn::Run(other @ (Role::A | Role::B))) => Some(*other),
            _ => self.suspended.iter().copied().rev().find(|role| {
                let actor = &self.actors[role.index()];
                actor.is_live() && actor.waits_since != Some(changes)
            }),
        };
        let Some(other) = other.filter(|_| matches!(current, Role::A | Role::B)) else {
            return Ok(false);
        };
        self.actor(current).polls.clear();
        let label = format!("{current} waits for {other}");
        self.performance.labels.insert(label.clone());
        self.event(label, Request::default());
        self.turns.retain(|turn| *turn != Turn::Run(other));
        self.suspended.retain(|role| *role != other);
        self.suspended.push(current);
        self.launch(other)?;
        self.current = Some(other);
        self.active_at = Instant::now();
        Ok(true)
    }

    /// Moves the clock to the next thing that is due; false if nothing is.
    fn pass_time(&mut self) -> bool {
        self.time_steps += 1;
        if self.time_steps > TIME_STEPS_MAX {
            return false;
        }
        let Some(by) = self.upstream.pass_time() else {
            return false;
        };
        self.event(format!("{by:?} pass"), Request::default());
        self.performance.labels.insert("time passes".to_owned());
        self.actors
            .iter_mut()
            .for_each(|actor| actor.waits_since = None);
        self.deliver();
        self.active_at = Instant::now();
        true
    }

    /// Ends all programs.
    fn give_up(&mut self, why: &str) {
        for role in Role::ALL {
            let actor = self.actor(role);
            if !actor.is_live() || actor.dead {
                continue;
            }
            actor.dead = true;
            if let Some(running) = &mut actor.running {
                running.kill();
            }
            let label = format!("{role}: {why}");
            self.performance.labels.insert(label);
            self.performance.endings[role.index()] = Some(Ending {
                status: Status::Other(why.to_owned()),
                output: String::new(),
            });
        }
        self.performance.stuck = true;
        self.close_all(|_| true);
        self.turns.clear();
        self.ends_at = Instant::now() + END_PATIENCE;
    }

    fn handle(&mut self, event: Event) -> Result<(), SweepError> {
        match event {
            Event::Opened(role, id, out) => self.opened(role, id, out),
            Event::Received(id, bytes) => self.received(id, &bytes),
            Event::Closed(id) => {
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.out = None;
                    let link = connection.link;
                    if connection.queue.is_empty()
                        || link.is_some_and(|link| self.upstream.is_blocked(link))
                    {
                        self.close(id);
                    }
                }
            }
            Event::Ended(ended) => self.ended(ended),
            Event::HostLost(error) => return Err(SweepError::Host(error)),
        }
        Ok(())
    }

    fn opened(&mut self, role: Role, id: ConnectionId, out: UnboundedSender<Vec<u8>>) {
        let actor = self.actor(role);
        // One that is dead, or belongs to a run that is over: dropping the channel closes the connection.
        if actor.dead || actor.running.is_none() {
            return;
        }
        actor.connections += 1;
        let connection = Connection {
            role,
            number: actor.connections,
            link: None,
            out: Some(out),
            decoder: RequestDecoder::default(),
            queue: VecDeque::new(),
            batches: 0,
            session: SessionState::default(),
            queued: Vec::new(),
            last_batch: 0,
            loses: None,
        };
        self.connections.insert(id, connection);
        self.active_at = Instant::now();
    }

    fn received(&mut self, id: ConnectionId, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        self.active_at = Instant::now();
        connection.decoder.feed(bytes);
        connection.batches += 1;
        loop {
            let mut request = Request::default();
            match connection.decoder.next(&mut request, &Limits::default()) {
                Ok(true) => {
                    self.arrivals += 1;
                    connection.queue.push_back(Pending {
                        own: Static::of(&request),
                        request,
                        batch: connection.batches,
                        arrival: self.arrivals,
                    });
                }
                Ok(false) => return,
                Err(error) => {
                    let text = format!("ERR Protocol error: {error}");
                    let mut answer = Vec::new();
                    let reply = Reply::Error(CommandError::custom(text));
                    encode(&reply, Protocol::Resp2, &mut answer);
                    if let Some(out) = connection.out.take() {
                        // The program may be gone.
                        let _ = out.send(answer);
                    }
                    return;
                }
            }
        }
    }

    fn ended(&mut self, ended: Ended) {
        let actor = &mut self.actors[ended.role.index()];
        if ended.run != self.run || actor.running.is_none() {
            return;
        }
        actor.ended_at = Some(Instant::now());
        let complaint = ended.complaint.trim_end();
        if !ended.ending.status.is_success() && !complaint.is_empty() && !actor.dead {
            let whose = ended.role;
            self.performance
                .complaint
                .get_or_insert_with(|| format!("{whose}: {complaint}"));
        }
        let mut ending = ended.ending;
        if actor.dead {
            // What it said until then depends on how fast it was.
            ending.status = Status::Other("killed".to_owned());
            ending.output.clear();
        }
        actor.ended = Some(ending.clone());
        self.performance.endings[ended.role.index()].get_or_insert(ending);
        self.active_at = Instant::now();
    }

    /// Closes everything and waits for all programs to end.
    async fn finish(mut self) -> Result<Performance, SweepError> {
        for role in Role::ALL {
            let actor = self.actor(role);
            if actor.is_live() {
                actor.dead = true;
                if let Some(running) = &mut actor.running {
                    running.kill();
                }
            }
        }
        self.close_all(|_| true);
        let until = Instant::now() + END_PATIENCE;
        while Role::ALL.into_iter().any(|role| self.actor(role).is_live()) {
            match tokio::time::timeout_at(until, self.stage.doors.next()).await {
                Ok(Some(event)) => self.handle(event)?,
                Ok(None) | Err(_) => return Err(SweepError::Unending),
            }
        }
        Ok(self.performance)
    }
}
