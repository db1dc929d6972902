//! [`LongDouble`]: the 80-bit number of x87 in which Redis computes INCRBYFLOAT and HINCRBYFLOAT (util.c, `string2ld` and
//! `ld2string`). A `f64` would print other digits: 0.1 + 0.2 is 0.3 there.

use std::fmt::Write;

use super::number;

/// Longest text that Redis reads as a number.
const TEXT_LEN_MAX: usize = 5 * 1024 - 1;
/// Exponent of the lowest bit of the smallest number.
const EXPONENT_MIN: i64 = -16_445;
/// Numbers from two to this power on are infinite.
const POWER_MAX: i64 = 16_384;
/// Decimals that Redis prints.
const DECIMALS: u32 = 17;
/// Decimal exponents beyond which every number is infinite or vanishes; bounds the work of reading one.
const DECIMAL_POWER_MAX: i64 = 5_000;

/// Bits of a quotient: two more than the mantissa, and one for the rest, decide every rounding.
const QUOTIENT_BITS: i64 = 66;

/// A number `mantissa * 2^exponent` with a mantissa of 64 bits, rounded as x87 rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongDouble {
    is_negative: bool,
    /// Its highest bit is set, unless the number is zero.
    mantissa: u64,
    exponent: i64,
    is_infinite: bool,
}

impl LongDouble {
    /// Zero.
    pub const ZERO: LongDouble = LongDouble {
        is_negative: false,
        mantissa: 0,
        exponent: 0,
        is_infinite: false,
    };

    /// Reads what C's `strtold` reads, without blanks; neither `nan` nor what overflows or vanishes.
    pub fn parse(text: &[u8]) -> Option<LongDouble> {
        if text.len() > TEXT_LEN_MAX {
            return None;
        }
        let (is_negative, body) = match text {
            [b'-', body @ ..] => (true, body),
            [b'+', body @ ..] => (false, body),
            body => (false, body),
        };
        if body.eq_ignore_ascii_case(b"inf") || body.eq_ignore_ascii_case(b"infinity") {
            return Some(LongDouble {
                is_negative,
                is_infinite: true,
                ..LongDouble::ZERO
            });
        }
        let parsed = match body {
            [b'0', b'x' | b'X', body @ ..] => parse_hexadecimal(body)?,
            body => parse_decimal(body)?,
        };
        Some(LongDouble {
            is_negative,
            ..parsed
        })
    }

    /// The sum, or none if it is infinite or no number.
    #[must_use]
    pub fn checked_add(self, other: LongDouble) -> Option<LongDouble> {
        if self.is_infinite || other.is_infinite {
            return None;
        }
        if self.mantissa == 0 || other.mantissa == 0 {
            return Some(if self.mantissa == 0 { other } else { self });
        }
        let (high, low) = if self.exponent >= other.exponent {
            (self, other)
        } else {
            (other, self)
        };
        let (a, b) = (
            u128::from(high.mantissa) << 62,
            u128::from(low.mantissa) << 62,
        );
        let b = shift_right_jam(b, high.exponent - low.exponent);
        let exponent = high.exponent - 62;
        let (is_negative, sum) = if high.is_negative == low.is_negative {
            (high.is_negative, a + b)
        } else if a >= b {
            (high.is_negative, a - b)
        } else {
            (low.is_negative, b - a)
        };
        let sum = LongDouble::rounded(sum, exponent)?;
        Some(LongDouble { is_negative, ..sum })
    }

    /// Whether the number is not infinite.
    pub fn is_finite(self) -> bool {
        !self.is_infinite
    }

    /// The product with a small number, rounded up to an integer; none beyond `i64`.
    #[must_use]
    pub fn ceil_times(self, factor: u32) -> Option<i64> {
        if self.is_infinite {
            return None;
        }
        let product = u128::from(self.mantissa) * u128::from(factor);
        let product = LongDouble::rounded(product, self.exponent)?;
        let (whole, has_fraction) = match product.exponent {
            exponent if exponent > 0 => (None, false),
            exponent if exponent <= -64 => (Some(0), product.mantissa != 0),
            exponent => {
                let whole = product.mantissa >> -exponent;
                (Some(whole), whole << -exponent != product.mantissa)
            }
        };
        let whole = if product.mantissa == 0 { 0 } else { whole? };
        if self.is_negative {
            0_i64.checked_sub_unsigned(whole)
        } else {
            i64::try_from(whole.checked_add(u64::from(has_fraction))?).ok()
        }
    }

    /// `value * 2^exponent`, rounded; the lowest bit of `value` may stand for anything below it. None if it is infinite.
    fn rounded(value: u128, exponent: i64) -> Option<LongDouble> {
        let bits = i64::from(u128::BITS - value.leading_zeros());
        let drop = (bits - 64).max(EXPONENT_MIN - exponent).max(0);
        let kept = round_half_even(value, drop);
        if kept == 0 {
            return Some(LongDouble::ZERO);
        }
        // Rounding up can carry into a 65th bit, which leaves zeros below it.
        let (kept, drop) = if kept >> 64 == 0 {
            (kept as u64, drop)
        } else {
            ((kept >> 1) as u64, drop + 1)
        };
        let shift = kept.leading_zeros();
        let exponent = exponent + drop - i64::from(shift);
        (exponent + 64 <= POWER_MAX).then_some(LongDouble {
            is_negative: false,
            mantissa: kept << shift,
            exponent,
            is_infinite: false,
        })
    }

