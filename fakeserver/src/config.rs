//! The settings that the engine honours, with redis-server 7.0.15's defaults.

use std::collections::BTreeMap;

use crate::command::Row;
use crate::error::CommandError;
use crate::keyspace::Classes;
use crate::output_limits::OutputLimits;
use crate::payload::{Check, Compression};
use crate::value::Blob;

/// Who may call a protected command (`enable-debug-command`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permission {
    /// Nobody.
    #[default]
    No,
    /// Clients of this machine.
    Local,
    /// Everybody.
    Yes,
}

/// What `CONFIG GET` and `CONFIG SET` reach, and what a test may choose at start.
#[derive(Clone, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a setting of its own"
)]
pub struct Config {
    /// Number of logical databases (`databases`).
    pub databases: usize,
    /// Password of the default user (`requirepass`); empty means none.
    pub requirepass: Blob,
    /// Seed of hash tables and of every random choice; not a setting of Redis.
    pub seed: u64,
    /// Whether keys are removed physically in the background once due (`DEBUG SET-ACTIVE-EXPIRE`).
    pub active_expire: bool,
    /// Whether clients may call FAKE, by which a test in any language steers the server; not a setting of Redis.
    pub admin: bool,
    /// Who may call DEBUG (`enable-debug-command`).
    pub enable_debug_command: Permission,
    /// Which events are published (`notify-keyspace-events`).
    pub notify_keyspace_events: Classes,
    /// `hash-max-listpack-entries`
    pub hash_max_listpack_entries: i64,
    /// `hash-max-listpack-value`
    pub hash_max_listpack_value: i64,
    /// `hll-sparse-max-bytes`
    pub hll_sparse_max_bytes: i64,
    /// `list-max-listpack-size`
    pub list_max_listpack_size: i64,
    /// `list-compress-depth`
    pub list_compress_depth: i64,
    /// Whether RESTORE takes a payload whatever its checksum (`DEBUG SET-SKIP-CHECKSUM-VALIDATION`).
    pub skips_checksums: bool,
    /// Whether scripts may call DEBUG as well (`DEBUG SET-DISABLE-DENY-SCRIPTS`).
    pub scripts_may_debug: bool,
    /// From so many bytes on a list's element has a node of its own (`DEBUG QUICKLIST-PACKED-THRESHOLD`).
    pub list_packed_threshold: usize,
    /// `set-max-intset-entries`
    pub set_max_intset_entries: i64,
    /// `stream-node-max-bytes`
    pub stream_node_max_bytes: i64,
    /// `stream-node-max-entries`
    pub stream_node_max_entries: i64,
    /// `zset-max-listpack-entries`
    pub zset_max_listpack_entries: i64,
    /// `zset-max-listpack-value`
    pub zset_max_listpack_value: i64,
    /// `proto-max-bulk-len`
    pub proto_max_bulk_len: i64,
    /// `client-query-buffer-limit`
    pub client_query_buffer_limit: i64,
    /// `client-output-buffer-limit`
    pub client_output_buffer_limit: OutputLimits,
    /// Estimated bytes from which on commands that may need more are refused, 0 for no limit (`maxmemory`, under `noeviction`).
    pub maxmemory: u64,
    /// `maxclients`
    pub maxclients: i64,
    /// `min-replicas-max-lag`
    pub min_replicas_max_lag: i64,
    /// Replicas without which nothing is written, of which there are none (`min-replicas-to-write`).
    pub min_replicas_to_write: i64,
    /// Milliseconds after which a script may be interrupted (`busy-reply-threshold`, once `lua-time-limit`).
    pub busy_reply_threshold: i64,
    /// Instructions of Lua after which a script is ended, 0 for no limit; not a setting of Redis, where only `SCRIPT KILL` ends
    /// an endless loop.
    ///
    /// The default, ten thousand million, is some twenty seconds of an endless loop (or a minute where Lua was compiled without
    /// optimization): long after the server has begun to answer `BUSY`, and more work than a script of a test has to do. The explorer, where no time passes, has a limit of two hundred
    /// million, a second or so, unless a lower one is chosen here.
    pub script_instructions_max: u64,
    /// Bytes that the scripts' Lua state may hold, 0 for no limit; not a setting of Redis. 256 MiB by default.
    pub script_memory_max: usize,
    /// Whether durations of commands are kept for `INFO latencystats` (`latency-tracking`).
    pub latency_tracking: bool,
    /// Microseconds from which on a command is logged, -1 for none (`slowlog-log-slower-than`).
    pub slowlog_log_slower_than: i64,
    /// Milliseconds from which on a command is a latency event, 0 for none (`latency-monitor-threshold`).
    pub latency_monitor_threshold: i64,
    /// Seconds after which an idle client is disconnected, 0 for never (`timeout`).
    pub timeout: i64,
    /// `slowlog-max-len`
    pub slowlog_max_len: i64,
    /// TCP port, for `INFO` and `CONFIG GET port`; 0 without a socket.
    pub port: u16,
    /// Settings of redis-server that mean nothing here but are kept and answered, by name, where they differ from the default.
    pub others: BTreeMap<&'static str, Blob>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            databases: 16,
            requirepass: Blob::default(),
            seed: 0,
            active_expire: true,
            admin: false,
            enable_debug_command: Permission::No,
            notify_keyspace_events: Classes::default(),
            hash_max_listpack_entries: 512,
            hash_max_listpack_value: 64,
            hll_sparse_max_bytes: 3000,
            list_max_listpack_size: -2,
            list_compress_depth: 0,
            skips_checksums: false,
            scripts_may_debug: false,
            list_packed_threshold: 1 << 30,
            set_max_intset_entries: 512,
            stream_node_max_bytes: 4096,
            stream_node_max_entries: 100,
            zset_max_listpack_entries: 128,
            zset_max_listpack_value: 64,
            proto_max_bulk_len: 512 * 1024 * 1024,
            client_query_buffer_limit: 1024 * 1024 * 1024,
            client_output_buffer_limit: OutputLimits::default(),
            maxmemory: 0,
            maxclients: 10_000,
            min_replicas_max_lag: 10,
            min_replicas_to_write: 0,
            busy_reply_threshold: 5000,
            script_instructions_max: 10_000_000_000,
            script_memory_max: 256 * 1024 * 1024,
            latency_tracking: true,
            slowlog_log_slower_than: 10_000,
            latency_monitor_threshold: 0,
            timeout: 0,
            slowlog_max_len: 128,
            port: 0,
            others: BTreeMap::new(),
        }
    }
}

