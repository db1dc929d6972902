//! The blocking twin.

use std::{
    fmt,
    future::{Future, ready},
    marker::PhantomData,
    time::Duration,
};

use super::{
    Handler, StopHandle, Swept, Turn, Verdict, WorkerOptions,
    core::{Crew, Shift},
    rounds::Rounds,
    tenure::Tenure,
    territory::Territory,
};
use crate::{
    Document, Pacing, RedisStore, StoreError,
    retry::at_once,
    sync::{Blocking, Connections},
    transport::Tokens,
};

/// A worker over a blocking store.
///
/// The lease is prolonged between steps: a handler that takes longer than [`WorkerOptions::visibility`] loses it, and then
/// nothing of its is committed.
///
/// ```no_run
/// use store::{Commit, Event, Execution, RedisStore, SpawnEntry};
/// use store::worker::{Conduct, Handler, Verdict, Worker, WorkerOptions, child_of};
///
/// struct Count;
///
/// impl Conduct<Execution> for Count {
///     fn child(&mut self, parent: &Execution, spawn: &SpawnEntry) -> Option<(Execution, Commit)> {
///         Some(child_of(parent, spawn))
///     }
/// }
///
/// impl Handler<Execution> for Count {
///     fn handle(&mut self, execution: &mut Execution, _: &Event) -> Verdict {
///         execution.processed_events += 1;
///         Verdict::Commit(Commit::new())
///     }
/// }
///
/// let store = RedisStore::from_url("redis://127.0.0.1/")?;
/// let mut worker = Worker::new(store, WorkerOptions::new("worker-1"), Count);
/// let stop = worker.stop_handle();
/// worker.run()?;
/// # Ok::<(), store::StoreError>(())
/// ```
pub struct Worker<P, A, D, S = fn(Duration)> {
    store: RedisStore<P>,
    handler: A,
    pacing: Pacing<S>,
    rounds: Rounds,
    stop: StopHandle,
    document: PhantomData<fn() -> D>,
}

impl<P: Connections, A, D> Worker<P, A, D> {
    /// Over this store, and the queues under its prefix.
    pub fn new(store: RedisStore<P>, options: WorkerOptions, handler: A) -> Self {
        let territory = Territory::of_one(store.settings.clone());
        Self::over(store, Rounds::new(territory, 0, options), handler)
    }

    fn over(store: RedisStore<P>, rounds: Rounds, handler: A) -> Self {
        Self {
            store,
            rounds,
            handler,
            pacing: Pacing::blocking(),
            stop: StopHandle::default(),
            document: PhantomData,
        }
    }
}

#[cfg(feature = "cluster")]
impl<P: Connections, A, D> Worker<P, A, D> {
    /// Over the partitions of this store, and the queues in each of them; see [the module](super). It begins where the next sweep
    /// of the store would.
    ///
    /// # Errors
    /// None but those of the settings, which were checked when the store was opened.
    pub fn sharded(
        store: crate::sharded::ShardedStore<P>,
        options: WorkerOptions,
        handler: A,
    ) -> Result<Self, StoreError> {
        let (store, layout, next) = store.into_parts();
        let rounds = Rounds::new(layout.territory()?, usize::from(next.number()), options);
        Ok(Self::over(store, rounds, handler))
    }
}

impl<P, A, D, S> Worker<P, A, D, S>
where
    P: Connections,
    A: Handler<D>,
    D: Document + Send,
    S: FnMut(Duration),
{
    /// Replaces pauses, clock and random numbers.
    #[must_use]
    pub fn pacing<T>(self, pacing: Pacing<T>) -> Worker<P, A, D, T> {
        Worker {
            store: self.store,
            handler: self.handler,
            pacing,
            rounds: self.rounds,
            stop: self.stop,
            document: PhantomData,
        }
    }

    /// Replaces the source of tokens.
    #[must_use]
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.rounds.tokens = tokens;
        self
    }

    /// What stops it.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// The store, for what else there is to do; of a worker over partitions that of the last [`store_of`](Self::store_of).
    pub fn store(&mut self) -> &mut RedisStore<P> {
        &mut self.store
    }

    /// The store that the execution with this id lies in.
    pub fn store_of(&mut self, id: &str) -> &mut RedisStore<P> {
        self.store.set_settings(self.rounds.home(id).clone());
        &mut self.store
    }

    /// The handler.
    pub fn handler(&mut self) -> &mut A {
        &mut self.handler
    }

    /// Turn after turn until it is stopped. Turns that fail are repeated as [`WorkerOptions::policy`] says.
    ///
    /// # Errors
    /// That of the last turn that failed, when the policy allows no more. It may be run again.
    pub fn run(&mut self) -> Result<(), StoreError> {
        let stop = self.stop.clone();
        let (rounds, mut shift) = self.shift();
        at_once(rounds.run(&mut shift, &stop))
    }

    /// Claims one event, if there is one, and handles it; sweeps at the start, when there is none, and from time to time.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::Refused`]; [`StoreError::Corrupt`] for a key that all share. Trying again is safe: an
    /// event that it had claimed comes again, and is handled if it was not.
    pub fn turn(&mut self) -> Result<Turn, StoreError> {
        let (rounds, mut shift) = self.shift();
        at_once(rounds.turn(&mut shift))
    }

    /// Sweeps until nothing moves any more: what dead workers have left behind their commits. Their leases end by themselves.
    ///
    /// # Errors
    /// As for [`turn`](Self::turn).
    pub fn recover(&mut self) -> Result<Swept, StoreError> {
        let (rounds, mut shift) = self.shift();
        at_once(rounds.sweep_all(&mut shift))
    }

    fn shift(&mut self) -> (&mut Rounds, Shift<'_, Blocking<'_, P, S>, A, D>) {
        let host = Blocking {
            link: &mut self.store.link,
            pacing: &mut self.pacing,
        };
        let shift = Shift {
            host,
            handler: &mut self.handler,
            document: PhantomData,
        };
        (&mut self.rounds, shift)
    }
}

impl<P, A, D, S> Crew<D> for Shift<'_, Blocking<'_, P, S>, A, D>
where
    P: Connections,
    A: Handler<D>,
    D: Document + Send,
    S: FnMut(Duration),
{
    type Conduct = A;

    fn conduct(&mut self) -> &mut A {
        self.handler
    }

    fn decide(
        &mut self,
        tenure: &Tenure,
        mut document: D,
    ) -> impl Future<Output = (D, Option<Verdict>)> + Send {
        let verdict = self.handler.handle(&mut document, &tenure.lease.event);
        ready((document, Some(verdict)))
    }
}

impl<P, A, D, S> fmt::Debug for Worker<P, A, D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("options", &self.rounds.options)
            .finish_non_exhaustive()
    }
}
