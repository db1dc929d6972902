//! Reports made by hand, for tests of what draws them.

use std::path::PathBuf;

use crate::error::CommandError;
use crate::sweep::report::Report;
use crate::sweep::seen::{self, Role, Seen};
use crate::wire::Reply;

/// A report with a finding of each sort, hostile names among them.
pub(crate) fn findings() -> Report {
    serde_json::from_str(include_str!("findings.json")).expect("the sample is a report")
}

/// A report without findings.
pub(crate) fn clean() -> Report {
    let mut report = findings();
    report.findings.clear();
    report
}

/// Where a file of this folder is.
pub(crate) fn path(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/sweep/samples");
    PathBuf::from(folder).join(name)
}

/// Steps written as `a GET k -> 5 | server expire k | b EXEC [SET k 4; EXPIRE k 9] -> [OK, 1] | -a EXPIRE k 9`: a minus is a step that did not
/// happen, `a2` the program's second connection. Keys are told by a short list of commands, which is enough here.
pub(crate) fn steps(script: &str) -> Vec<Seen> {
    let steps = script.split('|').map(str::trim);
    steps.filter(|step| !step.is_empty()).map(step).collect()
}

fn step(text: &str) -> Seen {
    let (left, reply) = match text.split_once(" -> ") {
        Some((left, reply)) => (left, Some(self::reply(reply))),
        None => (text, None),
    };
    let (command, queued) = match left.split_once(" [") {
        Some((command, queued)) => (command, queued.trim_end_matches(']')),
        None => (left, ""),
    };
    let (role, command) = command.split_once(' ').expect("a role and its command");
    let missing = role.starts_with('-');
    let role = role.trim_start_matches('-');
    let (role, connection) = match role {
        "server" => (Role::Server, 0),
        "after" => (Role::After, 1),
        _ => {
            let role_of = if role.starts_with('a') {
                Role::A
            } else {
                Role::B
            };
            (
                role_of,
                role.get(1..).unwrap_or_default().parse().unwrap_or(1),
            )
        }
    };
    let words = split(command);
    let transaction: Vec<Vec<Vec<u8>>> = queued
        .split(';')
        .map(split)
        .filter(|words| !words.is_empty())
        .collect();
    let mut seen = Seen {
        role,
        connection,
        reply,
        reads: Vec::new(),
        writes: Vec::new(),
        missing,
        words: words.clone(),
        transaction: transaction.clone(),
    };
    for words in transaction.iter().chain([&words]) {
        touch(&mut seen, words);
    }
    seen
}

fn split(text: &str) -> Vec<Vec<u8>> {
    text.split_whitespace()
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

fn touch(seen: &mut Seen, words: &[Vec<u8>]) {
    const READS: [&str; 18] = [
        "DUMP",
        "EXISTS",
        "GET",
        "HEXISTS",
        "HGET",
        "HGETALL",
        "LLEN",
        "LRANGE",
        "SCARD",
        "SISMEMBER",
        "SMEMBERS",
        "TTL",
        "TYPE",
        "WATCH",
        "ZRANGE",
        "ZRANGEBYSCORE",
        "ZRANK",
        "ZSCORE",
    ];
    const BOTH: [&str; 8] = [
        "GETDEL", "HINCRBY", "INCR", "INCRBY", "LPOP", "RPOP", "SETNX", "ZADD",
    ];
    const NONE: [&str; 5] = ["DISCARD", "EXEC", "MULTI", "PUBLISH", "UNWATCH"];
    let name = seen::name(words);
    let numbered = ["EVAL", "EVALSHA"].contains(&name.as_str());
    let Some(key) = words.get(if numbered { 3 } else { 1 }) else {
        return;
    };
    if NONE.contains(&name.as_str()) {
        return;
    }
    let is_read = READS.contains(&name.as_str());
    let conditional = words.iter().any(|word| word.eq_ignore_ascii_case(b"NX"));
    if is_read || conditional || numbered || BOTH.contains(&name.as_str()) {
        seen.reads.push(key.clone());
    }
    if !is_read {
        seen.writes.push(key.clone());
    }
    if let ("COPY" | "RENAME", Some(target)) = (name.as_str(), words.get(2)) {
        seen.writes.push(target.clone());
    }
}

fn reply(text: &str) -> Reply {
    if let Some(items) = text.strip_prefix('[') {
        let items = items.trim_end_matches(']').split(", ");
        return Reply::Array(items.filter(|item| !item.is_empty()).map(reply).collect());
    }
    match text {
        "nil" => Reply::Null,
        "OK" => Reply::OK,
        "NOSCRIPT" => Reply::Error(CommandError::custom(
            "NOSCRIPT No matching script. Please use EVAL.",
        )),
        _ => match text.strip_prefix('"') {
            Some(text) => Reply::bulk(text.trim_end_matches('"')),
            None => text
                .parse()
                .map_or_else(|_| Reply::bulk(text), Reply::Integer),
        },
    }
}
