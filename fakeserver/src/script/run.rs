//! One run of a script.

use std::cell::RefCell;
use std::sync::atomic::Ordering::Relaxed;

use mlua::{Lua, MultiValue, Table, Value};

use super::arguments::{as_number, number_text};
use super::convert::{to_lua, to_reply};
use super::raise::Raised;
use super::sandbox::{Shared, unlimited};
use super::{Script, Sha, State, redis_api};
use crate::command::{Caller, Flag};
use crate::dispatch::resolve;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::running::{Running, ScriptKind, Verdict};
use crate::session::SessionId;
use crate::wire::{Reply, Request};

/// What a call of a command costs, in instructions.
const CALL_COST: u64 = 50;

/// The errors of scripts that were ended from outside.
const KILLED: &str = "ERR Script killed by user with SCRIPT KILL...";
const ENDING: &str = "ERR Script ended with the server";

/// Who runs a script, and with what.
pub(crate) struct Invocation<'a> {
    pub session: SessionId,
    /// The request, whose words from `first_key` on are `keys` keys and then arguments.
    pub request: &'a Request,
    pub first_key: usize,
    pub keys: usize,
    /// Whether the command is one of those that may not write.
    pub read_only: bool,
}

/// Runs a script by its name; with `source` it is compiled first if need be.
///
/// Errors: `NOSCRIPT`; it does not compile. An error of the script itself is its reply.
pub(crate) fn run(
    engine: &mut Engine,
    sha: Sha,
    source: Option<&[u8]>,
    invocation: &Invocation<'_>,
) -> Result<Reply, CommandError> {
    let state = engine.scripts.state(&engine.config)?;
    if let Some(source) = source {
        state.load(sha, source)?;
    }
    let Some(script) = state.cache.get(&sha).cloned() else {
        return Err(CommandError::custom(
            "NOSCRIPT No matching script. Please use EVAL.",
        ));
    };
    if script.flags.declared && invocation.read_only && !script.flags.no_writes {
        return Err(CommandError::custom(
            "ERR Can not execute a script with write flag using *_ro command.",
        ));
    }
    let Some(state) = engine.scripts.state.take() else {
        return Err(CommandError::custom("ERR no Lua state"));
    };
    let db = engine
        .sessions
        .get(&invocation.session)
        .map(|session| session.db);
    engine.running = Some(Running::new(ScriptKind::Eval, invocation.session));
    let result = state.run(engine, &script, invocation);
    engine.running = None;
    // A SELECT inside of a script is the script's own.
    if let (Some(db), Some(session)) = (db, engine.sessions.get_mut(&invocation.session)) {
        session.db = db;
    }
    let reply = match result {
        Ok(Outcome::Value(value)) => unlimited(&state.sandbox.lua, || {
            to_reply(value, &state.sandbox.shared)
        }),
        Ok(Outcome::Failure(error)) => describe(&error, &sha).map(Reply::Error),
        Err(error) => Err(error),
    };
    state.sandbox.recover();
    engine.scripts.state = Some(state);
    Ok(reply.unwrap_or_else(|error| {
        let text = Raised::of(&error).into_text();
        Reply::Error(CommandError::custom(
            [b"ERR Error running script ", sha.as_bytes(), b", ", &text].concat(),
        ))
    }))
}

/// How a script ended.
enum Outcome {
    Value(Value),
    Failure(Value),
}

impl State {
    fn run(
        &self,
        engine: &mut Engine,
        script: &Script,
        invocation: &Invocation<'_>,
    ) -> mlua::Result<Outcome> {
        let sandbox = &self.sandbox;
        sandbox.reset(&engine.config);
        let lua = &sandbox.lua;
        let words = |range: std::ops::Range<usize>| -> mlua::Result<Table> {
            let table = lua.create_table_with_capacity(range.len(), 0)?;
            let from = range.start;
            for at in range {
                let word = invocation.request.get(at).unwrap_or_default();
                table.raw_seti(at - from + 1, mlua::LuaString::wrap(word))?;
            }
            Ok(table)
        };
        let first_arg = invocation.first_key + invocation.keys;
        let keys = unlimited(lua, || words(invocation.first_key..first_arg))?;
        let argv = unlimited(lua, || words(first_arg..invocation.request.len()))?;
        let bridge = Bridge {
            engine: RefCell::new(engine),
            session: invocation.session,
            read_only: invocation.read_only || script.flags.no_writes,
            shared: &sandbox.shared,
        };
        let (ok, value) = lua.scope(|scope| {
            let call = scope.create_function(|lua, values| {
                if sandbox.shared.is_interrupted.load(Relaxed) {
                    let reason = bridge.look_up().map(|reason| lua.create_string(reason));
                    return Ok(reason.transpose()?.map_or(Value::Nil, Value::String));
                }
                bridge.call(lua, &values)
            })?;
            let pcall = scope.create_function(|lua, values| bridge.pcall(lua, &values))?;
            sandbox
                .run
                .call::<(bool, Value)>((&script.function, call, pcall, keys, argv))
        })?;
        if sandbox.clean() && ok {
            return Err(Raised::Text(b"Attempt to modify a readonly table".to_vec()).into());
        }
        Ok(if ok {
            Outcome::Value(value)
        } else {
            Outcome::Failure(value)
        })
    }
}

