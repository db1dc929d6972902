//! One run of a script.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mlua::{Lua, MultiValue, Value};

use super::arguments::{as_number, number_text};
use super::convert::{to_lua, to_reply};
use super::push;
use super::raise::{IS_COUNTED, KILLED, Raised, failed};
use super::sandbox::{Kind, Sandbox, Shared, unlimited};
use super::{Script, ScriptFlag, ScriptFlags, Sha, redis_api};
use crate::acl::{Context, Denied};
use crate::command::{Caller, Flag, Row};
use crate::config::Config;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::resolve::{find, resolve};
use crate::running::{Running, ScriptKind, Verdict};
use crate::session::SessionId;
use crate::wire::{Reply, Request};

/// What a call of a command costs, in instructions.
const CALL_COST: u64 = 50;

/// The error of a script whose server ends.
const ENDING: &[u8] = b"ERR Script ended with the server";

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
    admit(script.flags, invocation, engine.out_of_memory)?;
    let Some(state) = engine.scripts.state.take() else {
        return Err(CommandError::custom("ERR no Lua state"));
    };
    let reply = run_in(&state.sandbox, engine, &script, sha.as_bytes(), invocation);
    engine.scripts.state = Some(state);
    Ok(reply)
}

/// Runs a compiled script or function of this name, whose Lua state has been taken out of the engine.
pub(super) fn run_in(
    sandbox: &Sandbox,
    engine: &mut Engine,
    script: &Script,
    name: &[u8],
    invocation: &Invocation<'_>,
) -> Reply {
    let db = engine
        .sessions
        .get(&invocation.session)
        .map(|session| session.db);
    let kind = match sandbox.kind {
        Kind::Scripts => ScriptKind::Eval,
        Kind::Functions => ScriptKind::Function,
    };
    engine.running = Some(Running::new(kind, invocation.session));
    let result = sandbox.execute(engine, script, invocation);
    engine.running = None;
    engine.stats.is_counted = is_counted(&result);
    // A SELECT inside of a script is the script's own.
    if let (Some(db), Some(session)) = (db, engine.sessions.get_mut(&invocation.session)) {
        session.db = db;
    }
    let reply = match result {
        Ok(Outcome::Value(value)) => unlimited(&sandbox.lua, || {
            let mut count = counting(engine, invocation.request);
            to_reply(&sandbox.lua, value, &sandbox.shared, &mut count)
        }),
        Ok(Outcome::Failure(error)) => describe(&error, name).map(Reply::Error),
        Err(error) => Err(error),
    };
    sandbox.recover();
    reply.unwrap_or_else(|error| {
        let text = Raised::of(&error).into_text();
        Reply::Error(CommandError::custom(
            [b"ERR Error running script ", name, b", ", &text].concat(),
        ))
    })
}

/// Whether the flags that a script declares allow it to run now (script.c, `scriptPrepareForRun`).
pub(super) fn admit(
    flags: ScriptFlags,
    invocation: &Invocation<'_>,
    out_of_memory: bool,
) -> Result<(), CommandError> {
    let Some(effects) = flags.effects() else {
        return Ok(());
    };
    if effects.writes && invocation.read_only {
        return Err(CommandError::custom(
            "ERR Can not execute a script with write flag using *_ro command.",
        ));
    }
    // A client is told so before; here come the commands of EXEC.
    if effects.needs_memory && out_of_memory {
        return Err(CommandError::custom(
            "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'",
        ));
    }
    Ok(())
}

/// Whether a script ended with an error that a command of it had been counted for.
fn is_counted(result: &mlua::Result<Outcome>) -> bool {
    let Ok(Outcome::Value(Value::Table(table)) | Outcome::Failure(Value::Table(table))) = result
    else {
        return false;
    };
    let mark = |name| table.raw_get::<Value>(name).unwrap_or(Value::Nil);
    matches!(mark("err"), Value::String(_)) && mark(IS_COUNTED) == Value::Boolean(true)
}

/// Counts errors inside of a script's reply: those that no command has been counted for, and for these, however many, one
/// failure of the script; for each of the others one more.
fn counting(engine: &mut Engine, request: &Request) -> impl FnMut(&CommandError, bool) {
    let (stats, row) = (&mut engine.stats, find(request));
    let mut has_failed = false;
    move |error, is_counted| {
        if !is_counted {
            stats.error(error);
            if std::mem::replace(&mut has_failed, true) {
                return;
            }
        }
        if let Some(row) = row {
            stats.interrupted(row);
        }
    }
}

/// How a script ended.
enum Outcome {
    Value(Value),
    Failure(Value),
}

