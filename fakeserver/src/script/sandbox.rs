//! The environment of scripts: the globals of 7.0.15 and nothing else, protected against change, bounded in work and memory.
//!
//! Redis marks tables read-only inside of Lua itself. Here each such table is reached through a stand-in, an empty table whose
//! metatable reads from the real one and refuses writes; `pairs`, `next`, `rawget` and the like see through it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use mlua::{Function, Lua, LuaOptions, LuaString, MultiValue, RegistryKey, StdLib, Table, Value};

use super::arguments::{Arguments, as_number, number_text, type_name};
use super::protect::{
    add_seeing_through, keep_stand_ins, protect, refusals, remove_from_functions,
};
use super::raise::{KILLED, Raised, failed, library_error};
use super::random::Lrand48;
use super::run::Seat;
use super::{bit, cjson, cmsgpack, limits, redis_api, strings, structs, walk};
use crate::acl::User;
use crate::clock::Timestamp;
use crate::config::Config;
use crate::running::Interlude;

/// The same for what is not done by instructions of Lua.
const LOOK_UP_PERIOD: u64 = 1 << 17;
/// Bytes of one buffer where memory has no limit: Lua's lengths are C's ints.
pub(super) const BUFFER_MAX: usize = i32::MAX as usize;
/// Frames of a stack that are searched for the script's own.
const FRAMES_MAX: usize = 200;
/// What converting a value costs, in instructions: a table that holds another twice, and so on, stands for more values than
/// there is time for.
pub(super) const VALUE_COST: u64 = 100;

/// The error of a library that takes too long to load.
pub(super) const LOAD_TIMEOUT: &str = "ERR FUNCTION LOAD timeout";

/// Under this name the registry has Lua's own `loadstring`.
const LOADSTRING: &str = "loadstring";

/// The first byte of compiled code.
const BINARY: u8 = 0x1b;

/// Globals of Lua 5.1 that scripts do not have.
const REMOVED: [&str; 6] = [
    "dofile", "getfenv", "loadfile", "newproxy", "print", "setfenv",
];
/// What a Lua state is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Scripts,
    Functions,
}

/// What the functions of the environment share with whoever runs a script.
#[derive(Debug)]
pub(super) struct Shared {
    /// Whether replies of commands reach the script as RESP3 has them (`redis.setresp`).
    pub resp3: AtomicBool,
    /// Instructions that the running script has left.
    pub budget: AtomicU64,
    /// Bytes that the Lua state may hold, and each buffer of ours.
    pub memory_max: AtomicUsize,
    /// The running script has been told that it is killed, and ends at its next line.
    pub is_killed: AtomicBool,
    /// While a library is loaded, by when that has to be done.
    pub load_until: Mutex<Option<(Arc<dyn Interlude>, Timestamp)>>,
    pub random: Arc<Lrand48>,
    /// Where the engine is while a script runs.
    pub seat: Mutex<Seat>,
    /// Whose permissions `redis.acl_check_cmd` tells; none if everybody has all.
    user: Mutex<Option<Arc<User>>>,
}

impl Shared {
    /// A script begins that this user runs.
    pub(super) fn begin_for(&self, user: Option<Arc<User>>) {
        *self.user.lock().unwrap_or_else(PoisonError::into_inner) = user;
    }

    /// The user of the running script, if it may not do everything.
    pub(super) fn user(&self) -> Option<Arc<User>> {
        let user = self.user.lock().unwrap_or_else(PoisonError::into_inner);
        user.clone()
    }

    /// Whether so many bytes are more than a script may have at all.
    pub(super) fn is_too_much(&self, bytes: usize) -> bool {
        bytes > self.memory_max.load(Relaxed)
    }

    /// Whether loading a library takes too long, or the server ends; none if no library is loaded by the clock.
    pub(super) fn load_is_late(&self) -> Option<bool> {
        let until = self
            .load_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (driver, until) = until.as_ref()?;
        Some(driver.is_ending() || driver.now() > *until)
    }

