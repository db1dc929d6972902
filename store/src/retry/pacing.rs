//! Pauses, and what they go by.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    time::{Duration, Instant},
};

/// How to pause, how much time has passed, and where random numbers come from; each can be replaced, so that tests need no
/// time.
///
/// For the blocking twin `S` is a `FnMut(Duration)`, for the other one a `FnMut(Duration)` that answers with a future:
///
/// ```
/// use std::time::Duration;
/// use store::Pacing;
///
/// let blocking = Pacing::blocking();
/// let tokio = Pacing::new(tokio::time::sleep);
/// let frozen = Pacing::new(|_: Duration| {}).elapsed(|| Duration::ZERO).random(|| 0);
/// ```
pub struct Pacing<S> {
    pub(crate) sleep: S,
    elapsed: Box<dyn FnMut() -> Duration + Send>,
    random: Box<dyn FnMut() -> u64 + Send>,
}

impl Pacing<fn(Duration)> {
    /// With the system's clock, random numbers, and pauses of this thread.
    pub fn blocking() -> Self {
        Self::new(std::thread::sleep)
    }
}

#[cfg(feature = "async")]
impl Pacing<fn(Duration) -> tokio::time::Sleep> {
    /// With the system's clock, random numbers, and tokio's pauses.
    pub fn tokio() -> Self {
        Self::new(tokio::time::sleep)
    }
}

impl<S> Pacing<S> {
    /// With these pauses, and the system's clock and random numbers.
    pub fn new(sleep: S) -> Self {
        let begun = Instant::now();
        let (keys, mut count) = (RandomState::new(), 0_u64);
        Self {
            sleep,
            elapsed: Box::new(move || begun.elapsed()),
            random: Box::new(move || {
                count = count.wrapping_add(1);
                keys.hash_one((std::process::id(), count))
            }),
        }
    }

    /// Replaces the clock: how much time has passed since some moment; never less than before.
    #[must_use]
    pub fn elapsed(mut self, elapsed: impl FnMut() -> Duration + Send + 'static) -> Self {
        self.elapsed = Box::new(elapsed);
        self
    }

    /// Replaces the random numbers: drawn evenly from all of them.
    #[must_use]
    pub fn random(mut self, random: impl FnMut() -> u64 + Send + 'static) -> Self {
        self.random = Box::new(random);
        self
    }

    pub(crate) fn now(&mut self) -> Duration {
        (self.elapsed)()
    }

    pub(crate) fn draw(&mut self) -> u64 {
        (self.random)()
    }
}

impl<S> fmt::Debug for Pacing<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pacing").finish_non_exhaustive()
    }
}
