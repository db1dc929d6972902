//! [`RandomWalk`]: any command that can run.

use super::super::schedule::Choice;
use super::{Candidate, Decision, Point, Sampling, Strategy};

/// Any of the candidates, each schedule anew, from a seed.
#[derive(Clone, Debug)]
pub struct RandomWalk {
    rng: fastrand::Rng,
}

impl RandomWalk {
    /// Of this seed.
    pub fn new(seed: u64) -> RandomWalk {
        RandomWalk {
            rng: fastrand::Rng::with_seed(seed),
        }
    }
}

/// A fault is chosen once in so many steps where it is offered; else short schedules would hardly ever run undisturbed.
const FAULT_ODDS: usize = 12;

/// A fault, now and then, or always if there is nothing else.
pub(super) fn fault(rng: &mut fastrand::Rng, candidates: &[Candidate<'_>]) -> Option<Choice> {
    let plain = commands(candidates).count();
    let faults = candidates.get(plain..).unwrap_or_default();
    let strikes = !faults.is_empty() && (plain == 0 || rng.usize(..FAULT_ODDS) == 0);
    strikes
        .then(|| rng.choice(faults))
        .flatten()
        .map(Candidate::choice)
}

/// The candidates that are no faults, which come first.
pub(super) fn commands<'p>(
    candidates: &'p [Candidate<'p>],
) -> impl Iterator<Item = &'p Candidate<'p>> {
    candidates
        .iter()
        .take_while(|candidate| !candidate.choice().is_fault())
}

impl Sampling for RandomWalk {
    const NAME: &'static str = "random walk";

    fn reseeded(&self, seed: u64) -> RandomWalk {
        RandomWalk::new(self.rng.get_seed() ^ seed)
    }
}

impl Strategy for RandomWalk {
    fn begin(&mut self) -> bool {
        true
    }

    fn choose(&mut self, point: &Point<'_>) -> Decision {
        let candidates = point.candidates();
        if let Some(fault) = fault(&mut self.rng, candidates) {
            return Decision::Take(fault);
        }
        let at = self.rng.usize(..commands(candidates).count().max(1));
        match candidates.get(at) {
            Some(candidate) => Decision::Take(candidate.choice()),
            None => Decision::Diverged("nothing to choose from".to_owned()),
        }
    }
}
