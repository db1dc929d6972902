//! [`Hunt`]: runs interleavings, judges each by all serial orders, and makes what is wrong as short as it can be.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Instant;

use super::choices::{Choice, Interleaving};
use super::steer::{Passed, Pct, Prefix, Random, Recorded, Steer, preemptions};
use super::{Explore, Strategy};
use crate::sweep::SweepError;
use crate::sweep::builder::Sweep;
use crate::sweep::conductor::{Ran, Turn};
use crate::sweep::report::{Confirmed, Finding, Reference, Report, Shown, ShownStep};
use crate::sweep::rules::{Mismatch, Scope, differences};
use crate::sweep::schedule::Role;
use crate::sweep::search::{Search, order_text};
use crate::sweep::{cause, repair, tell};

/// Schedules that are known and not yet run, at most.
const PLANNED_MAX: usize = 100_000;

/// Different findings that are told at most.
const FINDINGS_MAX: usize = 10;

/// Runs that making one finding shorter may take.
const SHRINK_RUNS_MAX: usize = 60;

/// Preemptions that a bounded search allows unless told otherwise.
const PREEMPTIONS: usize = 2;

/// Switches that a title names.
const SWITCHES_TOLD_MAX: usize = 3;

/// An interleaving whose outcome no serial order gives.
#[derive(Clone)]
struct Wrong {
    passed: Vec<Passed>,
    ran: Ran,
    mismatches: Vec<Vec<Mismatch>>,
    also: Vec<Interleaving>,
}

impl Wrong {
    fn interleaving(&self) -> Interleaving {
        Interleaving::new(choices(&self.passed))
    }

    /// What other schedules with the same fault have in common with it.
    fn signature(&self) -> String {
        let told = differences(&self.mismatches);
        let texts = told.iter().map(|one| format!("{}={}", one.at, one.got));
        let ends = std::iter::once(format!("{}", self.ran.stuck));
        texts.chain(ends).collect::<Vec<_>>().join("\n")
    }

    /// Shorter is better: fewer preemptions, then fewer commands.
    fn length(&self) -> (usize, usize) {
        (preemptions(&self.passed), self.passed.len())
    }
}

fn choices(passed: &[Passed]) -> Vec<Choice> {
    passed.iter().map(|one| one.choice).collect()
}

/// A schedule that deviates from one that was run.
struct Planned {
    parent: Rc<Vec<Passed>>,
    /// So much of the parent comes first.
    len: usize,
    then: Option<Choice>,
}

impl Planned {
    fn choices(&self) -> Vec<Choice> {
        let start = self.parent.get(..self.len).unwrap_or_default();
        choices(start).into_iter().chain(self.then).collect()
    }

    /// Whether a run went as its parent did up to the deviation.
    fn was_repeated(&self, passed: &[Passed]) -> bool {
        let name = |one: &Passed| one.crossing.command.split(' ').next().map(str::to_owned);
        let is_same = |(one, other): (&Passed, &Passed)| {
            one.choice == other.choice
                && name(one) == name(other)
                && one.crossing.current == other.crossing.current
                && one.crossing.candidates == other.crossing.candidates
        };
        let start = self.parent.get(..self.len).unwrap_or_default();
        let then = passed.get(self.len).map(|one| one.choice);
        passed.len() >= self.len
            && start.iter().zip(passed).all(is_same)
            && (self.then.is_none() || self.then == then)
    }
}

/// Programs that are explored.
struct Hunt {
    search: Search,
    orders: Vec<Vec<Turn>>,
    wrong: Vec<Wrong>,
    run: usize,
    /// What was special about runs: in how many, and the first of them.
    labels: BTreeMap<String, (usize, Interleaving)>,
    /// Whether each run that was to begin as another one did so.
    is_steady: bool,
}

impl Hunt {
    /// Learns what the serial orders give. Errors: there is one program only, or the programs cannot be compared.
    async fn new(mut search: Search) -> Result<Hunt, SweepError> {
        let programs: Vec<Role> = Role::PROGRAMS
            .into_iter()
            .filter(|role| search.stage.program(*role).is_some())
            .collect();
        if programs.len() < 2 {
            return Err(SweepError::OneProgram);
        }
        let orders = permutations(&programs);
        search.run_twice(first_and_last(&orders)).await?;
        Ok(Hunt {
            search,
            orders,
            wrong: Vec::new(),
            run: 0,
            labels: BTreeMap::new(),
            is_steady: true,
        })
    }

