//! Connections of a run: what comes in, what runs, what goes out.

use std::collections::{BTreeSet, VecDeque};

use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use super::{Conductor, Connection, Pending};
use crate::error::CommandError;
use crate::footprint::{Footprint, SessionState, Static};
use crate::sweep::doors::ConnectionId;
use crate::sweep::schedule::Role;
use crate::sweep::step::Step;
use crate::sweep::upstream::{Delivery, Link};
use crate::wire::{Limits, Protocol, Reply, Request, RequestDecoder, encode};

impl Conductor<'_> {
    /// Runs a connection's first command.
    pub(super) fn execute(&mut self, id: ConnectionId, is_visible: bool) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let Some(pending) = connection.queue.pop_front() else {
            return;
        };
        let link = match connection.link {
            Some(link) => link,
            None => match self.upstream.open() {
                Ok(link) => {
                    connection.link = Some(link);
                    self.links.insert(link, id);
                    link
                }
                Err(_) => return self.close(id),
            },
        };
        let footprint = connection.session.footprint(&pending.own);
        let runs_scripts = !connection.session.scripts(&pending.own).is_empty();
        let begins = is_visible && connection.last_batch != pending.batch;
        if is_visible {
            connection.last_batch = pending.batch;
        }
        let name = pending.request.name().to_ascii_uppercase();
        let queued = if name == b"EXEC" {
            std::mem::take(&mut connection.queued)
        } else {
            Vec::new()
        };
        let (role, number, loses) = (connection.role, connection.number, connection.loses);
        let actor = &mut self.actors[role.index()];
        let point = is_visible.then(|| {
            actor.visible += 1;
            actor.visible - 1
        });
        let at = self.ran.steps.len();
        self.ran.steps.push(Step {
            role: Some(role),
            connection: number,
            request: pending.request.clone(),
            queued,
            reply: None,
            footprint,
            point,
            begins,
            changed: false,
            mortal: false,
            note: loses.map(|_| "the reply is lost".to_owned()),
        });
        // What only its own connection sees changes no key, and need not be asked about.
        let before = is_visible.then(|| self.upstream.changes());
        self.awaited.insert(link, at);
        self.upstream.submit(link, &pending.request);
        self.deliver();
        if runs_scripts {
            self.note_calls(id, at, &pending);
        }
        self.note_run(id, at, &pending, before);
        self.close_what_is_done(id);
        self.active_at = Instant::now();
    }

    /// What scripts have touched is known now, and may be more than they declare.
    fn note_calls(&mut self, id: ConnectionId, at: usize, pending: &Pending) {
        if let Some(calls) = self.upstream.take_calls()
            && let Some(connection) = self.connections.get(&id)
            && let Some(step) = self.ran.steps.get_mut(at)
        {
            let called = Footprint::of_calls(&calls);
            step.footprint = connection.session.footprint_with(&pending.own, &called);
        }
    }

    /// Takes note of what a command did.
    pub(super) fn note_run(
        &mut self,
        id: ConnectionId,
        at: usize,
        pending: &Pending,
        changes_before: Option<u64>,
    ) {
        let Some(step) = self.ran.steps.get_mut(at) else {
            return;
        };
        let refused = step.reply.as_ref().is_some_and(Reply::is_error);
        if let (Some(role), Some(before)) = (step.role, changes_before) {
            step.changed = self.upstream.changes() != before;
            step.mortal = self.upstream.next_expiry().is_some();
            let polls = &mut self.actors[role.index()].polls;
            let now = self.stage.wall_seconds;
            polls.note(&step.request, step.reply.as_ref(), step.changed, now);
        }
        if let Some(connection) = self.connections.get_mut(&id) {
            let was_local = connection.session.is_queueing();
            let audience = connection.session.ran(&pending.own, refused);
            self.ran.audience = self.ran.audience.max(audience);
            if was_local && connection.session.is_queueing() && !refused {
                connection.queued.push(pending.request.clone());
            } else {
                connection.queued.clear();
            }
        }
    }

    /// Hands out what the server has for its connections.
    pub(super) fn deliver(&mut self) {
        while let Some(Delivery { link, reply, bytes }) = self.upstream.poll() {
            if !matches!(reply, Reply::Push(_))
                && let Some(at) = self.awaited.remove(&link)
                && let Some(step) = self.ran.steps.get_mut(at)
            {
                step.reply = Some(reply);
            }
            let connection = self
                .links
                .get(&link)
                .and_then(|id| self.connections.get_mut(id));
            if let Some(connection) = connection
                && connection.loses.is_none()
                && let Some(out) = &connection.out
            {
                // A connection that the program has closed takes nothing more.
                let _ = out.send(bytes);
            }
        }
    }

    /// Closes a connection whose replies were to be lost, or which its program has left, and all that the server has closed.
    pub(super) fn close_what_is_done(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get(&id) {
            let next = connection.queue.front();
            let has_lost = connection
                .loses
                .is_some_and(|batch| next.is_none_or(|pending| pending.batch != batch));
            let is_left = connection.out.is_none() && next.is_none();
            if has_lost || is_left {
                self.close(id);
            }
        }
        let shut: BTreeSet<Link> = self
            .links
            .keys()
            .copied()
            .filter(|link| !self.upstream.is_open(*link))
            .collect();
        self.close_where(|connection| connection.link.is_some_and(|link| shut.contains(&link)));
    }

    pub(super) fn close(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.remove(&id)
            && let Some(link) = connection.link
        {
            self.links.remove(&link);
            self.awaited.remove(&link);
            self.upstream.close(link);
        }
    }

    pub(super) fn close_where(&mut self, which: impl Fn(&Connection) -> bool) {
        let ids: Vec<_> = self
            .connections
            .iter()
            .filter(|(_, connection)| which(connection))
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            self.close(id);
        }
    }

    pub(super) fn opened(&mut self, role: Role, id: ConnectionId, out: UnboundedSender<Vec<u8>>) {
        let actor = self.actor(role);
        // One that is dead, or belongs to a run that is over: dropping the channel closes the connection.
        if actor.dead || actor.running.is_none() {
            return;
        }
        actor.connections += 1;
        let connection = Connection {
            role,
            number: actor.connections,
            link: None,
            out: Some(out),
            decoder: RequestDecoder::default(),
            queue: VecDeque::new(),
            batches: 0,
            session: SessionState::default(),
            queued: Vec::new(),
            last_batch: 0,
            loses: None,
        };
        self.connections.insert(id, connection);
        self.active_at = Instant::now();
    }

    pub(super) fn received(&mut self, id: ConnectionId, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        self.active_at = Instant::now();
        connection.decoder.feed(bytes);
        connection.batches += 1;
        loop {
            let mut request = Request::default();
            match connection.decoder.next(&mut request, &Limits::default()) {
                Ok(true) => {
                    self.arrivals += 1;
                    connection.queue.push_back(Pending {
                        own: Static::of(&request),
                        request,
                        batch: connection.batches,
                        arrival: self.arrivals,
                    });
                }
                Ok(false) => return,
                Err(error) => {
                    let text = format!("ERR Protocol error: {error}");
                    let mut answer = Vec::new();
                    let reply = Reply::Error(CommandError::custom(text));
                    encode(&reply, Protocol::Resp2, &mut answer);
                    if let Some(out) = connection.out.take() {
                        // The program may be gone.
                        let _ = out.send(answer);
                    }
                    return;
                }
            }
        }
    }
}
