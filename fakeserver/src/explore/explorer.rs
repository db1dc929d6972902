//! [`Explorer`]: schedule after schedule until one is wrong, none is left or the budget is spent.

use std::fmt;

use redis::RedisError;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::backend::{Backend, Elsewhere, InProcess};
use super::check::repeats;
use super::confirm::Rehearsal;
use super::facts::Facts;
use super::quiet::Quiet;
use super::run::{self, End, Plan, Record, Run};
use super::schedule::{Choice, Schedule, WorkloadHash};
use super::shrink::{self, Attempt, Found};
use super::stage::Stage;
use super::strategy::{Coverage, Replay, Strategy};
use super::trace::Trace;
use super::{Escape, Faults, Granularity, LANES_MAX, ORIGIN, Workload};
use crate::config::Config;
use crate::wire::Request;

/// Commands that one run may have unless told otherwise: far more than a client with bounded retries sends.
const STEPS_MAX: usize = 10_000;

/// A property that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its name. A schedule is shrunk as long as a property of this name does not hold.
    pub property: String,
    /// What is wrong.
    pub details: String,
}

impl Violation {
    /// Of this property.
    pub fn new(property: impl Into<String>, details: impl Into<String>) -> Violation {
        Violation {
            property: property.into(),
            details: details.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.details)
    }
}

/// A schedule that breaks a property.
#[derive(Clone, Debug)]
pub struct Counterexample {
    /// The property.
    pub violation: Violation,
    /// The schedule, as short as it could be made.
    pub schedule: Schedule,
    /// What ran.
    pub trace: Trace,
    /// How often it takes the turn from a client that could have gone on.
    pub preemptions: usize,
    /// How often a connection breaks.
    pub faults: usize,
    /// What it was shrunk from; none if it was given.
    pub shrunk: Option<Shrunk>,
}

/// The schedule that was found first, and the way to the shortest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shrunk {
    /// Its preemptions.
    pub preemptions: usize,
    /// Its commands.
    pub commands: usize,
    /// Runs that it took.
    pub reruns: usize,
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "violated: {}", self.violation)?;
        writeln!(
            f,
            "schedule: {} ({} commands, {} preemptions, {} faults)",
            self.schedule,
            self.schedule.choices().len(),
            self.preemptions,
            self.faults
        )?;
        write!(f, "{}", self.trace)
    }
}

/// What came of exploring.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// Complete runs.
    pub schedules: u64,
    /// Runs that were given up because the rest had been seen.
    pub pruned: u64,
    /// How often the exploration began anew because a command touched more than was known. The numbers are those since then.
    pub restarts: u64,
    /// How much that is of all there are.
    pub coverage: Coverage,
    /// What is wrong, if something is.
    pub counterexample: Option<Counterexample>,
}

/// What a strategy came upon.
pub(super) struct Searched {
    pub(super) schedules: u64,
    pub(super) pruned: u64,
    pub(super) restarts: u64,
    pub(super) coverage: Coverage,
    pub(super) found: Option<Broken>,
}

/// A schedule that breaks a property, as it was come upon.
pub(super) struct Broken {
    pub(super) choices: Vec<Choice>,
    pub(super) preemptions: usize,
    pub(super) violation: Violation,
}

/// Why a workload cannot be explored.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExploreError {
    /// The program did what is not under control.
    #[error("what the program does is not under control: {0}")]
    Escaped(Escape),
    /// The same choices led to another run.
    #[error(
        "the program depends on more than replies and virtual time, or the schedule is another program's: {0}"
    )]
    Diverged(String),
    /// A schedule of another workload.
    #[error("the schedule belongs to workload {schedule}, this is {workload}")]
    WrongWorkload {
        /// What the schedule says.
        schedule: WorkloadHash,
        /// What it was given.
        workload: WorkloadHash,
    },
    /// More clients than letters.
    #[error("{0} clients are too many")]
    TooManyClients(usize),
    /// There is nobody to explore.
    #[error("there are no clients: add some with .clients(..)")]
    NoClients,
    /// The text in [`SCHEDULE`](super::Environment) is none, or another workload's.
    #[error("{variable}: {reason}")]
    Environment {
        /// The variable.
        variable: &'static str,
        /// What is wrong with its value.
        reason: String,
    },
    /// A check gave up.
    #[error("{0}")]
    Undecided(String),
    /// A real server that executes the commands cannot be used.
    #[error("server: {0}")]
    Server(#[from] RedisError),
}

