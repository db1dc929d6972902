//! Server commands: databases as a whole, time, saving, replication of a server that has no replicas, and the containers of
//! [`super::config_command`], [`super::introspect`], [`super::latency`] and [`super::memory`].

use super::connection::db_index;
use super::info::info;
use super::introspect::{command, help};
use super::{
    Command, CommandResult, ControlCall, Family, Flag, Group, KeySpec, ReadCall, Words, WriteCall,
};
use super::{acl, config_command, debug, introspect, latency, memory, replconf};
use crate::error::CommandError;
use crate::value::number;
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Server, &[
    //                 name           arity  flags                                                            keys           handler
    Command::container("ACL",         -2,    &[], acl::SUBCOMMANDS).since("6.0.0"),
    Command::control  ("BGREWRITEAOF", 1,    &[Admin, NoScript, NoAsyncLoading],                              KeySpec::None, bgrewriteaof),
    Command::control  ("BGSAVE",      -1,    &[Admin, NoScript, NoAsyncLoading],                              KeySpec::None, bgsave),
    Command::control  ("COMMAND",     -1,    &[Loading, Stale],                                               KeySpec::None, command).with_subcommands(introspect::SUBCOMMANDS).since("2.8.13"),
    Command::container("CONFIG",      -2,    &[], config_command::SUBCOMMANDS).since("2.0.0"),
    Command::read     ("DBSIZE",       1,    &[Fast],                                                         KeySpec::None, dbsize),
    Command::control  ("DEBUG",       -2,    &[Admin, NoScript, Loading, Stale, Protected],                   KeySpec::None, debug::debug),
    Command::control  ("FAILOVER",    -1,    &[Admin, NoScript, Stale],                                       KeySpec::None, failover).since("6.2.0"),
    Command::write    ("FLUSHALL",    -1,    &[],                                                             KeySpec::None, flushall),
    Command::write    ("FLUSHDB",     -1,    &[],                                                             KeySpec::None, flushdb),
    Command::control  ("INFO",        -1,    &[Loading, Stale],                                               KeySpec::None, info),
    Command::control  ("LASTSAVE",     1,    &[Loading, Stale, Fast],                                         KeySpec::None, lastsave),
    Command::container("LATENCY",     -2,    &[], latency::LATENCY).since("2.8.13"),
    Command::read     ("LOLWUT",      -1,    &[Fast],                                                         KeySpec::None, lolwut).since("5.0.0"),
    Command::container("MEMORY",      -2,    &[], memory::SUBCOMMANDS).since("4.0.0"),
    Command::container("MODULE",      -2,    &[], MODULE).since("4.0.0"),
    Command::control  ("MONITOR",      1,    &[Admin, NoScript, Loading, Stale],                              KeySpec::None, monitor),
    Command::control  ("REPLCONF",    -1,    &[Admin, NoScript, Loading, Stale, AllowBusy],                   KeySpec::None, replconf::replconf).since("3.0.0"),
    Command::control  ("REPLICAOF",    3,    &[Admin, NoScript, Stale, NoAsyncLoading],                       KeySpec::None, replicaof).since("5.0.0"),
    Command::control  ("ROLE",         1,    &[NoScript, Loading, Stale, Fast],                               KeySpec::None, role).since("2.8.12"),
    Command::control  ("SAVE",         1,    &[Admin, NoScript, NoAsyncLoading, NoMulti],                     KeySpec::None, save),
    Command::control  ("SHUTDOWN",    -1,    &[Admin, NoScript, Loading, Stale, NoMulti, AllowBusy],          KeySpec::None, shutdown),
    Command::control  ("SLAVEOF",      3,    &[Admin, NoScript, Stale, NoAsyncLoading],                       KeySpec::None, replicaof),
    Command::container("SLOWLOG",     -2,    &[], latency::SLOWLOG).since("2.2.12"),
    Command::control  ("SWAPDB",       3,    &[Write, Fast],                                                  KeySpec::None, swapdb).since("4.0.0"),
    Command::control  ("TIME",         1,    &[Loading, Stale, Fast],                                         KeySpec::None, time).since("2.6.0"),
]);

