//! [`Frame`]: a reply as it came over the wire, taken apart just far enough to compare and to print it.
//!
//! It knows nothing of the engine's own encoder, so that a fault there cannot hide here.

use std::fmt::Write as _;

/// One reply. Two frames are equal exactly when their bytes are: lengths in any other than the shortest form are refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Frame {
    /// A reply of one line, its type byte included: `+OK`, `:1`, `$-1`, `_`, `,1.5`, `-ERR ...`.
    Line(Vec<u8>),
    /// A reply that carries its length: bulk string `$`, verbatim string `=`, bulk error `!`.
    Blob(u8, Vec<u8>),
    /// A reply of several: array `*`, set `~`, push `>`, map `%` (keys and values alternate).
    Items(u8, Vec<Frame>),
}

/// Bytes that are not RESP; the text says what was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

/// How a message begins.
const MESSAGES: [&[u8]; 3] = [b"message", b"pmessage", b"smessage"];

/// Deeper replies than this do not occur; the limit guards the recursion.
const DEPTH_MAX: usize = 128;

impl Frame {
    /// The first reply in `bytes` and its length, or nothing if it is not complete yet.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Frame, usize)>, Malformed> {
        parse_at(bytes, 0, 0)
    }

    /// Whether this is an error reply.
    pub fn is_error(&self) -> bool {
        match self {
            Frame::Line(line) => line.first() == Some(&b'-'),
            Frame::Blob(kind, _) => *kind == b'!',
            Frame::Items(..) => false,
        }
    }

    /// The type byte.
    pub fn kind(&self) -> u8 {
        match self {
            Frame::Line(line) => line.first().copied().unwrap_or(b'?'),
            Frame::Blob(kind, _) | Frame::Items(kind, _) => *kind,
        }
    }

    /// What a push of several words, or in RESP2 an array that stands for one, begins with.
    fn head(&self) -> Option<&[u8]> {
        let Frame::Items(b'>' | b'*', items) = self else {
            return None;
        };
        match items.as_slice() {
            [Frame::Blob(_, head), _, _] | [Frame::Blob(_, head), _, _, _] => Some(head),
            _ => None,
        }
    }

    /// Whether this answers a subscription, or its end. In RESP2 it looks like any reply.
    pub fn confirms(&self) -> bool {
        self.head().is_some_and(|head| head.ends_with(b"subscribe"))
    }

    /// Whether this is a message that was not asked for. In RESP2 it looks like any reply.
    pub fn is_message(&self) -> bool {
        self.head().is_some_and(|head| MESSAGES.contains(&head)) || self.is_out_of_band()
    }

    /// Whether this is none of the items of the reply that it comes in the middle of.
    fn is_out_of_band(&self) -> bool {
        matches!(self, Frame::Items(b'>', _)) && !self.confirms()
    }

    /// The bytes of the reply.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Frame::Line(line) => out.extend_from_slice(line),
            Frame::Blob(kind, bytes) => {
                out.extend_from_slice(format!("{}{}\r\n", *kind as char, bytes.len()).as_bytes());
                out.extend_from_slice(bytes);
            }
            Frame::Items(kind, items) => {
                let count = count(*kind, items);
                out.extend_from_slice(format!("{}{count}\r\n", *kind as char).as_bytes());
                for item in items {
                    item.write(out);
                }
                return;
            }
        }
        out.extend_from_slice(b"\r\n");
    }

    /// The reply as a transcript shows it: a line per CRLF, bytes that do not print as `\xHH`.
    pub fn to_lines(&self) -> Vec<String> {
        match self {
            Frame::Line(line) => vec![printable(line)],
            Frame::Blob(kind, bytes) => {
                vec![
                    format!("{}{}", *kind as char, bytes.len()),
                    printable(bytes),
                ]
            }
            Frame::Items(kind, items) => {
                let head = format!("{}{}", *kind as char, count(*kind, items));
                std::iter::once(head)
                    .chain(items.iter().flat_map(Frame::to_lines))
                    .collect()
            }
        }
    }

    /// Reads a reply back from a transcript's lines. Errors: not a reply, or it ends too early.
    pub fn from_lines<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Result<Frame, Malformed> {
        let line = lines
            .next()
            .ok_or_else(|| Malformed("the reply ends too early".into()))?;
        let head = unprintable(line)?;
        match head.first() {
            Some(kind @ (b'$' | b'=' | b'!')) if head != b"$-1" => {
                let len = length(&head[1..])?;
                let body = lines.next().unwrap_or_default();
                let body = unprintable(body)?;
                if body.len() == len {
                    Ok(Frame::Blob(*kind, body))
                } else {
                    Err(Malformed(format!(
                        "{line} is followed by {} bytes",
                        body.len()
                    )))
                }
            }
            Some(kind @ (b'*' | b'~' | b'>' | b'%')) if head != b"*-1" => {
                let mut missing = length(&head[1..])? * per_entry(*kind);
                let mut items = Vec::new();
                while missing > 0 {
                    let item = Frame::from_lines(lines)?;
                    missing -= usize::from(!item.is_out_of_band());
                    items.push(item);
                }
                Ok(Frame::Items(*kind, items))
            }
            Some(b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' | b'$' | b'*') => {
                Ok(Frame::Line(head))
            }
            _ => Err(Malformed(format!("not a reply: {line:?}"))),
        }
    }
}

