//! [`Node`]: a moment of a depth-first search, with what can happen there and how much of it was seen.

use super::super::schedule::{Choice, Lane};
use super::dependence::Dependence;
use super::{Candidate, Marks, Point, Ran};

/// A moment in which something is chosen.
#[derive(Debug)]
pub(super) struct Node {
    /// How many steps come before, those among them that needed no choice.
    pub(super) step: usize,
    pub(super) preemptions: usize,
    alternatives: Vec<Alternative>,
    at: usize,
    /// What need not happen here: all that begins with it was seen from an earlier node.
    sleeping: Vec<Ran>,
    last: Option<Lane>,
}

/// Something that can happen.
#[derive(Debug)]
pub(super) struct Alternative {
    /// As predicted; once it has run, as it was.
    ran: Ran,
    fingerprint: u64,
    pub(super) preempts: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not needed so far.
    Spare,
    Wanted,
    /// All that begins with it was seen.
    Done,
}

impl Node {
    pub(super) fn new(
        point: &Point<'_>,
        alternatives: Vec<Alternative>,
        sleeping: Vec<Ran>,
        preemptions: usize,
    ) -> Node {
        Node {
            step: point.ran().len(),
            preemptions,
            alternatives,
            at: 0,
            sleeping,
            last: point.last(),
        }
    }

    /// What happens in the present schedule.
    pub(super) fn taken(&self) -> Option<&Alternative> {
        self.alternatives.get(self.at)
    }

    /// Takes note of how what happens has turned out.
    pub(super) fn observe(&mut self, steps: &[Ran]) {
        if let (Some(taken), Some(ran)) = (self.alternatives.get_mut(self.at), steps.get(self.step))
        {
            taken.ran.clone_from(ran);
        }
    }

    /// Goes on to the next that is wanted. `false` if there is none.
    pub(super) fn advance(&mut self) -> bool {
        if let Some(taken) = self.alternatives.get_mut(self.at) {
            taken.state = State::Done;
        }
        let wanted = |one: &Alternative| one.state == State::Wanted;
        match self.alternatives.iter().position(wanted) {
            Some(at) => {
                self.at = at;
                true
            }
            None => false,
        }
    }

    /// What need not happen behind what happens here: of two steps that commute the other order was seen.
    pub(super) fn sleeping_behind(&self, dependence: Dependence) -> Vec<Ran> {
        let Some(taken) = self.taken() else {
            return Vec::new();
        };
        let done = self.alternatives.iter();
        let done = done.filter(|one| one.state == State::Done);
        self.sleeping
            .iter()
            .chain(done.map(|one| &one.ran))
            .filter(|asleep| dependence.lets_sleep(asleep, &taken.ran))
            .cloned()
            .collect()
    }

    /// Whether all that begins with the choice was seen or will be.
    pub(super) fn covers(&self, choice: Choice) -> bool {
        self.sleeping.iter().any(|asleep| asleep.choice == choice)
            || self
                .alternatives
                .iter()
                .any(|one| one.ran.choice == choice && one.state != State::Spare)
    }

    /// Has the choice made, too, if it is possible here.
    pub(super) fn want(&mut self, choice: Choice) -> bool {
        let found = self
            .alternatives
            .iter_mut()
            .find(|one| one.ran.choice == choice);
        found.is_some_and(|found| {
            found.want();
            true
        })
    }

    /// Has all choices made.
    pub(super) fn want_all(&mut self) {
        self.alternatives.iter_mut().for_each(Alternative::want);
    }

    /// How many alternatives are kept, sleeping ones among them.
    pub(super) fn held(&self) -> usize {
        self.alternatives.len() + self.sleeping.len()
    }

    /// How what is possible now differs from what was possible when the node was made.
    pub(super) fn difference(&self, point: &Point<'_>) -> Option<String> {
        if self.last != point.last() || self.step != point.ran().len() {
            return Some("another lane ran before".to_owned());
        }
        self.alternatives.iter().find_map(|known| {
            let choice = known.ran.choice;
            let now = point.candidates().iter().find(|now| now.choice() == choice);
            match now {
                None => Some(format!("{choice} is no longer possible")),
                Some(now) if now.fingerprint() != known.fingerprint => {
                    Some(format!("{choice} is another command"))
                }
                Some(_) => None,
            }
        })
    }
}

impl Alternative {
    pub(super) fn new(candidate: &Candidate<'_>, preempts: bool) -> Alternative {
        Alternative {
            ran: Ran {
                choice: candidate.choice(),
                client: candidate.client(),
                footprint: candidate.footprint().clone(),
                enabled_by: candidate.enabled_by(),
                local: candidate.is_local(),
                marks: Marks::default(),
            },
            fingerprint: candidate.fingerprint(),
            preempts,
            state: State::Spare,
        }
    }

    pub(super) fn choice(&self) -> Choice {
        self.ran.choice
    }

    pub(super) fn want(&mut self) {
        if self.state == State::Spare {
            self.state = State::Wanted;
        }
    }
}
