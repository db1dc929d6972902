//! [`Steer`]: who goes on at each crossing of a run, by several strategies.

use super::choices::{Choice, Fate};
use crate::sweep::schedule::Role;

/// A place in a run where programs may take turns: the one on turn is about to have a command run that others can see, has
/// ended, or waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sweep) struct Crossing {
    /// Who is on turn and could go on.
    pub(in crate::sweep) current: Option<Role>,
    /// What it is about to do, for readers.
    pub(in crate::sweep) command: String,
    /// Whether others may come in between here; not within what was sent in one piece.
    pub(in crate::sweep) is_border: bool,
    /// Everybody who can go on, in order.
    pub(in crate::sweep) candidates: Vec<Role>,
}

impl Crossing {
    /// Who goes on if nothing interferes.
    fn default_role(&self) -> Option<Role> {
        self.current.or_else(|| self.candidates.first().copied())
    }

    /// Whether this takes the turn from a program that could have gone on.
    pub(super) fn is_preemption(&self, role: Role) -> bool {
        self.current.is_some_and(|current| current != role)
    }
}

/// Decides who goes on.
pub(in crate::sweep) trait Steer {
    /// Who goes on here. None if the run is not the one that was to be repeated.
    fn choose(&mut self, crossing: &Crossing) -> Option<Choice>;
}

/// A crossing and what was decided there.
#[derive(Clone, Debug)]
pub(super) struct Passed {
    pub(super) crossing: Crossing,
    pub(super) choice: Choice,
}

/// A strategy whose decisions are written down.
pub(super) struct Recorded<'s> {
    strategy: &'s mut dyn Steer,
    pub(super) passed: Vec<Passed>,
}

impl<'s> Recorded<'s> {
    pub(super) fn new(strategy: &'s mut dyn Steer) -> Recorded<'s> {
        Recorded {
            strategy,
            passed: Vec::new(),
        }
    }
}

impl Steer for Recorded<'_> {
    fn choose(&mut self, crossing: &Crossing) -> Option<Choice> {
        let choice = self.strategy.choose(crossing)?;
        self.passed.push(Passed {
            crossing: crossing.clone(),
            choice,
        });
        Some(choice)
    }
}

/// How often the turn was taken from a program that could have gone on.
pub(super) fn preemptions(passed: &[Passed]) -> usize {
    let is_one = |one: &&Passed| one.crossing.is_preemption(one.choice.role);
    passed.iter().filter(is_one).count()
}

/// Any of those who can go on, with at most so many preemptions.
pub(super) struct Random {
    pub(super) rng: fastrand::Rng,
    pub(super) preemptions_left: usize,
}

impl Steer for Random {
    fn choose(&mut self, crossing: &Crossing) -> Option<Choice> {
        let stays = !crossing.is_border || self.preemptions_left == 0;
        if let Some(current) = crossing.current.filter(|_| stays) {
            return Some(Choice::execute(current));
        }
        let role = self.rng.choice(crossing.candidates.iter().copied())?;
        self.preemptions_left -= usize::from(crossing.is_preemption(role));
        Some(Choice::execute(role))
    }
}

/// Probabilistic concurrency testing: whoever has the highest priority goes on, and at a few random places the one who would go
/// on falls behind all that have not fallen yet.
pub(super) struct Pct {
    /// The highest first.
    priorities: Vec<Role>,
    /// How many of them, from behind, have fallen.
    fallen: usize,
    changes: Vec<usize>,
    at: usize,
    rng: fastrand::Rng,
}

impl Pct {
    /// So many changes among the first `len` crossings.
    pub(super) fn new(mut rng: fastrand::Rng, changes: usize, len: usize) -> Pct {
        let mut priorities = Role::PROGRAMS.to_vec();
        rng.shuffle(&mut priorities);
        Pct {
            priorities,
            fallen: 0,
            changes: (0..changes).map(|_| rng.usize(..len.max(1))).collect(),
            at: 0,
            rng,
        }
    }

    fn first(&self, crossing: &Crossing) -> Option<Role> {
        let can = |role: &&Role| crossing.candidates.contains(role);
        self.priorities.iter().find(can).copied()
    }

    fn fall(&mut self, role: Role) {
        let Some(at) = self.priorities.iter().position(|other| *other == role) else {
            return;
        };
        let had_fallen = self.priorities.len() - at <= self.fallen;
        self.priorities.remove(at);
        let others = self.fallen - usize::from(had_fallen);
        let place = self.priorities.len() - self.rng.usize(..=others);
        self.priorities.insert(place, role);
        self.fallen = others + 1;
    }
}

impl Steer for Pct {
    fn choose(&mut self, crossing: &Crossing) -> Option<Choice> {
        let at = self.at;
        self.at += 1;
        if let Some(current) = crossing.current.filter(|_| !crossing.is_border) {
            return Some(Choice::execute(current));
        }
        if self.changes.contains(&at)
            && let Some(role) = self.first(crossing)
        {
            self.fall(role);
        }
        self.first(crossing).map(Choice::execute)
    }
}

/// Given turns; behind their end nobody is interrupted.
pub(super) struct Prefix {
    choices: Vec<Choice>,
    at: usize,
    is_lenient: bool,
}

impl Prefix {
    /// Exactly these turns.
    pub(super) fn exactly(choices: Vec<Choice>) -> Prefix {
        Prefix {
            choices,
            at: 0,
            is_lenient: false,
        }
    }

    /// These turns as far as they are possible; others are left out.
    pub(super) fn leniently(choices: Vec<Choice>) -> Prefix {
        Prefix {
            is_lenient: true,
            ..Prefix::exactly(choices)
        }
    }
}

impl Steer for Prefix {
    fn choose(&mut self, crossing: &Crossing) -> Option<Choice> {
        while let Some(choice) = self.choices.get(self.at).copied() {
            if crossing.candidates.contains(&choice.role) {
                self.at += 1;
                return Some(choice);
            }
            if !self.is_lenient {
                return None;
            }
            self.at += 1;
        }
        crossing.default_role().map(|role| Choice {
            role,
            fate: Fate::Execute,
        })
    }
}
