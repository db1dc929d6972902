//! [`Footprints`]: what commands on an engine touch, for those who drive one by hand.

use std::collections::BTreeMap;

use super::Granularity;
use super::facts::Facts;
use crate::engine::Engine;
use crate::footprint::{Audience, Footprint, SessionState};
use crate::session::SessionId;
use crate::wire::Request;

/// Follows the commands of an engine's sessions and says what each one touches, given what ran before it.
///
/// Two sessions' next commands whose footprints do not [conflict](Footprint::conflicts) commute, unless
/// [`Footprints::take_change`] says afterwards that one of them has shown a guess to be wrong.
#[derive(Clone, Debug, Default)]
pub struct Footprints {
    facts: Facts,
    sessions: BTreeMap<SessionId, SessionState>,
    waiting: BTreeMap<SessionId, Footprint>,
    audience: Audience,
}

impl Footprints {
    /// Follows an engine that is empty, or in which nobody has begun a transaction, waits or listens.
    pub fn of_engine(engine: &mut Engine, granularity: Granularity) -> Footprints {
        engine.watch_calls();
        Footprints {
            facts: Facts::new(granularity),
            ..Footprints::default()
        }
    }

    /// What a command will touch if a session runs it now.
    pub fn predict(&mut self, session: SessionId, request: &Request) -> Footprint {
        let command = self.facts.of(request);
        let state = self.sessions.entry(session).or_default();
        let footprint = state.footprint(&command);
        self.surrounded(footprint)
    }

    /// Runs the command's consequences: call it behind each one, with whether it was answered with an error. What the command has
    /// touched, which for one that runs scripts may be less than was predicted.
    pub fn ran(
        &mut self,
        engine: &mut Engine,
        session: SessionId,
        request: &Request,
        refused: bool,
    ) -> Footprint {
        let command = self.facts.of(request);
        let state = self.sessions.entry(session).or_default();
        let mut footprint = state.footprint(&command);
        let calls = engine.take_calls().unwrap_or_default();
        if !state.scripts(&command).is_empty() {
            footprint = self.facts.observe(state, &command, &calls);
        }
        self.audience = self.audience.max(state.ran(&command, refused));
        let footprint = self.surrounded(footprint);
        if engine.is_blocked(session) {
            self.waiting.insert(session, command.own().clone());
        }
        self.waiting
            .retain(|session, _| engine.is_blocked(*session));
        footprint
    }

    /// Whether something has turned out since the last time that makes earlier predictions too small.
    pub fn take_change(&mut self) -> bool {
        self.facts.take_change()
    }

    fn surrounded(&self, mut footprint: Footprint) -> Footprint {
        let waiting: Vec<Footprint> = self.waiting.values().cloned().collect();
        footprint.surround(&waiting, self.audience);
        footprint
    }
}
