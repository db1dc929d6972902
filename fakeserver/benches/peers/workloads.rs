//! What clients send.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;

use crate::common::request;
use crate::servers::{Peer, skip_lines};

const VALUE: &str = "0123456789abcdef";

/// Elements of the values whose replies are large.
const LARGE: usize = 100_000;

/// Members of the sorted set that is larger than any cache.
const MILLION: usize = 1_000_000;

/// Elements in one command of those that fill.
const FILL: usize = 500;

/// A compare-and-swap of a JSON document, as a store does it.
const COMMIT: &str = "local d = redis.call('GET', KEYS[1]) \
    if d and cjson.decode(d).version == nil then return -1 end \
    redis.call('SET', KEYS[1], ARGV[1]) return 1";

/// One row's requests.
pub(crate) struct Workload {
    pub(crate) name: String,
    /// Nothing where no goal was set.
    pub(crate) goal: Option<f64>,
    pub(crate) smoke: bool,
    pub(crate) connections: usize,
    pub(crate) pipeline: usize,
    /// In one round.
    pub(crate) operations: usize,
    /// Operations that differ; then they start again.
    pub(crate) distinct: usize,
    /// Sent once before.
    pub(crate) prepare: fn(&mut TcpStream) -> io::Result<String>,
    /// One operation; the text is what `prepare` has answered.
    pub(crate) operation: fn(usize, &str) -> Vec<u8>,
    /// Lines of the reply to one operation.
    pub(crate) reply_lines: usize,
}

impl Workload {
    /// A server in Python would take all day with the large ones.
    pub(crate) fn suits(&self, peer: Peer) -> bool {
        peer != Peer::FakeRedis || (self.connections > 1 && self.pipeline == 1)
    }
}

/// Every row that compares processor time.
pub(crate) fn all() -> Vec<Workload> {
    let mut all = small();
    all.extend(commits());
    all.extend(large());
    all.extend(million());
    all
}

fn nothing(_: &mut TcpStream) -> io::Result<String> {
    Ok(String::new())
}

/// Many clients, small commands; pipelined ones are cheaper, so more of them make a measurement as long.
fn many(name: &str, pipeline: usize, goal: f64, operation: fn(usize, &str) -> Vec<u8>) -> Workload {
    Workload {
        name: format!("{name} P={pipeline}"),
        goal: Some(goal),
        smoke: true,
        connections: 16,
        pipeline,
        operations: if pipeline > 1 { 160_000 } else { 40_000 },
        distinct: 4096,
        prepare: nothing,
        operation,
        reply_lines: 1,
    }
}

fn small() -> Vec<Workload> {
    let mut all = Vec::new();
    for (pipeline, goal) in [(1, 1.1), (16, 1.5)] {
        let row = |name, operation| many(name, pipeline, goal, operation);
        all.push(row("SET", |at, _| {
            request(&["SET", &key("SET", at), VALUE])
        }));
        all.push(Workload {
            prepare: |stream| {
                fill(stream, "GET:00000000", 4096, 1, |words, at| {
                    words.extend(["SET".to_owned(), key("GET", at), VALUE.to_owned()]);
                })
            },
            reply_lines: 2,
            ..row("GET", |at, _| request(&["GET", &key("GET", at)]))
        });
        all.push(row("INCR", |at, _| request(&["INCR", &key("INCR", at)])));
        all.push(row("HSET", |at, _| {
            request(&["HSET", "HSET:hash", &key("HSET", at), VALUE])
        }));
        all.push(row("ZADD", |at, _| {
            request(&["ZADD", "ZADD:zset", &at.to_string(), &key("ZADD", at)])
        }));
        all.push(row("LPUSH", |at, _| {
            request(&["LPUSH", &format!("LPUSH:{}", at % 100), VALUE])
        }));
        all.push(row("SADD", |at, _| {
            request(&["SADD", "SADD:set", &key("SADD", at)])
        }));
    }
    all.push(Workload {
        goal: None,
        operations: 30_000,
        reply_lines: 12,
        ..many("MULTI+5", 1, 1.0, multi_of_five)
    });
    all.push(Workload {
        reply_lines: 12,
        operations: 60_000,
        ..many("MULTI+5", 16, 2.0, multi_of_five)
    });
    all
}

fn commits() -> Vec<Workload> {
    let row = |name, pipeline, goal, operation| Workload {
        prepare: load_commit,
        ..many(name, pipeline, goal, operation)
    };
    let large = |pipeline| Workload {
        connections: 4,
        distinct: 64,
        operations: 640,
        ..row("EVALSHA 64 KB", pipeline, 1.2, |at, digest| {
            commit("large", at, digest, 64 * 1024)
        })
    };
    let small = |pipeline, goal| {
        row("EVALSHA 1 KB", pipeline, goal, |at, digest| {
            commit("small", at, digest, 1000)
        })
    };
    let mut all = vec![small(1, 1.0), small(16, 1.2), large(1), large(16)];
    all[1].operations = 60_000;
    all
}

fn commit(kind: &str, at: usize, digest: &str, len: usize) -> Vec<u8> {
    let mut document = "{\"version\":1,\"items\":[0".to_owned();
    while document.len() < len {
        let item = document.len();
        // Writing to a String cannot fail.
        let _ = write!(document, ",{{\"id\":{item},\"text\":\"{VALUE}\"}}");
    }
    document.push_str("]}");
    request(&["EVALSHA", digest, "1", &key(kind, at), &document])
}

