//! Replies to Lua values and back, by the rules of both protocols (`script_lua.c`).

use std::sync::atomic::Ordering::Relaxed;

use mlua::{IntoLua, Lua, LuaString, Table, Value};

use super::arguments::{as_number, truncate};
use super::push;
use super::raise::{IS_COUNTED, Raised};
use super::sandbox::{Shared, VALUE_COST};
use super::walk;
use crate::error::CommandError;
use crate::value::{Blob, number};
use crate::wire::{Part, Reply};

/// Slots of Lua's stack with which 7.0.15 still converts a value. Each array around it takes one, so replies nest to 7,994 levels.
const SLOTS_MAX: usize = 7_994;

/// Levels of nesting that become values which own each other; writing and dropping those takes a level of the program's stack
/// for each, so what is inside of more is [`Reply::Deep`].
const NESTED_MAX: usize = 128;

/// A command's reply as a script sees it.
pub(super) fn to_lua(lua: &Lua, reply: Reply, resp3: bool) -> mlua::Result<Value> {
    match reply {
        Reply::Simple(text) => field(lua, "ok", push::bytes(text.as_bytes())),
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
        Reply::PlainDouble(value) if resp3 => field(lua, "double", number::as_plain(value)),
        Reply::PlainDouble(value) => string(lua, number::format_plain(value).as_bytes()),
        Reply::Boolean(value) if resp3 => Ok(Value::Boolean(value)),
        Reply::Boolean(value) => Ok(Value::Integer(i64::from(value) as mlua::Integer)),
        Reply::BigNumber(digits) if resp3 => field(lua, "big_number", LuaString::wrap(&*digits)),
        Reply::BigNumber(digits) => string(lua, &digits),
        Reply::Verbatim(format, text) if resp3 => {
            let parts = lua.create_table_with_capacity(0, 2)?;
            parts.raw_set("string", LuaString::wrap(&*text))?;
            parts.raw_set("format", LuaString::wrap(format))?;
            field(lua, "verbatim_string", parts)
        }
        Reply::Verbatim(_, text) => string(lua, &text),
        Reply::Attribute(_, reply) | Reply::Spoken(_, reply) => to_lua(lua, *reply, resp3),
        Reply::Status(text) => field(lua, "ok", LuaString::wrap(&*text)),
        // Only scripts make replies that deep, and they do not call each other.
        Reply::Deep(_) | Reply::Several(_) | Reply::Nothing => Ok(Value::Nil),
    }
}

fn string(lua: &Lua, bytes: &[u8]) -> mlua::Result<Value> {
    lua.create_string(bytes).map(Value::String)
}

fn field(lua: &Lua, name: &str, value: impl IntoLua) -> mlua::Result<Value> {
    lua.create_table_from([(name, value)]).map(Value::Table)
}

fn sequence(lua: &Lua, items: Vec<Reply>, resp3: bool) -> mlua::Result<Value> {
    if items.iter().all(|item| matches!(item, Reply::Bulk(_))) {
        let texts = items.iter().map(|item| match item {
            Reply::Bulk(text) => push::bytes(text),
            _ => push::value(Value::Nil),
        });
        return push::sequence(lua, texts).map(Value::Table);
    }
    let table = lua.create_table()?;
    for (at, item) in items.into_iter().enumerate() {
        match item {
            Reply::Bulk(text) => table.raw_seti(at + 1, push::bytes(&text))?,
            item => table.raw_seti(at + 1, to_lua(lua, item, resp3)?)?,
        }
    }
    Ok(Value::Table(table))
}

/// What a script returned as a reply. Its protocol is the script's own choice by `redis.setresp`.
///
/// Tables that hold tables are walked with a stack of our own, since their nesting is the script's choice. `errors` is told of
/// each error inside of others, and whether it has been counted already.
pub(super) fn to_reply(
    lua: &Lua,
    value: Value,
    shared: &Shared,
    errors: &mut Errors<'_>,
) -> mlua::Result<Reply> {
    let resp3 = shared.resp3.load(Relaxed);
    let mut open: Vec<Open> = Vec::new();
    let (mut value, mut slots) = (value, 0);
    let mut bytes = 0;
    loop {
        shared.spend(VALUE_COST)?;
        bytes += size_of::<Reply>();
        refuse_too_much(shared, bytes)?;
        let mut reply = match begin(value, resp3, slots)? {
            Begun::Error(error, is_counted) => {
                if !open.is_empty() {
                    errors(&error, is_counted);
                }
                Reply::Error(error)
            }
            Begun::Reply(reply) => {
                bytes += text_len(&reply);
                reply
            }
            Begun::Open(source) if open.len() >= NESTED_MAX => {
                deep(lua, source, slots, (shared, &mut *errors))?
            }
            Begun::Open(source) => {
                open.push(Open::new(source, slots));
                Reply::Nothing
            }
        };
        (value, slots) = loop {
            let Some(innermost) = open.last_mut() else {
                return Ok(reply);
            };
            innermost.take_in(std::mem::replace(&mut reply, Reply::Nothing));
            match innermost.advance(lua)? {
                Some(value) => break (value, innermost.child_slots()),
                None => reply = open.pop().map_or(Reply::Null, Open::finish),
            }
        };
    }
}

