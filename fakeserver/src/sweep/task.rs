//! A sweep from its first run to its report.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::builder::Sweep;
use super::doors;
use super::program::{self, HostError, Program};
use super::remote::RemoteSource;
use super::report::{self, Confirmed, Finding, Programs, Reference, Report, Shown, ShownStep};
use super::schedule::{Kind, Role, Schedule};
use super::search::{Candidate, EmbeddedSource, Origin, Search, order_text};
use super::stage::Stage;
use super::{SweepError, cause, repair, rules, tell};
use crate::clock::Timestamp;
use crate::remote::Address;

impl Sweep {
    pub(super) fn on_runtime<T>(
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

    /// Opens the doors and runs the setup; also the server to confirm on.
    pub(super) async fn begin(
        &self,
    ) -> Result<(Search, Option<(RemoteSource, String)>), SweepError> {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let millis = self.clock_millis.unwrap_or(wall.as_millis() as i64);
        let stage = Stage::new(self.programs.clone(), self.limits, wall.as_secs_f64())
            .map_err(SweepError::Listen)?;
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
        let mut search = Search::new(stage, Box::new(EmbeddedSource), origin, rules);
        search.is_symmetric |= self.is_symmetric;
        let remote = self.remote()?;
        search.set_up().await?;
        Ok((search, remote))
    }

    pub(super) async fn sweep(
        &self,
        only: Option<Schedule>,
    ) -> Result<(Report, Option<(Vec<ShownStep>, Shown)>), SweepError> {
        let began = Instant::now();
        let (mut search, remote) = self.begin().await?;
        search.run_serially().await?;
        let (candidates, replayed) = match only {
            None => (search.explore(&self.kinds).await?, None),
            Some(schedule) => match search.try_schedule(schedule).await? {
                None => (Vec::new(), None),
                Some(ran) => {
                    let labels = search.labels(&ran);
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
    pub(super) fn remote(&self) -> Result<Option<(RemoteSource, String)>, SweepError> {
        let Some(url) = &self.confirm else {
            return Ok(None);
        };
        let address = Address::parse(url).ok_or_else(|| SweepError::Url(url.clone()))?;
        let source = RemoteSource { address };
        let server = source.check()?;
        Ok(Some((source, server)))
    }

    /// Runs the serial orders and what was found once more: what is not found again is noise.
    pub(super) async fn check_again(
        &self,
        search: &mut Search,
        candidates: Vec<Candidate>,
    ) -> Result<Vec<Candidate>, SweepError> {
        if candidates.is_empty() {
            return Ok(candidates);
        }
        search.refresh(search.serial_orders()).await?;
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

    pub(super) async fn finding(
        &self,
        search: &mut Search,
        candidate: &Candidate,
    ) -> Result<Finding, SweepError> {
        let labels = search.labels(&candidate.ran);
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
            differences: rules::differences(&candidate.mismatches),
            repair: repair::repair(kind, &seen, cause.as_ref()),
            cause,
            replay: self.replay_command(search, candidate.schedule),
            confirmed: None,
        })
    }

    /// A command that runs a schedule again; empty for programs that no command line names.
    pub(super) fn replay_command(&self, search: &Search, schedule: Schedule) -> String {
        self.command_to(search, "sweep", &schedule.to_string())
    }

    /// The same for a task of the program's and a schedule as text.
    pub(super) fn command_to(&self, search: &Search, task: &str, schedule: &str) -> String {
        if self.command_line.is_empty() {
            return String::new();
        }
        let clock = search.origin.now.millis();
        let words = self.command_line.iter().map(|word| shell_word(word));
        let words = words.collect::<Vec<_>>().join(" ");
        format!(
            "fakeserver {task} --replay {schedule} --clock {clock} --seed {} {words}",
            self.seed
        )
    }

    pub(super) fn report(&self, search: &Search, findings: Vec<Finding>, took: Duration) -> Report {
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
            claim: claim(&self.kinds, of, search.has_b()),
            programs: Programs {
                a: words(Role::A).unwrap_or_default(),
                b: words(Role::B),
                more: Role::PROGRAMS
                    .into_iter()
                    .skip(2)
                    .filter_map(words)
                    .collect(),
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
