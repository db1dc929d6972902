//! Numbers as Redis reads and prints them (util.c, object.c, networking.c).

/// Parses a decimal integer strictly as Redis' `string2ll`: no blanks, no plus sign, no leading zeros, within `i64`.
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] => return (!negative).then_some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut value: u64 = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))?;
    }
    if negative {
        0_i64.checked_sub_unsigned(value)
    } else {
        i64::try_from(value).ok()
    }
}

/// Parses a double as Redis reads scores and increments: what C's `strtod` takes, hexadecimal and `inf` included, without
/// blanks; neither `nan` nor what overflows or vanishes.
pub fn parse_float(text: &[u8]) -> Option<f64> {
    read_float(text).and_then(|(value, in_range)| in_range.then_some(value))
}

/// Parses the limit of a score range as Redis does, with `strtod` on a C string: blanks in front are skipped, no text at all
/// is 0, a NUL byte ends it, and what overflows or vanishes is an infinity or 0.
pub fn parse_range_limit(text: &[u8]) -> Option<f64> {
    let text = &text[..memchr::memchr(0, text).unwrap_or(text.len())];
    if text.is_empty() {
        return Some(0.0);
    }
    let blanks = text
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r'))
        .count();
    read_float(&text[blanks..]).map(|(value, _)| value)
}

/// The number that a text spells, unless it is NaN, and whether a double can hold it.
fn read_float(text: &[u8]) -> Option<(f64, bool)> {
    let (negative, body) = match text {
        [b'-', body @ ..] => (true, body),
        [b'+', body @ ..] => (false, body),
        body => (false, body),
    };
    let value = match body {
        [b'0', b'x' | b'X', digits @ ..] => parse_hexadecimal(digits)?,
        // Rust reads the same decimals as C, but another sign in front of them would be one too many.
        [b'+' | b'-', ..] => return None,
        body => std::str::from_utf8(body).ok()?.parse().ok()?,
    };
    if value.is_nan() {
        return None;
    }
    let overflows = value.is_infinite() && body.iter().any(u8::is_ascii_digit);
    let vanishes = value == 0.0 && has_nonzero_digit(body);
    Some((
        if negative { -value } else { value },
        !overflows && !vanishes,
    ))
}

/// Whether a digit of the mantissa is not zero.
fn has_nonzero_digit(body: &[u8]) -> bool {
    let hexadecimal = matches!(body, [b'0', b'x' | b'X', ..]);
    let mantissa = if hexadecimal { &body[2..] } else { body };
    mantissa
        .iter()
        .take_while(|byte| match byte {
            b'p' | b'P' => false,
            b'e' | b'E' => hexadecimal,
            _ => true,
        })
        .any(|byte| !matches!(byte, b'0' | b'.'))
}

/// Bits that a `f64` keeps.
const F64_BITS: i64 = 53;
/// Exponent of the lowest bit of the smallest `f64`.
const F64_EXPONENT_MIN: i64 = -1074;

/// Parses what follows `0x`: digits with at most one point, and a binary exponent.
fn parse_hexadecimal(text: &[u8]) -> Option<f64> {
    let end = text.iter().position(|byte| matches!(byte, b'p' | b'P'));
    let (digits, exponent) = match end {
        Some(end) => (&text[..end], parse_exponent(&text[end + 1..])?),
        None => (text, 0),
    };
    let (mut mantissa, mut exponent, mut point, mut any) = (0_u64, exponent, false, false);
    for byte in digits {
        if *byte == b'.' && !point {
            point = true;
            continue;
        }
        let digit = u64::from(char::from(*byte).to_digit(16)?);
        any = true;
        if mantissa >> 60 == 0 {
            mantissa = mantissa << 4 | digit;
            exponent -= if point { 4 } else { 0 };
        } else {
            // Beyond 60 bits only whether anything is there matters to rounding.
            mantissa |= u64::from(digit != 0);
            exponent += if point { 0 } else { 4 };
        }
    }
    any.then(|| scale(mantissa, exponent))
}

/// Reads a decimal exponent with its sign; one that is out of all bounds is cut, since the value is too.
pub(super) fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value = 0_i64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = (value * 10 + i64::from(digit - b'0')).min(1_000_000_000);
    }
    Some(if negative { -value } else { value })
}

/// `mantissa * 2^exponent`, rounded once.
fn scale(mantissa: u64, exponent: i64) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    let bits = i64::from(u64::BITS - mantissa.leading_zeros());
    let drop = (bits - F64_BITS).max(F64_EXPONENT_MIN - exponent).max(0);
    let kept = round_half_even(mantissa, drop);
    let exponent = (exponent + drop).clamp(-10_000, 10_000) as i32;
    // Both halves of the exponent are in range where the result is, and each product is exact.
    let half = exponent / 2;
    kept as f64 * 2_f64.powi(half) * 2_f64.powi(exponent - half)
}

