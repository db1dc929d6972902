//! The search: strategy after strategy, on one thread or several.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::closures::Staged;
use super::environment::foreign;
use super::portfolio::{Keeps, Phase};
use super::report::{PhaseReport, Report};
use super::{Scenario, UNDECIDED};
use crate::explore::explorer::Searched;
use crate::explore::{
    Budget, Coverage, ExploreError, Explorer, Replayed, Schedule, Violation, Workload, WorkloadHash,
};
use crate::wire::Request;

/// Schedules of a strategy that samples come in blocks of so many, each with a seed of its own: enough for a strategy to learn
/// how long runs are, few enough to spread.
const BLOCK: u64 = 64;

pub(super) fn explore<I, O>(scenario: &Scenario<I, O>) -> Result<Report, ExploreError>
where
    I: Clone + Debug + Send + 'static,
    O: Clone + Debug + Send + 'static,
{
    if let Some(schedule) = scenario.environment.read_schedule()? {
        return replay(scenario, &schedule);
    }
    let staged = scenario.staged();
    let preparation = scenario.explorer.preparation(&staged)?;
    let search = Search {
        explorer: &scenario.explorer,
        staged: &staged,
        preparation: &preparation,
        seed: scenario.environment.read_seed()?.unwrap_or(scenario.seed),
        keeps: scenario.keeps,
        threads: scenario.threads,
    };
    let budget = scenario.environment.read_budget()?;
    let mut report = Report::new(scenario.title());
    for phase in scenario.phases() {
        let schedules = budget.unwrap_or(phase.schedules);
        let searched = search.run(&phase, schedules)?;
        if let Some(found) = &searched.found {
            decided(&found.violation)?;
        }
        report.phases.push(PhaseReport {
            strategy: phase.recipe.name(),
            schedules: searched.schedules,
            pruned: searched.pruned,
            coverage: searched.coverage,
            found: searched.found.is_some(),
        });
        if let Some(found) = searched.found {
            let shrunk = scenario.explorer.shrink(&staged, &preparation, &found)?;
            report.confirmed = scenario.confirm(&staged, &shrunk.schedule)?;
            report.counterexample = Some(shrunk);
            break;
        }
        if searched.coverage == Coverage::Exhaustive {
            break;
        }
    }
    Ok(report)
}

fn decided(violation: &Violation) -> Result<(), ExploreError> {
    if violation.property == UNDECIDED {
        return Err(ExploreError::Undecided(violation.details.clone()));
    }
    Ok(())
}

fn replay<I, O>(scenario: &Scenario<I, O>, schedule: &Schedule) -> Result<Report, ExploreError>
where
    I: Clone + Debug + Send + 'static,
    O: Clone + Debug + Send + 'static,
{
    let staged = scenario.staged();
    if schedule.workload() != WorkloadHash::of(&staged.description()) {
        return Err(foreign(schedule, &scenario.title()));
    }
    let counterexample = match scenario.explorer.replay(&staged, schedule)? {
        Replayed::Holds(_) => None,
        Replayed::Breaks(counterexample) => {
            decided(&counterexample.violation)?;
            Some(*counterexample)
        }
    };
    let mut report = Report::new(scenario.title());
    report.phases.push(PhaseReport {
        strategy: "replay".to_owned(),
        schedules: 1,
        pruned: 0,
        coverage: Coverage::Sampled,
        found: counterexample.is_some(),
    });
    if counterexample.is_some() {
        report.confirmed = scenario.confirm(&staged, schedule)?;
    }
    report.counterexample = counterexample;
    Ok(report)
}

struct Search<'s, I, O> {
    explorer: &'s Explorer,
    staged: &'s Staged<'s, I, O>,
    preparation: &'s [Request],
    seed: u64,
    keeps: Keeps,
    threads: usize,
}

impl<I, O> Search<'_, I, O>
where
    I: Clone + Debug + Send + 'static,
    O: Clone + Debug + Send + 'static,
{
    fn run(&self, phase: &Phase, schedules: u64) -> Result<Searched, ExploreError> {
        if phase.recipe.samples() {
            return self.sample(phase, schedules);
        }
        let strategy = phase.recipe.strategy(self.seed, self.keeps);
        let mut budget = Budget::schedules(schedules);
        self.explorer
            .search(self.staged, self.preparation, strategy, &mut budget)
    }

    /// Blocks in any order; of those that find something the first counts, so that the number of threads does not show.
    fn sample(&self, phase: &Phase, schedules: u64) -> Result<Searched, ExploreError> {
        let next = AtomicU64::new(0);
        let first = AtomicU64::new(u64::MAX);
        let results = Mutex::new(BTreeMap::new());
        let work = || {
            loop {
                let block = next.fetch_add(1, Ordering::Relaxed);
                let left = schedules.saturating_sub(block.saturating_mul(BLOCK));
                if left == 0 || block > first.load(Ordering::Relaxed) {
                    return;
                }
                let result = self.block(phase, block, left.min(BLOCK), &first);
                if !matches!(&result, Ok(searched) if searched.found.is_none()) {
                    first.fetch_min(block, Ordering::Relaxed);
                }
                let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                results.insert(block, result);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.threads {
                scope.spawn(work);
            }
            work();
        });
        let mut all = Searched {
            schedules: 0,
            pruned: 0,
            restarts: 0,
            coverage: Coverage::Sampled,
            found: None,
        };
        for searched in results
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .into_values()
        {
            let searched = searched?;
            all.schedules += searched.schedules;
            all.pruned += searched.pruned;
            all.found = searched.found;
            if all.found.is_some() {
                break;
            }
        }
        Ok(all)
    }

    fn block(
        &self,
        phase: &Phase,
        block: u64,
        schedules: u64,
        first: &AtomicU64,
    ) -> Result<Searched, ExploreError> {
        let seed = mixed(self.seed, block);
        let strategy = phase.recipe.strategy(seed, self.keeps);
        // Once an earlier block has found something nobody asks for this one.
        let mut budget =
            Budget::schedules(schedules).while_true(|_| block <= first.load(Ordering::Relaxed));
        self.explorer
            .search(self.staged, self.preparation, strategy, &mut budget)
    }
}

/// A seed for a block: neighbours must not draw alike.
pub(in crate::explore) fn mixed(seed: u64, block: u64) -> u64 {
    let mut word = seed ^ block.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