#[cfg(any(feature = "explore", feature = "sweep"))]
impl Config {
    /// The same where a schedule decides what runs: no time passes for a script then, so an endless loop is to end by itself,
    /// after a second or so.
    pub(crate) fn for_schedules(mut self) -> Config {
        const INSTRUCTIONS_MAX: u64 = 200_000_000;
        if !(1..INSTRUCTIONS_MAX).contains(&self.script_instructions_max) {
            self.script_instructions_max = INSTRUCTIONS_MAX;
        }
        self
    }
}

impl Config {
    /// A setting that is kept as a text of `yes` or `no`, by its default.
    fn is_on(&self, name: &str, default: bool) -> bool {
        let text = self.others.get(name);
        text.map_or(default, |text| text.as_bytes() == b"yes")
    }

    /// What is looked at before a payload is read (`DEBUG SET-SKIP-CHECKSUM-VALIDATION`).
    pub(crate) fn payload_check(&self) -> Check {
        if self.skips_checksums {
            Check::Version
        } else {
            Check::Checksum
        }
    }

    /// Whether payloads are compressed (`rdbcompression`).
    pub(crate) fn payload_compression(&self) -> Compression {
        if self.is_on("rdbcompression", true) {
            Compression::On
        } else {
            Compression::Off
        }
    }

    /// Whether writes are refused, since there are no replicas.
    pub(crate) fn lacks_replicas(&self) -> bool {
        self.min_replicas_to_write > 0 && self.min_replicas_max_lag > 0
    }

    /// Whether a client at `address` may call a protected command. Errors: it may not.
    pub(crate) fn check_protected(&self, row: &Row, address: &str) -> Result<(), CommandError> {
        let container = row.full_name().split('|').next().unwrap_or_default();
        let permission = match container {
            "debug" => self.enable_debug_command,
            _ => Permission::No,
        };
        let local = address.is_empty()
            || address.starts_with("127.0.0.1:")
            || address.starts_with("[::1]:");
        if permission == Permission::Yes || permission == Permission::Local && local {
            return Ok(());
        }
        Err(CommandError::custom(format!(
            "ERR {} command not allowed. If the enable-{container}-command option is set to \"local\", you can run it from a \
             local connection, otherwise you need to set this option in the configuration file, and then restart the server.",
            container.to_ascii_uppercase(),
        )))
    }
}
