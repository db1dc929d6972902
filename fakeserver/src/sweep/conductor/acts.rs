//! What a schedule does, and what is done when programs wait.

use tokio::time::Instant;

use super::{Conductor, END_PATIENCE, TIME_STEPS_MAX, Turn};
use crate::clock::Timestamp;
use crate::sweep::SweepError;
use crate::sweep::doors::ConnectionId;
use crate::sweep::report::{Ending, Status};
use crate::sweep::schedule::{Act, Role, Schedule};
use crate::sweep::step::Step;
use crate::wire::Request;

impl Conductor<'_> {
    /// Does what the schedule wants at this point.
    pub(super) fn interrupt(
        &mut self,
        schedule: Schedule,
        id: ConnectionId,
    ) -> Result<(), SweepError> {
        let of = schedule.of;
        match schedule.act {
            Act::RunOther => self.switch(of, of.rival())?,
            Act::Die => {
                self.event(format!("{of} dies"), Request::default());
                self.close_where(|connection| connection.role == of);
                self.actor(of).kill();
            }
            Act::LoseReply => {
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.loses = connection.queue.front().map(|pending| pending.batch);
                }
            }
            Act::Expire => self.expire(),
            Act::ExpireAndRunOther => {
                self.expire();
                self.switch(of, of.rival())?;
            }
            Act::FlushScripts => {
                self.event("the script cache is emptied".to_owned(), Request::default());
                self.upstream.ask(&[b"SCRIPT", b"FLUSH", b"SYNC"]);
            }
            Act::Reset => {
                self.event("all connections are reset".to_owned(), Request::default());
                self.close_where(|_| true);
            }
            Act::RestartKept => {
                let what = "the server restarts with its data".to_owned();
                self.event(what, Request::default());
                self.close_where(|_| true);
                self.upstream.ask(&[b"SCRIPT", b"FLUSH", b"SYNC"]);
            }
            Act::RestartEmpty => {
                self.close_where(|_| true);
                self.wipe();
            }
        }
        Ok(())
    }

    /// Suspends a program and lets the other one go on, whether that was suspended too or has yet to begin.
    pub(super) fn switch(&mut self, from: Role, to: Role) -> Result<(), SweepError> {
        self.turns.retain(|turn| *turn != Turn::Run(to));
        self.suspended.retain(|role| *role != to);
        self.suspended.push(from);
        self.launch(to)?;
        self.current = Some(to);
        self.active_at = Instant::now();
        Ok(())
    }

    pub(super) fn event(&mut self, what: String, keys: Request) {
        self.ran.steps.push(Step::event(what, keys));
    }

    pub(super) fn expire(&mut self) {
        if let Some(at) = self.upstream.next_expiry() {
            self.ran.expired_at = Some(at);
            self.pass_until(at);
        }
    }

    pub(super) fn pass_until(&mut self, at: Timestamp) {
        let keys = self.upstream.pass_until(at);
        if keys.is_empty() {
            return;
        }
        let named: Vec<_> = keys
            .iter()
            .map(|key| key.escape_ascii().to_string())
            .collect();
        let verb = if keys.len() == 1 { "expires" } else { "expire" };
        let what = format!("time passes: {} {verb}", named.join(", "));
        self.event(what, Request::new(keys));
        self.deliver();
    }

    pub(super) fn wipe(&mut self) {
        let what = "the server restarts without its data".to_owned();
        self.event(what, Request::default());
        self.upstream.ask(&[b"FLUSHALL", b"SYNC"]);
        self.upstream.ask(&[b"SCRIPT", b"FLUSH", b"SYNC"]);
        self.upstream.ask(&[b"FUNCTION", b"FLUSH", b"SYNC"]);
        self.deliver();
    }

    /// The current program has said nothing for longer than it may.
    pub(super) fn falls_silent(&mut self, current: Role) -> Result<(), SweepError> {
        if self.give_way(current)? {
            return Ok(());
        }
        if self.is_blocked(current) {
            if !self.pass_time() {
                self.give_up("waits for ever");
            }
            return Ok(());
        }
        // It sleeps, or computes: that takes as long as it takes.
        self.active_at = Instant::now();
        Ok(())
    }

    /// A program asks the same again and again, and nothing changes.
    pub(super) fn someone_polls(&mut self, role: Role) -> Result<(), SweepError> {
        if self.current != Some(role) || self.give_way(role)? {
            return Ok(());
        }
        // There is nobody else whom it could wait for, so it waits for time.
        let patience = self.stage.settings.patience;
        if self.actor(role).polls.lasts(patience) {
            self.actor(role).polls.clear();
            if !self.pass_time() {
                self.free = true;
            }
        }
        Ok(())
    }

    /// Lets the other program go on since this one waits; false if there is none that could.
    pub(super) fn give_way(&mut self, current: Role) -> Result<bool, SweepError> {
        let changes = self.upstream.changes();
        self.actor(current).waits_since = Some(changes);
        let other = match self.turns.front() {
            _ if self.steer.is_some() && current.is_program() => self.steered_rival(current)?,
            Some(Turn::Run(other)) if other.is_program() => Some(*other),
            _ => self.suspended.iter().copied().rev().find(|role| {
                let actor = &self.actors[role.index()];
                actor.is_live() && actor.waits_since != Some(changes)
            }),
        };
        let Some(other) = other.filter(|_| current.is_program()) else {
            return Ok(false);
        };
        self.actor(current).polls.clear();
        let label = format!("{current} waits for {other}");
        self.ran.labels.insert(label.clone());
        self.event(label, Request::default());
        self.switch(current, other)?;
        Ok(true)
    }

    /// Moves the clock to the next thing that is due; false if nothing is.
    pub(super) fn pass_time(&mut self) -> bool {
        self.time_steps += 1;
        if self.time_steps > TIME_STEPS_MAX {
            return false;
        }
        let Some(by) = self.upstream.pass_time() else {
            return false;
        };
        self.event(format!("{by:?} pass"), Request::default());
        self.ran.labels.insert("time passes".to_owned());
        self.actors
            .iter_mut()
            .for_each(|actor| actor.waits_since = None);
        self.deliver();
        self.active_at = Instant::now();
        true
    }

    /// Ends all programs.
    pub(super) fn give_up(&mut self, why: &str) {
        for role in Role::ALL {
            let actor = self.actor(role);
            if !actor.is_live() || actor.dead {
                continue;
            }
            actor.kill();
            let label = format!("{role}: {why}");
            self.ran.labels.insert(label);
            self.ran.endings[role.index()] = Some(Ending {
                status: Status::Other(why.to_owned()),
                output: String::new(),
            });
        }
        self.ran.stuck = true;
        self.close_where(|_| true);
        self.turns.clear();
        self.ends_at = Instant::now() + END_PATIENCE;
    }
}
