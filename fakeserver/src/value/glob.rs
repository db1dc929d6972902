//! Redis' glob patterns (util.c, `stringmatchlen`): `*`, `?`, `[set]` with ranges and `^`, `\` to escape. Not the shell's.

/// Whether `text` matches `pattern`.
///
/// Every star is tried at its latest place only, so the work is at most pattern length times text length.
pub fn matches(pattern: &[u8], text: &[u8], ignore_case: bool) -> bool {
    // Redis does not look at a single star where there is no text; its commands treat a lone star as no pattern at all.
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == b'*' {
            star = Some((p + 1, t));
            p += 1;
            continue;
        }
        if p < pattern.len()
            && let Some(next) = match_one(pattern, p, text[t], ignore_case)
        {
            p = next;
            t += 1;
            continue;
        }
        let Some((after, from)) = star else {
            return false;
        };
        star = Some((after, from + 1));
        p = after;
        t = from + 1;
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Matches one byte against the pattern element at `p`; the place behind the element.
fn match_one(pattern: &[u8], p: usize, byte: u8, ignore_case: bool) -> Option<usize> {
    let fold = |byte: u8| {
        if ignore_case {
            byte.to_ascii_lowercase()
        } else {
            byte
        }
    };
    match pattern[p] {
        b'?' => Some(p + 1),
        b'[' => {
            let (hit, next) = match_set(pattern, p + 1, byte, ignore_case);
            hit.then_some(next)
        }
        b'\\' if p + 1 < pattern.len() => (fold(pattern[p + 1]) == fold(byte)).then_some(p + 2),
        literal => (fold(literal) == fold(byte)).then_some(p + 1),
    }
}

/// Matches a byte against the set that starts behind a `[`; an unclosed set ends with the pattern.
fn match_set(pattern: &[u8], mut p: usize, byte: u8, ignore_case: bool) -> (bool, usize) {
    let fold = |byte: u8| {
        if ignore_case {
            byte.to_ascii_lowercase()
        } else {
            byte
        }
    };
    let negated = pattern.get(p) == Some(&b'^');
    p += usize::from(negated);
    let mut hit = false;
    loop {
        match pattern.get(p) {
            None => return (hit != negated, p),
            Some(b']') => return (hit != negated, p + 1),
            Some(b'\\') if p + 1 < pattern.len() => {
                hit |= fold(pattern[p + 1]) == fold(byte);
                p += 2;
            }
            Some(first) if pattern.get(p + 1) == Some(&b'-') && p + 2 < pattern.len() => {
                let (first, last) = (fold(*first), fold(pattern[p + 2]));
                hit |= (first.min(last)..=first.max(last)).contains(&fold(byte));
                p += 3;
            }
            Some(literal) => {
                hit |= fold(*literal) == fold(byte);
                p += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_redis_matches_them() {
        let cases = [
            ("*", "", false),
            ("*", "a", true),
            ("h?llo", "hallo", true),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hello", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hallo", true),
            ("h\\*llo", "h*llo", true),
            ("h\\*llo", "hallo", false),
            ("a*b*c", "axxbyybzzc", true),
            ("a*b*c", "axxbyybzz", false),
            ("[abc", "a", true),
            ("[a-", "-", true),
            ("\\", "\\", true),
            ("", "", true),
            ("", "a", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes(), false),
                expected,
                "{pattern} on {text}"
            );
        }
        assert!(matches(b"AbC*", b"aBcdef", true));
    }

    #[test]
    fn many_stars_do_not_explode() {
        let pattern = b"*a".repeat(200);
        let text = vec![b'b'; 20_000];
        assert!(!matches(&pattern, &text, false));
    }
}
