//! Walking through a table that may be of any size.

use mlua::{Function, Lua, Table, Value};

/// The pairs of a table in its own order, without a hold on more than one of them: what Rust holds of Lua has its place on a
/// stack of Lua's, which has room for some thousand values.
pub(super) struct Walk {
    next: Function,
    table: Value,
    key: Value,
}

/// Under this name the registry has Lua's own `next`.
const NEXT: &str = "next";

/// Keeps Lua's own `next` for later walks.
pub(super) fn keep_next(lua: &Lua) -> mlua::Result<()> {
    let next: Function = lua.globals().raw_get("next")?;
    lua.set_named_registry_value(NEXT, next)
}

/// Lua's own `next`.
pub(super) fn next(lua: &Lua) -> mlua::Result<Function> {
    lua.named_registry_value(NEXT)
}

impl Walk {
    pub(super) fn new(lua: &Lua, table: Table) -> mlua::Result<Walk> {
        Ok(Walk {
            next: next(lua)?,
            table: Value::Table(table),
            key: Value::Nil,
        })
    }

    /// The next pair, if there is one.
    pub(super) fn step(&mut self) -> mlua::Result<Option<(Value, Value)>> {
        let (key, value): (Value, Value) = self.next.call((&self.table, &self.key))?;
        self.key = key.clone();
        Ok((!key.is_nil()).then_some((key, value)))
    }

    /// Leaves what it holds of Lua in a table, at the place of its depth.
    pub(super) fn park(&mut self, parked: &Table, depth: usize) -> mlua::Result<()> {
        park(parked, 2 * depth, &mut self.table)?;
        park(parked, 2 * depth + 1, &mut self.key)
    }

    /// Takes that back.
    pub(super) fn fetch(&mut self, parked: &Table, depth: usize) -> mlua::Result<()> {
        self.table = parked.raw_get(2 * depth)?;
        self.key = parked.raw_get(2 * depth + 1)?;
        Ok(())
    }
}

/// Moves a value to a place of a table.
pub(super) fn park(parked: &Table, place: usize, value: &mut Value) -> mlua::Result<()> {
    parked.raw_set(place, std::mem::replace(value, Value::Nil))
}
