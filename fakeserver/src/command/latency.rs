//! LATENCY and SLOWLOG: what took long.
//!
//! Time stands still while a command runs, so nothing ever takes long; what is asked is answered truthfully with that.

use super::info::used_rows;
use super::introspect::{help, subcommand_syntax};
use super::parameter::setting;
use super::{Command, CommandResult, ControlCall, Flag, KeySpec, Row, Words};
use crate::error::CommandError;
use crate::slowlog::SlowEntry;
use crate::value::number;
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const LATENCY: &[Command] = &[
    //               name       arity  flags                                keys           handler
    Command::control("DOCTOR",    2,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, doctor).since("2.8.13"),
    Command::control("GRAPH",     3,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, graph).since("2.8.13"),
    Command::control("HELP",      2,   &[Loading, Stale],                   KeySpec::None, help).since("2.8.13"),
    Command::control("HISTOGRAM",-2,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, histogram).since("7.0.0"),
    Command::control("HISTORY",   3,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, nothing).since("2.8.13"),
    Command::control("LATEST",    2,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, nothing).since("2.8.13"),
    Command::control("RESET",    -2,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, reset_events).since("2.8.13"),
];

#[rustfmt::skip]
pub(super) const SLOWLOG: &[Command] = &[
    //               name   arity  flags                      keys           handler
    Command::control("GET",  -2,   &[Admin, Loading, Stale],  KeySpec::None, slowlog_get).since("2.2.12"),
    Command::control("HELP",  2,   &[Loading, Stale],         KeySpec::None, help).since("6.2.0"),
    Command::control("LEN",   2,   &[Admin, Loading, Stale],  KeySpec::None, slowlog_len).since("2.2.12"),
    Command::control("RESET", 2,   &[Admin, Loading, Stale],  KeySpec::None, slowlog_reset).since("2.2.12"),
];

const DOCTOR_DISABLED: &str = "I'm sorry, Dave, I can't do that. Latency monitoring is disabled in this Redis instance. \
    You may use \"CONFIG SET latency-monitor-threshold <milliseconds>.\" in order to enable it. If we weren't in a deep space \
    mission I'd suggest to take a look at https://redis.io/topics/latency-monitor.\n";
const DOCTOR_CONTENT: &str = "Dave, no latency spike was observed during the lifetime of this Redis instance, not in the \
    slightest bit. I honestly think you ought to sit down calmly, take a stress pill, and think things over.\n";

/// `LATENCY DOCTOR`: replies with a text that says whether spikes are looked for, and that there were none.
fn doctor(call: &mut ControlCall<'_>) -> CommandResult {
    let threshold = setting(&call.engine.config, "latency-monitor-threshold");
    let text = if threshold.as_bytes() == b"0" {
        DOCTOR_DISABLED
    } else {
        DOCTOR_CONTENT
    };
    Ok(Reply::Verbatim(*b"txt", text.into()))
}

/// `LATENCY GRAPH event`: always an error, since no event was recorded.
fn graph(call: &mut ControlCall<'_>) -> CommandResult {
    let [_, _, event] = call.words()?;
    let parts: [&[u8]; 3] = [b"ERR No samples available for event '", event, b"'"];
    Err(CommandError::custom(parts.concat()))
}

/// `LATENCY HISTOGRAM [command ...]`: replies with a map of used commands (of a container: of its subcommands) to their calls and
/// a map of microseconds to calls, where all are in the first bucket.
fn histogram(call: &mut ControlCall<'_>) -> CommandResult {
    let wanted: Vec<&[u8]> = call.args().rest().collect();
    let fits = |row: &Row| {
        let container = row.full_name().split('|').next().unwrap_or_default();
        wanted.is_empty()
            || wanted.iter().any(|name| {
                name.eq_ignore_ascii_case(row.full_name().as_bytes())
                    || name.eq_ignore_ascii_case(container.as_bytes())
            })
    };
    let used = used_rows(call.engine).filter(|row| fits(row));
    let described = used.filter_map(|row| {
        let calls = Reply::Integer(call.engine.stats.command(row).timed as i64);
        let buckets = Reply::Map(vec![(Reply::Integer(1), calls.clone())]);
        let fields = vec![
            (Reply::bulk("calls"), calls.clone()),
            (Reply::bulk("histogram_usec"), buckets),
        ];
        (calls != Reply::Integer(0)).then(|| (Reply::bulk(row.full_name()), Reply::Map(fields)))
    });
    Ok(Reply::Map(described.collect()))
}

/// `LATENCY HISTORY event`, `LATENCY LATEST`: replies with an empty array, since no event was recorded.
fn nothing(_: &mut ControlCall<'_>) -> CommandResult {
    Ok(Reply::Array(Vec::new()))
}

/// `LATENCY RESET [event ...]`: replies with 0, the number of events forgotten.
fn reset_events(_: &mut ControlCall<'_>) -> CommandResult {
    Ok(Reply::Integer(0))
}

/// `SLOWLOG GET [count]`: replies with the latest entries, 10 unless told otherwise, -1 for all; each an array of id, time,
/// duration, words, client address and client name. Errors: a count below -1 or none.
fn slowlog_get(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let count = args.next_if_any();
    if !args.is_empty() {
        return Err(subcommand_syntax(call));
    }
    let count = match count {
        None => 10,
        Some(count) => number::parse_integer(count)
            .filter(|count| *count >= -1)
            .ok_or(CommandError::custom(
                "ERR count should be greater than or equal to -1",
            ))?,
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let entries = call.engine.slowlog.entries().take(count);
    Ok(Reply::Array(entries.map(describe).collect()))
}

fn describe(entry: &SlowEntry) -> Reply {
    Reply::Array(vec![
        Reply::Integer(entry.id),
        Reply::Integer(entry.at.seconds()),
        Reply::Integer(0),
        Reply::bulks(&entry.words),
        Reply::bulk(&*entry.address),
        Reply::bulk(&entry.name),
    ])
}

/// `SLOWLOG LEN`: replies with the number of entries.
fn slowlog_len(call: &mut ControlCall<'_>) -> CommandResult {
    Ok(Reply::count(call.engine.slowlog.entries().len()))
}

/// `SLOWLOG RESET`: forgets all entries; replies with `OK`.
fn slowlog_reset(call: &mut ControlCall<'_>) -> CommandResult {
    call.engine.slowlog.clear();
    Ok(Reply::OK)
}
