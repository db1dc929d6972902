//! [`Calls`]: the commands that scripts called, kept for whoever asks what a script has touched.

use crate::engine::Engine;
use crate::wire::Request;

/// Calls that are kept at most; a script that makes more is taken to touch everything.
const CALLS_MAX: usize = 1000;

/// Commands that scripts called, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    pub(crate) requests: Vec<Request>,
    /// There were more.
    pub(crate) are_more: bool,
}

impl Engine {
    /// Takes note of a script's call, if that is wanted.
    pub(crate) fn note_call(&mut self, request: &Request) {
        let Some(calls) = &mut self.calls else {
            return;
        };
        if calls.requests.len() < CALLS_MAX {
            calls.requests.push(request.clone());
        } else {
            calls.are_more = true;
        }
    }
}

#[cfg(any(feature = "explore", feature = "sweep"))]
impl Engine {
    /// Takes note of scripts' calls from now on.
    pub(crate) fn watch_calls(&mut self) {
        self.calls = Some(Calls::default());
    }

    /// What scripts have called since the last time, if it was watched.
    pub(crate) fn take_calls(&mut self) -> Option<Calls> {
        self.calls.as_mut().map(std::mem::take)
    }
}