/// `mantissa / 2^drop`, to the nearest integer, ties to the even one.
pub(super) fn round_half_even(mantissa: u64, drop: i64) -> u64 {
    match drop {
        0 => mantissa,
        1..=63 => {
            let (kept, rest) = (mantissa >> drop, mantissa & ((1 << drop) - 1));
            let half = 1 << (drop - 1);
            kept + u64::from(rest > half || (rest == half && kept & 1 == 1))
        }
        64 => u64::from(mantissa > 1 << 63),
        _ => 0,
    }
}

/// Prints a double as `%.17g` does, with `inf`, `-inf` and `nan`: the spelling of scores in replies.
pub fn format_double(value: f64) -> String {
    format_general(value, 17)
}

/// Prints a double without an exponent and with at most 17 decimals: the spelling of coordinates in replies.
pub fn format_plain(value: f64) -> String {
    match trim_zeros(&format!("{value:.17}")) {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

/// The double that is read back from [`format_plain`].
pub fn as_plain(value: f64) -> f64 {
    format_plain(value).parse().unwrap_or(value)
}

/// Prints a double as C's `%.{digits}g`.
pub fn format_general(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return if value.is_sign_negative() {
            "-nan".to_owned()
        } else {
            "nan".to_owned()
        };
    }
    if value.is_infinite() {
        return if value > 0.0 {
            "inf".to_owned()
        } else {
            "-inf".to_owned()
        };
    }
    if value == 0.0 {
        return if value.is_sign_negative() {
            "-0".to_owned()
        } else {
            "0".to_owned()
        };
    }
    // Every integer below 2^53 prints as itself, and most scores are integers.
    if value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 && digits >= 16 {
        return (value as i64).to_string();
    }
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let mantissa = trim_zeros(mantissa);
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    trim_zeros(&format!("{value:.decimals$}")).to_owned()
}

/// Removes trailing zeros of a fraction, and the point if nothing is left behind it.
fn trim_zeros(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_strictly() {
        let good: [(&str, i64); 5] = [
            ("0", 0),
            ("-1", -1),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
            ("10", 10),
        ];
        for (text, value) in good {
            assert_eq!(parse_integer(text.as_bytes()), Some(value), "{text}");
        }
        for text in [
            "",
            "-",
            "-0",
            "01",
            "+1",
            " 1",
            "1 ",
            "9223372036854775808",
            "-9223372036854775809",
            "1.0",
            "1a",
        ] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn floats_are_read_as_strtod_reads_them() {
        let good: [(&str, f64); 18] = [
            ("inf", f64::INFINITY),
            ("+INF", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("0x1p3", 8.0),
            ("0X1.8P-1", 0.75),
            ("0x.8", 0.5),
            ("1e5", 100_000.0),
            ("1.", 1.0),
            (".5", 0.5),
            ("+5", 5.0),
            ("5e-324", 5e-324),
            ("0e-500", 0.0),
            ("0x1p-1074", 5e-324),
            ("0x1.fffffffffffff8p0", 2.0),
            ("0x1.fffffffffffff7p0", 1.999_999_999_999_999_8),
            ("1.7976931348623158e308", f64::MAX),
            ("0x123456789abcdef01234567", 3.521_251_667_300_637e26),
            ("0x0.00000000000000000000000001p104", 1.0),
        ];
        for (text, value) in good {
            assert_eq!(parse_float(text.as_bytes()), Some(value), "{text}");
        }
        for text in [
            "",
            " 1",
            "1 ",
            "nan",
            "-nan",
            "infi",
            "0x",
            "0x1p",
            "1e",
            ".",
            "1e400",
            "1e-400",
            "2e-324",
            "0x1p-1080",
            "0x1p1024",
            "1_0",
            "1d",
            "--1",
            "+-1",
            "0x1.2.3",
        ] {
            assert_eq!(parse_float(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn limits_of_score_ranges_are_read_leniently() {
        let good: [(&str, f64); 8] = [
            ("", 0.0),
            (" 1", 1.0),
            ("\t-inf", f64::NEG_INFINITY),
            ("1\0abc", 1.0),
            ("1e400", f64::INFINITY),
            ("0x1p2000", f64::INFINITY),
            ("1e-400", 0.0),
            ("0x3", 3.0),
        ];
        for (text, value) in good {
            assert_eq!(parse_range_limit(text.as_bytes()), Some(value), "{text}");
        }
        for text in ["1 ", "nan", "a", "1a", " "] {
            assert_eq!(parse_range_limit(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn doubles_print_as_17_significant_digits() {
        let cases = [
            (0.1, "0.10000000000000001"),
            (3.0, "3"),
            (1e20, "1e+20"),
            (1.5e-7, "1.4999999999999999e-07"),
            (1e-4, "0.0001"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (-0.0, "-0"),
            (1e17, "1e+17"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (5e-324, "4.9406564584124654e-324"),
        ];
        for (value, text) in cases {
            assert_eq!(format_double(value), text);
        }
    }
}
