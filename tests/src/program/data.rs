//! What programs begin and end with.

use super::grammar::MILLIS;
use crate::compare::Order;

/// Classes of keyspace events.
pub(super) const CLASSES: [&str; 6] = ["KEA", "KEAnm", "E$lshzxtd", "KEA", "Kgx", "AKE"];

/// What the RESP3 subscriber of a program begins with.
pub(super) const SUBSCRIPTIONS: [&str; 4] = [
    "PSUBSCRIBE *",
    "SUBSCRIBE __keyevent@0__:del __keyevent@0__:expired news",
    "PSUBSCRIBE __keyspace@0__:* __keyevent@?__:*",
    "SUBSCRIBE news sport",
];

/// What most programs begin with.
pub(super) const SMALL: &[&str] = &[
    "SET s0 10",
    "SET s1 hello",
    "SET c0 5",
    "HSET h0 f0 1 f1 x n0 7",
    "HSET h1 n0 1.5",
    "RPUSH l0 a b a 1 2",
    "RPUSH l1 3 1 2",
    "SADD t0 1 2 3",
    "SADD t1 a b 2",
    "ZADD z0 1 a 2 b 3 c",
    "ZADD z1 2.5 b 1 d",
    "ZADD z2 1 2 2 1 3 10",
    "GEOADD o0 13.361389 38.115556 a 15.087269 37.502669 b 13.5 37.9 c 13.5 37.9 d",
    "PFADD p0 a b 1",
    "ZADD y0 0 a 0 b 0 c 0 d",
    "XADD x0 1-1 f v",
    "XADD x0 2-1 f w g v",
    "XGROUP CREATE x0 g0 0",
];

/// What every program ends with: what it has left behind of the data on which programs dwell.
pub(super) const LAST: &[(&str, Order)] = &[
    ("DBSIZE", Order::Exact),
    ("KEYS *", Order::Set),
    ("DEBUG DIGEST", Order::Exact),
    ("GET s0", Order::Exact),
    ("GET c0", Order::Exact),
    ("HGETALL h0", Order::Map),
    ("LRANGE l0 0 -1", Order::Exact),
    ("SMEMBERS t0", Order::Set),
    ("ZRANGE z0 0 -1 WITHSCORES", Order::Exact),
    ("ZRANGE y0 0 -1", Order::Exact),
    ("XRANGE x0 - +", Order::Exact),
    ("FUNCTION LIST WITHCODE", Order::Listed),
    ("PTTL s0", Order::Near(MILLIS)),
    ("PTTL c0", Order::Near(MILLIS)),
    ("PTTL h0", Order::Near(MILLIS)),
    ("PTTL l0", Order::Near(MILLIS)),
    ("PTTL t0", Order::Near(MILLIS)),
    ("PTTL z0", Order::Near(MILLIS)),
];

/// Values that do not fit into small encodings; `L` stands for a long text.
pub(super) const LARGE: &[&str] = &[
    "SET s0 L",
    "SET s1 12345678901234567890",
    "SET c0 9223372036854775806",
    "HSET h0 f0 L f1 x n0 7",
    "RPUSH l0 L a b c",
    "SADD t0 1 2 L",
    "SADD t1 9223372036854775807 -1 2",
    "ZADD z0 1 L 2 b 3 c",
    "ZADD z1 inf a -inf b 1e300 c",
    "ZADD y0 0 L 0 a 0 b",
    "XADD x0 1-1 f L",
    "XADD x0 2-1 f w",
    "XGROUP CREATE x0 g0 0",
];
