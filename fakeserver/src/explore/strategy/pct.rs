//! [`Pct`]: lanes by priority, with few changes.

use std::ops::RangeInclusive;

use super::super::schedule::Lane;
use super::random::{commands, fault};
use super::{Candidate, Decision, Point, Sampling, Strategy};

/// Probabilistic concurrency testing, after Burckhardt, Kothari, Musuvathi and Nagarakatte: each lane has a random priority, the
/// highest that can go on does, and at `depth - 1` random moments it falls behind all others. A bug that takes the order of
/// `depth` steps, in a schedule of `k` steps of `n` lanes, is hit once in `n * k^(depth - 1)` schedules or more often.
///
/// The number of steps is that of the longest schedule so far, so that the first has no such moments.
#[derive(Clone, Debug)]
pub struct Pct {
    rng: fastrand::Rng,
    depths: RangeInclusive<usize>,
    depth: usize,
    priorities: Vec<(Lane, u64)>,
    changes: Vec<usize>,
    steps: usize,
    steps_max: usize,
    real_time: bool,
}

/// Priorities below are for lanes that have fallen behind.
const FIRST_PRIORITY: u64 = 1 << 32;

impl Pct {
    /// For bugs of this depth.
    pub fn depth(depth: usize) -> Pct {
        Pct::depths(depth..=depth)
    }

    /// For bugs of these depths, a schedule for each in turn.
    pub fn depths(depths: RangeInclusive<usize>) -> Pct {
        Pct {
            rng: fastrand::Rng::with_seed(0),
            depth: *depths.end(),
            depths,
            priorities: Vec::new(),
            changes: Vec::new(),
            steps: 0,
            steps_max: 0,
            real_time: false,
        }
    }

    /// Other schedules, the same again for the same number.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Pct {
        self.rng = fastrand::Rng::with_seed(seed);
        self
    }

    fn priority(&mut self, lane: Lane) -> u64 {
        if let Some((_, priority)) = self.priorities.iter().find(|(known, _)| *known == lane) {
            return *priority;
        }
        let priority = self.rng.u64(FIRST_PRIORITY..);
        self.priorities.push((lane, priority));
        priority
    }

    fn highest<'p>(&mut self, candidates: &'p [Candidate<'p>]) -> Option<&'p Candidate<'p>> {
        commands(candidates).max_by_key(|candidate| self.priority(candidate.choice().lane))
    }

    fn fall_behind(&mut self, lane: Lane, change: usize) {
        let known = self.priorities.iter_mut().find(|(known, _)| *known == lane);
        if let Some((_, priority)) = known {
            *priority = change as u64;
        }
    }
}

impl Sampling for Pct {
    const NAME: &'static str = "probabilistic concurrency testing";

    fn reseeded(&self, seed: u64) -> Pct {
        Pct::depths(self.depths.clone()).seed(self.rng.get_seed() ^ seed)
    }
}

impl Strategy for Pct {
    fn begin(&mut self) -> bool {
        self.depth = if self.depth < *self.depths.end() {
            self.depth + 1
        } else {
            *self.depths.start()
        };
        self.priorities.clear();
        self.changes.clear();
        if self.steps_max > 0 {
            for _ in 1..self.depth {
                self.changes.push(self.rng.usize(..self.steps_max));
            }
        }
        self.steps = 0;
        true
    }

    fn choose(&mut self, point: &Point<'_>) -> Decision {
        let candidates = point.candidates();
        if let (false, Some(local)) = (self.real_time, point.local()) {
            return Decision::Take(local.choice());
        }
        if let Some(fault) = fault(&mut self.rng, candidates) {
            return Decision::Take(fault);
        }
        for change in 0..self.changes.len() {
            if self.changes.get(change) == Some(&self.steps)
                && let Some(highest) = self.highest(candidates)
            {
                self.fall_behind(highest.choice().lane, change);
            }
        }
        self.steps += 1;
        self.steps_max = self.steps_max.max(self.steps);
        match self.highest(candidates) {
            Some(highest) => Decision::Take(highest.choice()),
            None => Decision::Diverged("nothing to choose from".to_owned()),
        }
    }

    fn keep_real_time(&mut self) {
        self.real_time = true;
    }
}