impl Sandbox {
    fn execute(
        &self,
        engine: &mut Engine,
        script: &Script,
        invocation: &Invocation<'_>,
    ) -> mlua::Result<Outcome> {
        self.reset(&engine.config)?;
        let user = engine.restricted_user(invocation.session).cloned();
        self.shared.begin_for(user);
        let lua = &self.lua;
        let words = |range: std::ops::Range<usize>| {
            let words = range.map(|at| invocation.request.get(at).unwrap_or_default());
            push::sequence(lua, words.map(push::bytes))
        };
        let first_arg = invocation.first_key + invocation.keys;
        let (keys, argv) = unlimited(lua, || -> mlua::Result<_> {
            let keys = words(invocation.first_key..first_arg)?;
            Ok((keys, words(first_arg..invocation.request.len())?))
        })?;
        let is_function = self.kind == Kind::Functions;
        let loan = Loan::new(&self.shared.seat, engine, script, invocation);
        let result = self
            .run
            .call::<(bool, Value)>((&*script.function, keys, argv, is_function));
        drop(loan);
        let (ok, value) = result?;
        Ok(if ok {
            Outcome::Value(value)
        } else {
            Outcome::Failure(value)
        })
    }
}

/// Where `redis.call` finds the engine while a script runs: functions of Lua's can hold nothing that is borrowed, and those that
/// can are made anew for each script, which takes longer than most scripts do.
#[derive(Debug, Default)]
pub(super) struct Seat {
    bridge: Option<Bridge>,
    /// Stands in for the engine meanwhile.
    substitute: Option<Box<Engine>>,
    /// Room for the words of a command.
    room: Request,
}

/// The engine in its seat, until this is dropped.
struct Loan<'a> {
    seat: &'a Mutex<Seat>,
    engine: &'a mut Engine,
}

impl<'a> Loan<'a> {
    fn new(
        seat: &'a Mutex<Seat>,
        engine: &'a mut Engine,
        script: &Script,
        invocation: &Invocation<'_>,
    ) -> Loan<'a> {
        let mut guard = lock(seat);
        let mut lent = guard
            .substitute
            .take()
            .unwrap_or_else(|| Box::new(Engine::new(Config::default(), engine.now)));
        let is_tracking = engine.keyspace.caches.is_some();
        std::mem::swap(engine, &mut lent);
        guard.bridge = Some(Bridge {
            engine: lent,
            session: invocation.session,
            request: is_tracking.then(|| invocation.request.clone()),
            read_only: invocation.read_only || script.flags.has(ScriptFlag::NoWrites),
            allow_oom: script.flags.has(ScriptFlag::AllowOom),
            has_written: false,
        });
        drop(guard);
        Loan { seat, engine }
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        let mut seat = lock(self.seat);
        if let Some(mut bridge) = seat.bridge.take() {
            std::mem::swap(self.engine, &mut bridge.engine);
            seat.substitute = Some(bridge.engine);
        }
    }
}

fn lock(seat: &Mutex<Seat>) -> MutexGuard<'_, Seat> {
    seat.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What `redis.call` and `redis.pcall` reach while a script runs.
#[derive(Debug)]
struct Bridge {
    engine: Box<Engine>,
    session: SessionId,
    /// The request that runs the script, if somebody wants to know which keys were read.
    request: Option<Request>,
    read_only: bool,
    allow_oom: bool,
    /// It has called a command that writes.
    has_written: bool,
}

/// `redis.call(word ...)`: the command's reply; an error reply is raised.
pub(super) fn call(lua: &Lua, words: &MultiValue, shared: &Shared) -> mlua::Result<Value> {
    match execute(words, shared)? {
        Reply::Error(error) => Err(Raised::Failed(error.to_bytes()).into()),
        reply => reply_value(lua, reply, shared),
    }
}

/// `redis.pcall(word ...)`: the command's reply, be it an error.
pub(super) fn pcall(lua: &Lua, words: &MultiValue, shared: &Shared) -> mlua::Result<Value> {
    if lock(&shared.seat).bridge.is_none() {
        return Err(redis_api::not_running());
    }
    match execute(words, shared) {
        Ok(Reply::Error(error)) => failed(lua, &error.to_bytes()).map(Value::Table),
        Ok(reply) => reply_value(lua, reply, shared),
        Err(error) => match Raised::of(&error) {
            raised @ (Raised::Reply(_) | Raised::Failed(_)) => raised.into_value(lua),
            _ => Err(error),
        },
    }
}

