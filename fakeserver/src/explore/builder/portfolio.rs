//! [`Recipe`]: how to make a strategy, and [`Phase`]: with how much of it to search.

use std::fmt;
use std::sync::Arc;

use crate::explore::strategy::Sampling;
use crate::explore::{Exhaustive, Reduction, Strategy};

/// Schedules of a strategy without a budget.
const SCHEDULES: u64 = 10_000;

/// In what a schedule that is left out must be like one that is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keeps {
    /// Final states and each client's replies.
    #[default]
    Outcomes,
    /// And which operation returned before which one began.
    RealTime,
    /// And how many commands that others see lie between.
    Steps,
}

/// Makes strategies, for one phase of a search.
///
/// A strategy that goes through all schedules is made once. One that samples is made anew for each block of schedules, with a
/// seed of its own, so that blocks can run on any thread.
pub trait Recipe: Send + Sync {
    /// Its name, for reports.
    fn name(&self) -> String;

    /// Whether it samples.
    fn samples(&self) -> bool;

    /// A strategy that leaves out no schedule but those that are alike in what `keeps` says; `seed` is for those that draw.
    fn strategy(&self, seed: u64, keeps: Keeps) -> Box<dyn Strategy>;

    /// For at most so many schedules.
    fn schedules(self, most: u64) -> Phase
    where
        Self: Sized + 'static,
    {
        Phase {
            recipe: Arc::new(self),
            schedules: most,
        }
    }
}

/// With what a strategy has to keep.
fn keeping<S: Strategy + 'static>(mut strategy: S, keeps: Keeps) -> Box<dyn Strategy> {
    if keeps >= Keeps::RealTime {
        strategy.keep_real_time();
    }
    Box::new(strategy)
}

impl Recipe for Exhaustive {
    fn name(&self) -> String {
        match self.reduction() {
            Reduction::None => "depth first, no reduction",
            Reduction::LocalFirst => "depth first, local commands at once",
            Reduction::SleepSets => "depth first, sleep sets",
            Reduction::SourceDpor => "depth first, source sets",
        }
        .to_owned()
    }

    fn samples(&self) -> bool {
        false
    }

    fn strategy(&self, _: u64, keeps: Keeps) -> Box<dyn Strategy> {
        let strategy = self.afresh();
        match keeps {
            Keeps::Steps => Box::new(strategy.keep_steps()),
            _ => keeping(strategy, keeps),
        }
    }
}

impl<S: Sampling + Send + Sync + 'static> Recipe for S {
    fn name(&self) -> String {
        S::NAME.to_owned()
    }

    fn samples(&self) -> bool {
        true
    }

    fn strategy(&self, seed: u64, keeps: Keeps) -> Box<dyn Strategy> {
        keeping(self.reseeded(seed), keeps)
    }
}

/// A strategy with a budget.
#[derive(Clone)]
pub struct Phase {
    pub(super) recipe: Arc<dyn Recipe>,
    pub(super) schedules: u64,
}

impl fmt::Debug for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Phase({}, {})", self.recipe.name(), self.schedules)
    }
}

impl<R: Recipe + 'static> From<R> for Phase {
    fn from(recipe: R) -> Phase {
        recipe.schedules(SCHEDULES)
    }
}
