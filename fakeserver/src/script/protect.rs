//! Stand-ins: the tables that scripts may read and not change.

use mlua::{Function, Lua, MultiValue, Table, Value};

use super::arguments::Arguments;
use super::raise::{Raised, argument_error, library_error};
use super::sandbox::Sandbox;

const READ_ONLY: &str = "Attempt to modify a readonly table";

/// Libraries behind a stand-in.
const LIBRARIES: [&str; 9] = [
    "bit",
    "cjson",
    "cmsgpack",
    "coroutine",
    "math",
    "redis",
    "string",
    "struct",
    "table",
];

impl Sandbox {
    /// Runs `work` while other globals are to be seen than usual.
    pub(super) fn look_up_globals_in<T>(
        &self,
        globals: &Table,
        work: impl FnOnce(&Sandbox) -> mlua::Result<T>,
    ) -> mlua::Result<T> {
        let usual: Value = self.globals.raw_get("__index")?;
        self.globals.raw_set("__index", globals)?;
        let result = work(self);
        self.globals.raw_set("__index", usual)?;
        result
    }

    /// A stand-in for a table that libraries may read; what it does not hold raises an error.
    pub(super) fn read_only(&self, hidden: &Table) -> mlua::Result<Table> {
        let refuse = refuse_writes(&self.lua)?;
        let shown = self.refuse_missing(hidden)?;
        let table = stand_in(&self.lua, &self.stand_ins, &refuse, hidden)?;
        let shown = stand_in(&self.lua, &self.stand_ins, &refuse, &shown)?;
        self.metatables.raw_set(&table, shown)?;
        Ok(table)
    }

    /// Has a table raise an error where it holds nothing; its metatable.
    pub(super) fn refuse_missing(&self, table: &Table) -> mlua::Result<Table> {
        let meta = self.lua.create_table()?;
        meta.raw_set("__index", missing_global(&self.lua)?)?;
        table.set_metatable(Some(meta.clone()))?;
        Ok(meta)
    }
}

/// Under this name the registry has the stand-ins, each with the table behind it.
const STAND_INS: &str = "stand-ins";

/// Makes the table of stand-ins.
pub(super) fn keep_stand_ins(lua: &Lua) -> mlua::Result<Table> {
    let stand_ins = lua.create_table()?;
    lua.set_named_registry_value(STAND_INS, &stand_ins)?;
    Ok(stand_ins)
}

/// The table behind a stand-in; none if it is an ordinary table. Stand-ins are empty, so only empty tables need be asked about.
pub(super) fn behind(lua: &Lua, table: &Table) -> mlua::Result<Option<Table>> {
    let stand_ins: Table = lua.named_registry_value(STAND_INS)?;
    stand_ins.raw_get(table)
}

/// What functions of `sandbox.lua` call with their own arguments when those are wrong, by the name of the function.
pub(super) fn refusals(lua: &Lua) -> mlua::Result<Table> {
    let refusals = lua.create_table()?;
    let add = |name: &'static str, refuse: fn(&Arguments<'_>) -> mlua::Error| {
        let function = lua.create_function(move |lua, values: MultiValue| {
            Err::<(), _>(refuse(&Arguments::of_caller(lua, values, name)))
        })?;
        refusals.raw_set(name, function)
    };
    add("xpcall", |args| args.error(2, "value expected"))?;
    add("resume", |args| args.error(1, "coroutine expected"))?;
    add("insert", |args| match (args.get(1), args.get(2)) {
        (Some(Value::Table(_)), _) if !(2..=3).contains(&args.len()) => {
            args.failure("wrong number of arguments to 'insert'")
        }
        (Some(Value::Table(_)), at) if args.len() == 3 && args.number(2).is_err() => {
            args.type_error(2, "number", at)
        }
        (Some(Value::Table(_)), _) => Raised::Text(READ_ONLY.into()).into(),
        (list, _) => args.type_error(1, "table", list),
    })?;
    add("foreach", |args| match (args.get(1), args.get(2)) {
        (Some(Value::Table(_)), f) => args.type_error(2, "function", f),
        (list, _) => args.type_error(1, "table", list),
    })?;
    Ok(refusals)
}