/// How long to go on.
pub struct Budget<'b> {
    schedules: u64,
    go_on: Box<dyn FnMut(u64) -> bool + 'b>,
}

impl<'b> Budget<'b> {
    /// So many runs.
    pub fn schedules(schedules: u64) -> Budget<'b> {
        Budget {
            schedules,
            go_on: Box::new(|_| true),
        }
    }

    /// As long as this says so; it is asked before each run and told how many there were.
    #[must_use]
    pub fn while_true(mut self, go_on: impl FnMut(u64) -> bool + 'b) -> Budget<'b> {
        self.go_on = Box::new(go_on);
        self
    }
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Budget({} schedules)", self.schedules)
    }
}

/// Explores. A test says what, and what must hold, in a chain that [`Explorer::clients`], [`Explorer::serializable_as`] and
/// their like begin, see [`Scenario`](super::Scenario). Below that is the trait [`Workload`], for programs that make their clients:
///
/// ```
/// # #[cfg(feature = "explore")] {
/// use fakeserver::explore::*;
/// use std::{future::Future, pin::Pin};
///
/// /// Two clients that each add one to a counter, without a transaction.
/// struct Counter;
///
/// impl Workload for Counter {
///     type Input = ();
///     type Output = ();
///
///     fn description(&self) -> String {
///         "counter".to_owned()
///     }
///
///     fn clients(&self) -> usize {
///         2
///     }
///
///     fn client(&self, client: Client<(), ()>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
///         Box::pin(async move {
///             let mut connection = client.connect().await.unwrap();
///             let count: Option<i64> = redis::cmd("GET").arg("n").query_async(&mut connection).await.unwrap();
///             let next = count.unwrap_or(0) + 1;
///             redis::cmd("SET").arg("n").arg(next).exec_async(&mut connection).await.unwrap();
///         })
///     }
///
///     fn check(&self, run: &Run<(), ()>) -> Result<(), Violation> {
///         match run.call(["GET", "n"]) {
///             Ok(redis::Value::BulkString(count)) if count == b"2" => Ok(()),
///             other => Err(Violation::new("count", format!("{other:?}"))),
///         }
///     }
/// }
///
/// let found = Explorer::new().explore(&Counter, Box::new(Exhaustive::new(Reduction::None)), Budget::schedules(100))?;
/// let counterexample = found.counterexample.expect("an update gets lost");
/// assert_eq!(counterexample.preemptions, 1);
/// # }
/// # Ok::<(), fakeserver::explore::ExploreError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Explorer {
    faults: Faults,
    steps_max: usize,
    granularity: Granularity,
    elsewhere: Option<redis::Client>,
}

impl Default for Explorer {
    fn default() -> Explorer {
        Explorer {
            faults: Faults::none(),
            steps_max: STEPS_MAX,
            granularity: Granularity::default(),
            elsewhere: None,
        }
    }
}

impl Explorer {
    /// Without faults, on the engine.
    pub fn new() -> Explorer {
        Explorer::default()
    }

    /// Which faults a schedule may hold.
    #[must_use]
    pub fn faults(mut self, faults: Faults) -> Explorer {
        self.faults = faults;
        self
    }

    pub(super) fn faults_allowed(&self) -> Faults {
        self.faults
    }

    /// How many commands a run may have.
    #[must_use]
    pub fn steps_at_most(mut self, steps: usize) -> Explorer {
        self.steps_max = steps;
        self
    }

    /// How finely commands are told apart by what they touch: to the single element, unless told otherwise.
    #[must_use]
    pub fn granularity(mut self, granularity: Granularity) -> Explorer {
        self.granularity = granularity;
        self
    }

    /// Has the commands executed by a real server, one at a time in the order of the schedule. Whatever the workload leaves
    /// there stays: it must clean up, or use keys of its own for each run.
    #[must_use]
    pub fn on(mut self, server: redis::Client) -> Explorer {
        self.elsewhere = Some(server);
        self
    }

    /// Runs schedules until one breaks a property, none is left or the budget is spent.
    ///
    /// # Errors
    /// If the workload cannot be explored, see [`ExploreError`].
    pub fn explore<W: Workload>(
        &self,
        workload: &W,
        strategy: Box<dyn Strategy>,
        mut budget: Budget<'_>,
    ) -> Result<Exploration, ExploreError> {
        let preparation = self.preparation(workload)?;
        let searched = self.search(workload, &preparation, strategy, &mut budget)?;
        let counterexample = match searched.found {
            Some(found) => Some(self.shrink(workload, &preparation, &found)?),
            None => None,
        };
        Ok(Exploration {
            schedules: searched.schedules,
            pruned: searched.pruned,
            restarts: searched.restarts,
            coverage: searched.coverage,
            counterexample,
        })
    }

