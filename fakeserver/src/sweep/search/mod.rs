//! [`Search`]: runs the serial orders, then every schedule that can matter, and judges what they give.

mod judge;
mod schedules;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::clock::Timestamp;
use crate::sweep::SweepError;
use crate::sweep::conductor::{Conductor, Plan, Ran, Turn};
use crate::sweep::interleave::Steer;
use crate::sweep::labels::{Habits, Labels};
use crate::sweep::outcome::Outcome;
use crate::sweep::program::Program;
use crate::sweep::report::{Reference, Status};
use crate::sweep::rules::{Clause, Mismatch, Rules, differences};
use crate::sweep::schedule::{Act, Kind, Role, Schedule};
use crate::sweep::stage::Stage;
use crate::sweep::upstream::{Embedded, Upstream};
use crate::wire::Request;

/// How often an order is run until two runs end alike.
const EQUAL_RUNS_MAX: usize = 4;

/// What the server of each run begins with.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) seed: u64,
    pub(super) now: Timestamp,
    /// The setup's commands, by connection.
    pub(super) setup: Vec<(usize, Request)>,
}

/// Where servers for runs come from.
pub(super) trait Source {
    /// A server in the state that the setup left.
    fn server(&mut self, origin: &Origin) -> Result<Box<dyn Upstream>, SweepError>;
}

/// Engines of our own.
pub(super) struct EmbeddedSource;

impl Source for EmbeddedSource {
    fn server(&mut self, origin: &Origin) -> Result<Box<dyn Upstream>, SweepError> {
        let mut server: Box<dyn Upstream> = Box::new(Embedded::new(origin.seed, origin.now));
        prepare(server.as_mut(), &origin.setup)?;
        Ok(server)
    }
}

/// Repeats what the setup did.
pub(super) fn prepare(
    server: &mut dyn Upstream,
    setup: &[(usize, Request)],
) -> Result<(), SweepError> {
    let mut links = BTreeMap::new();
    for (connection, request) in setup {
        let link = if let Some(link) = links.get(connection) {
            *link
        } else {
            let link = server.open().map_err(SweepError::Server)?;
            links.insert(*connection, link);
            link
        };
        server.submit(link, request);
        while server.poll().is_some() {}
    }
    for link in links.into_values() {
        server.close(link);
    }
    Ok(())
}

/// A schedule whose outcome is none of those that are right.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) schedule: Schedule,
    pub(super) also: Vec<Schedule>,
    pub(super) ran: Ran,
    /// The orders whose outcomes would be right.
    pub(super) orders: Vec<Vec<Turn>>,
    pub(super) mismatches: Vec<Vec<Mismatch>>,
}

impl Candidate {
    /// What the same fault elsewhere has in common with it.
    fn signature(&self) -> (Kind, Role, String) {
        let told = differences(&self.mismatches);
        let texts = told
            .iter()
            .map(|difference| format!("{}={}", difference.at, difference.got));
        let act = format!("{:?}", self.schedule.act);
        let text = texts.chain([act]).collect::<Vec<_>>().join("\n");
        (self.schedule.act.kind(), self.schedule.of, text)
    }
}

/// A sweep under way.
pub(super) struct Search {
    pub(super) stage: Stage,
    pub(super) source: Box<dyn Source>,
    pub(super) origin: Origin,
    pub(super) rules: Rules,
    pub(super) habits: Habits,
    /// Whether B is the same program as A, so that what holds for one holds for the other.
    pub(super) is_symmetric: bool,
    pub(super) runs: BTreeMap<&'static str, usize>,
    pub(super) skipped: BTreeMap<&'static str, usize>,
    pub(super) notes: BTreeSet<String>,
    references: BTreeMap<Vec<Turn>, Rc<Ran>>,
    /// Whether A does not end unless B runs.
    a_needs_b: bool,
}

/// The text by which an order of turns is known, `A, then B`.
pub(super) fn order_text(turns: &[Turn]) -> String {
    let name = |turn: &Turn| match turn {
        Turn::Run(role) => role.to_string(),
        Turn::Pass(_) => "keys expire".to_owned(),
        Turn::Wipe => "the data is lost".to_owned(),
    };
    match turns {
        [] => "nothing runs".to_owned(),
        [Turn::Run(role)] => format!("only {role}"),
        [event] => format!("only: {}", name(event)),
        more => more.iter().map(name).collect::<Vec<_>>().join(", then "),
    }
}

const A: Turn = Turn::Run(Role::A);
const B: Turn = Turn::Run(Role::B);

impl Search {
    pub(super) fn new(
        stage: Stage,
        source: Box<dyn Source>,
        origin: Origin,
        rules: Rules,
    ) -> Search {
        let words = |role| stage.program(role).map(Program::words);
        let is_process = matches!(stage.program(Role::A), Some(Program::Process(_)));
        let is_symmetric = is_process && words(Role::A) == words(Role::B);
        Search {
            is_symmetric,
            stage,
            source,
            origin,
            rules,
            habits: Habits::default(),
            runs: BTreeMap::new(),
            skipped: BTreeMap::new(),
            notes: BTreeSet::new(),
            references: BTreeMap::new(),
            a_needs_b: false,
        }
    }