/// The functions that see through a stand-in, or refuse to write to one.
pub(super) fn add_seeing_through(lua: &Lua, real: &Table, stand_ins: &Table) -> mlua::Result<()> {
    let next: Function = real.raw_get("next")?;
    let (known, step) = (stand_ins.clone(), next.clone());
    let pairs = lua.create_function(move |lua, values: MultiValue| {
        let args = Arguments::new(lua, values);
        let table = table_argument(&args)?;
        let Some(hidden) = known.raw_get::<Option<Table>>(table)? else {
            return Ok((step.clone(), table.clone(), Value::Nil));
        };
        // The iteration's state is in the script's hands, so it is given a copy.
        let copy = lua.create_table()?;
        hidden.for_each(|key: Value, value: Value| copy.raw_set(key, value))?;
        Ok((step.clone(), copy, Value::Nil))
    })?;
    real.raw_set("pairs", pairs)?;
    let known = stand_ins.clone();
    let public_next = lua.create_function(move |lua, values: MultiValue| {
        let args = Arguments::new(lua, values);
        let table = table_argument(&args)?;
        let key = args.get(2).cloned().unwrap_or(Value::Nil);
        let hidden: Option<Table> = known.raw_get(table)?;
        next.call::<MultiValue>((hidden.as_ref().unwrap_or(table), key))
            .map_err(|_| Raised::Text(b"invalid key to 'next'".to_vec()).into())
    })?;
    real.raw_set("next", public_next)?;
    let known = stand_ins.clone();
    let rawget = lua.create_function(move |lua, values: MultiValue| {
        let args = Arguments::new(lua, values);
        let table = table_argument(&args)?;
        let hidden: Option<Table> = known.raw_get(table)?;
        let Some(key) = args.get(2) else {
            return Err(argument_error(lua, 2, "value expected"));
        };
        hidden.as_ref().unwrap_or(table).raw_get::<Value>(key)
    })?;
    real.raw_set("rawget", rawget)?;
    add_refusing(lua, real, stand_ins)
}

fn add_refusing(lua: &Lua, real: &Table, stand_ins: &Table) -> mlua::Result<()> {
    let known = stand_ins.clone();
    let rawset = lua.create_function(move |lua, values: MultiValue| {
        let args = Arguments::new(lua, values);
        let table = table_argument(&args)?;
        let (Some(key), Some(value)) = (args.get(2), args.get(3)) else {
            let missing = if args.get(2).is_none() { 2 } else { 3 };
            return Err(argument_error(lua, missing, "value expected"));
        };
        if known.contains_key(table)? {
            return Err(Raised::Text(READ_ONLY.into()).into());
        }
        match key {
            Value::Nil => return Err(Raised::Text(b"table index is nil".to_vec()).into()),
            Value::Number(n) if n.is_nan() => {
                return Err(Raised::Text(b"table index is NaN".to_vec()).into());
            }
            key => table.raw_set(key, value)?,
        }
        Ok(table.clone())
    })?;
    real.raw_set("rawset", rawset)?;
    let known = stand_ins.clone();
    let setmetatable = lua.create_function(move |lua, values: MultiValue| {
        let args = Arguments::new(lua, values);
        let table = table_argument(&args)?;
        let metatable = match args.get(2) {
            Some(Value::Nil) => None,
            Some(Value::Table(metatable)) => Some(metatable.clone()),
            _ => return Err(argument_error(lua, 2, "nil or table expected")),
        };
        if known.contains_key(table)? {
            return Err(Raised::Text(READ_ONLY.into()).into());
        }
        if let Some(old) = table.metatable()
            && !old.raw_get::<Value>("__metatable")?.is_nil()
        {
            return Err(library_error(lua, "cannot change a protected metatable"));
        }
        // A finalizer would run outside of any script; Lua 5.1 has none for tables.
        table.set_metatable(metatable)?;
        Ok(table.clone())
    })?;
    real.raw_set("setmetatable", setmetatable)
}

