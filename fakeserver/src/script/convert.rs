//! Replies to Lua values and back, by the rules of both protocols (`script_lua.c`).

use std::sync::atomic::Ordering::Relaxed;

use mlua::{IntoLua, Lua, LuaString, Table, Value};

use super::arguments::{as_number, truncate};
use super::raise::Raised;
use super::sandbox::{Shared, VALUE_COST};
use crate::error::CommandError;
use crate::value::{Blob, number};
use crate::wire::Reply;

/// Nesting of a script's reply beyond which it ends in an error. 7.0.15 is out of Lua stack at 7,994 levels; writing and
/// dropping a reply takes a level of the program's stack for each, so the limit is lower here.
const DEPTH_MAX: usize = 1_000;

/// A command's reply as a script sees it.
pub(super) fn to_lua(lua: &Lua, reply: Reply, resp3: bool) -> mlua::Result<Value> {
    match reply {
        Reply::Simple(text) => field(lua, "ok", LuaString::wrap(text.as_bytes())),
        Reply::Error(error) => field(lua, "err", LuaString::wrap(error.to_bytes())),
        Reply::Integer(n) => Ok(Value::Number(n as f64)),
        Reply::Bulk(bytes) => string(lua, &bytes),
        Reply::Null | Reply::NullArray => Ok(if resp3 {
            Value::Nil
        } else {
            Value::Boolean(false)
        }),
        Reply::Array(items) | Reply::Push(items) => sequence(lua, items, resp3),
        Reply::Set(items) if resp3 => {
            let set = lua.create_table()?;
            for item in items {
                set.raw_set(to_lua(lua, item, resp3)?, true)?;
            }
            field(lua, "set", set)
        }
        Reply::Set(items) => sequence(lua, items, resp3),
        Reply::Map(pairs) | Reply::Streams(pairs) if resp3 => {
            let map = lua.create_table()?;
            for (key, value) in pairs {
                map.raw_set(to_lua(lua, key, resp3)?, to_lua(lua, value, resp3)?)?;
            }
            field(lua, "map", map)
        }
        Reply::Pairs(pairs) if resp3 => sequence(lua, arrays_of_two(pairs), resp3),
        Reply::Streams(pairs) => sequence(lua, arrays_of_two(pairs), resp3),
        Reply::Map(pairs) | Reply::Pairs(pairs) => {
            let items = pairs.into_iter().flat_map(|(key, value)| [key, value]);
            sequence(lua, items.collect(), resp3)
        }
        Reply::Double(value) if resp3 => field(lua, "double", value),
        Reply::Double(value) => string(lua, number::format_double(value).as_bytes()),
        Reply::Boolean(value) if resp3 => Ok(Value::Boolean(value)),
        Reply::Boolean(value) => Ok(Value::Integer(i64::from(value) as mlua::Integer)),
        Reply::BigNumber(digits) if resp3 => field(lua, "big_number", &*digits),
        Reply::BigNumber(digits) => string(lua, digits.as_bytes()),
        Reply::Verbatim(format, text) if resp3 => {
            let parts = lua.create_table_with_capacity(0, 2)?;
            parts.raw_set("string", LuaString::wrap(&*text))?;
            parts.raw_set("format", LuaString::wrap(format))?;
            field(lua, "verbatim_string", parts)
        }
        Reply::Verbatim(_, text) => string(lua, &text),
        Reply::Attribute(_, reply) | Reply::Spoken(_, reply) => to_lua(lua, *reply, resp3),
        Reply::Several(_) | Reply::Nothing => Ok(Value::Nil),
    }
}

fn string(lua: &Lua, bytes: &[u8]) -> mlua::Result<Value> {
    lua.create_string(bytes).map(Value::String)
}

fn field(lua: &Lua, name: &str, value: impl IntoLua) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set(name, value)?;
    Ok(Value::Table(table))
}

fn sequence(lua: &Lua, items: Vec<Reply>, resp3: bool) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(items.len(), 0)?;
    for (at, item) in items.into_iter().enumerate() {
        match item {
            Reply::Bulk(bytes) => table.raw_seti(at + 1, LuaString::wrap(&*bytes))?,
            item => table.raw_seti(at + 1, to_lua(lua, item, resp3)?)?,
        }
    }
    Ok(Value::Table(table))
}

/// What a script returned as a reply. Its protocol is the script's own choice by `redis.setresp`.
///
/// Tables that hold tables are walked with a stack of our own, since their nesting is the script's choice.
pub(super) fn to_reply(value: Value, shared: &Shared) -> mlua::Result<Reply> {
    let resp3 = shared.resp3.load(Relaxed);
    let mut open: Vec<Open> = Vec::new();
    let mut next = value;
    let mut bytes = 0;
    loop {
        shared.spend(VALUE_COST)?;
        bytes += size_of::<Reply>();
        if shared.is_too_much(bytes) {
            return Err(Raised::Text(b"not enough memory".to_vec()).into());
        }
        let mut reply = match begin(next, resp3, open.len())? {
            Begun::Reply(reply) => {
                bytes += text_len(&reply);
                reply
            }
            Begun::Open(table) => {
                open.push(table);
                Reply::Nothing
            }
        };
        next = loop {
            let Some(innermost) = open.last_mut() else {
                return Ok(reply);
            };
            innermost.take_in(std::mem::replace(&mut reply, Reply::Nothing));
            match innermost.advance()? {
                Some(value) => break value,
                None => reply = open.pop().map_or(Reply::Null, Open::finish),
            }
        };
    }
}

