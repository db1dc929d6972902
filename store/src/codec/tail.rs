//! Where a row's version stands, found without building the row's values.

use super::{Surrogates, parse};

/// The text from the separator in front of the last top-level member `version` to the end of the row; none if there is no
/// such member. The row must be a JSON object.
///
/// ```
/// let row = r#"{"a":{"version":1},"version":2,"b":[]}"#;
/// assert_eq!(store::codec::version_tail(row), Some(r#","version":2,"b":[]}"#));
/// ```
pub fn version_tail(row: &str) -> Option<&str> {
    let bytes = row.as_bytes();
    let (mut at, mut depth, mut separator) = (0, 0_usize, 0);
    let (mut name_follows, mut found) = (false, None);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let end = end_of_text(bytes, at)?;
                if depth == 1 && name_follows && is_version(row.get(at..end)?) {
                    found = Some(separator);
                }
                name_follows = false;
                at = end;
                continue;
            }
            b'{' => {
                depth += 1;
                if depth == 1 {
                    (separator, name_follows) = (at, true);
                }
            }
            b'[' if depth == 0 => return None,
            b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b',' if depth == 1 => (separator, name_follows) = (at, true),
            _ => {}
        }
        at += 1;
    }
    row.get(found?..)
}

/// The place behind the text that begins here.
fn end_of_text(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
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
