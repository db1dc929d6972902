//! The tokio twin.
//!
//! # Which connection
//! Clones of one multiplexed connection share a socket, and a `WATCH` on it would be every task's watch. So a store either
//! owns its connection ([`AsyncRedisStore::new`]), or shares one for what may be shared and opens another of its own for
//! commits that watch ([`AsyncRedisStore::sharing`]), or opens its own from a URL ([`AsyncRedisStore::from_url`]).
//!
//! # Cancelling
//! A call whose future is dropped was sent, or not: as with a lost reply, load to know. A watch that it may have left is
//! taken back before the next commit that watches.

#[cfg(feature = "metrics")]
mod gauges;
mod host;
mod records;
mod relay;
mod source;
mod trace;
mod waiting;

use std::future::Future;

use redis::{RedisResult, aio::ConnectionLike, cmd};

pub use self::{
    records::Executions,
    source::{Exclusive, Reopening, Sharing},
};
use crate::{
    Attempt, Commit, Committed, Document, DueTimer, Execution, OutboxEntry, Resolution, Seq,
    Settings, SpawnEntry, StoreError,
    driver::{Entry, NOT_ONE_CONNECTION, Pinning, forgets_watches, one_slot, replies_of},
    keys::Keys,
    observe::{Call, Observer},
    op::{self, Batch, Channel, Operation, Replies, Step},
};

pub(crate) use self::host::Awaiting;

/// Where a store's connections come from.
pub trait Connections: Send {
    /// What sends batches that need no connection of their own.
    type Shared: ConnectionLike + Send;
    /// What sends batches that do.
    type Pinned: ConnectionLike + Send;

    /// A connection for one batch; others may use it too. An error means that nothing was sent.
    fn shared(&mut self) -> impl Future<Output = RedisResult<&mut Self::Shared>> + Send;

    /// The connection that is this store's alone, the same one until [`Connections::renew`] or [`Connections::lost`].
    fn pinned(&mut self) -> impl Future<Output = RedisResult<&mut Self::Pinned>> + Send;

    /// Makes sure that the pinned connection carries no watch: an operation before may have left one.
    fn renew(&mut self) -> impl Future<Output = RedisResult<()>> + Send;

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
    fn exchange(&mut self, batch: &Batch) -> impl Future<Output = Replies> + Send {
        async {
            match self.shared().await {
                Ok(connection) => send(connection, batch).await,
                Err(unsent) => Replies::Unsent(unsent),
            }
        }
    }

    /// A batch on the pinned connection was answered so.
    fn answered(&mut self, replies: &Replies) {
        let _ = replies;
    }
}

struct Borrowed<'c, C>(&'c mut C);

impl<C: ConnectionLike + Send> Connections for Borrowed<'_, C> {
    type Shared = C;
    type Pinned = C;

    async fn shared(&mut self) -> RedisResult<&mut C> {
        Ok(self.0)
    }

    async fn pinned(&mut self) -> RedisResult<&mut C> {
        Ok(self.0)
    }

    async fn renew(&mut self) -> RedisResult<()> {
        cmd("UNWATCH").query_async(self.0).await
    }

    fn lost(&mut self, _: Channel) {}
}

