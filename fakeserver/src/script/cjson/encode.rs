//! Lua values to JSON.

use mlua::{Lua, Table, Value};

use super::{InvalidNumbers, Settings};
use crate::script::arguments::{as_number, number_text, type_name};
use crate::script::protect::behind;
use crate::script::raise::{Raised, library_error};
use crate::script::sandbox::{Shared, VALUE_COST};
use crate::script::walk::{Walk, park};
use crate::value::number::format_general;

/// Appends JSON to a buffer.
pub(super) struct Encoder<'a> {
    lua: &'a Lua,
    settings: Settings,
    budget: &'a Shared,
    out: &'a mut Vec<u8>,
    /// Pairs of all open tables that are held at once.
    held: usize,
    /// Where tables that are not held wait for the end of those in them.
    parked: Option<Table>,
}

impl<'a> Encoder<'a> {
    pub(super) fn new(
        lua: &'a Lua,
        settings: Settings,
        budget: &'a Shared,
        out: &'a mut Vec<u8>,
    ) -> Encoder<'a> {
        Encoder {
            lua,
            settings,
            budget,
            out,
            held: 0,
            parked: None,
        }
    }

    /// Appends a value. Tables in tables are walked with a stack of our own, since their nesting is the script's choice.
    pub(super) fn value(&mut self, value: &Value) -> mlua::Result<()> {
        let mut open: Vec<Open> = Vec::new();
        self.begin(value, &mut open)?;
        while let Some(innermost) = open.last_mut() {
            let Some((key, value)) = innermost.items.next()? else {
                self.out.push(if innermost.is_array { b']' } else { b'}' });
                self.held -= innermost.held;
                open.pop();
                let depth = open.len();
                if let Some(outer) = open.last_mut() {
                    self.fetch(outer, depth)?;
                }
                continue;
            };
            if !innermost.first {
                self.out.push(b',');
            }
            innermost.first = false;
            if !innermost.is_array {
                self.key(&key)?;
            }
            let depth = open.len();
            self.begin(&value, &mut open)?;
            if open.len() > depth
                && let Some(outer) = open.get_mut(depth - 1)
            {
                self.park(outer, depth)?;
            }
        }
        Ok(())
    }

    /// Lets go of a table that is walked through while one in it is encoded.
    fn park(&mut self, open: &mut Open, depth: usize) -> mlua::Result<()> {
        if matches!(open.items, Items::Pairs(_)) {
            return Ok(());
        }
        let parked = match self.parked.take() {
            Some(parked) => parked,
            None => self.lua.create_table()?,
        };
        match &mut open.items {
            Items::Pairs(_) => {}
            Items::ByIndex(table, ..) => park(&parked, 2 * depth, table)?,
            Items::Walk(walk) => walk.park(&parked, depth)?,
        }
        self.parked = Some(parked);
        Ok(())
    }

    /// Takes it up again.
    fn fetch(&self, open: &mut Open, depth: usize) -> mlua::Result<()> {
        let Some(parked) = &self.parked else {
            return Ok(());
        };
        match &mut open.items {
            Items::Pairs(_) => {}
            Items::ByIndex(table, ..) => *table = parked.raw_get(2 * depth)?,
            Items::Walk(walk) => walk.fetch(parked, depth)?,
        }
        Ok(())
    }

    /// Appends a value that is no table, or opens one.
    fn begin(&mut self, value: &Value, open: &mut Vec<Open>) -> mlua::Result<()> {
        self.budget.spend(VALUE_COST)?;
        match value {
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::Boolean(true) => self.out.extend_from_slice(b"true"),
            Value::Boolean(false) => self.out.extend_from_slice(b"false"),
            Value::Integer(n) => self.number(*n as f64)?,
            Value::Number(n) => self.number(*n)?,
            Value::String(text) => self.string(&text.as_bytes()),
            Value::Table(table) => {
                let depth = open.len() + 1;
                let slots = open.last().map_or(0, |outer| outer.slots);
                if depth > self.settings.encode_depth_max || slots > SLOTS_MAX {
                    let text = format!("Cannot serialise, excessive nesting ({depth})");
                    return Err(library_error(self.lua, text));
                }
                let mut opened = self.open(table)?;
                opened.slots += slots;
                open.push(opened);
            }
            value if value.is_null() => self.out.extend_from_slice(b"null"),
            other => return Err(self.refused(other, "type not supported")),
        }
        if self.budget.is_too_much(self.out.len()) {
            return Err(Raised::Text(b"not enough memory".to_vec()).into());
        }
        Ok(())
    }

    fn key(&mut self, key: &Value) -> mlua::Result<()> {
        match key {
            Value::String(text) => self.string(&text.as_bytes()),
            Value::Integer(_) | Value::Number(_) => {
                self.out.push(b'"');
                self.number(as_number(key).unwrap_or_default())?;
                self.out.push(b'"');
            }
            key => return Err(self.refused(key, "table key must be a number or string")),
        }
        self.out.push(b':');
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

    /// The pairs of a table, and whether they are an array: all keys are positive integers, and not too far apart.
    fn open(&mut self, table: &Table) -> mlua::Result<Open> {
        let mut items: Vec<(Value, Value)> = Vec::new();
        let (mut max, mut is_array, mut in_order, mut count) = (0_i32, true, true, 0_i64);
        let held = self.held;
        table.for_each(|key: Value, value: Value| {
            let index = as_number(&key).filter(|n| *n >= 1.0 && n.fract() == 0.0);
            is_array &= index.is_some();
            let index = index.unwrap_or_default();
            if index > f64::from(max) {
                // An index beyond C's int becomes its least, which makes the table an object in the end.
                max = if index > f64::from(i32::MAX) {
                    i32::MIN
                } else {
                    index as i32
                };
            }
            count += 1;
            in_order &= index == count as f64;
            if held + items.len() < HELD_MAX {
                items.push((key, value));
            }
            Ok(())
        })?;
        if count == 0
            && let Some(hidden) = behind(self.lua, table)?
        {
            return self.open(&hidden);
        }
        let max = i64::from(max);
        let settings = &self.settings;
        let is_sparse = settings.sparse_ratio > 0
            && max > count.saturating_mul(settings.sparse_ratio)
            && max > settings.sparse_safe;
        if is_array && is_sparse {
            if !settings.sparse_convert {
                return Err(self.refused(&Value::Table(table.clone()), "excessively sparse array"));
            }
            is_array = false;
        }
        is_array &= max > 0;
        self.out.push(if is_array { b'[' } else { b'{' });
        let is_large = count > items.len() as i64;
        let held = if is_large { 0 } else { items.len() };
        self.held += held;
        let items = if is_array && (is_large || !in_order) {
            Items::ByIndex(Value::Table(table.clone()), 0, max)
        } else if is_large {
            Items::Walk(Walk::new(self.lua, table.clone())?)
        } else {
            Items::Pairs(items.into_iter())
        };
        Ok(Open {
            is_array,
            items,
            held,
            slots: if is_array { 1 } else { 2 },
            first: true,
        })
    }
}