#[rustfmt::skip]
const MODULE: &[Command] = &[
    //               name    arity  flags                                         keys           handler
    Command::control("HELP",   2,   &[Loading, Stale],                            KeySpec::None, help).since("5.0.0"),
    Command::control("LIST",   2,   &[Admin, NoScript],                           KeySpec::None, module_list).since("4.0.0"),
    Command::control("LOAD",  -3,   &[Admin, NoScript, NoAsyncLoading, Protected], KeySpec::None, module_load).since("4.0.0"),
    Command::control("LOADEX",-3,   &[Admin, NoScript, NoAsyncLoading, Protected], KeySpec::None, module_load).since("7.0.0"),
    Command::control("UNLOAD", 3,   &[Admin, NoScript, NoAsyncLoading, Protected], KeySpec::None, module_unload).since("4.0.0"),
];

/// `BGREWRITEAOF`: replies that it has begun; there is no file, so nothing is left to do.
fn bgrewriteaof(call: &mut ControlCall<'_>) -> CommandResult {
    call.engine.saving.has_rewritten = true;
    call.engine.stats.rewrites += 1;
    Ok(Reply::simple(
        "Background append only file rewriting started",
    ))
}

/// `BGSAVE [SCHEDULE]`: replies that it has begun; there is no file, so it is over at once.
fn bgsave(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    args.keyword("SCHEDULE");
    if !args.is_empty() {
        return Err(CommandError::Syntax);
    }
    save(call)?;
    call.engine.saving.in_background = true;
    Ok(Reply::simple("Background saving started"))
}

/// `DBSIZE`: replies with the number of keys of the session's database.
fn dbsize(call: &mut ReadCall<'_>) -> CommandResult {
    Ok(Reply::count(call.keyspace.len()))
}