    /// Whether there is a second program.
    pub(super) fn has_b(&self) -> bool {
        self.stage.program(Role::B).is_some()
    }

    /// The orders in which the programs run one after the other, and A alone.
    pub(in crate::sweep) fn serial_orders(&self) -> Vec<Vec<Turn>> {
        if self.has_b() {
            vec![vec![A], vec![A, B], vec![B, A]]
        } else {
            vec![vec![A]]
        }
    }

    /// Runs the setup program and remembers its commands.
    pub(super) async fn set_up(&mut self) -> Result<(), SweepError> {
        if self.stage.program(Role::Setup).is_none() {
            return Ok(());
        }
        let turns = vec![Turn::Run(Role::Setup)];
        let ran = self.run_on_new_server(turns, None, None).await?;
        if !ran.status(Role::Setup).is_some_and(Status::is_success) {
            return Err(SweepError::Setup(ran.complaint.unwrap_or_default()));
        }
        let own = ran
            .steps
            .into_iter()
            .filter(|step| step.role == Some(Role::Setup));
        self.origin.setup = own.map(|step| (step.connection, step.request)).collect();
        Ok(())
    }

    /// Runs the serial orders twice each, and learns what differs between equal runs.
    pub(super) async fn run_serially(&mut self) -> Result<(), SweepError> {
        self.run_twice(self.serial_orders()).await?;
        self.reference(&[]).await?;
        Ok(())
    }

    /// Runs these orders twice each, and learns what differs between equal runs.
    pub(in crate::sweep) async fn run_twice(
        &mut self,
        orders: Vec<Vec<Turn>>,
    ) -> Result<(), SweepError> {
        let mut twins = Vec::new();
        for turns in orders {
            let one = self.counted("serial", turns.clone(), None).await?;
            if one.stuck {
                self.refuse_endless_programs(&turns, &one)?;
                continue;
            }
            refuse_broken_programs(&one)?;
            let (one, other) = self.equal_runs(&turns, one).await?;
            self.habits.learn(&one.steps, &other.steps);
            let one = Rc::new(one);
            self.references.insert(turns, Rc::clone(&one));
            twins.push((one, other));
        }
        for (one, other) in twins {
            let (one, other) = (self.outcome(&one), self.outcome(&other));
            self.rules.learn(&one, &other);
        }
        Ok(())
    }

    /// Two runs of an order in which the programs end alike: one run may have failed for reasons of its own.
    async fn equal_runs(&mut self, turns: &[Turn], first: Ran) -> Result<(Ran, Ran), SweepError> {
        let mut runs = vec![first];
        while runs.len() < EQUAL_RUNS_MAX {
            let next = self.counted("serial", turns.to_vec(), None).await?;
            if let Some(same) = runs.iter().position(|run| {
                Role::ALL
                    .iter()
                    .all(|role| run.status(*role) == next.status(*role))
            }) {
                return Ok((runs.swap_remove(same), next));
            }
            runs.push(next);
        }
        Err(SweepError::Unsteady {
            order: order_text(turns),
        })
    }

    /// A that needs B to end is swept with B in front of it; programs that do not end by themselves cannot be swept.
    fn refuse_endless_programs(&mut self, turns: &[Turn], ran: &Ran) -> Result<(), SweepError> {
        if self.has_b() && turns == [A] {
            self.a_needs_b = true;
            let note = "A does not end without B: its faults are tried behind B".to_owned();
            self.notes.insert(note);
            return Ok(());
        }
        let is_endless = |role: &Role| matches!(ran.status(*role), Some(Status::Other(_)));
        let role = Role::PROGRAMS.into_iter().find(is_endless);
        Err(SweepError::Endless {
            role: role.unwrap_or(Role::A),
            order: order_text(turns),
        })
    }

    /// The same programs, learned habits and rules on another server, on which nothing was run yet.
    pub(super) fn move_to(&mut self, source: Box<dyn Source>) {
        self.source = source;
        self.references.clear();
    }

    /// The run of an order of turns, kept once it was run.
    pub(super) async fn reference(&mut self, turns: &[Turn]) -> Result<Rc<Ran>, SweepError> {
        if let Some(ran) = self.references.get(turns) {
            return Ok(Rc::clone(ran));
        }
        let ran = Rc::new(self.counted("serial", turns.to_vec(), None).await?);
        self.references.insert(turns.to_vec(), Rc::clone(&ran));
        Ok(ran)
    }

    /// Runs what was kept once more, and learns from what has changed since.
    pub(super) async fn refresh(&mut self, orders: Vec<Vec<Turn>>) -> Result<(), SweepError> {
        for turns in orders {
            let Some(old) = self.references.get(&turns).cloned() else {
                continue;
            };
            let fresh = self.counted("check", turns, None).await?;
            self.habits.learn(&old.steps, &fresh.steps);
            let (old, fresh) = (self.outcome(&old), self.outcome(&fresh));
            self.rules.learn(&old, &fresh);
        }
        Ok(())
    }

