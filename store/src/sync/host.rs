//! Flows of several operations over blocking connections.

use std::{
    future::{Future, ready},
    time::Duration,
};

use super::{Connections, Link, RedisStore, run};
use crate::{
    Decision, Document, Pacing, Retried, RetryPolicy, Round, Settings, StoreError,
    op::Operation,
    retry::{Host, at_once, with_retry},
};

/// A host that does its work in the call.
pub(crate) struct Blocking<'a, P, S> {
    pub(crate) link: &'a mut Link<P>,
    pub(crate) pacing: &'a mut Pacing<S>,
}

impl<P: Connections, S: FnMut(Duration)> Host for Blocking<'_, P, S> {
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
        ready(aimed.and_then(|()| run(self.link, operation)))
    }

    fn sleep(&mut self, pause: Duration) -> impl Future<Output = ()> + Send {
        (self.pacing.sleep)(pause);
        ready(())
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

impl<P: Connections> RedisStore<P> {
    /// Loads the document with this id, shows it to `decide`, commits what that says, and begins anew after a conflict, as
    /// often and as long as the policy allows. `decide` is called once a round, on the document as it is then, and must not
    /// have effects of its own.
    ///
    /// Only conflicts and connections that failed before anything was written are tried again. After a lost reply the row is
    /// asked what became of the commit ([`resolve`](RedisStore::resolve)); while it may still land, the next round commits on
    /// the same version, so that one of the two lands at most. A commit should name its event
    /// ([`Commit::for_event`](crate::Commit::for_event)): without it, what others have overtaken can not be told.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] and [`StoreError::Io`] when the policy allows no more; [`StoreError::Indeterminate`] if a
    /// commit may have landed: resolve it before trying again; those of a commit that trying again does not help.
    pub fn with_retry<D, S, F>(
        &mut self,
        id: &str,
        policy: &RetryPolicy,
        pacing: &mut Pacing<S>,
        decide: F,
    ) -> Result<Retried<D>, StoreError>
    where
        D: Document + Send,
        S: FnMut(Duration),
        F: FnMut(&mut D, &Round) -> Decision,
    {
        let mut host = Blocking {
            link: &mut self.link,
            pacing,
        };
        at_once(with_retry(&mut host, &self.settings, id, policy, decide))
    }
}
