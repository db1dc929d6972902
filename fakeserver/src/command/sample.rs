//! Random choices among the elements of a container, by index.

use std::collections::BTreeSet;

use crate::error::CommandError;

/// Most elements that a choice with repetition answers. Redis would go on until its memory is full.
const REPEATED_LEN_MAX: u64 = 4 << 20;

/// What the count of HRANDFIELD, SRANDMEMBER and ZRANDMEMBER asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sample {
    /// So many different elements, or all.
    Distinct(usize),
    /// Just so many elements, the same one more than once if it comes so.
    Repeated(usize),
}

impl Sample {
    /// A count as the client gave it: negative means with repetition. Errors: more than [`REPEATED_LEN_MAX`] of these.
    pub(crate) fn of(count: i64) -> Result<Sample, CommandError> {
        if count >= 0 {
            return Ok(Sample::Distinct(count as usize));
        }
        let count = count.unsigned_abs();
        if count > REPEATED_LEN_MAX {
            return Err(CommandError::OutOfRange);
        }
        Ok(Sample::Repeated(count as usize))
    }

    /// Indexes below `len`. All of them come in order, as Redis then answers the container as it lies.
    pub(crate) fn draw(self, len: usize, rng: &mut fastrand::Rng) -> Vec<usize> {
        match self {
            _ if len == 0 => Vec::new(),
            Sample::Distinct(count) => distinct(len, count, rng),
            Sample::Repeated(count) => (0..count).map(|_| rng.usize(..len)).collect(),
        }
    }
}

/// `count` different indexes below `len`, or all of them in order.
pub(crate) fn distinct(len: usize, count: usize, rng: &mut fastrand::Rng) -> Vec<usize> {
    if count >= len {
        return (0..len).collect();
    }
    if count.saturating_mul(3) > len {
        let mut all: Vec<usize> = (0..len).collect();
        for at in 0..count {
            all.swap(at, rng.usize(at..len));
        }
        all.truncate(count);
        return all;
    }
    // Few of many: drawing again what was drawn already happens less than once in three times.
    let mut seen = BTreeSet::new();
    let mut drawn = Vec::with_capacity(count);
    while drawn.len() < count {
        let index = rng.usize(..len);
        if seen.insert(index) {
            drawn.push(index);
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distinct_sample_has_no_index_twice_and_none_beyond_the_end() {
        let mut rng = fastrand::Rng::with_seed(5);
        for (len, count) in [
            (10, 0),
            (10, 1),
            (10, 3),
            (10, 9),
            (10, 10),
            (10, 99),
            (1000, 5),
        ] {
            let drawn = distinct(len, count, &mut rng);
            let different: BTreeSet<_> = drawn.iter().collect();
            assert_eq!(drawn.len(), count.min(len), "{count} of {len}");
            assert_eq!(different.len(), drawn.len(), "{count} of {len}");
            assert!(drawn.iter().all(|index| *index < len), "{count} of {len}");
        }
    }

    #[test]
    fn a_repeated_sample_is_as_long_as_asked_and_bounded() {
        let mut rng = fastrand::Rng::with_seed(5);
        assert_eq!(Sample::of(-50).unwrap().draw(3, &mut rng).len(), 50);
        assert_eq!(
            Sample::of(-50).unwrap().draw(0, &mut rng),
            Vec::<usize>::new()
        );
        assert_eq!(Sample::of(i64::MIN), Err(CommandError::OutOfRange));
    }
}
