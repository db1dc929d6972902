//! What DUMP answers and RESTORE takes, and FUNCTION DUMP and RESTORE likewise: a value or libraries as an RDB file of version
//! 10 holds them, the version, and a checksum.
//!
//! Written are the types that redis-server 7.0.15 writes, byte for byte as it does but for the order of hash tables; read are
//! those that it reads, the ziplists and zipmaps of its predecessors included. Modules are neither.

mod checksum;
mod compact;
#[cfg(feature = "lua")]
mod functions;
mod listpack;
mod lzf;
mod read;
mod stream;
mod write;

#[cfg(feature = "lua")]
pub(crate) use functions::{dump_functions, read_functions};
pub(crate) use write::Compression;

use crate::config::Config;
use crate::keyspace::Value;

/// The version of RDB files that 7.0 writes, and the highest that it reads.
const VERSION: u16 = 10;

/// Bytes behind the value: two of the version, eight of the checksum.
const FOOTER_LEN: usize = 10;

/// Codes of the types of values.
mod code {
    pub(super) const STRING: u8 = 0;
    pub(super) const LIST: u8 = 1;
    pub(super) const SET: u8 = 2;
    pub(super) const SORTED_SET: u8 = 3;
    pub(super) const HASH: u8 = 4;
    pub(super) const SORTED_SET_2: u8 = 5;
    pub(super) const HASH_ZIPMAP: u8 = 9;
    pub(super) const LIST_ZIPLIST: u8 = 10;
    pub(super) const SET_INTSET: u8 = 11;
    pub(super) const SORTED_SET_ZIPLIST: u8 = 12;
    pub(super) const HASH_ZIPLIST: u8 = 13;
    pub(super) const LIST_QUICKLIST: u8 = 14;
    pub(super) const STREAM_LISTPACKS: u8 = 15;
    pub(super) const HASH_LISTPACK: u8 = 16;
    pub(super) const SORTED_SET_LISTPACK: u8 = 17;
    pub(super) const LIST_QUICKLIST_2: u8 = 18;
    pub(super) const STREAM_LISTPACKS_2: u8 = 19;
}

/// The payload of a value.
pub(crate) fn dump(value: &Value, compression: Compression) -> Vec<u8> {
    let mut out = write::Out::new(compression);
    write::value(&mut out, value);
    seal(out)
}

/// Appends the version and the checksum.
fn seal(out: write::Out) -> Vec<u8> {
    let mut out = out.bytes;
    out.extend_from_slice(&VERSION.to_le_bytes());
    let checksum = checksum::crc64(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

/// Bytes of a value in a payload, without its type's code.
pub(crate) fn value_len(value: &Value, compression: Compression) -> usize {
    let mut out = write::Out::new(compression);
    write::value(&mut out, value);
    out.bytes.len() - 1
}

/// What is looked at before a payload is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// The version and the checksum.
    Checksum,
    /// The version only.
    Version,
}

/// The part of a payload that is the value, if the version is known and the checksum right.
pub(crate) fn verify(payload: &[u8], check: Check) -> Option<&[u8]> {
    let (value, _) = payload.split_at_checked(payload.len().checked_sub(FOOTER_LEN)?)?;
    let (summed, checksum) = payload.split_last_chunk::<8>()?;
    let (_, version) = summed.split_last_chunk::<2>()?;
    let is_right = u16::from_le_bytes(*version) <= VERSION
        && (check == Check::Version || u64::from_le_bytes(*checksum) == checksum::crc64(summed));
    is_right.then_some(value)
}

/// The value that [`verify`] let through, in the encoding that the configured limits give it; none if it is malformed or empty.
/// `seed` keys its hash tables.
pub(crate) fn restore(value: &[u8], config: &Config, seed: u64) -> Option<Value> {
    read::value(value, config, seed)
}
