//! LZF, in which Redis stores long strings.
//!
//! A control byte below 32 is followed by so many bytes plus one as they are. Otherwise its upper three bits and, where those
//! are all set, another byte are a length, and its lower five bits and a last byte the distance back to what is repeated.

/// Most bytes that one compressed byte can stand for: three bytes repeat at most 264.
const EXPANSION_MAX: usize = 88;

/// The `len` bytes that were compressed to `input`; none if they are not.
pub(super) fn decompress(input: &[u8], len: usize) -> Option<Vec<u8>> {
    if len > input.len().checked_mul(EXPANSION_MAX)? {
        return None;
    }
    let mut out = Vec::with_capacity(len);
    let mut input = input.iter().copied();
    while let Some(control) = input.next() {
        let control = usize::from(control);
        if control < 32 {
            for _ in 0..=control {
                out.push(input.next()?);
            }
        } else {
            let mut count = control >> 5;
            if count == 7 {
                count += usize::from(input.next()?);
            }
            let distance = (control & 31) << 8 | usize::from(input.next()?);
            let start = out.len().checked_sub(distance + 1)?;
            // What is repeated may be what is being written, so it goes byte by byte.
            for at in start..start + count + 2 {
                out.push(*out.get(at)?);
            }
        }
        if out.len() > len {
            return None;
        }
    }
    (out.len() == len).then_some(out)
}

/// Buckets of the table of places: a power of two.
const TABLE_LEN: usize = 1 << 16;
/// Most bytes that one control byte takes over as they are.
const LITERALS_MAX: usize = 32;
/// Farthest distance back.
const DISTANCE_MAX: usize = 1 << 13;
/// Most bytes that are repeated at once.
const REPEAT_MAX: usize = 264;
/// So many bytes are compared without a look at how many there may be, if there may be more.
const UNCHECKED_LEN: usize = 16;

/// A compressor, with its table of the places where three bytes were last seen. It chooses as Redis' does, so that the bytes are
/// the same: where a longer repetition could be found is no matter.
#[derive(Debug, Default)]
pub(super) struct Compressor {
    /// Places, counted from where the first string began, so that the table need not be cleared between strings.
    places: Vec<u32>,
    /// Where the current string begins.
    base: u32,
}

impl Compressor {
    /// The compressed bytes; none if there would be more than `len_max` of them, or nearly so many.
    pub(super) fn compress(&mut self, input: &[u8], len_max: usize) -> Option<Vec<u8>> {
        self.begin(input.len())?;
        let mut out = Output::new(len_max);
        let last = input.len().saturating_sub(2);
        let mut at = 0;
        while at < last {
            let start = self.replace(input, at).filter(|start| {
                at - start <= DISTANCE_MAX && input[*start..start + 3] == input[at..at + 3]
            });
            let Some(start) = start else {
                out.literal(input[at])?;
                at += 1;
                continue;
            };
            let len = repeated(&input[start..], &input[at..]);
            out.repeat(at - start - 1, len)?;
            at += len;
            if at < last {
                // Of the places inside of what was repeated only the last two are remembered.
                self.replace(input, at - 2);
                self.replace(input, at - 1);
            }
        }
        out.finish(&input[at..])
    }

    fn begin(&mut self, len: usize) -> Option<()> {
        let len = u32::try_from(len).ok()?;
        if self.places.is_empty() || self.base.checked_add(len).is_none() {
            self.places = vec![0; TABLE_LEN];
            self.base = 0;
        }
        self.base += len;
        Some(())
    }

    /// Notes the place of three bytes; where they, or others with their hash, were seen before in this string.
    fn replace(&mut self, input: &[u8], at: usize) -> Option<usize> {
        let base = self.base - input.len() as u32;
        let three = input[at..at + 3]
            .iter()
            .fold(0_u32, |three, byte| three << 8 | u32::from(*byte));
        let slot = (three >> 8).wrapping_sub(three.wrapping_mul(5)) as usize % TABLE_LEN;
        let before = std::mem::replace(&mut self.places[slot], base + at as u32);
        // The first place of all is never referred to.
        before
            .checked_sub(base)
            .filter(|place| *place > 0)
            .map(|place| place as usize)
    }
}

/// How many bytes two places have in common, of which the first three are known to be.
fn repeated(before: &[u8], now: &[u8]) -> usize {
    let len_max = (now.len() - 2).min(REPEAT_MAX);
    let mut len = 3;
    if len_max > UNCHECKED_LEN {
        let end = 2 + UNCHECKED_LEN;
        while len <= end && before[len] == now[len] {
            len += 1;
        }
        if len <= end {
            return len;
        }
    }
    while len < len_max && before[len] == now[len] {
        len += 1;
    }
    len
}

/// What is written: the last run of literals has its control byte in front, still without its length.
struct Output {
    bytes: Vec<u8>,
    literals: usize,
    len_max: usize,
}

impl Output {
    fn new(len_max: usize) -> Output {
        Output {
            bytes: vec![0],
            literals: 0,
            len_max,
        }
    }

    fn literal(&mut self, byte: u8) -> Option<()> {
        if self.bytes.len() >= self.len_max {
            return None;
        }
        self.push_literal(byte);
        Some(())
    }

    fn push_literal(&mut self, byte: u8) {
        self.bytes.push(byte);
        self.literals += 1;
        if self.literals == LITERALS_MAX {
            self.close_run();
            self.bytes.push(0);
        }
    }

    /// Writes the length of the run of literals, or takes back the control byte of an empty one.
    fn close_run(&mut self) {
        let control = self.bytes.len() - self.literals - 1;
        if self.literals == 0 {
            self.bytes.truncate(control);
        } else {
            self.bytes[control] = self.literals as u8 - 1;
        }
        self.literals = 0;
    }

    /// Repeats `len` bytes from `distance` plus one back.
    fn repeat(&mut self, distance: usize, len: usize) -> Option<()> {
        if self.bytes.len() - usize::from(self.literals == 0) + 4 >= self.len_max {
            return None;
        }
        self.close_run();
        let high = (distance >> 8) as u8;
        match len - 2 {
            short @ ..7 => self.bytes.push(high | (short as u8) << 5),
            long => self.bytes.extend([high | 7 << 5, (long - 7) as u8]),
        }
        self.bytes.extend([distance as u8, 0]);
        Some(())
    }

    fn finish(mut self, rest: &[u8]) -> Option<Vec<u8>> {
        if self.bytes.len() + 3 > self.len_max {
            return None;
        }
        for byte in rest {
            self.push_literal(*byte);
        }
        self.close_run();
        Some(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{Compressor, decompress};

    #[test]
    fn what_was_compressed_is_expanded_again() {
        let mut compressor = Compressor::default();
        let mut rng = fastrand::Rng::with_seed(1);
        for round in 0..2_000 {
            let (len, letters) = (rng.usize(5..400), rng.u8(1..6));
            let text: Vec<u8> = (0..len).map(|_| rng.u8(0..letters)).collect();
            let Some(compressed) = compressor.compress(&text, len - 4) else {
                continue;
            };
            assert!(compressed.len() <= len - 4, "round {round}");
            assert_eq!(decompress(&compressed, len), Some(text), "round {round}");
        }
    }

    #[test]
    fn runs_and_literals_are_expanded() {
        assert_eq!(
            decompress(b"\x01aa\xe0\x11\x00\x00b", 29).as_deref(),
            Some(&b"aaaaaaaaaaaaaaaaaaaaaaaaaaaab"[..])
        );
        for bad in [&b"\x05a"[..], b"\x20\x00", b"\xe0"] {
            assert_eq!(decompress(bad, 3), None);
        }
    }
}
