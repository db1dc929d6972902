//! The table `redis`, but for `call` and `pcall`, which need the engine and are put in place for each script.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use mlua::{Lua, LuaString, MultiValue, Table, Value};

use super::arguments::{Arguments, number_text};
use super::raise::Raised;
use super::sandbox::Shared;
use super::{Sha, run};
use crate::engine::VERSION;
use crate::resolve::find;
use crate::wire::Request;

/// Levels of the log.
const LEVELS: [(&str, i32); 4] = [
    ("LOG_DEBUG", 0),
    ("LOG_NOTICE", 2),
    ("LOG_VERBOSE", 1),
    ("LOG_WARNING", 3),
];
/// Flags of `redis.set_repl`.
const REPLICATION: [(&str, i32); 5] = [
    ("REPL_ALL", 3),
    ("REPL_AOF", 1),
    ("REPL_NONE", 0),
    ("REPL_REPLICA", 2),
    ("REPL_SLAVE", 2),
];

/// Adds `redis.log` and its levels.
pub(super) fn add_log(lua: &Lua, redis: &Table) -> mlua::Result<()> {
    for (name, level) in LEVELS {
        redis.raw_set(name, level)?;
    }
    redis.raw_set("log", lua.create_function(log)?)
}

/// Adds the version as text and as number.
pub(super) fn add_version(redis: &Table) -> mlua::Result<()> {
    redis.raw_set("REDIS_VERSION", VERSION)?;
    redis.raw_set("REDIS_VERSION_NUM", 0x0007_000f)
}

pub(super) fn library(lua: &Lua, shared: &Arc<Shared>) -> mlua::Result<Table> {
    let redis = lua.create_table()?;
    for (name, value) in REPLICATION {
        redis.raw_set(name, value)?;
    }
    add_log(lua, &redis)?;
    add_version(&redis)?;
    let calling = Arc::clone(shared);
    redis.raw_set(
        "call",
        lua.create_function(move |lua, values| run::call(lua, &values, &calling))?,
    )?;
    let calling = Arc::clone(shared);
    redis.raw_set(
        "pcall",
        lua.create_function(move |lua, values| run::pcall(lua, &values, &calling))?,
    )?;
    let checked = Arc::clone(shared);
    redis.raw_set(
        "acl_check_cmd",
        lua.create_function(move |_, values| acl_check_cmd(&values, &checked))?,
    )?;
    redis.raw_set(
        "breakpoint",
        lua.create_function(|_, _: MultiValue| Ok(false))?,
    )?;
    redis.raw_set("debug", lua.create_function(|_, _: MultiValue| Ok(()))?)?;
    redis.raw_set(
        "error_reply",
        lua.create_function(|lua, values| error_reply(lua, &values))?,
    )?;
    redis.raw_set(
        "replicate_commands",
        lua.create_function(|_, _: MultiValue| Ok(true))?,
    )?;
    redis.raw_set("set_repl", lua.create_function(set_repl)?)?;
    redis.raw_set("sha1hex", lua.create_function(sha1hex)?)?;
    redis.raw_set(
        "status_reply",
        lua.create_function(|lua, values| status_reply(lua, &values))?,
    )?;
    let shared = Arc::clone(shared);
    let setresp = lua.create_function(move |lua, values| setresp(lua, values, &shared))?;
    redis.raw_set("setresp", setresp)?;
    Ok(redis)
}

pub(super) fn not_running() -> mlua::Error {
    error("redis.call/pcall can only be called inside a script invocation")
}

/// An error of the table's functions: a table with the text behind the code `ERR`.
pub(super) fn error(text: &str) -> mlua::Error {
    Raised::Reply(format!("ERR {text}").into_bytes()).into()
}

/// `redis.sha1hex(text)`: the digest in hexadecimal digits; anything that is not text counts as empty.
fn sha1hex(lua: &Lua, values: MultiValue) -> mlua::Result<LuaString> {
    let args = Arguments::new(lua, values);
    if args.len() != 1 {
        return Err(error("wrong number of arguments"));
    }
    let text = args.string(1).unwrap_or_default();
    lua.create_string(Sha::of(&text).as_bytes())
}

/// `redis.error_reply(text)`: a table with an error; a text without a code gets `ERR`.
fn error_reply(lua: &Lua, values: &MultiValue) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set("err", LuaString::wrap(error_text(values)))?;
    Ok(table)
}

