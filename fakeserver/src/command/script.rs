//! Scripting commands. Without the feature `lua` there are none.

use super::introspect::help;
use super::{Command, CommandResult, ControlCall, Effects, Family, Flag, Group, KeySpec, Words};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::running::ScriptKind;
use crate::script::{Invocation, ScriptFlags, Sha, run};
use crate::value::number;
use crate::wire::{Reply, Request};
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Scripting, &[
    //               name          arity  flags                                                                       keys                  handler
    Command::control("EVAL",       -3,    &[NoScript, Stale, SkipMonitor, NoMandatoryKeys, MovableKeys, MayReplicate], KeySpec::CountAt(2), eval).declared_by(of_source).since("2.6.0"),
    Command::control("EVALSHA",    -3,    &[NoScript, Stale, SkipMonitor, NoMandatoryKeys, MovableKeys, MayReplicate], KeySpec::CountAt(2), evalsha).declared_by(of_sha).since("2.6.0"),
    Command::control("EVALSHA_RO", -3,    &[ReadOnly, NoScript, Stale, SkipMonitor, NoMandatoryKeys, MovableKeys],     KeySpec::CountAt(2), evalsha).declared_by(of_sha).since("7.0.0"),
    Command::control("EVAL_RO",    -3,    &[ReadOnly, NoScript, Stale, SkipMonitor, NoMandatoryKeys, MovableKeys],     KeySpec::CountAt(2), eval).declared_by(of_source).since("7.0.0"),
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
    let keys = keys_count_of(call.request, || CommandError::NotAnInteger)?;
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
    let keys = keys_count_of(call.request, || CommandError::NotAnInteger)?;
    evaluate(call, sha, None, keys)
}

/// What EVAL does, if its script declares it.
fn of_source(engine: &Engine, request: &Request) -> Option<Effects> {
    let source = request.get(1)?;
    let flags = engine.scripts.flags(&Sha::of(source), Some(source));
    flags.and_then(ScriptFlags::effects)
}

/// What EVALSHA does, if its script is in the cache and declares it.
fn of_sha(engine: &Engine, request: &Request) -> Option<Effects> {
    let flags = engine.scripts.flags(&Sha::parse(request.get(1)?)?, None);
    flags.and_then(ScriptFlags::effects)
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

/// The number of keys that a request for a script or a function names. Errors: `malformed`; too great; negative.
pub(super) fn keys_count_of(
    request: &Request,
    malformed: impl FnOnce() -> CommandError,
) -> Result<usize, CommandError> {
    let count = request.get(2).and_then(number::parse_integer);
    let count = count.ok_or_else(malformed)?;
    if count > request.len() as i64 - 3 {
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
