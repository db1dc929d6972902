//! Commands that run outside of the schedule: preparation, checks, and looks at the keys.

use redis::{RedisResult, Value};

use super::backend::Link;
use super::gate::GateState;
use crate::footprint::Static;
use crate::wire::{Protocol, Request};

impl GateState {
    /// Answers a command that only reads, outside of the schedule.
    pub(super) fn peek(&mut self, request: &Request) -> RedisResult<Value> {
        self.backend.peek(request, self.now)
    }

    /// Runs commands on a connection of their own, outside of the schedule.
    pub(super) fn call_all<'r>(
        &mut self,
        requests: impl IntoIterator<Item = &'r Request>,
    ) -> RedisResult<Vec<Value>> {
        let mut requests = requests.into_iter().peekable();
        if requests.peek().is_none() {
            return Ok(Vec::new());
        }
        self.with_connection(|state, link| {
            let replies = requests.filter_map(|request| state.call(link, request.clone()));
            replies.collect()
        })
    }

    /// Opens a connection of its own for as long as the call takes.
    pub(super) fn with_connection<T>(
        &mut self,
        call: impl FnOnce(&mut GateState, Link) -> T,
    ) -> RedisResult<T> {
        let link = self.backend.open(Protocol::Resp2, self.now)?;
        let called = call(self, link);
        self.backend.close(link);
        // What scripts called here is no step's.
        self.backend.take_calls();
        Ok(called)
    }

    /// Runs a command on a connection outside of the schedule.
    pub(super) fn call(&mut self, link: Link, request: Request) -> Option<Value> {
        if Static::of(&request).is_admin() {
            self.backend.expect_change();
        }
        self.backend.submit(link, request, self.now);
        let mut own = None;
        while let Some((whose, reply)) = self.backend.poll() {
            if whose == link {
                own = Some(reply);
            }
        }
        own
    }
}
