//! INFO: the server's state in sections of `name:value` lines.

use std::fmt::Write;

use super::client::connected;
use super::parameter::setting;
use super::{CommandResult, ControlCall, Row, Words, memory, rows};
use crate::engine::{Engine, VERSION};
use crate::keyspace::DbIndex;
use crate::pubsub::Topic;
use crate::stats::CommandStats;
use crate::wire::Reply;

/// A section: its name, whether a plain INFO shows it, and what writes its lines.
struct Section {
    name: &'static str,
    default: bool,
    write: fn(&mut Lines, &Engine),
}

const SECTIONS: [Section; 13] = [
    Section {
        name: "Server",
        default: true,
        write: server,
    },
    Section {
        name: "Clients",
        default: true,
        write: clients,
    },
    Section {
        name: "Memory",
        default: true,
        write: memory::info,
    },
    Section {
        name: "Persistence",
        default: true,
        write: persistence,
    },
    Section {
        name: "Stats",
        default: true,
        write: stats,
    },
    Section {
        name: "Replication",
        default: true,
        write: replication,
    },
    Section {
        name: "CPU",
        default: true,
        write: cpu,
    },
    Section {
        name: "Modules",
        default: true,
        write: |_, _| {},
    },
    Section {
        name: "Commandstats",
        default: false,
        write: commandstats,
    },
    Section {
        name: "Errorstats",
        default: true,
        write: errorstats,
    },
    Section {
        name: "Latencystats",
        default: false,
        write: latencystats,
    },
    Section {
        name: "Cluster",
        default: true,
        write: cluster,
    },
    Section {
        name: "Keyspace",
        default: true,
        write: keyspace,
    },
];

/// The text under way.
#[derive(Debug, Default)]
pub(super) struct Lines(String);

impl Lines {
    /// Appends a `name:value` line.
    pub(super) fn line(&mut self, name: impl std::fmt::Display, value: impl std::fmt::Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{name}:{value}\r\n");
    }

    /// Appends several lines.
    pub(super) fn lines<const N: usize>(&mut self, lines: [(&str, String); N]) {
        for (name, value) in lines {
            self.line(name, value);
        }
    }

    /// Appends lines of figures that are always 0 here.
    pub(super) fn zeros(&mut self, names: &[&str]) {
        for name in names {
            self.line(name, 0);
        }
    }
}

/// `INFO [section ...]`: replies with the sections named (`default`, `all` and `everything` stand for several), in a fixed order;
/// unknown names are ignored.
pub(super) fn info(call: &mut ControlCall<'_>) -> CommandResult {
    let wanted: Vec<&[u8]> = call.args().rest().collect();
    let asks_for = |name: &str| {
        wanted
            .iter()
            .any(|word| word.eq_ignore_ascii_case(name.as_bytes()))
    };
    let all = asks_for("all") || asks_for("everything");
    let default = wanted.is_empty() || asks_for("default");
    let mut text = Lines::default();
    for section in &SECTIONS {
        if all || default && section.default || asks_for(section.name) {
            let blank = if text.0.is_empty() { "" } else { "\r\n" };
            let _ = write!(text.0, "{blank}# {}\r\n", section.name);
            (section.write)(&mut text, call.engine);
        }
    }
    Ok(Reply::Verbatim(*b"txt", text.0.into()))
}

fn server(lines: &mut Lines, engine: &Engine) {
    let uptime = (engine.now.micros() - engine.started_at.micros()).max(0) / 1_000_000;
    let hz = setting(&engine.config, "hz");
    let hz = String::from_utf8_lossy(&hz);
    lines.lines([
        ("redis_version", VERSION.to_owned()),
        ("redis_git_sha1", "00000000".to_owned()),
        ("redis_git_dirty", "0".to_owned()),
        ("redis_build_id", "0000000000000000".to_owned()),
        ("redis_mode", "standalone".to_owned()),
        (
            "os",
            format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        ),
        ("arch_bits", usize::BITS.to_string()),
        ("monotonic_clock", "none".to_owned()),
        ("multiplexing_api", "none".to_owned()),
        ("atomicvar_api", "none".to_owned()),
        ("gcc_version", "0.0.0".to_owned()),
        ("process_id", std::process::id().to_string()),
        ("process_supervised", "no".to_owned()),
        ("run_id", identity(engine, 1)),
        ("tcp_port", engine.config.port.to_string()),
        ("server_time_usec", engine.now.micros().to_string()),
        ("uptime_in_seconds", uptime.to_string()),
        ("uptime_in_days", (uptime / 86_400).to_string()),
        ("hz", hz.to_string()),
        ("configured_hz", hz.to_string()),
        ("lru_clock", (engine.now.seconds() & 0xff_ffff).to_string()),
        ("executable", String::new()),
        ("config_file", String::new()),
        ("io_threads_active", "0".to_owned()),
    ]);
}

/// Forty hexadecimal digits that name this server, from its seed.
fn identity(engine: &Engine, salt: u64) -> String {
    let mut rng = fastrand::Rng::with_seed(engine.config.seed.wrapping_add(salt));
    (0..40)
        .map(|_| char::from_digit(rng.u32(0..16), 16).unwrap_or('0'))
        .collect()
}

