//! The race sweep: two programs in any language under every schedule with a single preemption, and under every single fault.
//!
//! # How it works
//! Each program has an address of its own. What it sends arrives here and runs on an engine that nobody else uses, with a clock
//! that stands still; the commands of whoever is not on turn wait. So a run needs no settle time and repeats itself exactly. What
//! is right is not specified: a run is wrong if its outcome (how the programs ended, what they printed, the key space) is that of
//! no serial order.
//!
//! # Layout
//! * [`Sweep`]: what to run and how; [`Report`]: what came of it
//! * `conductor.rs`: one run; `doors.rs`, `program.rs`: the programs and their connections; `upstream.rs`: the server
//! * `search.rs`: which schedules there are, which of them can matter, and what is right
//! * `labels.rs`, `outcome.rs`, `snapshot.rs`: outcomes that can be compared
//!
//! # What it does not do
//! Two preemptions, three programs, and what programs do to each other other than through the server.

mod atoms;
mod cause;
mod conductor;
mod doors;
mod frame;
mod html;
mod labels;
mod outcome;
mod polls;
mod program;
mod remote;
mod repair;
pub mod report;
mod schedule;
mod search;
mod seen;
mod snapshot;
mod stage;
mod step;
mod tell;
mod text;
mod upstream;
mod view;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use thiserror::Error;

pub use outcome::Compare;
pub use program::{HostError, LaunchError};
pub use report::Report;
pub use schedule::{Act, Kind, Role, Schedule, ScheduleError};

use crate::clock::Timestamp;
use labels::Labels;
use outcome::Rules;
use program::{Closure, Program};
use remote::{Address, RemoteSource};
use report::{Confirmed, Ending, Finding, Programs, Reference, Shown, ShownStep};
use search::{Candidate, EmbeddedSource, Origin, Search, order_text};
use stage::{Limits, Stage};

/// Why a sweep could not be done.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SweepError {
    /// There is nothing to sweep.
    #[error("there is no program to sweep")]
    NoProgram,
    /// A program cannot be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The setup failed.
    #[error("the setup failed: {0}")]
    Setup(String),
    /// A program failed before it had sent anything.
    #[error("{role} fails before it sends a command: {said}")]
    Mute {
        /// Which.
        role: Role,
        /// What it said.
        said: String,
    },
    /// A program does not end by itself.
    #[error(
        "{role} does not end by itself ({order}): a worker has to stop when there is nothing left to do"
    )]
    Endless {
        /// Which.
        role: Role,
        /// In which serial order.
        order: String,
    },
    /// The host of the programs.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A program goes on though all its connections are closed.
    #[error("a program does not end, although its connections are closed")]
    Unending,
    /// The server that the programs are to talk to.
    #[error("the server: {0}")]
    Server(#[source] io::Error),
    /// Not the address of a server.
    #[error("`{0}` is not an address of the form redis://[[user]:password@]host[:port]")]
    Url(String),
    /// No socket, or no runtime.
    #[error("cannot listen: {0}")]
    Listen(#[source] io::Error),
}

/// What to sweep, and how.
///
/// ```
/// use fakeserver::sweep::Sweep;
/// # use std::io::{BufRead, BufReader, Write};
/// # fn ask(url: &str, commands: &[&str]) -> std::io::Result<Vec<String>> {
/// #     let mut stream = std::net::TcpStream::connect(url.trim_start_matches("redis://"))?;
/// #     let mut reader = BufReader::new(stream.try_clone()?);
/// #     commands.iter().map(|command| {
/// #         stream.write_all(format!("{command}\r\n").as_bytes())?;
/// #         let mut line = String::new();
/// #         reader.read_line(&mut line)?;
/// #         Ok(line.trim().to_owned())
/// #     }).collect()
/// # }
/// // Two clients that count by GET and SET; `ask` sends commands and returns the replies.
/// let count = |url: &str| -> std::io::Result<String> {
///     let seen = ask(url, &["STRLEN n"])?;
///     ask(url, &[&format!("SETRANGE n {} x", &seen[0][1..])])?;
///     Ok(String::new())
/// };
/// let report = Sweep::new().a(count).b(count).run().unwrap();
/// assert_eq!(report.findings[0].kind, "isolation"); // an update is lost
/// ```
#[derive(Clone)]
pub struct Sweep {
    programs: [Option<Program>; Role::ALL.len()],
    kinds: Vec<Kind>,
    rules: Rules,
    limits: Limits,
    seed: u64,
    clock_millis: Option<i64>,
    command_line: Vec<String>,
    confirm: Option<String>,
    is_symmetric: bool,
}

/// One schedule run again.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// What the server saw.
    pub steps: Vec<ShownStep>,
    /// What came of it.
    pub outcome: Shown,
    /// What the schedule was judged to be, if it is wrong.
    pub report: Report,
}

