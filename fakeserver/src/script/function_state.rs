//! The Lua state of functions, and what a library finds in it while it is being loaded (`function_lua.c`).

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

use mlua::{Lua, MultiValue, Table, Value};

use super::arguments::{as_number, number_text};
use super::function::{BAD_NAME, Function, Making, is_name};
use super::protect::behind;
use super::raise::Raised;
use super::random::Lrand48;
use super::redis_api::{self, error};
use super::sandbox::{Kind, LOAD_TIMEOUT, Sandbox};
use super::{ScriptFlag, ScriptFlags};
use crate::config::Config;
use crate::error::CommandError;
use crate::value::Blob;

/// How long loading a library may take.
const LOAD_TIME_MS: i64 = 500;
/// Instructions that it may take where no time passes.
const LOAD_BUDGET: u64 = 50_000_000;

/// What the library that is being loaded has registered.
#[derive(Debug, Default)]
struct Loading {
    functions: Vec<Function>,
    names: BTreeSet<Blob>,
}

/// A Lua state in which libraries are loaded and functions run.
#[derive(Debug)]
pub(super) struct FunctionState {
    pub sandbox: Sandbox,
    /// Where globals are looked up while a library is being loaded: there is nothing but the table `redis`, and little in it.
    load_globals: Table,
}

impl FunctionState {
    pub(super) fn new(random: Arc<Lrand48>, config: &Config) -> mlua::Result<FunctionState> {
        let sandbox = Sandbox::new(random, Kind::Functions, config)?;
        let lua = &sandbox.lua;
        let redis = lua.create_table()?;
        redis_api::add_log(lua, &redis)?;
        redis_api::add_version(&redis)?;
        redis.raw_set("register_function", lua.create_function(register)?)?;
        let load_globals = lua.create_table()?;
        load_globals.raw_set("redis", sandbox.read_only(&redis)?)?;
        sandbox.refuse_missing(&load_globals)?;
        Ok(FunctionState {
            sandbox,
            load_globals,
        })
    }

    /// Compiles and runs a library; what it has registered. Errors: it does not compile; what it raises.
    pub(super) fn load(
        &self,
        body: &[u8],
        making: &Making<'_>,
    ) -> Result<Vec<Function>, CommandError> {
        let shared = &self.sandbox.shared;
        let by_clock = |until| {
            *shared
                .load_until
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = until;
        };
        self.sandbox
            .reset(making.config)
            .map_err(|error| CommandError::custom(Raised::of(&error).into_text()))?;
        if let Some(driver) = &making.driver {
            let until = driver.now().plus_millis(LOAD_TIME_MS);
            by_clock(Some((Arc::clone(driver), until)));
        } else {
            shared.budget.store(LOAD_BUDGET, Relaxed);
        }
        let loaded = self.try_load(body);
        by_clock(None);
        self.sandbox.recover();
        loaded
    }

    fn try_load(&self, body: &[u8]) -> Result<Vec<Function>, CommandError> {
        let sandbox = &self.sandbox;
        let chunk = sandbox.compile(body).map_err(|text| {
            let prefix = b"ERR Error compiling function: ";
            CommandError::custom([&prefix[..], &text].concat())
        })?;
        sandbox.lua.set_app_data(Loading::default());
        let (ok, value): (bool, Value) = sandbox
            .look_up_globals_in(&self.load_globals, |sandbox| sandbox.protected.call(chunk))
            .unwrap_or_else(|error| (false, Value::Error(Box::new(error))));
        let loaded = sandbox.lua.remove_app_data::<Loading>().unwrap_or_default();
        if ok {
            return Ok(loaded.functions);
        }
        let text = if sandbox.shared.budget.load(Relaxed) == 0 {
            LOAD_TIMEOUT.into()
        } else {
            error_text(value)
        };
        let prefix = b"ERR Error registering functions: ";
        Err(CommandError::custom([&prefix[..], &text].concat()))
    }
}

/// The text of what a library raised.
fn error_text(value: Value) -> Vec<u8> {
    let text = match value {
        Value::Error(error) => match Raised::of(&error) {
            Raised::Reply(text) | Raised::Fatal(text) => return text,
            raised => raised.into_text(),
        },
        Value::Table(table) => match table.raw_get("err") {
            Ok(Value::String(text)) => return text.as_bytes().to_vec(),
            _ => b"unknown error".to_vec(),
        },
        Value::String(text) => text.as_bytes().to_vec(),
        _ => b"unknown error".to_vec(),
    };
    [b"ERR ", &*text].concat()
}

