//! The hunt: jobs on all cores, each as exhaustive as its time allows.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fakeserver::explore::{
    Budget, Counterexample, Coverage, Exhaustive, ExploreError, Explorer, Pct, RandomWalk,
    Reduction, Strategy,
};
use indicatif::ProgressBar;

use crate::control::Flaw;
use crate::scenario::{Hunt, Scenario};

/// What to hunt for, and how long.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which scenarios.
    pub scenarios: Vec<Scenario>,
    /// With how many clients, one after the other.
    pub clients: Vec<usize>,
    /// How many broken connections a schedule may have, one after the other.
    pub faults: Vec<usize>,
    /// For how long all in all.
    pub time: Duration,
    /// Where the random schedules begin.
    pub seed: u64,
}

/// What became of a scenario.
#[derive(Clone, Debug)]
pub struct Hunted {
    /// Which.
    pub scenario: Scenario,
    /// With how many clients.
    pub clients: usize,
    /// With at most how many faults in a schedule.
    pub faults: usize,
    /// How many schedules ran to their end.
    pub schedules: u64,
    /// How many those are of all.
    pub coverage: Coverage,
    /// How they were chosen.
    pub by: &'static str,
    /// What is wrong, if something is.
    pub counterexample: Option<Counterexample>,
}

/// What became of a broken store.
#[derive(Clone, Debug)]
pub struct Control {
    /// Which.
    pub flaw: Flaw,
    /// How many schedules it took.
    pub schedules: u64,
    /// What is wrong with it; none if it escaped.
    pub counterexample: Option<Counterexample>,
}

/// How far a broken store is looked into.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// Most preemptions of a schedule.
    pub preemptions_max: usize,
    /// Most schedules with one number of preemptions.
    pub schedules_max: u64,
}

impl Default for Search {
    fn default() -> Search {
        // Ours need one preemption and a handful of schedules.
        Search {
            preemptions_max: 2,
            schedules_max: 20_000,
        }
    }
}

/// Hunts a broken store: schedules without preemption first, then with one, and so on, so that what is found is short.
///
/// # Errors
/// If the scenario cannot be explored.
pub fn catch(hunt: &Hunt, flaw: Flaw, search: Search) -> Result<Control, ExploreError> {
    let explorer = Explorer::new().faults(flaw.faults());
    let mut control = Control {
        flaw,
        schedules: 0,
        counterexample: None,
    };
    for preemptions in 0..=search.preemptions_max {
        let strategy = Exhaustive::new(Reduction::LocalFirst).preemptions_at_most(preemptions);
        let budget = Budget::schedules(search.schedules_max);
        let exploration = explorer.explore(hunt, Box::new(strategy), budget)?;
        control.schedules += exploration.schedules;
        control.counterexample = exploration.counterexample;
        if control.counterexample.is_some() || exploration.coverage == Coverage::Exhaustive {
            break;
        }
    }
    Ok(control)
}

/// So many clients have few enough orders that none is favoured; of more, few changes of turn are tried first.
const WALK_CLIENTS_MAX: usize = 3;

/// Hunts the store in one scenario: one schedule of each class of those that differ only in the order of commands that commute,
/// if they can be had in half of the time; random ones else.
///
/// # Errors
/// If the scenario cannot be explored.
pub fn hunt(
    hunt: &Hunt,
    faults: usize,
    time: Duration,
    seed: u64,
    progress: &ProgressBar,
) -> Result<Hunted, ExploreError> {
    let explorer = Explorer::new().faults(Hunt::faults(faults));
    let mut hunted = Hunted {
        scenario: hunt.scenario,
        clients: hunt.clients,
        faults,
        schedules: 0,
        coverage: Coverage::Exhaustive,
        by: "DPOR",
        counterexample: None,
    };
    let begin = Instant::now();
    let within = |limit: Duration| {
        move |_: u64| {
            progress.inc(1);
            begin.elapsed() < limit
        }
    };
    let all = Box::new(Exhaustive::source_dpor());
    let budget = Budget::schedules(u64::MAX).while_true(within(time / 2));
    let exploration = explorer.explore(hunt, all, budget)?;
    hunted.schedules = exploration.schedules;
    hunted.coverage = exploration.coverage;
    hunted.counterexample = exploration.counterexample;
    if hunted.coverage == Coverage::Exhaustive || hunted.counterexample.is_some() {
        return Ok(hunted);
    }
    let (sample, by): (Box<dyn Strategy>, _) = if hunt.clients > WALK_CLIENTS_MAX {
        (Box::new(Pct::depths(1..=3).seed(seed)), "DPOR, then PCT")
    } else {
        (Box::new(RandomWalk::new(seed)), "DPOR, then random")
    };
    hunted.by = by;
    let budget = Budget::schedules(u64::MAX).while_true(within(time));
    let exploration = explorer.explore(hunt, sample, budget)?;
    hunted.schedules += exploration.schedules;
    hunted.counterexample = exploration.counterexample;
    Ok(hunted)
}

/// Hunts all of a plan; cheap jobs come first and leave their time to the others.
///
/// # Errors
/// If a scenario cannot be explored.
pub fn hunt_all(plan: &Plan, progress: &ProgressBar) -> Result<Vec<Hunted>, ExploreError> {
    let mut jobs = Vec::new();
    for clients in &plan.clients {
        for faults in &plan.faults {
            for scenario in &plan.scenarios {
                jobs.push((*scenario, *clients, *faults));
            }
        }
    }
    let threads = threads();
    let deadline = Instant::now() + plan.time;
    let run = |(scenario, clients, faults): (Scenario, usize, usize), left: usize| {
        let name = scenario.name();
        progress.set_message(format!("{name}, {clients} clients, {faults} faults"));
        let time = deadline.saturating_duration_since(Instant::now());
        let share = time * threads as u32 / (left.max(threads) as u32);
        hunt(
            &Hunt::new(scenario, clients),
            faults,
            share,
            plan.seed,
            progress,
        )
    };
    let mut hunted = in_parallel(jobs, run)?;
    hunted.sort_by_key(|one| (one.scenario, one.clients, one.faults));
    Ok(hunted)
}

/// Hunts all broken stores.
///
/// # Errors
/// If a scenario cannot be explored.
pub fn catch_all(flaws: &[Flaw], progress: &ProgressBar) -> Result<Vec<Control>, ExploreError> {
    let run = |flaw: Flaw, _| {
        progress.set_message(format!("control: {}", flaw.name()));
        let control = catch(&Hunt::control(flaw), flaw, Search::default())?;
        progress.inc(control.schedules);
        Ok(control)
    };
    let mut controls = in_parallel(flaws.to_vec(), run)?;
    controls.sort_by_key(|control| control.flaw);
    Ok(controls)
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Runs jobs on all cores, in order. The second argument of a job is how many were left when it began.
fn in_parallel<J: Send, T: Send>(
    jobs: Vec<J>,
    run: impl Fn(J, usize) -> Result<T, ExploreError> + Sync,
) -> Result<Vec<T>, ExploreError> {
    let jobs = Mutex::new(VecDeque::from(jobs));
    let results = Mutex::new(Vec::new());
    let next = || {
        let mut jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let left = jobs.len();
        jobs.pop_front().map(|job| (job, left))
    };
    std::thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(|| {
                while let Some((job, left)) = next() {
                    let result = run(job, left);
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    results.push(result);
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().collect()
}
