//! What the slots of a grammar are filled with.

use super::entropy::Entropy;

/// Values that any command may meet, for one word.
const ODD: &[&[u8]] = &[
    b"abc",
    b"",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"1.5",
    b" 1",
    b"nan",
];

/// A text longer than what small encodings hold.
const LONG: &[u8] = &[b'L'; 70];

/// Keys by type. Commands mostly meet the type that they want, since each type has its own names.
const STRINGS: &[&[u8]] = &[b"s0", b"s1", b"s\x00\xff", b"c0"];
const COUNTERS: &[&[u8]] = &[b"c0", b"c1"];
const HASHES: &[&[u8]] = &[b"h0", b"h1", b"h2"];
const LISTS: &[&[u8]] = &[b"l0", b"l1", b"l2"];
const SETS: &[&[u8]] = &[b"t0", b"t1", b"t2"];
const ZSETS: &[&[u8]] = &[b"z0", b"z1", b"z2"];
/// Sorted sets of equal scores: ranges by lex mean nothing on others, so nothing else writes to these.
const FLATS: &[&[u8]] = &[b"y0", b"y1"];
/// Sorted sets of positions.
const GEOS: &[&[u8]] = &[b"o0", b"o1"];
/// Nothing else writes to these: redis-server reads beyond the end of a `HyperLogLog` whose last run is cut.
const HYPERLOGS: &[&[u8]] = &[b"p0", b"p1", b"p2"];
const NEW: &[&[u8]] = &[b"n0", b"n1", b"s0", b"h0", b"l1", b"t1", b"z1"];
/// The first ones are those that programs dwell on.
const OWN_KEYS: usize = 6;
const KEYS: &[&[u8]] = &[
    b"s0", b"c0", b"h0", b"l0", b"t0", b"z0", b"n0", b"s1", b"h1", b"l1", b"t1", b"z1", b"y0",
    b"n1", b"o0", b"p0", b"missing",
];
/// What a command may meet where it wants another type.
const OTHERS: &[&[u8]] = &[b"s0", b"h0", b"l0", b"t0"];

/// What DUMP of redis-server 7.0.15 answers for values of each type, and two that are broken.
#[rustfmt::skip]
const PAYLOADS: &[&[u8]] = &[
    b"\x00\xc0\x0a\x0a\x00n\x9fWE\x0e\xaec\xbb",
    b"\x00\x05hello\x0a\x00cr\xdfve4 \x0a",
    b"\x12\x01\x02\x0f\x0f\x00\x00\x00\x03\x00\x81a\x02\x81b\x02\x01\x01\xff\x0a\x00\xe0\x1b\xabJG\xceY\x22",
    b"\x0b\x0c\x02\x00\x00\x00\x02\x00\x00\x00\x01\x00\x02\x00\x0a\x00oy8\xb14\xeb .",
    b"\x02\x02\x01x\x01y\x0a\x00\xac:\x8dh\x11\x84\xaa1",
    b"\x10\x14\x14\x00\x00\x00\x04\x00\x82f0\x03\x01\x01\x82f1\x03\x81x\x02\xff\x0a\x00Y\xfe\xc2\xa2\xec|\xdf\x98",
    b"\x11\x11\x11\x00\x00\x00\x04\x00\x81a\x02\x01\x01\x81b\x02\x02\x01\xff\x0a\x00\xba\x07\xf2$\xa9\xd2\x8fU",
    b"\x13\x01\x10\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x1d\x1d\x00\x00\x00\x0a\x00\x01\x01\x00\x01\x01\x01\x81f\x02\x00\x01\x02\x01\x00\x01\x00\x01\x81v\x02\x04\x01\xff\x01\x01\x01\x01\x01\x00\x00\x01\x01\x02g0\x01\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x01\x87i,\xa2\x01\x00\x00\x01\x01\x05alice\x01\x87i,\xa2\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x0a\x00\x8fm`\xe7\x89\xdf\xb7\x9b",
    b"\x00\xc0\x0a\x0a\x00n\x9fWE\x0e\xaec\xbc",
    b"\x00",
];

