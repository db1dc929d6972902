//! [`Environment`]: what whoever runs a test says about it from outside.

use std::path::Path;

use crate::explore::{ExploreError, Schedule};

/// What the environment variables `EXPLORER_SCHEDULE`, `EXPLORER_SEED`, `EXPLORER_BUDGET` and `EXPLORER_HTML` say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    schedule: Option<String>,
    seed: Option<String>,
    budget: Option<String>,
    html: Option<String>,
}

const SCHEDULE: &str = "EXPLORER_SCHEDULE";
const SEED: &str = "EXPLORER_SEED";
const BUDGET: &str = "EXPLORER_BUDGET";
const HTML: &str = "EXPLORER_HTML";

impl Environment {
    /// That of this process.
    pub fn of_process() -> Environment {
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        Environment {
            schedule: variable(SCHEDULE),
            seed: variable(SEED),
            budget: variable(BUDGET),
            html: variable(HTML),
        }
    }

    /// One in which nothing is said.
    pub fn empty() -> Environment {
        Environment::default()
    }

    /// Runs this one schedule (`EXPLORER_SCHEDULE`).
    #[must_use]
    pub fn schedule(mut self, schedule: impl Into<String>) -> Environment {
        self.schedule = Some(schedule.into());
        self
    }

    /// Random schedules begin here (`EXPLORER_SEED`).
    #[must_use]
    pub fn seed(mut self, seed: impl Into<String>) -> Environment {
        self.seed = Some(seed.into());
        self
    }

    /// Each strategy may run so many schedules (`EXPLORER_BUDGET`).
    #[must_use]
    pub fn budget(mut self, schedules: impl Into<String>) -> Environment {
        self.budget = Some(schedules.into());
        self
    }

    /// What is found is written into this folder as a page (`EXPLORER_HTML`).
    #[must_use]
    pub fn html(mut self, folder: impl Into<String>) -> Environment {
        self.html = Some(folder.into());
        self
    }

    /// The folder for pages.
    pub(super) fn pages(&self) -> Option<&Path> {
        self.html.as_deref().map(Path::new)
    }

    pub(super) fn read_schedule(&self) -> Result<Option<Schedule>, ExploreError> {
        let schedule = self.schedule.as_ref().map(|text| {
            text.trim()
                .parse()
                .map_err(|error: crate::explore::ScheduleError| {
                    invalid(SCHEDULE, format!("{error}, not {text:?}"))
                })
        });
        schedule.transpose()
    }

    pub(super) fn read_seed(&self) -> Result<Option<u64>, ExploreError> {
        number(SEED, self.seed.as_deref())
    }

    pub(super) fn read_budget(&self) -> Result<Option<u64>, ExploreError> {
        number(BUDGET, self.budget.as_deref())
    }
}

/// A schedule that belongs to another scenario than this one.
pub(super) fn foreign(schedule: &Schedule, title: &str) -> ExploreError {
    let hash = schedule.workload();
    let reason = format!(
        "{hash} is another scenario's schedule, not one of {title}; run only the test that printed it (cargo test NAME)"
    );
    invalid(SCHEDULE, reason)
}

fn number(variable: &'static str, text: Option<&str>) -> Result<Option<u64>, ExploreError> {
    let number = text.map(|text| {
        let parsed = text.trim().parse();
        parsed.map_err(|error| invalid(variable, format!("{text:?}: {error}")))
    });
    number.transpose()
}

fn invalid(variable: &'static str, reason: String) -> ExploreError {
    ExploreError::Environment { variable, reason }
}
