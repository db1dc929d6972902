//! The library `cmsgpack`: `MessagePack`, as lua-cmsgpack 0.4.0 reads and writes it.

use std::sync::Arc;

use mlua::{IntoLua, Lua, LuaString, MultiValue, Table, Value};

use super::arguments::{Arguments, as_number};
use super::protect::behind;
use super::raise::{Raised, argument_error, library_error};
use super::sandbox::{Shared, VALUE_COST};

/// Nesting beyond which tables are written as nil.
const NESTING_MAX: usize = 16;
/// Nesting beyond which reading ends in an error: 7.0.15 is out of Lua stack there.
const READ_NESTING_MAX: usize = 3_999;
/// Most values that one call reads: what Lua's stack holds.
const RESULTS_MAX: usize = 7_990;

/// Most values that one call writes: half of Lua's stack.
const ARGUMENTS_MAX: usize = 4_000;

const TOO_DEEP: &str = "stack overflow (in function mp_decode_to_lua_array)";
const TOO_MANY: &str =
    "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)";

const CONSTANTS: [(&str, &str); 4] = [
    ("_NAME", "cmsgpack"),
    ("_VERSION", "lua-cmsgpack 0.4.0"),
    ("_DESCRIPTION", "MessagePack C implementation for Lua"),
    ("_COPYRIGHT", COPYRIGHT),
];
/// A field of the library that scripts can read, like any other.
const COPYRIGHT: &str = "Copyright (C) 2012, Salvatore Sanfilippo";

pub(super) fn library(lua: &Lua, budget: &Arc<Shared>) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    for (name, text) in CONSTANTS {
        library.raw_set(name, text)?;
    }
    let charged = Arc::clone(budget);
    let pack = lua.create_function(move |lua, values| pack(lua, values, &charged))?;
    library.raw_set("pack", pack)?;
    library.raw_set("unpack", lua.create_function(unpack)?)?;
    library.raw_set("unpack_one", lua.create_function(unpack_one)?)?;
    library.raw_set("unpack_limit", lua.create_function(unpack_limit)?)?;
    Ok(library)
}

/// `cmsgpack.pack(value ...)`: the values one after the other.
fn pack(lua: &Lua, values: MultiValue, budget: &Shared) -> mlua::Result<LuaString> {
    if values.is_empty() {
        return Err(argument_error(lua, 0, "MessagePack pack needs input."));
    }
    if values.len() > ARGUMENTS_MAX {
        let text = "Too many arguments for MessagePack pack.";
        return Err(argument_error(lua, 0, text));
    }
    let mut out = Vec::new();
    for value in values {
        write(&mut out, &value, 0, (lua, budget))?;
    }
    lua.create_string(out)
}

fn write(
    out: &mut Vec<u8>,
    value: &Value,
    level: usize,
    (lua, budget): (&Lua, &Shared),
) -> mlua::Result<()> {
    budget.spend(VALUE_COST)?;
    if budget.is_too_much(out.len()) {
        return Err(Raised::Text(b"not enough memory".to_vec()).into());
    }
    match value {
        Value::Boolean(value) => out.push(0xc2 + u8::from(*value)),
        Value::Integer(n) => write_integer(out, *n),
        Value::Number(n) => write_number(out, *n),
        Value::String(text) => write_string(out, &text.as_bytes()),
        Value::Table(table) if level < NESTING_MAX => {
            write_table(out, table, level, (lua, budget))?;
        }
        _ => out.push(0xc0),
    }
    Ok(())
}

fn write_integer(out: &mut Vec<u8>, n: i64) {
    match n {
        0..=0x7f => out.push(n as u8),
        0x80..=0xff => out.extend([0xcc, n as u8]),
        0x100..=0xffff => tagged(out, 0xcd, &(n as u16).to_be_bytes()),
        0x1_0000..=0xffff_ffff => tagged(out, 0xce, &(n as u32).to_be_bytes()),
        0x1_0000_0000.. => tagged(out, 0xcf, &n.to_be_bytes()),
        -32..0 => out.push(n as u8),
        -0x80..-32 => out.extend([0xd0, n as u8]),
        -0x8000..-0x80 => tagged(out, 0xd1, &(n as i16).to_be_bytes()),
        -0x8000_0000..-0x8000 => tagged(out, 0xd2, &(n as i32).to_be_bytes()),
        _ => tagged(out, 0xd3, &n.to_be_bytes()),
    }
}

fn write_number(out: &mut Vec<u8>, n: f64) {
    let whole = n as i64;
    if whole as f64 == n && whole != i64::MAX {
        write_integer(out, whole);
    } else if f64::from(n as f32) == n {
        tagged(out, 0xca, &(n as f32).to_be_bytes());
    } else {
        tagged(out, 0xcb, &n.to_be_bytes());
    }
}

fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    match text.len() {
        len @ 0..=31 => out.push(0xa0 | len as u8),
        len @ 32..=0xff => out.extend([0xd9, len as u8]),
        len @ 0x100..=0xffff => tagged(out, 0xda, &(len as u16).to_be_bytes()),
        len => tagged(out, 0xdb, &(len as u32).to_be_bytes()),
    }
    out.extend_from_slice(text);
}

fn tagged(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    out.extend_from_slice(bytes);
}

fn write_table(
    out: &mut Vec<u8>,
    table: &Table,
    level: usize,
    means: (&Lua, &Shared),
) -> mlua::Result<()> {
    // Twice, since Rust has room for some thousand values of Lua only.
    let (mut max, mut is_array, mut len) = (0.0_f64, true, 0);
    table.for_each(|key: Value, _: Value| {
        match as_number(&key) {
            Some(n) if n > 0.0 && n.fract() == 0.0 => max = max.max(n),
            _ => is_array = false,
        }
        len += 1;
        Ok(())
    })?;
    if len == 0
        && let Some(hidden) = behind(means.0, table)?
    {
        return write_table(out, &hidden, level, means);
    }
    if is_array && max == len as f64 {
        // The length is the border that Lua finds, which for such a table is its count.
        count(out, len, [0x90, 0xdc, 0xdd]);
        for index in 1..=len {
            write(out, &table.raw_get(index)?, level + 1, means)?;
        }
        return Ok(());
    }
    count(out, len, [0x80, 0xde, 0xdf]);
    table.for_each(|key: Value, value: Value| {
        write(out, &key, level + 1, means)?;
        write(out, &value, level + 1, means)
    })
}

fn count(out: &mut Vec<u8>, len: usize, [short, middle, long]: [u8; 3]) {
    match len {
        0..=15 => out.push(short | len as u8),
        16..=0xffff => tagged(out, middle, &(len as u16).to_be_bytes()),
        _ => tagged(out, long, &(len as u32).to_be_bytes()),
    }
}

/// `cmsgpack.unpack(text)`: all values in it.
fn unpack(lua: &Lua, values: MultiValue) -> mlua::Result<MultiValue> {
    read_values(lua, &Arguments::new(lua, values), 0, 0)
}

/// `cmsgpack.unpack_one(text [, offset])`: where the next value begins (-1: nowhere), and one value.
fn unpack_one(lua: &Lua, values: MultiValue) -> mlua::Result<MultiValue> {
    let args = Arguments::new(lua, values);
    let offset = optional_integer(&args, 2)?;
    read_values(lua, &args, 1, offset)
}

/// `cmsgpack.unpack_limit(text, limit [, offset])`: where the next value begins, and at most so many values.
fn unpack_limit(lua: &Lua, values: MultiValue) -> mlua::Result<MultiValue> {
    let args = Arguments::new(lua, values);
    let limit = args.integer(2)?;
    let offset = optional_integer(&args, 3)?;
    read_values(lua, &args, limit, offset)
}

fn optional_integer(args: &Arguments<'_>, position: usize) -> mlua::Result<i64> {
    match args.get(position) {
        None | Some(Value::Nil) => Ok(0),
        Some(_) => args.integer(position),
    }
}

fn read_values(
    lua: &Lua,
    args: &Arguments<'_>,
    limit: i64,
    offset: i64,
) -> mlua::Result<MultiValue> {
    let text = args.string(1)?;
    let all = limit == 0 && offset == 0;
    // Error texts show a C int.
    let shown = offset as i32;
    let (Ok(start), Ok(most)) = (usize::try_from(offset), usize::try_from(limit)) else {
        let text = format!(
            "Invalid request to unpack with offset of {shown} and limit of {}.",
            text.len()
        );
        return Err(library_error(lua, text));
    };
    let Some(rest) = text.get(start..) else {
        let text = format!(
            "Start offset {shown} greater than input length {}.",
            text.len()
        );
        return Err(library_error(lua, text));
    };
    let mut reader = Reader { lua, rest };
    let most = if all { usize::MAX } else { most };
    let mut results = Vec::new();
    while !reader.rest.is_empty() && results.len() < most {
        if results.len() > RESULTS_MAX {
            return Err(library_error(lua, TOO_MANY));
        }
        results.push(reader.value()?);
    }
    if !all {
        let next = if reader.rest.is_empty() {
            -1.0
        } else {
            (text.len() - reader.rest.len()) as f64
        };
        results.insert(0, Value::Number(next));
    }
    Ok(MultiValue::from_vec(results))
}

struct Reader<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
}

/// A table that is being read: how many values are still to come, and the key that waits for its value.
enum Open {
    Array(Table, usize, usize),
    Map(Table, usize, Option<Value>),
}

enum Head {
    Value(Value),
    Array(usize),
    Map(usize),
}