    /// `numerator / denominator * 2^exponent`, rounded. None if it is infinite, or vanishes without being zero.
    fn quotient(mut numerator: Natural, mut denominator: Natural, exponent: i64) -> Option<Self> {
        if numerator.bits() == 0 {
            return Some(LongDouble::ZERO);
        }
        let shift = QUOTIENT_BITS - (numerator.bits() as i64 - denominator.bits() as i64);
        if shift >= 0 {
            numerator.shift_left(shift as usize);
        } else {
            denominator.shift_left(shift.unsigned_abs() as usize);
        }
        denominator.shift_left(QUOTIENT_BITS as usize);
        let mut quotient = 0_u128;
        for _ in 0..=QUOTIENT_BITS {
            quotient <<= 1;
            if numerator.subtract_if_not_less(&denominator) {
                quotient |= 1;
            }
            denominator.halve();
        }
        let rest = u128::from(numerator.bits() != 0);
        LongDouble::rounded(quotient << 1 | rest, exponent - shift - 1)
            .filter(|value| value.mantissa != 0)
    }
}

impl std::fmt::Display for LongDouble {
    /// C's `%.17Lf` without trailing zeros; nothing is printed of a negative zero's sign.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.is_negative { "-" } else { "" };
        if self.is_infinite {
            return write!(f, "{sign}inf");
        }
        if self.exponent >= 0 {
            let mut whole = Natural::from(self.mantissa);
            whole.shift_left(self.exponent as usize);
            return match whole.bits() {
                0 => write!(f, "0"),
                _ => write!(f, "{sign}{}", whole.to_decimal()),
            };
        }
        // 64 bits and 57 for the decimals fit.
        let one = 10_u128.pow(DECIMALS);
        let scaled = round_half_even(u128::from(self.mantissa) * one, -self.exponent);
        let (whole, fraction) = (scaled / one, scaled % one);
        if scaled == 0 {
            write!(f, "0")
        } else if fraction == 0 {
            write!(f, "{sign}{whole}")
        } else {
            let decimals = format!("{fraction:017}");
            write!(f, "{sign}{whole}.{}", decimals.trim_end_matches('0'))
        }
    }
}

/// `value / 2^shift`, its lowest bit set if anything was cut off.
fn shift_right_jam(value: u128, shift: i64) -> u128 {
    if shift > 127 {
        return u128::from(value != 0);
    }
    let kept = value >> shift;
    kept | u128::from(kept << shift != value)
}

/// `value / 2^drop` to the nearest integer, ties to the even one.
fn round_half_even(value: u128, drop: i64) -> u128 {
    match drop {
        ..=0 => value,
        1..=127 => {
            let (kept, rest) = (value >> drop, value & ((1 << drop) - 1));
            let half = 1 << (drop - 1);
            kept + u128::from(rest > half || (rest == half && kept & 1 == 1))
        }
        128 => u128::from(value > 1 << 127),
        _ => 0,
    }
}

/// Reads digits with at most one point and a decimal exponent.
fn parse_decimal(text: &[u8]) -> Option<LongDouble> {
    let (digits, power) = split_exponent(text, |byte| matches!(byte, b'e' | b'E'))?;
    let (mantissa, decimals, digits) = parse_digits(digits, 10)?;
    let power = power - decimals;
    if mantissa.bits() != 0 && (power + digits).abs() > DECIMAL_POWER_MAX + 100 {
        return None;
    }
    let power = power.clamp(-2 * DECIMAL_POWER_MAX - 5_000, 2 * DECIMAL_POWER_MAX);
    let (mut numerator, mut denominator) = (mantissa, Natural::from(1));
    if numerator.bits() == 0 {
        return Some(LongDouble::ZERO);
    }
    let scaled = if power >= 0 {
        &mut numerator
    } else {
        &mut denominator
    };
    for _ in 0..power.unsigned_abs() / 9 {
        scaled.multiply_add(1_000_000_000, 0);
    }
    scaled.multiply_add(10_u32.pow((power.unsigned_abs() % 9) as u32), 0);
    LongDouble::quotient(numerator, denominator, 0)
}

/// Reads what follows `0x`: hexadecimal digits with at most one point and a binary exponent.
fn parse_hexadecimal(text: &[u8]) -> Option<LongDouble> {
    let (digits, power) = split_exponent(text, |byte| matches!(byte, b'p' | b'P'))?;
    let (mantissa, decimals, _) = parse_digits(digits, 16)?;
    LongDouble::quotient(mantissa, Natural::from(1), power - 4 * decimals)
}