/// Slots of Lua's stack with which 7.0.15 still encodes a table, whatever the setting. Each array around it takes one, each
/// object two.
const SLOTS_MAX: usize = 7_996;

/// A table that is being encoded.
struct Open {
    is_array: bool,
    items: Items,
    /// Pairs that it held when it was opened.
    held: usize,
    /// Slots of Lua's stack that 7.0.15 has in use for it and the tables around it.
    slots: usize,
    first: bool,
}

enum Items {
    Pairs(std::vec::IntoIter<(Value, Value)>),
    /// An array with holes, or a large one: the table, the last index looked at and the highest.
    ByIndex(Value, i64, i64),
    /// A large object.
    Walk(Walk),
}

impl Items {
    fn next(&mut self) -> mlua::Result<Option<(Value, Value)>> {
        match self {
            Items::Pairs(pairs) => Ok(pairs.next()),
            Items::ByIndex(table, at, max) => {
                *at += 1;
                match table {
                    Value::Table(table) if at <= max => Ok(Some((Value::Nil, table.raw_get(*at)?))),
                    _ => Ok(None),
                }
            }
            Items::Walk(walk) => walk.step(),
        }
    }
}

/// Pairs that may be held at once: Rust has room for some thousand values of Lua.
const HELD_MAX: usize = 1000;

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
