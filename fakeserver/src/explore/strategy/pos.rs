//! [`Pos`]: steps by priority, drawn anew after a race.

use super::super::schedule::Lane;
use super::random::{commands, fault};
use super::{Decision, Point, Sampling, Strategy};

/// Partial-order sampling, after Yuan, Yang and Gu: each command that waits has a random priority, the highest runs, and those
/// that do not commute with it draw anew. Orders that differ only in commands that commute do not outweigh others as much as
/// in a [`super::RandomWalk`].
#[derive(Clone, Debug)]
pub struct Pos {
    rng: fastrand::Rng,
    priorities: Vec<(Lane, u64)>,
    real_time: bool,
}

impl Pos {
    /// Of this seed.
    pub fn new(seed: u64) -> Pos {
        Pos {
            rng: fastrand::Rng::with_seed(seed),
            priorities: Vec::new(),
            real_time: false,
        }
    }

    fn priority(&mut self, lane: Lane) -> u64 {
        if let Some((_, priority)) = self.priorities.iter().find(|(known, _)| *known == lane) {
            return *priority;
        }
        let priority = self.rng.u64(..);
        self.priorities.push((lane, priority));
        priority
    }
}

impl Sampling for Pos {
    const NAME: &'static str = "partial-order sampling";

    fn reseeded(&self, seed: u64) -> Pos {
        Pos::new(self.rng.get_seed() ^ seed)
    }
}

impl Strategy for Pos {
    fn begin(&mut self) -> bool {
        self.priorities.clear();
        true
    }

    fn choose(&mut self, point: &Point<'_>) -> Decision {
        let candidates = point.candidates();
        if let (false, Some(local)) = (self.real_time, point.local()) {
            return Decision::Take(local.choice());
        }
        if let Some(fault) = fault(&mut self.rng, candidates) {
            self.priorities.retain(|(lane, _)| *lane != fault.lane);
            return Decision::Take(fault);
        }
        let highest =
            commands(candidates).max_by_key(|candidate| self.priority(candidate.choice().lane));
        let Some(highest) = highest else {
            return Decision::Diverged("nothing to choose from".to_owned());
        };
        let redrawn = commands(candidates).filter(|other| {
            other.client() == highest.client() || other.footprint().conflicts(highest.footprint())
        });
        for other in redrawn {
            let lane = other.choice().lane;
            self.priorities.retain(|(known, _)| *known != lane);
        }
        Decision::Take(highest.choice())
    }

    fn keep_real_time(&mut self) {
        self.real_time = true;
    }
}
