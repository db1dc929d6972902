//! [`Hunt`]: runs interleavings, judges each by all serial orders, and makes what is wrong as short as it can be.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

use super::choices::Interleaving;
use super::plan::{Planned, choices, deviations, first_and_last, joined, permutations};
use super::steer::{Passed, Pct, Prefix, Random, Recorded, Steer, preemptions};
use super::{Explore, Strategy};
use crate::sweep::SweepError;
use crate::sweep::builder::Sweep;
use crate::sweep::conductor::{Ran, Turn};
use crate::sweep::report::{Confirmed, Report, Shown, ShownStep};
use crate::sweep::rules::{Mismatch, Scope, differences};
use crate::sweep::schedule::Role;
use crate::sweep::search::Search;
use crate::sweep::tell;

/// Schedules that are known and not yet run, at most.
const PLANNED_MAX: usize = 100_000;

/// Different findings that are told at most.
const FINDINGS_MAX: usize = 10;

/// Runs that making one finding shorter may take.
const SHRINK_RUNS_MAX: usize = 60;

/// Preemptions that a bounded search allows unless told otherwise.
pub(super) const PREEMPTIONS: usize = 2;

/// An interleaving whose outcome no serial order gives.
#[derive(Clone)]
pub(super) struct Wrong {
    pub(super) passed: Vec<Passed>,
    pub(super) ran: Ran,
    pub(super) mismatches: Vec<Vec<Mismatch>>,
    pub(super) also: Vec<Interleaving>,
}

impl Wrong {
    pub(super) fn interleaving(&self) -> Interleaving {
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

/// Programs that are explored.
pub(super) struct Hunt {
    pub(super) search: Search,
    pub(super) orders: Vec<Vec<Turn>>,
    wrong: Vec<Wrong>,
    pub(super) run: usize,
    /// What was special about runs: in how many, and the first of them.
    pub(super) labels: BTreeMap<String, (usize, Interleaving)>,
    /// Whether each run that was to begin as another one did so.
    pub(super) is_steady: bool,
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
                known.also.clone_from(&longer.also);
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
            let passed = if explore.strategy == Strategy::Pct {
                let changes = explore.preemptions.unwrap_or(PREEMPTIONS);
                self.check(&mut Pct::new(rng.fork(), changes, len)).await?
            } else {
                let mut walk = Random {
                    rng: rng.fork(),
                    preemptions_left: explore.preemptions.unwrap_or(usize::MAX),
                };
                self.check(&mut walk).await?
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