/// `redis.register_function(name, callback)` or `redis.register_function{function_name=, callback=, description=, flags=}`.
fn register(lua: &Lua, values: MultiValue) -> mlua::Result<()> {
    let Some(mut loading) = lua.app_data_mut::<Loading>() else {
        return Err(error(
            "redis.register_function can only be called on FUNCTION LOAD command",
        ));
    };
    let mut values = values.into_iter();
    let read = match (values.next(), values.next(), values.next()) {
        (Some(first), None, None) => named(lua, &first),
        (Some(name), Some(callback), None) => positional(&name, callback),
        _ => Err("wrong number of arguments to redis.register_function"),
    };
    let read = read.map_err(error)?;
    if !is_name(&read.name) {
        return Err(error(BAD_NAME));
    }
    if !loading.names.insert(read.name.clone()) {
        return Err(error("Function already exists in the library"));
    }
    loading.functions.push(Function {
        name: read.name,
        description: read.description,
        flags: read.flags,
        callback: Arc::new(lua.create_registry_value(read.callback)?),
    });
    Ok(())
}

/// What a library says of a function.
struct Registration {
    name: Blob,
    description: Option<Blob>,
    flags: ScriptFlags,
    callback: mlua::Function,
}

fn positional(name: &Value, callback: Value) -> Result<Registration, &'static str> {
    let name = text(name).ok_or("first argument to redis.register_function must be a string")?;
    let Value::Function(callback) = callback else {
        return Err("second argument to redis.register_function must be a function");
    };
    Ok(Registration {
        name,
        description: None,
        flags: ScriptFlags::DECLARED,
        callback,
    })
}

fn named(lua: &Lua, arguments: &Value) -> Result<Registration, &'static str> {
    let Value::Table(arguments) = arguments else {
        return Err(
            "calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).",
        );
    };
    let hidden = behind(lua, arguments).unwrap_or_default();
    let arguments = hidden.as_ref().unwrap_or(arguments);
    let (mut name, mut description, mut callback) = (None, None, None);
    let mut flags = ScriptFlags::DECLARED;
    for pair in arguments.pairs::<Value, Value>() {
        let (key, value) = pair.map_err(|_| "unknown argument given to redis.register_function")?;
        let key = text(&key)
            .ok_or("named argument key given to redis.register_function is not a string")?;
        match &*key.to_ascii_lowercase() {
            b"function_name" => {
                name = Some(text(&value).ok_or(
                    "function_name argument given to redis.register_function must be a string",
                )?);
            }
            b"description" => {
                description = Some(text(&value).ok_or(
                    "description argument given to redis.register_function must be a string",
                )?);
            }
            b"callback" => match value {
                Value::Function(function) => callback = Some(function),
                _ => {
                    return Err(
                        "callback argument given to redis.register_function must be a function",
                    );
                }
            },
            b"flags" => flags = read_flags(&value)?,
            _ => return Err("unknown argument given to redis.register_function"),
        }
    }
    Ok(Registration {
        name: name.ok_or("redis.register_function must get a function name argument")?,
        description,
        flags,
        callback: callback.ok_or("redis.register_function must get a callback argument")?,
    })
}

fn read_flags(value: &Value) -> Result<ScriptFlags, &'static str> {
    let Value::Table(names) = value else {
        return Err(
            "flags argument to redis.register_function must be a table representing function flags",
        );
    };
    let mut flags = ScriptFlags::DECLARED;
    for name in names.sequence_values::<Value>() {
        let flag = name.ok().and_then(|name| text(&name));
        let flag = flag.and_then(|name| ScriptFlag::named_in_any_case(&name));
        flags.insert(flag.ok_or("unknown flag given")?);
    }
    Ok(flags)
}

/// A string, or a number as Lua prints it.
fn text(value: &Value) -> Option<Blob> {
    match value {
        Value::String(text) => Some(Blob::from(&*text.as_bytes())),
        value => as_number(value).map(|n| Blob::from(number_text(n))),
    }
}
