//! [`Planned`]: which schedules there are besides one that was run.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::choices::Choice;
use super::steer::Passed;
use crate::sweep::conductor::Turn;
use crate::sweep::schedule::Role;

/// The turns that were taken.
pub(super) fn choices(passed: &[Passed]) -> Vec<Choice> {
    passed.iter().map(|one| one.choice).collect()
}

/// A schedule that deviates from one that was run.
pub(super) struct Planned {
    pub(super) parent: Rc<Vec<Passed>>,
    /// So much of the parent comes first.
    pub(super) len: usize,
    pub(super) then: Option<Choice>,
}

impl Planned {
    /// Its turns.
    pub(super) fn choices(&self) -> Vec<Choice> {
        let start = self.parent.get(..self.len).unwrap_or_default();
        choices(start).into_iter().chain(self.then).collect()
    }

    /// Whether a run went as its parent did up to the deviation.
    pub(super) fn was_repeated(&self, passed: &[Passed]) -> bool {
        let name = |one: &Passed| one.crossing.command.split(' ').next().map(str::to_owned);
        let is_same = |(one, other): (&Passed, &Passed)| {
            one.choice == other.choice
                && name(one) == name(other)
                && one.crossing.current == other.crossing.current
                && one.crossing.candidates == other.crossing.candidates
        };
        let start = self.parent.get(..self.len).unwrap_or_default();
        let then = passed.get(self.len).map(|one| one.choice);
        passed.len() >= self.len
            && start.iter().zip(passed).all(is_same)
            && (self.then.is_none() || self.then == then)
    }
}

/// Schedules that differ from one at a single later place, and by how many preemptions each is marked then.
pub(super) fn deviations(
    passed: &Rc<Vec<Passed>>,
    from: usize,
) -> impl Iterator<Item = (usize, Planned)> + use<> {
    let mut found = Vec::new();
    let mut so_far = 0;
    for (at, one) in passed.iter().enumerate() {
        let crossing = &one.crossing;
        if at >= from && (crossing.is_border || crossing.current.is_none()) {
            let others = crossing.candidates.iter();
            for role in others.filter(|role| **role != one.choice.role) {
                let preemptions = so_far + usize::from(crossing.is_preemption(*role));
                let deviation = Planned {
                    parent: Rc::clone(passed),
                    len: at,
                    then: Some(Choice::execute(*role)),
                };
                found.push((preemptions, deviation));
            }
        }
        so_far += usize::from(crossing.is_preemption(one.choice.role));
    }
    found.into_iter()
}

/// Schedules in which a piece of a program joins the piece before or behind it.
pub(super) fn joined(choices: &[Choice]) -> Vec<Vec<Choice>> {
    let mut pieces: Vec<Vec<Choice>> = Vec::new();
    for choice in choices {
        match pieces.last_mut() {
            Some(piece) if piece.last().is_some_and(|last| last.role == choice.role) => {
                piece.push(*choice);
            }
            _ => pieces.push(vec![*choice]),
        }
    }
    let role = |piece: &[Choice]| piece.first().map(|choice| choice.role);
    let mut found = BTreeSet::new();
    for at in 0..pieces.len() {
        let own = role(&pieces[at]);
        let next = (at + 1..pieces.len()).find(|other| role(&pieces[*other]) == own);
        let Some(next) = next else {
            continue;
        };
        for (from, to) in [(next, at + 1), (at, next - 1)] {
            let mut moved = pieces.clone();
            let piece = moved.remove(from);
            moved.insert(to, piece);
            found.insert(moved.concat());
        }
    }
    found.into_iter().collect()
}

/// All orders of programs, of which there are at most five.
pub(super) fn permutations(programs: &[Role]) -> Vec<Vec<Turn>> {
    let mut orders: Vec<Vec<Role>> = vec![Vec::new()];
    for _ in programs {
        let longer = orders.iter().flat_map(|order| {
            let rest = programs.iter().filter(|role| !order.contains(role));
            rest.map(|role| [order.as_slice(), &[*role]].concat())
        });
        orders = longer.collect();
    }
    let turns = |order: Vec<Role>| order.into_iter().map(Turn::Run).collect();
    orders.into_iter().map(turns).collect()
}

/// The orders that are run twice, to learn what differs between equal runs: one and its reverse.
pub(super) fn first_and_last(orders: &[Vec<Turn>]) -> Vec<Vec<Turn>> {
    [orders.first(), orders.last()]
        .into_iter()
        .flatten()
        .cloned()
        .collect()
}
