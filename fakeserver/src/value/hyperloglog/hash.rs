//! Which register an element is counted in: `MurmurHash64A` with Redis' seed.

use super::{REGISTER_BITS, REGISTERS};

const SEED: u64 = 0xadc8_3b19;
const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
const SHIFT: u32 = 47;

/// The register of an element, and the value that it asks for: one more than the zeros at the end of the rest of its hash.
pub(super) fn place(element: &[u8]) -> (usize, u8) {
    let hash = murmur(element);
    let register = hash as usize & (REGISTERS - 1);
    let rest = hash >> REGISTER_BITS | 1 << (u64::BITS - REGISTER_BITS);
    (register, rest.trailing_zeros() as u8 + 1)
}

fn murmur(bytes: &[u8]) -> u64 {
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        word = (word ^ word >> SHIFT).wrapping_mul(MULTIPLIER);
        hash = (hash ^ word).wrapping_mul(MULTIPLIER);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ hash >> SHIFT).wrapping_mul(MULTIPLIER);
    hash ^ hash >> SHIFT
}
