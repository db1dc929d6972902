//! Lua values to JSON.

use mlua::{Lua, Table, Value};

use super::{InvalidNumbers, Settings};
use crate::script::arguments::{as_number, number_text, truncate, type_name};
use crate::script::raise::library_error;
use crate::value::number::format_general;

/// Appends JSON to a buffer.
pub(super) struct Encoder<'a> {
    lua: &'a Lua,
    settings: Settings,
    out: &'a mut Vec<u8>,
}

impl<'a> Encoder<'a> {
    pub(super) fn new(lua: &'a Lua, settings: Settings, out: &'a mut Vec<u8>) -> Encoder<'a> {
        Encoder { lua, settings, out }
    }

    pub(super) fn value(&mut self, value: &Value, depth: usize) -> mlua::Result<()> {
        match value {
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::Boolean(true) => self.out.extend_from_slice(b"true"),
            Value::Boolean(false) => self.out.extend_from_slice(b"false"),
            Value::Integer(n) => self.number(*n as f64)?,
            Value::Number(n) => self.number(*n)?,
            Value::String(text) => self.string(&text.as_bytes()),
            Value::Table(table) => self.table(table, depth + 1)?,
            value if value.is_null() => self.out.extend_from_slice(b"null"),
            other => return Err(self.refused(other, "type not supported")),
        }
        Ok(())
    }

    fn refused(&self, value: &Value, reason: &str) -> mlua::Error {
        library_error(
            self.lua,
            format!("Cannot serialise {}: {reason}", type_name(value)),
        )
    }

    fn number(&mut self, value: f64) -> mlua::Result<()> {
        if !value.is_finite() {
            match self.settings.encode_invalid {
                InvalidNumbers::Refuse => {
                    return Err(self.refused(&Value::Number(value), "must not be NaN or Inf"));
                }
                InvalidNumbers::Null => self.out.extend_from_slice(b"null"),
                InvalidNumbers::Accept => self.out.extend_from_slice(number_text(value).as_bytes()),
            }
            return Ok(());
        }
        let text = match self.settings.precision {
            14 => number_text(value),
            digits => format_general(value, digits),
        };
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn string(&mut self, text: &[u8]) {
        self.out.push(b'"');
        let mut plain = 0;
        for (at, byte) in text.iter().enumerate() {
            let escape: &[u8] = match byte {
                b'"' => b"\\\"",
                b'\\' => b"\\\\",
                b'/' => b"\\/",
                8 => b"\\b",
                b'\t' => b"\\t",
                b'\n' => b"\\n",
                12 => b"\\f",
                b'\r' => b"\\r",
                127 => b"\\u007f",
                0..=31 => &hex_escape(*byte),
                _ => continue,
            };
            self.out
                .extend_from_slice(text.get(plain..at).unwrap_or_default());
            self.out.extend_from_slice(escape);
            plain = at + 1;
        }
        self.out
            .extend_from_slice(text.get(plain..).unwrap_or_default());
        self.out.push(b'"');
    }

    fn table(&mut self, table: &Table, depth: usize) -> mlua::Result<()> {
        if depth > self.settings.encode_depth_max {
            return Err(library_error(
                self.lua,
                format!("Cannot serialise, excessive depth ({depth})"),
            ));
        }
        match self.array_len(table)? {
            Some(len) if len > 0 => self.array(table, len, depth),
            _ => self.object(table, depth),
        }
    }

    fn array(&mut self, table: &Table, len: usize, depth: usize) -> mlua::Result<()> {
        self.out.push(b'[');
        for at in 1..=len {
            if at > 1 {
                self.out.push(b',');
            }
            self.value(&table.raw_get(at)?, depth)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn object(&mut self, table: &Table, depth: usize) -> mlua::Result<()> {
        self.out.push(b'{');
        let mut first = true;
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            if !first {
                self.out.push(b',');
            }
            first = false;
            match &key {
                Value::String(text) => self.string(&text.as_bytes()),
                Value::Integer(_) | Value::Number(_) => {
                    self.out.push(b'"');
                    self.number(as_number(&key).unwrap_or_default())?;
                    self.out.push(b'"');
                }
                key => return Err(self.refused(key, "table key must be a number or string")),
            }
            self.out.push(b':');
            self.value(&value, depth)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    /// The length of a table whose keys are all positive integers; none for another table.
    fn array_len(&self, table: &Table) -> mlua::Result<Option<usize>> {
        // A table that begins with a string key is an object: one look tells for most.
        let (mut max, mut items) = (0_i64, 0_i64);
        for pair in table.pairs::<Value, Value>() {
            let (key, _) = pair?;
            match key {
                Value::Integer(n) if n >= 1 => max = max.max(n as i64),
                Value::Number(n) if n >= 1.0 && n.fract() == 0.0 => {
                    max = max.max(truncate(n));
                }
                _ => return Ok(None),
            }
            items += 1;
        }
        let settings = &self.settings;
        let sparse = settings.sparse_ratio > 0
            && max > items.saturating_mul(settings.sparse_ratio)
            && max > settings.sparse_safe;
        if sparse {
            if !settings.sparse_convert {
                return Err(self.refused(&Value::Table(table.clone()), "excessively sparse array"));
            }
            return Ok(None);
        }
        Ok(Some(max as usize))
    }
}

fn hex_escape(byte: u8) -> [u8; 6] {
    let digit = |nibble: u8| {
        if nibble < 10 {
            b'0' + nibble
        } else {
            b'a' + nibble - 10
        }
    };
    [b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]
}
