//! Atoms of a text: identifiers and numbers, the parts that a program makes up at random or reads from a clock.

use std::ops::Range;

/// Length of a UUID with its hyphens.
const UUID_LEN: usize = 36;

/// How far from now a number may be to count as a time, in seconds.
const TIME_SPAN: f64 = 2.0 * 24.0 * 3600.0;

/// Length of a date with its hyphens, and of a time of day with its colons.
const DATE_LEN: usize = 10;
const DAYTIME_LEN: usize = 8;

/// Atoms of a text, in order: dates with their time of day (ISO 8601), UUIDs, decimal numbers, runs of letters and digits.
pub(super) fn atoms(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let len = atom_len(text.get(at..).unwrap_or_default());
        if len > 0 {
            found.push(at..at + len);
        }
        at += len.max(1);
    }
    found
}

/// Length of the atom at the start of a text; 0 if there is none.
fn atom_len(text: &[u8]) -> usize {
    if text.get(..UUID_LEN).is_some_and(is_uuid) {
        return UUID_LEN;
    }
    if let Some(len) = iso_time_len(text) {
        return len;
    }
    let run = |text: &[u8], is: fn(&u8) -> bool| text.iter().take_while(|byte| is(byte)).count();
    let len = run(text, u8::is_ascii_alphanumeric);
    let word = text.get(..len).unwrap_or_default();
    if len == 0 || !word.iter().all(u8::is_ascii_digit) || text.get(len) != Some(&b'.') {
        return len;
    }
    let decimals = run(text.get(len + 1..).unwrap_or_default(), u8::is_ascii_digit);
    if decimals == 0 {
        len
    } else {
        len + 1 + decimals
    }
}

fn is_uuid(text: &[u8]) -> bool {
    text.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

/// Length of `2026-01-31T23:59:59` with its fraction and zone, if a text begins with such a time.
fn iso_time_len(text: &[u8]) -> Option<usize> {
    let end = DATE_LEN + 1 + DAYTIME_LEN;
    let is_iso = |(at, byte): (usize, &u8)| match at {
        4 | 7 => *byte == b'-',
        10 => matches!(byte, b'T' | b' '),
        13 | 16 => *byte == b':',
        _ => byte.is_ascii_digit(),
    };
    if !text.get(..end)?.iter().enumerate().all(is_iso) {
        return None;
    }
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut len = end;
    if text.get(len) == Some(&b'.') && digits(len + 1) > 0 {
        len += 1 + digits(len + 1);
    }
    match text.get(len) {
        Some(b'Z') => len += 1,
        Some(b'+' | b'-') if digits(len + 1) == 4 => len += 5,
        Some(b'+' | b'-')
            if digits(len + 1) == 2 && text.get(len + 3) == Some(&b':') && digits(len + 4) == 2 =>
        {
            len += 6;
        }
        _ => {}
    }
    Some(len)
}

/// Days from the epoch to a date `2026-01-31`, by the civil calendar.
fn days(date: &[u8]) -> Option<f64> {
    let number = |range: Range<usize>| -> Option<i64> {
        std::str::from_utf8(date.get(range)?).ok()?.parse().ok()
    };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    // Years begin in March here, so that the leap day is a year's last.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // The epoch is 719,468 days behind the first of March of the year 0.
    Some((year * 365 + leaps + (month * 153 + 2) / 5 + day - 1 - 719_468) as f64)
}

/// Whether an atom is a time near `now`: a date with its time of day, or a number of seconds, milliseconds, microseconds or
/// nanoseconds since the epoch.
pub(super) fn is_time(atom: &[u8], now_seconds: f64) -> bool {
    // Shorter numbers are no times, and cost nothing to find out.
    if atom.len() < 10 {
        return false;
    }
    if iso_time_len(atom) == Some(atom.len()) {
        return days(atom).is_some_and(|days| (days * 86_400.0 - now_seconds).abs() < TIME_SPAN);
    }
    let Some(number) = std::str::from_utf8(atom)
        .ok()
        .filter(|text| {
            text.bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
        })
        .and_then(|text| text.parse::<f64>().ok())
    else {
        return false;
    };
    [1.0, 1e3, 1e6, 1e9]
        .into_iter()
        .any(|unit| (number / unit - now_seconds).abs() < TIME_SPAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        atoms(text.as_bytes())
            .into_iter()
            .map(|range| &text[range])
            .collect()
    }

    #[test]
    fn identifiers_and_numbers_are_atoms() {
        assert_eq!(words("lock:ab12-c"), ["lock", "ab12", "c"]);
        assert_eq!(
            words(r#"{"at": 12.50, "n": -3}"#),
            ["at", "12.50", "n", "3"]
        );
        let uuid = "6fa459ea-ee8a-3ca4-894e-db77e160355e";
        assert_eq!(words(&format!("job/{uuid}")), ["job", uuid]);
        assert_eq!(words("end 7."), ["end", "7"]);
        assert!(words("").is_empty());
    }

    #[test]
    fn times_of_all_units_are_recognised() {
        let now = 1_700_000_000.0;
        for time in [
            "1700000001",
            "1700000000.25",
            "1699999999123",
            "1700000000000000",
            "1700000000123456789",
        ] {
            assert!(is_time(time.as_bytes(), now), "{time}");
        }
        for time in [
            "2023-11-14T22:13:20",
            "2023-11-14 22:13:20.123456",
            "2023-11-15T00:13:20+02:00",
            "2023-11-14T22:13:20.5Z",
            "2023-11-13T22:13:20-0500",
        ] {
            assert_eq!(words(&format!("at {time}, x")), ["at", time, "x"]);
            assert!(is_time(time.as_bytes(), now), "{time}");
        }
        for other in [
            "2023-11-24T22:13:20",
            "1600000000",
            "17000000",
            "9999999999",
            "abcdefghijkl",
            "1.2.3.4.5.6.7",
        ] {
            assert!(!is_time(other.as_bytes(), now), "{other}");
        }
    }
}
