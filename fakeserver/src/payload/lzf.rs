//! Decompression of LZF, in which Redis stores long strings.
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

#[cfg(test)]
mod tests {
    use super::decompress;

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
