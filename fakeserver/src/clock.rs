//! Time as a value: the engine never looks at a clock, every entry point is told `now`.

use std::time::Duration;

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
