//! DEBUG: what tests of the server itself use. Refused unless `enable-debug-command` allows it.

use super::debug_value;
use super::digest::{digest, digest_value};
use super::introspect::{help_of, subcommand_syntax};
use super::parameter_value::memory as memory_value;
use super::{Args, CommandResult, ControlCall, Words};
use crate::config::Config;
use crate::error::CommandError;
use crate::keyspace::{Typed, Value};
use crate::session::Session;
use crate::value::{Blob, StringValue, glob, number};
use crate::wire::{Protocol, Reply};

/// Keys that one DEBUG POPULATE makes at most: Redis has no bound, memory has.
const POPULATE_MAX: i64 = 10_000_000;
/// Bytes of a value that DEBUG POPULATE makes at most, as for any string.
const POPULATE_SIZE_MAX: i64 = 512 * 1024 * 1024;
/// Texts that DEBUG STRINGMATCH-TEST matches; Redis goes on for ten million.
const MATCHES: usize = 100_000;
/// Bytes of such a text and of its pattern, less one.
const MATCHED_LEN: usize = 32;
/// Sizes of redis-server's structures on a 64-bit machine.
const STRUCTURE_SIZES: &str =
    "bits:64 robj:16 dictentry:24 sdshdr5:1 sdshdr8:3 sdshdr16:5 sdshdr32:9 sdshdr64:17 ";
/// Redis keeps this far from 4 GB.
const PACKED_THRESHOLD_MAX: u64 = (1 << 32) - (1 << 20);

#[expect(clippy::approx_constant, reason = "Redis' example is just this number")]
const EXAMPLE_DOUBLE: f64 = 3.141;

/// `DEBUG subcommand [...]`; the subcommands that are served are those below, all others get the error of an unknown one.
pub(super) fn debug(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let name = args.next()?.to_ascii_uppercase();
    match (name.as_slice(), args.len()) {
        (b"HELP", 0) => Ok(help_of("debug")),
        // What these would change is not there.
        (
            b"AOF-FLUSH-SLEEP" | b"DROP-CLUSTER-PACKET-FILTER" | b"LEAK" | b"LOG" | b"PAUSE-CRON",
            1,
        )
        | (b"CHANGE-REPL-ID" | b"LOADAOF", 0)
        | (b"REPLICATE", 1..) => Ok(Reply::OK),
        (b"ASSERT" | b"OOM" | b"PANIC" | b"SEGFAULT", _) => crash(call),
        (b"CLUSTERLINK", 3) if args.keyword("KILL") => Err(CommandError::custom(
            "ERR Debug option only available for cluster mode enabled setup!",
        )),
        (b"CLIENT-EVICTION", 0) => Err(CommandError::custom("ERR maxmemory-clients is disabled.")),
        (b"CONFIG-REWRITE-FORCE-ALL", 0) => Err(CommandError::custom(
            "ERR CONFIG-REWRITE-FORCE-ALL failed: Bad address",
        )),
        (b"DIGEST", 0) => digest(call),
        (b"DIGEST-VALUE", _) => digest_value(call),
        (b"ERROR", 1) => Err(CommandError::custom(args.next()?)),
        (b"HTSTATS", 1) => debug_value::htstats(call, args.next()?),
        (b"HTSTATS-KEY", 1) => debug_value::htstats_key(call, args.next()?),
        (b"LISTPACK", 1) => debug_value::listpack(call, args.next()?),
        (b"OBJECT", 1..) => debug_value::object(call, args.next()?),
        (b"POPULATE", 1..=3) => populate(call, args),
        (b"PROTOCOL", 1) => protocol(call, args.next()?),
        (b"QUICKLIST", 1..=2) => debug_value::quicklist(call, args.next()?),
        (b"QUICKLIST-PACKED-THRESHOLD", 1) => packed_threshold(call, args.next()?),
        (b"RELOAD", _) => debug_value::reload(call, args),
        (b"REPLYBUFFER", 2) => debug_value::replybuffer(call, args),
        (b"SDSLEN", 1) => debug_value::sdslen(call, args.next()?),
        (b"SET-ACTIVE-EXPIRE", 1) => {
            call.engine.config.active_expire = is_on(args.next()?);
            Ok(Reply::OK)
        }
        // Redis lets scripts call everything then, and ends at some of it; its own tests call DEBUG.
        (b"SET-DISABLE-DENY-SCRIPTS", 1) => {
            call.engine.config.scripts_may_debug = is_on(args.next()?);
            Ok(Reply::OK)
        }
        (b"SET-SKIP-CHECKSUM-VALIDATION", 1) => {
            call.engine.config.skips_checksums = is_on(args.next()?);
            Ok(Reply::OK)
        }
        (b"SLEEP", 1) => sleep(call, args.next()?),
        (b"STRINGMATCH-TEST", 0) => Ok(stringmatch_test(call)),
        (b"STRUCTSIZE", 0) => Ok(Reply::bulk(STRUCTURE_SIZES)),
        _ => Err(subcommand_syntax(call)),
    }
}

/// Ends the server without a word to anybody, which is all that its clients see of a crash.
fn crash(call: &mut ControlCall<'_>) -> CommandResult {
    call.engine.shutdown = true;
    call.engine.hang_up_unanswered(call.session);
    // Nobody is answered this, but a script or a transaction goes no further with it than with any error.
    Err(CommandError::custom("ERR the server has ended"))
}