    /// Charges work that is not done by instructions of Lua; whether it is time to look up from it. Errors: the budget is used
    /// up.
    pub(super) fn spend(&self, instructions: u64) -> mlua::Result<bool> {
        let before = self.budget.load(Relaxed);
        let left = before.saturating_sub(instructions);
        self.budget.store(left, Relaxed);
        if left > 0 {
            Ok(before / LOOK_UP_PERIOD != left / LOOK_UP_PERIOD)
        } else {
            Err(budget_spent())
        }
    }
}

/// A Lua state with everything that scripts find in it.
#[derive(Debug)]
pub(super) struct Sandbox {
    pub lua: Lua,
    pub kind: Kind,
    /// `run(script, KEYS, ARGV, is_function)`: whether it succeeded, and its value or error.
    pub run: Function,
    /// `protected(function)`: as `pcall`, without a conversion of the error.
    pub protected: Function,
    /// The metatable of the globals.
    pub globals: Table,
    pub stand_ins: Table,
    /// The metatables that scripts see of stand-ins that have one.
    pub metatables: Table,
    pub shared: Arc<Shared>,
    /// Scripts since the collector was last given a step.
    since_step: AtomicUsize,
}

/// After so many scripts the collector gets a turn of so many steps of 2 KiB, as redis-server gives it one of 50 KiB
/// (`LUA_GC_CYCLE_PERIOD`), so that `used_memory_lua` stays low.
const SCRIPTS_PER_TURN: usize = 50;
const STEPS_PER_TURN: usize = 25;

impl Sandbox {
    pub(super) fn new(random: Arc<Lrand48>, kind: Kind, config: &Config) -> mlua::Result<Sandbox> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::new())?;
        let shared = Arc::new(Shared {
            resp3: AtomicBool::new(false),
            budget: AtomicU64::new(u64::MAX),
            memory_max: AtomicUsize::new(BUFFER_MAX),
            is_killed: AtomicBool::new(false),
            load_until: Mutex::new(None),
            random,
            seat: Mutex::default(),
            user: Mutex::new(None),
        });
        walk::keep_next(&lua)?;
        let real = lua.globals();
        let loadstring: Function = real.raw_get("loadstring")?;
        lua.set_named_registry_value(LOADSTRING, loadstring)?;
        for name in REMOVED {
            real.raw_set(name, Value::Nil)?;
        }
        add_libraries(&lua, &real, &shared)?;
        let stand_ins = keep_stand_ins(&lua)?;
        let metatables = lua.create_table()?;
        let raw_unpack: Function = real.raw_get("unpack")?;
        strings::add(&lua, &real, &shared)?;
        let (run, protected) = add_catching(&lua, &real, raw_unpack, &stand_ins)?;
        strings::add_gsub(&lua, &real, &shared, &protected)?;
        add_loading(&lua, &real, &shared)?;
        add_seeing_through(&lua, &real, &stand_ins)?;
        if kind == Kind::Functions {
            remove_from_functions(&real)?;
        }
        let globals = protect(&lua, &real, &stand_ins, &metatables)?;
        limits::set(&lua, &shared, config)?;
        Ok(Sandbox {
            since_step: AtomicUsize::new(0),
            lua,
            kind,
            run,
            protected,
            globals,
            stand_ins,
            metatables,
            shared,
        })
    }

    /// Compiles a script or a library. Errors: Lua's own text.
    pub(super) fn compile(&self, source: &[u8]) -> Result<Function, Vec<u8>> {
        let name = match self.kind {
            Kind::Scripts => b"@user_script".as_slice(),
            Kind::Functions => b"@user_function",
        };
        compile(&self.lua, source, name).map_err(|error| Raised::of(&error).into_text())
    }

    /// The same, and keeps it in Lua's registry.
    pub(super) fn compile_and_keep(&self, source: &[u8]) -> Result<Arc<RegistryKey>, Vec<u8>> {
        let kept = self.lua.create_registry_value(self.compile(source)?);
        kept.map(Arc::new)
            .map_err(|error| Raised::of(&error).into_text())
    }

    /// Prepares for the next script.
    pub(super) fn reset(&self, config: &Config) -> mlua::Result<()> {
        if self.shared.is_killed.swap(false, Relaxed) {
            limits::restore(&self.lua, &self.shared)?;
        }
        self.shared.resp3.store(false, Relaxed);
        let budget = match config.script_instructions_max {
            0 => u64::MAX,
            max => max,
        };
        self.shared.budget.store(budget, Relaxed);
        Ok(())
    }

    /// Frees some of what scripts left behind, and all of it if that is much: this Lua collects as it goes, not when memory
    /// runs out, so the next script would fail for the garbage of the last one.
    pub(super) fn recover(&self) {
        // A collection calls nothing that could fail, there being no finalizers here, but to begin one takes some bytes,
        // which memory that is full to the brim does not have.
        if self
            .shared
            .is_too_much(self.lua.used_memory().saturating_mul(4))
        {
            let _ = unlimited(&self.lua, || self.lua.gc_collect());
        } else if self.since_step.fetch_add(1, Relaxed) >= SCRIPTS_PER_TURN {
            self.since_step.store(0, Relaxed);
            unlimited(&self.lua, || {
                // True: a cycle has ended.
                (0..STEPS_PER_TURN).any(|_| self.lua.gc_step().unwrap_or(true))
            });
        }
    }
}

