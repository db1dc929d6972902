//! [`Conductor`]: one run. Programs take turns; the server holds back what others send meanwhile.

mod acts;
mod exchange;
mod steered;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use crate::clock::Timestamp;
use crate::footprint::{Audience, SessionState, Static};
use crate::remote::snapshot::{self, Snapshot};
use crate::sweep::SweepError;
use crate::sweep::doors::{ConnectionId, Event};
use crate::sweep::interleave::{Choice, Steer};
use crate::sweep::polls::Polls;
use crate::sweep::program::{Ended, HostError, Program, Running, start};
use crate::sweep::report::{Ending, Status};
use crate::sweep::schedule::{Role, Schedule};
use crate::sweep::stage::Stage;
use crate::sweep::step::{Step, is_quiet};
use crate::sweep::upstream::{Link, Upstream};
use crate::wire::{Request, RequestDecoder};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Turn {
    /// A program runs, to its end if nothing interrupts it.
    Run(Role),
    /// Time goes on until then, and keys expire.
    Pass(Timestamp),
    /// The server loses its keys.
    Wipe,
}

/// One run's plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) turns: Vec<Turn>,
    pub(super) interruption: Option<Schedule>,
}

/// One run and what it gave, not yet judged.
#[derive(Clone, Debug, Default)]
pub(super) struct Ran {
    pub(super) endings: [Option<Ending>; Role::ALL.len()],
    /// The key space at the end.
    pub(super) snapshot: Snapshot,
    pub(super) steps: Vec<Step>,
    pub(super) labels: BTreeSet<String>,
    /// Who hears what others do.
    pub(super) audience: Audience,
    /// The first thing that a program said on standard error.
    pub(super) complaint: Option<String>,
    /// Whether the interruption took place.
    pub(super) interrupted: bool,
    /// To which time the interruption moved the clock.
    pub(super) expired_at: Option<Timestamp>,
    /// The programs wait for each other, or for nothing.
    pub(super) stuck: bool,
}

impl Ran {
    /// How a program ended, if it ran.
    pub(super) fn status(&self, role: Role) -> Option<&Status> {
        let ending = self.endings.get(role.index())?.as_ref()?;
        Some(&ending.status)
    }
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
        self.running.is_some() && self.ended_at.is_none()
    }

    /// Ends it: whatever it still sends is refused.
    fn kill(&mut self) {
        self.dead = true;
        if let Some(running) = &mut self.running {
            running.kill();
        }
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
    /// Who says who goes on, if that is not only the schedule.
    steer: Option<&'a mut dyn Steer>,
    /// What it has said for the next command.
    granted: Option<Choice>,
    current: Option<Role>,
    /// Programs that wait for their turn to go on.
    suspended: Vec<Role>,
    /// Nobody is held back any more, since everybody waits.
    free: bool,
    arrivals: u64,
    time_steps: usize,
    active_at: Instant,
    ends_at: Instant,
    ran: Ran,
}

