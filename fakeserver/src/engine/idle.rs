//! Clients that do nothing, and the `timeout` after which they are hung up on.

use super::Engine;
use crate::session::Session;

impl Engine {
    /// Closes the connections of clients that have done nothing for longer than `timeout`, once a second. Who waits, listens or
    /// looks on is not idle.
    pub(super) fn hang_up_on_idle(&mut self) {
        if self.idle_check_at.is_none_or(|at| self.now < at) {
            return;
        }
        let (now, timeout) = (self.now.seconds(), self.config.timeout);
        let is_idle = |session: &Session| {
            session.blocked.is_none()
                && !session.closing
                && now - session.active_at.div_euclid(1_000_000) > timeout
        };
        let sessions = self.sessions.values().filter(|session| is_idle(session));
        let mut idle: Vec<_> = sessions.map(|session| session.id).collect();
        idle.sort_unstable();
        for id in idle {
            if !self.pubsub.is_subscriber(id) && !self.monitors.contains(&id) {
                self.hang_up(id);
            }
        }
        self.schedule_idle_check();
    }

    /// Has idle clients looked for a second from now, if `timeout` is set.
    pub(crate) fn schedule_idle_check(&mut self) {
        let at = self.now.plus_millis(1000);
        self.idle_check_at = (self.config.timeout > 0).then_some(at);
    }
}
