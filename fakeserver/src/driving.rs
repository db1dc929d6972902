//! What drivers of the engine do in a loop.

use crate::clock::Timestamp;
use crate::engine::Engine;
#[cfg(any(feature = "explore", feature = "sweep"))]
use crate::{session::SessionId, wire::Reply};

impl Engine {
    /// Lets everything happen that is due by a time, which may move on meanwhile.
    pub(crate) fn catch_up(&mut self, clock: impl Fn() -> Timestamp) {
        loop {
            let now = clock();
            self.handle_timeout(now);
            if self.poll_timeout().is_none_or(|at| at > now) {
                return;
            }
        }
    }

    /// The next reply to any of the sessions that exchange values, and whose; `ready` is where it goes on next time.
    #[cfg(any(feature = "explore", feature = "sweep"))]
    pub(crate) fn poll_any_reply(
        &mut self,
        ready: &mut Option<SessionId>,
    ) -> Option<(SessionId, Reply)> {
        loop {
            if ready.is_none() {
                *ready = self.poll_ready();
            }
            let session = (*ready)?;
            if let Some(reply) = self.poll_reply(session) {
                return Some((session, reply));
            }
            *ready = None;
        }
    }
}