/// Compiles by Lua's own `loadstring`, whose errors are bytes; for mlua they are text. Errors: it does not compile.
fn compile(lua: &Lua, source: &[u8], name: &[u8]) -> mlua::Result<Function> {
    let loadstring: Function = lua.named_registry_value(LOADSTRING)?;
    // 7.0.15's Lua has no reader of compiled code: the first byte of such is just an unexpected one.
    let is_binary = source.first() == Some(&BINARY);
    let source = if is_binary { b"\x01" } else { source };
    match loadstring.call((LuaString::wrap(source), LuaString::wrap(name)))? {
        (Value::Function(function), _) => Ok(function),
        (_, Value::String(text)) => {
            let mut text = text.as_bytes().to_vec();
            if let (true, Some(place)) = (is_binary, text.strip_suffix(b"'char(1)'")) {
                text = [place, b"'char(27)'"].concat();
            }
            Err(Raised::Text(text).into())
        }
        _ => Err(library_error(lua, "the source cannot be loaded")),
    }
}

fn add_libraries(lua: &Lua, real: &Table, shared: &Arc<Shared>) -> mlua::Result<()> {
    real.raw_set("bit", bit::library(lua)?)?;
    real.raw_set("cjson", cjson::library(lua, shared)?)?;
    real.raw_set("cmsgpack", cmsgpack::library(lua, shared)?)?;
    real.raw_set("struct", structs::library(lua)?)?;
    real.raw_set("redis", redis_api::library(lua, shared)?)?;
    real.raw_set("__redis__err__handler", lua.create_function(handle_error)?)?;
    let math: Table = real.raw_get("math")?;
    let random = Arc::clone(shared);
    math.raw_set(
        "random",
        lua.create_function(move |lua, args| random.random.random(lua, args))?,
    )?;
    let random = Arc::clone(shared);
    math.raw_set(
        "randomseed",
        lua.create_function(move |lua, args| random.random.randomseed(lua, args))?,
    )
}