fn reply_value(lua: &Lua, reply: Reply, shared: &Shared) -> mlua::Result<Value> {
    match reply {
        Reply::Integer(n) => Ok(Value::Number(n as f64)),
        reply => unlimited(lua, || to_lua(lua, reply, shared.resp3.load(Relaxed))),
    }
}

fn execute(words: &MultiValue, shared: &Shared) -> mlua::Result<Reply> {
    let mut seat = lock(&shared.seat);
    let Seat { bridge, room, .. } = &mut *seat;
    let Some(bridge) = bridge else {
        return Err(redis_api::not_running());
    };
    // That it has been killed a script is told by the hook only.
    if shared.spend(CALL_COST)?
        && let Some(reason) = bridge.look_up()
        && reason != KILLED
    {
        return Err(Raised::Fatal(reason.into()).into());
    }
    room.clear();
    redis_api::put_words(words, room)?;
    bridge.execute(room)
}

impl Shared {
    /// What the script's hook asks now and then: why the script has to end, if it has to.
    pub(super) fn look_up(&self) -> Option<&'static [u8]> {
        lock(&self.seat).bridge.as_mut()?.look_up()
    }
}

impl Bridge {
    fn look_up(&mut self) -> Option<&'static [u8]> {
        match self.engine.interrupt_script() {
            Verdict::GoOn => None,
            Verdict::Killed => Some(KILLED),
            Verdict::Ending => Some(ENDING),
        }
    }

    fn execute(&mut self, request: &Request) -> mlua::Result<Reply> {
        let row = match self.admit(request) {
            Ok(row) => row,
            Err(error) => {
                self.engine.stats.rejected(find(request), &error);
                return Err(Raised::Failed(error.to_bytes()).into());
            }
        };
        let engine = &mut self.engine;
        if row.has(Flag::Write) {
            self.has_written = true;
            if let Some(running) = &mut engine.running {
                running.has_written = true;
            }
        }
        let reply = engine.call(self.session, row, request, Caller::Script);
        // What counts as read are the keys that the script was called with, whichever it has read.
        if let Some(request) = &self.request
            && row.has(Flag::ReadOnly)
            && let Some(row) = find(request)
        {
            engine.remember_keys_of(self.session, row, request);
        }
        Ok(reply)
    }

    /// Whether the script may call a command now (script.c, `scriptCall`).
    fn admit(&mut self, request: &Request) -> Result<&'static Row, CommandError> {
        let engine = &mut self.engine;
        let row = resolve(request).map_err(|error| match error {
            CommandError::WrongArity(_) => {
                CommandError::custom("ERR Wrong number of args calling Redis command from script")
            }
            _ => CommandError::custom("ERR Unknown Redis command called from script"),
        })?;
        let may_debug = engine.config.scripts_may_debug && row.name().eq_ignore_ascii_case("debug");
        if row.has(Flag::NoScript) && !may_debug {
            return Err(CommandError::custom(
                "ERR This Redis command is not allowed from script",
            ));
        }
        if engine.acl.is_restricting()
            && let Err(denial) = engine.check_permission(self.session, row, request)
        {
            let denied = Denied {
                context: Context::Script,
                ..Denied::new(row, request)
            };
            engine.log_denial(self.session, denial, &denied);
            return Err(denial.error_in_script());
        }
        let writes = row.has(Flag::Write);
        if self.read_only && (writes || row.has(Flag::MayReplicate)) {
            return Err(CommandError::custom(
                "ERR Write commands are not allowed from read-only scripts.",
            ));
        }
        // What has been begun is not ended halfway for want of replicas or memory.
        if self.has_written {
            return Ok(row);
        }
        if writes && engine.config.lacks_replicas() {
            return Err(CommandError::NotEnoughReplicas);
        }
        if row.has(Flag::DenyOom) && engine.out_of_memory && !self.allow_oom {
            return Err(CommandError::OutOfMemory);
        }
        Ok(row)
    }
}

/// The error reply of a script that failed: the error's text, the script and the place.
fn describe(error: &Value, name: &[u8]) -> mlua::Result<CommandError> {
    let Value::Table(table) = error else {
        // Out of memory and the like do not pass the handler that makes a table of an error.
        let text = match error {
            Value::String(text) => text.as_bytes().to_vec(),
            _ => b"execution failure".to_vec(),
        };
        return Ok(CommandError::custom(
            [b"ERR Error running script ", name, b", ", &text].concat(),
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
        let parts: [&[u8]; 7] = [b" script: ", name, b", on ", &source, b":", &line, b"."];
        text.extend(parts.concat());
    }
    Ok(CommandError::custom(text))
}
