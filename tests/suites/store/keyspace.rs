//! A whole key space as a value: read from a server, or from a golden dump.

use std::collections::{BTreeMap, BTreeSet};

use redis::{FromRedisValue, Value as Reply, cmd};
use serde_json::Value;

use crate::backend::SyncConnection;

/// Bytes that print as text where they are text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", String::from_utf8_lossy(&self.0).escape_debug())
    }
}

/// What a key holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Held {
    String(Bytes),
    Hash(BTreeMap<Bytes, Bytes>),
    Set(BTreeSet<Bytes>),
    Zset(Vec<(Bytes, f64)>),
    List(Vec<Bytes>),
}

/// Keys to contents. No key expires but the locks and the counts of the transport.
pub(crate) type Keyspace = BTreeMap<Bytes, Held>;

/// The key space of the database that a connection is on.
pub(crate) fn read(connection: &mut SyncConnection) -> Keyspace {
    let keys: Vec<Vec<u8>> = cmd("KEYS").arg("*").query(connection).unwrap();
    keys.into_iter()
        .map(|key| (Bytes(key.clone()), held(connection, &key)))
        .collect()
}

fn held(connection: &mut SyncConnection, key: &[u8]) -> Held {
    let ttl: i64 = cmd("PTTL").arg(key).query(connection).unwrap();
    assert_eq!(
        ttl != -1,
        is_lock(key) || is_count(key),
        "{:?}",
        Bytes(key.to_vec())
    );
    let kind: String = cmd("TYPE").arg(key).query(connection).unwrap();
    let bytes = |values: Vec<Vec<u8>>| values.into_iter().map(Bytes);
    match kind.as_str() {
        "string" => Held::String(Bytes(cmd("GET").arg(key).query(connection).unwrap())),
        "hash" => {
            let fields: Vec<(Vec<u8>, Vec<u8>)> =
                cmd("HGETALL").arg(key).query(connection).unwrap();
            Held::Hash(
                fields
                    .into_iter()
                    .map(|(field, value)| (Bytes(field), Bytes(value)))
                    .collect(),
            )
        }
        "set" => Held::Set(bytes(cmd("SMEMBERS").arg(key).query(connection).unwrap()).collect()),
        "zset" => {
            let range = cmd("ZRANGE")
                .arg(key)
                .arg(0)
                .arg(-1)
                .arg("WITHSCORES")
                .query::<Reply>(connection)
                .unwrap();
            let members = Vec::<(Vec<u8>, f64)>::from_redis_value(range).unwrap();
            Held::Zset(
                members
                    .into_iter()
                    .map(|(member, score)| (Bytes(member), score))
                    .collect(),
            )
        }
        "list" => Held::List(
            bytes(
                cmd("LRANGE")
                    .arg(key)
                    .arg(0)
                    .arg(-1)
                    .query(connection)
                    .unwrap(),
            )
            .collect(),
        ),
        other => panic!("{:?} is a {other}", Bytes(key.to_vec())),
    }
}

/// The key space of a golden dump.
pub(crate) fn from_golden(dump: &Value) -> Keyspace {
    let keys = dump.as_array().unwrap().iter();
    keys.map(|key| (bytes(&key["key"]), golden_held(key)))
        .collect()
}

fn golden_held(key: &Value) -> Held {
    assert_eq!(key["ttl"], is_lock(&bytes(&key["key"]).0));
    let each = |name: &str| key[name].as_array().unwrap().iter();
    match key["type"].as_str().unwrap() {
        "string" => Held::String(bytes(&key["value"])),
        "hash" => Held::Hash(
            each("fields")
                .map(|pair| (bytes(&pair[0]), bytes(&pair[1])))
                .collect(),
        ),
        "set" => Held::Set(each("members").map(bytes).collect()),
        "zset" => Held::Zset(
            each("members")
                .map(|pair| (bytes(&pair[0]), pair[1]["score"].as_f64().unwrap()))
                .collect(),
        ),
        "list" => Held::List(each("items").map(bytes).collect()),
        other => panic!("unknown type {other}"),
    }
}

fn is_lock(key: &[u8]) -> bool {
    key.windows(6).any(|part| part == b":lock:")
}

fn is_count(key: &[u8]) -> bool {
    key.windows(7).any(|part| part == b":tries:")
}

fn bytes(value: &Value) -> Bytes {
    Bytes(base64(value["b64"].as_str().unwrap()))
}

fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for digit in text.bytes().filter(|digit| *digit != b'=') {
        let value = DIGITS
            .iter()
            .position(|known| *known == digit)
            .expect("a base64 digit");
        bits = (bits << 6 | value as u32) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    bytes
}
