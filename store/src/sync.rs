//! The blocking twin.

#[cfg(feature = "metrics")]
mod gauges;
mod host;
mod records;
mod relay;
mod source;
mod trace;
mod waiting;

use redis::{ConnectionLike, RedisResult};

use crate::{
    Attempt, Commit, Committed, Document, DueTimer, Execution, OutboxEntry, Resolution, Seq,
    Settings, SpawnEntry, StoreError,
    driver::{Entry, NOT_ONE_CONNECTION, Pinning, forgets_watches, one_slot, replies_of},
    keys::Keys,
    observe::{Call, Observer},
    op::{self, Batch, Channel, Operation, Replies, Step},
};

pub(crate) use self::host::Blocking;
pub use self::{
    records::Executions,
    source::{Exclusive, Reopening},
};

/// Where a store's connections come from.
pub trait Connections {
    /// What sends batches that need no connection of their own.
    type Shared: ConnectionLike;
    /// What sends batches that do.
    type Pinned: ConnectionLike;

    /// A connection for one batch. An error means that nothing was sent.
    fn shared(&mut self) -> RedisResult<&mut Self::Shared>;

    /// The connection that is this store's alone, the same one until [`Connections::renew`] or [`Connections::lost`].
    fn pinned(&mut self) -> RedisResult<&mut Self::Pinned>;

    /// Makes sure that the pinned connection carries no watch: an operation before may have left one.
    fn renew(&mut self) -> RedisResult<()>;

    /// A batch on this channel got no reply.
    fn lost(&mut self, channel: Channel);

    /// An operation is over, and the pinned connection carries no watch: this is the moment to give connections back to a
    /// pool. Not called while the pinned one is suspected of carrying one; then [`Connections::renew`] is, before it is used
    /// again. A source that is dropped before must not give it back.
    fn done(&mut self) {}

    /// From now on operations use these keys; called before each of a store's.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if these connections can not reach all of them together.
    fn aim(&mut self, keys: &Keys) -> Result<(), StoreError> {
        let _ = keys;
        Ok(())
    }

    /// Sends a batch that needs no connection of its own. What may have run is not to be sent again.
    fn exchange(&mut self, batch: &Batch) -> Replies {
        match self.shared() {
            Ok(connection) => send(connection, batch),
            Err(unsent) => Replies::Unsent(unsent),
        }
    }

    /// A batch on the pinned connection was answered so.
    fn answered(&mut self, replies: &Replies) {
        let _ = replies;
    }
}

/// Runs an operation on one connection that nobody else uses meanwhile.
///
/// # Errors
/// Those of the operation.
pub fn drive<C: ConnectionLike, O: Operation>(
    connection: C,
    operation: O,
) -> Result<O::Output, StoreError> {
    run(&mut Link::new(Exclusive::new(connection)), operation)
}

/// Connections, and whether the pinned one may still carry a watch.
#[derive(Debug)]
pub struct Link<P> {
    connections: P,
    tainted: bool,
    /// What the server is to be asked before the first operation.
    pub(crate) unchecked: Option<op::Check>,
    pub(crate) observer: Observer,
}

impl<P: Connections> Link<P> {
    /// With connections that carry no watch yet.
    pub fn new(connections: P) -> Self {
        Self {
            connections,
            tainted: false,
            unchecked: None,
            observer: Observer::default(),
        }
    }

    /// Names the keys that the next operation uses; a store does so before each of its own.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if the connections can not reach all of them together.
    pub fn aim(&mut self, settings: &Settings) -> Result<(), StoreError> {
        one_slot::<P::Shared>(settings.keys())?;
        self.connections.aim(settings.keys())
    }

    /// As [`Link::aim`] for an operation of this kind, and reported as one that was refused.
    pub(crate) fn ready<O: Operation>(&mut self, settings: &Settings) -> Result<(), StoreError> {
        let aimed = self.aim(settings);
        self.built_as(O::NAME, aimed)
    }

    /// An operation; if its input was refused, that is reported.
    pub(crate) fn built<O: Operation>(
        &self,
        built: Result<O, StoreError>,
    ) -> Result<O, StoreError> {
        self.built_as(O::NAME, built)
    }

    /// As [`Link::built`], under another name, and of anything that an operation needs.
    pub(crate) fn built_as<T>(
        &self,
        name: &'static str,
        built: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.observer.built(name, built)
    }

    fn exchange(&mut self, batch: &Batch, pinning: &mut Pinning) -> Replies {
        let replies = match batch.channel() {
            Channel::Shared => self.connections.exchange(batch),
            Channel::Pinned => {
                let connection = match pinning.enter(&mut self.tainted) {
                    Entry::Lost => {
                        Err(op::protocol_error("the connection with the watch was lost"))
                    }
                    Entry::Tainted => self
                        .connections
                        .renew()
                        .and_then(|()| self.connections.pinned()),
                    Entry::Clean => self.connections.pinned(),
                };
                let sent = connection.map(|connection| send(connection, batch));
                let replies = sent.unwrap_or_else(Replies::Unsent);
                self.connections.answered(&replies);
                replies
            }
        };
        if let Replies::Lost(_) = replies {
            self.connections.lost(batch.channel());
        }
        pinning.after(batch.channel(), &replies);
        replies
    }
}

