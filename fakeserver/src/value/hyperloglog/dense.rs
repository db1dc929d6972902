//! Dense registers: six bits each, the lowest ones of a byte first.

use super::estimate::Histogram;
use super::{HEADER_LEN, REGISTERS};

const BITS: usize = 6;
const MASK: u16 = (1 << BITS) - 1;
/// Length of a dense `HyperLogLog`.
pub(super) const LEN: usize = HEADER_LEN + REGISTERS * BITS / 8;

fn offset(register: usize) -> (usize, usize) {
    let bit = register * BITS;
    (HEADER_LEN + bit / 8, bit % 8)
}

fn get(bytes: &[u8], register: usize) -> u8 {
    let (at, shift) = offset(register);
    let byte = |at: usize| u16::from(bytes.get(at).copied().unwrap_or(0));
    let word = byte(at) | byte(at + 1) << 8;
    (word >> shift & MASK) as u8
}

/// Gives a register a value.
pub(super) fn set(bytes: &mut [u8], register: usize, value: u8) {
    let (at, shift) = offset(register);
    let (mask, value) = (MASK << shift, (u16::from(value) & MASK) << shift);
    if let Some(byte) = bytes.get_mut(at) {
        *byte = *byte & !(mask as u8) | value as u8;
    }
    if let Some(byte) = bytes.get_mut(at + 1) {
        *byte = *byte & !((mask >> 8) as u8) | (value >> 8) as u8;
    }
}

/// Gives a register a value if it has a lower one; whether it had.
pub(super) fn raise(bytes: &mut [u8], register: usize, value: u8) -> bool {
    let is_higher = value > get(bytes, register);
    if is_higher {
        set(bytes, register, value);
    }
    is_higher
}

/// All registers: four to three bytes.
pub(super) fn registers(bytes: &[u8]) -> impl Iterator<Item = u8> {
    let (groups, _) = bytes.get(HEADER_LEN..).unwrap_or_default().as_chunks::<3>();
    groups.iter().flat_map(|[low, middle, high]| {
        let word = u32::from(*low) | u32::from(*middle) << 8 | u32::from(*high) << 16;
        [0, 6, 12, 18].map(|shift| (word >> shift) as u8 & MASK as u8)
    })
}

/// How many registers have each value.
pub(super) fn histogram(bytes: &[u8]) -> Histogram {
    let mut histogram = Histogram::default();
    registers(bytes).for_each(|value| histogram.count(value, 1));
    histogram
}