    /// One run.
    async fn run(
        &mut self,
        purpose: &'static str,
        steer: &mut dyn Steer,
    ) -> Result<(Ran, Vec<Passed>), SweepError> {
        let mut recorded = Recorded::new(steer);
        let turns = self.orders.first().cloned().unwrap_or_default();
        let ran = self.search.steered(purpose, turns, &mut recorded).await?;
        let passed = recorded.passed;
        for label in &ran.labels {
            let first = || (0, Interleaving::new(choices(&passed)));
            self.labels.entry(label.clone()).or_insert_with(first).0 += 1;
        }
        // Who waits for how long is a matter of real time.
        self.is_steady &= ran.labels.is_empty();
        Ok((ran, passed))
    }

    /// What is wrong with a run, if no serial order gives what it gave.
    async fn judge(&mut self, ran: &Ran) -> Result<Option<Vec<Vec<Mismatch>>>, SweepError> {
        let outcome = self.search.outcome(ran);
        let mut mismatches = Vec::new();
        // The order in which they ended is the likeliest.
        let last = |turn: &Turn| {
            let is_own = |role: Option<Role>| matches!(turn, Turn::Run(own) if role == Some(*own));
            ran.steps.iter().rposition(|step| is_own(step.role))
        };
        let mut likeliest = self.orders.first().cloned().unwrap_or_default();
        likeliest.sort_by_key(last);
        let others = self.orders.iter().filter(|order| **order != likeliest);
        let orders: Vec<_> = std::iter::once(&likeliest).chain(others).cloned().collect();
        for turns in &orders {
            let reference = self.search.reference(turns).await?;
            let reference = self.search.outcome(&reference);
            let found = self
                .search
                .rules
                .mismatches(&outcome, &reference, Scope::Whole);
            if found.is_empty() && !ran.stuck {
                return Ok(None);
            }
            mismatches.push(found);
        }
        Ok(Some(mismatches))
    }

    /// Runs and judges; what was passed.
    async fn check(&mut self, steer: &mut dyn Steer) -> Result<Vec<Passed>, SweepError> {
        self.run += 1;
        let (ran, passed) = self.run("explore", steer).await?;
        if let Some(mismatches) = self.judge(&ran).await? {
            self.note(Wrong {
                passed: passed.clone(),
                ran,
                mismatches,
                also: Vec::new(),
            });
        }
        Ok(passed)
    }

    /// Keeps the shortest of those with the same fault.
    fn note(&mut self, wrong: Wrong) {
        let signature = wrong.signature();
        let known = self.wrong.iter_mut();
        let known = known.into_iter().find(|one| one.signature() == signature);
        match known {
            None => self.wrong.push(wrong),
            Some(known) if known.interleaving() == wrong.interleaving() => {}
            Some(known) if wrong.length() < known.length() => {
                let longer = std::mem::replace(known, wrong);
                known.also = longer.also.clone();
                known.also.push(longer.interleaving());
            }
            Some(known) => known.also.push(wrong.interleaving()),
        }
    }

