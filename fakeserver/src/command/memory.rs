//! MEMORY, and the memory section of INFO. Sizes are estimates of what the data would take in redis-server.

use super::info::Lines;
use super::introspect::help;
use super::parameter::setting;
use super::{Command, CommandResult, ControlCall, Flag, KeySpec, ReadCall, Words};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::keyspace::{DbIndex, Value, key_size};
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const SUBCOMMANDS: &[Command] = &[
    //               name           arity  flags              keys                                             handler
    Command::control("DOCTOR",        2,   &[],               KeySpec::None,                                   doctor).since("4.0.0"),
    Command::control("HELP",          2,   &[Loading, Stale], KeySpec::None,                                   help).since("4.0.0"),
    Command::control("MALLOC-STATS",  2,   &[],               KeySpec::None,                                   malloc_stats).since("4.0.0"),
    Command::control("PURGE",         2,   &[],               KeySpec::None,                                   purge).since("4.0.0"),
    Command::control("STATS",         2,   &[],               KeySpec::None,                                   stats).since("4.0.0"),
    Command::read   ("USAGE",        -3,   &[],               KeySpec::Range { first: 2, last: 2, step: 1 },   usage).since("4.0.0"),
];

/// What a key costs in the main table and in that of deadlines beside its bytes.
const KEY_OVERHEAD: usize = 56;
/// What redis-server takes before there is any data or client, and for a client.
const STARTUP: usize = 860_000;
const SESSION: usize = 22_000;
/// Elements (and keys) that an estimate looks at, unless told otherwise.
const SAMPLES: usize = 5;
const KEY_SAMPLES: usize = 1024;
/// Below this much data MEMORY DOCTOR says nothing of it, as in Redis.
const DOCTOR_MIN: usize = 5 * 1024 * 1024;

/// `MEMORY DOCTOR`: replies with a text that finds no fault.
fn doctor(call: &mut ControlCall<'_>) -> CommandResult {
    let text = if used(call.engine) < DOCTOR_MIN {
        "Hi Sam, this instance is empty or is using very little memory, my issues detector can't be used in these conditions. \
         Please, leave for your mission on Earth and fill it with some data. The new Sam and I will be back to our programming \
         as soon as I finished rebooting.\n"
    } else {
        "Hi Sam, I can't find any memory issue in your instance. I can only account for what occurs on this base.\n"
    };
    Ok(Reply::Verbatim(*b"txt", text.into()))
}

/// `MEMORY MALLOC-STATS`: replies with a text that says that the allocator has no statistics.
fn malloc_stats(_: &mut ControlCall<'_>) -> CommandResult {
    Ok(Reply::bulk("Stats not supported for the current allocator"))
}

/// `MEMORY PURGE`: replies with `OK`.
fn purge(_: &mut ControlCall<'_>) -> CommandResult {
    Ok(Reply::OK)
}

/// `MEMORY STATS`: replies with a map of figures.
fn stats(call: &mut ControlCall<'_>) -> CommandResult {
    let (used, data) = (used(call.engine), data(call.engine));
    let keys =
        (0..call.engine.keyspace.databases()).map(|db| call.engine.keyspace.counts(DbIndex(db)).0);
    let keys: usize = keys.sum();
    let count = |name: &str, value: usize| (Reply::bulk(name), Reply::count(value));
    let ratio = |name: &str, value: f64| (Reply::bulk(name), Reply::Double(value));
    let percent = |part: usize| part as f64 * 100.0 / used.max(1) as f64;
    let overhead = used - data;
    let figures = call.engine.script_figures();
    let mut fields = vec![
        count("peak.allocated", used),
        count("total.allocated", used),
        count("startup.allocated", overhead),
        count("replication.backlog", 0),
        count("clients.slaves", 0),
        count("clients.normal", 0),
        count("cluster.links", 0),
        count("aof.buffer", 0),
        count("lua.caches", figures.scripts_size),
        count("functions.caches", figures.functions_size),
    ];
    for db in 0..call.engine.keyspace.databases() {
        let (keys, expires, _) = call.engine.keyspace.counts(DbIndex(db));
        if keys > 0 {
            let tables = vec![
                count("overhead.hashtable.main", keys * KEY_OVERHEAD),
                count("overhead.hashtable.expires", expires * KEY_OVERHEAD),
                count("overhead.hashtable.slot-to-keys", 0),
            ];
            fields.push((Reply::bulk(format!("db.{db}")), Reply::Map(tables)));
        }
    }
    fields.extend([
        count("overhead.total", overhead),
        count("keys.count", keys),
        count("keys.bytes-per-key", data.checked_div(keys).unwrap_or(0)),
        count("dataset.bytes", data),
        ratio("dataset.percentage", percent(data)),
        ratio("peak.percentage", 100.0),
        count("allocator.allocated", used),
        count("allocator.active", used),
        count("allocator.resident", used),
        ratio("allocator-fragmentation.ratio", 1.0),
        count("allocator-fragmentation.bytes", 0),
        ratio("allocator-rss.ratio", 1.0),
        count("allocator-rss.bytes", 0),
        ratio("rss-overhead.ratio", 1.0),
        count("rss-overhead.bytes", 0),
        ratio("fragmentation", 1.0),
        count("fragmentation.bytes", 0),
    ]);
    Ok(Reply::Map(fields))
}

