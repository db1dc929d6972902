//! How many bytes things take in a listpack, its length behind it included.

use super::number;

/// Head and end mark of a listpack.
pub(crate) const LISTPACK_LEN_MIN: usize = 7;

/// Bytes of an integer in a listpack, its length behind it included.
pub(crate) fn integer_len(value: i64) -> usize {
    match value {
        0..=0x7f => 2,
        -0x1000..=0xfff => 3,
        -0x8000..=0x7fff => 4,
        -0x80_0000..=0x7f_ffff => 5,
        -0x8000_0000..=0x7fff_ffff => 6,
        _ => 10,
    }
}

/// Bytes of a string in a listpack, which keeps the spelling of an integer as that integer.
pub(crate) fn text_len(text: &[u8]) -> usize {
    if text.len() <= 20
        && let Some(value) = number::parse_integer(text)
    {
        return integer_len(value);
    }
    let len = match text.len() {
        len @ ..64 => 1 + len,
        len @ 64..4096 => 2 + len,
        len => 5 + len,
    };
    let back_len = match len {
        ..128 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    };
    len + back_len
}
