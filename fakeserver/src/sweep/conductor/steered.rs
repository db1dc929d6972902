//! Runs in which a strategy says at each crossing who goes on.

use super::{Conductor, Turn};
use crate::sweep::SweepError;
use crate::sweep::doors::ConnectionId;
use crate::sweep::interleave::{Choice, Crossing, Fate};
use crate::sweep::schedule::Role;
use crate::sweep::step::is_quiet;
use crate::wire::Request;

impl Conductor<'_> {
    /// Asks who goes on before a command of the current program; whether that is this command.
    pub(super) fn may_go_on(
        &mut self,
        current: Role,
        id: ConnectionId,
    ) -> Result<bool, SweepError> {
        if self.steer.is_none() || !current.is_program() {
            return Ok(true);
        }
        let granted = self.granted.take_if(|choice| choice.role == current);
        let choice = if let Some(choice) = granted {
            choice
        } else {
            let rivals = self.rivals(current);
            self.ask(Some((current, id)), rivals)?
        };
        if choice.role != current {
            self.granted = Some(choice);
            self.switch(current, choice.role)?;
            return Ok(false);
        }
        match choice.fate {
            Fate::Execute => Ok(true),
            Fate::DropBefore => {
                let what = format!("a connection of {current} is closed");
                self.event(what, Request::default());
                self.close(id);
                Ok(false)
            }
            Fate::LoseReply => {
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.loses = connection.queue.front().map(|pending| pending.batch);
                }
                Ok(true)
            }
        }
    }

    /// Nobody is on turn: somebody who can go on is. False if all programs have ended, or wait.
    pub(super) fn take_steered_turn(&mut self) -> Result<bool, SweepError> {
        let candidates = self.rivals(None);
        if candidates.is_empty() {
            return Ok(false);
        }
        let choice = self.ask(None, candidates)?;
        let role = choice.role;
        self.turns.retain(|turn| *turn != Turn::Run(role));
        self.suspended.retain(|suspended| *suspended != role);
        self.granted = Some(choice);
        self.launch(role)?;
        self.current = Some(role);
        self.active_at = tokio::time::Instant::now();
        self.actor(role).waits_since = None;
        Ok(true)
    }

    /// Who goes on while the current program waits.
    pub(super) fn steered_rival(&mut self, current: Role) -> Result<Option<Role>, SweepError> {
        let candidates = self.rivals(current);
        if candidates.is_empty() {
            return Ok(None);
        }
        let choice = self.ask(None, candidates)?;
        self.granted = Some(choice);
        Ok(Some(choice.role))
    }

    /// Programs other than the current one that can go on: those that have yet to begin, and those whose next command is held
    /// back. Who waits for the server, or has found nothing to do since the last change, cannot.
    fn rivals(&mut self, current: impl Into<Option<Role>>) -> Vec<Role> {
        let current = current.into();
        let changes = self.upstream.changes();
        let can_go_on = |role: &Role| {
            if self.turns.contains(&Turn::Run(*role)) {
                return true;
            }
            let actor = self.actors.get(role.index());
            self.suspended.contains(role)
                && actor.is_some_and(|actor| actor.is_live() && actor.waits_since != Some(changes))
                && (!self.is_blocked(*role) || self.holds_back(*role))
        };
        let others = Role::PROGRAMS
            .into_iter()
            .filter(|role| Some(*role) != current);
        others.filter(can_go_on).collect()
    }

    /// Whether a command of the program waits for its turn.
    fn holds_back(&self, role: Role) -> bool {
        self.connections.values().any(|connection| {
            let is_blocked = |link| self.upstream.is_blocked(link);
            connection.role == role
                && !connection.link.is_some_and(is_blocked)
                && connection.queue.front().is_some_and(|pending| {
                    !connection.session.is_local(&pending.own) && !is_quiet(&pending.request)
                })
        })
    }

    fn ask(
        &mut self,
        current: Option<(Role, ConnectionId)>,
        rivals: Vec<Role>,
    ) -> Result<Choice, SweepError> {
        let next = current.and_then(|(_, id)| {
            let connection = self.connections.get(&id)?;
            let pending = connection.queue.front()?;
            let words = pending
                .request
                .words()
                .map(|word| word.escape_ascii().to_string());
            let command = words.collect::<Vec<_>>().join(" ");
            Some((command, connection.last_batch != pending.batch))
        });
        let (command, is_border) = next.unwrap_or((String::new(), true));
        let current = current.map(|(role, _)| role);
        let candidates: Vec<Role> = current.into_iter().chain(rivals).collect();
        let crossing = Crossing {
            current,
            command,
            is_border,
            candidates,
        };
        let choice = self
            .steer
            .as_mut()
            .and_then(|steer| steer.choose(&crossing));
        choice.ok_or_else(|| {
            let names: Vec<_> = crossing
                .candidates
                .iter()
                .map(ToString::to_string)
                .collect();
            let step = self.ran.steps.len();
            SweepError::Diverged(format!(
                "behind step {step} of the run only {} can go on",
                names.join(", ")
            ))
        })
    }
}
