//! Numbers as Python spells and reads them.

use std::borrow::Cow;

use serde_json::Value;

/// Below this, doubles that are whole are spelled digit by digit.
const WHOLE_MAX: f64 = 1e15;

/// So many digits of a decimal are kept by a double, so that two decimals of as many digits are two doubles.
const DIGITS_APART: usize = 15;

/// How a float is laid out. Both take the shortest digits that read back as the same double.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Rows and events: `0.00001`, `1e-6`.
    Compact,
    /// Python's `repr`: `1e-05`, `1e-06`.
    Python,
}

/// A double as Python's `repr` writes it: `1700000000.0`, `1e+16`, `1e-05`, `inf`, `nan`.
///
/// Ids of time-out events contain this text, so that two sweepers agree on the id only if they agree on the spelling.
///
/// ```
/// use store::codec::python_float;
///
/// assert_eq!(python_float(1_700_000_000.0), "1700000000.0");
/// assert_eq!(python_float(1e16), "1e+16");
/// assert_eq!(python_float(0.00001), "1e-05");
/// ```
pub fn python_float(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    finite(number, Layout::Python)
}

/// A finite double in one of the two layouts.
pub(super) fn finite(number: f64, layout: Layout) -> String {
    // Times and amounts are mostly whole, and whole doubles of this size have all their digits in both layouts.
    if number.fract() == 0.0 && number.abs() < WHOLE_MAX && number != 0.0 {
        return format!("{}.0", number as i64);
    }
    let scientific = shortest(number);
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let (sign, mantissa) = mantissa
        .strip_prefix('-')
        .map_or(("", mantissa), |rest| ("-", rest));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa
        .chars()
        .filter(|character| *character != '.')
        .collect();
    // The value is 0.DIGITS times ten to the power of `point`.
    let point = exponent + 1;
    let smallest = match layout {
        Layout::Compact => -4,
        Layout::Python => -3,
    };
    if digits == "0" {
        return format!("{sign}0.0");
    }
    if !(smallest..=16).contains(&point) {
        let (first, rest) = digits.split_at(1);
        let fraction = if rest.is_empty() {
            String::new()
        } else {
            format!(".{rest}")
        };
        let power = match layout {
            Layout::Compact => format!("{exponent:+}").replace("+-", "-"),
            Layout::Python => format!(
                "{}{:02}",
                if exponent < 0 { '-' } else { '+' },
                exponent.unsigned_abs()
            ),
        };
        return format!("{sign}{first}{fraction}e{power}");
    }
    positional(sign, &digits, point)
}

/// The shortest digits that read back as the same double, as `1.25e-7`; of two that are equally near, the even one.
fn shortest(number: f64) -> String {
    let shortest = format!("{number:e}");
    // Where two are equally near, the standard library's shortest form takes the upper one; its form with a given number of
    // digits takes the even one, as Python does. That one may fail to read back where doubles below are closer together.
    let places = shortest
        .bytes()
        .take_while(|byte| *byte != b'e')
        .filter(u8::is_ascii_digit)
        .count()
        .saturating_sub(1);
    // Decimals of so few digits are too far apart for two of them to be equally near.
    if places < DIGITS_APART {
        return shortest;
    }
    let even = format!("{number:.places$e}");
    if even.parse() == Ok(number) {
        even
    } else {
        shortest
    }
}

fn positional(sign: &str, digits: &str, point: i32) -> String {
    let Ok(whole) = usize::try_from(point) else {
        return format!(
            "{sign}0.{}{digits}",
            "0".repeat(point.unsigned_abs() as usize)
        );
    };
    match whole {
        0 => format!("{sign}0.{digits}"),
        whole if whole >= digits.len() => {
            format!("{sign}{digits}{}.0", "0".repeat(whole - digits.len()))
        }
        whole => {
            let (whole, fraction) = digits.split_at(whole);
            format!("{sign}{whole}.{fraction}")
        }
    }
}

/// Whether a literal is spelled in both layouts as it is. Decimals of at most 15 digits are different doubles, so that no other
/// one of as few digits reads back as the same.
fn is_laid_out(literal: &str) -> bool {
    let unsigned = literal.strip_prefix('-').unwrap_or(literal);
    let Some((whole, fraction)) = unsigned.split_once('.') else {
        return false;
    };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    is_number(whole)
        && is_number(fraction)
        && !whole.starts_with('0')
        && whole.len() + fraction.len() <= 15
        && (fraction == "0" || !fraction.ends_with('0'))
}

