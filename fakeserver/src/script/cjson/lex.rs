//! JSON as tokens, as lua-cjson reads it.

use super::InvalidNumbers;

/// Bytes of a string that are looked at one by one.
const SHORT: usize = 16;

/// One token.
#[derive(Debug)]
pub(super) enum Token<'a> {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    String(Text<'a>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static str),
}

/// A string without its quotes, its escapes resolved.
#[derive(Debug)]
pub(super) enum Text<'a> {
    /// As it stands in a document that is valid UTF-8.
    Str(&'a str),
    Bytes(&'a [u8]),
    /// It had escapes.
    Resolved(Vec<u8>),
}

impl Token<'_> {
    /// The name that error texts use.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::String(_) => "T_STRING",
            Token::Number(_) => "T_NUMBER",
            Token::Boolean(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::End => "T_END",
            Token::Error(text) => text,
        }
    }
}

/// Reads a document token by token.
pub(super) struct Lexer<'a> {
    text: &'a [u8],
    /// The same, if it is valid UTF-8.
    utf8: Option<&'a str>,
    invalid_numbers: InvalidNumbers,
    /// Where the next token is looked for.
    pub(super) at: usize,
    /// Where the last token began, or its error stands.
    pub(super) token_at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a [u8], invalid_numbers: InvalidNumbers) -> Lexer<'a> {
        Lexer {
            text,
            utf8: std::str::from_utf8(text).ok(),
            invalid_numbers,
            at: 0,
            token_at: 0,
        }
    }

    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    /// Takes the next token if it is this single byte.
    pub(super) fn takes(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let is_next = self.peek() == byte;
        self.at += usize::from(is_next);
        is_next
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        self.skip_blanks();
        self.token_at = self.at;
        let single = match self.peek() {
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b',' => Token::Comma,
            b':' => Token::Colon,
            0 => return Token::End,
            b'"' => return self.string(),
            b'-' | b'0'..=b'9' => {
                if self.invalid_numbers == InvalidNumbers::Refuse && self.is_invalid_number() {
                    return Token::Error("invalid number");
                }
                return self.number();
            }
            _ => return self.word(),
        };
        self.at += 1;
        single
    }

    fn word(&mut self) -> Token<'a> {
        let words = [
            (&b"true"[..], Token::Boolean(true)),
            (b"false", Token::Boolean(false)),
            (b"null", Token::Null),
        ];
        for (word, token) in words {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return token;
            }
        }
        let may_be_number = matches!(self.peek(), b'+' | b'i' | b'I' | b'n' | b'N');
        if may_be_number
            && self.invalid_numbers != InvalidNumbers::Refuse
            && self.is_invalid_number()
        {
            return self.number();
        }
        Token::Error("invalid token")
    }

    /// Whether a number is one that C reads and JSON does not have: a plus sign, hexadecimal, leading zeros, infinity, NaN.
    fn is_invalid_number(&self) -> bool {
        let text = self.rest();
        if text.first() == Some(&b'+') {
            return true;
        }
        let text = text.strip_prefix(b"-").unwrap_or(text);
        match text {
            [b'0', next, ..] => next | 0x20 == b'x' || next.is_ascii_digit(),
            [..=b'9', ..] | [] => false,
            text => {
                let word = text.get(..3).unwrap_or_default();
                word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"nan")
            }
        }
    }

    fn number(&mut self) -> Token<'a> {
        match c_number(self.rest()) {
            Some((value, len)) => {
                self.at += len;
                Token::Number(value)
            }
            None => Token::Error("invalid number"),
        }
    }

    fn string(&mut self) -> Token<'a> {
        self.at += 1;
        let from = self.at;
        self.skip_plain();
        if self.peek() == b'"' {
            let range = from..self.at;
            self.at += 1;
            // Quotes are where characters end, so there is always such a part.
            let part = self.utf8.and_then(|text| text.get(range.clone()));
            return Token::String(match part {
                Some(text) => Text::Str(text),
                None => Text::Bytes(self.text.get(range).unwrap_or_default()),
            });
        }
        let mut resolved = self.text.get(from..self.at).unwrap_or_default().to_vec();
        loop {
            match self.peek() {
                b'"' => break,
                b'\\' => {
                    if let Err(text) = self.escape(&mut resolved) {
                        self.token_at = self.at;
                        return Token::Error(text);
                    }
                }
                _ => {
                    self.token_at = self.at;
                    return Token::Error("unexpected end of string");
                }
            }
            let from = self.at;
            self.skip_plain();
            resolved.extend_from_slice(self.text.get(from..self.at).unwrap_or_default());
        }
        self.at += 1;
        Token::String(Text::Resolved(resolved))
    }

    /// Goes to the next byte of a string that means something.
    fn skip_plain(&mut self) {
        let rest = self.rest();
        let is_plain = |byte: &u8| !matches!(byte, b'"' | b'\\' | 0);
        // Most strings are too short to be worth the start of a wide search.
        let short = rest.iter().take(SHORT).take_while(|byte| is_plain(byte));
        let mut len = short.count();
        if len == SHORT {
            let rest = rest.get(SHORT..).unwrap_or_default();
            len += memchr::memchr3(b'"', b'\\', 0, rest).unwrap_or(rest.len());
        }
        self.at += len;
    }

    fn escape(&mut self, resolved: &mut Vec<u8>) -> Result<(), &'static str> {
        let byte = match self.text.get(self.at + 1) {
            Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
            Some(b'b') => 8,
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'f') => 12,
            Some(b'r') => b'\r',
            Some(b'u') => {
                let (character, len) =
                    unicode_escape(self.rest()).ok_or("invalid unicode escape code")?;
                let mut utf8 = [0; 4];
                resolved.extend_from_slice(character.encode_utf8(&mut utf8).as_bytes());
                self.at += len;
                return Ok(());
            }
            _ => return Err("invalid escape code"),
        };
        resolved.push(byte);
        self.at += 2;
        Ok(())
    }
}

