//! JSON text in the two spellings.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::number::{self, Layout};
use crate::execution::Unknown;

/// Which of the two writers is imitated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// Rows and events: no blanks, raw UTF-8, `1e-7`.
    Compact,
    /// Envelopes, spawns and trace steps: `, ` and `: `, ASCII with `\uXXXX`, `1e-07`.
    Spaced,
}

/// Bytes that most texts fit into but for rows, so that they are not moved while they grow.
const LEN_USUAL: usize = 512;

/// The text of a value. Recurses as deeply as the value is nested: check [`super::depth`] first.
pub fn print(value: &Value, spelling: Spelling) -> String {
    let mut printer = Printer::new(spelling);
    printer.value(value);
    printer.finish()
}

pub(super) struct Printer {
    out: String,
    spelling: Spelling,
}

impl Printer {
    pub(super) fn new(spelling: Spelling) -> Self {
        Self::with_room(spelling, LEN_USUAL)
    }

    /// For a text of about so many bytes.
    pub(super) fn with_room(spelling: Spelling, len: usize) -> Self {
        Self {
            out: String::with_capacity(len),
            spelling,
        }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    /// How many bytes are written.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    pub(super) fn object(&mut self) -> ObjectPrinter<'_> {
        self.object_with(&[])
    }

    /// An object whose unknown members come back where they stood.
    pub(super) fn object_keeping<'p>(&'p mut self, unknown: &'p Unknown) -> ObjectPrinter<'p> {
        self.object_with(unknown.members())
    }

    fn object_with<'p>(
        &'p mut self,
        unknown: &'p [crate::execution::UnknownMember],
    ) -> ObjectPrinter<'p> {
        self.out.push('{');
        ObjectPrinter {
            printer: self,
            unknown,
            known: 0,
            empty: true,
        }
    }

    /// An array of values that are not JSON values yet.
    pub(super) fn array<T>(&mut self, items: &[T], mut print: impl FnMut(&mut Self, &T)) {
        self.out.push('[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.comma();
            }
            print(self, item);
        }
        self.out.push(']');
    }

    pub(super) fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(true) => self.out.push_str("true"),
            Value::Bool(false) => self.out.push_str("false"),
            Value::Number(number) => {
                let layout = match self.spelling {
                    Spelling::Compact => Layout::Compact,
                    Spelling::Spaced => Layout::Python,
                };
                self.out.push_str(&number::spell(number.as_str(), layout));
            }
            Value::String(text) => self.text(text),
            Value::Array(items) => self.array(items, Self::value),
            Value::Object(members) => self.map(members),
        }
    }

    pub(super) fn map(&mut self, members: &Map<String, Value>) {
        let mut object = self.object();
        for (name, value) in members {
            object.value(name, value);
        }
        object.end();
    }

    pub(super) fn text(&mut self, text: &str) {
        self.out.reserve(text.len() + 2);
        self.out.push('"');
        let mut rest = text;
        // Most texts have nothing to escape, and the ends of what has not are ends of characters.
        while let Some(at) = self.first_to_escape(rest) {
            let (raw, escaped) = rest.split_at(at);
            self.out.push_str(raw);
            let mut characters = escaped.chars();
            characters
                .next()
                .into_iter()
                .for_each(|character| self.character(character));
            rest = characters.as_str();
        }
        self.out.push_str(rest);
        self.out.push('"');
    }

    #[expect(
        clippy::needless_bitwise_bool,
        reason = "eight bytes at a time are looked at without a branch"
    )]
    fn first_to_escape(&self, text: &str) -> Option<usize> {
        match self.spelling {
            Spelling::Compact => first(text, |byte| {
                (byte < b' ') | (byte == b'"') | (byte == b'\\')
            }),
            Spelling::Spaced => first(text, |byte| {
                !(b' '..=b'~').contains(&byte) | (byte == b'"') | (byte == b'\\')
            }),
        }
    }

    fn character(&mut self, character: char) {
        let short = match character {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            _ => {
                let raw = match self.spelling {
                    Spelling::Compact => character >= ' ',
                    Spelling::Spaced => (' '..='~').contains(&character),
                };
                if raw {
                    self.out.push(character);
                    return;
                }
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(self.out, "\\u{unit:04x}").expect("writing to a string does not fail");
                }
                return;
            }
        };
        self.out.push_str(short);
    }

    fn comma(&mut self) {
        self.out.push_str(match self.spelling {
            Spelling::Compact => ",",
            Spelling::Spaced => ", ",
        });
    }
}

