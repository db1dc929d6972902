//! Footprints and races that are wrong on purpose: whatever is to prove that reductions lose nothing must notice each of them.

use std::cell::Cell;

use crate::footprint::Footprint;

/// Something that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// WATCH touches nothing.
    WatchTouchesNothing,
    /// EXEC does not read what was watched.
    ExecIgnoresWatched,
    /// GET touches nothing.
    GetTouchesNothing,
    /// INCR does not write.
    IncrReadsOnly,
    /// A step need not come after the step that led to it.
    CausesIgnored,
    /// What sleeps goes on sleeping when something runs with which it does not commute.
    NeverWoken,
}

thread_local! {
    static PRESENT: Cell<Option<Mutant>> = const { Cell::new(None) };
}

impl Mutant {
    /// Makes it wrong while this runs, on this thread.
    pub fn during<T>(self, run: impl FnOnce() -> T) -> T {
        PRESENT.set(Some(self));
        let result = run();
        PRESENT.set(None);
        result
    }

    pub(crate) fn is_present(self) -> bool {
        PRESENT.get() == Some(self)
    }
}

/// A command's footprint as its words say it.
pub(crate) fn own(name: &str, footprint: Footprint) -> Footprint {
    match (PRESENT.get(), name) {
        (Some(Mutant::GetTouchesNothing), "GET") => Footprint::default(),
        (Some(Mutant::IncrReadsOnly), "INCR") => footprint.without_writes(),
        _ => footprint,
    }
}
