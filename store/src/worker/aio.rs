//! The tokio twin.

use std::{
    fmt,
    future::{Future, poll_fn},
    marker::PhantomData,
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};

use super::{
    AsyncHandler, StopHandle, Swept, Turn, Verdict, WorkerOptions,
    core::{Crew, Shift},
    rounds::Rounds,
    tenure::Tenure,
    territory::Territory,
};
use crate::{
    AsyncRedisStore, Document, Pacing, StoreError,
    aio::{Awaiting, Connections},
    retry::Host,
    transport::Tokens,
};

/// A worker over an asynchronous store.
///
/// While a handler awaits, its lease is prolonged at every third of it; a handler that blocks the thread loses it.
///
/// A dropped future of [`run`](Self::run), [`turn`](Self::turn) or [`recover`](Self::recover) is as good as a worker that died:
/// nothing is lost, nothing is applied twice, and an event that was claimed waits for its lease to end. To stop without that
/// wait, use [`stop_handle`](Self::stop_handle).
///
/// ```no_run
/// # async fn example() -> Result<(), store::StoreError> {
/// use store::{Commit, Event, Execution, AsyncRedisStore, SpawnEntry};
/// use store::worker::{AsyncHandler, AsyncWorker, Conduct, Verdict, WorkerOptions, child_of};
///
/// struct Count;
///
/// impl Conduct<Execution> for Count {
///     fn child(&mut self, parent: &Execution, spawn: &SpawnEntry) -> Option<(Execution, Commit)> {
///         Some(child_of(parent, spawn))
///     }
/// }
///
/// impl AsyncHandler<Execution> for Count {
///     async fn handle(&mut self, execution: &mut Execution, _: &Event) -> Verdict {
///         execution.processed_events += 1;
///         Verdict::Commit(Commit::new())
///     }
/// }
///
/// let store = AsyncRedisStore::from_url("redis://127.0.0.1/")?;
/// let mut worker = AsyncWorker::new(store, WorkerOptions::new("worker-1"), Count);
/// let stop = worker.stop_handle();
/// worker.run().await?;
/// # Ok(())
/// # }
/// ```
pub struct AsyncWorker<P, A, D, S = fn(Duration) -> tokio::time::Sleep> {
    store: AsyncRedisStore<P>,
    handler: A,
    pacing: Pacing<S>,
    rounds: Rounds,
    stop: StopHandle,
    document: PhantomData<fn() -> D>,
}

impl<P: Connections, A, D> AsyncWorker<P, A, D> {
    /// Over this store, and the queues under its prefix.
    pub fn new(store: AsyncRedisStore<P>, options: WorkerOptions, handler: A) -> Self {
        let territory = Territory::of_one(store.settings.clone());
        Self::over(store, Rounds::new(territory, 0, options), handler)
    }

    fn over(store: AsyncRedisStore<P>, rounds: Rounds, handler: A) -> Self {
        Self {
            store,
            rounds,
            handler,
            pacing: Pacing::tokio(),
            stop: StopHandle::default(),
            document: PhantomData,
        }
    }
}

#[cfg(feature = "cluster")]
impl<P: Connections, A, D> AsyncWorker<P, A, D> {
    /// Over the partitions of this store, and the queues in each of them; see [the module](super). It begins where the next sweep
    /// of the store would.
    ///
    /// # Errors
    /// None but those of the settings, which were checked when the store was opened.
    pub fn sharded(
        store: crate::sharded::AsyncShardedStore<P>,
        options: WorkerOptions,
        handler: A,
    ) -> Result<Self, StoreError> {
        let (store, layout, next) = store.into_parts();
        let rounds = Rounds::new(layout.territory()?, usize::from(next.number()), options);
        Ok(Self::over(store, rounds, handler))
    }
}

impl<P, A, D, S, T> AsyncWorker<P, A, D, S>
where
    P: Connections,
    A: AsyncHandler<D>,
    D: Document + Send,
    S: FnMut(Duration) -> T + Send,
    T: Future<Output = ()> + Send,
{
    /// Replaces pauses, clock and random numbers.
    #[must_use]
    pub fn pacing<R>(self, pacing: Pacing<R>) -> AsyncWorker<P, A, D, R> {
        AsyncWorker {
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
    pub fn store(&mut self) -> &mut AsyncRedisStore<P> {
        &mut self.store
    }

    /// The store that the execution with this id lies in.
    pub fn store_of(&mut self, id: &str) -> &mut AsyncRedisStore<P> {
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
    pub async fn run(&mut self) -> Result<(), StoreError> {
        let stop = self.stop.clone();
        let (rounds, mut shift) = self.shift();
        rounds.run(&mut shift, &stop).await
    }

    /// Claims one event, if there is one, and handles it; sweeps at the start, when there is none, and from time to time.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::Refused`]; [`StoreError::Corrupt`] for a key that all share. Trying again is safe: an
    /// event that it had claimed comes again, and is handled if it was not.
    pub async fn turn(&mut self) -> Result<Turn, StoreError> {
        let (rounds, mut shift) = self.shift();
        rounds.turn(&mut shift).await
    }

    /// Sweeps until nothing moves any more: what dead workers have left behind their commits. Their leases end by themselves.
    ///
    /// # Errors
    /// As for [`turn`](Self::turn).
    pub async fn recover(&mut self) -> Result<Swept, StoreError> {
        let (rounds, mut shift) = self.shift();
        rounds.sweep_all(&mut shift).await
    }

    fn shift(&mut self) -> (&mut Rounds, Shift<'_, Awaiting<'_, P, S>, A, D>) {
        let host = Awaiting {
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

impl<P, A, D, S, T> Crew<D> for Shift<'_, Awaiting<'_, P, S>, A, D>
where
    P: Connections,
    A: AsyncHandler<D>,
    D: Document + Send,
    S: FnMut(Duration) -> T + Send,
    T: Future<Output = ()> + Send,
{
    type Conduct = A;

    fn conduct(&mut self) -> &mut A {
        self.handler
    }

    async fn decide(&mut self, tenure: &Tenure, mut document: D) -> (D, Option<Verdict>) {
        let verdict = {
            let mut handling = pin!(self.handler.handle(&mut document, &tenure.lease.event));
            loop {
                let ready = {
                    let tick = pin!(self.host.sleep(tenure.interval()));
                    first(handling.as_mut(), tick).await
                };
                if ready.is_some() {
                    break ready;
                }
                let held = match tenure.extend() {
                    Ok(extend) => self.host.run(&tenure.settings, extend).await,
                    Err(error) => Err(error),
                };
                // A connection that failed says nothing; what is committed is fenced by the version.
                if let Ok(false) = held {
                    break None;
                }
            }
        };
        (document, verdict)
    }
}

/// What the first one answers, unless the other one is ready before.
async fn first<O>(
    mut wanted: Pin<&mut impl Future<Output = O>>,
    mut other: Pin<&mut impl Future<Output = ()>>,
) -> Option<O> {
    poll_fn(|context| {
        if let Poll::Ready(output) = wanted.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        other.as_mut().poll(context).map(|()| None)
    })
    .await
}

impl<P, A, D, S> fmt::Debug for AsyncWorker<P, A, D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncWorker")
            .field("options", &self.rounds.options)
            .finish_non_exhaustive()
    }
}