fn clients(lines: &mut Lines, engine: &Engine) {
    let sessions = || engine.sessions.values().filter(|session| !session.closing);
    let blocked = sessions().filter(|session| session.blocked.is_some() || session.postponed);
    let with_timeout = sessions().filter_map(|session| session.blocked.as_ref()?.deadline);
    let input = sessions()
        .map(|session| session.decoder.pending_len())
        .max();
    let [tracking, ..] = cache_counts(engine);
    lines.lines([
        ("connected_clients", connected(engine).len().to_string()),
        ("cluster_connections", "0".to_owned()),
        ("maxclients", engine.config.maxclients.to_string()),
        (
            "client_recent_max_input_buffer",
            input.unwrap_or(0).to_string(),
        ),
        ("client_recent_max_output_buffer", "0".to_owned()),
        ("blocked_clients", blocked.count().to_string()),
        ("tracking_clients", tracking.to_string()),
        ("clients_in_timeout_table", with_timeout.count().to_string()),
    ]);
}

/// Clients that track keys, and what is remembered of them.
fn cache_counts(engine: &Engine) -> [usize; 4] {
    let caches = engine.keyspace.caches.as_ref();
    caches.map_or([0; 4], |caches| caches.counts())
}

fn persistence(lines: &mut Lines, engine: &Engine) {
    let aof = setting(&engine.config, "appendonly").as_bytes() == b"yes";
    lines.zeros(&[
        "loading",
        "async_loading",
        "current_cow_peak",
        "current_cow_size",
        "current_cow_size_age",
    ]);
    lines.line("current_fork_perc", "0.00");
    lines.zeros(&["current_save_keys_processed", "current_save_keys_total"]);
    let saving = &engine.saving;
    lines.line("rdb_changes_since_last_save", engine.keyspace.stats.dirty);
    lines.line("rdb_bgsave_in_progress", 0);
    lines.line("rdb_last_save_time", saving.at);
    lines.line("rdb_last_bgsave_status", "ok");
    let time = |has_been| if has_been { 0 } else { -1 };
    lines.line("rdb_last_bgsave_time_sec", time(saving.in_background));
    lines.line("rdb_current_bgsave_time_sec", -1);
    lines.line("rdb_saves", engine.stats.saves);
    lines.line("rdb_last_cow_size", 0);
    lines.line("rdb_last_load_keys_expired", saving.left_out);
    lines.line("rdb_last_load_keys_loaded", saving.loaded);
    lines.line("aof_enabled", u8::from(aof));
    lines.zeros(&["aof_rewrite_in_progress", "aof_rewrite_scheduled"]);
    lines.line("aof_last_rewrite_time_sec", time(saving.has_rewritten));
    lines.line("aof_current_rewrite_time_sec", -1);
    lines.line("aof_last_bgrewrite_status", "ok");
    lines.line("aof_rewrites", engine.stats.rewrites);
    lines.line("aof_rewrites_consecutive_failures", 0);
    lines.line("aof_last_write_status", "ok");
    lines.zeros(&[
        "aof_last_cow_size",
        "module_fork_in_progress",
        "module_fork_last_cow_size",
    ]);
}

fn stats(lines: &mut Lines, engine: &Engine) {
    let (stats, keyspace) = (&engine.stats, &engine.keyspace.stats);
    lines.line("total_connections_received", stats.connections_received);
    lines.line("total_commands_processed", stats.commands_processed);
    lines.line("instantaneous_ops_per_sec", 0);
    lines.line("total_net_input_bytes", stats.input_bytes);
    lines.line("total_net_output_bytes", stats.output_bytes);
    lines.zeros(&["total_net_repl_input_bytes", "total_net_repl_output_bytes"]);
    for name in [
        "input_kbps",
        "output_kbps",
        "input_repl_kbps",
        "output_repl_kbps",
    ] {
        lines.line(format_args!("instantaneous_{name}"), "0.00");
    }
    lines.line("rejected_connections", stats.connections_rejected);
    lines.zeros(&["sync_full", "sync_partial_ok", "sync_partial_err"]);
    lines.line("expired_keys", keyspace.expired_keys);
    lines.line("expired_stale_perc", "0.00");
    lines.zeros(&[
        "expired_time_cap_reached_count",
        "expire_cycle_cpu_milliseconds",
    ]);
    lines.line("evicted_keys", keyspace.evicted_keys);
    lines.zeros(&[
        "evicted_clients",
        "total_eviction_exceeded_time",
        "current_eviction_exceeded_time",
    ]);
    lines.line("keyspace_hits", keyspace.hits.get());
    lines.line("keyspace_misses", keyspace.misses.get());
    let topics = |topic| engine.pubsub.active(topic).count();
    lines.line("pubsub_channels", topics(Topic::Channel));
    lines.line("pubsub_patterns", topics(Topic::Pattern));
    lines.line("pubsubshard_channels", topics(Topic::Shard));
    lines.zeros(&["latest_fork_usec", "total_forks"]);
    lines.line("migrate_cached_sockets", engine.links.len());
    lines.zeros(&[
        "slave_expires_tracked_keys",
        "active_defrag_hits",
        "active_defrag_misses",
        "active_defrag_key_hits",
        "active_defrag_key_misses",
        "total_active_defrag_time",
        "current_active_defrag_time",
    ]);
    let [_, keys, items, prefixes] = cache_counts(engine);
    lines.line("tracking_total_keys", keys);
    lines.line("tracking_total_items", items);
    lines.line("tracking_total_prefixes", prefixes);
    lines.zeros(&["unexpected_error_replies"]);
    lines.line("total_error_replies", stats.error_replies);
    lines.line("dump_payload_sanitizations", 0);
    lines.line("total_reads_processed", stats.reads);
    lines.line("total_writes_processed", stats.writes);
    lines.zeros(&[
        "io_threaded_reads_processed",
        "io_threaded_writes_processed",
        "reply_buffer_shrinks",
        "reply_buffer_expands",
    ]);
}

