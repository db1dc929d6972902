//! Blocked clients: who waits for which keys until when, and in which order they are served.
//!
//! A blocking command is run again, from its own request, whenever a key that it waits for was written, and told which key
//! that was: it may be served from that one only, whatever else it waits for (blocked.c, `handleClientsBlockedOnKeys`). Whoever
//! can be served is served in order of arrival, and a client that is gone is in no queue.

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::command::Row;
use crate::faults::Fault;
use crate::keyspace::DbIndex;
use crate::session::SessionId;
use crate::value::Blob;
use crate::wire::{Reply, Request};

/// What a handler asks for when it cannot be served now.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    /// The keys to wait for, in the session's database.
    pub keys: Vec<Blob>,
    /// How long, in milliseconds; 0 is for ever.
    pub timeout_ms: i64,
    /// The reply when the time is over, if it is not what the handler returned.
    pub timeout_reply: Option<Reply>,
    /// The request to run when woken, if it is not the client's own (`XREAD` turns `$` into an id).
    pub rewritten: Option<Request>,
    /// Whether the client is to hear of it when a key is gone (`XREADGROUP`).
    pub needs_key: bool,
}

/// A client that waits.
#[derive(Clone, Debug)]
pub(crate) struct Blocked {
    pub row: &'static Row,
    pub request: Request,
    pub db: DbIndex,
    pub keys: Vec<Blob>,
    pub deadline: Option<Timestamp>,
    /// What the client is answered when its time is over.
    pub timeout_reply: Reply,
    /// Whether the client is to hear of it when a key is gone.
    pub needs_key: bool,
    /// Place in the order of arrival.
    pub ticket: u64,
    /// What goes wrong with the answer.
    pub fault: Option<Fault>,
}

/// Waiting clients by key.
#[derive(Debug, Default)]
pub(crate) struct WaitQueues {
    by_key: BTreeMap<(DbIndex, Blob), BTreeMap<u64, SessionId>>,
    by_deadline: BTreeMap<(Timestamp, u64), SessionId>,
    tickets: u64,
}

impl WaitQueues {
    /// The next place in the order of arrival.
    pub(crate) fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    pub(crate) fn insert(&mut self, session: SessionId, blocked: &Blocked) {
        for key in &blocked.keys {
            self.by_key
                .entry((blocked.db, key.clone()))
                .or_default()
                .insert(blocked.ticket, session);
        }
        if let Some(deadline) = blocked.deadline {
            self.by_deadline.insert((deadline, blocked.ticket), session);
        }
    }

    pub(crate) fn remove(&mut self, blocked: &Blocked) {
        for key in &blocked.keys {
            let place = (blocked.db, key.clone());
            if let Some(queue) = self.by_key.get_mut(&place) {
                queue.remove(&blocked.ticket);
                if queue.is_empty() {
                    self.by_key.remove(&place);
                }
            }
        }
        if let Some(deadline) = blocked.deadline {
            self.by_deadline.remove(&(deadline, blocked.ticket));
        }
    }

    /// Who waits for a key and arrived next after a ticket, with the own ticket; 0 is before all.
    pub(crate) fn next_for(&self, place: &(DbIndex, Blob), after: u64) -> Option<(u64, SessionId)> {
        let mut later = self.by_key.get(place)?.range(after + 1..);
        later.next().map(|(ticket, session)| (*ticket, *session))
    }

    /// Whether nobody waits for any key.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The earliest time at which somebody's patience ends.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.by_deadline
            .keys()
            .next()
            .map(|(deadline, _)| *deadline)
    }

    /// Somebody whose time is over.
    pub(crate) fn first_due(&self, now: Timestamp) -> Option<SessionId> {
        self.by_deadline
            .iter()
            .next()
            .filter(|((deadline, _), _)| *deadline <= now)
            .map(|(_, session)| *session)
    }
}
