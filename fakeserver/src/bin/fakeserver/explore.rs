//! `fakeserver explore`: programs under schedules with several preemptions.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use fakeserver::sweep::{Explore, Interleaving, Role, Strategy, SweepError};

use crate::programs::{ProgramOptions, ended};

#[derive(Debug, Args)]
#[command(
    after_help = "Each program finds its server in REDIS_URL (REDIS_HOST, REDIS_PORT) and in place of {url}, {host} and {port} in its arguments.\n\
                  Exit status: 0 nothing found, 1 findings, 2 a bad command line or a program that cannot be run.\n\n\
                  Example: fakeserver explore --preemptions 3 -- python3 a.py -- python3 b.py -- python3 c.py"
)]
pub(crate) struct ExploreOptions {
    /// Which schedules are run
    #[arg(long, value_enum, default_value_t = Way::Bounded)]
    strategy: Way,
    /// How many schedules at most
    #[arg(long, value_name = "N", default_value_t = Explore::default().schedules)]
    schedules: usize,
    /// How often at most the turn is taken from a program that could go on: 2 by default, without a bound for random
    #[arg(long, value_name = "N")]
    preemptions: Option<usize>,
    /// Run one schedule again, and print what the server saw and what came of it
    #[arg(long, value_name = "SCHEDULE")]
    replay: Option<Interleaving>,
    #[command(flatten)]
    common: ProgramOptions,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Way {
    /// All with at most so many preemptions, those with fewer first
    Bounded,
    /// Any program goes on at each command
    Random,
    /// Random priorities that change at a few random places
    Pct,
}

/// Explores, prints, and says by its exit status whether something was found.
pub(crate) fn run(options: &ExploreOptions) -> ExitCode {
    ended("explore", explore(options))
}

fn explore(options: &ExploreOptions) -> Result<bool, String> {
    let sweep = options.common.configured(&Role::PROGRAMS)?;
    let told = |error: SweepError| error.to_string();
    if let Some(interleaving) = &options.replay {
        let replayed = sweep.replay_interleaving(interleaving).map_err(told)?;
        let text = replayed.to_string();
        return options.common.tell(&replayed.report, &text);
    }
    let explore = Explore {
        strategy: match options.strategy {
            Way::Bounded => Strategy::Bounded,
            Way::Random => Strategy::Random,
            Way::Pct => Strategy::Pct,
        },
        schedules: options.schedules,
        preemptions: options.preemptions,
    };
    let report = sweep.explore(&explore).map_err(told)?;
    options.common.tell(&report, &report.text())
}