/// `MEMORY USAGE key [SAMPLES count]`: replies with an estimate in bytes, or null; a count of 0 looks at all elements.
///
/// Errors: syntax; a count that is no integer or negative.
fn usage(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let mut samples = SAMPLES;
    while !args.is_empty() {
        if !args.keyword("SAMPLES") || args.is_empty() {
            return Err(CommandError::Syntax);
        }
        samples = match args.integer()? {
            0 => usize::MAX,
            count => usize::try_from(count).map_err(|_| CommandError::Syntax)?,
        };
    }
    let size = |value: &Value| key_size(key) + value.footprint(samples);
    let value = call.keyspace.value(key);
    Ok(value.map_or(Reply::Null, |value| Reply::count(size(value))))
}

/// Estimated bytes of all keys and values.
fn data(engine: &Engine) -> usize {
    if let Some(bytes) = engine.keyspace.bytes() {
        return bytes;
    }
    let dbs = (0..engine.keyspace.databases()).map(DbIndex);
    dbs.map(|db| data_of(engine, db)).sum()
}

/// Estimated bytes of a database, from its first keys.
fn data_of(engine: &Engine, db: DbIndex) -> usize {
    let (keys, ..) = engine.keyspace.counts(db);
    let sampled = engine.keyspace.sample(db, KEY_SAMPLES);
    let (mut bytes, mut seen) = (0, 0);
    for (key, entry) in sampled {
        bytes += key_size(key) + entry.value().footprint(SAMPLES);
        seen += 1;
    }
    let mean: usize = usize::checked_div(bytes, seen).unwrap_or(0);
    let buckets = keys.next_power_of_two() * usize::from(keys > 0);
    keys * mean + buckets * size_of::<usize>()
}

/// Estimated bytes of everything.
fn used(engine: &Engine) -> usize {
    STARTUP + engine.sessions.len() * SESSION + data(engine)
}

impl Engine {
    /// Estimated bytes of everything.
    pub(crate) fn used_memory(&self) -> u64 {
        used(self) as u64
    }
}

/// A size as INFO prints it for people.
fn human(bytes: usize) -> String {
    let units = [
        (1_u64 << 40, "T"),
        (1 << 30, "G"),
        (1 << 20, "M"),
        (1 << 10, "K"),
    ];
    let unit = units.iter().find(|(size, _)| bytes as u64 >= *size);
    unit.map_or(format!("{bytes}B"), |(size, name)| {
        format!("{:.2}{name}", bytes as f64 / *size as f64)
    })
}

/// The memory section of INFO.
pub(super) fn info(lines: &mut Lines, engine: &Engine) {
    let (used, data) = (used(engine), data(engine));
    let overhead = used - data;
    let maxmemory = engine.config.maxmemory as usize;
    let policy = setting(&engine.config, "maxmemory-policy");
    lines.line("used_memory", used);
    lines.line("used_memory_human", human(used));
    lines.line("used_memory_rss", used);
    lines.line("used_memory_rss_human", human(used));
    lines.line("used_memory_peak", used);
    lines.line("used_memory_peak_human", human(used));
    lines.line("used_memory_peak_perc", "100.00%");
    lines.line("used_memory_overhead", overhead);
    lines.line("used_memory_startup", overhead);
    lines.line("used_memory_dataset", data);
    lines.line(
        "used_memory_dataset_perc",
        format_args!("{:.2}%", data as f64 * 100.0 / used as f64),
    );
    for name in [
        "allocator_allocated",
        "allocator_active",
        "allocator_resident",
    ] {
        lines.line(name, used);
    }
    lines.lines([
        ("total_system_memory", "0".to_owned()),
        ("total_system_memory_human", human(0)),
    ]);
    script_info(lines, engine);
    lines.lines([
        ("maxmemory", maxmemory.to_string()),
        ("maxmemory_human", human(maxmemory)),
        (
            "maxmemory_policy",
            String::from_utf8_lossy(&policy).into_owned(),
        ),
    ]);
    for name in ["allocator_frag", "allocator_rss", "rss_overhead"] {
        lines.line(format_args!("{name}_ratio"), "1.00");
        lines.line(format_args!("{name}_bytes"), 0);
    }
    lines.line("mem_fragmentation_ratio", "1.00");
    lines.zeros(&[
        "mem_fragmentation_bytes",
        "mem_not_counted_for_evict",
        "mem_replication_backlog",
        "mem_total_replication_buffers",
        "mem_clients_slaves",
        "mem_clients_normal",
        "mem_cluster_links",
        "mem_aof_buffer",
    ]);
    lines.line("mem_allocator", "jemalloc-5.3.0");
    let (pending, freed) = engine.keyspace.lazily_freed();
    lines.line("active_defrag_running", 0);
    lines.line("lazyfree_pending_objects", pending);
    lines.line("lazyfreed_objects", freed);
}

/// What scripts and functions take.
fn script_info(lines: &mut Lines, engine: &Engine) {
    let figures = engine.script_figures();
    let lua_size = figures.scripts_lua_size + figures.functions_lua_size;
    let size = figures.scripts_size + figures.functions_size;
    lines.line("used_memory_lua", figures.scripts_lua_size);
    lines.line("used_memory_vm_eval", figures.scripts_lua_size);
    lines.line("used_memory_lua_human", human(figures.scripts_lua_size));
    lines.line("used_memory_scripts_eval", figures.scripts_size);
    lines.line("number_of_cached_scripts", figures.scripts);
    lines.line("number_of_functions", figures.functions);
    lines.line("number_of_libraries", figures.libraries);
    lines.line("used_memory_vm_functions", figures.functions_lua_size);
    lines.line("used_memory_vm_total", lua_size);
    lines.line("used_memory_vm_total_human", human(lua_size));
    lines.line("used_memory_functions", figures.functions_size);
    lines.line("used_memory_scripts", size);
    lines.line("used_memory_scripts_human", human(size));
}
