//! A look at the keys from outside: a read command without a session, which leaves no trace in what clients can ask.

use crate::clock::Timestamp;
use crate::command::{Caller, Handler, ReadCall};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::keyspace::DbIndex;
use crate::resolve::resolve;
use crate::wire::{Reply, Request};

impl Engine {
    /// Answers a command that can only read, on a database. It counts as an access of its keys (`OBJECT IDLETIME`) and as nothing
    /// else: no session, no hit, no event, no random number.
    pub(crate) fn peek(&mut self, db: DbIndex, request: &Request, now: Timestamp) -> Reply {
        let row = match resolve(request) {
            Ok(row) => row,
            Err(error) => return Reply::Error(error),
        };
        let Handler::Read(handler) = row.handler() else {
            let text = format!("ERR {} does more than read", row.full_name());
            return Reply::Error(CommandError::custom(text.into_bytes()));
        };
        self.keyspace.set_now(now);
        let selected = self.keyspace.selected();
        let stats = &self.keyspace.stats;
        let (hits, misses) = (stats.hits.get(), stats.misses.get());
        let events = self.keyspace.events.get_mut().len();
        self.keyspace.select(db);
        let reply = handler(&mut ReadCall {
            row,
            request,
            keyspace: &self.keyspace,
            config: &self.config,
            rng: &mut fastrand::Rng::with_seed(self.config.seed),
            now: self.keyspace.now(),
            caller: Caller::Script,
            woken_by: None,
            wait: None,
        })
        .into();
        self.keyspace.select(selected);
        self.keyspace.stats.hits.set(hits);
        self.keyspace.stats.misses.set(misses);
        self.keyspace.events.get_mut().truncate(events);
        self.keyspace.take_placement();
        reply
    }
}