/// The text of a JSON number in one of the spellings: integers of any size as they are, floats laid out anew.
pub(super) fn spell(literal: &str, layout: Layout) -> Cow<'_, str> {
    if literal == "-0" {
        return "0".into();
    }
    let is_integer = |byte| !matches!(byte, b'.' | b'e' | b'E');
    if literal.bytes().all(is_integer) || is_laid_out(literal) {
        return literal.into();
    }
    match literal.parse::<f64>() {
        // Beyond the range of doubles the literal stays: it is the only thing that still holds the number.
        Ok(number) if number.is_finite() => finite(number, layout).into(),
        _ => literal.into(),
    }
}

/// An integer as lax readers take it: `3`, `3.0` and `"3"` are 3, `3.5` is none.
pub fn lax_integer(value: &Value) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            let number = number.as_f64()?;
            (number.fract() == 0.0 && number.abs() <= EXACT_MAX).then_some(number as i64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_that_is_kept_is_what_would_be_spelled_anew() {
        let mut state = 1_u64;
        for _ in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let digits = format!(
                "{}",
                (state >> 11) % 10_u64.pow((state >> 59) as u32 % 15 + 1)
            );
            let at = (state >> 32) as usize % digits.len() + 1;
            let (whole, fraction) = digits.split_at(at.min(digits.len()));
            let literal = format!("-{whole}.{fraction}0");
            for literal in [&literal, &literal[1..], literal.trim_end_matches('0')] {
                let Ok(number) = literal.parse::<f64>() else {
                    continue;
                };
                if is_laid_out(literal) {
                    for layout in [Layout::Compact, Layout::Python] {
                        assert_eq!(literal, finite(number, layout));
                    }
                }
            }
        }
        assert!(is_laid_out("4.25") && is_laid_out("-17.0"));
        for literal in ["0.5", "1.50", "1e5", "1234567890123456.5", "-0.0", "12"] {
            assert!(!is_laid_out(literal), "{literal}");
        }
    }

    #[test]
    fn floats_are_spelled_as_measured() {
        // (number, compact, Python)
        let cases = [
            (1.0, "1.0", "1.0"),
            (0.0, "0.0", "0.0"),
            (-0.0, "-0.0", "-0.0"),
            (0.1, "0.1", "0.1"),
            (-1.5, "-1.5", "-1.5"),
            (0.001, "0.001", "0.001"),
            (0.0001, "0.0001", "0.0001"),
            (0.00001, "0.00001", "1e-05"),
            (1.5e-5, "0.000015", "1.5e-05"),
            (1e-6, "1e-6", "1e-06"),
            (1e-7, "1e-7", "1e-07"),
            (1.25e-10, "1.25e-10", "1.25e-10"),
            (5e-324, "5e-324", "5e-324"),
            (1e15, "1000000000000000.0", "1000000000000000.0"),
            (1e16, "1e+16", "1e+16"),
            (
                123_456_789_012_345_680.0,
                "1.2345678901234568e+17",
                "1.2345678901234568e+17",
            ),
            (1e300, "1e+300", "1e+300"),
            (1.5e300, "1.5e+300", "1.5e+300"),
            (1_700_000_000.0, "1700000000.0", "1700000000.0"),
            (
                1_700_000_000.123_456,
                "1700000000.123456",
                "1700000000.123456",
            ),
            (
                123_456_789.123_456_79,
                "123456789.12345679",
                "123456789.12345679",
            ),
            (
                9_007_199_254_740_993.0,
                "9007199254740992.0",
                "9007199254740992.0",
            ),
        ];
        for (number, compact, python) in cases {
            assert_eq!(finite(number, Layout::Compact), compact, "{number:e}");
            assert_eq!(python_float(number), python, "{number:e}");
        }
        assert_eq!(
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(python_float),
            ["nan", "inf", "-inf"]
        );
    }

    #[test]
    fn integers_of_any_size_stay_and_floats_are_laid_out_anew() {
        for (literal, expected) in [
            (
                "123456789012345678901234567890",
                "123456789012345678901234567890",
            ),
            ("-0", "0"),
            ("1E2", "100.0"),
            ("1e16", "1e+16"),
            ("0.10000000000000000555", "0.1"),
            ("1e400", "1e400"),
        ] {
            assert_eq!(spell(literal, Layout::Compact), expected);
        }
    }
}
