//! [`Exhaustive`]: every interleaving, depth first.
//!
//! The program is run again for each schedule, since a future cannot be copied: the common beginning is repeated, and each
//! repeated step must offer what it offered before. A program for which that is not so depends on something else than its
//! replies, and is refused.

use super::dependence::Dependence;
use super::dpor::HappensBefore;
use super::node::{Alternative, Node};
use super::{Coverage, Decision, Point, Ran, Strategy};

/// Which interleavings are left out because they end like another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reduction {
    /// None.
    None,
    /// A command that touches nothing that others see runs at once. It may be what an operation ends with: if real time is
    /// to be kept it has a place like any other, and nothing is left out.
    LocalFirst,
    /// That, and of two neighbours that commute only one order (sleep sets). Final states and each client's replies are all
    /// kept; the order in real time of operations of different clients only if [`Strategy::keep_real_time`] was called.
    SleepSets,
    /// That, and another order is tried only where a schedule has shown two commands that do not commute (source sets,
    /// dynamic partial-order reduction). Keeps what sleep sets keep, and does not begin what they would give up half-way.
    SourceDpor,
}

/// Every interleaving, depth first. Its memory grows with the length of a schedule, not with their number.
#[derive(Debug)]
pub struct Exhaustive {
    reduction: Reduction,
    dependence: Dependence,
    preemptions_max: Option<usize>,
    nodes: Vec<Node>,
    before: HappensBefore,
    depth: usize,
    preemptions: usize,
    begun: bool,
    cut: bool,
}

impl Exhaustive {
    /// With this reduction.
    pub fn new(reduction: Reduction) -> Exhaustive {
        Exhaustive {
            reduction,
            dependence: Dependence::default(),
            preemptions_max: None,
            nodes: Vec::new(),
            before: HappensBefore::default(),
            depth: 0,
            preemptions: 0,
            begun: false,
            cut: false,
        }
    }

    /// One of each class of schedules that differ only in the order of commands that commute.
    pub fn source_dpor() -> Exhaustive {
        Exhaustive::new(Reduction::SourceDpor)
    }

    /// The same classes by sleep sets alone, which begin more schedules and give them up.
    pub fn sleep_sets() -> Exhaustive {
        Exhaustive::new(Reduction::SleepSets)
    }

    /// Only schedules that take the turn from a lane that could have gone on at most so often. Sleep sets and source sets rest
    /// with this, since a schedule and the one that stands for it may differ in that number: [`Reduction::LocalFirst`] is left.
    #[must_use]
    pub fn preemptions_at_most(mut self, preemptions: usize) -> Exhaustive {
        self.preemptions_max = Some(preemptions);
        self.reduction = self.reduction.min(Reduction::LocalFirst);
        self
    }

    /// The same before its first schedule.
    pub(in crate::explore) fn afresh(&self) -> Exhaustive {
        Exhaustive {
            dependence: self.dependence,
            preemptions_max: self.preemptions_max,
            ..Exhaustive::new(self.reduction)
        }
    }

    /// Without reductions that change how many commands that others see lie between two operations.
    pub(in crate::explore) fn keep_steps(mut self) -> Exhaustive {
        self.reduction = self.reduction.min(Reduction::LocalFirst);
        self
    }

    pub(in crate::explore) fn reduction(&self) -> Reduction {
        self.reduction
    }

    /// How many entries it remembers: alternatives, and clocks of the present schedule.
    pub fn entries_held(&self) -> usize {
        self.nodes.iter().map(Node::held).sum::<usize>() + self.before.held()
    }

    /// A local command may end an operation, and the next one begin: in real time it has a place like any other.
    fn runs_local_first(&self) -> bool {
        self.reduction >= Reduction::LocalFirst && !self.dependence.real_time
    }

    fn new_node(&mut self, point: &Point<'_>) -> Option<Node> {
        let mut sleeping = Vec::new();
        if self.reduction >= Reduction::SleepSets
            && let Some(parent) = self.nodes.last_mut()
        {
            parent.observe(point.ran());
            sleeping = parent.sleeping_behind(self.dependence);
        }
        let mut alternatives: Vec<Alternative> = Vec::new();
        for candidate in point.candidates() {
            let choice = candidate.choice();
            let preempts = point.is_preemption(choice);
            let beyond = self
                .preemptions_max
                .is_some_and(|most| preempts && self.preemptions >= most);
            self.cut |= beyond;
            if beyond || sleeping.iter().any(|asleep| asleep.choice == choice) {
                continue;
            }
            let mut alternative = Alternative::new(candidate, preempts);
            // With source sets one command is enough to begin with: races ask for others. Faults share a budget and so can make
            // each other impossible, which no race shows; each is tried wherever it can strike. That keeps the reduction of
            // commands sound: whatever a set of commands does not cover begins with steps that commute with one of them, up to
            // a step that does not; both that command and the steps behind it, faults too, are possible in either order, since
            // a command takes nothing from the budget. So a schedule shows that race.
            let is_spare = self.reduction == Reduction::SourceDpor
                && !choice.is_fault()
                && !alternatives.is_empty();
            if !is_spare {
                alternative.want();
            }
            alternatives.push(alternative);
        }
        (!alternatives.is_empty())
            .then(|| Node::new(point, alternatives, sleeping, self.preemptions))
    }
}

impl Strategy for Exhaustive {
    fn begin(&mut self) -> bool {
        if std::mem::replace(&mut self.begun, true) {
            // What was repeated or added last is done; the deepest node with something left goes on.
            while self.nodes.last_mut().is_some_and(|node| !node.advance()) {
                self.nodes.pop();
            }
            match self.nodes.last() {
                Some(node) => self.before.truncate(node.step),
                None => return false,
            }
        }
        self.depth = 0;
        self.preemptions = 0;
        true
    }

    fn choose(&mut self, point: &Point<'_>) -> Decision {
        if let (true, Some(local)) = (self.runs_local_first(), point.local()) {
            return Decision::Take(local.choice());
        }
        if self.depth == self.nodes.len() {
            match self.new_node(point) {
                Some(node) => self.nodes.push(node),
                None => return Decision::Prune,
            }
        }
        let Some(node) = self.nodes.get(self.depth) else {
            return Decision::Diverged("no such step".to_owned());
        };
        if let Some(difference) = node.difference(point) {
            let depth = self.depth;
            return Decision::Diverged(format!(
                "the same beginning led to something else at choice {depth}: {difference}"
            ));
        }
        let Some(taken) = node.taken() else {
            return Decision::Prune;
        };
        self.preemptions = node.preemptions + usize::from(taken.preempts);
        self.depth += 1;
        Decision::Take(taken.choice())
    }

    fn end(&mut self, steps: &[Ran]) {
        if self.reduction >= Reduction::SleepSets
            && let Some(node) = self.nodes.last_mut()
        {
            node.observe(steps);
        }
        if self.reduction == Reduction::SourceDpor {
            self.before.extend(steps, self.dependence, &mut self.nodes);
        }
    }

    fn restart(&mut self) -> bool {
        self.nodes.clear();
        self.before.truncate(0);
        self.begun = false;
        self.cut = false;
        true
    }

    fn keep_real_time(&mut self) {
        self.dependence.real_time = true;
    }

    fn coverage(&self) -> Coverage {
        match self.preemptions_max {
            Some(most) if self.cut => Coverage::Bounded(most),
            _ => Coverage::Exhaustive,
        }
    }
}
