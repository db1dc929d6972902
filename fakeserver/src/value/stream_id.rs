//! [`StreamId`]: the place of an entry in its stream.

use std::fmt;

use super::number;

/// Longest text that is looked at as an id.
const TEXT_LEN_MAX: usize = 127;

/// The id of a stream's entry: milliseconds, and a number among the entries of one millisecond.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId {
    /// Milliseconds since the epoch, or what the client took for them.
    pub ms: u64,
    /// The sequence number.
    pub seq: u64,
}

impl StreamId {
    /// The lowest id, which no entry has.
    pub const ZERO: StreamId = StreamId { ms: 0, seq: 0 };
    /// The highest id.
    pub const MAX: StreamId = StreamId {
        ms: u64::MAX,
        seq: u64::MAX,
    };

    /// The id right behind this one.
    pub fn next(self) -> Option<StreamId> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(StreamId { seq, ..self }),
            None => Some(StreamId {
                ms: self.ms.checked_add(1)?,
                seq: 0,
            }),
        }
    }

    /// The id right before this one.
    pub fn previous(self) -> Option<StreamId> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(StreamId { seq, ..self }),
            None => Some(StreamId {
                ms: self.ms.checked_sub(1)?,
                seq: u64::MAX,
            }),
        }
    }

    /// Reads `ms-seq`, or `ms` alone, which takes `seq` for the rest.
    pub fn parse(text: &[u8], seq: u64) -> Option<StreamId> {
        let (ms, rest) = split(text)?;
        let seq = match rest {
            Some(rest) => parse_part(rest)?,
            None => seq,
        };
        Some(StreamId { ms, seq })
    }

    /// Reads the milliseconds of `ms-*`, whose sequence number the stream is to choose.
    pub fn parse_without_seq(text: &[u8]) -> Option<u64> {
        match split(text)? {
            (ms, Some(b"*")) => Some(ms),
            _ => None,
        }
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The milliseconds, and what stands behind the first hyphen. Redis reads a C string: a NUL byte ends it.
fn split(text: &[u8]) -> Option<(u64, Option<&[u8]>)> {
    if text.len() > TEXT_LEN_MAX {
        return None;
    }
    let text = &text[..memchr::memchr(0, text).unwrap_or(text.len())];
    match memchr::memchr(b'-', text) {
        Some(at) => Some((parse_part(&text[..at])?, Some(&text[at + 1..]))),
        None => Some((parse_part(text)?, None)),
    }
}

/// Reads a number as Redis' `string2ull`: what is no plain integer is left to C's `strtoull`, which skips blanks, takes signs
/// and leading zeros, and lets a negative number wrap.
fn parse_part(text: &[u8]) -> Option<u64> {
    if let Some(value) = number::parse_integer(text) {
        return u64::try_from(value).ok();
    }
    let blanks = text
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r'))
        .count();
    let (is_negative, digits) = match &text[blanks..] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let value = digits.iter().try_fold(0_u64, |value, digit| {
        let digit = char::from(*digit).to_digit(10)?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })?;
    Some(if is_negative {
        value.wrapping_neg()
    } else {
        value
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_redis_reads_them() {
        let good: [(&str, u64, u64); 7] = [
            ("1-2", 1, 2),
            ("1", 1, 9),
            ("0-0", 0, 0),
            (
                "18446744073709551615-18446744073709551615",
                u64::MAX,
                u64::MAX,
            ),
            ("007-+5", 7, 5),
            (" 1-1", 1, 1),
            ("1-1\0x", 1, 1),
        ];
        for (text, ms, seq) in good {
            assert_eq!(
                StreamId::parse(text.as_bytes(), 9),
                Some(StreamId { ms, seq }),
                "{text}"
            );
        }
        for text in [
            "",
            "-",
            "1-",
            "-1",
            "a",
            "1-a",
            "1-2-3",
            "18446744073709551616",
            "1 ",
            "1-*",
        ] {
            assert_eq!(StreamId::parse(text.as_bytes(), 0), None, "{text}");
        }
        assert_eq!(StreamId::parse_without_seq(b"5-*"), Some(5));
        assert_eq!(StreamId::parse_without_seq(b"5-**"), None);
    }

    #[test]
    fn neighbours_cross_the_millisecond() {
        let end = StreamId {
            ms: 1,
            seq: u64::MAX,
        };
        assert_eq!(end.next(), Some(StreamId { ms: 2, seq: 0 }));
        assert_eq!(end.next().and_then(StreamId::previous), Some(end));
        assert_eq!(StreamId::MAX.next(), None);
        assert_eq!(StreamId::ZERO.previous(), None);
    }
}