    /// As [`Explorer::explore`], but what is found stays as it is.
    pub(super) fn search<W: Workload>(
        &self,
        workload: &W,
        preparation: &[Request],
        mut strategy: Box<dyn Strategy>,
        budget: &mut Budget<'_>,
    ) -> Result<Searched, ExploreError> {
        let mut searched = Searched {
            schedules: 0,
            pruned: 0,
            restarts: 0,
            coverage: Coverage::Sampled,
            found: None,
        };
        let (mut stage, mut facts) = (None, Facts::new(self.granularity));
        let mut complete = 0;
        let _quiet = Quiet::begin();
        loop {
            if complete >= budget.schedules || !(budget.go_on)(complete) {
                return Ok(searched);
            }
            if !strategy.begin() {
                searched.coverage = strategy.coverage();
                return Ok(searched);
            }
            let mut plan = self.plan(strategy, preparation, stage.take());
            plan.facts = facts;
            if workload.needs_trace() {
                plan.record = Record::Trace;
            }
            let run = run::run(workload, plan)?;
            facts = run.take_facts();
            let verdict = judge(workload, &run)?;
            if run.end == End::Pruned {
                searched.pruned += 1;
            } else {
                searched.schedules += 1;
                complete += 1;
            }
            if let Some(violation) = verdict {
                searched.found = Some(Broken {
                    choices: run.choices.clone(),
                    preemptions: run.preemptions,
                    violation,
                });
                return Ok(searched);
            }
            let Some(back) = run.take_strategy() else {
                return Ok(searched);
            };
            strategy = back;
            stage = Some(run.into_stage());
            if facts.take_change() && strategy.restart() {
                searched.restarts += 1;
                (searched.schedules, searched.pruned) = (0, 0);
            }
        }
    }

    /// Runs one schedule again; what it breaks, or nothing.
    ///
    /// # Errors
    /// [`ExploreError::WrongWorkload`], or [`ExploreError::Diverged`] if a choice is not possible.
    pub fn replay<W: Workload>(
        &self,
        workload: &W,
        schedule: &Schedule,
    ) -> Result<Replayed, ExploreError> {
        let preparation = self.preparation(workload)?;
        let run = self.run_again(workload, schedule, &preparation)?;
        let violation = judge(workload, &run)?;
        let trace = run.trace.clone().unwrap_or_default();
        Ok(match violation {
            None => Replayed::Holds(trace),
            Some(violation) => Replayed::Breaks(Box::new(Counterexample {
                violation,
                schedule: Schedule::new(schedule.workload(), run.choices.clone()),
                trace,
                preemptions: run.preemptions,
                faults: count_faults(&run.choices),
                shrunk: None,
            })),
        })
    }

    /// Runs one schedule again, to have its commands tried on a real server, see [`Rehearsal::confirm_on`].
    ///
    /// # Errors
    /// As for [`Explorer::replay`].
    pub fn rehearse<W: Workload>(
        &self,
        workload: &W,
        schedule: &Schedule,
    ) -> Result<Rehearsal, ExploreError> {
        let preparation = self.preparation(workload)?;
        let run = self.run_again(workload, schedule, &preparation)?;
        let (left, ended) = run.left()?;
        Ok(Rehearsal {
            trace: run.trace.unwrap_or_default(),
            preparation,
            left,
            ended,
        })
    }

    fn run_again<W: Workload>(
        &self,
        workload: &W,
        schedule: &Schedule,
        preparation: &[Request],
    ) -> Result<Run<W::Input, W::Output>, ExploreError> {
        let hash = WorkloadHash::of(&workload.description());
        if schedule.workload() != hash {
            return Err(ExploreError::WrongWorkload {
                schedule: schedule.workload(),
                workload: hash,
            });
        }
        let _quiet = Quiet::begin();
        let replay = Box::new(Replay::new(schedule.choices().to_vec()));
        let mut plan = self.plan(replay, preparation, None);
        plan.record = Record::Changes;
        plan.faults.allow(schedule.choices());
        let run = run::run(workload, plan)?;
        match &run.end {
            End::Diverged(how) => Err(ExploreError::Diverged(how.clone())),
            End::Escaped(escape) => Err(ExploreError::Escaped(escape.clone())),
            _ => Ok(run),
        }
    }