/// The character of `\uXXXX`, or of a surrogate pair of two, and its length.
fn unicode_escape(text: &[u8]) -> Option<(char, usize)> {
    let unit = hex4(text)?;
    if unit & 0xF800 != 0xD800 {
        return Some((char::from_u32(unit)?, 6));
    }
    if unit & 0x400 != 0 {
        return None;
    }
    let second = text.get(6..)?;
    if !second.starts_with(b"\\u") {
        return None;
    }
    let low = hex4(second)?;
    if low & 0xFC00 != 0xDC00 {
        return None;
    }
    let code = ((unit & 0x3FF) << 10 | low & 0x3FF) + 0x1_0000;
    Some((char::from_u32(code)?, 12))
}

fn hex4(escape: &[u8]) -> Option<u32> {
    let digits = escape.get(2..6)?;
    digits.iter().try_fold(0, |value, digit| {
        Some(value << 4 | char::from(*digit).to_digit(16)?)
    })
}

/// Reads a number as C's `strtod`; its value and length.
fn c_number(text: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let negative = text.first() == Some(&b'-');
    let rest = text.get(sign..)?;
    let (value, len) = if rest.len() > 2 && rest[0] == b'0' && rest[1] | 0x20 == b'x' {
        hexadecimal(rest).unwrap_or((0.0, 1))
    } else if rest.first().is_some_and(u8::is_ascii_digit) || rest.first() == Some(&b'.') {
        decimal(rest)?
    } else {
        named(rest)?
    };
    Some((if negative { -value } else { value }, sign + len))
}

fn named(text: &[u8]) -> Option<(f64, usize)> {
    let is = |word: &[u8]| {
        text.get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    if is(b"infinity") {
        Some((f64::INFINITY, 8))
    } else if is(b"inf") {
        Some((f64::INFINITY, 3))
    } else if is(b"nan") {
        Some((f64::NAN, 3))
    } else {
        None
    }
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn decimal(text: &[u8]) -> Option<(f64, usize)> {
    let mut len = digits(text);
    let whole = len;
    if text.get(len) == Some(&b'.') {
        len += 1 + digits(text.get(len + 1..).unwrap_or_default());
    }
    if whole == 0 && len <= 1 {
        return None;
    }
    // Most numbers are short integers.
    if len == whole && len <= 15 {
        let value = text
            .get(..len)?
            .iter()
            .fold(0, |value: u64, digit| value * 10 + u64::from(digit - b'0'));
        if !matches!(text.get(len), Some(b'e' | b'E')) {
            return Some((value as f64, len));
        }
    }
    if matches!(text.get(len), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(len + 1), Some(b'+' | b'-')));
        let exponent = digits(text.get(len + 1 + sign..).unwrap_or_default());
        if exponent > 0 {
            len += 1 + sign + exponent;
        }
    }
    let number = std::str::from_utf8(text.get(..len)?).ok()?;
    Some((number.parse().ok()?, len))
}

/// `0x1.8p3`: digits, a fraction and a binary exponent. Digits beyond a double's precision are cut.
fn hexadecimal(text: &[u8]) -> Option<(f64, usize)> {
    let (mut value, mut scale, mut seen, mut at) = (0.0_f64, 0_i32, false, 2);
    let mut fraction = false;
    while let Some(byte) = text.get(at) {
        if *byte == b'.' && !fraction {
            fraction = true;
        } else if let Some(digit) = char::from(*byte).to_digit(16) {
            value = value * 16.0 + f64::from(digit);
            scale -= if fraction { 4 } else { 0 };
            seen = true;
        } else {
            break;
        }
        at += 1;
    }
    if !seen {
        return None;
    }
    if matches!(text.get(at), Some(b'p' | b'P')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let count = digits(text.get(at + 1 + sign..).unwrap_or_default());
        if count > 0 {
            let digits = text.get(at + 1 + sign..at + 1 + sign + count)?;
            let exponent = digits.iter().fold(0_i32, |value, digit| {
                value
                    .saturating_mul(10)
                    .saturating_add(i32::from(digit - b'0'))
            });
            scale = scale.saturating_add(if text[at + 1] == b'-' {
                -exponent
            } else {
                exponent
            });
            at += 1 + sign + count;
        }
    }
    Some((value * 2.0_f64.powi(scale), at))
}
