//! What ends a script from outside: the hook that Lua calls now and then, and the limit of its memory.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use mlua::debug::{Debug, DebugEvent};
use mlua::{Function, HookTriggers, Lua, LuaString, Table, VmState};

use super::raise::{KILLED, Raised};
use super::sandbox::{BUFFER_MAX, LOAD_TIMEOUT, Shared, unlimited};
use crate::config::Config;

/// Instructions between two looks at the budget.
const HOOK_PERIOD: u32 = 100_000;

/// Sets the limits of a Lua state.
pub(super) fn set(
    lua: &Lua,
    shared: &Arc<Shared>,
    api: &Table,
    config: &Config,
) -> mlua::Result<()> {
    let memory_max = match config.script_memory_max {
        0 => BUFFER_MAX,
        max => max,
    };
    shared.memory_max.store(memory_max, Relaxed);
    // For Lua 0 is no limit, too.
    lua.set_memory_limit(config.script_memory_max)?;
    restore(lua, shared, api)
}

/// Has the hook called as often as a script in good health needs.
pub(super) fn restore(lua: &Lua, shared: &Arc<Shared>, api: &Table) -> mlua::Result<()> {
    set_hook(lua, shared, api, HookTriggers::new())
}

/// Has the hook called by the count of instructions, and as the triggers say.
fn set_hook(
    lua: &Lua,
    shared: &Arc<Shared>,
    api: &Table,
    triggers: HookTriggers,
) -> mlua::Result<()> {
    let (shared, api) = (Arc::clone(shared), api.clone());
    lua.set_global_hook(
        triggers.every_nth_instruction(HOOK_PERIOD),
        move |lua, frame| {
            if shared.is_killed.load(Relaxed) {
                return end_again(frame);
            }
            shared.spend(u64::from(HOOK_PERIOD))?;
            match shared.load_is_late() {
                Some(true) => return Err(Raised::Fatal(LOAD_TIMEOUT.into()).into()),
                Some(false) => {}
                None => look_up(lua, &shared, &api)?,
            }
            Ok(VmState::Continue)
        },
    )
}

/// Lets the engine see to others. Errors: the script has to end.
fn look_up(lua: &Lua, shared: &Arc<Shared>, api: &Table) -> mlua::Result<()> {
    let call: Function = api.raw_get("call")?;
    shared.is_interrupted.store(true, Relaxed);
    let reason = unlimited(lua, || call.call::<Option<LuaString>>(()));
    shared.is_interrupted.store(false, Relaxed);
    let reason = match reason {
        Ok(Some(reason)) => reason.as_bytes().to_vec(),
        // It fails if no script runs, as while a library is loaded.
        Ok(None) | Err(_) => return Ok(()),
    };
    if reason != KILLED {
        return Err(Raised::Fatal(reason).into());
    }
    // A script that catches this goes on to its next line and no further (`luaMaskCountHook` of script_lua.c).
    shared.is_killed.store(true, Relaxed);
    set_hook(lua, shared, api, HookTriggers::EVERY_LINE)?;
    Err(Raised::Killed.into())
}

/// A script that has been killed is at its next line, or goes on behind a coroutine of its own, where nobody follows its lines.
fn end_again(frame: &Debug<'_>) -> mlua::Result<VmState> {
    if frame.event() != DebugEvent::Line {
        return Err(Raised::Fatal(KILLED.into()).into());
    }
    // The sandbox's own functions have no lines in 7.0.15.
    if frame.source().short_src.as_deref() == Some("sandbox") {
        return Ok(VmState::Continue);
    }
    Err(Raised::Killed.into())
}