    /// As short as it can be made.
    pub(super) fn shrink<W: Workload>(
        &self,
        workload: &W,
        preparation: &[Request],
        broken: &Broken,
    ) -> Result<Counterexample, ExploreError> {
        let _quiet = Quiet::begin();
        let mut attempt = |choices: Vec<Choice>| -> Result<Attempt, ExploreError> {
            let mut plan = self.plan(Box::new(Replay::leniently(choices)), preparation, None);
            plan.record = Record::Trace;
            let run = run::run(workload, plan)?;
            Ok(judge(workload, &run)?.map(|violation| Found {
                steps: run.trace.map(|trace| trace.steps).unwrap_or_default(),
                preemptions: run.preemptions,
                violation,
            }))
        };
        let again = attempt(broken.choices.clone())?;
        let again = again.filter(|again| again.choices() == broken.choices);
        let Some(found) = again else {
            return Err(ExploreError::Diverged(format!(
                "a schedule broke {} once, and then no more",
                broken.violation
            )));
        };
        let (found, reruns) = shrink::shrink(found, &mut attempt)?;
        let hash = WorkloadHash::of(&workload.description());
        let schedule = Schedule::new(hash, found.choices());
        match self.replay(workload, &schedule)? {
            Replayed::Breaks(counterexample) => Ok(Counterexample {
                shrunk: Some(Shrunk {
                    preemptions: broken.preemptions,
                    commands: broken.choices.len(),
                    reruns,
                }),
                ..*counterexample
            }),
            Replayed::Holds(_) => Err(ExploreError::Diverged(format!(
                "{schedule} broke {} once, and then no more",
                found.violation
            ))),
        }
    }

    pub(super) fn preparation<W: Workload>(
        &self,
        workload: &W,
    ) -> Result<Vec<Request>, ExploreError> {
        if workload.clients() > LANES_MAX {
            return Err(ExploreError::TooManyClients(workload.clients()));
        }
        Ok(run::prepare(workload, Stage::new(self.backend()))?)
    }

    fn plan<'p>(
        &self,
        strategy: Box<dyn Strategy>,
        preparation: &'p [Request],
        stage: Option<Stage>,
    ) -> Plan<'p> {
        let stage = stage.and_then(Stage::renewed);
        Plan {
            stage: stage.unwrap_or_else(|| Stage::new(self.backend())),
            strategy,
            preparation,
            facts: Facts::new(self.granularity),
            faults: self.faults,
            steps_max: self.steps_max,
            record: Record::Choices,
        }
    }

    fn backend(&self) -> Box<dyn Backend> {
        match &self.elsewhere {
            Some(client) => Box::new(Elsewhere::new(client.clone())),
            None => Box::new(InProcess::new(Config::default(), ORIGIN)),
        }
    }
}

/// What a schedule did when it ran again.
#[derive(Clone, Debug)]
pub enum Replayed {
    /// Nothing wrong.
    Holds(Trace),
    /// A property is broken.
    Breaks(Box<Counterexample>),
}

fn count_faults(choices: &[Choice]) -> usize {
    choices.iter().filter(|choice| choice.is_fault()).count()
}

/// What is wrong with a run, if something is. Errors: a run that says nothing about the workload.
fn judge<W: Workload>(
    workload: &W,
    run: &Run<W::Input, W::Output>,
) -> Result<Option<Violation>, ExploreError> {
    match &run.end {
        End::Complete => Ok(workload.check(run).err()),
        End::Broken(violation) => Ok(Some(violation.clone())),
        End::Pruned => Ok(None),
        End::Deadlock(who) => Ok(Some(Violation::new(
            "deadlock",
            format!("nobody can go on, and no time-out will help; {who}"),
        ))),
        End::StepLimit(steps) => Ok(Some(Violation::new(
            "step limit",
            format!("not at an end after {steps} commands{}", repeats_of(run)),
        ))),
        End::Panicked(text) => Ok(Some(Violation::new("panic", text.clone()))),
        End::Diverged(how) => Err(ExploreError::Diverged(how.clone())),
        End::Escaped(escape) => Err(ExploreError::Escaped(escape.clone())),
    }
}

/// What goes round in circles, if the run was recorded.
fn repeats_of<I, O>(run: &Run<I, O>) -> String {
    let repeats = run.trace.as_ref().map(repeats);
    let texts = repeats.into_iter().flatten().map(|one| format!("; {one}"));
    texts.collect()
}