/// Runs an operation on one connection that nobody else uses meanwhile and that carries no watch.
///
/// # Errors
/// Those of the operation.
pub async fn drive<C, O>(connection: &mut C, operation: O) -> Result<O::Output, StoreError>
where
    C: ConnectionLike + Send,
    O: Operation,
{
    run(&mut Link::new(Borrowed(connection)), operation).await
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

    async fn exchange(&mut self, batch: &Batch, pinning: &mut Pinning) -> Replies {
        let replies = match batch.channel() {
            Channel::Shared => self.connections.exchange(batch).await,
            Channel::Pinned => {
                let replies = match self.pin(pinning).await {
                    Ok(connection) => send(connection, batch).await,
                    Err(unsent) => Replies::Unsent(unsent),
                };
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

    async fn pin(&mut self, pinning: &mut Pinning) -> RedisResult<&mut P::Pinned> {
        match pinning.enter(&mut self.tainted) {
            Entry::Lost => {
                return Err(op::protocol_error("the connection with the watch was lost"));
            }
            Entry::Tainted => self.connections.renew().await?,
            Entry::Clean => {}
        }
        self.connections.pinned().await
    }
}

async fn send(connection: &mut (impl ConnectionLike + Send), batch: &Batch) -> Replies {
    replies_of(
        connection
            .req_packed_commands(batch.pipeline(), 0, batch.len())
            .await,
        batch.len(),
    )
}

/// Runs an operation.
///
/// # Errors
/// Those of the operation, and [`StoreError::Invalid`] if it would watch over connections that change.
pub async fn run<P: Connections, O: Operation>(
    link: &mut Link<P>,
    operation: O,
) -> Result<O::Output, StoreError> {
    if let Some(check) = &link.unchecked {
        let check = check.clone();
        observed(link, check).await?;
        link.unchecked = None;
    }
    observed(link, operation).await
}

async fn observed<P: Connections, O: Operation>(
    link: &mut Link<P>,
    operation: O,
) -> Result<O::Output, StoreError> {
    let mut call = link.observer.call(&operation);
    let span = call.span();
    let result = span.along(carry(link, operation, &mut call)).await;
    call.end(&result);
    result
}

async fn carry<P: Connections, O: Operation>(
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
                replies = link.exchange(&batch, &mut pinning).await;
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

/// The store over asynchronous connections.
///
/// ```no_run
/// # async fn example() -> Result<(), store::StoreError> {
/// use store::{AsyncRedisStore, Commit, Event, Execution};
///
/// let mut store = AsyncRedisStore::from_url("redis://127.0.0.1/")?;
/// let mut execution = Execution::new("order-17", "order");
/// store.save(&mut execution).await?;
/// let commit = Commit::for_event("event-1").emit(Some("order-18"), Event::new("event-2", "Paid"));
/// store.commit(&mut execution, &commit).await?;
/// assert_eq!(execution.version.get(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AsyncRedisStore<P> {
    pub(crate) link: Link<P>,
    pub(crate) settings: Settings,
}

impl<C: ConnectionLike + Send> AsyncRedisStore<Exclusive<C>> {
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

impl<S, C, F, O> AsyncRedisStore<Sharing<S, C, F>>
where
    S: ConnectionLike + Send,
    C: ConnectionLike + Send,
    F: FnMut() -> O + Send,
    O: Future<Output = RedisResult<C>> + Send,
{
    /// Over a connection that others use too, and one that `open` makes for commits that watch.
    pub fn sharing(shared: S, open: F, settings: Settings) -> Self {
        Self::with_connections(Sharing::new(shared, open), settings)
    }
}

#[cfg(feature = "cluster")]
impl AsyncRedisStore<crate::cluster::aio::Cluster> {
    /// Over connections of its own to the nodes of the Redis Cluster that these belong to, opened when they are needed; see
    /// [`crate::cluster`].
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a prefix without a `{tag}`, [`StoreError::Io`] for a malformed address.
    pub fn cluster<T: redis::IntoConnectionInfo>(
        nodes: impl IntoIterator<Item = T>,
        settings: Settings,
    ) -> Result<Self, StoreError> {
        let connections = crate::cluster::aio::Cluster::new(nodes)?;
        let mut store = Self::with_connections(connections, settings);
        store.link.aim(&store.settings)?;
        Ok(store)
    }
}

impl<P: Connections> AsyncRedisStore<P> {
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
    /// A dropped future leaves what the operation had sent by then; each says what that can be.
    ///
    /// # Errors
    /// Those of the operation.
    pub async fn run<O: Operation>(&mut self, operation: O) -> Result<O::Output, StoreError> {
        self.link.ready::<O>(&self.settings)?;
        run(&mut self.link, operation).await
    }

    /// The execution with this id, if there is one.
    ///
    /// A dropped future has changed nothing.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Io`].
    pub async fn load(&mut self, id: &str) -> Result<Option<Execution>, StoreError> {
        let operation = op::Load::new(&self.settings, id);
        self.run(operation).await
    }

    /// As [`load`](Self::load), of a document of any kind.
    ///
    /// A dropped future has changed nothing.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Io`].
    pub async fn load_as<D: Document>(&mut self, id: &str) -> Result<Option<D>, StoreError> {
        let operation = op::Load::of(&self.settings, id);
        self.run(operation).await
    }

    /// The execution with this id, and whether it has handled this event, in one round trip.
    ///
    /// A dropped future has changed nothing.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Io`].
    pub async fn load_for_event(
        &mut self,
        id: &str,
        event_id: &str,
    ) -> Result<Option<(Execution, bool)>, StoreError> {
        let operation = op::LoadForEvent::new(&self.settings, id, event_id);
        self.run(operation).await
    }

    /// As [`load_for_event`](Self::load_for_event), of a document of any kind.
    ///
    /// A dropped future has changed nothing.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Io`].
    pub async fn load_for_event_as<D: Document>(
        &mut self,
        id: &str,
        event_id: &str,
    ) -> Result<Option<(D, bool)>, StoreError> {
        let operation = op::LoadForEvent::of(&self.settings, id, event_id);
        self.run(operation).await
    }

    /// Stores the document; the same as a commit with nothing beside it.
    ///
    /// A dropped future was sent, or not; see the module about cancelling.
    ///
    /// # Errors
    /// As for a commit.
    pub async fn save<D: Document>(&mut self, document: &mut D) -> Result<Committed, StoreError> {
        self.commit(document, &Commit::new()).await
    }

    /// Stores the document and everything that comes with it, if the stored version is still the one that it carries.
    /// Only then its version changes.
    ///
    /// A dropped future was sent, or not: keep [`op::CommitOperation::attempt`] of an operation of one's own to find out.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], [`StoreError::Indeterminate`], [`StoreError::Partial`] (over `WATCH` only),
    /// [`StoreError::Invalid`], [`StoreError::Corrupt`], [`StoreError::Refused`], [`StoreError::Io`]: each says whether to
    /// try again.
    pub async fn commit<D: Document>(
        &mut self,
        document: &mut D,
        commit: &Commit,
    ) -> Result<Committed, StoreError> {
        let operation =
            self.link
                .built(op::CommitOperation::new(&self.settings, document, commit))?;
        let committed = self.run(operation).await?;
        committed.note(document);
        Ok(committed)
    }

    /// As a commit, of a document that is not stored yet: it must be at version 0, and there must be no row.
    ///
    /// A dropped future was sent, or not: keep [`op::CommitOperation::attempt`] of an operation of one's own to find out.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] where a commit says [`StoreError::Conflict`], and all others of a commit.
    pub async fn create<D: Document>(
        &mut self,
        document: &mut D,
        commit: &Commit,
    ) -> Result<Committed, StoreError> {
        let operation = op::CommitOperation::creating(&self.settings, document, commit);
        let operation = self.link.built_as("create", operation)?;
        let committed = self.run(operation).await?;
        committed.note(document);
        Ok(committed)
    }

    /// Finds out what became of a commit that was answered with [`StoreError::Indeterminate`]; the document must be the one
    /// that was passed to it. If it is known to have landed, the document's version changes.
    ///
    /// Only reads: while the row is at the old version the request may still be on its way. [`Resolution::NotLanded`] says
    /// how to rule that out.
    ///
    /// A dropped future has changed nothing.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if the document is another one or has moved since; [`StoreError::Corrupt`];
    /// [`StoreError::Io`], after which it may be asked again.
    pub async fn resolve<D: Document>(
        &mut self,
        document: &mut D,
        attempt: &Attempt,
    ) -> Result<Resolution, StoreError> {
        let fits = op::Resolve::check(document, attempt);
        self.link.built_as("resolve", fits)?;
        let operation = op::Resolve::new(&self.settings, attempt);
        let resolution = self.run(operation).await?;
        if let Resolution::Landed(committed) = &resolution {
            committed.note(document);
        }
        Ok(resolution)
    }

    /// All events that wait for delivery, oldest first.
    ///
    /// A dropped future has changed nothing.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Io`].
    pub async fn pending_outbox(&mut self) -> Result<Vec<OutboxEntry>, StoreError> {
        let operation = op::PendingOutbox::new(&self.settings);
        self.run(operation).await
    }

    /// Takes a delivered event off the outbox; whether it was there.
    ///
    /// A dropped future has taken it off or not; asking again is harmless.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub async fn ack_outbox(&mut self, seq: Seq) -> Result<bool, StoreError> {
        let operation = op::AckOutbox::new(&self.settings, seq);
        self.run(operation).await
    }

    /// All executions that wait to be started, oldest first.
    ///
    /// A dropped future has changed nothing.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Io`].
    pub async fn pending_spawns(&mut self) -> Result<Vec<SpawnEntry>, StoreError> {
        let operation = op::PendingSpawns::new(&self.settings);
        self.run(operation).await
    }

    /// Takes a started execution off the list; whether it was there.
    ///
    /// A dropped future has taken it off or not; asking again is harmless.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub async fn ack_spawn(&mut self, seq: Seq) -> Result<bool, StoreError> {
        let operation = op::AckSpawn::new(&self.settings, seq);
        self.run(operation).await
    }

    /// All timers whose time has come at this moment (seconds since the epoch), by time, then by name.
    ///
    /// A dropped future has changed nothing.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for NaN, [`StoreError::Corrupt`], [`StoreError::Io`].
    pub async fn due_timers(&mut self, now_s: f64) -> Result<Vec<DueTimer>, StoreError> {
        let operation = self.link.built(op::DueTimers::new(&self.settings, now_s))?;
        self.run(operation).await
    }

    /// Removes a timer if it still fires at this moment; whether it did. A timer that was moved meanwhile stays.
    ///
    /// A dropped future has removed it or not; asking again is harmless.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], [`StoreError::Corrupt`], [`StoreError::Io`].
    pub async fn delete_timer(
        &mut self,
        id: &str,
        path: &str,
        fire_at_s: f64,
    ) -> Result<bool, StoreError> {
        let operation =
            self.link
                .built(op::DeleteTimer::new(&self.settings, id, path, fire_at_s))?;
        self.run(operation).await
    }

    /// Gives the connections up.
    ///
    /// A dropped future has given them up as well.
    #[allow(
        clippy::unused_async,
        reason = "closing may have to wait for other kinds of connections"
    )]
    pub async fn close(self) {
        drop(self);
    }
}
