//! What drivers of the engine do in a loop.

use crate::clock::Timestamp;
use crate::engine::Engine;
#[cfg(any(feature = "explore", feature = "sweep"))]
use crate::{session::SessionId, wire::Reply};
#[cfg(feature = "explore")]
use crate::{session::Sink, wire::Protocol};

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

    /// The next reply to a session that exchanges values, and the protocol that it speaks; if there is none, whether the session
    /// goes on.
    #[cfg(feature = "explore")]
    pub(crate) fn poll_spoken_reply(&mut self, id: SessionId) -> Result<(Reply, Protocol), bool> {
        if self.is_asleep() {
            return Err(true);
        }
        let session = self.sessions.get_mut(&id).ok_or(false)?;
        let reply = match &mut session.sink {
            Sink::Values(replies) => replies.pop_front(),
            Sink::Wire(_) => None,
        };
        let reply = reply.ok_or(!session.closing)?;
        Ok((reply, session.protocol))
    }

    /// The next reply to any of the sessions that exchange values, and whose; `ready` is where it goes on next time.
    #[cfg(feature = "sweep")]
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
