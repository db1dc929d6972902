//! The blocking twin.

use std::time::Duration;

use redis::ConnectionLike;

use super::{
    Backlog, Claim, Claimed, Clock, Deliveries, DiscardDeadLetter, Lease, Priority, Publish,
    QueueLength, ReadBacklog, ReadDeadLetters, Settle, Tokens,
};
use crate::{
    Event, Observer, Settings, StoreError,
    op::Operation,
    sync::{Connections, Exclusive, Link, Reopening, run},
};

/// The transport over blocking connections.
///
/// ```no_run
/// use std::time::Duration;
/// use store::{Event, transport::{Priority, RedisTransport}};
///
/// let mut transport = RedisTransport::from_url("redis://127.0.0.1/")?;
/// transport.publish("order-17", &Event::new("event-1", "Paid"), Priority::MIN)?;
/// let claimed = transport.claim("worker-1", Duration::from_secs(30), Priority::MIN)?;
/// if let Some(lease) = claimed.lease {
///     assert!(transport.ack(&lease)?);
/// }
/// # Ok::<(), store::StoreError>(())
/// ```
#[derive(Debug)]
pub struct RedisTransport<P> {
    link: Link<P>,
    settings: Settings,
    clock: Clock,
    tokens: Tokens,
    deliveries: Deliveries,
}

impl<C: ConnectionLike> RedisTransport<Exclusive<C>> {
    /// Over a connection that from now on is the transport's alone, with default settings.
    pub fn new(connection: C) -> Self {
        Self::with_connections(Exclusive::new(connection), Settings::default())
    }
}

impl RedisTransport<Reopening> {
    /// Over a connection of its own to this URL, opened with the first call and again after it was lost.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the URL is malformed.
    pub fn from_url(url: &str) -> Result<Self, StoreError> {
        let connections = Reopening::new(redis::Client::open(url)?);
        Ok(Self::with_connections(connections, Settings::default()))
    }
}

#[cfg(feature = "cluster")]
impl RedisTransport<crate::cluster::sync::Cluster> {
    /// Over connections of its own to the nodes of the Redis Cluster that these belong to; see [`crate::cluster`].
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a prefix without a `{tag}`, [`StoreError::Io`] for a malformed address.
    pub fn cluster<T: redis::IntoConnectionInfo>(
        nodes: impl IntoIterator<Item = T>,
        settings: Settings,
    ) -> Result<Self, StoreError> {
        let connections = crate::cluster::sync::Cluster::new(nodes)?;
        let mut transport = Self::with_connections(connections, settings);
        transport.link.aim(&transport.settings)?;
        Ok(transport)
    }
}

impl<P: Connections> RedisTransport<P> {
    /// Over connections of any source.
    pub fn with_connections(connections: P, settings: Settings) -> Self {
        Self {
            link: Link::new(connections),
            settings,
            clock: Clock::default(),
            tokens: Tokens::default(),
            deliveries: Deliveries::default(),
        }
    }

    /// Sets who observes it.
    #[must_use]
    pub fn observed(mut self, observer: Observer) -> Self {
        self.link.observer = observer;
        self
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn observer(&self) -> &Observer {
        &self.link.observer
    }

    /// Replaces the settings: prefix and strictness are those that matter here.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Replaces the source of tokens.
    #[must_use]
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = tokens;
        self
    }

    /// Sets whether deliveries are counted, and how many an event may have.
    #[must_use]
    pub fn deliveries(mut self, deliveries: Deliveries) -> Self {
        self.deliveries = deliveries;
        self
    }

    /// Sets which present decides from now on.
    pub fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    /// Runs an operation of one's own.
    ///
    /// # Errors
    /// Those of the operation, and [`StoreError::Invalid`] for a cluster without a tag in the prefix.
    pub fn run<O: Operation>(&mut self, operation: O) -> Result<O::Output, StoreError> {
        self.link.ready::<O>(&self.settings)?;
        run(&mut self.link, operation)
    }

    /// Queues an event for a group; how many events it has then. The priority counts if the group had none.
    ///
    /// # Errors
    /// [`StoreError::Invalid`]; [`StoreError::Corrupt`] and [`StoreError::Refused`], nothing was queued;
    /// [`StoreError::Io`], it was not sent: try again; [`StoreError::Indeterminate`], the reply was lost: a repetition may
    /// queue it twice, which a consumer that dedupes by event id does not notice.
    pub fn publish(
        &mut self,
        group: &str,
        event: &Event,
        priority: Priority,
    ) -> Result<u64, StoreError> {
        let operation = self
            .link
            .built(Publish::new(&self.settings, group, event, priority))?;
        self.run(operation)
    }

