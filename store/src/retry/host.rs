//! [`Host`]: what a flow of several operations needs from its twin, so that each flow is written once.

use std::{future::Future, time::Duration};

use crate::{Settings, StoreError, op::Operation};

/// Runs operations, pauses, knows how much time has passed.
///
/// The blocking twin does its work in the call and answers with a future that is ready; a flow over it never waits, and
/// [`at_once`] takes its result.
pub(crate) trait Host {
    /// Runs an operation on the keys of these settings.
    fn run<O>(
        &mut self,
        at: &Settings,
        operation: O,
    ) -> impl Future<Output = Result<O::Output, StoreError>> + Send
    where
        O: Operation + Send,
        O::Output: Send;

    fn sleep(&mut self, pause: Duration) -> impl Future<Output = ()> + Send;

    /// The flow begins anew.
    fn retried(&mut self);

    fn now(&mut self) -> Duration;

    fn draw(&mut self) -> u64;
}

/// The result of a flow over a host that never waits.
#[cfg(feature = "sync")]
pub(crate) fn at_once<F: Future>(flow: F) -> F::Output {
    use std::{
        pin::pin,
        task::{Context, Poll, Waker},
    };
    match pin!(flow).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        // Whatever a flow awaits comes from its host.
        Poll::Pending => unreachable!("a blocking host answers at once"),
    }
}