fn add_catching(
    lua: &Lua,
    real: &Table,
    unpack: Function,
    stand_ins: &Table,
) -> mlua::Result<(Function, Function)> {
    let as_value = lua.create_function(|lua, caught: Value| match caught {
        Value::Error(error) => Raised::of(&error).into_value(lua),
        value => Ok(value),
    })?;
    let is_fatal = lua.create_function(|_, caught: Value| {
        Ok(matches!(&caught, Value::Error(error) if is_fatal(error)))
    })?;
    let (pcall, xpcall, kind): (Value, Value, Value) = (
        real.raw_get("pcall")?,
        real.raw_get("xpcall")?,
        real.raw_get("type")?,
    );
    let handler: Value = real.raw_get("__redis__err__handler")?;
    let resume: Value = real.raw_get::<Table>("coroutine")?.raw_get("resume")?;
    lua.load(include_str!("sandbox.lua"))
        .set_name("=sandbox")
        .call((
            pcall,
            xpcall,
            resume,
            kind,
            unpack,
            handler,
            as_value,
            is_fatal,
            refusals(lua)?,
            real,
            stand_ins,
        ))
}

/// Loading inside of a script: text only, and a reader function runs before the parser does, never inside of it.
fn add_loading(lua: &Lua, real: &Table, shared: &Arc<Shared>) -> mlua::Result<()> {
    let loadstring = lua.create_function(|lua, values: MultiValue| {
        let args = Arguments::new(lua, values);
        let source = args.string(1)?;
        let name = match args.get(2) {
            None | Some(Value::Nil) => source.clone(),
            Some(_) => args.string(2)?,
        };
        load(lua, &source, &name)
    })?;
    real.raw_set("loadstring", loadstring)?;
    let xpcall: Function = real.raw_get("xpcall")?;
    let handler: Function = real.raw_get("__redis__err__handler")?;
    let shared = Arc::clone(shared);
    let load = lua.create_function(move |lua, values: MultiValue| {
        let args = Arguments::new(lua, values);
        let name = match args.get(2) {
            None | Some(Value::Nil) => b"=(load)".to_vec(),
            Some(_) => args.string(2)?,
        };
        let Some(Value::Function(reader)) = args.get(1) else {
            return Err(args.type_error(1, "function", args.get(1)));
        };
        let read = || -> mlua::Result<(bool, Value)> { xpcall.call((reader, &handler)) };
        match read_all(lua, read, &shared)? {
            Ok(source) => load(lua, &source, &name),
            Err(error) => Ok((Value::Nil, error)),
        }
    })?;
    real.raw_set("load", load)
}

/// What a reader function returns, until it returns nothing; or its error.
fn read_all(
    lua: &Lua,
    read: impl Fn() -> mlua::Result<(bool, Value)>,
    shared: &Shared,
) -> mlua::Result<Result<Vec<u8>, Value>> {
    let mut source = Vec::new();
    loop {
        match read()? {
            (false, error) => return Ok(Err(error)),
            (true, Value::Nil) => return Ok(Ok(source)),
            (true, Value::String(piece)) if piece.as_bytes().is_empty() => return Ok(Ok(source)),
            (true, Value::String(piece)) => source.extend_from_slice(&piece.as_bytes()),
            (true, piece) => {
                let Some(n) = as_number(&piece) else {
                    let error = library_error(lua, "reader function must return a string");
                    return handle_error(lua, Value::Error(Box::new(error)))
                        .map(|table| Err(Value::Table(table)));
                };
                source.extend_from_slice(number_text(n).as_bytes());
            }
        }
        if shared.is_too_much(source.len()) {
            return Err(Raised::Text(b"not enough memory".to_vec()).into());
        }
    }
}

fn load(lua: &Lua, source: &[u8], name: &[u8]) -> mlua::Result<(Value, Value)> {
    // C takes the name up to its first zero byte.
    let end = memchr::memchr(0, name).unwrap_or(name.len());
    match compile(lua, source, &name[..end]) {
        Ok(function) => Ok((Value::Function(function), Value::Nil)),
        Err(error) => {
            let text = Raised::of(&error).into_text();
            Ok((Value::Nil, Value::String(lua.create_string(text)?)))
        }
    }
}

/// The error of a script that has run for too long.
pub(super) fn budget_spent() -> mlua::Error {
    let text = b"ERR Script killed: it ran more instructions than its limit allows";
    Raised::Fatal(text.to_vec()).into()
}

