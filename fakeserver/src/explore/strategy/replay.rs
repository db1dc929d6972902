//! [`Replay`]: a schedule that is known.

use super::super::schedule::Choice;
use super::{Decision, Point, Strategy};

/// What a replay does with a choice that is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mismatch {
    Refuse,
    Skip,
}

/// A given schedule, once; behind its end the default.
#[derive(Clone, Debug)]
pub struct Replay {
    choices: Vec<Choice>,
    at: usize,
    begun: bool,
    mismatch: Mismatch,
}

impl Replay {
    /// Exactly these choices: one that is not possible is an error.
    pub fn new(choices: Vec<Choice>) -> Replay {
        Replay {
            choices,
            at: 0,
            begun: false,
            mismatch: Mismatch::Refuse,
        }
    }

    /// These choices as far as they are possible, the default in place of the others.
    pub fn leniently(choices: Vec<Choice>) -> Replay {
        Replay {
            mismatch: Mismatch::Skip,
            ..Replay::new(choices)
        }
    }
}

impl Strategy for Replay {
    fn begin(&mut self) -> bool {
        self.at = 0;
        !std::mem::replace(&mut self.begun, true)
    }

    fn choose(&mut self, point: &Point<'_>) -> Decision {
        while let Some(choice) = self.choices.get(self.at) {
            self.at += 1;
            if point.has(*choice) {
                return Decision::Take(*choice);
            }
            if self.mismatch == Mismatch::Refuse {
                let at = self.at - 1;
                return Decision::Diverged(format!(
                    "step {at} of the schedule, {choice}, is not possible"
                ));
            }
        }
        match point.default_choice() {
            Some(choice) => Decision::Take(choice),
            None => Decision::Diverged("nothing to choose from".to_owned()),
        }
    }
}