impl Reader<'_> {
    /// One value with all that is in it; nesting is the text's choice, so it is kept on a stack of our own.
    fn value(&mut self) -> mlua::Result<Value> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            let mut finished = match self.head()? {
                Head::Value(value) => Some(value),
                Head::Array(len) => {
                    open.push(Open::Array(self.lua.create_table()?, 0, len));
                    None
                }
                Head::Map(len) => {
                    open.push(Open::Map(self.lua.create_table()?, len, None));
                    None
                }
            };
            if open.len() > READ_NESTING_MAX {
                let text = match open.last() {
                    Some(Open::Array(..)) => TOO_DEEP,
                    _ => TOO_MANY,
                };
                return Err(library_error(self.lua, text));
            }
            loop {
                let Some(innermost) = open.last_mut() else {
                    return Ok(finished.unwrap_or(Value::Nil));
                };
                if let Some(value) = finished.take() {
                    innermost.put(value)?;
                }
                if !innermost.is_complete() {
                    break;
                }
                finished = open.pop().map(|table| Value::Table(table.into_table()));
            }
        }
    }

    fn take(&mut self, len: usize) -> mlua::Result<&[u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(len) else {
            return Err(library_error(self.lua, "Missing bytes in input."));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn bytes<const N: usize>(&mut self) -> mlua::Result<[u8; N]> {
        Ok(self.take(N)?.try_into().unwrap_or([0; N]))
    }

    fn string(&mut self, len: usize) -> mlua::Result<Head> {
        let lua = self.lua;
        let text = self.take(len)?;
        LuaString::wrap(text).into_lua(lua).map(Head::Value)
    }

    fn head(&mut self) -> mlua::Result<Head> {
        let [tag] = self.bytes()?;
        let number = |value: f64| Ok(Head::Value(Value::Number(value)));
        match tag {
            0x00..=0x7f => number(f64::from(tag)),
            0x80..=0x8f => Ok(Head::Map(usize::from(tag & 0xf))),
            0x90..=0x9f => Ok(Head::Array(usize::from(tag & 0xf))),
            0xa0..=0xbf => self.string(usize::from(tag & 0x1f)),
            0xc0 => Ok(Head::Value(Value::Nil)),
            0xc2 | 0xc3 => Ok(Head::Value(Value::Boolean(tag == 0xc3))),
            0xca => number(f64::from(f32::from_be_bytes(self.bytes()?))),
            0xcb => number(f64::from_be_bytes(self.bytes()?)),
            0xcc => number(f64::from(u8::from_be_bytes(self.bytes()?))),
            0xcd => number(f64::from(u16::from_be_bytes(self.bytes()?))),
            0xce => number(f64::from(u32::from_be_bytes(self.bytes()?))),
            0xd0 => number(f64::from(i8::from_be_bytes(self.bytes()?))),
            0xd1 => number(f64::from(i16::from_be_bytes(self.bytes()?))),
            0xd2 => number(f64::from(i32::from_be_bytes(self.bytes()?))),
            0xcf | 0xd3 => number(i64::from_be_bytes(self.bytes()?) as f64),
            0xd9 => {
                let len = u8::from_be_bytes(self.bytes()?);
                self.string(usize::from(len))
            }
            0xda => {
                let len = u16::from_be_bytes(self.bytes()?);
                self.string(usize::from(len))
            }
            0xdb => {
                let len = u32::from_be_bytes(self.bytes()?);
                self.string(len as usize)
            }
            0xdc => Ok(Head::Array(usize::from(u16::from_be_bytes(self.bytes()?)))),
            0xdd => Ok(Head::Array(u32::from_be_bytes(self.bytes()?) as usize)),
            0xde => Ok(Head::Map(usize::from(u16::from_be_bytes(self.bytes()?)))),
            0xdf => Ok(Head::Map(u32::from_be_bytes(self.bytes()?) as usize)),
            0xe0..=0xff => number(f64::from(tag as i8)),
            _ => Err(library_error(self.lua, "Bad data format in input.")),
        }
    }
}

impl Open {
    fn put(&mut self, value: Value) -> mlua::Result<()> {
        match self {
            Open::Array(table, index, left) => {
                *index += 1;
                *left -= 1;
                table.raw_seti(*index, value)
            }
            Open::Map(table, left, key) => match key.take() {
                None => {
                    *key = Some(value);
                    Ok(())
                }
                Some(Value::Nil) => Err(Raised::Text(b"table index is nil".to_vec()).into()),
                Some(Value::Number(n)) if n.is_nan() => {
                    Err(Raised::Text(b"table index is NaN".to_vec()).into())
                }
                Some(key) => {
                    *left -= 1;
                    table.raw_set(key, value)
                }
            },
        }
    }

    fn is_complete(&self) -> bool {
        let (Open::Array(_, _, left) | Open::Map(_, left, _)) = self;
        *left == 0
    }

    fn into_table(self) -> Table {
        let (Open::Array(table, ..) | Open::Map(table, ..)) = self;
        table
    }
}
