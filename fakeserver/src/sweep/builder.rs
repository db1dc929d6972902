//! [`Sweep`]: what to sweep, and how.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::SweepError;
use super::outcome::Compare;
use super::program::{Closure, Program};
use super::report::{Report, Shown, ShownStep};
use super::rules::Rules;
use super::schedule::{Kind, Role, Schedule};
use super::stage::Limits;

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
    pub(super) programs: [Option<Program>; Role::ALL.len()],
    pub(super) kinds: Vec<Kind>,
    pub(super) rules: Rules,
    pub(super) limits: Limits,
    pub(super) seed: u64,
    pub(super) clock_millis: Option<i64>,
    pub(super) command_line: Vec<String>,
    pub(super) confirm: Option<String>,
    pub(super) is_symmetric: bool,
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
}
