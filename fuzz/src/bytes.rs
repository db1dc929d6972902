//! Bytes as a workload, its faults and its schedule, for coverage-guided fuzzing and for the corpus that the tests replay.
//!
//! The first four bytes name scenario, number of clients, faults and rounds; the others are deviations from the serial run, as
//! [`Bytes`] reads them. Missing bytes count as zero, so that every input means something.

use fakeserver::explore::{Budget, Bytes, Counterexample, Exploration, ExploreError, Explorer};

use crate::scenario::{Hunt, Scenario};

/// Longest input that is looked at: a schedule hardly has more commands.
const LEN_MAX: usize = 512;

/// What bytes mean.
#[derive(Clone, Debug)]
pub struct Input {
    /// The workload.
    pub hunt: Hunt,
    /// Most faults of the schedule.
    pub faults: usize,
    /// The deviations from the serial run.
    pub schedule: Vec<u8>,
}

impl Input {
    /// What these bytes mean.
    pub fn new(bytes: &[u8]) -> Input {
        let byte = |at: usize| usize::from(bytes.get(at).copied().unwrap_or(0));
        let scenario = Scenario::ALL[byte(0) % Scenario::ALL.len()];
        let clients = 2 + byte(1) % 3;
        let rounds = 1 + byte(3) as u32 % 2;
        Input {
            hunt: Hunt {
                rounds,
                ..Hunt::new(scenario, clients)
            },
            faults: byte(2) % 3,
            schedule: bytes.iter().copied().take(LEN_MAX).skip(4).collect(),
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// If it cannot be explored.
    pub fn run(&self) -> Result<Exploration, ExploreError> {
        Explorer::new().faults(Hunt::faults(self.faults)).explore(
            &self.hunt,
            Box::new(Bytes::new(self.schedule.clone())),
            Budget::schedules(1),
        )
    }
}

/// Runs what the bytes mean; what it breaks.
///
/// # Errors
/// A counterexample, or why the run says nothing.
pub fn run(bytes: &[u8]) -> Result<(), String> {
    match Input::new(bytes).run() {
        Ok(Exploration {
            counterexample: Some(found),
            ..
        }) => Err(Counterexample::to_string(&found)),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