    /// All schedules with at most so many preemptions, those with fewer first; whether that was all.
    async fn bounded(
        &mut self,
        preemptions_max: usize,
        schedules: usize,
        seed: u64,
    ) -> Result<bool, SweepError> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let first = Planned {
            parent: Rc::default(),
            len: 0,
            then: None,
        };
        let mut planned = vec![vec![first]];
        planned.resize_with(preemptions_max + 1, Vec::new);
        let (mut count, mut is_cut) = (1, false);
        while let Some(bucket) = planned.iter_mut().find(|bucket| !bucket.is_empty()) {
            if self.run >= schedules {
                return Ok(false);
            }
            let plan = bucket.swap_remove(rng.usize(..bucket.len()));
            count -= 1;
            let mut steer = Prefix::leniently(plan.choices());
            let passed = self.check(&mut steer).await?;
            self.is_steady &= plan.was_repeated(&passed);
            let from = plan.len + usize::from(plan.then.is_some());
            let passed = Rc::new(passed);
            for (preemptions, deviation) in deviations(&passed, from) {
                let Some(bucket) = planned.get_mut(preemptions) else {
                    continue;
                };
                if count < PLANNED_MAX {
                    count += 1;
                    bucket.push(deviation);
                } else {
                    is_cut = true;
                }
            }
        }
        Ok(!is_cut)
    }

    /// A sample.
    async fn sample(&mut self, explore: &Explore, seed: u64) -> Result<(), SweepError> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut len = 0;
        while self.run < explore.schedules {
            let passed = match explore.strategy {
                Strategy::Pct => {
                    let changes = explore.preemptions.unwrap_or(PREEMPTIONS);
                    self.check(&mut Pct::new(rng.fork(), changes, len)).await?
                }
                _ => {
                    let mut walk = Random {
                        rng: rng.fork(),
                        preemptions_left: explore.preemptions.unwrap_or(usize::MAX),
                    };
                    self.check(&mut walk).await?
                }
            };
            len = len.max(passed.len());
        }
        Ok(())
    }

    /// Makes a schedule shorter as long as what comes of it is wrong: pieces of a program move together.
    async fn shrink(&mut self, mut wrong: Wrong) -> Result<Wrong, SweepError> {
        let mut runs_left = SHRINK_RUNS_MAX;
        'shorter: loop {
            for attempt in joined(&choices(&wrong.passed)) {
                if runs_left == 0 {
                    return Ok(wrong);
                }
                runs_left -= 1;
                let mut steer = Prefix::leniently(attempt);
                let (ran, passed) = self.run("shrink", &mut steer).await?;
                let Some(mismatches) = self.judge(&ran).await? else {
                    continue;
                };
                let shorter = Wrong {
                    passed,
                    ran,
                    mismatches,
                    also: Vec::new(),
                };
                if shorter.length() < wrong.length() && shorter.signature() == wrong.signature() {
                    let also = std::mem::take(&mut wrong.also);
                    wrong = Wrong { also, ..shorter };
                    continue 'shorter;
                }
            }
            return Ok(wrong);
        }
    }

    /// Runs what was found once more: what is not found again is noise.
    async fn check_again(&mut self, found: Vec<Wrong>) -> Result<Vec<Wrong>, SweepError> {
        if found.is_empty() {
            return Ok(found);
        }
        self.search.refresh(first_and_last(&self.orders)).await?;
        let mut kept = Vec::new();
        for wrong in found {
            let interleaving = wrong.interleaving();
            let mut steer = Prefix::leniently(choices(&wrong.passed));
            let (ran, passed) = self.run("check", &mut steer).await?;
            if let Some(mismatches) = self.judge(&ran).await? {
                kept.push(Wrong {
                    passed,
                    ran,
                    mismatches,
                    also: wrong.also,
                });
            } else {
                let text = "looked wrong once and right when it was run again";
                self.search.notes.insert(format!("{interleaving} {text}"));
            }
        }
        Ok(kept)
    }

    /// Whether another server gives for a schedule what this one gave, and for the serial orders something else.
    async fn confirms(&mut self, wrong: &Wrong) -> Result<bool, SweepError> {
        let mut steer = Prefix::leniently(choices(&wrong.passed));
        let (ran, _) = self.run("confirm", &mut steer).await?;
        let (there, here) = (self.search.outcome(&ran), self.search.outcome(&wrong.ran));
        let found = self.search.rules.mismatches(&there, &here, Scope::Whole);
        Ok(found.is_empty() && self.judge(&ran).await?.is_some())
    }

    async fn finding(&mut self, sweep: &Sweep, wrong: &Wrong) -> Result<Finding, SweepError> {
        let labels = self.search.labels(&wrong.ran);
        let steps = wrong.ran.steps.iter();
        let steps = steps.map(|step| tell::shown_step(step, &labels)).collect();
        let mut expected: Vec<Reference> = Vec::new();
        for turns in self.orders.clone() {
            let ran = self.search.reference(&turns).await?;
            let outcome = self.search.outcome(&ran).shown();
            let order = order_text(&turns);
            if !expected.iter().any(|known| known.outcome == outcome) {
                expected.push(Reference { order, outcome });
            }
        }
        let kind = if wrong.ran.stuck {
            "stuck"
        } else {
            "isolation"
        };
        let (seen, cause) = blame(&wrong.ran);
        let interleaving = wrong.interleaving();
        Ok(Finding {
            kind: kind.to_owned(),
            title: title(wrong),
            schedule: interleaving.to_string(),
            also: wrong.also.iter().map(ToString::to_string).collect(),
            steps,
            outcome: self.search.outcome(&wrong.ran).shown(),
            expected,
            differences: differences(&wrong.mismatches),
            repair: repair::repair(kind, &seen, cause.as_ref()),
            cause,
            replay: sweep.command_to(&self.search, "explore", &interleaving.to_string()),
            confirmed: None,
        })
    }

    /// Tells what was special about runs.
    fn tell_labels(&mut self) {
        for (label, (count, first)) in std::mem::take(&mut self.labels) {
            let note = match count {
                1 => format!("{label} in {first}"),
                more => format!("{label} in {more} runs, of which {first} is the first"),
            };
            self.search.notes.insert(note);
        }
    }

    /// What no finding means.
    fn claim(&self, explore: &Explore, seed: u64, is_all: bool) -> String {
        let programs = self.orders.first().map_or(0, Vec::len);
        let whose = format!("of these {programs} programs, these inputs");
        let count = self.run;
        let preemptions = explore.preemptions.unwrap_or(PREEMPTIONS);
        match explore.strategy {
            Strategy::Bounded if is_all && self.is_steady => {
                format!("all {count} schedules with at most {preemptions} preemptions {whose}")
            }
            Strategy::Bounded if is_all => format!(
                "sampled {count} schedules with at most {preemptions} preemptions {whose}: equal beginnings did not always go on \
                 alike, so there may be more"
            ),
            Strategy::Bounded => format!(
                "sampled {count} schedules with at most {preemptions} preemptions {whose} (seed {seed})"
            ),
            Strategy::Random => format!("sampled {count} schedules {whose} (random, seed {seed})"),
            Strategy::Pct => format!("sampled {count} schedules {whose} (PCT, seed {seed})"),
        }
    }
}