impl Default for Sweep {
    fn default() -> Sweep {
        Sweep::new()
    }
}

impl fmt::Debug for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sweep")
            .field("programs", &self.programs)
            .field("kinds", &self.kinds)
            .finish_non_exhaustive()
    }
}

impl Sweep {
    /// A sweep of nothing yet, of all kinds.
    pub fn new() -> Sweep {
        Sweep {
            programs: Default::default(),
            kinds: Kind::ALL.to_vec(),
            rules: Rules::new(Compare::Content, true, Duration::from_secs(60)),
            limits: Limits {
                time_limit: Duration::from_secs(30),
                patience: Duration::from_secs(1),
            },
            seed: 0,
            clock_millis: None,
            command_line: Vec::new(),
            confirm: None,
            is_symmetric: false,
        }
    }

    fn program(mut self, role: Role, program: Program) -> Sweep {
        if let Some(place) = self.programs.get_mut(role.index()) {
            *place = Some(program);
        }
        self
    }

    /// What a role runs: a function that takes the URL of its server. What it returns counts as its output, an error as a failure.
    #[must_use]
    pub fn role<T: fmt::Debug, E: fmt::Display>(
        self,
        role: Role,
        run: impl Fn(&str) -> Result<T, E> + Send + Sync + 'static,
    ) -> Sweep {
        let closure: Closure = Arc::new(move |url| match run(url) {
            Ok(value) => Ok(format!("{value:?}")),
            Err(error) => Err(error.to_string()),
        });
        self.program(role, Program::Closure(closure))
    }

