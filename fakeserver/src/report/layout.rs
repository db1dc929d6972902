//! Text for a terminal: lines of a bounded width, in printable ASCII.

/// Columns that a line has at most, but for command lines, which must stay whole.
pub(crate) const WIDTH: usize = 108;

/// Characters of a command or a value at most.
pub(crate) const VALUE_LEN_MAX: usize = 160;

/// A named text, its further lines below its first.
pub(crate) fn field(out: &mut String, name: &str, text: &str) {
    for (at, part) in wrap(text, WIDTH - 13).iter().enumerate() {
        let name = if at == 0 { name } else { "" };
        line(out, &format!("  {name:<11}{part}"));
    }
}

/// A line without blanks at its end.
pub(crate) fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}

/// The text in printable ASCII on one line.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if character == ' ' || character.is_ascii_graphic() {
            plain.push(character);
        } else {
            plain.extend(character.escape_default());
        }
    }
    plain
}

/// The text, or its start and how much was left out. It has to be ASCII.
pub(crate) fn cut(text: &str) -> String {
    cut_to(text, VALUE_LEN_MAX)
}

/// [`cut`] to so many characters.
pub(crate) fn cut_to(text: &str, len_max: usize) -> String {
    if text.len() <= len_max {
        return text.to_owned();
    }
    let mut kept = len_max.saturating_sub(12);
    let more = loop {
        let more = format!("...(+{})", text.len() - kept);
        if kept + more.len() <= len_max || kept == 0 {
            break more;
        }
        kept -= 1;
    };
    format!("{}{more}", text.get(..kept).unwrap_or_default())
}

/// The text in lines of at most so many columns, broken at blanks where there are some. It has to be ASCII.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    hanging(text, width, "")
}

/// [`wrap`], with something in front of each line but the first.
pub(crate) fn hanging(text: &str, width: usize, front: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    loop {
        let front = if lines.is_empty() { "" } else { front };
        let room = width.saturating_sub(front.len()).max(1);
        let Some((head, tail)) = rest
            .split_at_checked(room)
            .filter(|(_, tail)| !tail.is_empty())
        else {
            lines.push(format!("{front}{rest}"));
            return lines;
        };
        let at_blank = if tail.starts_with(' ') {
            Some(head.len())
        } else {
            // A break that leaves most of the line empty helps nobody.
            head.rfind(' ').filter(|blank| *blank > room / 2)
        };
        let end = at_blank.unwrap_or(room);
        let (head, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
        lines.push(format!("{front}{head}"));
        rest = tail.strip_prefix(' ').unwrap_or(tail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_is_counted() {
        assert_eq!(cut_to("0123456789", 10), "0123456789");
        let long = "x".repeat(300);
        let short = cut_to(&long, 60);
        assert_eq!(short, format!("{}...(+252)", "x".repeat(48)));
    }

    #[test]
    fn long_lines_break_at_blanks_or_anywhere() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("onetwothree", 4), ["onet", "woth", "ree"]);
        assert_eq!(hanging("one two three", 8, "  "), ["one two", "  three"]);
        assert_eq!(wrap("", 8), [""]);
    }
}