impl Sweep {
    pub(super) async fn explore_all(
        &self,
        explore: &Explore,
    ) -> Result<(Report, Option<(Vec<ShownStep>, Shown)>), SweepError> {
        let began = Instant::now();
        let (search, remote) = self.begin().await?;
        let mut hunt = Hunt::new(search).await?;
        let mut is_all = false;
        match explore.strategy {
            Strategy::Bounded => {
                let preemptions = explore.preemptions.unwrap_or(PREEMPTIONS);
                is_all = hunt
                    .bounded(preemptions, explore.schedules, self.seed)
                    .await?;
            }
            _ => hunt.sample(explore, self.seed).await?,
        }
        let claim = hunt.claim(explore, self.seed, is_all);
        let mut found = std::mem::take(&mut hunt.wrong);
        found.sort_by_key(Wrong::length);
        if found.len() > FINDINGS_MAX {
            let rest = found.split_off(FINDINGS_MAX).len();
            let note = format!("{rest} further ways to go wrong are not told");
            hunt.search.notes.insert(note);
        }
        let mut short = Vec::new();
        for wrong in found {
            // A bounded search has found the shortest first.
            short.push(match explore.strategy {
                Strategy::Bounded => wrong,
                _ => hunt.shrink(wrong).await?,
            });
        }
        let found = hunt.check_again(short).await?;
        let mut findings = Vec::new();
        for wrong in &found {
            findings.push(hunt.finding(self, wrong).await?);
        }
        hunt.tell_labels();
        let mut report = self.report(&hunt.search, findings, began.elapsed());
        report.claim = claim;
        if let Some((source, server)) = remote {
            hunt.search.move_to(Box::new(source));
            for (finding, wrong) in report.findings.iter_mut().zip(&found) {
                let same = hunt.confirms(wrong).await?;
                let server = server.clone();
                finding.confirmed = Some(Confirmed { server, same });
            }
            hunt.search.leave()?;
        }
        Ok((report, None))
    }

    pub(super) async fn explore_one(
        &self,
        interleaving: &Interleaving,
    ) -> Result<(Report, Option<(Vec<ShownStep>, Shown)>), SweepError> {
        let began = Instant::now();
        let (search, _) = self.begin().await?;
        let mut hunt = Hunt::new(search).await?;
        let mut steer = Prefix::exactly(interleaving.choices().to_vec());
        let (ran, passed) = hunt.run("explore", &mut steer).await?;
        let labels = hunt.search.labels(&ran);
        let steps = ran.steps.iter();
        let steps = steps.map(|step| tell::shown_step(step, &labels)).collect();
        let shown = hunt.search.outcome(&ran).shown();
        let mut findings = Vec::new();
        if let Some(mismatches) = hunt.judge(&ran).await? {
            let wrong = Wrong {
                passed,
                ran,
                mismatches,
                also: Vec::new(),
            };
            findings.push(hunt.finding(self, &wrong).await?);
        }
        hunt.tell_labels();
        let mut report = self.report(&hunt.search, findings, began.elapsed());
        report.claim = format!("the schedule {interleaving}");
        Ok((report, Some((steps, shown))))
    }
}