/// The text of an error: `-CODE message` and `CODE message` keep their code, a single word is a message (`script_lua.c`,
/// `luaPushErrorBuff`).
fn error_text(values: &MultiValue) -> Vec<u8> {
    let (1, Some(Value::String(text))) = (values.len(), values.front()) else {
        return b"ERR wrong number or type of arguments".to_vec();
    };
    let text = text.as_bytes();
    let text = text.strip_prefix(b"-").unwrap_or(&text);
    let (code, message) = match memchr::memchr(b' ', text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (&b"ERR"[..], text),
    };
    [code, b" ", trim(message)].concat()
}

fn trim(text: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !matches!(byte, b'\r' | b'\n');
    match (
        text.iter().position(is_text),
        text.iter().rposition(is_text),
    ) {
        (Some(first), Some(last)) => &text[first..=last],
        _ => b"",
    }
}

/// `redis.status_reply(text)`: a table with a status.
fn status_reply(lua: &Lua, values: &MultiValue) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(0, 1)?;
    match (values.len(), values.front()) {
        (1, Some(Value::String(text))) => table.raw_set("ok", text)?,
        _ => table.raw_set("err", "ERR wrong number or type of arguments")?,
    }
    Ok(table)
}

/// `redis.log(level, text ...)`: there is no log to write to, so only the arguments are checked.
fn log(lua: &Lua, values: MultiValue) -> mlua::Result<()> {
    let args = Arguments::new(lua, values);
    if args.len() < 2 {
        return Err(error("redis.log() requires two arguments or more."));
    }
    let level = match args.get(1) {
        Some(Value::Integer(level)) => *level,
        Some(Value::Number(level)) => super::arguments::truncate(*level),
        // A string that spells a number will do, as for `lua_isnumber`.
        Some(Value::String(_)) => args
            .integer(1)
            .map_err(|_| error("First argument must be a number (log level)."))?,
        _ => return Err(error("First argument must be a number (log level).")),
    };
    if (0..=3).contains(&level) {
        Ok(())
    } else {
        Err(error("Invalid debug level."))
    }
}

/// `redis.set_repl(flags)`: nothing is replicated, so only the argument is checked.
fn set_repl(lua: &Lua, values: MultiValue) -> mlua::Result<()> {
    let args = Arguments::new(lua, values);
    if args.len() != 1 {
        return Err(error("redis.set_repl() requires two arguments."));
    }
    let flags = args.integer(1).unwrap_or(0);
    if flags & !3 == 0 {
        Ok(())
    } else {
        Err(error(
            "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
        ))
    }
}

/// `redis.setresp(2 | 3)`: in which protocol's form replies reach the script.
fn setresp(lua: &Lua, values: MultiValue, shared: &Shared) -> mlua::Result<()> {
    let args = Arguments::new(lua, values);
    if args.len() != 1 {
        return Err(error("redis.setresp() requires one argument."));
    }
    match args.integer(1).unwrap_or(0) {
        2 => shared.resp3.store(false, Relaxed),
        3 => shared.resp3.store(true, Relaxed),
        _ => return Err(error("RESP version must be 2 or 3.")),
    }
    Ok(())
}

/// `redis.acl_check_cmd(word ...)`: whether the script's user may run the command. Errors: there is no such command.
fn acl_check_cmd(values: &MultiValue, shared: &Shared) -> mlua::Result<bool> {
    let mut request = Request::default();
    put_words(values, &mut request)?;
    let Some(row) = find(&request) else {
        return Err(error("Invalid command passed to redis.acl_check_cmd()"));
    };
    let user = shared.user();
    Ok(user.is_none_or(|user| user.check(row, &request).is_ok()))
}

/// Appends the words of a command from the arguments of `redis.call`. Errors: none at all; one that is neither text nor number.
pub(super) fn put_words(values: &MultiValue, request: &mut Request) -> mlua::Result<()> {
    if values.is_empty() {
        return Err(error(
            "Please specify at least one argument for this redis lib call",
        ));
    }
    for value in values {
        match value {
            Value::String(text) => request.push(&text.as_bytes()),
            Value::Integer(n) => request.push(command_number(*n as f64).as_bytes()),
            Value::Number(n) => request.push(command_number(*n).as_bytes()),
            _ => {
                return Err(error(
                    "Lua redis lib command arguments must be strings or integers",
                ));
            }
        }
    }
    Ok(())
}

/// A number as an argument of a command, `%.17g`.
fn command_number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e14 {
        return number_text(value);
    }
    crate::value::number::format_double(value)
}