/// `FAILOVER [TO host port [FORCE]] [TIMEOUT milliseconds]`, `FAILOVER ABORT`: always an error, since there are no replicas.
///
/// Errors: syntax; a port or time that is no integer; a time that is not positive; no replicas; nothing to abort.
fn failover(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    if args.len() == 1 && args.keyword("ABORT") {
        return Err(CommandError::custom("ERR No failover in progress."));
    }
    let (mut to, mut timeout, mut force) = (false, false, false);
    while !args.is_empty() {
        if !timeout && args.len() >= 2 && args.keyword("TIMEOUT") {
            timeout = true;
            if args.integer()? <= 0 {
                return Err(CommandError::custom(
                    "ERR FAILOVER timeout must be greater than 0",
                ));
            }
        } else if !to && args.len() >= 3 && args.keyword("TO") {
            to = true;
            args.next()?;
            args.integer()?;
        } else if !force && args.keyword("FORCE") {
            force = true;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Err(CommandError::custom(
        "ERR FAILOVER requires connected replicas.",
    ))
}

/// `FLUSHALL [ASYNC|SYNC]`: removes the keys of all databases; replies with `OK`.
fn flushall(call: &mut WriteCall<'_>) -> CommandResult {
    let in_background = in_background(call)?;
    call.keyspace.flush_all(in_background);
    Ok(Reply::OK)
}

/// `FLUSHDB [ASYNC|SYNC]`: removes the keys of the session's database; replies with `OK`.
fn flushdb(call: &mut WriteCall<'_>) -> CommandResult {
    let in_background = in_background(call)?;
    call.keyspace.flush(call.keyspace.selected(), in_background);
    Ok(Reply::OK)
}

/// Whether redis-server would free what is flushed in the background.
fn in_background(call: &WriteCall<'_>) -> Result<bool, CommandError> {
    let mut args = call.args();
    let in_background = if args.is_empty() {
        call.keyspace.lazy_free.user_flush
    } else if args.keyword("ASYNC") {
        true
    } else if args.keyword("SYNC") {
        false
    } else {
        return Err(CommandError::Syntax);
    };
    args.finish()?;
    Ok(in_background)
}

/// `LASTSAVE`: replies with the time of the last SAVE or BGSAVE, or of the start, in seconds since the epoch.
fn lastsave(call: &mut ControlCall<'_>) -> CommandResult {
    Ok(Reply::Integer(call.engine.saving.at))
}

/// `LOLWUT [VERSION version] [...]`: replies with the server's version, without a picture.
fn lolwut(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    if args.len() >= 2 && args.keyword("VERSION") {
        for number in args.rest() {
            number::parse_integer(number).ok_or(CommandError::NotAnInteger)?;
        }
    }
    let text = format!("Redis ver. {}\n", crate::engine::VERSION);
    Ok(Reply::Verbatim(*b"txt", text.into()))
}

/// `MODULE LIST`: replies with an empty array.
fn module_list(_: &mut ControlCall<'_>) -> CommandResult {
    Ok(Reply::Array(Vec::new()))
}

/// `MODULE LOAD path ...`, `MODULE LOADEX path ...`: always an error.
fn module_load(_: &mut ControlCall<'_>) -> CommandResult {
    Err(CommandError::custom(
        "ERR Error loading the extension. Please check the server logs.",
    ))
}

/// `MODULE UNLOAD name`: always an error, since no module is loaded.
fn module_unload(_: &mut ControlCall<'_>) -> CommandResult {
    Err(CommandError::custom(
        "ERR Error unloading module: no such module with that name",
    ))
}

/// `MONITOR`: replies with `OK`, and from then on shows the connection every command that is run.
fn monitor(call: &mut ControlCall<'_>) -> CommandResult {
    call.engine.monitors.insert(call.session);
    Ok(Reply::OK)
}

/// `REPLICAOF host port`, `REPLICAOF NO ONE`: replies with `OK` to the second, which says what is the case.
///
/// Errors: a port that is none; any master, since there is no replication here.
fn replicaof(call: &mut ControlCall<'_>) -> CommandResult {
    let [_, host, port] = call.words()?;
    if host.eq_ignore_ascii_case(b"no") && port.eq_ignore_ascii_case(b"one") {
        return Ok(Reply::OK);
    }
    let port = number::parse_integer(port).filter(|port| (0..=65_535).contains(port));
    port.ok_or(CommandError::custom("ERR Invalid master port"))?;
    Err(CommandError::custom(
        "ERR REPLICAOF is not supported by this server: it has no replication",
    ))
}

/// `ROLE`: replies with `master`, an offset of 0 and no replicas.
fn role(_: &mut ControlCall<'_>) -> CommandResult {
    Ok(Reply::Array(vec![
        Reply::bulk("master"),
        Reply::Integer(0),
        Reply::Array(Vec::new()),
    ]))
}

/// `SAVE`: replies with `OK`; nothing is written anywhere, but LASTSAVE and the count of changes say that it was done.
fn save(call: &mut ControlCall<'_>) -> CommandResult {
    call.engine.saving.at = call.now.seconds();
    call.engine.stats.saves += 1;
    call.engine.keyspace.stats.dirty = 0;
    Ok(Reply::OK)
}

/// `SHUTDOWN [NOSAVE|SAVE] [NOW] [FORCE] [ABORT]`: asks the driver to end the server and closes the connection without a reply.
///
/// Errors: syntax; ABORT, since no shutdown ever waits; `BUSY` amid a script, but for NOSAVE.
fn shutdown(call: &mut ControlCall<'_>) -> CommandResult {
    let (mut save, mut nosave, mut abort, mut other) = (false, false, false, false);
    for word in call.args().rest() {
        match word.to_ascii_uppercase().as_slice() {
            b"SAVE" => save = true,
            b"NOSAVE" => nosave = true,
            b"NOW" | b"FORCE" => other = true,
            b"ABORT" => abort = true,
            _ => return Err(CommandError::Syntax),
        }
    }
    if save && nosave || abort && (save || nosave || other) {
        return Err(CommandError::Syntax);
    }
    if abort {
        return Err(CommandError::custom("ERR No shutdown in progress."));
    }
    if let (Some(busy), false) = (call.engine.busy(), nosave) {
        return Err(busy);
    }
    call.engine.shutdown = true;
    call.engine.hang_up(call.session);
    Ok(Reply::Nothing)
}

/// `SWAPDB index1 index2`: exchanges two databases; replies with `OK`. Errors: an index that is no integer or out of range.
fn swapdb(call: &mut ControlCall<'_>) -> CommandResult {
    let [_, first, second] = call.words()?;
    let first = db_number(first, "ERR invalid first DB index")?;
    let second = db_number(second, "ERR invalid second DB index")?;
    let (first, second) = (db_index(call, first)?, db_index(call, second)?);
    call.engine.keyspace.swap(first, second);
    Ok(Reply::OK)
}

fn db_number(word: &[u8], text: &'static str) -> Result<i64, CommandError> {
    number::parse_integer(word)
        .filter(|number| i32::try_from(*number).is_ok())
        .ok_or(CommandError::custom(text))
}

/// `TIME`: replies with seconds since the epoch and the microseconds on top of them.
fn time(call: &mut ControlCall<'_>) -> CommandResult {
    let micros = call.now.micros();
    Ok(Reply::bulks([
        micros.div_euclid(1_000_000).to_string(),
        micros.rem_euclid(1_000_000).to_string(),
    ]))
}
