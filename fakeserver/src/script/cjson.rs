//! The library `cjson`: JSON to Lua values and back in one descent, with the settings and error texts of lua-cjson 2.1.0.

mod decode;
mod encode;
mod lex;

use std::sync::{Arc, Mutex, PoisonError};

use mlua::{Lua, MultiValue, Table, Value};

use super::arguments::Arguments;
use super::raise::argument_error;
use super::sandbox::{Shared, unlimited};

/// Bytes of JSON that are read in about the time of an instruction of Lua.
const BYTES_PER_INSTRUCTION: u64 = 4;

/// JSON up to this length is decoded without the limit of memory: what it makes is a small multiple of it.
const UNLIMITED_LEN_MAX: usize = 256 * 1024;

/// What to do with numbers that JSON does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InvalidNumbers {
    Refuse,
    Accept,
    /// Write `null` instead.
    Null,
}

/// The settings of one instance of the library.
#[derive(Clone, Copy, Debug)]
struct Settings {
    sparse_convert: bool,
    sparse_ratio: i64,
    sparse_safe: i64,
    encode_depth_max: usize,
    decode_depth_max: usize,
    encode_invalid: InvalidNumbers,
    decode_invalid: InvalidNumbers,
    keep_buffer: bool,
    precision: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            sparse_convert: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_depth_max: 1000,
            decode_depth_max: 1000,
            encode_invalid: InvalidNumbers::Refuse,
            decode_invalid: InvalidNumbers::Accept,
            keep_buffer: true,
            precision: 14,
        }
    }
}

/// Settings are changed by a script and outlive it, as in Redis.
type SharedSettings = Arc<Mutex<Settings>>;

fn read(settings: &SharedSettings) -> Settings {
    *settings.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write(settings: &SharedSettings, change: impl FnOnce(&mut Settings)) {
    change(&mut settings.lock().unwrap_or_else(PoisonError::into_inner));
}

pub(super) fn library(lua: &Lua, budget: &Arc<Shared>) -> mlua::Result<Table> {
    let cjson = lua.create_table()?;
    let settings = SharedSettings::default();
    cjson.raw_set("_NAME", "cjson")?;
    cjson.raw_set("_VERSION", "2.1.0")?;
    cjson.raw_set("null", Value::NULL)?;
    let (shared, charged) = (Arc::clone(&settings), Arc::clone(budget));
    let encode = lua.create_function(move |lua, values: MultiValue| {
        if values.len() != 1 {
            return Err(argument_error(lua, 1, "expected 1 argument"));
        }
        let mut out = Vec::new();
        let value = values.into_iter().next().unwrap_or(Value::Nil);
        encode::Encoder::new(lua, read(&shared), &charged, &mut out).value(&value)?;
        lua.create_string(out)
    })?;
    cjson.raw_set("encode", encode)?;
    let (shared, charged) = (Arc::clone(&settings), Arc::clone(budget));
    let decode = lua.create_function(move |lua, values: MultiValue| {
        if values.len() != 1 {
            return Err(argument_error(lua, 1, "expected 1 argument"));
        }
        let settings = read(&shared);
        match values.front() {
            Some(Value::String(text)) => {
                charged.spend(text.as_bytes().len() as u64 / BYTES_PER_INSTRUCTION)?;
                let text = text.as_bytes();
                if text.len() <= UNLIMITED_LEN_MAX {
                    unlimited(lua, || decode::decode(lua, &text, settings))
                } else {
                    decode::decode(lua, &text, settings)
                }
            }
            _ => decode::decode(lua, &Arguments::new(lua, values).string(1)?, settings),
        }
    })?;
    cjson.raw_set("decode", decode)?;
    let again = Arc::clone(budget);
    cjson.raw_set(
        "new",
        lua.create_function(move |lua, _: MultiValue| library(lua, &again))?,
    )?;
    add_settings(lua, &cjson, &settings)?;
    Ok(cjson)
}

fn add_settings(lua: &Lua, cjson: &Table, settings: &SharedSettings) -> mlua::Result<()> {
    let shared = Arc::clone(settings);
    let sparse = lua.create_function(move |lua, values| {
        let args = at_most(lua, values, 3)?;
        let convert = boolean(&args, 1)?;
        if let Some(convert) = convert {
            write(&shared, |settings| settings.sparse_convert = convert);
        }
        if let Some(ratio) = integer(lua, &args, 2, 0)? {
            write(&shared, |settings| settings.sparse_ratio = ratio);
        }
        if let Some(safe) = integer(lua, &args, 3, 0)? {
            write(&shared, |settings| settings.sparse_safe = safe);
        }
        let now = read(&shared);
        Ok((now.sparse_convert, now.sparse_ratio, now.sparse_safe))
    })?;
    cjson.raw_set("encode_sparse_array", sparse)?;
    let number = |field: fn(&mut Settings) -> &mut usize, min: i64, max: i64| {
        let shared = Arc::clone(settings);
        lua.create_function(move |lua, values| {
            let args = at_most(lua, values, 1)?;
            if let Some(value) = integer_between(lua, &args, 1, min, max)? {
                write(&shared, |settings| *field(settings) = value as usize);
            }
            Ok(*field(&mut read(&shared)))
        })
    };
    let any = i64::from(i32::MAX);
    cjson.raw_set(
        "encode_max_depth",
        number(|settings| &mut settings.encode_depth_max, 1, any)?,
    )?;
    cjson.raw_set(
        "decode_max_depth",
        number(|settings| &mut settings.decode_depth_max, 1, any)?,
    )?;
    cjson.raw_set(
        "encode_number_precision",
        number(|settings| &mut settings.precision, 1, 14)?,
    )?;
    let shared = Arc::clone(settings);
    let keep_buffer = lua.create_function(move |lua, values| {
        if let Some(keep) = boolean(&at_most(lua, values, 1)?, 1)? {
            write(&shared, |settings| settings.keep_buffer = keep);
        }
        Ok(read(&shared).keep_buffer)
    })?;
    cjson.raw_set("encode_keep_buffer", keep_buffer)?;
    let shared = Arc::clone(settings);
    let encode_invalid = lua.create_function(move |lua, values| {
        let args = at_most(lua, values, 1)?;
        if let Some(value) = invalid_numbers(lua, &args, true)? {
            write(&shared, |settings| settings.encode_invalid = value);
        }
        shown(lua, read(&shared).encode_invalid)
    })?;
    cjson.raw_set("encode_invalid_numbers", encode_invalid)?;
    let shared = Arc::clone(settings);
    let decode_invalid = lua.create_function(move |lua, values| {
        let args = at_most(lua, values, 1)?;
        if let Some(value) = invalid_numbers(lua, &args, false)? {
            write(&shared, |settings| settings.decode_invalid = value);
        }
        shown(lua, read(&shared).decode_invalid)
    })?;
    cjson.raw_set("decode_invalid_numbers", decode_invalid)
}

fn at_most(lua: &Lua, values: MultiValue, count: usize) -> mlua::Result<Arguments<'_>> {
    if values.len() > count {
        return Err(argument_error(lua, count + 1, "found too many arguments"));
    }
    Ok(Arguments::new(lua, values))
}