    /// The same for an asynchronous function; it runs on a runtime of its own.
    #[must_use]
    pub fn role_async<T, E, F>(
        self,
        role: Role,
        run: impl Fn(String) -> F + Send + Sync + 'static,
    ) -> Sweep
    where
        T: fmt::Debug,
        E: fmt::Display,
        F: Future<Output = Result<T, E>>,
    {
        self.role(role, move |url: &str| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| error.to_string())?;
            let result = runtime.block_on(run(url.to_owned()));
            result.map_err(|error| error.to_string())
        })
    }

    /// What fills the server before everything; see [`Sweep::role`].
    #[must_use]
    pub fn setup<T: fmt::Debug, E: fmt::Display>(
        self,
        run: impl Fn(&str) -> Result<T, E> + Send + Sync + 'static,
    ) -> Sweep {
        self.role(Role::Setup, run)
    }

    /// The first program.
    #[must_use]
    pub fn a<T: fmt::Debug, E: fmt::Display>(
        self,
        run: impl Fn(&str) -> Result<T, E> + Send + Sync + 'static,
    ) -> Sweep {
        self.role(Role::A, run)
    }

    /// The second program.
    #[must_use]
    pub fn b<T: fmt::Debug, E: fmt::Display>(
        self,
        run: impl Fn(&str) -> Result<T, E> + Send + Sync + 'static,
    ) -> Sweep {
        self.role(Role::B, run)
    }

    /// What runs at the end of each run, a recovery or a reader.
    #[must_use]
    pub fn after<T: fmt::Debug, E: fmt::Display>(
        self,
        run: impl Fn(&str) -> Result<T, E> + Send + Sync + 'static,
    ) -> Sweep {
        self.role(Role::After, run)
    }

    /// A role that is a process: its command line, in which `{url}`, `{host}` and `{port}` stand for its server.
    #[must_use]
    pub fn command<T: Into<String>>(self, role: Role, words: impl IntoIterator<Item = T>) -> Sweep {
        let words = words.into_iter().map(Into::into).collect();
        self.program(role, Program::Process(words))
    }

    /// A role that whoever started this process runs: it is told on standard output and answers on standard input, a JSON object
    /// a line. The name is for the report.
    #[must_use]
    pub fn hosted(self, role: Role, name: impl Into<String>) -> Sweep {
        self.program(role, Program::Hosted(name.into()))
    }

    /// Which kinds of schedules to try.
    #[must_use]
    pub fn only(mut self, kinds: impl IntoIterator<Item = Kind>) -> Sweep {
        self.kinds = kinds.into_iter().collect();
        self
    }

    /// How closely values are compared.
    #[must_use]
    pub fn compare(mut self, compare: Compare) -> Sweep {
        self.rules.compare = compare;
        self
    }

    /// Whether what the programs print (or closures return) counts; it does by default.
    #[must_use]
    pub fn compare_output(mut self, yes: bool) -> Sweep {
        self.rules.output = yes;
        self
    }

    /// Keys that are left out, a glob pattern.
    #[must_use]
    pub fn ignore(mut self, keys: impl AsRef<[u8]>) -> Sweep {
        self.rules.ignored_keys.push(keys.as_ref().to_vec());
        self
    }

    /// Hash fields and sorted set members that are left out: patterns of keys and of fields.
    #[must_use]
    pub fn ignore_field(mut self, keys: impl AsRef<[u8]>, fields: impl AsRef<[u8]>) -> Sweep {
        let patterns = (keys.as_ref().to_vec(), fields.as_ref().to_vec());
        self.rules.ignored_fields.push(patterns);
        self
    }

    /// What a dead program leaves with a shorter time to live goes by itself; a minute by default.
    #[must_use]
    pub fn heals_within(mut self, time: Duration) -> Sweep {
        self.rules.heals_within = time;
        self
    }

    /// How long one run may take; half a minute by default.
    #[must_use]
    pub fn time_limit(mut self, time: Duration) -> Sweep {
        self.limits.time_limit = time;
        self
    }

    /// After how long a program that says nothing is taken to wait for the other one; a second by default.
    #[must_use]
    pub fn patience(mut self, time: Duration) -> Sweep {
        self.limits.patience = time;
        self
    }

    /// The seed of the server's random choices.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Sweep {
        self.seed = seed;
        self
    }

    /// Where the server's clock stands, in milliseconds since the epoch; now by default.
    #[must_use]
    pub fn clock(mut self, millis: i64) -> Sweep {
        self.clock_millis = Some(millis);
        self
    }

    /// How the programs and options were given on a command line, for the replay commands of the report.
    #[must_use]
    pub fn command_line(mut self, words: Vec<String>) -> Sweep {
        self.command_line = words;
        self
    }

    /// A real server on which every finding is run again, `redis://[[user]:password@]host[:port]`. It is emptied for each run, so
    /// it has to be empty when the sweep begins.
    #[must_use]
    pub fn confirm(mut self, url: impl Into<String>) -> Sweep {
        self.confirm = Some(url.into());
        self
    }

    /// Tells that B is the same program as A, so that what holds for one holds for the other. Equal command lines say so
    /// themselves.
    #[must_use]
    pub fn same(mut self) -> Sweep {
        self.is_symmetric = true;
        self
    }

    /// Sweeps.
    ///
    /// # Errors
    /// There is no program A, or a program cannot be run; the setup fails; a program fails before its first command.
    pub fn run(&self) -> Result<Report, SweepError> {
        self.on_runtime(self.sweep(None)).map(|(report, _)| report)
    }

    /// Runs one schedule again, and the serial orders to judge it.
    ///
    /// # Errors
    /// As for [`Sweep::run`].
    pub fn replay(&self, schedule: Schedule) -> Result<Replayed, SweepError> {
        let (report, replayed) = self.on_runtime(self.sweep(Some(schedule)))?;
        let (steps, outcome) = replayed.unwrap_or_default();
        Ok(Replayed {
            steps,
            outcome,
            report,
        })
    }

    fn on_runtime<T>(
        &self,
        work: impl Future<Output = Result<T, SweepError>>,
    ) -> Result<T, SweepError> {
        if self
            .programs
            .get(Role::A.index())
            .is_none_or(Option::is_none)
        {
            return Err(SweepError::NoProgram);
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(SweepError::Listen)?;
        runtime.block_on(work)
    }

    async fn sweep(
        &self,
        only: Option<Schedule>,
    ) -> Result<(Report, Option<(Vec<ShownStep>, Shown)>), SweepError> {
        let began = Instant::now();
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let millis = self.clock_millis.unwrap_or(wall.as_millis() as i64);
        let stage = Stage::new(self.programs.clone(), self.limits).map_err(SweepError::Listen)?;
        if self
            .programs
            .iter()
            .flatten()
            .any(|program| matches!(program, Program::Hosted(_)))
        {
            listen_to_host(&stage);
        }
        let origin = Origin {
            seed: self.seed,
            now: Timestamp::from_millis(millis),
            setup: Vec::new(),
        };
        let rules = self.rules.clone();
        let mut search = Search::new(
            stage,
            Box::new(EmbeddedSource),
            origin,
            rules,
            wall.as_secs_f64(),
        );
        search.is_symmetric |= self.is_symmetric;
        let remote = self.remote()?;
        search.set_up().await?;
        search.run_serially().await?;
        let (candidates, replayed) = match only {
            None => (search.explore(&self.kinds).await?, None),
            Some(schedule) => match search.try_schedule(schedule).await? {
                None => (Vec::new(), None),
                Some(ran) => {
                    let labels = Labels::of(&search.habits, &ran.steps, search.wall_seconds);
                    let steps = ran
                        .steps
                        .iter()
                        .map(|step| tell::shown_step(step, &labels))
                        .collect();
                    let shown = search.outcome(&ran).shown();
                    let candidate = search.judge(schedule, ran).await?;
                    (candidate.into_iter().collect(), Some((steps, shown)))
                }
            },
        };
        let candidates = self.check_again(&mut search, candidates).await?;
        let mut findings = Vec::new();
        for candidate in &candidates {
            findings.push(self.finding(&mut search, candidate).await?);
        }
        let mut report = self.report(&search, findings, began.elapsed());
        if let Some((source, server)) = remote {
            search.move_to(Box::new(source));
            for (finding, candidate) in report.findings.iter_mut().zip(&candidates) {
                let same = search.confirms(candidate).await?;
                let server = server.clone();
                finding.confirmed = Some(Confirmed { server, same });
            }
            search.leave()?;
        }
        Ok((report, replayed))
    }

    /// The server to confirm on, and what it is.
    fn remote(&self) -> Result<Option<(RemoteSource, String)>, SweepError> {
        let Some(url) = &self.confirm else {
            return Ok(None);
        };
        let address = Address::parse(url).ok_or_else(|| SweepError::Url(url.clone()))?;
        let source = RemoteSource { address };
        let server = source.check()?;
        Ok(Some((source, server)))
    }

    /// Runs the serial orders and what was found once more: what is not found again is noise.
    async fn check_again(
        &self,
        search: &mut Search,
        candidates: Vec<Candidate>,
    ) -> Result<Vec<Candidate>, SweepError> {
        if candidates.is_empty() {
            return Ok(candidates);
        }
        search.refresh().await?;
        let mut kept = Vec::new();
        for candidate in candidates {
            let schedule = candidate.schedule;
            let ran = search
                .counted("check", search.turns_of(schedule), Some(schedule))
                .await?;
            if let Some(again) = search.judge(schedule, ran).await? {
                kept.push(Candidate {
                    also: candidate.also,
                    ..again
                });
            } else {
                let note = format!("{schedule} looked wrong once and right when it was run again");
                search.notes.insert(note);
            }
        }
        Ok(kept)
    }

    async fn finding(
        &self,
        search: &mut Search,
        candidate: &Candidate,
    ) -> Result<Finding, SweepError> {
        let labels = Labels::of(&search.habits, &candidate.ran.steps, search.wall_seconds);
        let steps = candidate
            .ran
            .steps
            .iter()
            .map(|step| tell::shown_step(step, &labels));
        let mut expected = Vec::new();
        for turns in &candidate.orders {
            let ran = search.reference(turns).await?;
            let order = order_text(turns);
            if !expected
                .iter()
                .any(|known: &Reference| known.order == order)
            {
                let outcome = search.outcome(&ran).shown();
                expected.push(Reference { order, outcome });
            }
        }
        let kind = if candidate.ran.stuck {
            "stuck"
        } else {
            candidate.schedule.act.kind().name()
        };
        let seen = search.seen(candidate).await?;
        let cause = cause::cause(&seen);
        Ok(Finding {
            kind: kind.to_owned(),
            title: tell::title(candidate, &labels),
            schedule: candidate.schedule.to_string(),
            also: candidate.also.iter().map(ToString::to_string).collect(),
            steps: steps.collect(),
            outcome: search.outcome(&candidate.ran).shown(),
            expected,
            differences: outcome::differences(&candidate.mismatches),
            repair: repair::repair(kind, &seen, cause.as_ref()),
            cause,
            replay: self.replay_command(search, candidate.schedule),
            confirmed: None,
        })
    }

    /// A command that runs a schedule again; empty for programs that no command line names.
    fn replay_command(&self, search: &Search, schedule: Schedule) -> String {
        if self.command_line.is_empty() {
            return String::new();
        }
        let clock = search.origin.now.millis();
        let words = self.command_line.iter().map(|word| shell_word(word));
        let words = words.collect::<Vec<_>>().join(" ");
        format!(
            "fakeserver sweep --replay {schedule} --clock {clock} --seed {} {words}",
            self.seed
        )
    }

    fn report(&self, search: &Search, findings: Vec<Finding>, took: Duration) -> Report {
        let words = |role: Role| {
            let program = self.programs.get(role.index())?.as_ref()?;
            Some(program.words())
        };
        let counted = |counts: &BTreeMap<&'static str, usize>| -> BTreeMap<String, usize> {
            counts
                .iter()
                .map(|(kind, count)| ((*kind).to_owned(), *count))
                .collect()
        };
        let of = |kind: Kind| {
            let count = |counts: &BTreeMap<&'static str, usize>| {
                counts.get(kind.name()).copied().unwrap_or(0)
            };
            count(&search.runs) + count(&search.skipped)
        };
        Report {
            format: report::FORMAT,
            server: format!(
                "fakeserver {} (as redis-server {})",
                env!("CARGO_PKG_VERSION"),
                crate::engine::VERSION
            ),
            claim: claim(&self.kinds, of, search.has_b),
            programs: Programs {
                a: words(Role::A).unwrap_or_default(),
                b: words(Role::B),
                setup: words(Role::Setup),
                after: words(Role::After),
            },
            runs: counted(&search.runs),
            skipped: counted(&search.skipped),
            seconds: (took.as_secs_f64() * 1000.0).round() / 1000.0,
            left_out: search.rules.left_out(),
            notes: search.notes.iter().cloned().collect(),
            serial: search.shown_references(),
            findings,
        }
    }
}

