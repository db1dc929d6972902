//! Values on their way into tables of Lua. Text that Rust can have as such becomes no value that Rust holds first, and a table
//! gets all that is in it at one blow: most of the time is what a single visit to Lua costs.

use std::borrow::Cow;

use mlua::{Either, IntoLua, Lua, Table, Value};

/// What is pushed.
pub(super) type Pushed<'a> = Either<&'a str, Either<String, Either<Bytes<'a>, Value>>>;

/// Text that is not valid UTF-8.
pub(super) struct Bytes<'a>(Cow<'a, [u8]>);

impl IntoLua for Bytes<'_> {
    fn into_lua(self, lua: &Lua) -> mlua::Result<Value> {
        lua.create_string(self.0).map(Value::String)
    }
}

#[inline]
pub(super) fn text(text: &str) -> Pushed<'_> {
    Either::Left(text)
}

#[inline]
pub(super) fn bytes(bytes: &[u8]) -> Pushed<'_> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Either::Left(text),
        Err(_) => Either::Right(Either::Right(Either::Left(Bytes(Cow::Borrowed(bytes))))),
    }
}

pub(super) fn owned(bytes: Vec<u8>) -> Pushed<'static> {
    Either::Right(match String::from_utf8(bytes) {
        Ok(text) => Either::Left(text),
        Err(error) => Either::Right(Either::Left(Bytes(Cow::Owned(error.into_bytes())))),
    })
}

#[inline]
pub(super) fn value(value: Value) -> Pushed<'static> {
    Either::Right(Either::Right(Either::Right(value)))
}

/// A table with these items from 1 on. It has as much room as one that grew with its items, since that decides where Lua looks
/// for the end of a table with holes.
pub(super) fn sequence<'a>(
    lua: &Lua,
    items: impl ExactSizeIterator<Item = Pushed<'a>>,
) -> mlua::Result<Table> {
    let len = items.len();
    let room = if len == 0 { 0 } else { len.next_power_of_two() };
    let spare = std::iter::repeat_with(|| value(Value::Nil)).take(room - len);
    lua.create_sequence_from(items.chain(spare))
}
