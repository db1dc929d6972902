//! Flows of several operations over asynchronous connections.

use std::{future::Future, time::Duration};

use super::{AsyncRedisStore, Connections, Link, run};
use crate::{
    Decision, Document, Pacing, Retried, RetryPolicy, Round, Settings, StoreError,
    op::Operation,
    retry::{Host, with_retry},
};

/// A host that awaits.
pub(crate) struct Awaiting<'a, P, S> {
    pub(crate) link: &'a mut Link<P>,
    pub(crate) pacing: &'a mut Pacing<S>,
}

impl<P, S, T> Host for Awaiting<'_, P, S>
where
    P: Connections,
    S: FnMut(Duration) -> T,
    T: Future<Output = ()> + Send,
{
    fn run<O>(
        &mut self,
        at: &Settings,
        operation: O,
    ) -> impl Future<Output = Result<O::Output, StoreError>> + Send
    where
        O: Operation + Send,
        O::Output: Send,
    {
        let aimed = self.link.ready::<O>(at);
        // Not all of this, which holds what can not be sent.
        let link = &mut *self.link;
        async move {
            aimed?;
            run(link, operation).await
        }
    }

    fn sleep(&mut self, pause: Duration) -> impl Future<Output = ()> + Send {
        (self.pacing.sleep)(pause)
    }

    fn retried(&mut self) {
        self.link.observer.retried("commit");
    }

    fn now(&mut self) -> Duration {
        self.pacing.now()
    }

    fn draw(&mut self) -> u64 {
        self.pacing.draw()
    }
}

impl<P: Connections> AsyncRedisStore<P> {
    /// Loads the document with this id, shows it to `decide`, commits what that says, and begins anew after a conflict, as
    /// often and as long as the policy allows. `decide` is called once a round, on the document as it is then, and must not
    /// have effects of its own.
    ///
    /// Only conflicts and connections that failed before anything was written are tried again. After a lost reply the row is
    /// asked what became of the commit ([`resolve`](AsyncRedisStore::resolve)); while it may still land, the next round commits
    /// on the same version, so that one of the two lands at most. A commit should name its event
    /// ([`Commit::for_event`](crate::Commit::for_event)): without it, what others have overtaken can not be told.
    ///
    /// A dropped future may leave a commit that has landed, or has not: as after [`StoreError::Indeterminate`], but without
    /// the attempt.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] and [`StoreError::Io`] when the policy allows no more; [`StoreError::Indeterminate`] if a
    /// commit may have landed: resolve it before trying again; those of a commit that trying again does not help.
    pub async fn with_retry<D, S, T, F>(
        &mut self,
        id: &str,
        policy: &RetryPolicy,
        pacing: &mut Pacing<S>,
        decide: F,
    ) -> Result<Retried<D>, StoreError>
    where
        D: Document + Send,
        S: FnMut(Duration) -> T + Send,
        T: Future<Output = ()> + Send,
        F: FnMut(&mut D, &Round) -> Decision + Send,
    {
        let mut host = Awaiting {
            link: &mut self.link,
            pacing,
        };
        with_retry(&mut host, &self.settings, id, policy, decide).await
    }
}
