//! Functions: FUNCTION and FCALL. Without the feature `lua` there are none.

use super::introspect::{help, subcommand_syntax};
use super::script::keys_count_of;
use super::{Command, CommandResult, ControlCall, Effects, Family, Flag, Group, KeySpec, Words};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::resolve::{printable, printable_at_end};
use crate::running::ScriptKind;
use crate::script::{
    ENGINE, Function, Invocation, Library, RestorePolicy, call_function, find_function,
};
use crate::value::glob;
use crate::wire::{Reply, Request};
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Scripting, &[
    //               name        arity  flags                                                                   keys                  handler
    Command::control("FCALL",    -3,    &[NoScript, Stale, SkipMonitor, NoMandatoryKeys, MovableKeys],           KeySpec::CountAt(2), fcall).declared_by(of_function_if_any).since("7.0.0"),
    Command::control("FCALL_RO", -3,    &[ReadOnly, NoScript, Stale, SkipMonitor, NoMandatoryKeys, MovableKeys], KeySpec::CountAt(2), fcall).declared_by(of_function).since("7.0.0"),
    Command::container("FUNCTION", -2,  &[], &[
        Command::control("DELETE",   3, &[Write, NoScript],                                                     KeySpec::None,        delete).since("7.0.0"),
        Command::control("DUMP",     2, &[NoScript],                                                            KeySpec::None,        dump).since("7.0.0"),
        Command::control("FLUSH",   -2, &[Write, NoScript],                                                     KeySpec::None,        flush).since("7.0.0"),
        Command::control("HELP",     2, &[Loading, Stale],                                                      KeySpec::None,        help).since("7.0.0"),
        Command::control("KILL",     2, &[NoScript, AllowBusy],                                                 KeySpec::None,        kill).since("7.0.0"),
        Command::control("LIST",    -2, &[NoScript],                                                            KeySpec::None,        list).since("7.0.0"),
        Command::control("LOAD",    -3, &[Write, DenyOom, NoScript],                                            KeySpec::None,        load).since("7.0.0"),
        Command::control("RESTORE", -3, &[Write, DenyOom, NoScript],                                            KeySpec::None,        restore).since("7.0.0"),
        Command::control("STATS",    2, &[NoScript, AllowBusy],                                                 KeySpec::None,        stats).since("7.0.0"),
    ]).since("7.0.0"),
]);

/// `FCALL function numkeys [key ...] [arg ...]`, `FCALL_RO`: runs a function; replies with what it returns.
///
/// Errors: no such function; number of keys not an integer, negative or too great; whatever the function raises; for
/// `FCALL_RO` a function that does not promise not to write.
fn fcall(call: &mut ControlCall<'_>) -> CommandResult {
    let function = find_function(call.engine, call.request.get(1).unwrap_or_default())?;
    let keys = keys_count_of(call.request, || {
        CommandError::custom("ERR Bad number of keys provided")
    })?;
    let invocation = Invocation {
        session: call.session,
        request: call.request,
        first_key: 3,
        keys,
        read_only: call.row.has(ReadOnly),
    };
    call_function(call.engine, &function, &invocation)
}

/// What FCALL does, as the function that it names declares.
fn of_function(engine: &Engine, request: &Request) -> Option<Effects> {
    engine.scripts.functions.effects(request.get(1)?)
}

/// The same for FCALL, which a pause of writes holds back too if there is no such function, though its row does not say so.
fn of_function_if_any(engine: &Engine, request: &Request) -> Option<Effects> {
    let unknown = Effects {
        writes: false,
        needs_memory: false,
        replicates: true,
    };
    of_function(engine, request).or(Some(unknown))
}

/// `FUNCTION DELETE library`: forgets a library and its functions. Errors: there is none of this name.
fn delete(call: &mut ControlCall<'_>) -> CommandResult {
    let name = call.args().next()?;
    if !call.engine.scripts.functions.delete(name) {
        return Err(CommandError::custom("ERR Library not found"));
    }
    call.engine.keyspace.stats.dirty += 1;
    Ok(Reply::OK)
}

/// `FUNCTION DUMP`: replies with the payload of all libraries.
fn dump(call: &mut ControlCall<'_>) -> CommandResult {
    let compression = call.engine.config.payload_compression();
    Ok(Reply::bulk(call.engine.scripts.functions.dump(compression)))
}

/// `FUNCTION FLUSH [ASYNC | SYNC]`: forgets all libraries. Errors: another option.
fn flush(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    if args.len() > 1 {
        return Err(subcommand_syntax(call));
    }
    if !(args.is_empty() || args.keyword("SYNC") || args.keyword("ASYNC")) {
        return Err(CommandError::custom(
            "ERR FUNCTION FLUSH only supports SYNC|ASYNC option",
        ));
    }
    call.engine.scripts.functions.flush();
    call.engine.keyspace.stats.dirty += 1;
    Ok(Reply::OK)
}

/// `FUNCTION KILL`: ends the function that takes too long; replies with `OK`. Errors: there is none; it has written; it is a
/// script.
fn kill(call: &mut ControlCall<'_>) -> CommandResult {
    call.engine.kill_script(ScriptKind::Function)?;
    Ok(Reply::OK)
}

