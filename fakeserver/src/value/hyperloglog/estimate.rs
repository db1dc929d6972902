//! From registers to a number of elements: the improved raw estimator of Otmar Ertl, "New cardinality estimation algorithms for
//! `HyperLogLog` sketches" (arXiv:1702.01284). The order of operations is Redis', since the last bit counts.

use super::{REGISTER_BITS, REGISTERS};

/// Most values that a register of six bits can have.
const VALUES: usize = 64;
/// Bits of a hash that decide a register's value.
const VALUE_BITS: usize = (u64::BITS - REGISTER_BITS) as usize;
/// `1 / (2 ln 2)`.
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// How many registers have each value.
#[derive(Clone, Debug)]
pub(super) struct Histogram([u32; VALUES]);

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram([0; VALUES])
    }
}

impl Histogram {
    /// Counts registers of a value.
    pub(super) fn count(&mut self, value: u8, registers: usize) {
        if let Some(count) = self.0.get_mut(usize::from(value)) {
            *count += registers as u32;
        }
    }

    /// The estimate, as a register of the processor holds it: one that is out of all bounds is the least negative number.
    pub(super) fn estimate(&self) -> u64 {
        let registers = REGISTERS as f64;
        let full = f64::from(self.0[VALUE_BITS + 1]);
        let mut mean = registers * tau((registers - full) / registers);
        for count in self.0[1..=VALUE_BITS].iter().rev() {
            mean += f64::from(*count);
            mean *= 0.5;
        }
        mean += registers * sigma(f64::from(self.0[0]) / registers);
        let estimate = (ALPHA * registers * registers / mean).round();
        if estimate < i64::MAX as f64 {
            estimate as u64
        } else {
            1 << 63
        }
    }
}

/// The sum for registers that are 0; `x` is their share.
fn sigma(mut x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if before == z {
            return z;
        }
    }
}

/// The sum for registers that are full; `x` is the share of all others.
fn tau(mut x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if before == z {
            return z / 3.0;
        }
    }
}