/// The first byte of this kind. Eight at a time are looked at without a branch, as there is none in most texts.
fn first(text: &str, is_kind: impl Fn(u8) -> bool) -> Option<usize> {
    let (eights, _) = text.as_bytes().as_chunks::<8>();
    let clear = eights
        .iter()
        .take_while(|eight| {
            !eight
                .iter()
                .fold(false, |found, byte| found | is_kind(*byte))
        })
        .count()
        * 8;
    let rest = text.as_bytes().get(clear..)?;
    let at = rest.iter().position(|byte| is_kind(*byte))?;
    Some(clear + at)
}

pub(super) struct ObjectPrinter<'p> {
    printer: &'p mut Printer,
    unknown: &'p [crate::execution::UnknownMember],
    known: usize,
    empty: bool,
}

impl ObjectPrinter<'_> {
    /// Writes the name of the next member and hands out the printer for its value.
    pub(super) fn member(&mut self, name: &str) -> &mut Printer {
        self.keep_unknown(self.known);
        self.known += 1;
        self.name(name);
        self.printer
    }

    pub(super) fn value(&mut self, name: &str, value: &Value) {
        self.member(name).value(value);
    }

    pub(super) fn text(&mut self, name: &str, text: &str) {
        self.member(name).text(text);
    }

    pub(super) fn optional_text(&mut self, name: &str, text: Option<&str>) {
        let printer = self.member(name);
        match text {
            Some(text) => printer.text(text),
            None => printer.out.push_str("null"),
        }
    }

    pub(super) fn map(&mut self, name: &str, members: &Map<String, Value>) {
        self.member(name).map(members);
    }

    pub(super) fn integer(&mut self, name: &str, number: i64) {
        let printer = self.member(name);
        write!(printer.out, "{number}").expect("writing to a string does not fail");
    }

    pub(super) fn boolean(&mut self, name: &str, value: bool) {
        self.member(name)
            .out
            .push_str(if value { "true" } else { "false" });
    }

    pub(super) fn end(mut self) {
        self.keep_unknown(usize::MAX);
        self.printer.out.push('}');
    }

    fn keep_unknown(&mut self, up_to: usize) {
        while let Some((member, rest)) = self
            .unknown
            .split_first()
            .filter(|(first, _)| first.known_before <= up_to)
        {
            self.unknown = rest;
            self.name(&member.name);
            self.printer.value(&member.value);
        }
    }

    fn name(&mut self, name: &str) {
        if !self.empty {
            self.printer.comma();
        }
        self.empty = false;
        self.printer.text(name);
        self.printer.out.push_str(match self.printer.spelling {
            Spelling::Compact => ":",
            Spelling::Spaced => ": ",
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_spellings_of_one_value() {
        let value = json!({"a": [1, 2.0, null, true], "\u{e9}\u{7f}\u{1f600}\u{2028}/<": {"c": "\u{0}\u{8}\u{c}\u{1b}\n\r\t\"\\"}});
        assert_eq!(
            print(&value, Spelling::Compact),
            "{\"a\":[1,2.0,null,true],\"\u{e9}\u{7f}\u{1f600}\u{2028}/<\":{\"c\":\"\\u0000\\b\\f\\u001b\\n\\r\\t\\\"\\\\\"}}"
        );
        assert_eq!(
            print(&value, Spelling::Spaced),
            r#"{"a": [1, 2.0, null, true], "\u00e9\u007f\ud83d\ude00\u2028/<": {"c": "\u0000\b\f\u001b\n\r\t\"\\"}}"#
        );
        assert_eq!(print(&json!([{}, []]), Spelling::Spaced), "[{}, []]");
    }
}
