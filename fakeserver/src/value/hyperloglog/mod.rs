//! `HyperLogLog`: strings that estimate how many different elements were added to them, byte for byte as Redis keeps them
//! (hyperloglog.c).
//!
//! A header of 16 bytes (`HYLL`, the encoding, three unused bytes, the count that was last estimated), then 16,384 registers, dense
//! ones of six bits each or sparse ones as runs. Such a string can be set like any other, so what follows the header may be
//! anything.

mod dense;
mod estimate;
mod hash;
mod sparse;

use estimate::Histogram;

/// Number of registers.
pub const REGISTERS: usize = 1 << REGISTER_BITS;
/// Bits of an element's hash that choose its register.
const REGISTER_BITS: u32 = 14;
const HEADER_LEN: usize = 16;
const MAGIC: &[u8] = b"HYLL";
const ENCODING_AT: usize = 4;
/// Where the count stands, its lowest byte first.
const COUNT_AT: usize = 8;
/// The highest bit of the header says that the count is out of date.
const STALE: u8 = 0x80;

/// How the registers are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Six bits each.
    Dense,
    /// As runs of equal registers.
    Sparse,
}

/// The runs of a sparse `HyperLogLog` are not those of 16,384 registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupted;

/// A `HyperLogLog` without an element.
pub fn empty() -> Vec<u8> {
    let mut bytes = vec![0; HEADER_LEN];
    bytes[..MAGIC.len()].copy_from_slice(MAGIC);
    bytes[ENCODING_AT] = 1;
    sparse::push_zeros(&mut bytes, REGISTERS);
    bytes
}

/// The encoding that a string's header names; none if it is no `HyperLogLog`.
pub fn encoding(bytes: &[u8]) -> Option<Encoding> {
    let header = bytes.get(..HEADER_LEN)?;
    match (header.starts_with(MAGIC), header[ENCODING_AT]) {
        (true, 0) if bytes.len() == dense::LEN => Some(Encoding::Dense),
        (true, 1) => Some(Encoding::Sparse),
        _ => None,
    }
}

/// The count that the header holds, unless it is out of date.
pub fn cached_count(bytes: &[u8]) -> Option<u64> {
    let count = bytes.get(COUNT_AT..HEADER_LEN)?;
    let count = u64::from_le_bytes(count.try_into().ok()?);
    (count >> 56 & u64::from(STALE) == 0).then_some(count)
}

/// Keeps a count in the header.
pub fn cache_count(bytes: &mut [u8], count: u64) {
    if let Some(cached) = bytes.get_mut(COUNT_AT..HEADER_LEN) {
        cached.copy_from_slice(&count.to_le_bytes());
    }
}

/// Marks the header's count as out of date.
pub fn forget_count(bytes: &mut [u8]) {
    if let Some(last) = bytes.get_mut(HEADER_LEN - 1) {
        *last |= STALE;
    }
}

/// The estimated number of elements. Errors: sparse registers that are more or fewer than 16,384.
pub fn count(bytes: &[u8]) -> Result<u64, Corrupted> {
    let histogram = match encoding(bytes) {
        Some(Encoding::Dense) => dense::histogram(bytes),
        Some(Encoding::Sparse) => sparse::histogram(bytes)?,
        None => return Err(Corrupted),
    };
    Ok(histogram.estimate())
}

/// Adds an element; whether a register changed. The sparse form becomes the dense one rather than longer than `sparse_len_max`.
pub fn add(bytes: &mut Vec<u8>, element: &[u8], sparse_len_max: usize) -> Result<bool, Corrupted> {
    let (register, value) = hash::place(element);
    raise(bytes, register, value, sparse_len_max)
}

/// Gives a register a value if it has a lower one; whether it had.
pub fn raise(
    bytes: &mut Vec<u8>,
    register: usize,
    value: u8,
    sparse_len_max: usize,
) -> Result<bool, Corrupted> {
    match encoding(bytes) {
        Some(Encoding::Dense) => Ok(dense::raise(bytes, register, value)),
        Some(Encoding::Sparse) => sparse::raise(bytes, register, value, sparse_len_max),
        None => Err(Corrupted),
    }
}

/// Makes a `HyperLogLog` dense; whether it was sparse. Errors: its registers cannot be read, and nothing was done.
pub fn make_dense(bytes: &mut Vec<u8>) -> Result<bool, Corrupted> {
    if encoding(bytes) != Some(Encoding::Sparse) {
        return Ok(false);
    }
    let mut made = vec![0; dense::LEN];
    let header = bytes.get(..HEADER_LEN).ok_or(Corrupted)?;
    made[..HEADER_LEN].copy_from_slice(header);
    made[ENCODING_AT] = 0;
    sparse::visit(bytes, |register, value| {
        dense::set(&mut made, register, value);
    })?;
    *bytes = made;
    Ok(true)
}