/// `FUNCTION LIST [LIBRARYNAME pattern] [WITHCODE]`: replies with an array of maps, one for each library.
///
/// Errors: no pattern; an option that is unknown or given twice.
fn list(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (mut pattern, mut with_code) = (None, false);
    while !args.is_empty() {
        if !with_code && args.keyword("WITHCODE") {
            with_code = true;
        } else if pattern.is_none() && args.keyword("LIBRARYNAME") {
            let given = args.next_if_any();
            pattern =
                Some(given.ok_or_else(|| {
                    CommandError::custom("ERR library name argument was not given")
                })?);
        } else {
            let unknown = printable(args.next()?, usize::MAX);
            return Err(CommandError::custom(
                [b"ERR Unknown argument ", unknown].concat(),
            ));
        }
    }
    let is_wanted = |library: &&Library| {
        pattern.is_none_or(|pattern| glob::matches(pattern, &library.name, true))
    };
    let libraries = call.engine.scripts.functions.libraries();
    let entries = libraries
        .filter(is_wanted)
        .map(|library| describe_library(library, with_code));
    Ok(Reply::Array(entries.collect()))
}

fn describe_library(library: &Library, with_code: bool) -> Reply {
    let functions = library.functions.iter();
    let functions = functions
        .map(|function| describe_function(function))
        .collect();
    let mut fields = vec![
        (Reply::bulk("library_name"), Reply::bulk(&library.name)),
        (Reply::bulk("engine"), Reply::bulk(ENGINE)),
        (Reply::bulk("functions"), Reply::Array(functions)),
    ];
    if with_code {
        fields.push((Reply::bulk("library_code"), Reply::bulk(&library.code)));
    }
    Reply::Map(fields)
}

fn describe_function(function: &Function) -> Reply {
    let description = function.description.as_ref();
    let flags = function.flags.names().map(Reply::simple).collect();
    Reply::Map(vec![
        (Reply::bulk("name"), Reply::bulk(&function.name)),
        (
            Reply::bulk("description"),
            description.map_or(Reply::Null, Reply::bulk),
        ),
        (Reply::bulk("flags"), Reply::Set(flags)),
    ])
}

/// `FUNCTION LOAD [REPLACE] code`: loads a library; replies with its name.
///
/// Errors: an unknown option; the first line is not understood; it does not compile; whatever it raises; it registers nothing;
/// names that are taken.
fn load(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let mut replace = false;
    while args.len() > 1 {
        if !args.keyword("REPLACE") {
            let unknown = printable_at_end(args.next()?);
            return Err(CommandError::custom(
                [b"ERR Unknown option given: ", unknown].concat(),
            ));
        }
        replace = true;
    }
    let driver = call.engine.driver().filter(|driver| driver.has_time());
    let Engine {
        scripts, config, ..
    } = &mut *call.engine;
    let name = scripts.load_functions(args.next()?, replace, (config, driver))?;
    call.engine.keyspace.stats.dirty += 1;
    Ok(Reply::Bulk(name))
}

/// `FUNCTION RESTORE payload [FLUSH | APPEND | REPLACE]`: loads the libraries of a payload.
///
/// Errors: an unknown policy; a payload that is not one; those of loading; names that are taken.
fn restore(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    if args.len() > 2 {
        return Err(subcommand_syntax(call));
    }
    let payload = args.next()?;
    let policy = if args.is_empty() || args.keyword("APPEND") {
        RestorePolicy::Append
    } else if args.keyword("REPLACE") {
        RestorePolicy::Replace
    } else if args.keyword("FLUSH") {
        RestorePolicy::Flush
    } else {
        return Err(CommandError::custom(
            "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
        ));
    };
    let driver = call.engine.driver().filter(|driver| driver.has_time());
    let Engine {
        scripts, config, ..
    } = &mut *call.engine;
    scripts.restore_functions(payload, policy, (config, driver))?;
    call.engine.keyspace.stats.dirty += 1;
    Ok(Reply::OK)
}

/// `FUNCTION STATS`: replies with a map of the function that takes too long, or null, and of the engines' figures. Errors: a
/// script takes too long.
fn stats(call: &mut ControlCall<'_>) -> CommandResult {
    if let Some(running) = call.engine.running
        && running.kind == ScriptKind::Eval
    {
        return Err(running.kind.busy());
    }
    let functions = &call.engine.scripts.functions;
    let figures = vec![
        (
            Reply::bulk("libraries_count"),
            Reply::count(functions.libraries().len()),
        ),
        (
            Reply::bulk("functions_count"),
            Reply::count(functions.len()),
        ),
    ];
    Ok(Reply::Map(vec![
        (Reply::bulk("running_script"), running(call.engine)),
        (
            Reply::bulk("engines"),
            Reply::Map(vec![(Reply::bulk(ENGINE), Reply::Map(figures))]),
        ),
    ]))
}

/// The function under way.
fn running(engine: &Engine) -> Reply {
    let Some((name, request)) = &engine.scripts.functions.running else {
        return Reply::Null;
    };
    Reply::Map(vec![
        (Reply::bulk("name"), Reply::bulk(name)),
        (Reply::bulk("command"), Reply::bulks(request.words())),
        (
            Reply::bulk("duration_ms"),
            Reply::Integer(engine.script_duration_ms()),
        ),
    ])
}