/// The same for a table far inside of others.
fn deep(
    lua: &Lua,
    source: Source,
    slots: usize,
    (shared, errors): (&Shared, &mut Errors<'_>),
) -> mlua::Result<Reply> {
    let resp3 = shared.resp3.load(Relaxed);
    let parked = lua.create_table()?;
    let mut parts = vec![source.part(0)];
    // Each with the place of its own part.
    let mut open = vec![(Open::new(source, slots), 0)];
    let mut bytes = 0;
    loop {
        let depth = open.len();
        let Some((innermost, at)) = open.last_mut() else {
            return Ok(Reply::Deep(parts));
        };
        let Some(value) = innermost.advance(lua)? else {
            let finished = innermost.source.part(innermost.taken);
            if let Some(part) = parts.get_mut(*at) {
                *part = finished;
            }
            open.pop();
            if let Some((outer, _)) = open.last_mut() {
                outer.source.fetch(&parked, depth - 1)?;
            }
            continue;
        };
        shared.spend(VALUE_COST)?;
        bytes += size_of::<Part>();
        refuse_too_much(shared, bytes)?;
        let slots = innermost.child_slots();
        match begin(value, resp3, slots)? {
            Begun::Error(error, is_counted) => {
                errors(&error, is_counted);
                parts.push(Part::Reply(Reply::Error(error)));
            }
            Begun::Reply(reply) => {
                bytes += text_len(&reply);
                parts.push(Part::Reply(reply));
            }
            Begun::Open(source) => {
                innermost.source.park(&parked, depth)?;
                let at = parts.len();
                parts.push(source.part(0));
                open.push((Open::new(source, slots), at));
            }
        }
    }
}

fn refuse_too_much(shared: &Shared, bytes: usize) -> mlua::Result<()> {
    if shared.is_too_much(bytes) {
        return Err(Raised::Text(b"not enough memory".to_vec()).into());
    }
    Ok(())
}

/// Bytes that a reply holds besides itself.
fn text_len(reply: &Reply) -> usize {
    match reply {
        Reply::Bulk(text)
        | Reply::Verbatim(_, text)
        | Reply::Status(text)
        | Reply::BigNumber(text) => text.len(),
        Reply::Simple(text) => text.len(),
        _ => 0,
    }
}

/// Who is told of errors.
pub(super) type Errors<'a> = dyn FnMut(&CommandError, bool) + 'a;

enum Begun {
    Reply(Reply),
    /// With whether it has been counted.
    Error(CommandError, bool),
    Open(Source),
}

/// Where an aggregate's items come from.
struct Source {
    kind: Kind,
    table: Value,
    /// The key that was taken last, of a map or a set.
    key: Value,
    /// The value of that key, which comes next.
    waiting: Value,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Array,
    Map,
    Set,
}

impl Source {
    fn new(kind: Kind, table: Table) -> Source {
        Source {
            kind,
            table: Value::Table(table),
            key: Value::Nil,
            waiting: Value::Nil,
        }
    }

    fn part(&self, items: usize) -> Part {
        match self.kind {
            Kind::Array => Part::Array(items),
            Kind::Map => Part::Map(items / 2),
            Kind::Set => Part::Set(items),
        }
    }

    /// The next item; `taken` is how many there were.
    fn advance(&mut self, taken: usize, lua: &Lua) -> mlua::Result<Value> {
        let Value::Table(table) = &self.table else {
            return Ok(Value::Nil);
        };
        if self.kind == Kind::Array {
            return table.raw_get(taken + 1);
        }
        if !self.waiting.is_nil() {
            return Ok(std::mem::replace(&mut self.waiting, Value::Nil));
        }
        let (key, value): (Value, Value) = walk::next(lua)?.call((table, &self.key))?;
        self.key = key.clone();
        if self.kind == Kind::Map {
            self.waiting = value;
        }
        Ok(key)
    }

    /// Leaves what it holds of Lua in a table, at the place of its depth: Rust can hold some thousand values of Lua, no more.
    fn park(&mut self, parked: &Table, depth: usize) -> mlua::Result<()> {
        for (at, value) in [&mut self.table, &mut self.key, &mut self.waiting]
            .into_iter()
            .enumerate()
        {
            parked.raw_set(depth * 3 + at, std::mem::replace(value, Value::Nil))?;
        }
        Ok(())
    }

    /// Takes that back.
    fn fetch(&mut self, parked: &Table, depth: usize) -> mlua::Result<()> {
        for (at, value) in [&mut self.table, &mut self.key, &mut self.waiting]
            .into_iter()
            .enumerate()
        {
            *value = parked.raw_get(depth * 3 + at)?;
        }
        Ok(())
    }
}

/// A table that is being converted. `Reply::Nothing` stands for the reply that is not there yet.
struct Open {
    source: Source,
    slots: usize,
    taken: usize,
    replies: Vec<Reply>,
}

impl Open {
    fn new(source: Source, slots: usize) -> Open {
        Open {
            source,
            slots,
            taken: 0,
            replies: Vec::new(),
        }
    }

    fn take_in(&mut self, reply: Reply) {
        if !matches!(reply, Reply::Nothing) {
            self.replies.push(reply);
        }
    }

    fn advance(&mut self, lua: &Lua) -> mlua::Result<Option<Value>> {
        let value = self.source.advance(self.taken, lua)?;
        self.taken += usize::from(!value.is_nil());
        Ok((!value.is_nil()).then_some(value))
    }

    /// How much of Lua's stack 7.0.15 has in use when it comes to what was taken last.
    fn child_slots(&self) -> usize {
        let own = match self.source.kind {
            Kind::Array => 1,
            // The map, its key and its value; for a key, that once more.
            Kind::Map => 3 + self.taken % 2,
            Kind::Set => 3,
        };
        self.slots + own
    }

    fn finish(self) -> Reply {
        match self.source.kind {
            Kind::Array => Reply::Array(self.replies),
            Kind::Set => Reply::Set(self.replies),
            Kind::Map => {
                let mut pairs = Vec::with_capacity(self.replies.len() / 2);
                let mut replies = self.replies.into_iter();
                while let (Some(key), Some(value)) = (replies.next(), replies.next()) {
                    pairs.push((key, value));
                }
                Reply::Map(pairs)
            }
        }
    }
}

fn begin(value: Value, resp3: bool, slots: usize) -> mlua::Result<Begun> {
    if slots > SLOTS_MAX {
        let error = CommandError::custom("ERR reached lua stack limit");
        return Ok(Begun::Error(error, false));
    }
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
        Value::Table(table) => return begin_table(table),
        _ => Reply::Null,
    }))
}

