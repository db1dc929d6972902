//! Whatever programs, keys and values contain stays text inside of the page.

use std::fmt::Write as _;

/// The text for use between tags and inside of quoted attributes. What cannot be seen, or turns the text around it, is spelled out.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' => escaped.push('\n'),
            _ if is_unseen(character) => escaped.extend(character.escape_default()),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// JSON for use inside of a script element: nothing in it can end the element or begin a comment.
pub(crate) fn embedded(json: &str) -> String {
    let mut embedded = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '\n' => embedded.push('\n'),
            // These stand only inside of strings, where an escape means the same. All are of the first plane.
            _ if "<>&".contains(character) || is_unseen(character) => {
                let _ = write!(embedded, "\\u{:04x}", u32::from(character));
            }
            _ => embedded.push(character),
        }
    }
    embedded
}

/// Control characters, line and paragraph separators, characters of no width, and those that change the direction of text.
fn is_unseen(character: char) -> bool {
    let unseen = matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    unseen || character.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_text() {
        assert_eq!(
            escaped("</script><b a='\"'>&"),
            "&lt;/script&gt;&lt;b a=&#39;&quot;&#39;&gt;&amp;"
        );
    }

    #[test]
    fn what_cannot_be_seen_is_spelled_out() {
        assert_eq!(
            escaped("\u{1b}[31m\0\u{202e}\u{fc}\n"),
            "\\u{1b}[31m\\u{0}\\u{202e}\u{fc}\n"
        );
    }

    #[test]
    fn embedded_json_means_the_same() {
        let json = serde_json::json!({ "a<b": "</script><!-- & \u{2028}" }).to_string();
        let embedded = embedded(&json);
        assert!(
            !embedded.contains(['<', '>', '&', '\u{2028}']),
            "{embedded}"
        );
        let again: serde_json::Value = serde_json::from_str(&embedded).unwrap();
        assert_eq!(again.to_string(), json);
    }
}
