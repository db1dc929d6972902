//! Floats as C's `strtod` reads them, which is how Redis reads scores, weights, increments and range limits.

/// What stands at the beginning of a text as a number.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Prefix {
    value: f64,
    /// Bytes that belong to the number, blanks in front of it included; 0 if there is no number.
    len: usize,
    /// The number is too large for a double, or so small that it became 0.
    out_of_range: bool,
}

/// Parses a float strictly as Redis' `string2d`: the whole text, no blank in front, no NaN, nothing that overflows or
/// vanishes. Infinities and hexadecimal floats are numbers.
pub fn parse_float(text: &[u8]) -> Option<f64> {
    let first = *text.first()?;
    // Nearly all scores are short integers.
    if text.len() < 16 && text.iter().all(u8::is_ascii_digit) {
        let value = text
            .iter()
            .fold(0_u64, |value, digit| value * 10 + u64::from(digit - b'0'));
        return Some(value as f64);
    }
    let number = prefix(text);
    let good = !is_space(first) && number.len == text.len() && !number.out_of_range;
    (good && !number.value.is_nan()).then_some(number.value)
}

/// Parses the limit of a score range as Redis does: with `strtod` on a C string, so blanks in front are skipped, an empty
/// text is 0, a NUL byte ends it, and what overflows is an infinity.
pub fn parse_range_limit(text: &[u8]) -> Option<f64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let number = prefix(text);
    (number.len == text.len() && !number.value.is_nan()).then_some(number.value)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn prefix(text: &[u8]) -> Prefix {
    let blanks = text.iter().take_while(|byte| is_space(**byte)).count();
    let (signed, rest) = match &text[blanks..] {
        rest @ [b'+' | b'-', ..] => (1, &rest[1..]),
        rest => (0, rest),
    };
    let negative = signed == 1 && text[blanks] == b'-';
    let number = word(rest)
        .or_else(|| hexadecimal(rest))
        .or_else(|| decimal(rest));
    let Some(number) = number else {
        return Prefix {
            value: 0.0,
            len: 0,
            out_of_range: false,
        };
    };
    Prefix {
        value: if negative {
            -number.value
        } else {
            number.value
        },
        len: blanks + signed + number.len,
        ..number
    }
}

/// Infinities and NaN, by their names in any case.
fn word(text: &[u8]) -> Option<Prefix> {
    let names: [(&str, f64); 3] = [
        ("infinity", f64::INFINITY),
        ("inf", f64::INFINITY),
        ("nan", f64::NAN),
    ];
    let is_prefix = |name: &str| {
        text.get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
    };
    let (name, value) = names.iter().find(|(name, _)| is_prefix(name))?;
    Some(Prefix {
        value: *value,
        len: name.len(),
        out_of_range: false,
    })
}

fn digits_len(text: &[u8], is_digit: fn(&u8) -> bool) -> usize {
    text.iter().take_while(|byte| is_digit(byte)).count()
}

/// Length of the digits of `whole.fraction`, of the whole part alone, and whether there is a digit at all.
fn mantissa_len(text: &[u8], is_digit: fn(&u8) -> bool) -> (usize, usize, bool) {
    let whole = digits_len(text, is_digit);
    if text.get(whole) != Some(&b'.') {
        return (whole, whole, whole > 0);
    }
    let fraction = digits_len(&text[whole + 1..], is_digit);
    (whole + 1 + fraction, whole, whole + fraction > 0)
}

/// Length of an exponent with its letter, and the exponent, far beyond any double's range if it is.
fn exponent(text: &[u8], letter: u8) -> (usize, i64) {
    if !text
        .first()
        .is_some_and(|byte| byte.eq_ignore_ascii_case(&letter))
    {
        return (0, 0);
    }
    let signed = usize::from(matches!(text.get(1), Some(b'+' | b'-')));
    let digits = &text[1 + signed..];
    let len = digits_len(digits, u8::is_ascii_digit);
    if len == 0 {
        return (0, 0);
    }
    let value = digits[..len].iter().fold(0_i64, |value, digit| {
        (value * 10 + i64::from(digit - b'0')).min(1 << 40)
    });
    let negative = text.get(1) == Some(&b'-');
    (1 + signed + len, if negative { -value } else { value })
}