/// The steps as the judges of causes see them, and who is to blame: the program that read is A there.
fn blame(
    ran: &Ran,
) -> (
    Vec<crate::sweep::seen::Seen>,
    Option<crate::sweep::report::Cause>,
) {
    let seen = |of: Role| -> Vec<_> { ran.steps.iter().map(|step| step.seen(of)).collect() };
    for of in Role::PROGRAMS {
        let steps = seen(of);
        let cause = cause::cause(&steps);
        let is_own = |at: usize| ran.steps.get(at).is_some_and(|step| step.role == Some(of));
        if let Some(cause) = cause.filter(|cause| is_own(cause.read)) {
            return (steps, Some(cause));
        }
    }
    (seen(Role::A), None)
}

/// A finding in one line.
fn title(wrong: &Wrong) -> String {
    if wrong.ran.stuck {
        return "the programs do not end if they run side by side like this".to_owned();
    }
    let switches = wrong.passed.iter().filter_map(|one| {
        let (from, to) = (one.crossing.current?, one.choice.role);
        let command = &one.crossing.command;
        (from != to).then(|| format!("{to} runs before {from}'s `{command}`"))
    });
    let switches: Vec<_> = switches.collect();
    let told = switches.get(..SWITCHES_TOLD_MAX).unwrap_or(&switches);
    let more = match switches.len() - told.len() {
        0 => String::new(),
        more => format!(" and {more} more such turns"),
    };
    format!(
        "{}{more}: no serial order gives what comes of it",
        told.join(", ")
    )
}

/// Schedules that differ from one at a single later place, and by how many preemptions each is marked then.
fn deviations(
    passed: &Rc<Vec<Passed>>,
    from: usize,
) -> impl Iterator<Item = (usize, Planned)> + use<> {
    let mut found = Vec::new();
    let mut so_far = 0;
    for (at, one) in passed.iter().enumerate() {
        let crossing = &one.crossing;
        if at >= from && (crossing.is_border || crossing.current.is_none()) {
            let others = crossing.candidates.iter();
            for role in others.filter(|role| **role != one.choice.role) {
                let preemptions = so_far + usize::from(crossing.is_preemption(*role));
                let deviation = Planned {
                    parent: Rc::clone(passed),
                    len: at,
                    then: Some(Choice::execute(*role)),
                };
                found.push((preemptions, deviation));
            }
        }
        so_far += usize::from(crossing.is_preemption(one.choice.role));
    }
    found.into_iter()
}

/// Schedules in which a piece of a program joins the piece before or behind it.
fn joined(choices: &[Choice]) -> Vec<Vec<Choice>> {
    let mut pieces: Vec<Vec<Choice>> = Vec::new();
    for choice in choices {
        match pieces.last_mut() {
            Some(piece) if piece.last().is_some_and(|last| last.role == choice.role) => {
                piece.push(*choice);
            }
            _ => pieces.push(vec![*choice]),
        }
    }
    let role = |piece: &[Choice]| piece.first().map(|choice| choice.role);
    let mut found = BTreeSet::new();
    for at in 0..pieces.len() {
        let own = role(&pieces[at]);
        let next = (at + 1..pieces.len()).find(|other| role(&pieces[*other]) == own);
        let Some(next) = next else {
            continue;
        };
        for (from, to) in [(next, at + 1), (at, next - 1)] {
            let mut moved = pieces.clone();
            let piece = moved.remove(from);
            moved.insert(to, piece);
            found.insert(moved.concat());
        }
    }
    found.into_iter().collect()
}

/// All orders of programs. Errors never: there are at most five of them.
fn permutations(programs: &[Role]) -> Vec<Vec<Turn>> {
    let mut orders: Vec<Vec<Role>> = vec![Vec::new()];
    for _ in programs {
        let longer = orders.iter().flat_map(|order| {
            let rest = programs.iter().filter(|role| !order.contains(role));
            rest.map(|role| [order.as_slice(), &[*role]].concat())
        });
        orders = longer.collect();
    }
    let turns = |order: Vec<Role>| order.into_iter().map(Turn::Run).collect();
    orders.into_iter().map(turns).collect()
}

/// The orders that are run twice, to learn what differs between equal runs: one and its reverse.
fn first_and_last(orders: &[Vec<Turn>]) -> Vec<Vec<Turn>> {
    [orders.first(), orders.last()]
        .into_iter()
        .flatten()
        .cloned()
        .collect()
}
