//! LATENCY and SLOWLOG: what took long.
//!
//! Time stands still while a command runs, so nothing but DEBUG SLEEP ever takes long; what is asked is answered truthfully with
//! that.

use super::info::used_rows;
use super::introspect::{help, subcommand_syntax};
use super::{Command, CommandResult, ControlCall, Flag, KeySpec, Row, Words};
use crate::error::CommandError;
use crate::latency_events::Series;
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
    Command::control("HISTORY",   3,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, history).since("2.8.13"),
    Command::control("LATEST",    2,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, latest).since("2.8.13"),
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

const DOCTOR_SPIKES: &str = "Dave, I have observed latency spikes in this Redis instance. You don't mind talking about it, do \
    you Dave?\n\n";
const DOCTOR_NO_ADVICE: &str = "\nWhile there are latency events logged, I'm not able to suggest any easy fix. Please use the \
    Redis community to get some help, providing this report in your help request.\n";
const DOCTOR_ADVICE: &str = "\nI have a few advices for you:\n\n";
const ADVICE_SLOWLOG: &str = "- Check your Slow Log to understand what are the commands you are running which are too slow to \
    execute. Please check https://redis.io/commands/slowlog for more information.\n";
const ADVICE_LARGE_OBJECTS: &str = "- Deleting, expiring or evicting (because of maxmemory policy) large objects is a blocking \
    operation. If you have very large objects that are often deleted, expired, or evicted, try to fragment those objects into \
    multiple smaller objects.\n";

/// `LATENCY DOCTOR`: replies with a text that says whether spikes are looked for, and which there were.
fn doctor(call: &mut ControlCall<'_>) -> CommandResult {
    let (config, now) = (&call.engine.config, call.now.seconds());
    let events = &call.engine.latency_events;
    let threshold = config.latency_monitor_threshold;
    let text = match (events.iter().len(), threshold) {
        (0, 0) => DOCTOR_DISABLED.to_owned(),
        (0, _) => DOCTOR_CONTENT.to_owned(),
        _ => {
            let mut text = DOCTOR_SPIKES.to_owned();
            text.extend(events.iter().enumerate().map(|(at, (event, series))| {
                format!("{}. {event}: {}\n", at + 1, series.summary(now))
            }));
            if events.get(b"command").is_some() {
                text += DOCTOR_ADVICE;
                text += &slowlog_advice(config.slowlog_log_slower_than, threshold);
                text += ADVICE_SLOWLOG;
                text += ADVICE_LARGE_OBJECTS;
            } else {
                text += DOCTOR_NO_ADVICE;
            }
            text
        }
    };
    Ok(Reply::Verbatim(*b"txt", text.into()))
}

/// What to do about a slow log that does not see all that takes long.
fn slowlog_advice(slower_than: i64, threshold: i64) -> String {
    let wanted = threshold * 1000;
    if slower_than < 0 {
        return format!(
            "- There are latency issues with potentially slow commands you are using. Try to enable the Slow Log Redis feature \
             using the command 'CONFIG SET slowlog-log-slower-than {wanted}'. If the Slow log is disabled Redis is not able to \
             log slow commands execution for you.\n"
        );
    }
    if slower_than / 1000 > threshold {
        return format!(
            "- Your current Slow Log configuration only logs events that are slower than your configured latency monitor \
             threshold. Please use 'CONFIG SET slowlog-log-slower-than {wanted}'.\n"
        );
    }
    String::new()
}

/// `LATENCY GRAPH event`: replies with the event's spikes as a drawing of letters. Errors: there are none.
fn graph(call: &mut ControlCall<'_>) -> CommandResult {
    let [_, _, event] = call.words()?;
    let Some(series) = call.engine.latency_events.get(event) else {
        let parts: [&[u8]; 3] = [b"ERR No samples available for event '", event, b"'"];
        return Err(CommandError::custom(parts.concat()));
    };
    let graph = series.graph(&String::from_utf8_lossy(event), call.now.seconds());
    Ok(Reply::Verbatim(*b"txt", graph.into()))
}

/// `LATENCY HISTOGRAM [command ...]`: replies with a map of used commands (of a container: of its subcommands) to their calls and
/// a map of microseconds to how many calls were done within them.
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
        let classes = call.engine.stats.durations(row).classes().into_iter();
        let classes = classes.map(|(micros, calls)| (micros, calls as i64));
        let buckets = classes
            .map(|(micros, calls)| (Reply::Integer(micros), Reply::Integer(calls)))
            .collect();
        let buckets = Reply::Map(buckets);
        let fields = vec![
            (Reply::bulk("calls"), calls.clone()),
            (Reply::bulk("histogram_usec"), buckets),
        ];
        (calls != Reply::Integer(0)).then(|| (Reply::bulk(row.full_name()), Reply::Map(fields)))
    });
    Ok(Reply::Map(described.collect()))
}

/// `LATENCY HISTORY event`: replies with an array of the event's spikes, each an array of time and milliseconds.
fn history(call: &mut ControlCall<'_>) -> CommandResult {
    let [_, _, event] = call.words()?;
    let series = call.engine.latency_events.get(event);
    let samples = series.into_iter().flat_map(Series::samples);
    let described = samples.map(|sample| {
        let numbers = [sample.at, sample.millis].map(Reply::Integer);
        Reply::Array(numbers.into())
    });
    Ok(Reply::Array(described.collect()))
}

/// `LATENCY LATEST`: replies with an array of events, each an array of its name, the time and milliseconds of its last spike, and
/// those of its worst.
fn latest(call: &mut ControlCall<'_>) -> CommandResult {
    let events = call.engine.latency_events.iter();
    let described = events.filter_map(|(event, series)| {
        let last = series.last()?;
        let numbers = [last.at, last.millis, series.worst].map(Reply::Integer);
        let fields = std::iter::once(Reply::bulk(event)).chain(numbers);
        Some(Reply::Array(fields.collect()))
    });
    Ok(Reply::Array(described.collect()))
}

/// `LATENCY RESET [event ...]`: forgets these events, or all; replies with how many there were.
fn reset_events(call: &mut ControlCall<'_>) -> CommandResult {
    let args = call.args();
    let events = &mut call.engine.latency_events;
    if args.is_empty() {
        return Ok(Reply::count(events.clear()));
    }
    let known = args.rest().filter(|event| events.remove(event));
    Ok(Reply::count(known.count()))
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
        Reply::Integer(entry.micros),
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
