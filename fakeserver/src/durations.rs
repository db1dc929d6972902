//! How long commands took: the histograms behind `INFO latencystats` and `LATENCY HISTOGRAM`.

use std::collections::BTreeMap;

/// Longest duration that is told from longer ones, in nanoseconds.
const NANOS_MAX: i64 = 1_000_000_000;
/// Bits of a duration that count; what is equal in these is the same.
const SIGNIFICANT_BITS: u32 = 8;
/// The first boundary between classes of `LATENCY HISTOGRAM`, in nanoseconds; each further one is twice as high.
const FIRST_BOUNDARY: i64 = 1024;

/// The durations of one command's calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durations {
    /// Calls that took no time; they count as one nanosecond.
    instant: u64,
    /// All others, by the longest duration that is the same.
    others: BTreeMap<i64, u64>,
}

impl Durations {
    /// Counts a call.
    pub(crate) fn add(&mut self, micros: i64) {
        if micros <= 0 {
            self.instant += 1;
            return;
        }
        let nanos = micros.saturating_mul(1000).min(NANOS_MAX);
        *self.others.entry(longest_same(nanos)).or_default() += 1;
    }

    /// Counts so many calls that took no time.
    pub(crate) fn add_instant(&mut self, calls: u64) {
        self.instant += calls;
    }

    /// Number of calls.
    pub(crate) fn calls(&self) -> u64 {
        self.instant + self.others.values().sum::<u64>()
    }

    /// Durations in nanoseconds with the number of calls, the shortest first.
    fn iter(&self) -> impl Iterator<Item = (i64, u64)> {
        let instant = (self.instant > 0).then_some((1, self.instant));
        let others = self.others.iter().map(|(nanos, calls)| (*nanos, *calls));
        instant.into_iter().chain(others)
    }

    /// Nanoseconds within which so many percent of the calls were done.
    pub(crate) fn percentile(&self, percent: f64) -> i64 {
        let wanted = (percent / 100.0 * self.calls() as f64 + 0.5) as u64;
        let mut seen = 0;
        for (nanos, calls) in self.iter() {
            seen += calls;
            if seen >= wanted.max(1) {
                return nanos;
            }
        }
        0
    }

    /// Boundaries in microseconds with how many calls were done within each, where that number grows.
    pub(crate) fn classes(&self) -> Vec<(i64, u64)> {
        let mut classes: Vec<(i64, u64)> = Vec::new();
        let (mut boundary, mut seen) = (FIRST_BOUNDARY, 0);
        for (nanos, calls) in self.iter() {
            while longest_same(boundary) < nanos {
                boundary *= 2;
            }
            seen += calls;
            let micros = longest_same(boundary) / 1000;
            match classes.last_mut() {
                Some(last) if last.0 == micros => last.1 = seen,
                _ => classes.push((micros, seen)),
            }
        }
        classes
    }
}

/// The longest duration that counts as the same.
fn longest_same(nanos: i64) -> i64 {
    let bits = i64::BITS - nanos.leading_zeros();
    let shift = bits.saturating_sub(SIGNIFICANT_BITS);
    (nanos >> shift << shift) + (1 << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures are those that redis-server 7.0.15 gives for sleeps of these lengths.
    #[test]
    fn classes_and_percentiles_are_those_of_the_real_server() {
        let mut durations = Durations::default();
        for micros in [4_100, 12_100, 33_000, 51_250] {
            durations.add(micros);
        }
        let counted = [(4227, 1), (16908, 2), (33816, 3), (67633, 4)];
        assert_eq!(durations.classes(), counted);
        assert_eq!(durations.percentile(99.0), 51_380_223);
        let mut instant = Durations::default();
        instant.add(0);
        assert_eq!(
            (instant.classes(), instant.percentile(50.0)),
            (vec![(1, 1)], 1)
        );
    }
}