fn table_argument<'a>(args: &'a Arguments<'_>) -> mlua::Result<&'a Table> {
    match args.get(1) {
        Some(Value::Table(table)) => Ok(table),
        other => Err(args.type_error(1, "table", other)),
    }
}

/// Puts stand-ins in front of the libraries and the globals, and makes the latter what scripts run in.
pub(super) fn protect(
    lua: &Lua,
    real: &Table,
    stand_ins: &Table,
    metatables: &Table,
) -> mlua::Result<Table> {
    let refuse = refuse_writes(lua)?;
    let stand_in = |hidden: &Table| stand_in(lua, stand_ins, &refuse, hidden);
    for name in LIBRARIES {
        let hidden: Table = real.raw_get(name)?;
        real.raw_set(name, stand_in(&hidden)?)?;
    }
    let shown = lua.create_table()?;
    shown.raw_set("__index", missing_global(lua)?)?;
    real.set_metatable(Some(shown.clone()))?;
    let globals = stand_in(real)?;
    metatables.raw_set(&globals, stand_in(&shown)?)?;
    let strings: Table = real.raw_get("string")?;
    let string_meta = lua.create_table()?;
    string_meta.raw_set("__index", strings)?;
    let string_meta = stand_in(&string_meta)?;
    let (known, shown) = (stand_ins.clone(), metatables.clone());
    let getmetatable = lua.create_function(move |lua, values: MultiValue| {
        let args = Arguments::new(lua, values);
        match args.get(1) {
            None => Err(argument_error(lua, 1, "value expected")),
            Some(Value::Table(table)) if known.contains_key(table)? => shown.raw_get(table),
            Some(Value::Table(table)) => match table.metatable() {
                None => Ok(Value::Nil),
                Some(meta) => match meta.raw_get("__metatable")? {
                    Value::Nil => Ok(Value::Table(meta)),
                    shown => Ok(shown),
                },
            },
            Some(Value::String(_)) => Ok(Value::Table(string_meta.clone())),
            Some(_) => Ok(Value::Nil),
        }
    })?;
    real.raw_set("getmetatable", getmetatable)?;
    real.raw_set("_G", &globals)?;
    let meta = globals.metatable();
    lua.set_globals(globals)?;
    meta.map_or_else(|| lua.create_table(), Ok)
}

/// What only scripts have.
pub(super) fn remove_from_functions(real: &Table) -> mlua::Result<()> {
    real.raw_set("__redis__err__handler", Value::Nil)?;
    let redis: Table = real.raw_get("redis")?;
    for name in ["breakpoint", "debug", "replicate_commands"] {
        redis.raw_set(name, Value::Nil)?;
    }
    Ok(())
}

fn refuse_writes(lua: &Lua) -> mlua::Result<Function> {
    lua.create_function(|lua, _: Value| Err::<(), _>(library_error(lua, READ_ONLY)))
}

/// An empty table in front of a hidden one, which it reads from; it refuses writes.
fn stand_in(
    lua: &Lua,
    stand_ins: &Table,
    refuse: &Function,
    hidden: &Table,
) -> mlua::Result<Table> {
    let (table, meta) = (lua.create_table()?, lua.create_table()?);
    meta.raw_set("__index", hidden)?;
    meta.raw_set("__newindex", refuse)?;
    table.set_metatable(Some(meta))?;
    stand_ins.raw_set(&table, hidden)?;
    Ok(table)
}

/// What refuses to read a global that is not there.
fn missing_global(lua: &Lua) -> mlua::Result<Function> {
    lua.create_function(|lua, (_, name): (Value, Value)| -> mlua::Result<Value> {
        let name = match lua.coerce_string(name)? {
            Some(name) => name.as_bytes().to_vec(),
            None => b"(null)".to_vec(),
        };
        let text = [
            b"Script attempted to access nonexistent global variable '",
            &name[..],
            b"'",
        ]
        .concat();
        Err(library_error(lua, text))
    })
}
