//! JSON to Lua values.

use mlua::{IntoLua, Lua, LuaString, Table, Value};

use super::{InvalidNumbers, Settings};
use crate::script::raise::library_error;

/// Slots of Lua's stack, of which 7.0.15 needs some for each level, whatever the setting.
const SLOTS_MAX: usize = 8_000;
/// Tables that may be held at once: Rust has room for some thousand values of Lua.
const HELD_MAX: usize = 1000;

/// One token; strings are left in the decoder's buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    String,
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static str),
}

impl Token {
    /// The name that error texts use.
    fn name(self) -> &'static str {
        match self {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::String => "T_STRING",
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

struct Decoder<'a> {
    lua: &'a Lua,
    settings: Settings,
    text: &'a [u8],
    at: usize,
    /// Where the last token began, or its error stands.
    token_at: usize,
    /// The last string, its escapes resolved.
    string: Vec<u8>,
    /// A token that was read ahead: where the next value begins.
    token: Token,
}

/// A table that is being filled, and where the next value goes.
struct Open {
    table: Option<Table>,
    place: Place,
}

enum Place {
    Key(Vec<u8>),
    Index(usize),
}

impl Place {
    fn slots(&self) -> usize {
        match self {
            Place::Key(_) => 2,
            Place::Index(_) => 1,
        }
    }
}

impl Open {
    fn put(&mut self, value: impl IntoLua) -> mlua::Result<()> {
        let Some(table) = &self.table else {
            return Ok(());
        };
        match &mut self.place {
            Place::Key(key) => match std::str::from_utf8(key) {
                Ok(key) => table.raw_set(key, value),
                Err(_) => table.raw_set(LuaString::wrap(key), value),
            },
            Place::Index(index) => {
                *index += 1;
                table.raw_seti(*index, value)
            }
        }
    }

    /// Text that Rust can have as such goes to Lua without becoming a handle first, which is much of the time here.
    fn put_string(&mut self, bytes: &[u8]) -> mlua::Result<()> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.put(text),
            Err(_) => self.put(LuaString::wrap(bytes)),
        }
    }
}

/// The tables that are open, the innermost last.
#[derive(Default)]
struct Nest {
    open: Vec<Open>,
    /// Slots that they would take in 7.0.15.
    slots: usize,
    /// Holds the outer ones where there are many, each at its depth.
    parked: Option<Table>,
}

impl Nest {
    fn push(&mut self, lua: &Lua, table: Table, place: Place) -> mlua::Result<()> {
        let depth = self.open.len();
        if depth >= HELD_MAX
            && let Some(outer) = self.open.last_mut()
        {
            let parked = match self.parked.take() {
                Some(parked) => parked,
                None => lua.create_table()?,
            };
            parked.raw_set(depth, outer.table.take())?;
            self.parked = Some(parked);
        }
        self.slots += place.slots();
        self.open.push(Open {
            table: Some(table),
            place,
        });
        Ok(())
    }

    fn pop(&mut self) -> mlua::Result<Option<Value>> {
        let finished = self.open.pop().and_then(|open| {
            self.slots -= open.place.slots();
            open.table
        });
        let depth = self.open.len();
        if let (Some(outer), Some(parked)) = (self.open.last_mut(), &self.parked)
            && outer.table.is_none()
        {
            outer.table = parked.raw_get(depth)?;
        }
        Ok(finished.map(Value::Table))
    }
}

/// Decodes a whole text. Errors: it is not JSON, or nested too deeply.
pub(super) fn decode(lua: &Lua, text: &[u8], settings: Settings) -> mlua::Result<Value> {
    if let [first, second, ..] = text
        && (*first == 0 || *second == 0)
    {
        return Err(library_error(
            lua,
            "JSON parser does not support UTF-16 or UTF-32",
        ));
    }
    let mut decoder = Decoder {
        lua,
        settings,
        text,
        at: 0,
        token_at: 0,
        string: Vec::new(),
        token: Token::End,
    };
    let value = decoder.document()?;
    match decoder.next() {
        Token::End => Ok(value),
        other => Err(decoder.unexpected("the end", other)),
    }
}

