//! [`Verdict`]: what a check may answer.

use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a check says of a state. A check may also panic, with `assert!` for instance.
pub trait Verdict {
    /// Right, or what is wrong.
    ///
    /// # Errors
    /// What is wrong.
    fn verdict(self) -> Result<(), String>;
}

impl Verdict for bool {
    fn verdict(self) -> Result<(), String> {
        if self {
            Ok(())
        } else {
            Err("does not hold".to_owned())
        }
    }
}

impl Verdict for () {
    fn verdict(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: Display> Verdict for Result<(), E> {
    fn verdict(self) -> Result<(), String> {
        self.map_err(|error| error.to_string())
    }
}

/// A check's answer; its panic is one, too.
pub(in crate::explore) fn caught<V: Verdict>(check: impl FnOnce() -> V) -> Result<(), String> {
    match catch_unwind(AssertUnwindSafe(check)) {
        Ok(verdict) => verdict.verdict(),
        Err(payload) => Err(text_of(payload.as_ref())),
    }
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    crate::explore::quiet::placed(text.as_deref().unwrap_or("panic"))
}
