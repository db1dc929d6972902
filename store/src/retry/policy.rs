//! How often, how long, and with which pauses.

use std::time::Duration;

/// Bounds on trying again: how many attempts there are, how long the pauses between them, how long all of it may take.
///
/// A pause is drawn evenly from nothing to a longest that doubles with each attempt ("full jitter"): callers that were in each
/// other's way do not meet again at the same moment.
///
/// ```
/// use std::time::Duration;
/// use store::RetryPolicy;
///
/// let policy = RetryPolicy::default().attempts(3).budget(Duration::from_secs(1));
/// assert_eq!(policy.pause(1, u64::MAX), Duration::from_millis(5));
/// assert_eq!(policy.pause(2, u64::MAX), Duration::from_millis(10));
/// assert_eq!(policy.pause(2, 0), Duration::ZERO);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    pub(super) attempts: u32,
    pub(super) first_pause: Duration,
    pub(super) longest_pause: Duration,
    pub(super) budget: Duration,
}

impl RetryPolicy {
    /// Sets how many attempts there are in all; at least one.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// Sets the longest pause after the first attempt, and the longest after any.
    #[must_use]
    pub fn pauses(mut self, first: Duration, longest: Duration) -> Self {
        self.first_pause = first;
        self.longest_pause = longest.max(first);
        self
    }

    /// Sets how long all attempts and pauses may take: no attempt begins after that. A call that waits for the server is not
    /// cut short by it.
    #[must_use]
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = budget;
        self
    }

    /// The pause after so many attempts, for a number drawn evenly from all there are.
    pub fn pause(&self, attempts: u32, random: u64) -> Duration {
        let doublings = attempts.saturating_sub(1).min(31);
        let longest = self.first_pause.saturating_mul(1 << doublings);
        let longest = longest.min(self.longest_pause).as_nanos();
        let drawn = longest.saturating_mul(u128::from(random)) / u128::from(u64::MAX);
        Duration::from_nanos(u64::try_from(drawn).unwrap_or(u64::MAX))
    }
}

impl Default for RetryPolicy {
    /// Eight attempts, pauses of up to 5 ms to 500 ms, five seconds in all.
    fn default() -> Self {
        Self {
            attempts: 8,
            first_pause: Duration::from_millis(5),
            longest_pause: Duration::from_millis(500),
            budget: Duration::from_secs(5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn pauses_double_up_to_the_longest_and_are_drawn_from_nothing_on() {
        let policy = RetryPolicy::default().pauses(MS * 10, MS * 50);
        let longest = [1, 2, 3, 4, 40, u32::MAX].map(|made| policy.pause(made, u64::MAX));
        assert_eq!(
            longest,
            [MS * 10, MS * 20, MS * 40, MS * 50, MS * 50, MS * 50]
        );
        assert_eq!(policy.pause(3, 0), Duration::ZERO);
        let half = policy.pause(2, u64::MAX / 2);
        assert!(half < MS * 10 && half > MS * 9, "{half:?}");
    }
}
