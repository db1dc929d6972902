//! A JSON reader that takes what the Python store's readers take and serde's does not: NaN, the infinities, halves of
//! surrogate pairs, deep nesting.

use std::fmt;

use serde_json::{Map, Number, Value};

/// How deeply a document may be nested to be read. The Python store writes up to 256 levels; the limit bounds recursion.
pub const DEPTH_MAX: usize = 512;

/// What to do with a `\uXXXX` that is half of a surrogate pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surrogates {
    /// An error, as rows and events are read.
    Refuse,
    /// U+FFFD in its place: text in this language can not hold it.
    Replace,
}

/// Why a text is not JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    at: usize,
    reason: &'static str,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.reason, self.at)
    }
}

impl std::error::Error for ParseError {}

/// Reads one JSON document. NaN and the infinities become null; of members with the same name the last one counts.
///
/// # Errors
/// The first thing that is wrong, and where.
pub fn parse(json: &[u8], surrogates: Surrogates) -> Result<Value, ParseError> {
    let text = std::str::from_utf8(json).map_err(|error| ParseError {
        at: error.valid_up_to(),
        reason: "not UTF-8",
    })?;
    let mut parser = Parser {
        text,
        at: 0,
        surrogates,
    };
    parser.blanks();
    let value = parser.value(0)?;
    parser.blanks();
    if parser.peek().is_some() {
        Err(parser.error("more after the end"))
    } else {
        Ok(value)
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    surrogates: Surrogates,
}

impl<'t> Parser<'t> {
    fn value(&mut self, depth: usize) -> Result<Value, ParseError> {
        match self.peek() {
            Some(b'{') => self.object(self.deeper(depth)?),
            Some(b'[') => self.array(self.deeper(depth)?),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') if !self.rest().starts_with("-Infinity") => self.number(),
            Some(_) => self.word(),
            None => Err(self.error("unexpected end")),
        }
    }

    fn deeper(&self, depth: usize) -> Result<usize, ParseError> {
        if depth == DEPTH_MAX {
            Err(self.error("nested too deeply"))
        } else {
            Ok(depth + 1)
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, ParseError> {
        let mut members = Map::new();
        self.at += 1;
        self.blanks();
        if self.take(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.error("expected a name"));
            }
            let name = self.string()?;
            self.blanks();
            if !self.take(b':') {
                return Err(self.error("expected `:`"));
            }
            self.blanks();
            let value = self.value(depth)?;
            members.insert(name, value);
            self.blanks();
            if self.take(b'}') {
                return Ok(Value::Object(members));
            }
            if !self.take(b',') {
                return Err(self.error("expected `,` or `}`"));
            }
            self.blanks();
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, ParseError> {
        let mut items = Vec::new();
        self.at += 1;
        self.blanks();
        if self.take(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value(depth)?);
            self.blanks();
            if self.take(b']') {
                return Ok(Value::Array(items));
            }
            if !self.take(b',') {
                return Err(self.error("expected `,` or `]`"));
            }
            self.blanks();
        }
    }

    fn word(&mut self) -> Result<Value, ParseError> {
        let words = [
            ("null", Value::Null),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("NaN", Value::Null),
            ("Infinity", Value::Null),
            ("-Infinity", Value::Null),
        ];
        for (word, value) in words {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.error("expected a value"))
    }

    fn number(&mut self) -> Result<Value, ParseError> {
        let literal = self.rest();
        let end = literal
            .find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'))
            .unwrap_or(literal.len());
        let literal = literal.get(..end).unwrap_or_default();
        // serde's own rule for what a number may look like; it keeps the digits as they are.
        let number: Number = literal
            .parse()
            .map_err(|_| self.error("malformed number"))?;
        self.at += end;
        Ok(Value::Number(number))
    }

    fn string(&mut self) -> Result<String, ParseError> {
        let mut out = String::new();
        self.at += 1;
        loop {
            let rest = self.rest();
            let plain = rest
                .find(|c: char| c == '"' || c == '\\' || c < ' ')
                .ok_or(self.error("text without end"))?;
            out.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain;
            if self.take(b'"') {
                return Ok(out);
            }
            if !self.take(b'\\') {
                return Err(self.error("raw control character in text"));
            }
            out.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Result<char, ParseError> {
        let kind = self.peek().ok_or(self.error("unexpected end"))?;
        self.at += 1;
        Ok(match kind {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(),
            _ => return Err(self.error("unknown escape")),
        })
    }

    fn unicode(&mut self) -> Result<char, ParseError> {
        let first = self.hex()?;
        let before_second = self.at;
        let pair = if (0xd800..0xdc00).contains(&first) && self.take(b'\\') && self.take(b'u') {
            [first, self.hex()?]
        } else {
            [first, 0]
        };
        if let Some(Ok(character)) = char::decode_utf16(pair).next() {
            return Ok(character);
        }
        // What followed the first half is not its second half, so it is read again on its own.
        self.at = before_second;
        match self.surrogates {
            Surrogates::Refuse => Err(self.error("half of a surrogate pair")),
            Surrogates::Replace => Ok(char::REPLACEMENT_CHARACTER),
        }
    }

    fn hex(&mut self) -> Result<u16, ParseError> {
        let digits = self
            .rest()
            .get(..4)
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let unit = digits
            .and_then(|digits| u16::from_str_radix(digits, 16).ok())
            .ok_or(self.error("malformed `\\u`"))?;
        self.at += 4;
        Ok(unit)
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn error(&self, reason: &'static str) -> ParseError {
        ParseError {
            at: self.at,
            reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_what_serde_reads() {
        for text in [
            "null",
            " [1, -2.5e3, true ,false,\t{\"a\":\"b\"}]\n",
            "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\u{2028}\"",
            "{}",
            "[]",
            "123456789012345678901234567890",
            "1E+2",
            "{\"a\":1,\"b\":2,\"a\":3}",
            "0",
            "-0",
            "1e400",
        ] {
            let expected: Value = serde_json::from_str(text).unwrap();
            assert_eq!(
                parse(text.as_bytes(), Surrogates::Refuse).unwrap(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn refuses_what_serde_refuses() {
        for text in [
            "",
            " ",
            "nul",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "{,}",
            "{a:1}",
            "01",
            "1.",
            ".5",
            "+1",
            "-",
            "1e",
            "\"\n\"",
            "\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\\u12\u{e9}\"",
            "[1 2]",
            "1 1",
            "\"\\",
            "[",
            "{",
            "{\"a\":1",
            "--1",
            "1-1",
            "\u{feff}1",
            "tru\u{e9}",
        ] {
            assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
            assert!(
                parse(text.as_bytes(), Surrogates::Replace).is_err(),
                "{text}"
            );
        }
        assert!(parse(b"\"\xff\"", Surrogates::Replace).is_err());
    }

    #[test]
    fn takes_what_python_writes_beyond_json() {
        let read = |text: &str| parse(text.as_bytes(), Surrogates::Replace).unwrap();
        assert_eq!(
            read("[NaN, Infinity, -Infinity]"),
            json!([null, null, null])
        );
        assert_eq!(read(r#""\ud83d""#), json!("\u{fffd}"));
        assert_eq!(
            read(r#""\ude00\ud83d\ud83d\ude00\ud83d\n""#),
            json!("\u{fffd}\u{fffd}\u{1f600}\u{fffd}\n")
        );
        assert!(parse(br#""\ud83d""#, Surrogates::Refuse).is_err());
        assert!(parse(br#""\udc00""#, Surrogates::Refuse).is_err());
    }

    #[test]
    fn depth_is_bounded_on_both_sides_of_the_limit() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(parse(nested(DEPTH_MAX).as_bytes(), Surrogates::Refuse).is_ok());
        assert!(parse(nested(DEPTH_MAX + 1).as_bytes(), Surrogates::Refuse).is_err());
        assert!(parse("[{\"a\":".repeat(100_000).as_bytes(), Surrogates::Refuse).is_err());
    }
}
