//! Shorter schedules that break the same property: fewer faults, then the normal form of the trace, then fewer preemptions, fewer
//! commands.

use super::normal::normal_form;
use super::schedule::Choice;
use super::trace::Step;
use super::{ExploreError, Violation};

/// A schedule that breaks a property.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) steps: Vec<Step>,
    pub(super) preemptions: usize,
    pub(super) violation: Violation,
}

/// What a changed schedule breaks, if it does.
pub(super) type Attempt = Option<Found>;

/// Runs a changed schedule, as far as it is possible.
pub(super) type Run<'r> = dyn FnMut(Vec<Choice>) -> Result<Attempt, ExploreError> + 'r;

/// Runs that shrinking may take; each change that helps starts over, so that the number is not known beforehand.
const ATTEMPTS_MAX: usize = 2_000;

impl Found {
    pub(super) fn choices(&self) -> Vec<Choice> {
        self.steps.iter().map(|step| step.choice).collect()
    }

    fn cost(&self) -> (usize, usize, usize, usize) {
        let faults = self
            .steps
            .iter()
            .filter(|one| one.choice.is_fault())
            .count();
        let switches = self
            .steps
            .windows(2)
            .filter(|pair| pair[0].choice.lane != pair[1].choice.lane)
            .count();
        (faults, self.preemptions, self.steps.len(), switches)
    }
}

/// A schedule on its way to a shorter one.
struct Shrink<'r> {
    best: Found,
    run: &'r mut Run<'r>,
    left: usize,
}

/// The shortest schedule that was found, and how many runs it took.
pub(super) fn shrink<'r>(
    found: Found,
    run: &'r mut Run<'r>,
) -> Result<(Found, usize), ExploreError> {
    let mut shrink = Shrink {
        best: found,
        run,
        left: ATTEMPTS_MAX,
    };
    while shrink.first_better(repaired)? {}
    shrink.reorder()?;
    while shrink.first_better(changes)? {
        shrink.reorder()?;
    }
    Ok((shrink.best, ATTEMPTS_MAX - shrink.left))
}

impl Shrink<'_> {
    /// Whether a schedule is cheaper and breaks the same property; then it is the best from now on.
    fn is_better(&mut self, choices: Vec<Choice>) -> Result<bool, ExploreError> {
        self.left = self.left.saturating_sub(1);
        let better = (self.run)(choices)?.filter(|found| {
            found.violation.property == self.best.violation.property
                && found.cost() < self.best.cost()
        });
        Ok(better.map(|better| self.best = better).is_some())
    }

    /// Takes the first change that makes the schedule cheaper.
    fn first_better(
        &mut self,
        changes: fn(&[Step]) -> Vec<Vec<Choice>>,
    ) -> Result<bool, ExploreError> {
        for choices in changes(&self.best.steps) {
            if self.left == 0 {
                return Ok(false);
            }
            if self.is_better(choices)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Another order of the same run: needs no search, only a run that shows that it is the same.
    fn reorder(&mut self) -> Result<(), ExploreError> {
        if let (true, Some(choices)) = (self.left > 0, normal_form(&self.best.steps)) {
            self.is_better(choices)?;
        }
        Ok(())
    }
}

/// A fault less, all of them first.
fn repaired(steps: &[Step]) -> Vec<Vec<Choice>> {
    let choices: Vec<Choice> = steps.iter().map(|step| step.choice).collect();
    let faulty: Vec<usize> = (0..choices.len())
        .filter(|at| choices[*at].is_fault())
        .collect();
    let without = |faults: &[usize]| {
        let mut changed = Vec::with_capacity(choices.len());
        for (at, choice) in choices.iter().enumerate() {
            match faults.contains(&at) {
                false => changed.push(*choice),
                true if choice.act.is_of_world() => {}
                true => changed.push(Choice::execute(choice.lane)),
            }
        }
        changed
    };
    let all = (faulty.len() > 1).then(|| without(&faulty));
    let each = faulty.iter().map(|at| without(&[*at]));
    all.into_iter().chain(each).collect()
}

/// Changes worth a try, the boldest first: the default from a deviation on, two stretches of a lane put together, a fault less.
fn changes(steps: &[Step]) -> Vec<Vec<Choice>> {
    let choices: Vec<Choice> = steps.iter().map(|step| step.choice).collect();
    let deviations = steps.iter().enumerate().filter(|(_, step)| step.deviates);
    let cuts = deviations.map(|(at, _)| choices[..at].to_vec());
    let merged = stretches(&choices)
        .into_iter()
        .flat_map(|stretch| [pull_next(&choices, &stretch), push_back(&choices, &stretch)])
        .flatten();
    cuts.chain(merged).chain(repaired(steps)).collect()
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