fn integer(
    lua: &Lua,
    args: &Arguments<'_>,
    position: usize,
    min: i64,
) -> mlua::Result<Option<i64>> {
    integer_between(lua, args, position, min, i64::from(i32::MAX))
}

fn integer_between(
    lua: &Lua,
    args: &Arguments<'_>,
    position: usize,
    min: i64,
    max: i64,
) -> mlua::Result<Option<i64>> {
    if matches!(args.get(position), None | Some(Value::Nil)) {
        return Ok(None);
    }
    let value = args.integer(position)?;
    if (min..=max).contains(&value) {
        return Ok(Some(value));
    }
    // The library names the first argument here, whichever it was.
    Err(argument_error(
        lua,
        1,
        &format!("expected integer between {min} and {max}"),
    ))
}

/// `true`, `false`, or one of the words `off` and `on`.
fn boolean(args: &Arguments<'_>, position: usize) -> mlua::Result<Option<bool>> {
    match args.get(position) {
        None | Some(Value::Nil) => Ok(None),
        Some(Value::Boolean(value)) => Ok(Some(*value)),
        Some(_) => option(args, position, &["off", "on"]).map(|choice| Some(choice == 1)),
    }
}

fn invalid_numbers(
    lua: &Lua,
    args: &Arguments<'_>,
    null: bool,
) -> mlua::Result<Option<InvalidNumbers>> {
    let words: &[&str] = if null {
        &["off", "on", "null"]
    } else {
        &["off", "on"]
    };
    let _ = lua;
    Ok(match args.get(1) {
        None | Some(Value::Nil) => None,
        Some(Value::Boolean(true)) => Some(InvalidNumbers::Accept),
        Some(Value::Boolean(false)) => Some(InvalidNumbers::Refuse),
        Some(_) => Some(match option(args, 1, words)? {
            0 => InvalidNumbers::Refuse,
            1 => InvalidNumbers::Accept,
            _ => InvalidNumbers::Null,
        }),
    })
}

/// The place of a word in a list, as `luaL_checkoption` finds it.
fn option(args: &Arguments<'_>, position: usize, words: &[&str]) -> mlua::Result<usize> {
    let word = args.string(position)?;
    let found = words.iter().position(|known| known.as_bytes() == word);
    found.ok_or_else(|| {
        let text = format!("invalid option '{}'", String::from_utf8_lossy(&word));
        args.error(position, &text)
    })
}

fn shown(lua: &Lua, value: InvalidNumbers) -> mlua::Result<Value> {
    Ok(match value {
        InvalidNumbers::Refuse => Value::Boolean(false),
        InvalidNumbers::Accept => Value::Boolean(true),
        InvalidNumbers::Null => Value::String(lua.create_string("null")?),
    })
}