/// What `redis.call` and `redis.pcall` reach while a script runs.
struct Bridge<'a> {
    engine: RefCell<&'a mut Engine>,
    session: SessionId,
    read_only: bool,
    shared: &'a Shared,
}

impl Bridge<'_> {
    /// `redis.call(word ...)`: the command's reply; an error reply is raised.
    fn call(&self, lua: &Lua, values: &MultiValue) -> mlua::Result<Value> {
        match self.execute(values)? {
            Reply::Error(error) => Err(Raised::Reply(error.to_bytes()).into()),
            reply => unlimited(lua, || to_lua(lua, reply, self.shared.resp3.load(Relaxed))),
        }
    }

    /// `redis.pcall(word ...)`: the command's reply, be it an error.
    fn pcall(&self, lua: &Lua, values: &MultiValue) -> mlua::Result<Value> {
        let reply = match self.execute(values) {
            Ok(reply) => reply,
            Err(error) => match Raised::of(&error) {
                Raised::Reply(text) => return rejected(lua, &text),
                _ => return Err(error),
            },
        };
        match reply {
            Reply::Error(error) => rejected(lua, &error.to_bytes()),
            reply => unlimited(lua, || to_lua(lua, reply, self.shared.resp3.load(Relaxed))),
        }
    }

    /// What the script's hook calls now and then: why the script has to end, if it has to.
    fn look_up(&self) -> Option<&'static str> {
        match self.engine.try_borrow_mut().ok()?.interrupt_script() {
            Verdict::GoOn => None,
            Verdict::Killed => Some(KILLED),
            Verdict::Ending => Some(ENDING),
        }
    }

    fn execute(&self, values: &MultiValue) -> mlua::Result<Reply> {
        if self.shared.spend(CALL_COST)?
            && let Some(reason) = self.look_up()
        {
            return Err(Raised::Fatal(reason.into()).into());
        }
        let request = redis_api::words(values)?;
        let row = match resolve(&request) {
            Ok(row) => row,
            Err(CommandError::WrongArity(_)) => {
                return Err(redis_api::error(
                    "Wrong number of args calling Redis command from script",
                ));
            }
            Err(_) => return Err(redis_api::error("Unknown Redis command called from script")),
        };
        if row.has(Flag::NoScript) {
            return Err(redis_api::error(
                "This Redis command is not allowed from script",
            ));
        }
        if self.read_only && row.has(Flag::Write) {
            return Err(redis_api::error(
                "Write commands are not allowed from read-only scripts.",
            ));
        }
        let Ok(mut engine) = self.engine.try_borrow_mut() else {
            return Err(redis_api::error("redis.call inside of redis.call"));
        };
        if let (true, Some(running)) = (row.has(Flag::Write), &mut engine.running) {
            running.has_written = true;
        }
        Ok(engine.call(self.session, row, &request, Caller::Script))
    }
}

/// The error table of `redis.pcall`.
fn rejected(lua: &Lua, text: &[u8]) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(0, 2)?;
    table.raw_set("err", mlua::LuaString::wrap(text))?;
    table.raw_set("ignore_error_stats_update", true)?;
    Ok(Value::Table(table))
}

/// The error reply of a script that failed: the error's text, the script and the place.
fn describe(error: &Value, sha: &Sha) -> mlua::Result<CommandError> {
    let Value::Table(table) = error else {
        // Out of memory and the like do not pass the handler that makes a table of an error.
        let text = match error {
            Value::String(text) => text.as_bytes().to_vec(),
            _ => b"execution failure".to_vec(),
        };
        return Ok(CommandError::custom(
            [b"ERR Error running script ", sha.as_bytes(), b", ", &text].concat(),
        ));
    };
    let bytes = |name| -> mlua::Result<Option<Vec<u8>>> {
        Ok(match table.raw_get(name)? {
            Value::String(text) => Some(text.as_bytes().to_vec()),
            Value::Nil => None,
            value => as_number(&value).map(|n| number_text(n).into_bytes()),
        })
    };
    let mut text = bytes("err")?.unwrap_or_else(|| b"ERR unknown error".to_vec());
    if let (Some(source), Some(line)) = (bytes("source")?, bytes("line")?) {
        let parts: [&[u8]; 7] = [
            b" script: ",
            sha.as_bytes(),
            b", on ",
            &source,
            b":",
            &line,
            b".",
        ];
        text.extend(parts.concat());
    }
    Ok(CommandError::custom(text))
}
