//! [`HappensBefore`]: the order that the steps of a schedule cannot do without, and the races in it.
//!
//! Dynamic partial-order reduction with source sets, after Abdulla, Aronis, Jonsson and Sagonas. A step comes after the steps of
//! its lane before it, after the step that led to it, and after earlier steps with which it does not commute. Two steps of the
//! last kind with none between them race: another schedule has to take them the other way round. For that it must begin, at
//! the node of the first, with a step that can come first of those that do not need it. If none of these is wanted there, one
//! becomes so.

use smallvec::SmallVec;

use super::super::schedule::{Choice, Lane};
use super::Ran;
use super::dependence::Dependence;
use super::node::Node;

/// Which steps of the present schedule come after which.
#[derive(Debug, Default)]
pub(super) struct HappensBefore {
    /// Lanes in the order in which they were first seen; a lane's place is its slot in a clock.
    lanes: Vec<Lane>,
    /// Of each step its slot and its clock.
    clocks: Vec<(usize, Clock)>,
}

/// Of each lane, up to where its steps come before.
#[derive(Clone, Debug, Default)]
struct Clock(SmallVec<[u32; 4]>);

impl Clock {
    fn until(&self, slot: usize) -> usize {
        self.0.get(slot).map_or(0, |until| *until as usize)
    }

    fn covers(&self, slot: usize, step: usize) -> bool {
        self.until(slot) > step
    }

    fn add(&mut self, slot: usize, step: usize) {
        if self.0.len() <= slot {
            self.0.resize(slot + 1, 0);
        }
        if let Some(until) = self.0.get_mut(slot) {
            let behind = u32::try_from(step + 1).unwrap_or(u32::MAX);
            *until = behind.max(*until);
        }
    }

    fn join(&mut self, other: &Clock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (until, others) in self.0.iter_mut().zip(&other.0) {
            *until = (*until).max(*others);
        }
    }
}

impl HappensBefore {
    /// Forgets all but the first steps, which the next schedule repeats.
    pub(super) fn truncate(&mut self, steps: usize) {
        self.clocks.truncate(steps);
    }

    pub(super) fn held(&self) -> usize {
        self.clocks.len()
    }

    /// Adds the steps that are new and has their races tried the other way round.
    pub(super) fn extend(&mut self, steps: &[Ran], dependence: Dependence, nodes: &mut [Node]) {
        for (at, step) in steps.iter().enumerate().skip(self.clocks.len()) {
            let slot = self.slot(step.choice.lane);
            let mut clock = self.certain(steps, at, slot);
            let mut races: SmallVec<[usize; 8]> = SmallVec::new();
            for (earlier, other) in steps.iter().enumerate().take(at).rev() {
                let Some((other_slot, other_clock)) = self.clocks.get(earlier) else {
                    continue;
                };
                // What is covered comes before anyhow, by a step in between or since it led to this one.
                if !clock.covers(*other_slot, earlier) && dependence.between(other, step) {
                    clock.join(other_clock);
                    races.push(earlier);
                }
            }
            clock.add(slot, at);
            self.clocks.push((slot, clock));
            for earlier in races {
                if let Ok(node) = nodes.binary_search_by_key(&earlier, |node| node.step)
                    && let Some(node) = nodes.get_mut(node)
                {
                    self.reverse(steps, earlier, at, node);
                }
            }
        }
    }

    fn slot(&mut self, lane: Lane) -> usize {
        let known = self.lanes.iter().position(|known| *known == lane);
        known.unwrap_or_else(|| {
            self.lanes.push(lane);
            self.lanes.len() - 1
        })
    }

    /// What a step comes after whatever it does: its lane's steps, what led to it, all before a timer that led to it.
    fn certain(&self, steps: &[Ran], at: usize, slot: usize) -> Clock {
        let mut clock = Clock::default();
        let before = self.clocks.iter().rev();
        if let Some((_, own)) = before.clone().find(|(other, _)| *other == slot) {
            clock.join(own);
        }
        let Some(enabled_by) = steps.get(at).map(|step| step.enabled_by) else {
            return clock;
        };
        if Dependence::knows_causes() {
            let cause = enabled_by.step().and_then(|step| self.clocks.get(step));
            if let Some((_, cause)) = cause {
                clock.join(cause);
            }
            let all = self.clocks.iter().take(enabled_by.all_before());
            for (step, (slot, _)) in all.enumerate() {
                clock.add(*slot, step);
            }
        }
        clock
    }

    /// Has the node of the earlier of two racing steps begin with something after which the later can come first.
    fn reverse(&self, steps: &[Ran], earlier: usize, later: usize, node: &mut Node) {
        let initials = self.initials(steps, earlier, later);
        // What sleeps was seen from an earlier node, with all that begins with it.
        if initials.iter().any(|initial| node.covers(*initial)) {
            return;
        }
        // The last is the later step itself if it can come first at all: the shortest way.
        let mut choices = initials.iter().rev().take(Dependence::choices_tried());
        if choices.any(|initial| node.want(*initial)) {
            return;
        }
        // None is possible there: clients hand something over that wakes nobody, so that a step seems to need less than it
        // does. Whatever it needs begins with one of these.
        if Dependence::knows_causes() {
            node.want_all();
        }
    }

    /// Of the steps between that do not come after the earlier one, and the later one: those that come after none of them.
    fn initials(&self, steps: &[Ran], earlier: usize, later: usize) -> SmallVec<[Choice; 8]> {
        let mut initials = SmallVec::new();
        let Some((earlier_slot, _)) = self.clocks.get(earlier) else {
            return initials;
        };
        // Of each slot its first step among them.
        let mut first: SmallVec<[Option<usize>; 8]> = SmallVec::new();
        first.resize(self.lanes.len(), None);
        for at in earlier + 1..=later {
            let (Some((slot, clock)), Some(step)) = (self.clocks.get(at), steps.get(at)) else {
                continue;
            };
            if at < later && clock.covers(*earlier_slot, earlier) {
                continue;
            }
            let comes_after = |(slot, first): (usize, &Option<usize>)| {
                first.is_some_and(|first| clock.covers(slot, first))
            };
            if !first.iter().enumerate().any(comes_after) {
                initials.push(step.choice);
            }
            if let Some(first) = first.get_mut(*slot) {
                first.get_or_insert(at);
            }
        }
        initials
    }
}
