//! What can be wrong with a run: properties of the keys, of the history and of the trace.

mod access;
mod database;
mod lost_update;
mod progress;
mod serial;
mod spec;
mod verdict;

use super::Violation;

pub use database::Database;
pub(super) use lost_update::{cause, find as find_lost_update};
pub(super) use progress::{Livelock, repeats};
pub use serial::{Order, SEARCH_MAX, Serial, search};
pub use spec::Spec;
pub use verdict::Verdict;
pub(super) use verdict::caught;

/// Looks on while a run is under way.
pub trait Observer: Send {
    /// A step has run that others can see.
    ///
    /// # Errors
    /// What is broken; the run ends with it.
    fn stepped(&mut self, database: &mut Database<'_>) -> Result<(), Violation>;

    /// Whether it looks at the keys: then the order of any two commands that write can be seen, and no reduction may leave one
    /// of the two out.
    fn sees_states(&self) -> bool {
        true
    }
}
