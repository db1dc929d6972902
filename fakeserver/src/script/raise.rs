//! Errors that the server raises inside of a script.
//!
//! Rust can only raise mlua's own error values, so each place where a script can catch one turns it into what 7.0.15 would
//! have raised: see `sandbox.lua`.

use std::fmt;

use mlua::{Lua, LuaString, Table, Value};

/// An error on its way through Lua.
#[derive(Clone, Debug)]
pub(super) enum Raised {
    /// What `redis.*` raises: a table whose field `err` is this text.
    Reply(Vec<u8>),
    /// The same of a command that failed or was refused, which has been counted as an error already.
    Failed(Vec<u8>),
    /// What a library function raises: a string.
    Text(Vec<u8>),
    /// The end of the script: nothing in it can catch this.
    Fatal(Vec<u8>),
    /// The script was killed. It may catch this, but is told so again at its next line.
    Killed,
    /// What the script itself raised inside of a callback.
    Value(Value),
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.clone().into_text()))
    }
}

impl std::error::Error for Raised {}

impl Raised {
    /// What is behind an error value that was caught. Errors of mlua itself count as texts.
    pub(super) fn of(error: &mlua::Error) -> Raised {
        match error.downcast_ref::<Raised>() {
            Some(raised) => raised.clone(),
            None => Raised::Text(match root(error) {
                // mlua adds where in Lua that was.
                mlua::Error::RuntimeError(text) => {
                    let text = text.split("\nstack traceback:").next();
                    text.unwrap_or_default().into()
                }
                error => error.to_string().into_bytes(),
            }),
        }
    }

    /// The text.
    pub(super) fn into_text(self) -> Vec<u8> {
        match self {
            Raised::Reply(text)
            | Raised::Failed(text)
            | Raised::Text(text)
            | Raised::Fatal(text) => text,
            Raised::Killed => KILLED.into(),
            Raised::Value(Value::String(text)) => text.as_bytes().to_vec(),
            Raised::Value(value) => super::arguments::type_name(&value).into(),
        }
    }

    /// The value that a script sees.
    pub(super) fn into_value(self, lua: &Lua) -> mlua::Result<Value> {
        match self {
            Raised::Killed => Raised::Reply(KILLED.into()).into_value(lua),
            Raised::Reply(text) => {
                let table = lua.create_table_with_capacity(0, 2)?;
                table.raw_set("err", lua.create_string(text)?)?;
                Ok(Value::Table(table))
            }
            Raised::Failed(text) => failed(lua, &text).map(Value::Table),
            Raised::Text(text) => Ok(Value::String(lua.create_string(text)?)),
            Raised::Fatal(_) => Err(self.into()),
            Raised::Value(value) => Ok(value),
        }
    }
}

/// The error of a script that was killed.
pub(super) const KILLED: &[u8] = b"ERR Script killed by user with SCRIPT KILL...";

/// The error table of a command that failed.
pub(super) fn failed(lua: &Lua, text: &[u8]) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(0, 4)?;
    table.raw_set("err", LuaString::wrap(text))?;
    table.raw_set(IS_COUNTED, true)?;
    Ok(table)
}

/// The field of an error table that says that the error has been counted.
pub(super) const IS_COUNTED: &str = "ignore_error_stats_update";

impl From<Raised> for mlua::Error {
    fn from(raised: Raised) -> mlua::Error {
        mlua::Error::external(raised)
    }
}

fn root(error: &mlua::Error) -> &mlua::Error {
    match error {
        mlua::Error::CallbackError { cause, .. } => root(cause),
        error => error,
    }
}

/// An error of a library function, with the place of its call in front, as `luaL_error` makes it.
pub(super) fn library_error(lua: &Lua, text: impl AsRef<[u8]>) -> mlua::Error {
    library_error_at(lua, 1, text)
}

/// The same with the place of another caller, `level` calls away.
pub(super) fn library_error_at(lua: &Lua, level: usize, text: impl AsRef<[u8]>) -> mlua::Error {
    let place = lua.inspect_stack(level, |frame| {
        let source = frame.source().short_src?;
        // What the sandbox's own code calls is called by Lua itself in 7.0.15, which has no place.
        (source != "sandbox").then_some(())?;
        Some(format!("{source}:{}: ", frame.current_line()?))
    });
    let place = place.flatten().unwrap_or_default();
    Raised::Text([place.as_bytes(), text.as_ref()].concat()).into()
}

/// An error about an argument, as `luaL_argerror` makes it; `position` counts from 1.
pub(super) fn argument_error(lua: &Lua, position: usize, text: &str) -> mlua::Error {
    let text = argument_text(name_at(lua, 0), "?", position, text);
    library_error(lua, text)
}

/// The same about an argument of the sandbox's own function that calls the one that raises it. A tail call has left nothing by
/// which to name it but its usual name.
pub(super) fn caller_argument_error(
    lua: &Lua,
    usual: &str,
    position: usize,
    text: &str,
) -> mlua::Error {
    let by_sandbox = lua.inspect_stack(2, |frame| {
        frame.source().short_src.as_deref() == Some("sandbox")
    });
    let text = match (by_sandbox, name_at(lua, 1)) {
        // What the sandbox calls is called by Lua itself in 7.0.15, which has no name for it.
        (Some(true), _) => argument_text((None, false), "?", position, text),
        (_, name) => argument_text(name, usual, position, text),
    };
    library_error_at(lua, 2, text)
}

/// By which name a function of the stack was called, if by one, and whether as a method.
fn name_at(lua: &Lua, level: usize) -> (Option<String>, bool) {
    let name = lua.inspect_stack(level, |frame| {
        let names = frame.names();
        let name = names.name.map(std::borrow::Cow::into_owned);
        (name, names.name_what == Some("method"))
    });
    name.unwrap_or_default()
}

fn argument_text(
    (name, is_method): (Option<String>, bool),
    usual: &str,
    position: usize,
    text: &str,
) -> String {
    let name = name.as_deref().unwrap_or(usual);
    match (is_method, position) {
        (true, 1) => format!("calling '{name}' on bad self ({text})"),
        (true, _) => format!("bad argument #{} to '{name}' ({text})", position - 1),
        (false, _) => format!("bad argument #{position} to '{name}' ({text})"),
    }
}