fn begin_table(table: Table) -> mlua::Result<Begun> {
    if let Value::String(text) = table.raw_get("err")? {
        let error = CommandError::custom(trim_end(&text.as_bytes()));
        let is_counted = table.raw_get::<Value>(IS_COUNTED)? == Value::Boolean(true);
        return Ok(Begun::Error(error, is_counted));
    }
    if let Value::String(text) = table.raw_get("ok")? {
        return Ok(Begun::Reply(Reply::status(one_line(&text.as_bytes()))));
    }
    if let Some(value) = as_number(&table.raw_get("double")?) {
        return Ok(Begun::Reply(Reply::Double(value)));
    }
    if let Value::Table(map) = table.raw_get("map")? {
        return Ok(Begun::Open(Source::new(Kind::Map, map)));
    }
    if let Value::Table(set) = table.raw_get("set")? {
        return Ok(Begun::Open(Source::new(Kind::Set, set)));
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
    Ok(Begun::Open(Source::new(Kind::Array, table)))
}

fn trim_end(text: &[u8]) -> &[u8] {
    let kept = text.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n'));
    &text[..kept.map_or(0, |at| at + 1)]
}

/// A status or a big number is one line: line breaks become blanks.
fn one_line(text: &[u8]) -> Vec<u8> {
    let blank = |byte: &u8| match byte {
        b'\r' | b'\n' => b' ',
        byte => *byte,
    };
    text.iter().map(blank).collect()
}

fn arrays_of_two(pairs: Vec<(Reply, Reply)>) -> Vec<Reply> {
    let arrays = pairs
        .into_iter()
        .map(|(key, value)| Reply::Array(vec![key, value]));
    arrays.collect()
}