/// What no finding means.
fn claim(kinds: &[Kind], of: impl Fn(Kind) -> usize, has_b: bool) -> String {
    let mut parts = Vec::new();
    for kind in kinds {
        let count = of(*kind);
        let what = match kind {
            Kind::Isolation if has_b => "single-preemption schedules",
            Kind::Isolation => continue,
            Kind::Crash => "crashes",
            Kind::LostReply => "lost replies",
            Kind::Expiry => "expiries",
            Kind::Restart => "restarts",
        };
        parts.push(format!("{count} {what}"));
    }
    let whose = if has_b {
        "of these two programs, these inputs"
    } else {
        "of this program, this input"
    };
    format!("all {} {whose}", parts.join(", "))
}

/// A word as a shell takes it.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

impl Report {
    /// The report for a terminal.
    pub fn text(&self) -> String {
        text::text(self)
    }

    /// The report as a page of its own, for a browser.
    pub fn html(&self) -> String {
        html::html(self)
    }

    /// Hands the report and a text for its readers to the host of the programs, as the last line.
    ///
    /// # Errors
    /// Standard output cannot be written to.
    pub fn tell_host(&self, text: &str) -> io::Result<()> {
        #[derive(Serialize)]
        struct Last<'a> {
            r#do: &'static str,
            report: &'a Report,
            text: &'a str,
        }
        program::tell(&Last {
            r#do: "report",
            report: self,
            text,
        })
    }
}

