//! [`Dependence`]: which steps may not change places.

use super::super::schedule::{Act, Choice};
use super::Ran;
use crate::footprint::Footprint;
#[cfg(feature = "mutants")]
use crate::mutant::Mutant;

/// What decides whether two steps commute.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dependence {
    /// Whether it counts which operation returned before which one began.
    pub(super) real_time: bool,
}

impl Dependence {
    /// Whether a step can go on sleeping when another one runs.
    pub(super) fn lets_sleep(self, asleep: &Ran, ran: &Ran) -> bool {
        #[cfg(feature = "mutants")]
        if Mutant::NeverWoken.is_present() {
            return asleep.choice.lane != ran.choice.lane;
        }
        !self.between(asleep, ran)
    }

    /// Whether a step comes after what led to it.
    pub(super) fn knows_causes() -> bool {
        #[cfg(feature = "mutants")]
        if Mutant::CausesIgnored.is_present() {
            return false;
        }
        true
    }

    /// How many steps that could come first are tried until one is possible.
    pub(super) fn choices_tried() -> usize {
        if Dependence::knows_causes() {
            usize::MAX
        } else {
            1
        }
    }

    /// Whether the order of two steps can matter.
    pub(super) fn between(self, one: &Ran, other: &Ran) -> bool {
        if one.choice.lane == other.choice.lane || one.client == other.client {
            // What a client with several connections does next may depend on which answered first.
            return true;
        }
        concerns_all(one.choice)
            || concerns_all(other.choice)
            // Faults share a budget, so that one can make the other impossible.
            || (one.choice.is_fault() && other.choice.is_fault())
            || touched(one).is_some_and(|one| touched(other).is_some_and(|other| one.conflicts(other)))
            || (self.real_time && one.marks.order_matters(other.marks))
    }
}

/// What happens to the server happens to all, but for the script cache, of which the footprint says enough.
fn concerns_all(choice: Choice) -> bool {
    choice.act.is_of_world() && choice.act != Act::FlushScripts
}

/// What a step touched: nothing if its command was lost on the way.
fn touched(ran: &Ran) -> Option<&Footprint> {
    (ran.choice.act != Act::DropBefore).then_some(&ran.footprint)
}
