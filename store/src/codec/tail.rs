//! Where a row's version stands, found without building the row's values.

use super::{Surrogates, parse};

/// The text from the separator in front of the last top-level member `version` to the end of the row; none if there is no
/// such member. The row must be a JSON object.
///
/// It is read from its end: behind the version there is little, in front of it all of a context.
///
/// ```
/// let row = r#"{"a":{"version":1},"version":2,"b":[]}"#;
/// assert_eq!(store::codec::version_tail(row), Some(r#","version":2,"b":[]}"#));
/// ```
pub fn version_tail(row: &str) -> Option<&str> {
    let bytes = row.as_bytes();
    let (mut end, mut depth) = (bytes.len(), 0_usize);
    let (mut is_name, mut found) = (false, false);
    while let Some(at) = end.checked_sub(1) {
        end = at;
        match bytes.get(at)? {
            b'"' => {
                let start = start_of_text(bytes, at)?;
                found = depth == 1 && is_name && is_version(row.get(start..=at)?);
                is_name = false;
                end = start;
            }
            b':' if depth == 1 => is_name = true,
            b',' | b'{' if depth == 1 && found => return row.get(at..),
            b']' if depth == 0 => return None,
            b'}' | b']' => depth += 1,
            b'{' | b'[' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

/// The place of the quote that begins the text whose last quote is here. A quote behind an odd number of backslashes is one of
/// the text's characters.
fn start_of_text(bytes: &[u8], last: usize) -> Option<usize> {
    let mut before = bytes.get(..last)?;
    loop {
        let quote = before.iter().rposition(|byte| *byte == b'"')?;
        before = before.get(..quote)?;
        let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\');
        if backslashes.count() % 2 == 0 {
            return Some(quote);
        }
    }
}

/// Whether a text, with its quotes, says `version`; it may be spelled with escapes.
fn is_version(quoted: &str) -> bool {
    quoted == r#""version""#
        || quoted.contains('\\')
            && parse(quoted.as_bytes(), Surrogates::Replace).is_ok_and(|name| name == "version")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same from the row's beginning, with a count of what is open.
    fn forwards(row: &str) -> Option<&str> {
        let bytes = row.as_bytes();
        let (mut at, mut depth, mut separator, mut found) = (0, 0, 0, None);
        while at < bytes.len() {
            match bytes[at] {
                b'"' => {
                    let start = at;
                    at += 1;
                    while bytes[at] != b'"' {
                        at += if bytes[at] == b'\\' { 2 } else { 1 };
                    }
                    let names = row[at + 1..].trim_start().starts_with(':');
                    if depth == 1 && names && is_version(&row[start..=at]) {
                        found = Some(separator);
                    }
                }
                b'{' | b'[' => {
                    depth += 1;
                    separator = if depth == 1 { at } else { separator };
                }
                b'}' | b']' => depth -= 1,
                b',' if depth == 1 => separator = at,
                _ => {}
            }
            at += 1;
        }
        row.get(found?..)
    }

    /// A JSON value, of texts that are hard to tell from the rest of a row.
    fn value(rng: &mut fastrand::Rng, depth: usize) -> String {
        let blank = |rng: &mut fastrand::Rng| [" ", ""][rng.usize(..2)];
        let kinds = if depth == 0 { 2 } else { 4 };
        match rng.usize(..kinds) {
            0 => "17".to_owned(),
            1 => text(rng),
            2 => {
                let items: Vec<_> = (0..rng.usize(..4)).map(|_| value(rng, depth - 1)).collect();
                format!("[{}{}]", items.join(","), blank(rng))
            }
            _ => object(rng, depth),
        }
    }

    fn object(rng: &mut fastrand::Rng, depth: usize) -> String {
        let members: Vec<_> = (0..rng.usize(..5))
            .map(|_| {
                let blank = [" ", ""][rng.usize(..2)];
                format!("{}{blank}:{}", text(rng), value(rng, depth - 1))
            })
            .collect();
        format!("{{{}}}", members.join(", "))
    }

    fn text(rng: &mut fastrand::Rng) -> String {
        let parts = [
            "version",
            "\\u0076ersion",
            "\\\"",
            "\\\\",
            ":",
            ",",
            "{",
            "}",
            "[",
            "]",
            "é",
        ];
        let count = [1, 1, 1, 0, 2, 5][rng.usize(..6)];
        let text: String = (0..count)
            .map(|_| parts[rng.usize(..parts.len())])
            .collect();
        format!("\"{text}\"")
    }

    #[test]
    fn both_directions_find_the_same() {
        let mut rng = fastrand::Rng::with_seed(7);
        let mut found = 0;
        for _ in 0..20_000 {
            let row = object(&mut rng, 3);
            serde_json::from_str::<serde_json::Value>(&row)
                .unwrap_or_else(|error| panic!("{row}: {error}"));
            assert_eq!(version_tail(&row), forwards(&row), "{row}");
            found += usize::from(version_tail(&row).is_some());
        }
        assert!(found > 2_000, "{found}");
    }

    #[test]
    fn the_last_top_level_version_counts_however_it_is_spelled() {
        for (row, tail) in [
            (r#"{"version":1}"#, Some(r#"{"version":1}"#)),
            (r#" {"a":1 , "version":1} "#, Some(r#", "version":1} "#)),
            (r#"{"version":1,"version":2}"#, Some(r#","version":2}"#)),
            (
                r#"{"version":1,"\u0076ersion":2}"#,
                Some(r#","\u0076ersion":2}"#),
            ),
            (
                r#"{"version":1,"a":{"b":1,"version":2}}"#,
                Some(r#"{"version":1,"a":{"b":1,"version":2}}"#),
            ),
            (r#"{"a":"version","b":1}"#, None),
            (r#"{"a":",\"version\":1}"}"#, None),
            (r#"{"a":"\\","version":"1"}"#, Some(r#","version":"1"}"#)),
            (r#"["a","version"]"#, None),
            (r#"{"a":["x","version"]}"#, None),
            ("{}", None),
            ("", None),
            ("\"version", None),
        ] {
            assert_eq!(version_tail(row), tail, "{row}");
        }
    }
}
