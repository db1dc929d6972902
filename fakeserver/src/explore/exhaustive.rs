//! [`Exhaustive`]: every interleaving, depth first.
//!
//! The program is run again for each schedule, since a future cannot be copied: the common beginning is repeated, and each
//! repeated step must offer what it offered before. A program for which that is not so depends on something else than its
//! replies, and is refused.

use super::schedule::{Choice, Lane};
use super::strategy::{Candidate, Coverage, Decision, Point, Strategy};
use crate::footprint::Footprint;

/// Which interleavings are left out because they end like another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reduction {
    /// None.
    None,
    /// A command that touches nothing that others see runs at once.
    LocalFirst,
    /// That, and of two neighbours that commute only one order (sleep sets). Final states and each client's replies are all
    /// kept; the order in real time of operations of different clients is not.
    SleepSets,
}

/// Every interleaving, depth first.
#[derive(Debug)]
pub struct Exhaustive {
    reduction: Reduction,
    preemptions_max: Option<usize>,
    nodes: Vec<Node>,
    depth: usize,
    preemptions: usize,
    sleeping: Vec<Alternative>,
    begun: bool,
    cut: bool,
}

#[derive(Debug)]
struct Node {
    alternatives: Vec<Alternative>,
    at: usize,
    sleeping: Vec<Alternative>,
    preemptions: usize,
    last: Option<Lane>,
}

#[derive(Clone, Debug)]
struct Alternative {
    choice: Choice,
    fingerprint: u64,
    footprint: Footprint,
    preempts: bool,
}

impl Alternative {
    fn commutes_with(&self, other: &Alternative) -> bool {
        // Faults share a budget, so that one can make the other impossible.
        self.choice.lane != other.choice.lane
            && !(self.choice.is_fault() && other.choice.is_fault())
            && !self.footprint.conflicts(&other.footprint)
    }
}

impl Exhaustive {
    /// With this reduction.
    pub fn new(reduction: Reduction) -> Exhaustive {
        Exhaustive {
            reduction,
            preemptions_max: None,
            nodes: Vec::new(),
            depth: 0,
            preemptions: 0,
            sleeping: Vec::new(),
            begun: false,
            cut: false,
        }
    }

    /// Only schedules that take the turn from a lane that could have gone on at most so often. Sleep sets rest with this,
    /// since a schedule and the one that stands for it may differ in that number.
    #[must_use]
    pub fn preemptions_at_most(mut self, preemptions: usize) -> Exhaustive {
        self.preemptions_max = Some(preemptions);
        self.reduction = self.reduction.min(Reduction::LocalFirst);
        self
    }

    fn new_node(&mut self, point: &Point<'_>) -> Node {
        let mut alternatives = Vec::new();
        for candidate in point.candidates() {
            let choice = candidate.choice();
            let preempts = point.is_preemption(choice);
            let beyond = self
                .preemptions_max
                .is_some_and(|most| preempts && self.preemptions >= most);
            let asleep = self.sleeping.iter().any(|asleep| asleep.choice == choice);
            self.cut |= beyond;
            if !beyond && !asleep {
                alternatives.push(alternative(candidate, preempts));
            }
        }
        Node {
            alternatives,
            at: 0,
            sleeping: self.sleeping.clone(),
            preemptions: self.preemptions,
            last: point.last(),
        }
    }
}

fn alternative(candidate: &Candidate<'_>, preempts: bool) -> Alternative {
    let footprint = if candidate.choice().act == super::Act::DropBefore {
        Footprint::default()
    } else {
        candidate.footprint().clone()
    };
    Alternative {
        choice: candidate.choice(),
        fingerprint: candidate.fingerprint(),
        footprint,
        preempts,
    }
}

impl Strategy for Exhaustive {
    fn begin(&mut self) -> bool {
        if std::mem::replace(&mut self.begun, true) {
            // What was repeated or added last is done; the deepest node with something left goes on.
            while let Some(node) = self.nodes.last_mut() {
                node.at += 1;
                if node.at < node.alternatives.len() {
                    break;
                }
                self.nodes.pop();
            }
            if self.nodes.is_empty() {
                return false;
            }
        }
        self.depth = 0;
        self.preemptions = 0;
        self.sleeping.clear();
        true
    }

    fn choose(&mut self, point: &Point<'_>) -> Decision {
        if self.reduction >= Reduction::LocalFirst
            && let Some(local) = point
                .candidates()
                .iter()
                .find(|candidate| candidate.is_local())
        {
            return Decision::Take(local.choice());
        }
        if self.depth == self.nodes.len() {
            let node = self.new_node(point);
            if node.alternatives.is_empty() {
                return Decision::Prune;
            }
            self.nodes.push(node);
        }
        let Some(node) = self.nodes.get(self.depth) else {
            return Decision::Diverged("no such step".to_owned());
        };
        if let Err(difference) = same(node, point) {
            let depth = self.depth;
            return Decision::Diverged(format!(
                "the same beginning led to something else at choice {depth}: {difference}"
            ));
        }
        let Some(taken) = node.alternatives.get(node.at) else {
            return Decision::Prune;
        };
        self.preemptions = node.preemptions + usize::from(taken.preempts);
        if self.reduction == Reduction::SleepSets {
            let before = node.alternatives.iter().take(node.at);
            self.sleeping = node
                .sleeping
                .iter()
                .chain(before)
                .filter(|asleep| asleep.commutes_with(taken))
                .cloned()
                .collect();
        }
        self.depth += 1;
        Decision::Take(taken.choice)
    }

    fn coverage(&self) -> Coverage {
        match self.preemptions_max {
            Some(most) if self.cut => Coverage::Bounded(most),
            _ => Coverage::Exhaustive,
        }
    }
}

/// Whether what is possible now is what was possible when the node was made.
fn same(node: &Node, point: &Point<'_>) -> Result<(), String> {
    if node.last != point.last() {
        return Err("another lane ran before".to_owned());
    }
    for known in &node.alternatives {
        let now = point
            .candidates()
            .iter()
            .find(|candidate| candidate.choice() == known.choice);
        match now {
            None => return Err(format!("{} is no longer possible", known.choice)),
            Some(now) if now.fingerprint() != known.fingerprint => {
                return Err(format!("{} is another command", known.choice));
            }
            Some(_) => {}
        }
    }
    Ok(())
}