    pub(super) async fn counted(
        &mut self,
        purpose: &'static str,
        turns: Vec<Turn>,
        interruption: Option<Schedule>,
    ) -> Result<Ran, SweepError> {
        *self.runs.entry(purpose).or_default() += 1;
        let ran = self
            .run_on_new_server(self.with_after(turns), interruption, None)
            .await?;
        for label in &ran.labels {
            let note = match interruption {
                Some(schedule) => format!("{label} in {schedule}"),
                None => format!("{label} in a serial run"),
            };
            self.notes.insert(note);
        }
        Ok(ran)
    }

    /// Runs programs side by side; who goes on is asked at each crossing.
    pub(in crate::sweep) async fn steered(
        &mut self,
        purpose: &'static str,
        turns: Vec<Turn>,
        steer: &mut dyn Steer,
    ) -> Result<Ran, SweepError> {
        *self.runs.entry(purpose).or_default() += 1;
        self.run_on_new_server(self.with_after(turns), None, Some(steer))
            .await
    }

    fn with_after(&self, mut turns: Vec<Turn>) -> Vec<Turn> {
        if self.stage.program(Role::After).is_some() {
            turns.push(Turn::Run(Role::After));
        }
        turns
    }

    async fn run_on_new_server(
        &mut self,
        turns: Vec<Turn>,
        interruption: Option<Schedule>,
        steer: Option<&mut dyn Steer>,
    ) -> Result<Ran, SweepError> {
        let mut server = self.source.server(&self.origin)?;
        let plan = Plan {
            turns,
            interruption,
        };
        // The reference is to live no longer than this run.
        let steer = steer.map(|steer| steer as &mut dyn Steer);
        Conductor::new(&mut self.stage, server.as_mut(), &plan, steer)
            .conduct()
            .await
    }

    /// The names of a run's random parts.
    pub(super) fn labels(&self, ran: &Ran) -> Labels {
        Labels::of(&self.habits, &ran.steps, self.stage.wall_seconds)
    }

    /// What a run gave, its random parts named.
    pub(super) fn outcome(&self, ran: &Ran) -> Outcome {
        let labels = self.labels(ran);
        let labels = if self.rules.lacks(Clause::Owners) {
            labels.without_owners()
        } else {
            labels
        };
        Outcome::new(&ran.endings, &ran.snapshot, ran.labels.clone(), &labels)
    }

    /// The serial orders' outcomes, for the report.
    pub(super) fn shown_references(&self) -> Vec<Reference> {
        let shown = |(turns, ran): (&Vec<Turn>, &Rc<Ran>)| Reference {
            order: order_text(turns),
            outcome: self.outcome(ran).shown(),
        };
        self.references.iter().map(shown).collect()
    }

    /// The turns in which a program is interrupted by something else than the other one: A begins, B follows, unless A cannot do
    /// without B.
    pub(super) fn context(&self, of: Role) -> Vec<Turn> {
        [self.before(of), vec![Turn::Run(of)]].concat()
    }

    /// The turns in front of the program's own.
    fn before(&self, of: Role) -> Vec<Turn> {
        match (of, self.a_needs_b) {
            (Role::B, false) => vec![A],
            (Role::A, true) => vec![B],
            _ => Vec::new(),
        }
    }

    /// The turns of a schedule.
    pub(super) fn turns_of(&self, schedule: Schedule) -> Vec<Turn> {
        match schedule.act {
            Act::RunOther | Act::ExpireAndRunOther => {
                vec![Turn::Run(schedule.of), Turn::Run(schedule.of.rival())]
            }
            _ => self.context(schedule.of),
        }
    }

    /// Runs a schedule. None if the program did not come to the point.
    pub(super) async fn try_schedule(
        &mut self,
        schedule: Schedule,
    ) -> Result<Option<Ran>, SweepError> {
        let (purpose, turns) = (schedule.act.kind().name(), self.turns_of(schedule));
        let ran = self.counted(purpose, turns, Some(schedule)).await?;
        if !ran.interrupted {
            self.notes.insert(format!(
                "{schedule} could not be tried: the program did not come to that point again"
            ));
            return Ok(None);
        }
        Ok(Some(ran))
    }

    /// Leaves the server as it was found: empty.
    pub(super) fn leave(&mut self) -> Result<(), SweepError> {
        let nothing = Origin {
            setup: Vec::new(),
            ..self.origin.clone()
        };
        self.source.server(&nothing).map(drop)
    }
}

/// A program that ends with an error before it has sent a command is not one to sweep.
fn refuse_broken_programs(ran: &Ran) -> Result<(), SweepError> {
    for role in Role::PROGRAMS {
        let Some(Some(ending)) = ran.endings.get(role.index()) else {
            continue;
        };
        let spoke = ran.steps.iter().any(|step| step.role == Some(role));
        if !spoke && !ending.status.is_success() {
            let said = ran
                .complaint
                .clone()
                .unwrap_or_else(|| ending.output.clone());
            return Err(SweepError::Mute { role, said });
        }
    }
    Ok(())
}