    /// Takes the lease of the group of at least this priority that has waited longest; see [`Claim`].
    ///
    /// # Errors
    /// [`StoreError::Invalid`]; [`StoreError::Corrupt`] if a tier is not ours, or nothing but groups whose keys are not;
    /// [`StoreError::Refused`]; [`StoreError::Io`]: try again, at worst a lease that nobody knows of has to end first.
    pub fn claim(
        &mut self,
        worker: &str,
        visibility: Duration,
        min_priority: Priority,
    ) -> Result<Claimed, StoreError> {
        let token = self.tokens.token(worker);
        let (settings, clock) = (&self.settings, self.clock);
        let claim = Claim::new(settings, clock, token, visibility, min_priority);
        let claim = claim.map(|claim| claim.counting(self.deliveries));
        let operation = self.link.built(claim)?;
        self.run(operation)
    }

    /// Takes the lease's event off its queue; `false` if the lease had ended, and then nothing changed.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Refused`]: nothing changed. [`StoreError::Io`]: try again; the answer may then
    /// be `false` although it was this lease that took the event off.
    pub fn ack(&mut self, lease: &Lease) -> Result<bool, StoreError> {
        let operation = Settle::ack(&self.settings, self.clock, lease);
        self.run(operation)
    }

    /// Gives the lease back: the event is claimable again at once, or after a pause; `false` if the lease had ended, and then
    /// nothing changed.
    ///
    /// # Errors
    /// As for [`Self::ack`], and [`StoreError::Invalid`] for a pause out of range.
    pub fn nack(&mut self, lease: &Lease, delay: Duration) -> Result<bool, StoreError> {
        let operation = Settle::nack(&self.settings, self.clock, lease, delay);
        let operation = self.link.built_as("nack", operation)?;
        self.run(operation)
    }

    /// As [`Self::nack`], of an event that nothing is wrong with: this delivery does not count.
    ///
    /// # Errors
    /// As for [`Self::nack`].
    pub fn postpone(&mut self, lease: &Lease, delay: Duration) -> Result<bool, StoreError> {
        let operation = Settle::postpone(&self.settings, self.clock, lease, delay);
        let operation = self.link.built_as("postpone", operation)?;
        self.run(operation)
    }

    /// Prolongs the lease to so long from now; `false` if it had ended: stop working on its event.
    ///
    /// # Errors
    /// As for [`Self::nack`].
    pub fn extend(&mut self, lease: &Lease, visibility: Duration) -> Result<bool, StoreError> {
        let operation = Settle::extend(&self.settings, self.clock, lease, visibility);
        let operation = self.link.built_as("extend", operation)?;
        self.run(operation)
    }

    /// How much waits at each priority, and when the next of it becomes claimable.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Refused`], [`StoreError::Io`]; it only reads.
    pub fn backlog(&mut self) -> Result<Backlog, StoreError> {
        let operation = ReadBacklog::new(&self.settings, self.clock);
        self.run(operation)
    }

    /// How many events a group has, the leased one among them.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], [`StoreError::Corrupt`], [`StoreError::Io`]; it only reads.
    pub fn queue_length(&mut self, group: &str) -> Result<u64, StoreError> {
        let operation = self.link.built(QueueLength::new(&self.settings, group))?;
        self.run(operation)
    }

    /// The oldest dead letters of a group, at most so many.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], [`StoreError::Corrupt`], [`StoreError::Io`]; it only reads.
    pub fn dead_letters(&mut self, group: &str, limit: u32) -> Result<Vec<Vec<u8>>, StoreError> {
        let operation = self
            .link
            .built(ReadDeadLetters::new(&self.settings, group, limit))?;
        self.run(operation)
    }

    /// Removes a dead letter; whether it was there.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], [`StoreError::Corrupt`]; [`StoreError::Io`]: a repetition may remove another one with the same
    /// bytes.
    pub fn discard_dead_letter(&mut self, group: &str, payload: &[u8]) -> Result<bool, StoreError> {
        let operation = self
            .link
            .built(DiscardDeadLetter::new(&self.settings, group, payload))?;
        self.run(operation)
    }
}
