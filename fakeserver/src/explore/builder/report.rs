//! [`Report`]: what a search has seen.

use std::fmt;

use crate::explore::{Confirmation, Counterexample, Coverage, ExploreReport};

/// What a search has seen and found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The scenario's name.
    pub name: String,
    /// The test that it is part of, if the thread is named after one.
    pub test: Option<String>,
    /// The strategies that ran, in order.
    pub phases: Vec<PhaseReport>,
    /// What is wrong, if something is.
    pub counterexample: Option<Counterexample>,
    /// What a real server made of it, or why it could not be asked; only if that was wanted.
    pub confirmed: Option<Result<Confirmation, String>>,
}

/// What one strategy has seen.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PhaseReport {
    /// Its name.
    pub strategy: String,
    /// Complete runs, up to the one that found something.
    pub schedules: u64,
    /// Runs that were given up because the rest had been seen.
    pub pruned: u64,
    /// How much that is of all there are.
    pub coverage: Coverage,
    /// Whether it found what is wrong.
    pub found: bool,
}

impl Report {
    pub(super) fn new(name: String) -> Report {
        let thread = std::thread::current();
        // The test harness names the threads that it starts.
        let test = thread.name().filter(|name| *name != "main");
        Report {
            name,
            test: test.map(str::to_owned),
            phases: Vec::new(),
            counterexample: None,
            confirmed: None,
        }
    }

    /// What was found, for a longer text, a page or JSON.
    pub fn shown(&self) -> Option<ExploreReport> {
        let found = self.counterexample.as_ref()?;
        let mut shown = ExploreReport::of(found, &self.name).claimed(self.claim());
        if let Some(test) = &self.test {
            shown = shown.replayed_by(&format!("cargo test {test}"));
        }
        Some(match &self.confirmed {
            None => shown,
            Some(Ok(confirmation)) => shown.confirmed(confirmation.clone()),
            Some(Err(reason)) => shown.noted(format!("not tried on a real server: {reason}")),
        })
    }

    fn claim(&self) -> String {
        let phases: Vec<String> = self.phases.iter().map(ToString::to_string).collect();
        phases.join("; ")
    }

    /// Complete runs of all strategies.
    pub fn schedules(&self) -> u64 {
        self.phases.iter().map(|phase| phase.schedules).sum()
    }

    /// How much was seen of all schedules: the best of any strategy.
    pub fn coverage(&self) -> Coverage {
        let rank = |coverage: &Coverage| match coverage {
            Coverage::Exhaustive => (2, 0),
            Coverage::Bounded(preemptions) => (1, *preemptions),
            Coverage::Sampled => (0, 0),
        };
        let coverages = self.phases.iter().map(|phase| phase.coverage);
        coverages.max_by_key(rank).unwrap_or(Coverage::Sampled)
    }
}

impl fmt::Display for PhaseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.found {
            return write!(f, "{}: found by schedule {}", self.strategy, self.schedules);
        }
        let amount = match self.coverage {
            Coverage::Exhaustive => "exhaustive".to_owned(),
            Coverage::Bounded(most) => format!("all with at most {most} preemptions"),
            Coverage::Sampled => "sampled".to_owned(),
        };
        write!(
            f,
            "{}: {amount}, {} schedules",
            self.strategy, self.schedules
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phases = self.claim();
        let Some(found) = &self.counterexample else {
            return write!(f, "{}: nothing wrong ({phases})", self.name);
        };
        writeln!(f, "{}", self.name)?;
        writeln!(f, "{found}")?;
        writeln!(f, "searched: {phases}")?;
        match &self.confirmed {
            None => {}
            Some(Ok(confirmation)) => writeln!(f, "confirmed: {confirmation}")?,
            Some(Err(reason)) => writeln!(f, "not tried on a real server: {reason}")?,
        }
        write!(f, "again: EXPLORER_SCHEDULE={} ", found.schedule)?;
        match &self.test {
            Some(test) => write!(f, "cargo test {test}"),
            None => f.write_str("and the same program"),
        }
    }
}
