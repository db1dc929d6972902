//! [`Scenario`]: what a test says, in a chain: who the clients are, what must hold, how far to search.

mod closures;
mod environment;
mod portfolio;
mod report;
mod search;

use std::fmt::{self, Write as _};
use std::future::Future;
use std::num::NonZero;
use std::sync::Arc;

pub use closures::Ending;
pub use environment::Environment;
pub use portfolio::{Keeps, Phase, Recipe};
pub use report::{PhaseReport, Report};

use super::check::{self, Order, Spec, Verdict, caught, find_lost_update};
use super::{
    Client, Confirmation, Connector, Database, Exhaustive, ExploreError, Explorer, Faults,
    RandomWalk, Run, Schedule, Violation,
};
use closures::{Group, Setup, Staged};

/// Schedules of the strategies that a scenario has unless it names others.
const EXHAUSTIVE_SCHEDULES: u64 = 50_000;
const RANDOM_SCHEDULES: u64 = 5_000;

/// A property of a complete run.
type Check<I, O> = Box<dyn Fn(&Run<I, O>) -> Result<(), Flaw> + Send + Sync>;
/// A property of the keys after each step.
type Invariant = Arc<dyn Fn(&mut Database<'_>) -> Result<(), Violation> + Send + Sync>;

/// Named as broken where a check gave up; the search ends with it as with any other.
const UNDECIDED: &str = "undecided";

/// What a check says of a run that it does not like.
enum Flaw {
    Broken(Violation),
    Undecided(String),
}

/// Clients as closures, what must hold, and how far to search. Begun by the methods of [`Explorer`], run by
/// [`Scenario::check`] or [`Scenario::explore`].
///
/// ```should_panic
/// # #[cfg(feature = "explore")] {
/// use fakeserver::explore::Explorer;
/// use redis::AsyncCommands;
///
/// Explorer::new()
///     .clients(2, |cx| async move {
///         let mut con = cx.connect().await?;
///         let n: Option<i64> = con.get("n").await?;
///         con.set::<_, _, ()>("n", n.unwrap_or(0) + 1).await
///     })
///     .at_end("both were counted", |db| db.get::<i64>("n") == Some(2))
///     .check(); // panics: abba
/// # }
/// # #[cfg(not(feature = "explore"))]
/// # panic!();
/// ```
pub struct Scenario<I, O> {
    explorer: Explorer,
    name: Option<String>,
    setup: Option<Setup>,
    groups: Vec<Group<I, O>>,
    phases: Vec<Phase>,
    checks: Vec<Check<I, O>>,
    invariants: Vec<Invariant>,
    progress_within: Option<u64>,
    needs_trace: bool,
    keeps: Keeps,
    confirm_on: Option<String>,
    search_max: usize,
    seed: u64,
    threads: usize,
    environment: Environment,
}

impl<I, O> fmt::Debug for Scenario<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scenario")
            .field("name", &self.name)
            .field("clients", &self.client_count())
            .field("explorer", &self.explorer)
            .finish_non_exhaustive()
    }
}

impl<I, O> Scenario<I, O> {
    fn client_count(&self) -> usize {
        self.groups.iter().map(|group| group.count).sum()
    }
}

impl Explorer {
    /// Begins a scenario whose clients mark operations of these types.
    pub fn history<I, O>(self) -> Scenario<I, O>
    where
        I: Clone + fmt::Debug + Send + 'static,
        O: Clone + fmt::Debug + Send + 'static,
    {
        Scenario {
            explorer: self,
            name: None,
            setup: None,
            groups: Vec::new(),
            phases: Vec::new(),
            checks: Vec::new(),
            invariants: Vec::new(),
            progress_within: None,
            needs_trace: false,
            keeps: Keeps::default(),
            confirm_on: None,
            search_max: check::SEARCH_MAX,
            seed: 0,
            threads: 1,
            environment: Environment::of_process(),
        }
    }

    /// Begins a scenario. See [`Scenario::serializable_as`].
    pub fn serializable_as<S: Spec>(self, spec: S) -> Scenario<S::Input, S::Output> {
        self.history().serializable_as(spec)
    }

    /// Begins a scenario. See [`Scenario::linearizable_as`].
    pub fn linearizable_as<S: Spec>(self, spec: S) -> Scenario<S::Input, S::Output> {
        self.history().linearizable_as(spec)
    }

