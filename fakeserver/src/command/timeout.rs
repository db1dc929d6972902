//! The time-out of blocking commands.

use crate::error::CommandError;
use crate::value::LongDouble;

/// Reads a time-out in seconds, with a fraction, as milliseconds rounded up; 0 is for ever.
///
/// Computed as Redis does (timeout.c, `getTimeoutFromObjectOrReply`): a negative fraction of a millisecond is for ever too, and
/// what is beyond `i64` counts as negative. Errors: not a float; negative.
pub(crate) fn parse_seconds(word: &[u8]) -> Result<i64, CommandError> {
    LongDouble::parse(word)
        .ok_or(CommandError::TimeoutNotAFloat)?
        .ceil_times(1000)
        .filter(|timeout_ms| *timeout_ms >= 0)
        .ok_or(CommandError::TimeoutNegative)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_up_to_milliseconds() {
        let cases = [
            ("0", Ok(0)),
            ("-0", Ok(0)),
            ("1", Ok(1000)),
            ("0.55", Ok(550)),
            ("0.1", Ok(100)),
            ("1.0001", Ok(1001)),
            ("0.0000001", Ok(1)),
            ("1e-30", Ok(1)),
            ("-0.0000001", Ok(0)),
            ("0x1", Ok(1000)),
            ("9223372036854774", Ok(9_223_372_036_854_774_000)),
            ("9223372036854775", Ok(9_223_372_036_854_775_000)),
            ("9223372036854776", Err(CommandError::TimeoutNegative)),
            ("1e400", Err(CommandError::TimeoutNegative)),
            ("inf", Err(CommandError::TimeoutNegative)),
            ("-inf", Err(CommandError::TimeoutNegative)),
            ("-1", Err(CommandError::TimeoutNegative)),
            ("-0.0015", Err(CommandError::TimeoutNegative)),
            ("nan", Err(CommandError::TimeoutNotAFloat)),
            ("", Err(CommandError::TimeoutNotAFloat)),
            (" 1", Err(CommandError::TimeoutNotAFloat)),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_seconds(text.as_bytes()), expected, "{text}");
        }
    }
}