fn send(connection: &mut impl ConnectionLike, batch: &Batch) -> Replies {
    let commands = batch.pipeline().get_packed_pipeline();
    replies_of(
        connection.req_packed_commands(&commands, 0, batch.len()),
        batch.len(),
    )
}

/// Runs an operation.
///
/// # Errors
/// Those of the operation, and [`StoreError::Invalid`] if it would watch over connections that change.
pub fn run<P: Connections, O: Operation>(
    link: &mut Link<P>,
    operation: O,
) -> Result<O::Output, StoreError> {
    if let Some(check) = &link.unchecked {
        let check = check.clone();
        observed(link, check)?;
        link.unchecked = None;
    }
    observed(link, operation)
}

fn observed<P: Connections, O: Operation>(
    link: &mut Link<P>,
    operation: O,
) -> Result<O::Output, StoreError> {
    let mut call = link.observer.call(&operation);
    let span = call.span();
    let result = span.within(|| carry(link, operation, &mut call));
    call.end(&result);
    result
}

fn carry<P: Connections, O: Operation>(
    link: &mut Link<P>,
    mut operation: O,
    call: &mut Call,
) -> Result<O::Output, StoreError> {
    let mut pinning = Pinning::None;
    let mut replies = Replies::Start;
    loop {
        match operation.step(replies) {
            Step::Send(batch) => {
                if batch.channel() == Channel::Pinned && forgets_watches::<P::Pinned>() {
                    return Err(NOT_ONE_CONNECTION);
                }
                call.round_trip();
                replies = link.exchange(&batch, &mut pinning);
            }
            Step::Done(result) => {
                if pinning.leave(&mut link.tainted) {
                    link.connections.done();
                }
                return result;
            }
        }
    }
}

/// The store over blocking connections.
///
/// ```no_run
/// use store::{Commit, Event, Execution, RedisStore};
///
/// let mut store = RedisStore::from_url("redis://127.0.0.1/")?;
/// let mut execution = Execution::new("order-17", "order");
/// store.save(&mut execution)?;
/// store.commit(&mut execution, &Commit::for_event("event-1").emit(Some("order-18"), Event::new("event-2", "Paid")))?;
/// assert_eq!(execution.version.get(), 2);
/// # Ok::<(), store::StoreError>(())
/// ```
#[derive(Debug)]
pub struct RedisStore<P> {
    pub(crate) link: Link<P>,
    pub(crate) settings: Settings,
}

impl<C: ConnectionLike> RedisStore<Exclusive<C>> {
    /// Over a connection that from now on is the store's alone, with default settings.
    pub fn new(connection: C) -> Self {
        Self::with_connections(Exclusive::new(connection), Settings::default())
    }

    /// Over a connection that from now on is the store's alone.
    pub fn with_settings(connection: C, settings: Settings) -> Self {
        Self::with_connections(Exclusive::new(connection), settings)
    }

    /// The connection back.
    pub fn into_connection(self) -> C {
        self.link.connections.0
    }
}

#[cfg(feature = "cluster")]
impl RedisStore<crate::cluster::sync::Cluster> {
    /// Over connections of its own to the nodes of the Redis Cluster that these belong to, opened when they are needed; see
    /// [`crate::cluster`].
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a prefix without a `{tag}`, [`StoreError::Io`] for a malformed address.
    pub fn cluster<T: redis::IntoConnectionInfo>(
        nodes: impl IntoIterator<Item = T>,
        settings: Settings,
    ) -> Result<Self, StoreError> {
        let connections = crate::cluster::sync::Cluster::new(nodes)?;
        let mut store = Self::with_connections(connections, settings);
        store.link.aim(&store.settings)?;
        Ok(store)
    }
}

impl<P: Connections> RedisStore<P> {
    /// Over connections of any source.
    pub fn with_connections(connections: P, settings: Settings) -> Self {
        Self {
            link: Link::new(connections),
            settings,
        }
    }

    /// Sets who observes it.
    #[must_use]
    pub fn observed(mut self, observer: Observer) -> Self {
        self.link.observer = observer;
        self
    }

