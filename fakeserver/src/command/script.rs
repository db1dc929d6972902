//! Scripting commands. Without the feature `lua` there are none.

use super::{Command, CommandResult, ControlCall, Family, Flag, Group, KeySpec, Words};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::running::ScriptKind;
use crate::script::{Invocation, Sha, run};
use crate::value::number;
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Scripting, &[
    //               name          arity  flags                                                                       keys                  handler
    Command::control("EVAL",       -3,    &[NoScript, Stale, SkipMonitor, NoMandatoryKeys, MovableKeys, MayReplicate], KeySpec::CountAt(2), eval).since("2.6.0"),
    Command::control("EVALSHA",    -3,    &[NoScript, Stale, SkipMonitor, NoMandatoryKeys, MovableKeys, MayReplicate], KeySpec::CountAt(2), evalsha).since("2.6.0"),
    Command::control("EVALSHA_RO", -3,    &[ReadOnly, NoScript, Stale, SkipMonitor, NoMandatoryKeys, MovableKeys],     KeySpec::CountAt(2), evalsha).since("7.0.0"),
    Command::control("EVAL_RO",    -3,    &[ReadOnly, NoScript, Stale, SkipMonitor, NoMandatoryKeys, MovableKeys],     KeySpec::CountAt(2), eval).since("7.0.0"),
    Command::container("SCRIPT",   -2,    &[], &[
        Command::control("DEBUG",   3,    &[NoScript],                                                                KeySpec::None,        debug).since("3.2.0"),
        Command::control("EXISTS", -3,    &[NoScript],                                                                KeySpec::None,        exists).since("2.6.0"),
        Command::control("FLUSH",  -2,    &[NoScript],                                                                KeySpec::None,        flush).since("2.6.0"),
        Command::control("HELP",    2,    &[Loading, Stale],                                                          KeySpec::None,        help).since("5.0.0"),
        Command::control("KILL",    2,    &[NoScript, AllowBusy],                                                     KeySpec::None,        kill).since("2.6.0"),
        Command::control("LOAD",    3,    &[NoScript, Stale],                                                         KeySpec::None,        load).since("2.6.0"),
    ]).since("2.6.0"),
]);

/// `EVAL script numkeys [key ...] [arg ...]`, `EVAL_RO`: runs a script; replies with what it returns.
///
/// Errors: number of keys not an integer, negative or too great; the script does not compile; whatever the script raises;
/// for `EVAL_RO` a write.
fn eval(call: &mut ControlCall<'_>) -> CommandResult {
    let keys = keys_count(call)?;
    let source = call.request.get(1).unwrap_or_default();
    evaluate(call, Sha::of(source), Some(source), keys)
}

/// `EVALSHA sha1 numkeys [key ...] [arg ...]`, `EVALSHA_RO`: as `EVAL`, with the SHA-1 of a script that is in the cache.
///
/// Errors: `NOSCRIPT`, and those of `EVAL`.
fn evalsha(call: &mut ControlCall<'_>) -> CommandResult {
    // A name of another length cannot be in the cache, and is refused before the number of keys is looked at.
    let sha = Sha::parse(call.request.get(1).unwrap_or_default())
        .ok_or_else(|| CommandError::custom("NOSCRIPT No matching script. Please use EVAL."))?;
    let keys = keys_count(call)?;
    evaluate(call, sha, None, keys)
}

fn evaluate(
    call: &mut ControlCall<'_>,
    sha: Sha,
    source: Option<&[u8]>,
    keys: usize,
) -> CommandResult {
    let invocation = Invocation {
        session: call.session,
        request: call.request,
        first_key: 3,
        keys,
        read_only: call.row.has(ReadOnly),
    };
    run(call.engine, sha, source, &invocation)
}

fn keys_count(call: &ControlCall<'_>) -> Result<usize, CommandError> {
    let count = call.request.get(2).and_then(number::parse_integer);
    let count = count.ok_or(CommandError::NotAnInteger)?;
    if count > call.request.len() as i64 - 3 {
        return Err(CommandError::custom(
            "ERR Number of keys can't be greater than number of args",
        ));
    }
    usize::try_from(count).map_err(|_| CommandError::custom("ERR Number of keys can't be negative"))
}

/// `SCRIPT LOAD script`: compiles a script; replies with its SHA-1. Errors: it does not compile.
fn load(call: &mut ControlCall<'_>) -> CommandResult {
    let source = call.args().next()?;
    let Engine {
        scripts, config, ..
    } = &mut *call.engine;
    let sha = scripts.load(source, config)?;
    Ok(Reply::bulk(sha.as_bytes()))
}

/// `SCRIPT EXISTS sha1 [sha1 ...]`: replies with 1 or 0 for each.
fn exists(call: &mut ControlCall<'_>) -> CommandResult {
    let scripts = &call.engine.scripts;
    let found = |word| Sha::parse(word).is_some_and(|sha| scripts.contains(&sha));
    Ok(Reply::Array(
        call.args()
            .rest()
            .map(|word| Reply::flag(found(word)))
            .collect(),
    ))
}

/// `SCRIPT FLUSH [ASYNC | SYNC]`: forgets all scripts.
fn flush(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let understood =
        args.is_empty() || ((args.keyword("SYNC") || args.keyword("ASYNC")) && args.is_empty());
    if !understood {
        return Err(CommandError::custom(
            "ERR SCRIPT FLUSH only support SYNC|ASYNC option",
        ));
    }
    call.engine.scripts.flush();
    Ok(Reply::OK)
}

/// `SCRIPT KILL`: ends the script that takes too long; replies with `OK`. Errors: there is none; it has written; it is a function.
fn kill(call: &mut ControlCall<'_>) -> CommandResult {
    call.engine.kill_script(ScriptKind::Eval)?;
    Ok(Reply::OK)
}

/// `SCRIPT DEBUG YES | SYNC | NO`: accepted; there is no debugger, so scripts run as always.
fn debug(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    if args.keyword("NO") || args.keyword("YES") || args.keyword("SYNC") {
        Ok(Reply::OK)
    } else {
        Err(CommandError::custom("ERR Use SCRIPT DEBUG YES/SYNC/NO"))
    }
}

/// `SCRIPT HELP`: replies with the subcommands' descriptions.
fn help(_: &mut ControlCall<'_>) -> CommandResult {
    Ok(Reply::Array(
        HELP.iter().map(|line| Reply::simple(line)).collect(),
    ))
}

const HELP: [&str; 17] = [
    "SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DEBUG (YES|SYNC|NO)",
    "    Set the debug mode for subsequent scripts executed.",
    "EXISTS <sha1> [<sha1> ...]",
    "    Return information about the existence of the scripts in the script cache.",
    "FLUSH [ASYNC|SYNC]",
    "    Flush the Lua scripts cache. Very dangerous on replicas.",
    "    When called without the optional mode argument, the behavior is determined by the",
    "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
    "    * ASYNC: Asynchronously flush the scripts cache.",
    "    * SYNC: Synchronously flush the scripts cache.",
    "KILL",
    "    Kill the currently executing Lua script.",
    "LOAD <script>",
    "    Load a script into the scripts cache without executing it.",
    "HELP",
    "    Prints this help.",
];