fn replication(lines: &mut Lines, engine: &Engine) {
    let backlog = setting(&engine.config, "repl-backlog-size");
    lines.lines([
        ("role", "master".to_owned()),
        ("connected_slaves", "0".to_owned()),
        ("master_failover_state", "no-failover".to_owned()),
        ("master_replid", identity(engine, 2)),
        ("master_replid2", "0".repeat(40)),
        ("master_repl_offset", "0".to_owned()),
        ("second_repl_offset", "-1".to_owned()),
        ("repl_backlog_active", "0".to_owned()),
        (
            "repl_backlog_size",
            String::from_utf8_lossy(&backlog).into_owned(),
        ),
        ("repl_backlog_first_byte_offset", "0".to_owned()),
        ("repl_backlog_histlen", "0".to_owned()),
    ]);
}

/// The engine sees no processor clock.
fn cpu(lines: &mut Lines, _: &Engine) {
    for name in [
        "sys",
        "user",
        "sys_children",
        "user_children",
        "sys_main_thread",
        "user_main_thread",
    ] {
        lines.line(format_args!("used_cpu_{name}"), "0.000000");
    }
}

/// All rows, subcommands included, that were called or refused since the last reset.
pub(super) fn used_rows(engine: &Engine) -> impl Iterator<Item = &'static Row> {
    rows()
        .iter()
        .flat_map(|row| std::iter::once(*row).chain(row.subcommands().iter().copied()))
        .filter(|row| engine.stats.command(row) != CommandStats::default())
}

/// Time stands still inside of a command, so only one that sleeps takes any.
fn commandstats(lines: &mut Lines, engine: &Engine) {
    for row in used_rows(engine) {
        let stats = engine.stats.command(row);
        let (calls, rejected, failed) = (stats.calls, stats.rejected, stats.failed);
        let (usec, per_call) = (stats.micros, stats.micros as f64 / calls.max(1) as f64);
        lines.line(
            format_args!("cmdstat_{}", row.full_name()),
            format_args!(
                "calls={calls},usec={usec},usec_per_call={per_call:.2},rejected_calls={rejected},failed_calls={failed}"
            ),
        );
    }
}

fn errorstats(lines: &mut Lines, engine: &Engine) {
    for (code, count) in engine.stats.errors() {
        let code = String::from_utf8_lossy(code);
        lines.line(
            format_args!("errorstat_{code}"),
            format_args!("count={count}"),
        );
    }
}

fn latencystats(lines: &mut Lines, engine: &Engine) {
    let percentiles = setting(&engine.config, "latency-tracking-info-percentiles");
    let percentiles = String::from_utf8_lossy(&percentiles);
    for row in used_rows(engine).filter(|row| engine.stats.command(row).timed > 0) {
        let durations = engine.stats.durations(row);
        let value = |percentile: &str| {
            let nanos = durations.percentile(percentile.parse().unwrap_or(0.0));
            format!("p{percentile}={}.{:03}", nanos / 1000, nanos % 1000)
        };
        let values: Vec<_> = percentiles.split_ascii_whitespace().map(value).collect();
        let name = format_args!("latency_percentiles_usec_{}", row.full_name());
        lines.line(name, values.join(","));
    }
}

fn cluster(lines: &mut Lines, _: &Engine) {
    lines.line("cluster_enabled", 0);
}

fn keyspace(lines: &mut Lines, engine: &Engine) {
    for db in 0..engine.keyspace.databases() {
        let (keys, expires, sum) = engine.keyspace.counts(DbIndex(db));
        if keys == 0 {
            continue;
        }
        let mean = if expires == 0 {
            0
        } else {
            sum / expires as i128
        };
        let left = if expires == 0 {
            0
        } else {
            (mean - i128::from(engine.now.millis())).max(0)
        };
        lines.line(
            format_args!("db{db}"),
            format_args!("keys={keys},expires={expires},avg_ttl={left}"),
        );
    }
}
