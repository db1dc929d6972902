//! [`Search`]: runs the serial orders, then every schedule that can matter, and judges what they give.

use std::collections::{BTreeMap, BTreeSet};

use super::SweepError;
use super::conductor::{Conductor, Performance, Plan, Turn};
use super::labels::{Habits, Labels};
use super::outcome::{Clause, Mismatch, Outcome, Rules, Scope, differences};
use super::program::Program;
use super::report::{Ending, Reference, Status};
use super::schedule::{Act, Kind, Role, Schedule};
use super::seen::Seen;
use super::snapshot::{self, Snapshot};
use super::stage::Stage;
use super::step::Step;
use super::upstream::{Embedded, Upstream};
use crate::clock::Timestamp;
use crate::footprint::{Footprint, SessionState, Static};
use crate::wire::Request;

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

/// One run and what it gave, not yet judged.
#[derive(Clone, Debug)]
pub(super) struct Ran {
    pub(super) endings: [Option<Ending>; Role::ALL.len()],
    pub(super) snapshot: Snapshot,
    pub(super) steps: Vec<Step>,
    pub(super) labels: BTreeSet<String>,
    pub(super) complaint: Option<String>,
    pub(super) interrupted: bool,
    pub(super) stuck: bool,
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
    pub(super) has_b: bool,
    pub(super) has_after: bool,
    /// Whether B is the same program as A, so that what holds for one holds for the other.
    pub(super) is_symmetric: bool,
    /// The machine's time when the sweep began, in seconds: times near it are left out.
    pub(super) wall_seconds: f64,
    pub(super) runs: BTreeMap<&'static str, usize>,
    pub(super) skipped: BTreeMap<&'static str, usize>,
    pub(super) notes: BTreeSet<String>,
    references: BTreeMap<String, Ran>,
    /// Whether A does not end unless B runs.
    a_needs_b: bool,
}