/// Bytes that a reply holds besides itself.
fn text_len(reply: &Reply) -> usize {
    match reply {
        Reply::Bulk(text) | Reply::Verbatim(_, text) => text.len(),
        Reply::Simple(text) => text.len(),
        Reply::BigNumber(digits) => digits.len(),
        _ => 0,
    }
}

enum Begun {
    Reply(Reply),
    Open(Open),
}

/// A table that is being converted. `Reply::Nothing` stands for the reply that is not there yet.
enum Open {
    Array(Table, Vec<Reply>),
    Map(Vec<Value>, Vec<Reply>),
    Set(Vec<Value>, Vec<Reply>),
}

impl Open {
    fn take_in(&mut self, reply: Reply) {
        let (Open::Array(_, replies) | Open::Map(_, replies) | Open::Set(_, replies)) = self;
        if reply != Reply::Nothing {
            replies.push(reply);
        }
    }

    fn advance(&mut self) -> mlua::Result<Option<Value>> {
        Ok(match self {
            Open::Array(table, replies) => match table.raw_get(replies.len() + 1)? {
                Value::Nil => None,
                value => Some(value),
            },
            Open::Map(values, _) | Open::Set(values, _) => values.pop(),
        })
    }

    fn finish(self) -> Reply {
        match self {
            Open::Array(_, replies) => Reply::Array(replies),
            Open::Set(_, replies) => Reply::Set(replies),
            Open::Map(_, replies) => {
                let mut pairs = Vec::with_capacity(replies.len() / 2);
                let mut replies = replies.into_iter();
                while let (Some(key), Some(value)) = (replies.next(), replies.next()) {
                    pairs.push((key, value));
                }
                Reply::Map(pairs)
            }
        }
    }
}

fn begin(value: Value, resp3: bool, depth: usize) -> mlua::Result<Begun> {
    Ok(Begun::Reply(match value {
        Value::String(text) => Reply::Bulk(Blob::from(&*text.as_bytes())),
        Value::Boolean(value) if resp3 => Reply::Boolean(value),
        Value::Boolean(true) => Reply::Integer(1),
        Value::Boolean(false) => Reply::Null,
        #[allow(
            clippy::useless_conversion,
            reason = "mlua's integer has the width of a pointer"
        )]
        Value::Integer(n) => Reply::Integer(i64::from(n)),
        Value::Number(n) => Reply::Integer(truncate(n)),
        Value::Table(_) if depth >= DEPTH_MAX => {
            Reply::Error(CommandError::custom("ERR reached lua stack limit"))
        }
        Value::Table(table) => return begin_table(table),
        _ => Reply::Null,
    }))
}

fn begin_table(table: Table) -> mlua::Result<Begun> {
    if let Value::String(text) = table.raw_get("err")? {
        let error = CommandError::custom(trim_end(&text.as_bytes()));
        return Ok(Begun::Reply(Reply::Error(error)));
    }
    if let Value::String(text) = table.raw_get("ok")? {
        let text = one_line(&text.as_bytes());
        return Ok(Begun::Reply(Reply::Simple(text.into())));
    }
    if let Some(value) = as_number(&table.raw_get("double")?) {
        return Ok(Begun::Reply(Reply::Double(value)));
    }
    // What is taken from the end comes in the table's order.
    if let Value::Table(map) = table.raw_get("map")? {
        let mut values = Vec::new();
        map.for_each(|key: Value, value: Value| {
            values.extend([key, value]);
            Ok(())
        })?;
        values.reverse();
        return Ok(Begun::Open(Open::Map(values, Vec::new())));
    }
    if let Value::Table(set) = table.raw_get("set")? {
        let mut values = Vec::new();
        set.for_each(|key: Value, _: Value| {
            values.push(key);
            Ok(())
        })?;
        values.reverse();
        return Ok(Begun::Open(Open::Set(values, Vec::new())));
    }
    if let Value::String(digits) = table.raw_get("big_number")? {
        let digits = one_line(&digits.as_bytes());
        return Ok(Begun::Reply(Reply::BigNumber(digits.into())));
    }
    if let Value::Table(parts) = table.raw_get("verbatim_string")?
        && let Value::String(text) = parts.raw_get("string")?
        && let Value::String(format) = parts.raw_get("format")?
    {
        let mut letters = [b' '; 3];
        for (letter, byte) in letters.iter_mut().zip(format.as_bytes().iter()) {
            *letter = *byte;
        }
        let text = Blob::from(&*text.as_bytes());
        return Ok(Begun::Reply(Reply::Verbatim(letters, text)));
    }
    let items = Vec::with_capacity(table.raw_len());
    Ok(Begun::Open(Open::Array(table, items)))
}

fn trim_end(text: &[u8]) -> &[u8] {
    let kept = text.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n'));
    &text[..kept.map_or(0, |at| at + 1)]
}

/// A status or a big number is one line: line breaks become blanks.
fn one_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).replace(['\r', '\n'], " ")
}

fn arrays_of_two(pairs: Vec<(Reply, Reply)>) -> Vec<Reply> {
    let arrays = pairs
        .into_iter()
        .map(|(key, value)| Reply::Array(vec![key, value]));
    arrays.collect()
}