/// Does work of our own, of bounded size, without the limit of memory: with it, every single step has to be guarded against
/// the failure of an allocation. What it makes counts all the same once the script goes on.
pub(super) fn unlimited<T>(lua: &Lua, work: impl FnOnce() -> T) -> T {
    // Setting a limit fails only for states with an allocator of another kind.
    let limited = lua.set_memory_limit(0);
    let result = work();
    if let Ok(limit) = limited {
        let _ = lua.set_memory_limit(limit);
    }
    result
}

/// Makes a table of an uncaught error: its text, and where in the script it was raised (`script_lua.c`, the handler of
/// `luaCallFunction`). It is a global, since Redis has it there too.
fn handle_error(lua: &Lua, error: Value) -> mlua::Result<Table> {
    let place = |level| {
        lua.inspect_stack(level, |frame| {
            let source = frame.source();
            let is_c = source.what == "C";
            (
                is_c,
                source.source.map(std::borrow::Cow::into_owned),
                frame.current_line(),
            )
        })
    };
    let raised = if matches!(&error, Value::Error(error) if is_end(error)) {
        // It comes from outside, or through code of ours: what counts is where the script was.
        let of_script = |source: &str| source.starts_with("@user_");
        (1..FRAMES_MAX).find_map(|level| {
            place(level).filter(|(_, source, _)| source.as_deref().is_some_and(of_script))
        })
    } else {
        let mut level = if place(1).is_some_and(|(is_c, ..)| is_c) {
            2
        } else {
            1
        };
        // The sandbox's own functions are C in 7.0.15, and what calls a script is not on its stack.
        let mut raised = place(level);
        while raised
            .as_ref()
            .is_some_and(|(_, source, _)| source.as_deref() == Some("=sandbox"))
        {
            level += 1;
            raised = place(level).filter(|(is_c, ..)| !is_c);
        }
        raised
    };
    let error = match error {
        Value::Error(error) => match Raised::of(&error) {
            Raised::Value(value) => value,
            Raised::Text(text) => Value::String(lua.create_string(text)?),
            Raised::Failed(text) => Value::Table(failed(lua, &text)?),
            Raised::Killed => Value::Table(error_table(lua, KILLED)?),
            Raised::Reply(text) | Raised::Fatal(text) => Value::Table(error_table(lua, &text)?),
        },
        value => value,
    };
    let table = match error {
        Value::Table(table) => table,
        Value::String(text) => {
            let text = [b"ERR ", without_place(&text.as_bytes())].concat();
            error_table(lua, &text)?
        }
        other => error_table(lua, format!("ERR {}", printed(&other)).as_bytes())?,
    };
    if let Some((_, source, line)) = raised {
        table.raw_set("source", source)?;
        table.raw_set("line", line.map_or(-1, |line| line as i64))?;
    }
    Ok(table)
}

fn is_fatal(error: &mlua::Error) -> bool {
    matches!(error.downcast_ref::<Raised>(), Some(Raised::Fatal(_)))
}

/// Whether an error is the end of the script, which was raised wherever the script happened to be.
fn is_end(error: &mlua::Error) -> bool {
    let raised = error.downcast_ref::<Raised>();
    matches!(raised, Some(Raised::Fatal(_) | Raised::Killed))
}

fn error_table(lua: &Lua, text: &[u8]) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(0, 4)?;
    table.raw_set("err", lua.create_string(text)?)?;
    Ok(table)
}

/// The text without the place of `main` in `sandbox.lua`, which calls the script: in 7.0.15 a C function does.
fn without_place(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"sandbox:")
        .and_then(|rest| rest.get(memchr::memchr(b' ', rest)? + 1..))
        .unwrap_or(text)
}

fn printed(value: &Value) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Boolean(value) => value.to_string(),
        Value::Integer(_) | Value::Number(_) => number_text(as_number(value).unwrap_or_default()),
        value => format!("{}: {:p}", type_name(value), value.to_pointer()),
    }
}
