//! What ends a script from outside: the hook that Lua calls now and then, and the limit of its memory.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use mlua::debug::{Debug, DebugEvent};
use mlua::{HookTriggers, Lua, VmState};

use super::raise::{KILLED, Raised};
use super::sandbox::{BUFFER_MAX, LOAD_TIMEOUT, Shared};
use crate::config::Config;

/// Instructions between two looks at the budget.
const HOOK_PERIOD: u32 = 100_000;

/// Sets the limits of a Lua state.
pub(super) fn set(lua: &Lua, shared: &Arc<Shared>, config: &Config) -> mlua::Result<()> {
    let memory_max = match config.script_memory_max {
        0 => BUFFER_MAX,
        max => max,
    };
    shared.memory_max.store(memory_max, Relaxed);
    // For Lua 0 is no limit, too.
    lua.set_memory_limit(config.script_memory_max)?;
    restore(lua, shared)
}

/// Has the hook called as often as a script in good health needs.
pub(super) fn restore(lua: &Lua, shared: &Arc<Shared>) -> mlua::Result<()> {
    set_hook(lua, shared, HookTriggers::new())
}

/// Has the hook called by the count of instructions, and as the triggers say.
fn set_hook(lua: &Lua, shared: &Arc<Shared>, triggers: HookTriggers) -> mlua::Result<()> {
    let shared = Arc::clone(shared);
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
                None => look_up(lua, &shared)?,
            }
            Ok(VmState::Continue)
        },
    )
}

/// Lets the engine see to others. Errors: the script has to end.
fn look_up(lua: &Lua, shared: &Arc<Shared>) -> mlua::Result<()> {
    let Some(reason) = shared.look_up() else {
        return Ok(());
    };
    if reason != KILLED {
        return Err(Raised::Fatal(reason.into()).into());
    }
    // A script that catches this goes on to its next line and no further (`luaMaskCountHook` of script_lua.c).
    shared.is_killed.store(true, Relaxed);
    set_hook(lua, shared, HookTriggers::EVERY_LINE)?;
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
