//! What the benchmarks share.

use std::fmt::Write as _;

/// A request as clients send it.
pub(crate) fn request(words: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len());
    for word in words {
        // Writing to a String cannot fail.
        let _ = write!(out, "${}\r\n{word}\r\n", word.len());
    }
    out.into_bytes()
}