impl<'a> Conductor<'a> {
    pub(super) fn new(
        stage: &'a mut Stage,
        upstream: &'a mut dyn Upstream,
        plan: &Plan,
        steer: Option<&'a mut dyn Steer>,
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
            steer,
            granted: None,
            current: None,
            suspended: Vec::new(),
            free: false,
            arrivals: 0,
            time_steps: 0,
            active_at: now,
            ends_at,
            ran: Ran::default(),
        }
    }

    /// Runs the plan to its end.
    pub(super) async fn conduct(mut self) -> Result<Ran, SweepError> {
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
                self.hand_over(current)?;
                continue;
            }
            if Instant::now() >= self.ends_at || self.ran.steps.len() >= STEPS_MAX {
                if self.ran.stuck {
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
            if let Turn::Run(role) = turn
                && role.is_program()
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
        if self.steer.is_some()
            && matches!(self.turns.front(), Some(Turn::Run(role)) if role.is_program())
        {
            return self.take_steered_turn();
        }
        match self.turns.pop_front() {
            None => return Ok(false),
            Some(Turn::Run(role)) => {
                if !self.has_ended(role) {
                    self.launch(role)?;
                    self.current = Some(role);
                }
            }
            Some(Turn::Pass(at)) => self.pass_until(at),
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
    fn hand_over(&mut self, ended: Role) -> Result<(), SweepError> {
        self.current = None;
        self.suspended.retain(|role| *role != ended);
        self.granted.take_if(|choice| choice.role == ended);
        if self.steer.is_some() && ended.is_program() && self.take_steered_turn()? {
            return Ok(());
        }
        while let Some(role) = self.suspended.pop() {
            if self.actor(role).is_live() {
                self.current = Some(role);
                self.active_at = Instant::now();
                self.actor(role).waits_since = None;
                break;
            }
        }
        Ok(())
    }

    /// Runs the next command that may run, or interrupts; false if nothing is there to be done.
    fn work(&mut self, current: Role) -> Result<bool, SweepError> {
        let Some((id, is_visible)) = self.next_command(current) else {
            return Ok(false);
        };
        let Some(role) = self.connections.get(&id).map(|connection| connection.role) else {
            return Ok(false);
        };
        let point = self.actor(role).visible;
        let is_place = |schedule: &Schedule| schedule.of == role && schedule.point == point;
        if is_visible
            && role == current
            && let Some(schedule) = self.schedule.take_if(|schedule| is_place(schedule))
        {
            self.ran.interrupted = true;
            self.interrupt(schedule, id)?;
            return Ok(true);
        }
        if is_visible && role == current && !self.free && !self.may_go_on(role, id)? {
            return Ok(true);
        }
        self.execute(id, is_visible);
        // Its connection may be closed by now.
        if is_visible && self.connections.contains_key(&id) && self.actor(role).polls.is_waiting() {
            self.someone_polls(role)?;
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

    /// Waits for something to happen outside, and thinks about it if nothing does.
    async fn wait(&mut self, current: Role) -> Result<(), SweepError> {
        let until = self.patience(current).min(self.ends_at);
        match tokio::time::timeout_at(until, self.stage.doors.next()).await {
            Ok(Some(event)) => self.handle(event),
            Ok(None) => Err(SweepError::Host(HostError::Gone)),
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

    fn ended(&mut self, ended: Ended) {
        let actor = &mut self.actors[ended.role.index()];
        if ended.run != self.run || actor.running.is_none() {
            return;
        }
        actor.ended_at = Some(Instant::now());
        let complaint = ended.complaint.trim_end();
        if !ended.ending.status.is_success() && !complaint.is_empty() && !actor.dead {
            let whose = ended.role;
            self.ran
                .complaint
                .get_or_insert_with(|| format!("{whose}: {complaint}"));
        }
        let mut ending = ended.ending;
        if actor.dead {
            // What it said until then depends on how fast it was.
            ending.status = Status::Other("killed".to_owned());
            ending.output.clear();
        }
        self.ran.endings[ended.role.index()].get_or_insert(ending);
        self.active_at = Instant::now();
    }

    /// Closes everything and waits for all programs to end.
    async fn finish(mut self) -> Result<Ran, SweepError> {
        for role in Role::ALL {
            let actor = self.actor(role);
            if actor.is_live() {
                actor.kill();
            }
        }
        self.close_where(|_| true);
        let until = Instant::now() + END_PATIENCE;
        while Role::ALL.into_iter().any(|role| self.actor(role).is_live()) {
            match tokio::time::timeout_at(until, self.stage.doors.next()).await {
                Ok(Some(event)) => self.handle(event)?,
                Ok(None) | Err(_) => return Err(SweepError::Unending),
            }
        }
        self.ran.snapshot = snapshot::take(&mut |words| self.upstream.ask(words));
        Ok(self.ran)
    }
}
