//! `fakeserver sweep`: the race sweep on the command line.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use fakeserver::sweep::{Kind, Role, Schedule, Sweep, SweepError};

use crate::programs::{ProgramOptions, ended, seconds};

#[derive(Debug, Args)]
#[command(
    after_help = "Each program finds its server in REDIS_URL (REDIS_HOST, REDIS_PORT) and in place of {url}, {host} and {port} in its arguments.\n\
                  Exit status: 0 nothing found, 1 findings, 2 a bad command line or a program that cannot be run.\n\n\
                  Example: fakeserver sweep --setup 'redis-cli -u {url} SET stock 1' -- python3 buy.py -- python3 buy.py"
)]
pub(crate) struct SweepOptions {
    /// Kinds of schedules to try: isolation, crash, lost-reply, expiry, restart
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    only: Vec<Kind>,
    /// Seconds to live below which what a dead program leaves behind goes by itself
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    heals_within: f64,
    /// Run one schedule again, and print what the server saw and what came of it
    #[arg(long, value_name = "SCHEDULE")]
    replay: Option<Schedule>,
    /// A and B are the same program (told for hosted roles; equal command lines need no telling)
    #[arg(long)]
    same: bool,
    #[command(flatten)]
    common: ProgramOptions,
}

/// Sweeps, prints, and says by its exit status whether something was found.
pub(crate) fn run(options: &SweepOptions) -> ExitCode {
    ended("sweep", sweep(options))
}

fn sweep(options: &SweepOptions) -> Result<bool, String> {
    let sweep = configured(options)?;
    let told = |error: SweepError| error.to_string();
    if let Some(schedule) = options.replay {
        let replayed = sweep.replay(schedule).map_err(told)?;
        let text = replayed.to_string();
        return options.common.tell(&replayed.report, &text);
    }
    let report = sweep.run().map_err(told)?;
    options.common.tell(&report, &report.text())
}

fn configured(options: &SweepOptions) -> Result<Sweep, String> {
    let mut sweep = options
        .common
        .configured(&[Role::A, Role::B])?
        .heals_within(Duration::from_secs_f64(options.heals_within));
    if options.same {
        sweep = sweep.same();
    }
    if !options.only.is_empty() {
        sweep = sweep.only(options.only.iter().copied());
    }
    Ok(sweep)
}