/// The registers of a dense `HyperLogLog`.
pub fn dense_registers(bytes: &[u8]) -> impl Iterator<Item = u8> {
    dense::registers(bytes)
}

/// The runs of a sparse `HyperLogLog` as `PFDEBUG DECODE` prints them: `z:` and `Z:` for zeros, `v:` for values.
pub fn runs(bytes: &[u8]) -> String {
    sparse::describe(bytes)
}

/// The highest registers of several `HyperLogLog`s: what stands for all their elements together.
#[derive(Clone, Debug)]
pub struct Union {
    registers: Vec<u8>,
}

impl Default for Union {
    fn default() -> Union {
        Union {
            registers: vec![0; REGISTERS],
        }
    }
}

impl Union {
    /// Takes a `HyperLogLog` in. Errors: its registers cannot be read, and some may have been taken.
    pub fn absorb(&mut self, bytes: &[u8]) -> Result<(), Corrupted> {
        match encoding(bytes) {
            Some(Encoding::Dense) => {
                let pairs = self.registers.iter_mut().zip(dense::registers(bytes));
                pairs.for_each(|(register, value)| *register = value.max(*register));
                Ok(())
            }
            Some(Encoding::Sparse) => sparse::visit(bytes, |register, value| {
                if let Some(register) = self.registers.get_mut(register) {
                    *register = value.max(*register);
                }
            }),
            None => Err(Corrupted),
        }
    }

    /// The estimated number of elements.
    pub fn count(&self) -> u64 {
        let mut histogram = Histogram::default();
        let (groups, _) = self.registers.as_chunks::<8>();
        for group in groups {
            if *group == [0; 8] {
                histogram.count(0, group.len());
            } else {
                for value in group {
                    histogram.count(*value, 1);
                }
            }
        }
        histogram.estimate()
    }

    /// The registers that are not 0, with their values.
    pub fn registers(&self) -> impl Iterator<Item = (usize, u8)> {
        let registers = self.registers.iter().copied().enumerate();
        registers.filter(|(_, value)| *value != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPARSE_LEN_MAX: usize = 3000;

    fn filled(elements: u32, sparse_len_max: usize) -> Vec<u8> {
        let mut bytes = empty();
        for element in 0..elements {
            add(&mut bytes, &element.to_le_bytes(), sparse_len_max).unwrap();
        }
        bytes
    }

    #[test]
    fn both_encodings_hold_the_same_registers() {
        for elements in [0, 1, 100, 1000, 3000] {
            let (sparse, mut dense) = (filled(elements, 1 << 20), filled(elements, 0));
            assert_eq!(count(&sparse), count(&dense));
            let mut converted = sparse.clone();
            make_dense(&mut converted).unwrap();
            make_dense(&mut dense).unwrap();
            assert_eq!(converted[HEADER_LEN..], dense[HEADER_LEN..], "{elements}");
            let mut union = Union::default();
            union.absorb(&sparse).unwrap();
            assert_eq!(Ok(union.count()), count(&dense));
        }
    }

    #[test]
    fn an_estimate_is_close() {
        for elements in [10_u32, 1000, 100_000] {
            let estimate = count(&filled(elements, SPARSE_LEN_MAX)).unwrap();
            let error = estimate.abs_diff(u64::from(elements)) as f64 / f64::from(elements);
            assert!(error < 0.03, "{elements}: {estimate}");
        }
    }

    #[test]
    fn nothing_that_stands_behind_a_header_is_read_beyond() {
        let mut rng = fastrand::Rng::with_seed(7);
        for round in 0..2000 {
            let mut bytes = filled(round % 40, SPARSE_LEN_MAX);
            for _ in 0..rng.usize(0..4) {
                let at = rng.usize(HEADER_LEN..bytes.len());
                bytes[at] = rng.u8(..);
            }
            bytes.truncate(rng.usize(HEADER_LEN - 1..=bytes.len()));
            let _ = count(&bytes);
            let _ = runs(&bytes);
            let _ = Union::default().absorb(&bytes);
            for _ in 0..8 {
                let _ = add(&mut bytes, &rng.u64(..).to_le_bytes(), SPARSE_LEN_MAX);
            }
            let _ = make_dense(&mut bytes);
        }
    }
}
