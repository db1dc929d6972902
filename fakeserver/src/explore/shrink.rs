//! Shorter schedules that break the same property: fewer faults, then fewer preemptions, then fewer commands.

use super::schedule::{Act, Choice};
use super::{ExploreError, Violation};

/// A schedule that breaks a property.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) choices: Vec<Choice>,
    pub(super) preemptions: usize,
    pub(super) violation: Violation,
}

/// What a changed schedule breaks, if it does.
pub(super) type Attempt = Option<Found>;

/// Runs that shrinking may take; each change that helps starts over, so that the number is not known beforehand.
const ATTEMPTS_MAX: usize = 2_000;

impl Found {
    fn cost(&self) -> (usize, usize, usize, usize) {
        let faults = self.choices.iter().filter(|one| one.is_fault()).count();
        let switches = self
            .choices
            .windows(2)
            .filter(|pair| pair[0].lane != pair[1].lane)
            .count();
        (faults, self.preemptions, self.choices.len(), switches)
    }
}

/// Greedy: the first change that makes it cheaper is kept, until none does.
pub(super) fn shrink(
    mut best: Found,
    attempt: &mut dyn FnMut(Vec<Choice>) -> Result<Attempt, ExploreError>,
) -> Result<Found, ExploreError> {
    let mut left = ATTEMPTS_MAX;
    'better: loop {
        let base = best.choices.clone();
        for choices in changes(&base) {
            if left == 0 {
                return Ok(best);
            }
            left -= 1;
            if let Some(found) = attempt(choices)?
                && found.violation.property == best.violation.property
                && found.cost() < best.cost()
            {
                best = found;
                continue 'better;
            }
        }
        return Ok(best);
    }
}

/// Changes worth a try, the boldest first: a shorter beginning, a fault less, two stretches of a lane put together.
fn changes(choices: &[Choice]) -> impl Iterator<Item = Vec<Choice>> + '_ {
    let cuts = (0..choices.len()).filter_map(move |at| {
        let boundary = at == 0 || choices[at].lane != choices[at - 1].lane;
        boundary.then(|| choices[..at].to_vec())
    });
    let repaired = (0..choices.len())
        .filter(|at| choices[*at].is_fault())
        .map(|at| {
            let mut changed = choices.to_vec();
            changed[at].act = Act::Execute;
            changed
        });
    let merged = stretches(choices)
        .into_iter()
        .flat_map(move |stretch| [pull_next(choices, &stretch), push_back(choices, &stretch)])
        .flatten();
    cuts.chain(repaired).chain(merged)
}

/// Where one lane has the turn without a break.
fn stretches(choices: &[Choice]) -> Vec<std::ops::Range<usize>> {
    let mut stretches: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, choice) in choices.iter().enumerate() {
        match stretches.last_mut() {
            Some(last) if choices[last.start].lane == choice.lane => last.end = at + 1,
            _ => stretches.push(at..at + 1),
        }
    }
    stretches
}

/// The lane's next stretch follows this one at once.
fn pull_next(choices: &[Choice], stretch: &std::ops::Range<usize>) -> Option<Vec<Choice>> {
    let lane = choices.get(stretch.start)?.lane;
    let next = stretches(choices)
        .into_iter()
        .find(|other| other.start > stretch.end && choices[other.start].lane == lane)?;
    let parts = [
        &choices[..stretch.end],
        &choices[next.clone()],
        &choices[stretch.end..next.start],
        &choices[next.end..],
    ];
    Some(parts.concat())
}

/// This stretch waits for the lane's next one.
fn push_back(choices: &[Choice], stretch: &std::ops::Range<usize>) -> Option<Vec<Choice>> {
    let lane = choices.get(stretch.start)?.lane;
    let next = stretches(choices)
        .into_iter()
        .find(|other| other.start > stretch.end && choices[other.start].lane == lane)?;
    let parts = [
        &choices[..stretch.start],
        &choices[stretch.end..next.start],
        &choices[stretch.clone()],
        &choices[next.start..],
    ];
    Some(parts.concat())
}
