//! When two replies say the same: some have no order, some tell the time, some are drawn by lot.

use redis::Value;

use crate::command::lookup;
use crate::footprint::key_positions;
use crate::remote::TOGETHER;
use crate::wire::Request;

/// A status has two forms here, and one on the wire.
pub(super) fn plain(reply: Value) -> Value {
    match reply {
        Value::Okay => Value::SimpleString("OK".to_owned()),
        Value::Array(items) => Value::Array(items.into_iter().map(plain).collect()),
        other => other,
    }
}

/// Commands whose reply has no order that means anything.
pub(super) const UNORDERED: [&str; 9] = [
    "HGETALL", "HKEYS", "HVALS", "KEYS", "SDIFF", "SINTER", "SMEMBERS", "SUNION", "SCAN",
];

/// Commands whose reply is another one each time.
pub(super) const BY_CHANCE: [&str; 12] = [
    "CLIENT",
    "HELLO",
    "HRANDFIELD",
    "INFO",
    "LASTSAVE",
    "OBJECT",
    "RANDOMKEY",
    "SPOP",
    "SRANDMEMBER",
    "TIME",
    "ZRANDMEMBER",
    "MEMORY",
];

/// Commands that tell how long a key lives.
pub(super) const LIVES: [&str; 4] = ["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"];

/// Whether a stream's entry gets its name from the clock.
pub(super) fn is_named_by_clock(request: &Request) -> bool {
    request.name().eq_ignore_ascii_case(b"XADD") && request.words().any(|word| word == b"*")
}

/// The keys that a command names.
pub(super) fn written(request: &Request) -> Vec<Vec<u8>> {
    let Some(row) = lookup(request.name()) else {
        return Vec::new();
    };
    let positions = key_positions(row, request).into_iter();
    positions
        .filter_map(|(at, _)| request.get(at).map(<[u8]>::to_vec))
        .collect()
}

/// A reply in an order of its own.
pub(super) fn sorted(reply: &Value) -> String {
    fn told(reply: &Value) -> String {
        match reply {
            Value::Array(items) => {
                let mut items: Vec<String> = items.iter().map(told).collect();
                items.sort_unstable();
                format!("{items:?}")
            }
            other => format!("{other:?}"),
        }
    }
    told(reply)
}

/// Whether two replies to TTL or one of its kin are as near as two runs are.
pub(super) fn lives_alike(here: &Value, there: &Value) -> bool {
    match (here, there) {
        (Value::Int(here), Value::Int(there)) => {
            *here >= 0 && *there >= 0 && here.abs_diff(*there) <= TOGETHER.unsigned_abs()
        }
        (Value::Array(here), Value::Array(there)) => {
            let pairs = || here.iter().zip(there);
            here.len() == there.len()
                && pairs().all(|(here, there)| here == there || lives_alike(here, there))
        }
        _ => false,
    }
}

/// Whether two times to live are as near as two runs are.
pub(super) fn ttl_alike(here: Option<i64>, there: Option<i64>) -> bool {
    match (here, there) {
        (Some(here), Some(there)) => here.abs_diff(there) <= 2 * TOGETHER.unsigned_abs(),
        (None, None) => true,
        _ => false,
    }
}
