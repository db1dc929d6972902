//! JSON to Lua values.
//!
//! What a table holds is gathered in Rust until its end, so that it gets all of it at one blow.

use std::vec::Drain;

use mlua::{IntoLua, Lua, Table, Value};

use super::Settings;
use super::lex::{Lexer, Text, Token};
use crate::script::push::{self, Pushed};
use crate::script::raise::library_error;

/// Slots of Lua's stack, of which 7.0.15 needs some for each level, whatever the setting.
const SLOTS_MAX: usize = 8_000;
/// Values of Lua that are held at once: Rust has room for some thousand.
const HELD_MAX: usize = 2_000;
/// Items that are gathered at once, since Rust's memory is not the script's.
const GATHERED_MAX: usize = 16_384;

/// What waits for the end of its table.
enum Item<'a> {
    Text(Text<'a>),
    Number(f64),
    Boolean(bool),
    Null,
    Table(Table),
}

impl Item<'_> {
    fn text(&self) -> &[u8] {
        match self {
            Item::Text(Text::Str(text)) => text.as_bytes(),
            Item::Text(Text::Bytes(bytes)) => bytes,
            Item::Text(Text::Resolved(text)) => text,
            _ => b"",
        }
    }
}

impl<'a> From<Item<'a>> for Pushed<'a> {
    #[inline]
    fn from(item: Item<'a>) -> Pushed<'a> {
        match item {
            Item::Text(Text::Str(text)) => push::text(text),
            Item::Text(Text::Bytes(bytes)) => push::bytes(bytes),
            Item::Text(Text::Resolved(text)) => push::owned(text),
            Item::Number(n) => push::value(Value::Number(n)),
            Item::Boolean(is_true) => push::value(Value::Boolean(is_true)),
            Item::Null => push::value(Value::NULL),
            Item::Table(table) => push::value(Value::Table(table)),
        }
    }
}

/// Keys and values, for a table that grows as if they came one by one: where keys collide, their order depends on the sizes
/// that it had. It begins with room for two, as it would have it after them.
struct Pairs<'a, 'b> {
    items: Drain<'b, Item<'a>>,
    room: usize,
}

impl<'a, 'b> Pairs<'a, 'b> {
    fn new(items: Drain<'b, Item<'a>>) -> Pairs<'a, 'b> {
        let room = match items.as_slice() {
            [] => 0,
            [first, _, second, ..] if first.text() != second.text() => 2,
            _ => 1,
        };
        Pairs { items, room }
    }
}

impl<'a> Iterator for Pairs<'a, '_> {
    type Item = (Pushed<'a>, Pushed<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.items.next()?.into(), self.items.next()?.into()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.items.len() / 2;
        (len.min(self.room), Some(len))
    }
}

/// A table that has begun.
#[derive(Clone, Copy)]
struct Open {
    is_object: bool,
    /// Where its items begin: values, or keys and values in turn.
    first: usize,
    /// Items that it has in Lua already, in the table that is parked at its depth.
    parked: usize,
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
        lexer: Lexer::new(text, settings.decode_invalid),
        depth_max: settings.decode_depth_max,
        items: Vec::new(),
        held: 0,
        open: Vec::new(),
        slots: 0,
        parked: None,
    };
    decoder.document()?;
    match decoder.lexer.next() {
        Token::End => decoder.root(),
        other => Err(decoder.unexpected("the end", &other)),
    }
}

struct Decoder<'a> {
    lua: &'a Lua,
    lexer: Lexer<'a>,
    depth_max: usize,
    /// Items of all open tables, those of the innermost last.
    items: Vec<Item<'a>>,
    /// How many of them are values that Rust holds of Lua.
    held: usize,
    /// The tables that have begun, the innermost last. Nesting is the text's choice, so this is no recursion.
    open: Vec<Open>,
    /// Slots that they would take in 7.0.15.
    slots: usize,
    /// Tables that have some of their items, each at its depth.
    parked: Option<Table>,
}

impl<'a> Decoder<'a> {
    fn unexpected(&self, expected: &str, found: &Token<'_>) -> mlua::Error {
        let (found, at) = (found.name(), self.lexer.token_at + 1);
        let text = format!("Expected {expected} but found {found} at character {at}");
        library_error(self.lua, text)
    }

    /// One value with all that is in it.
    fn document(&mut self) -> mlua::Result<()> {
        let mut token = self.lexer.next();
        loop {
            match token {
                Token::ObjectBegin | Token::ArrayBegin => {
                    if let Some(first) = self.begin(&token)? {
                        token = first;
                        continue;
                    }
                }
                Token::String(text) => self.items.push(Item::Text(text)),
                Token::Number(n) => self.items.push(Item::Number(n)),
                Token::Boolean(is_true) => self.items.push(Item::Boolean(is_true)),
                Token::Null => self.items.push(Item::Null),
                other => return Err(self.unexpected("value", &other)),
            }
            match self.after_value()? {
                Some(next) => token = next,
                None => return Ok(()),
            }
        }
    }