/// `DEBUG STRINGMATCH-TEST`: matches random texts with random patterns; replies that it has come to an end.
fn stringmatch_test(call: &mut ControlCall<'_>) -> Reply {
    let rng = &mut call.engine.rng;
    let mut text = || -> Vec<u8> {
        (0..rng.usize(..MATCHED_LEN))
            .map(|_| rng.u8(..128))
            .collect()
    };
    for _ in 0..MATCHES {
        let (pattern, text) = (text(), text());
        glob::matches(&pattern, &text, false);
    }
    Reply::simple("Apparently Redis did not crash: test passed")
}

/// A number that is not 0; what is no number is 0.
fn is_on(word: &[u8]) -> bool {
    number::parse_integer(word).is_some_and(|number| number != 0)
}

/// `DEBUG POPULATE count [prefix] [size]`: makes string keys `prefix:0` and so on that do not exist yet; replies with `OK`.
fn populate(call: &mut ControlCall<'_>, mut args: Args<'_>) -> CommandResult {
    let positive = |word: &[u8], max: i64| {
        number::parse_integer(word)
            .filter(|number| (0..=max).contains(number))
            .ok_or(CommandError::OutOfRangePositive)
    };
    let count = positive(args.next()?, POPULATE_MAX)?;
    let prefix = args.next_if_any().unwrap_or(b"key");
    let size = args
        .next_if_any()
        .map(|size| positive(size, POPULATE_SIZE_MAX))
        .transpose()?;
    let db = session(call).map(|session| session.db).unwrap_or_default();
    let keyspace = &mut call.engine.keyspace;
    keyspace.select(db);
    for n in 0..count {
        let key = [prefix, b":", n.to_string().as_bytes()].concat();
        if keyspace.exists(&key) {
            continue;
        }
        let mut value = format!("value:{n}").into_bytes();
        if let Some(size) = size {
            value.resize(size as usize, 0);
        }
        keyspace.set(&key, StringValue::Text(Blob::from(value)).into_value());
        keyspace.changed_uncounted(&key);
    }
    Ok(Reply::OK)
}

fn session<'a>(call: &'a ControlCall<'_>) -> Option<&'a Session> {
    call.engine
        .sessions
        .get(&call.session)
        .map(|session| &**session)
}

/// `DEBUG PROTOCOL kind`: replies with an example of a kind of reply. Errors: unknown kind; a push in RESP2.
fn protocol(call: &mut ControlCall<'_>, kind: &[u8]) -> CommandResult {
    let numbers = || (0..3).map(Reply::Integer).collect();
    let reply = match kind.to_ascii_lowercase().as_slice() {
        b"string" => Reply::bulk("Hello World"),
        b"integer" => Reply::Integer(12345),
        b"double" => Reply::Double(EXAMPLE_DOUBLE),
        b"null" => Reply::Null,
        b"array" => Reply::Array(numbers()),
        b"set" => Reply::Set(numbers()),
        b"map" => Reply::Map(
            (0..3)
                .map(|n| (Reply::Integer(n), Reply::Boolean(n == 1)))
                .collect(),
        ),
        b"attrib" => {
            let popularity = vec![Reply::bulk("key:123"), Reply::Integer(90)];
            Reply::Attribute(
                vec![(Reply::bulk("key-popularity"), Reply::Array(popularity))],
                Box::new(Reply::bulk("Some real reply following the attribute")),
            )
        }
        b"push" => {
            if session(call).is_some_and(|session| session.protocol == Protocol::Resp2) {
                return Err(CommandError::custom(
                    "ERR RESP2 is not supported by this command",
                ));
            }
            Reply::Several(vec![
                Reply::Push(vec![Reply::bulk("server-cpu-usage"), Reply::Integer(42)]),
                Reply::bulk("Some real reply following the push reply"),
            ])
        }
        b"verbatim" => Reply::Verbatim(*b"txt", Blob::from("This is a verbatim\nstring")),
        b"true" => Reply::Boolean(true),
        b"false" => Reply::Boolean(false),
        b"bignum" => Reply::BigNumber("1234567999999999999999999999999999999".into()),
        _ => {
            return Err(CommandError::custom(
                "ERR Wrong protocol type name. Please use one of the following: \
                 string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    };
    Ok(reply)
}

/// `DEBUG QUICKLIST-PACKED-THRESHOLD size`: from so many bytes on an element of a list has a node of its own, 0 for the number
/// that is there at start; replies with `OK`. Errors: not a memory value, or too large.
fn packed_threshold(call: &mut ControlCall<'_>, size: &[u8]) -> CommandResult {
    let size = memory_value(size).filter(|size| *size <= PACKED_THRESHOLD_MAX);
    let size = match size {
        Some(0) => Config::default().list_packed_threshold,
        Some(size) => usize::try_from(size).unwrap_or(usize::MAX),
        None => {
            return Err(CommandError::custom(
                "ERR argument must be a memory value bigger than 1 and smaller than 4gb",
            ));
        }
    };
    call.engine.config.list_packed_threshold = size;
    call.engine.keyspace.for_each_value(|value| {
        if let Value::List(list) = value {
            list.set_plain_len_min(size);
        }
    });
    Ok(Reply::OK)
}

/// `DEBUG SLEEP seconds`: the server does nothing for so long; replies with `OK`. What is no number is 0.
fn sleep(call: &mut ControlCall<'_>, seconds: &[u8]) -> CommandResult {
    let seconds = number::parse_float(seconds).unwrap_or(0.0);
    call.engine.sleep((seconds * 1_000_000.0) as i64);
    Ok(Reply::OK)
}