fn load_commit(stream: &mut TcpStream) -> io::Result<String> {
    stream.write_all(&request(&["SCRIPT", "LOAD", COMMIT]))?;
    let mut reply = BufReader::new(stream);
    let (mut length, mut digest) = (String::new(), String::new());
    reply.read_line(&mut length)?;
    reply.read_line(&mut digest)?;
    Ok(digest.trim_end().to_owned())
}

/// One client that asks for everything; goals are at least as fast.
fn whole(name: &str, operation: fn(usize, &str) -> Vec<u8>) -> Workload {
    Workload {
        connections: 1,
        operations: 10,
        distinct: 1,
        reply_lines: 1 + 2 * LARGE,
        ..many(name, 1, 1.0, operation)
    }
}

fn large() -> Vec<Workload> {
    let numbers: fn(&mut TcpStream) -> io::Result<String> = |stream| {
        fill(stream, "large:list", LARGE, FILL, |words, at| {
            start_with(words, &["RPUSH", "large:list"]);
            words.push(scattered(at, LARGE).to_string());
        })
    };
    let mut all = vec![
        Workload {
            reply_lines: 1 + 4 * LARGE,
            prepare: |stream| {
                fill(stream, "large:hash", LARGE, FILL, |words, at| {
                    start_with(words, &["HSET", "large:hash"]);
                    words.extend([key("field", at), VALUE.to_owned()]);
                })
            },
            ..whole("HGETALL 1e5", |_, _| request(&["HGETALL", "large:hash"]))
        },
        Workload {
            prepare: numbers,
            ..whole("LRANGE 1e5", |_, _| {
                request(&["LRANGE", "large:list", "0", "-1"])
            })
        },
        Workload {
            prepare: |stream| fill_sorted_set(stream, "large:zset", LARGE),
            ..whole("ZRANGE 1e5", |_, _| {
                request(&["ZRANGE", "large:zset", "0", "-1"])
            })
        },
        Workload {
            prepare: |stream| {
                fill(stream, "large:set", LARGE, FILL, |words, at| {
                    start_with(words, &["SADD", "large:set"]);
                    words.push(key("member", at));
                })
            },
            ..whole("SMEMBERS 1e5", |_, _| request(&["SMEMBERS", "large:set"]))
        },
        Workload {
            prepare: numbers,
            ..whole("SORT 1e5", |_, _| request(&["SORT", "large:list"]))
        },
        Workload {
            prepare: numbers,
            ..whole("SORT ALPHA 1e5", |_, _| {
                request(&["SORT", "large:list", "ALPHA"])
            })
        },
    ];
    for workload in &mut all {
        workload.name = workload.name.trim_end_matches(" P=1").to_owned();
    }
    all
}

fn million() -> [Workload; 2] {
    let prepare: fn(&mut TcpStream) -> io::Result<String> =
        |stream| fill_sorted_set(stream, "million", MILLION);
    [
        Workload {
            name: "ZADD among 1e6".to_owned(),
            smoke: false,
            distinct: 20_000,
            prepare,
            // Each member comes four times in a round, each time with another score: every one moves.
            ..many("", 16, 1.0, |at, _| {
                let (score, member) = (scattered(at + 7, MILLION), scattered(at % 5000, MILLION));
                request(&[
                    "ZADD",
                    "million",
                    &score.to_string(),
                    &key("member", member),
                ])
            })
        },
        Workload {
            name: "ZRANGEBYSCORE LIMIT of 1e6".to_owned(),
            smoke: false,
            prepare,
            reply_lines: 1 + 2 * 10,
            ..many("", 16, 1.0, |at, _| {
                let least = scattered(at, MILLION - MILLION / 10).to_string();
                request(&[
                    "ZRANGEBYSCORE",
                    "million",
                    &least,
                    "+inf",
                    "LIMIT",
                    "0",
                    "10",
                ])
            })
        },
    ]
}

fn fill_sorted_set(stream: &mut TcpStream, name: &'static str, len: usize) -> io::Result<String> {
    let add = |words: &mut Vec<String>, at| {
        start_with(words, &["ZADD", name]);
        words.extend([scattered(at, len).to_string(), key("member", at)]);
    };
    fill(stream, name, len, FILL, add)
}

/// Sends commands of so many elements each, unless the key is there already.
pub(crate) fn fill(
    stream: &mut TcpStream,
    name: &str,
    len: usize,
    per_command: usize,
    add: impl Fn(&mut Vec<String>, usize),
) -> io::Result<String> {
    stream.write_all(&request(&["EXISTS", name]))?;
    let mut reply = String::new();
    BufReader::new(&mut *stream).read_line(&mut reply)?;
    if reply.starts_with(":1") {
        return Ok(String::new());
    }
    for first in (0..len).step_by(per_command) {
        let mut words = Vec::new();
        for at in first..len.min(first + per_command) {
            add(&mut words, at);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        stream.write_all(&request(&words))?;
        skip_lines(stream, 1)?;
    }
    Ok(String::new())
}

fn start_with(words: &mut Vec<String>, start: &[&str]) {
    if words.is_empty() {
        words.extend(start.iter().map(|&word| word.to_owned()));
    }
}

/// A number below `len`, the next ones far from it.
fn scattered(at: usize, len: usize) -> usize {
    at.wrapping_mul(2_654_435_761) % len
}

fn multi_of_five(at: usize, _: &str) -> Vec<u8> {
    let mut bytes = request(&["MULTI"]);
    for part in 0..5 {
        bytes.extend(request(&["SET", &format!("MULTI:{at:08}:{part}"), VALUE]));
    }
    bytes.extend(request(&["EXEC"]));
    bytes
}

fn key(kind: &str, at: usize) -> String {
    format!("{kind}:{at:08}")
}