/// Settings that change what the encodings are.
pub(super) const LIMITS: &[(&str, &str)] = &[
    ("hash-max-listpack-entries", "512"),
    ("hash-max-listpack-value", "64"),
    ("set-max-intset-entries", "512"),
    ("zset-max-listpack-entries", "128"),
    ("zset-max-listpack-value", "64"),
    ("notify-keyspace-events", ""),
];

/// Words from which a slot of one word is filled, simplest first; none for a slot that is made in another way.
#[rustfmt::skip]
pub(super) fn words(slot: &str) -> Option<&'static [&'static [u8]]> {
    Some(match slot {
        "bit" => &[b"0", b"1"],
        "bits" => &[b"u8", b"i8", b"u4", b"i5", b"u63", b"i64", b"u64", b"x8"],
        "bound" => &[b"-inf", b"+inf", b"1", b"2", b"(1", b"(2.5", b"3", b"(inf", b"-1", b"(x"],
        "brief" => &[b"0.002"],
        "briefly" => &[b"2"],
        "channel" => &[b"news", b"sport", b"__keyevent@0__:del", b"n\xff", b""],
        "channels" => &[b"*", b"n*", b"[ns]*", b"__key*__:*", b"news"],
        "by" => &[b"s*", b"c*", b"h*->f0", b"x*"],
        "counter" => COUNTERS,
        "count" => &[b"1", b"2", b"0", b"3", b"10", b"1"],
        "cursor" => &[b"0"],
        "db" => &[b"0", b"1", b"0", b"2", b"0", b"15", b"0", b"16"],
        "field" => &[b"f0", b"f1", b"f2", b"f\xf0\x00", b""],
        "flat" => FLATS,
        "float" => &[b"1", b"0.1", b"-2.5", b"3.0", b"5e3", b"1e-5", b"10000000000000000", b"inf"],
        "geo" => GEOS,
        "get" => &[b"#", b"s*", b"h*->f0", b"nosuch"],
        "hash" => HASHES,
        "hyperlog" => HYPERLOGS,
        "idle" => &[b"0", b"60000", b"100000", b"5000000"],
        "idle-min" => &[b"0", b"0", b"30000", b"80000", b"2000000"],
        "index" => &[b"0", b"-1", b"1", b"2", b"-2", b"3", b"-3", b"100", b"-100"],
        "int" => &[b"1", b"-1", b"5", b"0", b"100", b"-7", b"9223372036854775807"],
        "json" => &[b"[]", b"{}", b"[1,2.5,\"x\",null,true,{\"a\":[]}]", b"{\"a\":1}", b"1e3", b"\"\\u00e9\"", b"[1"],
        "lat" => &[b"38.115556", b"37.502669", b"37.9", b"0", b"85.05112878", b"-85", b"38.115556"],
        "length" => &[b"km", b"m", b"ft", b"mi", b"KM", b"km", b"yd"],
        "lex" => &[b"-", b"+", b"[a", b"(b", b"[b", b"(", b"[", b"(m"],
        "lib" => &[b"lib0", b"lib1", b"lib2"],
        "libs" => &[b"*", b"lib0", b"lib[12]", b"LIB*", b"nosuch"],
        "list" => LISTS,
        "lon" => &[b"13.361389", b"15.087269", b"13.5", b"0", b"180", b"-180", b"13.361389"],
        "many" => &[b"1000"],
        "member" => &[b"a", b"b", b"a", b"c", b"1", b"2", b"3", b"d", b"m\xff\r\n\x00", b"", LONG, b"-5", b"012"],
        "name" => &[b"conn", b"other", b"", b"a b"],
        "newkey" => NEW,
        "nosort-by" => &[b"nosort"],
        "nothing" => &[b""],
        "number" => &[b"n0", b"n1"],
        "offset" => &[b"0", b"1", b"3", b"7", b"8", b"17"],
        "payload" => PAYLOADS,
        "past" => &[b"1000", b"1600000000000"],
        "pattern" => &[b"*", b"s?", b"[a-c]*", b"*0", b"[^a]", b"f[0-1]", b"\\*", b"nosuch"],
        "radius" => &[b"200", b"1000", b"100000", b"5000000", b"0", b"0.5", b"-1"],
        "rank" => &[b"1", b"2", b"-1", b"-2", b"0"],
        "score" => &[b"1", b"2", b"2.5", b"3", b"-1", b"0", b"1e10", b"inf", b"-inf", b"0.1", b"3.1415926535897931"],
        "set" => SETS,
        "setting" => &[b"hash-max-listpack-entries", b"zset-max-listpack-*", b"databases", b"nosuch", b"maxmemory"],
        "limit" => &[
            b"hash-max-listpack-entries", b"hash-max-listpack-value", b"set-max-intset-entries",
            b"zset-max-listpack-entries", b"zset-max-listpack-value",
        ],
        "small" => &[b"2", b"1", b"3", b"4", b"0"],
        // SORT makes redis-server turn a small sorted set into a large one, which OBJECT ENCODING shows: it gets one that no other
        // command is told to look at.
        "sorted" => &[b"z2"],
        "string" => STRINGS,
        "type" => &[b"string", b"list", b"set", b"zset", b"hash", b"stream", b"nosuch"],
        "consumer" => &[b"alice", b"bob"],
        "group" => &[b"g0", b"g1"],
        "stream" => &[b"x0", b"x1"],
        "xend" => &[b"+", b"20-1", b"(20-1", b"2", b"-"],
        "xid" => &[b"1-1", b"0", b"2-1", b"0-0", b"13-1", b"20", b"$"],
        "xstart" => &[b"-", b"0", b"(1-1", b"13-1", b"+"],
        "value" => &[b"hello", b"10", b"", b"3.5", b"-7", b"x\r\n\x00y", LONG, b"12345678901234567890"],
        "weight" => &[b"1", b"2", b"0.5", b"-1", b"inf"],
        "zset" => ZSETS,
        "key" => KEYS,
        _ => return None,
    })
}

