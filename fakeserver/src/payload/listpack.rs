//! Listpacks: small lists, hashes and sorted sets as one string of bytes.
//!
//! Six bytes of head (length in bytes and number of elements, little-endian), elements, and 0xff. An element is its encoding,
//! its data, and the length of both once more, so that it can be read from behind.

use crate::value::{Blob, number};

const HEAD_LEN: usize = 6;
const END: u8 = 0xff;

/// Longest string whose length fits behind a `10` in one byte, and behind a `1110` in two.
const SHORT_LEN_MAX: usize = 63;
const MEDIUM_LEN_MAX: usize = 4095;

/// A listpack that is written.
#[derive(Debug)]
pub(super) struct Writer {
    bytes: Vec<u8>,
    count: usize,
}

impl Writer {
    pub(super) fn new() -> Writer {
        Writer {
            bytes: vec![0; HEAD_LEN],
            count: 0,
        }
    }

    /// Appends a string; one that is the spelling of an integer is stored as such.
    pub(super) fn push(&mut self, element: &[u8]) {
        if let Some(value) = number::parse_integer(element) {
            self.push_integer(value);
            return;
        }
        let start = self.bytes.len();
        match element.len() {
            len @ ..=SHORT_LEN_MAX => self.bytes.push(0x80 | len as u8),
            len @ ..=MEDIUM_LEN_MAX => {
                self.bytes
                    .extend_from_slice(&(0xe000 | len as u16).to_be_bytes());
            }
            len => {
                self.bytes.push(0xf0);
                self.bytes.extend_from_slice(&(len as u32).to_le_bytes());
            }
        }
        self.bytes.extend_from_slice(element);
        self.finish_element(start);
    }

    pub(super) fn push_integer(&mut self, value: i64) {
        let start = self.bytes.len();
        let bytes = value.to_le_bytes();
        match value {
            0..=127 => self.bytes.push(value as u8),
            -4096..=4095 => {
                let bits = 0xc000 | (value as u16 & 0x1fff);
                self.bytes.extend_from_slice(&bits.to_be_bytes());
            }
            -0x8000..=0x7fff => self.push_marked(0xf1, &bytes[..2]),
            -0x80_0000..=0x7f_ffff => self.push_marked(0xf2, &bytes[..3]),
            -0x8000_0000..=0x7fff_ffff => self.push_marked(0xf3, &bytes[..4]),
            _ => self.push_marked(0xf4, &bytes),
        }
        self.finish_element(start);
    }

    fn push_marked(&mut self, mark: u8, bytes: &[u8]) {
        self.bytes.push(mark);
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends the length of the element that started at `start`, seven bits a byte, the highest first.
    fn finish_element(&mut self, start: usize) {
        let len = self.bytes.len() - start;
        let last = back_len(len) - 1;
        self.bytes.push((len >> (7 * last)) as u8);
        for at in (0..last).rev() {
            self.bytes.push((len >> (7 * at)) as u8 & 0x7f | 0x80);
        }
        self.count += 1;
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(END);
        // A count that does not fit is said to be unknown.
        let count = u16::try_from(self.count).unwrap_or(u16::MAX);
        let len = (self.bytes.len() as u32).to_le_bytes();
        let head = len.into_iter().chain(count.to_le_bytes());
        self.bytes
            .iter_mut()
            .zip(head)
            .for_each(|(byte, head)| *byte = head);
        self.bytes
    }
}

/// Bytes that an element's own length takes behind it.
fn back_len(len: usize) -> usize {
    match len {
        ..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    }
}

/// The elements of a listpack; none if it is malformed.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Blob>> {
    let (head, mut rest) = bytes.split_at_checked(HEAD_LEN)?;
    let len = u32::from_le_bytes(*head.first_chunk()?);
    let count = u16::from_le_bytes(*head.last_chunk()?);
    if len as usize != bytes.len() {
        return None;
    }
    let mut elements = Vec::new();
    while rest != [END] {
        let (element, behind) = read_element(rest)?;
        let len = rest.len() - behind.len();
        rest = behind.get(back_len(len)..)?;
        elements.push(element);
    }
    (count == u16::MAX || usize::from(count) == elements.len()).then_some(elements)
}

/// An element, and what stands behind its data.
fn read_element(bytes: &[u8]) -> Option<(Blob, &[u8])> {
    let (mark, rest) = bytes.split_first()?;
    let text = |len: usize, rest: &'_ [u8]| -> Option<(Blob, usize)> {
        Some((Blob::from(rest.get(..len)?), len))
    };
    let (element, used) = match mark {
        0..=0x7f => return Some((integer(i64::from(*mark)), rest)),
        0x80..=0xbf => text(usize::from(mark & 0x3f), rest)?,
        0xc0..=0xdf => {
            let value = i64::from(mark & 0x1f) << 8 | i64::from(*rest.first()?);
            let value = if value > 4095 { value - 8192 } else { value };
            (integer(value), 1)
        }
        0xe0..=0xef => {
            let (low, rest) = rest.split_first()?;
            let (element, len) = text(usize::from(mark & 0x0f) << 8 | usize::from(*low), rest)?;
            (element, 1 + len)
        }
        0xf0 => {
            let (len, rest) = rest.split_first_chunk::<4>()?;
            let (element, len) = text(u32::from_le_bytes(*len) as usize, rest)?;
            (element, 4 + len)
        }
        0xf1..=0xf4 => {
            let width = [2, 3, 4, 8][usize::from(mark - 0xf1)];
            (integer(little_endian(rest.get(..width)?)), width)
        }
        _ => return None,
    };
    Some((element, rest.get(used..)?))
}

fn integer(value: i64) -> Blob {
    Blob::from(value.to_string())
}

/// A signed integer of at most eight bytes, lowest first.
pub(super) fn little_endian(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * bytes.len().min(8) as u32;
    let value = bytes
        .iter()
        .rev()
        .fold(0_i64, |value, byte| value << 8 | i64::from(*byte));
    if unused == 0 {
        value
    } else {
        value << unused >> unused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_again() {
        let texts = [0, 1, 63, 64, 4095, 4096, 20_000].map(|len| vec![b'x'; len]);
        let integers = [
            0,
            127,
            128,
            -1,
            4095,
            4096,
            -4096,
            -4097,
            32_767,
            -32_769,
            8_388_607,
            -8_388_609,
            2_147_483_647,
            -2_147_483_649,
            i64::MAX,
            i64::MIN,
        ]
        .map(|value: i64| value.to_string().into_bytes());
        let elements: Vec<_> = texts.into_iter().chain(integers).collect();
        let mut writer = Writer::new();
        for element in &elements {
            writer.push(element);
        }
        let bytes = writer.finish();
        let read = read(&bytes).unwrap();
        assert_eq!(read.len(), elements.len());
        for (read, written) in read.iter().zip(&elements) {
            assert_eq!(read.as_bytes(), written.as_slice());
        }
        for cut in 0..bytes.len() {
            assert_eq!(super::read(&bytes[..cut]), None, "cut to {cut}");
        }
    }
}
