//! The other packed forms that a payload can hold: intsets, and the ziplists and zipmaps that older servers wrote.

use super::listpack::little_endian;
use crate::value::Blob;

/// An intset's bytes: width and number of the integers, and they in ascending order, all little-endian.
pub(super) fn write_intset(integers: &[i64]) -> Vec<u8> {
    let fits = |bits: u32| {
        let bound = 1_i64 << (bits - 1);
        integers.iter().all(|value| (-bound..bound).contains(value))
    };
    let width: usize = if fits(16) {
        2
    } else if fits(32) {
        4
    } else {
        8
    };
    let mut out = Vec::with_capacity(8 + width * integers.len());
    out.extend_from_slice(&(width as u32).to_le_bytes());
    out.extend_from_slice(&(integers.len() as u32).to_le_bytes());
    for value in integers {
        out.extend(value.to_le_bytes().into_iter().take(width));
    }
    out
}

/// The integers of an intset; none if it is malformed.
pub(super) fn read_intset(bytes: &[u8]) -> Option<Vec<i64>> {
    let (width, rest) = bytes.split_first_chunk::<4>()?;
    let (count, integers) = rest.split_first_chunk::<4>()?;
    let width = u32::from_le_bytes(*width) as usize;
    let count = u32::from_le_bytes(*count) as usize;
    if !matches!(width, 2 | 4 | 8) || integers.len() != width.checked_mul(count)? {
        return None;
    }
    // Redis does not look whether they ascend.
    Some(integers.chunks_exact(width).map(little_endian).collect())
}

/// Head of a ziplist: its length in bytes, the place of its last element, the number of elements.
const ZIPLIST_HEAD_LEN: usize = 10;
const END: u8 = 0xff;
/// Marks a length of four bytes where it would be one.
const LONG: u8 = 0xfe;

/// The elements of a ziplist; none if it is malformed.
pub(super) fn read_ziplist(bytes: &[u8]) -> Option<Vec<Blob>> {
    let len = u32::from_le_bytes(*bytes.first_chunk()?);
    if len as usize != bytes.len() {
        return None;
    }
    let mut rest = bytes.get(ZIPLIST_HEAD_LEN..)?;
    let mut elements = Vec::new();
    while rest != [END] {
        // In front of an element stands the length of the one before it.
        let before = if *rest.first()? == LONG { 5 } else { 1 };
        let (element, behind) = read_ziplist_element(rest.get(before..)?)?;
        elements.push(element);
        rest = behind;
    }
    Some(elements)
}

fn read_ziplist_element(bytes: &[u8]) -> Option<(Blob, &[u8])> {
    let (mark, rest) = bytes.split_first()?;
    let (len, rest) = match mark {
        0..=0x3f => (usize::from(*mark), rest),
        0x40..=0x7f => {
            let (low, rest) = rest.split_first()?;
            (usize::from(mark & 0x3f) << 8 | usize::from(*low), rest)
        }
        0x80 => {
            let (len, rest) = rest.split_first_chunk::<4>()?;
            (u32::from_be_bytes(*len) as usize, rest)
        }
        0xc0 => return read_ziplist_integer(rest, 2),
        0xd0 => return read_ziplist_integer(rest, 4),
        0xe0 => return read_ziplist_integer(rest, 8),
        0xf0 => return read_ziplist_integer(rest, 3),
        0xfe => return read_ziplist_integer(rest, 1),
        0xf1..=0xfd => {
            let value = i64::from(mark & 0x0f) - 1;
            return Some((Blob::from(value.to_string()), rest));
        }
        _ => return None,
    };
    let (text, rest) = rest.split_at_checked(len)?;
    Some((Blob::from(text), rest))
}

fn read_ziplist_integer(bytes: &[u8], width: usize) -> Option<(Blob, &[u8])> {
    let (value, rest) = bytes.split_at_checked(width)?;
    Some((Blob::from(little_endian(value).to_string()), rest))
}

/// The fields and values of a zipmap; none if it is malformed.
pub(super) fn read_zipmap(bytes: &[u8]) -> Option<Vec<Blob>> {
    let (_, mut rest) = bytes.split_first()?;
    let mut words = Vec::new();
    while rest != [END] {
        let (len, behind) = read_zipmap_len(rest)?;
        let (field, behind) = behind.split_at_checked(len)?;
        let (len, behind) = read_zipmap_len(behind)?;
        // A value may have been shortened in place; what that left free follows it.
        let (free, behind) = behind.split_first()?;
        let (value, behind) = behind.split_at_checked(len)?;
        rest = behind.get(usize::from(*free)..)?;
        words.extend([Blob::from(field), Blob::from(value)]);
    }
    Some(words)
}

fn read_zipmap_len(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (len, rest) = bytes.split_first()?;
    match *len {
        LONG => {
            let (len, rest) = rest.split_first_chunk::<4>()?;
            Some((u32::from_le_bytes(*len) as usize, rest))
        }
        END => None,
        len => Some((usize::from(len), rest)),
    }
}