    /// Begins a scenario whose clients mark no operations. See [`Scenario::setup`].
    pub fn setup<F, Fut>(self, setup: F) -> Scenario<(), ()>
    where
        F: Fn(Connector) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: Ending> + Send + 'static,
    {
        self.history().setup(setup)
    }

    /// Begins a scenario whose clients mark no operations. See [`Scenario::clients`].
    pub fn clients<F, Fut>(self, count: usize, run: F) -> Scenario<(), ()>
    where
        F: Fn(Client<(), ()>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: Ending> + Send + 'static,
    {
        self.history().clients(count, run)
    }

    /// Begins a scenario whose clients mark no operations. See [`Scenario::client`].
    pub fn client<F, Fut>(self, run: F) -> Scenario<(), ()>
    where
        F: Fn(Client<(), ()>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: Ending> + Send + 'static,
    {
        self.history().client(run)
    }
}

/// Who does what.
impl<I, O> Scenario<I, O>
where
    I: Clone + fmt::Debug + Send + 'static,
    O: Clone + fmt::Debug + Send + 'static,
{
    /// Names it in reports and schedules. Without a name it is known by the functions that its clients were written in, which is
    /// enough unless one function makes several scenarios.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// What happens before each schedule, alone. Its commands are taken down once and repeated, so it may not depend on chance.
    #[must_use]
    pub fn setup<F, Fut>(mut self, setup: F) -> Self
    where
        F: Fn(Connector) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: Ending> + Send + 'static,
    {
        self.setup = Some(closures::setup(setup));
        self
    }

    /// So many clients that do this; [`Client::index`] tells them apart. One that ends with an error breaks the property "no
    /// client fails", unless [`Scenario::may_fail`] follows.
    #[must_use]
    pub fn clients<F, Fut>(mut self, count: usize, run: F) -> Self
    where
        F: Fn(Client<I, O>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: Ending> + Send + 'static,
    {
        self.groups.push(Group::new(count, run));
        self
    }

    /// One client that does this.
    #[must_use]
    pub fn client<F, Fut>(self, run: F) -> Self
    where
        F: Fn(Client<I, O>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: Ending> + Send + 'static,
    {
        self.clients(1, run)
    }

    /// The clients added last may end with an error: one that gives up when its connection breaks, for instance.
    #[must_use]
    pub fn may_fail(mut self) -> Self {
        if let Some(group) = self.groups.last_mut() {
            group.may_fail = true;
        }
        self
    }
}

/// What must hold.
impl<I, O> Scenario<I, O>
where
    I: Clone + fmt::Debug + Send + 'static,
    O: Clone + fmt::Debug + Send + 'static,
{
    /// Holds after each step. It makes the order of all writes matter, so that a reduction leaves out less; what need hold only
    /// when all is done is cheaper with [`Scenario::at_end`].
    #[must_use]
    pub fn invariant<V: Verdict>(
        mut self,
        name: impl Into<String>,
        holds: impl Fn(&mut Database<'_>) -> V + Send + Sync + 'static,
    ) -> Self {
        let name = name.into();
        self.invariants.push(Arc::new(move |database| {
            caught(|| holds(database)).map_err(|text| Violation::new(name.clone(), text))
        }));
        self
    }

    /// Holds after the last step.
    #[must_use]
    pub fn at_end<V: Verdict>(
        self,
        name: impl Into<String>,
        holds: impl Fn(&mut Database<'_>) -> V + Send + Sync + 'static,
    ) -> Self {
        self.verify(name, move |run| run.look(|database| holds(database)))
    }

    /// Holds for complete runs: their history, their choices, their trace, and the keys that [`Run::look`] shows.
    #[must_use]
    pub fn verify<V: Verdict>(
        mut self,
        name: impl Into<String>,
        holds: impl Fn(&Run<I, O>) -> V + Send + Sync + 'static,
    ) -> Self {
        let name = name.into();
        self.checks.push(Box::new(move |run| {
            caught(|| holds(run)).map_err(|text| Flaw::Broken(Violation::new(name.clone(), text)))
        }));
        self
    }

    /// The operations that clients mark come out as if they had run one after the other, in an order in which each client's own
    /// are in theirs.
    #[must_use]
    pub fn serializable_as<S: Spec<Input = I, Output = O>>(self, spec: S) -> Self {
        self.serial_as(spec, Order::PerClient)
    }

    /// The operations that clients mark come out as if each had happened at one moment between its call and its return. No
    /// reduction that loses the order in real time is used with this.
    #[must_use]
    pub fn linearizable_as<S: Spec<Input = I, Output = O>>(mut self, spec: S) -> Self {
        self.keeps = self.keeps.max(Keeps::RealTime);
        self.serial_as(spec, Order::RealTime)
    }

    fn serial_as<S: Spec<Input = I, Output = O>>(mut self, spec: S, order: Order) -> Self {
        let most = self.search_max;
        self.checks.push(Box::new(move |run| {
            match check::search(&spec, order, &run.history, most) {
                check::Serial::Explained => Ok(()),
                check::Serial::Unexplained(text) => {
                    Err(Flaw::Broken(Violation::new(order.to_string(), text)))
                }
                check::Serial::Undecided {
                    operations,
                    looked_at,
                } => Err(Flaw::Undecided(format!(
                    "whether a history of {operations} operations is {order} was not decided within {looked_at} steps of the \
                     search: split the state with Spec::part, or mark fewer operations"
                ))),
            }
        }));
        self
    }

    /// No client overwrites what another wrote after it has read. A warning rather than a proof: a client may overwrite on
    /// purpose, and one that reads here to write there is not seen.
    #[must_use]
    pub fn deny_lost_updates(mut self) -> Self {
        self.needs_trace = true;
        self.checks.push(Box::new(|run| match &run.trace {
            Some(trace) => find_lost_update(trace).map_err(Flaw::Broken),
            None => Ok(()),
        }));
        self
    }

    /// Among so many commands in a row an operation returns, or a client comes to its end; commands that nobody else sees do not
    /// count. No reduction is used that would change that number.
    #[must_use]
    pub fn progress_within(mut self, commands: u64) -> Self {
        self.progress_within = Some(commands);
        self.keeps = Keeps::Steps;
        self
    }

    /// How many commands a run may have: more is a client that tries again without a bound.
    #[must_use]
    pub fn steps_at_most(mut self, steps: usize) -> Self {
        self.explorer = self.explorer.steps_at_most(steps);
        self
    }
}

/// How far to search.
impl<I, O> Scenario<I, O>
where
    I: Clone + fmt::Debug + Send + 'static,
    O: Clone + fmt::Debug + Send + 'static,
{
    /// Which faults a schedule may hold.
    #[must_use]
    pub fn faults(mut self, faults: Faults) -> Self {
        self.explorer = self.explorer.faults(faults);
        self
    }

    /// Searches with this strategy: a [`Recipe`], or one with a budget ([`Recipe::schedules`]). Without any, all interleavings
    /// are tried up to a budget, then random ones.
    #[must_use]
    pub fn strategy(mut self, phase: impl Into<Phase>) -> Self {
        self.phases = vec![phase.into()];
        self
    }

    /// Searches with this strategy afterwards, unless the ones before have seen everything.
    #[must_use]
    pub fn then(mut self, phase: impl Into<Phase>) -> Self {
        self.phases.push(phase.into());
        self
    }

    /// Has what is found tried on this real server, which must be empty: its commands are sent in the order of the schedule, and
    /// every reply compared.
    #[must_use]
    pub fn confirm_on(mut self, url: impl Into<String>) -> Self {
        self.confirm_on = Some(url.into());
        self
    }

    /// Where random schedules begin; `EXPLORER_SEED` overrides it.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How many threads run schedules of strategies that sample. What is found does not depend on it. A strategy that goes
    /// through all schedules stays on one thread, since each schedule follows from the one before.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        let most = std::thread::available_parallelism().map_or(1, NonZero::get);
        self.threads = threads.clamp(1, most.max(2));
        self
    }

    /// How many steps the search of [`Scenario::serializable_as`] and [`Scenario::linearizable_as`] may take for one history,
    /// [`SEARCH_MAX`](super::SEARCH_MAX) if nothing is said; for those that follow.
    #[must_use]
    pub fn search_at_most(mut self, steps: usize) -> Self {
        self.search_max = steps;
        self
    }

    /// What the process' environment variables say, for a program that reads them elsewhere.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Searches, and panics with a report if something is wrong. If nothing is, the report says how much was seen.
    ///
    /// With `EXPLORER_SCHEDULE` set this runs that one schedule; with `EXPLORER_HTML` set to a folder what is found is written
    /// there as a page.
    ///
    /// # Panics
    /// If a property is broken, or the scenario cannot be explored.
    #[track_caller]
    pub fn check(self) -> Report {
        self.holds().unwrap_or_else(|text| panic!("\n{text}\n"))
    }

    /// As [`Scenario::check`], for a caller that has something to do before it fails: the text of the panic is the error.
    ///
    /// With proptest a workload shrinks together with its schedule: the strategy makes the workload, each candidate is explored
    /// with the same budget, and the property fails with the shortest schedule of the smallest workload.
    ///
    /// ```
    /// # #[cfg(feature = "explore")] {
    /// use fakeserver::explore::Explorer;
    ///
    /// /// For `proptest!`: `additions in vec(1..5_i64, 1..4)`, then `additions_add_up(additions).map_err(TestCaseError::fail)?`
    /// fn additions_add_up(additions: Vec<i64>) -> Result<(), String> {
    ///     let sum = additions.iter().sum::<i64>();
    ///     let scenario = Explorer::new().clients(additions.len(), move |cx| {
    ///         let add = additions[cx.index()];
    ///         async move {
    ///             let mut con = cx.connect().await?;
    ///             redis::cmd("INCRBY").arg("n").arg(add).exec_async(&mut con).await
    ///         }
    ///     });
    ///     let scenario = scenario.at_end("all were added", move |db| db.get("n") == Some(sum));
    ///     scenario.holds().map(drop)
    /// }
    ///
    /// assert_eq!(additions_add_up(vec![1, 2, 3]), Ok(()));
    /// # }
    /// ```
    ///
    /// # Errors
    /// The report, or why there is none.
    pub fn holds(&self) -> Result<Report, String> {
        match self.explore() {
            Ok(report) if report.counterexample.is_none() => Ok(report),
            Ok(report) => Err(format!("{report}{}", self.page(&report))),
            Err(error) => Err(format!("cannot explore {}: {error}", self.title())),
        }
    }

    /// Searches, and returns what was seen.
    ///
    /// # Errors
    /// If the scenario cannot be explored, see [`ExploreError`].
    pub fn explore(&self) -> Result<Report, ExploreError> {
        if self.client_count() == 0 {
            return Err(ExploreError::NoClients);
        }
        search::explore(self)
    }

    /// Writes the report's page if one is wanted; a line that says where it is.
    fn page(&self, report: &Report) -> String {
        let (Some(folder), Some(shown)) = (self.environment.pages(), report.shown()) else {
            return String::new();
        };
        let name = report.test.as_ref().unwrap_or(&report.name);
        let plain = |letter: char| {
            if letter.is_alphanumeric() {
                letter
            } else {
                '-'
            }
        };
        let path = folder.join(format!(
            "{}.html",
            name.chars().map(plain).collect::<String>()
        ));
        let written =
            std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, shown.html()));
        match written {
            Ok(()) => format!("\npage: {}", path.display()),
            Err(error) => format!("\npage: cannot write {}: {error}", path.display()),
        }
    }

    /// What a real server makes of a schedule, if one is to be asked.
    fn confirm(
        &self,
        staged: &Staged<'_, I, O>,
        schedule: &Schedule,
    ) -> Result<Option<Result<Confirmation, String>>, ExploreError> {
        let Some(url) = &self.confirm_on else {
            return Ok(None);
        };
        let rehearsal = self.explorer.rehearse(staged, schedule)?;
        let confirmed = rehearsal.confirm_on(url);
        Ok(Some(confirmed.map_err(|error| error.to_string())))
    }

    fn phases(&self) -> Vec<Phase> {
        if !self.phases.is_empty() {
            return self.phases.clone();
        }
        let all = Exhaustive::source_dpor().schedules(EXHAUSTIVE_SCHEDULES);
        let random = RandomWalk::new(self.seed).schedules(RANDOM_SCHEDULES);
        vec![all, random]
    }

    fn staged(&self) -> Staged<'_, I, O> {
        Staged(self)
    }

    /// For a reader.
    fn title(&self) -> String {
        let name = self.name.clone();
        name.unwrap_or_else(|| {
            self.groups
                .first()
                .map_or("", |group| group.origin)
                .to_owned()
        })
    }

    /// Names it down to what its schedules depend on, and no further: not where in its file it stands.
    fn description(&self) -> String {
        let mut text = self.name.clone().unwrap_or_default();
        for group in &self.groups {
            let origin = if self.name.is_none() {
                group.origin
            } else {
                ""
            };
            // Writing to a string cannot fail.
            let _ = write!(text, "; {} clients {origin}", group.count);
        }
        let _ = write!(text, "; {:?}", self.explorer.faults_allowed());
        text
    }
}