/// Draws one word for a slot of one word; now and then one that does not fit. Every other key is the program's own.
pub(super) fn word(slot: &str, key: usize, entropy: &mut Entropy<'_>) -> Option<Vec<u8>> {
    let fitting = words(slot)?;
    let odd: &[&[u8]] = match slot {
        // Binary-safe words are never odd, nor is what must be the same on both servers: BY a word without a star does not sort.
        "consumer" | "group" | "value" | "member" | "field" | "key" | "newkey" | "by"
        | "sorted" | "brief" | "briefly" | "channel" | "channels" | "past" | "payload" | "many"
        | "limit" | "small" => &[],
        "string" | "counter" | "hash" | "list" | "set" | "zset" | "flat" | "stream" | "geo"
        | "hyperlog" => OTHERS,
        // From the middle of a table the rest of it comes in no certain order. A number beyond 64 bits makes redis-server's next
        // SORT fail: its check finds the error number that the cursor has left behind.
        "cursor" => &[b"abc"],
        "offset" => &[b"-1", b"abc", b"#1", b"4294967296"],
        "db" => &[b"-1", b"abc"],
        "idle" | "idle-min" => &[b"abc", b"-1"],
        _ => ODD,
    };
    let own = match slot {
        "string" | "counter" | "hash" | "list" | "set" | "zset" | "flat" | "stream" | "geo"
        | "hyperlog" => Some(0),
        "key" => Some(key % OWN_KEYS),
        _ => None,
    };
    let drawn = match own {
        Some(own) if entropy.below(2) == 0 => fitting[own],
        _ => entropy.pick(fitting),
    };
    let odd = if entropy.seldom() { odd } else { &[] };
    Some(
        if odd.is_empty() {
            drawn
        } else {
            entropy.pick(odd)
        }
        .to_vec(),
    )
}