/// What the server saw, a command a line, then the key space and how the programs ended, as they are: nothing is left out.
impl fmt::Display for Replayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            let note = step
                .note
                .as_ref()
                .map(|note| format!("  ({note})"))
                .unwrap_or_default();
            match step.role.as_str() {
                "server" => writeln!(f, "-- {}", step.command)?,
                role => writeln!(
                    f,
                    "{role}{} {} -> {}{note}",
                    step.connection, step.command, step.reply
                )?,
            }
        }
        for (name, ending) in [
            ("a", &self.outcome.a),
            ("b", &self.outcome.b),
            ("after", &self.outcome.after),
        ] {
            if let Some(Ending { status, output }) = ending {
                writeln!(f, "{name}: status {status}, output {output:?}")?;
            }
        }
        for key in &self.outcome.keys {
            let ttl = if key.ttl { " (has a time to live)" } else { "" };
            writeln!(f, "{} {} {}{ttl}", key.r#type, key.key, key.value)?;
        }
        let verdict = if self.report.is_clean() {
            "a serial order gives this"
        } else {
            "no serial order gives this"
        };
        writeln!(f, "{verdict}")
    }
}

/// Reads what the host says, on a thread of its own.
fn listen_to_host(stage: &Stage) {
    let events = stage.doors.sender();
    std::thread::spawn(move || {
        for line in io::stdin().lines() {
            let Ok(line) = line else {
                break;
            };
            if !line.trim().is_empty() && events.send(program::answer(&line)).is_err() {
                return;
            }
        }
        // Nobody listens if the sweep is over.
        let _ = events.send(doors::Event::HostLost(HostError::Gone));
    });
}