/// The part in front of the exponent, and the exponent, 0 where there is none.
fn split_exponent(text: &[u8], is_mark: impl Fn(&u8) -> bool) -> Option<(&[u8], i64)> {
    match text.iter().position(is_mark) {
        Some(at) => Some((&text[..at], number::parse_exponent(&text[at + 1..])?)),
        None => Some((text, 0)),
    }
}

/// The digits as one integer, how many stand behind the point, and how many there are without leading zeros.
fn parse_digits(text: &[u8], radix: u32) -> Option<(Natural, i64, i64)> {
    let (mut value, mut decimals, mut significant) = (Natural::from(0), 0, 0);
    let (mut point, mut any) = (false, false);
    for byte in text {
        if *byte == b'.' && !point {
            point = true;
            continue;
        }
        let digit = char::from(*byte).to_digit(radix)?;
        any = true;
        value.multiply_add(radix, digit);
        decimals += i64::from(point);
        significant += i64::from(significant > 0 || digit > 0);
    }
    any.then_some((value, decimals, significant))
}

/// A natural number of any size, as digits of 32 bits, lowest first, without leading zeros.
#[derive(Clone, Debug)]
struct Natural(Vec<u32>);

impl From<u64> for Natural {
    fn from(value: u64) -> Natural {
        let mut natural = Natural(vec![value as u32, (value >> 32) as u32]);
        natural.trim();
        natural
    }
}

impl Natural {
    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    /// Number of bits without leading zeros.
    fn bits(&self) -> usize {
        self.0
            .last()
            .map_or(0, |top| self.0.len() * 32 - top.leading_zeros() as usize)
    }

    fn multiply_add(&mut self, factor: u32, summand: u32) {
        let mut carry = u64::from(summand);
        for digit in &mut self.0 {
            carry += u64::from(*digit) * u64::from(factor);
            *digit = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    fn shift_left(&mut self, by: usize) {
        let (digits, bits) = (by / 32, by % 32);
        if bits > 0 {
            self.multiply_add(1 << bits, 0);
        }
        if !self.0.is_empty() {
            self.0.splice(0..0, std::iter::repeat_n(0, digits));
        }
    }

    fn halve(&mut self) {
        let mut carry = 0;
        for digit in self.0.iter_mut().rev() {
            let low = *digit & 1;
            *digit = *digit >> 1 | carry << 31;
            carry = low;
        }
        self.trim();
    }

    /// Subtracts `other` unless it is greater; whether it did.
    fn subtract_if_not_less(&mut self, other: &Natural) -> bool {
        let less = self
            .0
            .len()
            .cmp(&other.0.len())
            .then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
            .is_lt();
        if less {
            return false;
        }
        let mut borrow = 0_i64;
        for (at, digit) in self.0.iter_mut().enumerate() {
            let subtrahend = i64::from(other.0.get(at).copied().unwrap_or(0));
            let difference = i64::from(*digit) - subtrahend + borrow;
            *digit = difference as u32;
            borrow = difference >> 32;
        }
        self.trim();
        true
    }

    fn to_decimal(&self) -> String {
        let mut rest = self.clone();
        let mut groups = Vec::new();
        while !rest.0.is_empty() {
            let mut remainder = 0_u64;
            for digit in rest.0.iter_mut().rev() {
                remainder = remainder << 32 | u64::from(*digit);
                *digit = (remainder / 1_000_000_000) as u32;
                remainder %= 1_000_000_000;
            }
            rest.trim();
            groups.push(remainder);
        }
        let mut text = groups.pop().unwrap_or(0).to_string();
        for group in groups.iter().rev() {
            // Writing to a String cannot fail.
            let _ = write!(text, "{group:09}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(a: &str, b: &str) -> Option<String> {
        let (a, b) = (
            LongDouble::parse(a.as_bytes())?,
            LongDouble::parse(b.as_bytes())?,
        );
        a.checked_add(b).map(|sum| sum.to_string())
    }

    #[test]
    fn sums_print_as_17_decimals_of_a_64_bit_mantissa() {
        // Recorded from INCRBYFLOAT.
        let cases = [
            ("0.1", "0.2", "0.3"),
            ("3", "1.1", "4.1"),
            ("10.5", "0.1", "10.6"),
            ("5000", "2.0e2", "5200"),
            ("1", "-1", "0"),
            ("-1e-18", "0", "0"),
            ("1e20", "1", "100000000000000000000"),
        ];
        for (a, b, expected) in cases {
            assert_eq!(sum(a, b).as_deref(), Some(expected), "{a} + {b}");
        }
    }

    #[test]
    fn what_is_no_finite_number_is_refused() {
        for text in [
            "", " 1", "1 ", "nan", "1e", ".", "1e5000", "1e-5000", "--1", "0x",
        ] {
            assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(sum("inf", "1"), None);
        assert_eq!(sum("1.1e4932", "1.1e4932"), None);
    }
}