/// The text by which an order of turns is known, `A, then B`.
pub(super) fn order_text(turns: &[Turn]) -> String {
    let name = |turn: &Turn| match turn {
        Turn::Run(role) => role.to_string(),
        Turn::Expire => "keys expire".to_owned(),
        Turn::Wipe => "the data is lost".to_owned(),
    };
    let names: Vec<_> = turns.iter().map(name).collect();
    match names.as_slice() {
        [] => "nothing runs".to_owned(),
        [one] => format!("only {one}")
            .replace("only keys", "only: keys")
            .replace("only the", "only: the"),
        more => more.join(", then "),
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
        wall_seconds: f64,
    ) -> Search {
        let words = |role| stage.program(role).map(Program::words);
        let is_process = matches!(stage.program(Role::A), Some(Program::Process(_)));
        let is_symmetric = is_process && words(Role::A) == words(Role::B);
        Search {
            has_b: stage.program(Role::B).is_some(),
            has_after: stage.program(Role::After).is_some(),
            is_symmetric,
            stage,
            source,
            origin,
            rules,
            habits: Habits::default(),
            wall_seconds,
            runs: BTreeMap::new(),
            skipped: BTreeMap::new(),
            notes: BTreeSet::new(),
            references: BTreeMap::new(),
            a_needs_b: false,
        }
    }

    /// Runs the setup program and remembers its commands.
    pub(super) async fn set_up(&mut self) -> Result<(), SweepError> {
        if self.stage.program(Role::Setup).is_none() {
            return Ok(());
        }
        let turns = vec![Turn::Run(Role::Setup)];
        let ran = self.run_on_new_server(turns, None).await?;
        let ending = ran.endings.first().cloned().flatten();
        if !ending.is_some_and(|ending| ending.status.is_success()) {
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
        let mut orders = vec![vec![A]];
        if self.has_b {
            orders.extend([vec![A, B], vec![B, A]]);
        }
        let mut twins = Vec::new();
        for turns in orders {
            let one = self.counted("serial", turns.clone(), None).await?;
            refuse_broken_programs(&one)?;
            if one.stuck {
                self.refuse_endless_programs(&turns, &one)?;
                continue;
            }
            let other = self.counted("serial", turns.clone(), None).await?;
            self.habits.learn(&one.steps, &other.steps);
            self.references.insert(order_text(&turns), one.clone());
            twins.push((one, other));
        }
        for (one, other) in twins {
            let (one, other) = (self.outcome(&one), self.outcome(&other));
            self.rules.learn(&one, &other);
        }
        self.reference(&[]).await?;
        Ok(())
    }

    /// A that needs B to end is swept with B in front of it; programs that do not end by themselves cannot be swept.
    fn refuse_endless_programs(&mut self, turns: &[Turn], ran: &Ran) -> Result<(), SweepError> {
        if self.has_b && turns == [A] {
            self.a_needs_b = true;
            let note = "A does not end without B: its faults are tried behind B".to_owned();
            self.notes.insert(note);
            return Ok(());
        }
        let is_endless = |role: &Role| {
            let ending = ran.endings.get(role.index()).and_then(Option::as_ref);
            ending.is_some_and(|ending| matches!(ending.status, Status::Other(_)))
        };
        let role = [Role::A, Role::B].into_iter().find(is_endless);
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
    pub(super) async fn reference(&mut self, turns: &[Turn]) -> Result<Ran, SweepError> {
        let key = order_text(turns);
        if let Some(ran) = self.references.get(&key) {
            return Ok(ran.clone());
        }
        let ran = self.counted("serial", turns.to_vec(), None).await?;
        self.references.insert(key, ran.clone());
        Ok(ran)
    }

    /// Runs what was kept once more, and learns from what has changed since.
    pub(super) async fn refresh(&mut self) -> Result<(), SweepError> {
        let mut orders = vec![vec![A]];
        if self.has_b {
            orders.extend([vec![A, B], vec![B, A]]);
        }
        orders.retain(|turns| self.references.contains_key(&order_text(turns)));
        for turns in orders {
            let fresh = self.counted("check", turns.clone(), None).await?;
            if let Some(old) = self.references.get(&order_text(&turns)).cloned() {
                self.habits.learn(&old.steps, &fresh.steps);
                let (old, fresh) = (self.outcome(&old), self.outcome(&fresh));
                self.rules.learn(&old, &fresh);
            }
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
        let mut turns = turns;
        if self.has_after {
            turns.push(Turn::Run(Role::After));
        }
        let ran = self.run_on_new_server(turns, interruption).await?;
        for label in &ran.labels {
            let note = match interruption {
                Some(schedule) => format!("{label} in {schedule}"),
                None => format!("{label} in a serial run"),
            };
            self.notes.insert(note);
        }
        Ok(ran)
    }

    async fn run_on_new_server(
        &mut self,
        turns: Vec<Turn>,
        interruption: Option<Schedule>,
    ) -> Result<Ran, SweepError> {
        let mut server = self.source.server(&self.origin)?;
        let plan = Plan {
            turns,
            interruption,
        };
        let conductor = Conductor::new(&mut self.stage, server.as_mut(), &plan);
        let performance = conductor.conduct().await?;
        let Performance {
            endings,
            steps,
            labels,
            complaint,
            interrupted,
            stuck,
        } = performance;
        Ok(Ran {
            endings,
            snapshot: snapshot::take(server.as_mut()),
            steps,
            labels,
            complaint,
            interrupted,
            stuck,
        })
    }

    /// What a run gave, its random parts named.
    pub(super) fn outcome(&self, ran: &Ran) -> Outcome {
        let labels = Labels::of(&self.habits, &ran.steps, self.wall_seconds);
        let labels = if self.rules.lacks(Clause::Owners) {
            labels.without_owners()
        } else {
            labels
        };
        Outcome::new(&ran.endings, &ran.snapshot, ran.labels.clone(), &labels)
    }

    /// The serial orders' outcomes, for the report.
    pub(super) fn shown_references(&self) -> Vec<Reference> {
        let shown = |(order, ran): (&String, &Ran)| Reference {
            order: order.clone(),
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

    /// The orders that would be right for a schedule, and what is compared.
    pub(super) async fn right_orders(
        &mut self,
        schedule: Schedule,
        ran: &Ran,
    ) -> Result<(Vec<Vec<Turn>>, Scope), SweepError> {
        let of = schedule.of;
        let whole = self.context(of);
        let before = self.before(of);
        let remains = Scope::Remains { of };
        let succeeded = match schedule.act {
            Act::RunOther | Act::Expire | Act::ExpireAndRunOther => true,
            Act::Die => false,
            _ => {
                let reference = self.reference(&whole).await?;
                let status = |ran: &Ran| {
                    ran.endings
                        .get(of.index())
                        .cloned()
                        .flatten()
                        .map(|ending| ending.status)
                };
                status(ran) == status(&reference)
            }
        };
        let with_expiry = |turns: &[Turn]| -> Vec<Vec<Turn>> {
            let at = |place: usize| {
                let mut turns = turns.to_vec();
                turns.insert(place, Turn::Expire);
                turns
            };
            std::iter::once(turns.to_vec())
                .chain((0..=turns.len()).map(at))
                .collect()
        };
        Ok(match (schedule.act, succeeded) {
            (Act::RunOther, _) => (vec![vec![A, B], vec![B, A]], Scope::Whole),
            (Act::ExpireAndRunOther, _) => {
                let orders = [with_expiry(&[A, B]), with_expiry(&[B, A])].concat();
                (orders, Scope::Whole)
            }
            (Act::Expire, _) => (with_expiry(&whole), Scope::Whole),
            (Act::RestartEmpty, true) => {
                let mut orders = vec![[whole.clone(), vec![Turn::Wipe]].concat()];
                orders.push([before, vec![Turn::Wipe, Turn::Run(of)]].concat());
                (orders, Scope::Whole)
            }
            (Act::RestartEmpty, false) => {
                let lost = [before, vec![Turn::Wipe]].concat();
                let orders = vec![lost.clone(), [lost, vec![Turn::Run(of)]].concat()];
                (orders, remains)
            }
            (_, true) => (vec![whole], Scope::Whole),
            (_, false) => (vec![before, whole], remains),
        })
    }

    /// Whether a run gave what none of the right orders gives.
    pub(super) async fn judge(
        &mut self,
        schedule: Schedule,
        ran: Ran,
    ) -> Result<Option<Candidate>, SweepError> {
        let (orders, scope) = self.right_orders(schedule, &ran).await?;
        let mut mismatches = Vec::new();
        let mut seen = BTreeSet::new();
        for turns in &orders {
            if !seen.insert(order_text(turns)) {
                continue;
            }
            let reference = self.reference(turns).await?;
            let (outcome, reference) = (self.outcome(&ran), self.outcome(&reference));
            let found = self.rules.mismatches(&outcome, &reference, scope);
            if found.is_empty() && !ran.stuck {
                return Ok(None);
            }
            if self.rules.lacks(scope.clause(schedule.act)) {
                return Ok(None);
            }
            mismatches.push(found);
        }
        Ok(Some(Candidate {
            schedule,
            also: Vec::new(),
            ran,
            orders,
            mismatches,
        }))
    }

    /// Whether the server gives for a schedule what another one gave, and for the serial orders something else.
    pub(super) async fn confirms(&mut self, candidate: &Candidate) -> Result<bool, SweepError> {
        let schedule = candidate.schedule;
        let ran = self
            .counted("confirm", self.turns_of(schedule), Some(schedule))
            .await?;
        let (_, scope) = self.right_orders(schedule, &ran).await?;
        let (there, here) = (self.outcome(&ran), self.outcome(&candidate.ran));
        let is_same = self.rules.mismatches(&there, &here, scope).is_empty();
        Ok(is_same && self.judge(schedule, ran).await?.is_some())
    }

    /// What the judges of causes are to know of a finding: the interrupted program is A there. What a program that died would
    /// have done next is added at the end.
    pub(super) async fn seen(&mut self, candidate: &Candidate) -> Result<Vec<Seen>, SweepError> {
        let Schedule { of, point, act } = candidate.schedule;
        let mut seen: Vec<_> = candidate
            .ran
            .steps
            .iter()
            .map(|step| step.seen(of))
            .collect();
        if act == Act::Die {
            let base = own_steps(&self.reference(&self.context(of)).await?, of);
            let missing = base
                .get(point..)
                .unwrap_or_default()
                .iter()
                .map(|step| Seen {
                    missing: true,
                    reply: None,
                    ..step.seen(of)
                });
            seen.extend(missing);
        }
        Ok(seen)
    }

    /// Leaves the server as it was found: empty.
    pub(super) fn leave(&mut self) -> Result<(), SweepError> {
        let nothing = Origin {
            setup: Vec::new(),
            ..self.origin.clone()
        };
        self.source.server(&nothing).map(drop)
    }

    /// Tries all schedules of these kinds.
    pub(super) async fn explore(&mut self, kinds: &[Kind]) -> Result<Vec<Candidate>, SweepError> {
        let mut found = Vec::new();
        let subjects: &[Role] = match (self.has_b, self.is_symmetric) {
            (true, false) => &[Role::A, Role::B],
            _ => &[Role::A],
        };
        for kind in Kind::ALL.into_iter().filter(|kind| kinds.contains(kind)) {
            for of in subjects {
                match kind {
                    Kind::Isolation if !self.has_b => {}
                    Kind::Isolation => self.isolate(*of, &mut found).await?,
                    Kind::Crash => self.crash(*of, &mut found).await?,
                    Kind::LostReply => {
                        let resets = kinds.contains(&Kind::Restart);
                        self.lose_replies(*of, resets, &mut found).await?;
                    }
                    Kind::Expiry => self.expire(*of, &mut found).await?,
                    Kind::Restart => self.restart(*of, &mut found).await?,
                }
            }
        }
        Ok(grouped(found))
    }

    fn skip(&mut self, kind: Kind, count: usize) {
        if count > 0 {
            *self.skipped.entry(kind.name()).or_default() += count;
        }
    }

    /// Runs and judges a schedule; what was run.
    async fn check(
        &mut self,
        schedule: Schedule,
        found: &mut Vec<Candidate>,
    ) -> Result<Option<Ran>, SweepError> {
        let Some(ran) = self.try_schedule(schedule).await? else {
            return Ok(None);
        };
        found.extend(self.judge(schedule, ran.clone()).await?);
        Ok(Some(ran))
    }

    /// The other program runs whole before each command. Places between which no command can matter to it are one.
    async fn isolate(&mut self, of: Role, found: &mut Vec<Candidate>) -> Result<(), SweepError> {
        let (own, rival) = (Turn::Run(of), Turn::Run(of.rival()));
        let base = own_steps(&self.reference(&[own, rival]).await?, of);
        // The order in which the other one is first is the run at point 0.
        let first = self.reference(&[rival, own]).await?;
        let mut same_until = same_places(&first, of, 0, &other_footprints(&first, of));
        for point in points(&base) {
            if same_until.is_some_and(|until| point <= until) {
                self.skip(Kind::Isolation, 1);
                continue;
            }
            if self.rules.lacks(Clause::Conflicts) {
                continue;
            }
            let schedule = Schedule {
                of,
                point,
                act: Act::RunOther,
            };
            let Some(ran) = self.check(schedule, found).await? else {
                continue;
            };
            same_until = same_places(&ran, of, point, &other_footprints(&ran, of));
        }
        Ok(())
    }

    /// The program dies behind each command that changed something.
    async fn crash(&mut self, of: Role, found: &mut Vec<Candidate>) -> Result<(), SweepError> {
        let base = own_steps(&self.reference(&self.context(of)).await?, of);
        for (point, piece) in pieces(&base) {
            if piece.iter().any(|step| step.changed) {
                let act = Act::Die;
                self.check(Schedule { of, point, act }, found).await?;
            } else {
                self.skip(Kind::Crash, 1);
            }
        }
        Ok(())
    }

    /// Each reply is lost. That of a command that changed nothing is like a connection that was reset before it.
    async fn lose_replies(
        &mut self,
        of: Role,
        resets: bool,
        found: &mut Vec<Candidate>,
    ) -> Result<(), SweepError> {
        let base = own_steps(&self.reference(&self.context(of)).await?, of);
        let starts = std::iter::once(0).chain(points(&base));
        let starts: Vec<_> = starts.filter(|point| *point < base.len()).collect();
        for (at, point) in starts.iter().enumerate() {
            let end = starts.get(at + 1).copied().unwrap_or(base.len());
            let piece = base.get(*point..end).unwrap_or_default();
            if resets && *point > 0 && !piece.iter().any(|step| step.changed) {
                self.skip(Kind::LostReply, 1);
                continue;
            }
            let schedule = Schedule {
                of,
                point: *point,
                act: Act::LoseReply,
            };
            self.check(schedule, found).await?;
        }
        Ok(())
    }

    /// Keys expire between two commands, and the other program runs then.
    async fn expire(&mut self, of: Role, found: &mut Vec<Candidate>) -> Result<(), SweepError> {
        let base = own_steps(&self.reference(&self.context(of)).await?, of);
        let (mut same_until, mut same_with_other) = (None, None);
        for (point, piece) in pieces(&base) {
            if !piece.last().is_some_and(|step| step.mortal) {
                continue;
            }
            let try_it = |until: Option<usize>| until.is_none_or(|until| point > until);
            if try_it(same_until) {
                let act = Act::Expire;
                if let Some(ran) = self.check(Schedule { of, point, act }, found).await? {
                    same_until = same_places(&ran, of, point, &expired_footprints(&ran));
                }
            } else {
                self.skip(Kind::Expiry, 1);
            }
            if !self.has_b {
                continue;
            }
            if try_it(same_with_other) {
                let act = Act::ExpireAndRunOther;
                if let Some(ran) = self.check(Schedule { of, point, act }, found).await? {
                    let mut footprints = expired_footprints(&ran);
                    footprints.extend(other_footprints(&ran, of));
                    same_with_other = same_places(&ran, of, point, &footprints);
                }
            } else {
                self.skip(Kind::Expiry, 1);
            }
        }
        Ok(())
    }

    /// The server or its connections go and come back between two commands.
    async fn restart(&mut self, of: Role, found: &mut Vec<Candidate>) -> Result<(), SweepError> {
        let base = own_steps(&self.reference(&self.context(of)).await?, of);
        for point in points(&base) {
            let rest = base.get(point..).unwrap_or_default();
            let calls_now = rest.first().is_some_and(Step::calls_by_hash);
            let calls_later = rest.iter().any(Step::calls_by_hash);
            for (act, matters) in [
                (Act::FlushScripts, calls_now),
                (Act::Reset, true),
                (Act::RestartKept, calls_later),
                (Act::RestartEmpty, true),
            ] {
                if matters {
                    self.check(Schedule { of, point, act }, found).await?;
                } else {
                    self.skip(Kind::Restart, 1);
                }
            }
        }
        Ok(())
    }
}

/// A program that ends with an error before it has sent a command is not one to sweep.
fn refuse_broken_programs(ran: &Ran) -> Result<(), SweepError> {
    for role in [Role::A, Role::B] {
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

impl Scope {
    /// The clause by which a schedule is judged.
    fn clause(self, act: Act) -> Clause {
        match (self, act) {
            (_, Act::RunOther) => Clause::Again,
            (_, Act::Expire | Act::ExpireAndRunOther) => Clause::Expiry,
            (Scope::Whole, _) => Clause::Done,
            (Scope::Remains { .. }, _) => Clause::AllOrNothing,
        }
    }
}

/// Findings with the same differences are one: the first place stands for them.
fn grouped(found: Vec<Candidate>) -> Vec<Candidate> {
    let mut groups: Vec<((Kind, Role, String), Candidate)> = Vec::new();
    for candidate in found {
        let signature = candidate.signature();
        match groups.iter_mut().find(|(known, _)| *known == signature) {
            Some((_, first)) => first.also.push(candidate.schedule),
            None => groups.push((signature, candidate)),
        }
    }
    groups.into_iter().map(|(_, candidate)| candidate).collect()
}

/// A program's visible commands.
fn own_steps(ran: &Ran, of: Role) -> Vec<Step> {
    let own = ran
        .steps
        .iter()
        .filter(|step| step.role == Some(of) && step.point.is_some());
    own.cloned().collect()
}

/// Places between what a program sends, but for its beginning.
fn points(steps: &[Step]) -> Vec<usize> {
    let begin = steps.iter().skip(1).filter(|step| step.begins);
    begin.filter_map(|step| step.point).collect()
}

/// Each of those places with the commands right before it.
fn pieces(steps: &[Step]) -> Vec<(usize, Vec<Step>)> {
    let mut start = 0;
    let piece = |point: usize| {
        let piece = steps.get(start..point).unwrap_or_default().to_vec();
        start = point;
        (point, piece)
    };
    points(steps).into_iter().map(piece).collect()
}

/// What the other program touched.
fn other_footprints(ran: &Ran, of: Role) -> Vec<Footprint> {
    let other = of.rival();
    let steps = ran.steps.iter().filter(|step| step.role == Some(other));
    steps.map(|step| step.footprint.clone()).collect()
}

/// The keys that expired, as if they had been deleted.
fn expired_footprints(ran: &Ran) -> Vec<Footprint> {
    let events = ran
        .steps
        .iter()
        .filter(|step| step.role.is_none() && !step.request.is_empty());
    let delete = |step: &Step| {
        let words = std::iter::once(&b"DEL"[..]).chain(step.request.words());
        SessionState::default().footprint(&Static::of(&Request::new(words)))
    };
    events.map(delete).collect()
}

/// The last place up to which what happened at `from` might as well have happened: from there on no command of the program
/// conflicts with what happened, up to the one right before the next place. None if a program waited, which makes places differ.
fn same_places(ran: &Ran, of: Role, from: usize, happened: &[Footprint]) -> Option<usize> {
    if !ran.labels.is_empty() {
        return None;
    }
    let mut until = None;
    for step in ran.steps.iter().filter(|step| step.role == Some(of)) {
        let Some(point) = step.point.filter(|point| *point >= from) else {
            continue;
        };
        if happened
            .iter()
            .any(|other| other.conflicts(&step.footprint))
        {
            return until.or(Some(from));
        }
        until = Some(point + 1);
    }
    Some(usize::MAX)
}
