//! Arguments of library functions, checked as Lua's C functions check theirs.

use std::ops::Deref;

use mlua::{BorrowedBytes, Lua, MultiValue, Value};

use super::raise::{argument_error, caller_argument_error, library_error_at};

/// The arguments of a call, by position from 1, with Lua's own conversions and error texts.
pub(super) struct Arguments<'lua> {
    lua: &'lua Lua,
    values: MultiValue,
    /// The function of the sandbox that calls this one, if an error is about that.
    caller: Option<&'static str>,
}

impl<'lua> Arguments<'lua> {
    pub(super) fn new(lua: &'lua Lua, values: MultiValue) -> Arguments<'lua> {
        Arguments {
            lua,
            values,
            caller: None,
        }
    }

    /// The arguments of the sandbox's own function that calls this one; its name, should the script not have one for it.
    pub(super) fn of_caller(
        lua: &'lua Lua,
        values: MultiValue,
        name: &'static str,
    ) -> Arguments<'lua> {
        Arguments {
            lua,
            values,
            caller: Some(name),
        }
    }

    /// Number of arguments.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// The argument at `position`, if it was given.
    pub(super) fn get(&self, position: usize) -> Option<&Value> {
        self.values.get(position - 1)
    }

    /// The bytes of a string, or of a number as Lua prints it. Errors: another type.
    pub(super) fn string(&self, position: usize) -> mlua::Result<Vec<u8>> {
        match self.get(position) {
            Some(Value::String(text)) => Ok(text.as_bytes().to_vec()),
            Some(Value::Integer(n)) => Ok(number_text(*n as f64).into_bytes()),
            Some(Value::Number(n)) => Ok(number_text(*n).into_bytes()),
            other => Err(self.type_error(position, "string", other)),
        }
    }

    /// As [`Arguments::string`], without a copy of a string.
    pub(super) fn text(&self, position: usize) -> mlua::Result<Text> {
        match self.get(position) {
            Some(Value::String(text)) => Ok(Text::Lua(text.as_bytes())),
            _ => self.string(position).map(Text::Own),
        }
    }

    /// A number, or a string that is the spelling of one. Errors: another type.
    pub(super) fn number(&self, position: usize) -> mlua::Result<f64> {
        let value = self.get(position);
        match value {
            Some(Value::Integer(n)) => Ok(*n as f64),
            Some(Value::Number(n)) => Ok(*n),
            Some(Value::String(_)) => {
                let number = self
                    .lua
                    .coerce_number(value.cloned().unwrap_or(Value::Nil))?;
                number.ok_or_else(|| self.type_error(position, "number", value))
            }
            other => Err(self.type_error(position, "number", other)),
        }
    }

    /// A number cut to an integer as C does it.
    pub(super) fn integer(&self, position: usize) -> mlua::Result<i64> {
        self.number(position).map(truncate)
    }

    /// An error about the argument at `position`.
    pub(super) fn error(&self, position: usize, text: &str) -> mlua::Error {
        match self.caller {
            Some(name) => caller_argument_error(self.lua, name, position, text),
            None => argument_error(self.lua, position, text),
        }
    }

    /// An error of the function, with the place of its call.
    pub(super) fn failure(&self, text: &str) -> mlua::Error {
        library_error_at(self.lua, 1 + usize::from(self.caller.is_some()), text)
    }

    /// The error of an argument of the wrong type.
    pub(super) fn type_error(
        &self,
        position: usize,
        expected: &str,
        found: Option<&Value>,
    ) -> mlua::Error {
        let found = found.map_or("no value", type_name);
        self.error(position, &format!("{expected} expected, got {found}"))
    }
}

/// The bytes of a string argument.
pub(super) enum Text {
    Lua(BorrowedBytes),
    Own(Vec<u8>),
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Text::Lua(bytes) => bytes,
            Text::Own(bytes) => bytes,
        }
    }
}

/// The number that a value is; mlua tells whole ones apart, Lua 5.1 does not.
pub(super) fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(n) => Some(*n as f64),
        Value::Number(n) => Some(*n),
        _ => None,
    }
}

/// The name that Lua's `type` answers.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Boolean(_) => "boolean",
        Value::Integer(_) | Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Table(_) => "table",
        Value::Function(_) => "function",
        Value::Thread(_) => "thread",
        _ => "userdata",
    }
}

/// A double to an integer as the x86-64 instruction does it, which is what a C cast compiles to.
pub(super) fn truncate(value: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

/// A number as Lua prints it, `%.14g`.
pub(super) fn number_text(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e14 && (value != 0.0 || value.is_sign_positive()) {
        return (value as i64).to_string();
    }
    crate::value::number::format_general(value, 14)
}