    /// Opens a table and reads on to its first value; if it has none it is closed again.
    fn begin(&mut self, token: &Token<'_>) -> mlua::Result<Option<Token<'a>>> {
        let (depth, at) = (self.open.len() + 1, self.lexer.at);
        let is_object = matches!(token, Token::ObjectBegin);
        // The text itself is one more, and the value that comes next.
        let slots = self.slots + if is_object { 4 } else { 3 };
        if depth > self.depth_max || slots > SLOTS_MAX {
            let text = format!("Found too many nested data structures ({depth}) at character {at}");
            return Err(library_error(self.lua, text));
        }
        self.open.push(Open {
            is_object,
            first: self.items.len(),
            parked: 0,
        });
        self.slots += if is_object { 2 } else { 1 };
        if self.lexer.takes(if is_object { b'}' } else { b']' }) {
            return self.end().map(|()| None);
        }
        if is_object {
            return self.key().map(Some);
        }
        Ok(Some(self.lexer.next()))
    }

    /// Reads a key and on to its value.
    fn key(&mut self) -> mlua::Result<Token<'a>> {
        match self.lexer.next() {
            Token::String(text) => self.items.push(Item::Text(text)),
            other => return Err(self.unexpected("object key string", &other)),
        }
        if self.lexer.takes(b':') {
            return Ok(self.lexer.next());
        }
        let found = self.lexer.next();
        Err(self.unexpected("colon", &found))
    }

    /// Closes what ends behind a value and reads on to the next one; none if the document is complete.
    fn after_value(&mut self) -> mlua::Result<Option<Token<'a>>> {
        if self.held > HELD_MAX || self.items.len() > GATHERED_MAX {
            self.hand_over()?;
        }
        while let Some(innermost) = self.open.last() {
            let is_object = innermost.is_object;
            if self.lexer.takes(b',') {
                return if is_object {
                    self.key().map(Some)
                } else {
                    Ok(Some(self.lexer.next()))
                };
            }
            let (end, expected) = if is_object {
                (b'}', "comma or object end")
            } else {
                (b']', "comma or array end")
            };
            if !self.lexer.takes(end) {
                let found = self.lexer.next();
                return Err(self.unexpected(expected, &found));
            }
            self.end()?;
        }
        Ok(None)
    }

    /// Makes a value of the innermost table, which has all its items.
    fn end(&mut self) -> mlua::Result<()> {
        let depth = self.open.len();
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        self.slots -= if open.is_object { 2 } else { 1 };
        let table = match &self.parked {
            Some(parked) if open.parked > 0 => {
                let table = parked.raw_get(depth)?;
                self.add_to(&table, open)?;
                table
            }
            _ => self.make(open)?,
        };
        self.items.push(Item::Table(table));
        self.held += 1;
        Ok(())
    }

    /// The table with all items from its first on.
    fn make(&mut self, open: Open) -> mlua::Result<Table> {
        let items = self.items.drain(open.first..);
        self.held -= held(items.as_slice());
        if open.is_object {
            return self.lua.create_table_from(Pairs::new(items));
        }
        push::sequence(self.lua, items.map(Pushed::from))
    }

    /// Moves a table's items, from its first on, to Lua one by one.
    fn add_to(&mut self, table: &Table, open: Open) -> mlua::Result<()> {
        let mut items = self.items.drain(open.first..);
        self.held -= held(items.as_slice());
        let mut len = open.parked;
        while let Some(item) = items.next() {
            if open.is_object {
                table.raw_set(Pushed::from(item), items.next().map(Pushed::from))?;
            } else {
                len += 1;
                table.raw_seti(len, Pushed::from(item))?;
            }
        }
        Ok(())
    }

    /// Gives Lua all items that have their place, so that there is room for more.
    fn hand_over(&mut self) -> mlua::Result<()> {
        let parked = match self.parked.take() {
            Some(parked) => parked,
            None => self.lua.create_table()?,
        };
        // From the innermost outwards: what is taken is always at the end, but for a key that waits for its value.
        let mut waiting: Vec<Option<Item<'a>>> = Vec::with_capacity(self.open.len());
        for at in (0..self.open.len()).rev() {
            let open = self.open[at];
            let is_waiting = open.is_object && (self.items.len() - open.first) % 2 == 1;
            waiting.push(if is_waiting { self.items.pop() } else { None });
            let (depth, count) = (at + 1, self.items.len() - open.first);
            if count == 0 {
                continue;
            }
            if open.parked > 0 {
                let table = parked.raw_get(depth)?;
                self.add_to(&table, open)?;
            } else {
                parked.raw_set(depth, self.make(open)?)?;
            }
            self.open[at].parked += count;
        }
        for open in &mut self.open {
            open.first = self.items.len();
            self.items.extend(waiting.pop().flatten());
        }
        self.parked = Some(parked);
        Ok(())
    }

    /// The value of the whole document.
    fn root(&mut self) -> mlua::Result<Value> {
        match self.items.pop() {
            Some(item) => Pushed::from(item).into_lua(self.lua),
            None => Ok(Value::Nil),
        }
    }
}

fn held(items: &[Item<'_>]) -> usize {
    let is_held = |item: &&Item<'_>| matches!(item, Item::Table(_));
    items.iter().filter(is_held).count()
}
