//! The settings that the engine honours, with redis-server 7.0.15's defaults.

use crate::value::Blob;

/// What `CONFIG GET` and `CONFIG SET` reach, and what a test may choose at start.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of logical databases (`databases`).
    pub databases: usize,
    /// Password of the default user (`requirepass`); empty means none.
    pub requirepass: Blob,
    /// Seed of hash tables and of every random choice; not a setting of Redis.
    pub seed: u64,
    /// Whether keys are removed physically in the background once due (`DEBUG SET-ACTIVE-EXPIRE`).
    pub active_expire: bool,
    /// `hash-max-listpack-entries`
    pub hash_max_listpack_entries: i64,
    /// `hash-max-listpack-value`
    pub hash_max_listpack_value: i64,
    /// `list-max-listpack-size`
    pub list_max_listpack_size: i64,
    /// `list-compress-depth`
    pub list_compress_depth: i64,
    /// `set-max-intset-entries`
    pub set_max_intset_entries: i64,
    /// `zset-max-listpack-entries`
    pub zset_max_listpack_entries: i64,
    /// `zset-max-listpack-value`
    pub zset_max_listpack_value: i64,
    /// `proto-max-bulk-len`
    pub proto_max_bulk_len: i64,
    /// `client-query-buffer-limit`
    pub client_query_buffer_limit: i64,
    /// `maxclients`
    pub maxclients: i64,
    /// TCP port, for `INFO` and `CONFIG GET port`; 0 without a socket.
    pub port: u16,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            databases: 16,
            requirepass: Blob::default(),
            seed: 0,
            active_expire: true,
            hash_max_listpack_entries: 512,
            hash_max_listpack_value: 64,
            list_max_listpack_size: -2,
            list_compress_depth: 0,
            set_max_intset_entries: 512,
            zset_max_listpack_entries: 128,
            zset_max_listpack_value: 64,
            proto_max_bulk_len: 512 * 1024 * 1024,
            client_query_buffer_limit: 1024 * 1024 * 1024,
            maxclients: 10_000,
            port: 0,
        }
    }
}
