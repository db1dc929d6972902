//! Panics of clients and checks, which are results here: not printed as they happen, schedule after schedule, but kept with their
//! place for the report.

use std::cell::{Cell, RefCell};
use std::panic;
use std::sync::Once;

thread_local! {
    /// How many runs are under way in this thread.
    static RUNS: Cell<usize> = const { Cell::new(0) };
    /// Where the last panic was, and all that would have been printed of it.
    static LAST: RefCell<(String, String)> = const { RefCell::new((String::new(), String::new())) };
}

static HOOKED: Once = Once::new();

/// Until its end this thread's panics are not printed. Those of other threads are.
#[derive(Debug)]
pub(super) struct Quiet(());

impl Quiet {
    pub(super) fn begin() -> Quiet {
        HOOKED.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                if RUNS.get() == 0 {
                    return before(panic);
                }
                let place = panic.location().map(ToString::to_string);
                LAST.set((place.unwrap_or_default(), panic.to_string()));
            }));
        });
        RUNS.set(RUNS.get() + 1);
        Quiet(())
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        RUNS.set(RUNS.get().saturating_sub(1));
        // Nobody has caught it: it is none of a client or a check.
        if std::thread::panicking() && RUNS.get() == 0 {
            eprintln!("{}", LAST.take().1);
        }
    }
}

/// A panic's text with its place.
pub(super) fn placed(text: &str) -> String {
    let (place, _) = LAST.take();
    if place.is_empty() {
        return text.to_owned();
    }
    format!("{text} ({place})")
}
