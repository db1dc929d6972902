//! Time as a value: the engine never looks at a clock, every entry point is told `now`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time, microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// A timestamp of so many milliseconds since the epoch.
    pub const fn from_millis(millis: i64) -> Timestamp {
        Timestamp(millis.saturating_mul(1000))
    }

    /// A timestamp of so many microseconds since the epoch.
    pub const fn from_micros(micros: i64) -> Timestamp {
        Timestamp(micros)
    }

    /// Milliseconds since the epoch, rounded down.
    pub const fn millis(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Microseconds since the epoch.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Seconds since the epoch, rounded down.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// This time and so many milliseconds, at most the end of time.
    #[must_use]
    pub fn plus_millis(self, millis: i64) -> Timestamp {
        Timestamp(self.0.saturating_add(millis.saturating_mul(1000)))
    }

    /// This time and `by`, at most the end of time.
    #[must_use]
    pub fn plus(self, by: Duration) -> Timestamp {
        Timestamp(
            self.0
                .saturating_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)),
        )
    }
}

/// The clock of a server: real time, or time that stands still until a test moves it.
///
/// Clones are the same clock. Moving a clock by itself wakes nobody; go through [`crate::Server::advance`], which also lets
/// waiting clients time out.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    state: Arc<Mutex<ClockState>>,
}

#[derive(Clone, Copy, Debug, Default)]
enum ClockState {
    /// Real time, and so much more, in microseconds.
    #[default]
    Real,
    Shifted(i64),
    Frozen(Timestamp),
}

impl Clock {
    /// The clock of the machine.
    pub fn real() -> Clock {
        Clock::default()
    }

    /// A clock that stands at so many milliseconds since the epoch.
    pub fn frozen_at(millis: i64) -> Clock {
        let clock = Clock::default();
        clock.freeze_at(millis);
        clock
    }

    /// The time that it shows.
    pub fn now(&self) -> Timestamp {
        match self.lock().to_owned() {
            ClockState::Real => wall_clock(),
            ClockState::Shifted(by) => Timestamp(wall_clock().0.saturating_add(by)),
            ClockState::Frozen(at) => at,
        }
    }

    /// Whether it stands still.
    pub fn is_frozen(&self) -> bool {
        matches!(*self.lock(), ClockState::Frozen(_))
    }

    /// Stops at the time that it shows.
    pub fn freeze(&self) {
        let now = self.now();
        *self.lock() = ClockState::Frozen(now);
    }

    /// Stops at so many milliseconds since the epoch.
    pub fn freeze_at(&self, millis: i64) {
        *self.lock() = ClockState::Frozen(Timestamp::from_millis(millis));
    }

    /// Goes on with real time.
    pub fn resume(&self) {
        *self.lock() = ClockState::Real;
    }

    /// Moves on by `by`; a clock that runs keeps running, so much ahead of real time.
    pub fn advance(&self, by: Duration) {
        let mut state = self.lock();
        let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        *state = match *state {
            ClockState::Real => ClockState::Shifted(micros),
            ClockState::Shifted(ahead) => ClockState::Shifted(ahead.saturating_add(micros)),
            ClockState::Frozen(at) => ClockState::Frozen(at.plus(by)),
        };
    }

    fn lock(&self) -> MutexGuard<'_, ClockState> {
        // A panic while the lock was held cannot have left half a state behind.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Time that something outside may take: it passes whatever a server's clock shows.
#[cfg(feature = "net")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Countdown {
    since: std::time::Instant,
    of: Duration,
}

#[cfg(feature = "net")]
impl Countdown {
    /// Begins.
    pub(crate) fn of(of: Duration) -> Countdown {
        Countdown {
            since: std::time::Instant::now(),
            of,
        }
    }

    /// What is left of it.
    pub(crate) fn left(self) -> Duration {
        self.of.saturating_sub(self.since.elapsed())
    }
}

/// The only place that looks at the machine's clock for the time of day.
fn wall_clock() -> Timestamp {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frozen_clock_moves_by_hand_only() {
        let clock = Clock::frozen_at(1_722_150_000_000);
        assert_eq!(clock.now().millis(), 1_722_150_000_000);
        clock.clone().advance(Duration::from_millis(1500));
        assert_eq!(clock.now().millis(), 1_722_150_001_500);
        assert_eq!(clock.now(), clock.now());
    }

    #[test]
    fn a_running_clock_can_be_put_ahead() {
        let clock = Clock::real();
        let before = clock.now();
        clock.advance(Duration::from_secs(3600));
        assert!(clock.now() >= before.plus(Duration::from_secs(3600)));
        assert!(!clock.is_frozen());
    }
}
