//! Who subscribes to what: channels, patterns and shard channels.

use std::collections::{BTreeMap, BTreeSet};

use crate::session::SessionId;
use crate::value::{Blob, glob};

/// The three kinds of subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    Channel,
    Pattern,
    Shard,
}

/// Subscriptions of one kind, in both directions.
#[derive(Debug, Default)]
struct Subscriptions {
    by_name: BTreeMap<Blob, BTreeSet<SessionId>>,
    by_session: BTreeMap<SessionId, BTreeSet<Blob>>,
}

impl Subscriptions {
    fn remove(&mut self, session: SessionId, name: &[u8]) -> bool {
        let Some(names) = self.by_session.get_mut(&session) else {
            return false;
        };
        if !names.remove(name) {
            return false;
        }
        if names.is_empty() {
            self.by_session.remove(&session);
        }
        if let Some(sessions) = self.by_name.get_mut(name) {
            sessions.remove(&session);
            if sessions.is_empty() {
                self.by_name.remove(name);
            }
        }
        true
    }
}

/// All subscriptions of a server.
#[derive(Debug, Default)]
pub(crate) struct PubSub {
    channels: Subscriptions,
    patterns: Subscriptions,
    shards: Subscriptions,
}

impl PubSub {
    fn of(&self, topic: Topic) -> &Subscriptions {
        match topic {
            Topic::Channel => &self.channels,
            Topic::Pattern => &self.patterns,
            Topic::Shard => &self.shards,
        }
    }

    fn of_mut(&mut self, topic: Topic) -> &mut Subscriptions {
        match topic {
            Topic::Channel => &mut self.channels,
            Topic::Pattern => &mut self.patterns,
            Topic::Shard => &mut self.shards,
        }
    }

    /// Subscribes; subscribing twice is subscribing once.
    pub(crate) fn subscribe(&mut self, topic: Topic, session: SessionId, name: &[u8]) {
        let name = Blob::from(name);
        let subscriptions = self.of_mut(topic);
        subscriptions
            .by_session
            .entry(session)
            .or_default()
            .insert(name.clone());
        subscriptions
            .by_name
            .entry(name)
            .or_default()
            .insert(session);
    }

    /// Ends a subscription, if there is one.
    pub(crate) fn unsubscribe(&mut self, topic: Topic, session: SessionId, name: &[u8]) {
        self.of_mut(topic).remove(session, name);
    }

    /// What a session subscribes to.
    pub(crate) fn names(&self, topic: Topic, session: SessionId) -> Vec<Blob> {
        self.of(topic)
            .by_session
            .get(&session)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    /// How many subscriptions of a kind a session has.
    pub(crate) fn count(&self, topic: Topic, session: SessionId) -> usize {
        self.of(topic)
            .by_session
            .get(&session)
            .map_or(0, BTreeSet::len)
    }

    /// Whether a session has any subscription.
    pub(crate) fn is_subscriber(&self, session: SessionId) -> bool {
        [Topic::Channel, Topic::Pattern, Topic::Shard]
            .iter()
            .any(|topic| self.of(*topic).by_session.contains_key(&session))
    }

    /// Ends all subscriptions of a session that is gone.
    pub(crate) fn forget(&mut self, session: SessionId) {
        for topic in [Topic::Channel, Topic::Pattern, Topic::Shard] {
            for name in self.names(topic, session) {
                self.unsubscribe(topic, session, &name);
            }
        }
    }

    /// Subscribers of a channel (or shard channel) by its exact name.
    pub(crate) fn subscribers(&self, topic: Topic, name: &[u8]) -> Vec<SessionId> {
        self.of(topic)
            .by_name
            .get(name)
            .into_iter()
            .flatten()
            .copied()
            .collect()
    }

    /// Patterns that match a channel, with their subscribers.
    pub(crate) fn matching(&self, channel: &[u8]) -> Vec<(Blob, SessionId)> {
        self.patterns
            .by_name
            .iter()
            .filter(|(pattern, _)| glob::matches(pattern, channel, false))
            .flat_map(|(pattern, sessions)| sessions.iter().map(|id| (pattern.clone(), *id)))
            .collect()
    }

    /// Names of a kind that somebody subscribes to, with the number of subscribers.
    pub(crate) fn active(&self, topic: Topic) -> impl Iterator<Item = (&Blob, usize)> {
        self.of(topic)
            .by_name
            .iter()
            .map(|(name, sessions)| (name, sessions.len()))
    }
}
