//! `cargo run --release -p fuzz`: hunts lost updates in the store's concurrent commits, and shows that it would find them.
//!
//! Exit status: 0 if the store is clean and every broken store was caught, 1 with a counterexample otherwise, 2 for bad usage
//! or a server that does not answer.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Parser;
use fakeserver::explore::{Replayed, Schedule};
use fuzz::control::Flaw;
use fuzz::live::Live;
use fuzz::mutate::Mutator;
use fuzz::replay::CLIENTS_MAX;
use fuzz::runner::{self, Control, Plan};
use fuzz::scenario::Scenario;
use fuzz::target::Target;
use fuzz::{replay, report};
use indicatif::{ProgressBar, ProgressStyle};

/// Hunts lost updates in concurrent commits, on the embedded server or on a real one.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// Clients that run at the same time [default: 2 and 3; with --redis 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=CLIENTS_MAX as i64))]
    clients: Option<u32>,
    /// How long to hunt the store; the broken stores take a few seconds more
    #[arg(long, value_name = "S", default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Where random schedules begin
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Only this scenario
    #[arg(long, value_name = "NAME", value_parser = scenario)]
    scenario: Option<Scenario>,
    /// Runs one schedule again, as a report has printed it
    #[arg(long, value_name = "SCHEDULE", conflicts_with_all = ["clients", "scenario", "redis"])]
    replay: Option<Schedule>,
    /// Feeds bytes to a target of the fake instead, changed at random from its corpus: requests, program, script, codec or payload
    #[arg(long, value_name = "TARGET", value_parser = target, conflicts_with_all = ["clients", "scenario", "redis", "replay"])]
    bytes: Option<Target>,
    /// Runs the scenarios on this server, all clients at the same time [default: `REDIS_URL`, if set]
    #[arg(long, value_name = "URL")]
    redis: Option<String>,
}

fn scenario(name: &str) -> Result<Scenario, String> {
    Scenario::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Scenario::ALL.iter().map(|one| one.name()).collect();
        format!("one of {}", names.join(", "))
    })
}

fn target(name: &str) -> Result<Target, String> {
    Target::from_name(name).ok_or_else(|| {
        let names = Target::ALL.map(Target::name);
        format!("one of {}", names.join(", "))
    })
}

/// What a run comes to: its text, and whether all is well.
type Outcome = Result<(String, bool), String>;

fn main() -> ExitCode {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) if !error.use_stderr() => {
            say(&error.to_string());
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            let text = error.to_string();
            return refuse(text.lines().next().unwrap_or("error: bad usage"));
        }
    };
    let url = options.redis.clone().or_else(|| {
        let url = std::env::var("REDIS_URL").ok();
        url.filter(|url| !url.is_empty())
    });
    if let Some(target) = options.bytes {
        return report(bytes(&options, target));
    }
    let outcome = match (&options.replay, url) {
        (Some(schedule), _) => again(schedule),
        (None, Some(url)) => live(&options, &url),
        (None, None) => embedded(&options),
    };
    report(outcome)
}

fn report(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok((text, well)) => {
            say(&text);
            if well {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(text) => refuse(&format!("error: {text}")),
    }
}

fn refuse(line: &str) -> ExitCode {
    // Without standard error there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "{line}");
    ExitCode::from(2)
}

fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn again(schedule: &Schedule) -> Outcome {
    let hunt = replay::workload_of(schedule)
        .ok_or_else(|| format!("no scenario has the workload {}", schedule.workload()))?;
    let replayed = replay::replay(&hunt, schedule).map_err(|error| error.to_string())?;
    let well = matches!(replayed, Replayed::Holds(_));
    Ok((replay::text(&hunt, &replayed), well))
}

fn bytes(options: &Options, target: Target) -> Outcome {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target.name());
    let corpus = fs::read_dir(&folder)
        .and_then(|files| files.map(|file| fs::read(file?.path())).collect())
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let time = Duration::from_secs(options.seconds);
    let (runs, found) = Mutator::new(options.seed, corpus).run(target, time);
    let Some(found) = found else {
        return Ok((format!("{runs} inputs of {}\n", target.name()), true));
    };
    let file = std::env::temp_dir().join(format!("{}-{}", target.name(), std::process::id()));
    fs::write(&file, &found.input).map_err(|error| format!("{}: {error}", file.display()))?;
    let text = format!(
        "input {runs} of {}: {}\n{}\n",
        target.name(),
        file.display(),
        found.text
    );
    Ok((text, false))
}