fn parse_at(bytes: &[u8], at: usize, depth: usize) -> Result<Option<(Frame, usize)>, Malformed> {
    let Some(len) = bytes[at..].windows(2).position(|pair| pair == b"\r\n") else {
        return Ok(None);
    };
    let (line, mut end) = (&bytes[at..at + len], at + len + 2);
    match line.first() {
        Some(kind @ (b'$' | b'=' | b'!')) if line != b"$-1" => {
            let len = length(&line[1..])?;
            match bytes.get(end..end + len + 2) {
                None => Ok(None),
                Some(body) if body.ends_with(b"\r\n") => Ok(Some((
                    Frame::Blob(*kind, body[..len].to_vec()),
                    end + len + 2,
                ))),
                Some(_) => Err(Malformed("a bulk string without CRLF behind it".into())),
            }
        }
        Some(kind @ (b'*' | b'~' | b'>' | b'%')) if line != b"*-1" => {
            if depth == DEPTH_MAX {
                return Err(Malformed("a reply nested too deep".into()));
            }
            let mut missing = length(&line[1..])? * per_entry(*kind);
            let mut items = Vec::new();
            while missing > 0 {
                let Some((item, next)) = parse_at(bytes, end, depth + 1)? else {
                    return Ok(None);
                };
                missing -= usize::from(!item.is_out_of_band());
                items.push(item);
                end = next;
            }
            Ok(Some((Frame::Items(*kind, items), end)))
        }
        Some(b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' | b'$' | b'*') => {
            Ok(Some((Frame::Line(line.to_vec()), end)))
        }
        _ => Err(Malformed(format!("not a reply: {:?}", printable(line)))),
    }
}

/// The number that stands in front of a reply of several: pushes in the middle of it do not count.
fn count(kind: u8, items: &[Frame]) -> usize {
    let own = items.iter().filter(|item| !item.is_out_of_band());
    own.count() / per_entry(kind)
}

fn per_entry(kind: u8) -> usize {
    if kind == b'%' { 2 } else { 1 }
}

fn length(digits: &[u8]) -> Result<usize, Malformed> {
    let text = String::from_utf8_lossy(digits);
    text.parse::<usize>()
        .ok()
        .filter(|len| len.to_string() == text)
        .ok_or_else(|| Malformed(format!("not a length: {text:?}")))
}

/// Bytes as a transcript shows them: ASCII as it is, all else and the backslash as `\xHH`.
pub fn printable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        if matches!(byte, b' '..=b'~') && byte != b'\\' {
            text.push(byte as char);
        } else {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

fn unprintable(line: &str) -> Result<Vec<u8>, Malformed> {
    let mut bytes = Vec::new();
    let mut rest = line.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let digits = rest.strip_prefix(b"x").and_then(|hex| hex.get(..2));
        let value = digits
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())
            .ok_or_else(|| Malformed(format!("a backslash without xHH: {line:?}")))?;
        bytes.push(value);
        rest = &rest[3..];
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_comes_back_from_its_bytes_and_from_its_lines() {
        for bytes in [
            &b"+OK\r\n"[..],
            b"-ERR no\\such\r\n",
            b"$-1\r\n",
            b"*-1\r\n",
            b"$0\r\n\r\n",
            b"$4\r\n\r\n\\\x00\r\n",
            b"*2\r\n:1\r\n*0\r\n",
            b"%1\r\n+k\r\n,0.10000000000000001\r\n",
            b"=7\r\ntxt:abc\r\n",
            b"*2\r\n:1\r\n>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n:2\r\n",
            b"*1\r\n>3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n",
            b"_\r\n",
            b"#t\r\n",
        ] {
            let (frame, len) = Frame::parse(bytes).unwrap().unwrap();
            assert_eq!(len, bytes.len());
            assert_eq!(frame.to_bytes(), bytes);
            let lines = frame.to_lines();
            let read = Frame::from_lines(&mut lines.iter().map(String::as_str)).unwrap();
            assert_eq!(read, frame);
            for cut in 0..bytes.len() {
                assert_eq!(Frame::parse(&bytes[..cut]), Ok(None), "cut at {cut}");
            }
        }
    }

    #[test]
    fn lengths_in_another_form_are_refused() {
        for bytes in [
            &b"$03\r\nabc\r\n"[..],
            b"*+1\r\n:1\r\n",
            b"$3\r\nabcde",
            b"?\r\n",
        ] {
            assert!(Frame::parse(bytes).is_err(), "{bytes:?}");
        }
    }
}
