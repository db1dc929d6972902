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

/// Prints a double as `%.17g` does, with `inf`, `-inf` and `nan`: the spelling of scores in replies.
pub fn format_double(value: f64) -> String {
    format_general(value, 17)
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