/// A bar on a terminal, nothing elsewhere.
fn progress() -> ProgressBar {
    let style =
        ProgressStyle::with_template("{spinner} {elapsed} {pos} schedules, {per_sec}: {msg}");
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn scenarios(options: &Options) -> Vec<Scenario> {
    options
        .scenario
        .map_or(Scenario::ALL.to_vec(), |one| vec![one])
}

fn flaws(options: &Options) -> Vec<Flaw> {
    let wanted = |flaw: &Flaw| options.scenario.is_none_or(|one| one == flaw.scenario());
    Flaw::ALL.into_iter().filter(wanted).collect()
}

fn embedded(options: &Options) -> Outcome {
    let bar = progress();
    let controls = runner::catch_all(&flaws(options), &bar).map_err(|error| error.to_string())?;
    let plan = Plan {
        scenarios: scenarios(options),
        clients: options.clients.map_or(vec![2, 3], |one| vec![one as usize]),
        faults: vec![0, 1],
        time: Duration::from_secs(options.seconds),
        seed: options.seed,
    };
    let hunted = runner::hunt_all(&plan, &bar).map_err(|error| error.to_string())?;
    bar.finish_and_clear();
    let mut text = report::hunted(&hunted);
    let mut well = true;
    for one in &hunted {
        if let Some(found) = &one.counterexample {
            well = false;
            let _ = write!(
                text,
                "\n{}, {} clients\n{found}\n",
                one.scenario.name(),
                one.clients
            );
        }
    }
    let _ = write!(text, "\n{}", report::controls(&controls, &[]));
    let caught = sum_up(
        &mut text,
        &controls,
        hunted.iter().map(|one| one.schedules).sum(),
    );
    Ok((text, well && caught))
}

fn live(options: &Options, url: &str) -> Outcome {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let nonce = since.as_nanos() as u64 ^ (u64::from(std::process::id()) << 40);
    let mut live = Live::connect(url, nonce).map_err(|error| unreachable(&error))?;
    let bar = progress();
    let controls = runner::catch_all(&flaws(options), &bar).map_err(|error| error.to_string())?;
    let mut confirmed = Vec::new();
    for control in &controls {
        confirmed.push(live.confirm(control).map_err(|error| error.to_string())?);
    }
    let all = scenarios(options);
    let time = Duration::from_secs(options.seconds) / all.len().max(1) as u32;
    let clients = options.clients.map_or(8, |clients| clients as usize);
    let mut trampled = Vec::new();
    for scenario in all {
        let one = live.trample(scenario, clients, time, &bar);
        trampled.push(one.map_err(|error| unreachable(&error))?);
    }
    bar.finish_and_clear();
    let mut text = report::trampled(&trampled);
    let mut well = true;
    for one in &trampled {
        if let Some(violation) = &one.violation {
            well = false;
            let (name, clients) = (one.scenario.name(), one.clients);
            let _ = write!(text, "\n{name}, {clients} clients\nviolated: {violation}\n");
        }
    }
    let _ = write!(text, "\n{}", report::controls(&controls, &confirmed));
    let caught = sum_up(
        &mut text,
        &controls,
        trampled.iter().map(|one| one.landed).sum(),
    );
    Ok((text, well && caught && confirmed.iter().all(|yes| *yes)))
}

/// Without the URL, which may hold a password.
fn unreachable(error: &redis::RedisError) -> String {
    let text = error.to_string();
    format!("redis server: {}", text.lines().next().unwrap_or_default())
}

/// The last line; whether all broken stores were caught.
fn sum_up(text: &mut String, controls: &[Control], count: u64) -> bool {
    let caught = controls
        .iter()
        .filter(|one| one.counterexample.is_some())
        .count();
    let all = controls.len();
    let _ = writeln!(
        text,
        "\n{count} runs of the store; {caught} of {all} broken stores caught"
    );
    caught == all
}