    /// Replaces the settings.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        let unchecked = self.link.unchecked.is_some();
        self.link.unchecked = unchecked.then(|| op::Check::new(&settings));
        self.settings = settings;
        self
    }

    pub(crate) fn set_settings(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Runs an operation of one's own.
    ///
    /// # Errors
    /// Those of the operation.
    pub fn run<O: Operation>(&mut self, operation: O) -> Result<O::Output, StoreError> {
        self.link.ready::<O>(&self.settings)?;
        run(&mut self.link, operation)
    }

    /// The execution with this id, if there is one.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Io`].
    pub fn load(&mut self, id: &str) -> Result<Option<Execution>, StoreError> {
        let operation = op::Load::new(&self.settings, id);
        self.run(operation)
    }

    /// As [`load`](Self::load), of a document of any kind.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Io`].
    pub fn load_as<D: Document>(&mut self, id: &str) -> Result<Option<D>, StoreError> {
        let operation = op::Load::of(&self.settings, id);
        self.run(operation)
    }

    /// The execution with this id, and whether it has handled this event, in one round trip.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Io`].
    pub fn load_for_event(
        &mut self,
        id: &str,
        event_id: &str,
    ) -> Result<Option<(Execution, bool)>, StoreError> {
        let operation = op::LoadForEvent::new(&self.settings, id, event_id);
        self.run(operation)
    }

    /// As [`load_for_event`](Self::load_for_event), of a document of any kind.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Io`].
    pub fn load_for_event_as<D: Document>(
        &mut self,
        id: &str,
        event_id: &str,
    ) -> Result<Option<(D, bool)>, StoreError> {
        let operation = op::LoadForEvent::of(&self.settings, id, event_id);
        self.run(operation)
    }

    /// Stores the document; the same as a commit with nothing beside it.
    ///
    /// # Errors
    /// As for a commit.
    pub fn save<D: Document>(&mut self, document: &mut D) -> Result<Committed, StoreError> {
        self.commit(document, &Commit::new())
    }

    /// Stores the document and everything that comes with it, if the stored version is still the one that it carries.
    /// Only then its version changes.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], [`StoreError::Indeterminate`], [`StoreError::Partial`] (over `WATCH` only),
    /// [`StoreError::Invalid`], [`StoreError::Corrupt`], [`StoreError::Refused`], [`StoreError::Io`]: each says whether to
    /// try again.
    pub fn commit<D: Document>(
        &mut self,
        document: &mut D,
        commit: &Commit,
    ) -> Result<Committed, StoreError> {
        let operation =
            self.link
                .built(op::CommitOperation::new(&self.settings, document, commit))?;
        let committed = self.run(operation)?;
        committed.note(document);
        Ok(committed)
    }

    /// As a commit, of a document that is not stored yet: it must be at version 0, and there must be no row.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] where a commit says [`StoreError::Conflict`], and all others of a commit.
    pub fn create<D: Document>(
        &mut self,
        document: &mut D,
        commit: &Commit,
    ) -> Result<Committed, StoreError> {
        let operation = op::CommitOperation::creating(&self.settings, document, commit);
        let operation = self.link.built_as("create", operation)?;
        let committed = self.run(operation)?;
        committed.note(document);
        Ok(committed)
    }

    /// Finds out what became of a commit that was answered with [`StoreError::Indeterminate`]; the document must be the one
    /// that was passed to it. If it is known to have landed, the document's version changes.
    ///
    /// Only reads: while the row is at the old version the request may still be on its way. [`Resolution::NotLanded`] says
    /// how to rule that out.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if the document is another one or has moved since; [`StoreError::Corrupt`];
    /// [`StoreError::Io`], after which it may be asked again.
    pub fn resolve<D: Document>(
        &mut self,
        document: &mut D,
        attempt: &Attempt,
    ) -> Result<Resolution, StoreError> {
        let fits = op::Resolve::check(document, attempt);
        self.link.built_as("resolve", fits)?;
        let operation = op::Resolve::new(&self.settings, attempt);
        let resolution = self.run(operation)?;
        if let Resolution::Landed(committed) = &resolution {
            committed.note(document);
        }
        Ok(resolution)
    }

    /// All events that wait for delivery, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Io`].
    pub fn pending_outbox(&mut self) -> Result<Vec<OutboxEntry>, StoreError> {
        let operation = op::PendingOutbox::new(&self.settings);
        self.run(operation)
    }

    /// Takes a delivered event off the outbox; whether it was there.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn ack_outbox(&mut self, seq: Seq) -> Result<bool, StoreError> {
        let operation = op::AckOutbox::new(&self.settings, seq);
        self.run(operation)
    }

    /// All executions that wait to be started, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Io`].
    pub fn pending_spawns(&mut self) -> Result<Vec<SpawnEntry>, StoreError> {
        let operation = op::PendingSpawns::new(&self.settings);
        self.run(operation)
    }

    /// Takes a started execution off the list; whether it was there.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn ack_spawn(&mut self, seq: Seq) -> Result<bool, StoreError> {
        let operation = op::AckSpawn::new(&self.settings, seq);
        self.run(operation)
    }

    /// All timers whose time has come at this moment (seconds since the epoch), by time, then by name.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for NaN, [`StoreError::Corrupt`], [`StoreError::Io`].
    pub fn due_timers(&mut self, now_s: f64) -> Result<Vec<DueTimer>, StoreError> {
        let operation = self.link.built(op::DueTimers::new(&self.settings, now_s))?;
        self.run(operation)
    }

    /// Removes a timer if it still fires at this moment; whether it did. A timer that was moved meanwhile stays.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], [`StoreError::Corrupt`], [`StoreError::Io`].
    pub fn delete_timer(
        &mut self,
        id: &str,
        path: &str,
        fire_at_s: f64,
    ) -> Result<bool, StoreError> {
        let operation =
            self.link
                .built(op::DeleteTimer::new(&self.settings, id, path, fire_at_s))?;
        self.run(operation)
    }

    /// Gives the connections up.
    pub fn close(self) {
        drop(self);
    }
}
