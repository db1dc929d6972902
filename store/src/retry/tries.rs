//! How much of a policy is used up.

use std::time::Duration;

use super::RetryPolicy;

/// Attempts made under a policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tries {
    policy: RetryPolicy,
    begun: Duration,
    made: u32,
}

impl Tries {
    /// None yet, at this moment.
    pub(crate) fn new(policy: &RetryPolicy, now: Duration) -> Self {
        Self {
            policy: *policy,
            begun: now,
            made: 0,
        }
    }

    /// Which attempt is under way, from 1.
    pub(crate) fn number(&self) -> u32 {
        self.made + 1
    }

    /// There is no other attempt.
    pub(crate) fn exhaust(&mut self) {
        self.made = u32::MAX;
    }

    /// After an attempt that came to nothing: how long to pause before the next one; none if there is none.
    pub(crate) fn next(&mut self, now: Duration, random: u64) -> Option<Duration> {
        self.made = self.made.saturating_add(1);
        let pause = self.policy.pause(self.made, random);
        let spent = now.saturating_sub(self.begun).saturating_add(pause);
        (self.made < self.policy.attempts && spent <= self.policy.budget).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn attempts_and_time_are_bounded_whatever_the_policy_says() {
        let (start, policy) = (Duration::ZERO, RetryPolicy::default().attempts(3));
        let mut tries = Tries::new(&policy, start);
        assert!(tries.next(start, 0).is_some() && tries.next(start, 0).is_some());
        assert_eq!(tries.next(start, 0), None);
        let mut tries = Tries::new(&policy.budget(MS * 100), MS * 1000);
        assert!(tries.next(MS * 1050, 0).is_some());
        assert_eq!(tries.next(MS * 1101, 0), None);
        let endless = RetryPolicy::default()
            .pauses(Duration::MAX, Duration::MAX)
            .budget(Duration::MAX);
        assert!(Tries::new(&endless, start).next(start, 1).is_some());
        let none = RetryPolicy::default().attempts(0);
        assert_eq!(Tries::new(&none, start).next(start, 0), None);
    }
}