fn decimal(text: &[u8]) -> Option<Prefix> {
    let (mantissa, _, any) = mantissa_len(text, u8::is_ascii_digit);
    if !any {
        return None;
    }
    let len = mantissa + exponent(&text[mantissa..], b'e').0;
    let value: f64 = std::str::from_utf8(&text[..len]).ok()?.parse().ok()?;
    let is_zero = text[..mantissa]
        .iter()
        .all(|byte| matches!(byte, b'0' | b'.'));
    Some(Prefix {
        value,
        len,
        out_of_range: value.is_infinite() || (value == 0.0 && !is_zero),
    })
}

fn hexadecimal(text: &[u8]) -> Option<Prefix> {
    let [b'0', b'x' | b'X', digits @ ..] = text else {
        return None;
    };
    let (len, whole, any) = mantissa_len(digits, u8::is_ascii_hexdigit);
    if !any {
        return None;
    }
    let (exponent_len, exponent) = exponent(&digits[len..], b'p');
    let (mut mantissa, mut sticky, mut dropped) = (0_u64, false, 0_i64);
    for digit in digits[..len].iter().filter(|byte| **byte != b'.') {
        let digit = u64::from(char::from(*digit).to_digit(16).unwrap_or(0));
        if mantissa >> 60 == 0 {
            mantissa = mantissa << 4 | digit;
        } else {
            sticky |= digit != 0;
            dropped += 1;
        }
    }
    let fraction = len.saturating_sub(whole + 1) as i64;
    let value = scale(mantissa, sticky, exponent + 4 * (dropped - fraction));
    Some(Prefix {
        value,
        len: 2 + len + exponent_len,
        out_of_range: value.is_infinite() || (value == 0.0 && mantissa != 0),
    })
}

/// `mantissa * 2^exponent`, rounded half to even; `sticky` says that a little more than the mantissa was there.
fn scale(mantissa: u64, sticky: bool, exponent: i64) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    let zeros = mantissa.leading_zeros();
    let mantissa = mantissa << zeros;
    let top = exponent - i64::from(zeros) + 63;
    if top > 1023 {
        return f64::INFINITY;
    }
    // Below the smallest normal double there is room for fewer and fewer bits.
    let kept = 53 - (-1022 - top).max(0);
    if kept < 0 {
        return 0.0;
    }
    let shift = 64 - kept as u32;
    let cut = if shift == 64 {
        mantissa
    } else {
        mantissa & ((1 << shift) - 1)
    };
    let half = 1_u64 << (shift - 1);
    let mut bits = mantissa.checked_shr(shift).unwrap_or(0);
    if cut > half || (cut == half && (sticky || bits & 1 == 1)) {
        bits += 1;
    }
    if kept < 53 {
        return f64::from_bits(bits);
    }
    // The mantissa's top bit is implied: added, it raises the exponent field by one, and a carry raises it once more.
    f64::from_bits((((top + 1022) as u64) << 52) + bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_read_as_strtod_reads_them() {
        let good: [(&str, f64); 16] = [
            ("1", 1.0),
            ("-0", -0.0),
            ("+1.5", 1.5),
            ("1.", 1.0),
            (".5", 0.5),
            ("1e3", 1000.0),
            ("1E-2", 0.01),
            ("inf", f64::INFINITY),
            ("-INFINITY", f64::NEG_INFINITY),
            ("0x10", 16.0),
            ("0x1.8p1", 3.0),
            ("-0x.8", -0.5),
            ("0x1p-1074", 5e-324),
            ("0x1.fffffffffffff8p0", 2.0),
            ("5e-324", 5e-324),
            ("17976931348623157e292", f64::MAX),
        ];
        for (text, value) in good {
            let parsed = parse_float(text.as_bytes()).unwrap();
            assert_eq!(parsed.to_bits(), value.to_bits(), "{text}");
        }
        for text in [
            "", " 1", "1 ", "a", "1a", "nan", "-nan", "1e400", "1e-400", "0x", ".", "e1", "1e",
            "--1", "0x1p2000", "1\0",
        ] {
            assert_eq!(parse_float(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn range_limits_are_read_leniently() {
        let good: [(&str, f64); 6] = [
            ("", 0.0),
            (" 1", 1.0),
            ("1\0abc", 1.0),
            ("1e400", f64::INFINITY),
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
}