impl Decoder<'_> {
    fn unexpected(&self, expected: &str, found: Token) -> mlua::Error {
        let (found, at) = (found.name(), self.token_at + 1);
        let text = format!("Expected {expected} but found {found} at character {at}");
        library_error(self.lua, text)
    }

    /// One value with all that is in it. Nesting is the text's choice, so it is kept on a stack of our own.
    fn document(&mut self) -> mlua::Result<Value> {
        let mut nest = Nest::default();
        let mut token = self.next();
        loop {
            let finished = match token {
                Token::ObjectBegin | Token::ArrayBegin => self.begin(token, &mut nest)?,
                Token::String => match nest.open.last_mut() {
                    Some(innermost) => innermost.put_string(&self.string).map(|()| None)?,
                    None => Some(Value::String(self.lua.create_string(&self.string)?)),
                },
                Token::Number(n) => Some(Value::Number(n)),
                Token::Boolean(value) => Some(Value::Boolean(value)),
                Token::Null => Some(Value::NULL),
                other => return Err(self.unexpected("value", other)),
            };
            // A table that was just opened expects its first value; it comes back here through `begin`.
            if let (Token::ObjectBegin | Token::ArrayBegin, None) = (token, &finished) {
                token = self.token;
                continue;
            }
            match self.close(finished, &mut nest)? {
                Some(value) => return Ok(value),
                None => token = self.token,
            }
        }
    }

    /// Opens a table and reads on to its first value; the table itself if it is empty.
    fn begin(&mut self, token: Token, nest: &mut Nest) -> mlua::Result<Option<Value>> {
        let (depth, at) = (nest.open.len() + 1, self.at);
        // The text itself is one more, and the value that comes next.
        let slots = nest.slots + if token == Token::ObjectBegin { 4 } else { 3 };
        if depth > self.settings.decode_depth_max || slots > SLOTS_MAX {
            let text = format!("Found too many nested data structures ({depth}) at character {at}");
            return Err(library_error(self.lua, text));
        }
        let table = self.lua.create_table()?;
        self.token = self.next();
        match (token, self.token) {
            (Token::ObjectBegin, Token::ObjectEnd) | (Token::ArrayBegin, Token::ArrayEnd) => {
                return Ok(Some(Value::Table(table)));
            }
            (Token::ObjectBegin, _) => {
                nest.push(self.lua, table, Place::Key(Vec::new()))?;
                self.key(nest)?;
            }
            _ => nest.push(self.lua, table, Place::Index(0))?,
        }
        Ok(None)
    }

    /// Takes the last token as a key and reads on to its value.
    fn key(&mut self, nest: &mut Nest) -> mlua::Result<()> {
        if self.token != Token::String {
            return Err(self.unexpected("object key string", self.token));
        }
        if let Some(Place::Key(key)) = nest.open.last_mut().map(|open| &mut open.place) {
            std::mem::swap(key, &mut self.string);
        }
        match self.next() {
            Token::Colon => {
                self.token = self.next();
                Ok(())
            }
            other => Err(self.unexpected("colon", other)),
        }
    }

    /// Puts a value in its place and closes what ends behind it; the whole document if that was the last.
    fn close(&mut self, value: Option<Value>, nest: &mut Nest) -> mlua::Result<Option<Value>> {
        let mut value = value;
        loop {
            let Some(innermost) = nest.open.last_mut() else {
                return Ok(value);
            };
            if let Some(value) = value.take() {
                innermost.put(value)?;
            }
            let is_object = matches!(innermost.place, Place::Key(_));
            match (self.next(), is_object) {
                (Token::ObjectEnd, true) | (Token::ArrayEnd, false) => {
                    value = nest.pop()?;
                }
                (Token::Comma, true) => {
                    self.token = self.next();
                    self.key(nest)?;
                    return Ok(None);
                }
                (Token::Comma, false) => {
                    self.token = self.next();
                    return Ok(None);
                }
                (other, true) => return Err(self.unexpected("comma or object end", other)),
                (other, false) => return Err(self.unexpected("comma or array end", other)),
            }
        }
    }

    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next(&mut self) -> Token {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
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
                if self.settings.decode_invalid == InvalidNumbers::Refuse
                    && self.is_invalid_number()
                {
                    return Token::Error("invalid number");
                }
                return self.number();
            }
            _ => return self.word(),
        };
        self.at += 1;
        single
    }

    fn word(&mut self) -> Token {
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
            && self.settings.decode_invalid != InvalidNumbers::Refuse
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

    fn number(&mut self) -> Token {
        match c_number(self.rest()) {
            Some((value, len)) => {
                self.at += len;
                Token::Number(value)
            }
            None => Token::Error("invalid number"),
        }
    }

    fn string(&mut self) -> Token {
        self.at += 1;
        self.string.clear();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let plain = memchr::memchr3(b'"', b'\\', 0, rest).unwrap_or(rest.len());
            self.string
                .extend_from_slice(rest.get(..plain).unwrap_or_default());
            self.at += plain;
            match self.peek() {
                b'"' => break,
                b'\\' => {
                    if let Err(text) = self.escape() {
                        self.token_at = self.at;
                        return Token::Error(text);
                    }
                }
                _ => {
                    self.token_at = self.at;
                    return Token::Error("unexpected end of string");
                }
            }
        }
        self.at += 1;
        Token::String
    }

    fn escape(&mut self) -> Result<(), &'static str> {
        let byte = match self.text.get(self.at + 1) {
            Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
            Some(b'b') => 8,
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'f') => 12,
            Some(b'r') => b'\r',
            Some(b'u') => {
                let rest = self.text.get(self.at..).unwrap_or_default();
                let (character, len) = unicode_escape(rest).ok_or("invalid unicode escape code")?;
                let mut utf8 = [0; 4];
                self.string
                    .extend_from_slice(character.encode_utf8(&mut utf8).as_bytes());
                self.at += len;
                return Ok(());
            }
            _ => return Err("invalid escape code"),
        };
        self.string.push(byte);
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
