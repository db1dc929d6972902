//! The payload of RESTORE: what is accepted can be dumped, and is then the same again.

use fakeserver::Reply;

use super::bench::Bench;

/// Commands that look into values of every type; the wrong ones just answer that.
const LOOKS: [&[&str]; 8] = [
    &["OBJECT", "ENCODING", "k"],
    &["HGETALL", "k"],
    &["LRANGE", "k", "0", "-1"],
    &["SMEMBERS", "k"],
    &["ZRANGE", "k", "0", "-1", "WITHSCORES"],
    &["XRANGE", "k", "-", "+"],
    &["XINFO", "STREAM", "k", "FULL"],
    &["GETRANGE", "k", "0", "-1"],
];

/// As they are, the bytes hardly ever have the right checksum, so they are tried with one as well.
pub(super) fn run(bytes: &[u8]) -> Result<(), String> {
    let mut bench = Bench::new();
    let as_it_is = bench.call([b"RESTORE", &b"other"[..], b"0", bytes]);
    if !as_it_is.is_error() {
        dump_again(&mut bench, "other")?;
    }
    let payload = sealed(bytes);
    if bench
        .call([b"RESTORE", &b"k"[..], b"0", &payload])
        .is_error()
    {
        return Ok(());
    }
    for look in LOOKS {
        bench.call(look);
    }
    dump_again(&mut bench, "k")?;
    // Writing to it must not find it broken either.
    for write in [
        &["APPEND", "k", "x"][..],
        &["SADD", "k", "x"],
        &["RPUSH", "k", "x"],
        &["HSET", "k", "x", "y"],
        &["ZADD", "k", "1", "x"],
        &["XADD", "k", "*", "x", "y"],
    ] {
        bench.call(write);
    }
    bench.call(["FLUSHALL"]);
    Ok(())
}

fn dump_again(bench: &mut Bench, key: &str) -> Result<(), String> {
    // What was due at once, or empty, is not there.
    let Reply::Bulk(first) = bench.call(["DUMP", key]) else {
        return Ok(());
    };
    let restored = bench.call([&b"RESTORE"[..], b"again", b"0", &first]);
    let second = bench.call(["DUMP", "again"]);
    bench.call(["DEL", "again"]);
    if second == Reply::Bulk(first) {
        return Ok(());
    }
    Err(format!("restoring its own payload answers {restored:?}"))
}

/// The bytes with the version and the checksum that a payload ends with.
pub fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut payload = [bytes, &[10, 0]].concat();
    let sum = checksum(&payload);
    payload.extend(sum.to_le_bytes());
    payload
}

/// CRC-64 with the polynomial of Jones, reflected.
fn checksum(bytes: &[u8]) -> u64 {
    const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u64::from(*byte), |sum, _| {
            (sum >> 1) ^ if sum & 1 == 1 { POLYNOMIAL } else { 0 }
        })
    })
}
