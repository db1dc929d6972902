//! The engine by itself, without sockets: start-up, and requests from bytes to bytes.
//!
//! `cargo bench -p fakeserver --bench engine`. How the program compares with redis-server is the `peers` benchmark's matter.

#[path = "common/mod.rs"]
mod common;

use std::fmt::Write as _;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use fakeserver::clock::Timestamp;
use fakeserver::config::Config;
use fakeserver::engine::{Engine, Peer};
use fakeserver::session::SessionId;

use crate::common::request;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Requests in one batch of input.
const PIPELINES: [usize; 2] = [1, 16];

/// Keys that a benchmark goes round.
const KEYS: usize = 1000;

fn main() {
    divan::main();
}

/// An engine with one connection and its output.
struct Host {
    engine: Engine,
    session: SessionId,
    out: Vec<u8>,
}

impl Host {
    fn new() -> Host {
        let mut engine = Engine::new(Config::default(), NOW);
        let session = engine.connect(Peer::default(), NOW);
        let out = Vec::new();
        Host {
            engine,
            session,
            out,
        }
    }

    fn exchange(&mut self, bytes: &[u8]) -> &[u8] {
        self.out.clear();
        self.engine.receive(self.session, bytes, NOW);
        while self.engine.poll_ready().is_some() {}
        loop {
            let transmit = self.engine.poll_transmit(self.session, &mut self.out);
            if !transmit.more {
                return &self.out;
            }
            self.engine.resume(self.session, NOW);
        }
    }
}

/// Runs batches of requests, the key of which goes round.
fn batches(
    bencher: Bencher<'_, '_>,
    pipeline: usize,
    host: &mut Host,
    make: impl Fn(&str) -> Vec<u8>,
) {
    let key = |at: usize| format!("key:{:06}", at % KEYS);
    let batches: Vec<Vec<u8>> = (0..KEYS)
        .map(|first| {
            (0..pipeline)
                .flat_map(|at| make(&key(first + at)))
                .collect()
        })
        .collect();
    let mut next = batches.iter().cycle();
    bencher.counter(ItemsCount::new(pipeline)).bench_local(|| {
        let batch = next.next().map_or(&[][..], Vec::as_slice);
        black_box(host.exchange(black_box(batch)).len())
    });
}

#[divan::bench]
fn start() -> Engine {
    Engine::new(Config::default(), NOW)
}

#[divan::bench]
fn start_to_first_pong() -> usize {
    Host::new().exchange(b"PING\r\n").len()
}

#[divan::bench(args = PIPELINES, min_time = 0.2)]
fn get(bencher: Bencher<'_, '_>, pipeline: usize) {
    let mut host = Host::new();
    for at in 0..KEYS {
        host.exchange(&request(&[
            "SET",
            &format!("key:{at:06}"),
            "0123456789abcdef",
        ]));
    }
    batches(bencher, pipeline, &mut host, |key| request(&["GET", key]));
}

#[divan::bench(args = PIPELINES, min_time = 0.2)]
fn set(bencher: Bencher<'_, '_>, pipeline: usize) {
    batches(bencher, pipeline, &mut Host::new(), |key| {
        request(&["SET", key, "0123456789abcdef"])
    });
}

/// A compare-and-swap of a document of 1 KB, as a store does it.
const COMMIT: &str = "local d = redis.call('GET', KEYS[1]) \
    if d and cjson.decode(d).version == nil then return -1 end \
    redis.call('SET', KEYS[1], ARGV[1]) return 1";

#[divan::bench(args = PIPELINES, min_time = 0.2)]
fn evalsha(bencher: Bencher<'_, '_>, pipeline: usize) {
    let document = format!("{{\"version\":1,\"data\":\"{}\"}}", "x".repeat(1000));
    script(bencher, pipeline, COMMIT, &document);
}

/// Runs a script with a key and an argument, which the key holds before.
fn script(bencher: Bencher<'_, '_>, pipeline: usize, source: &str, argument: &str) {
    let mut host = Host::new();
    let reply = host
        .exchange(&request(&["SCRIPT", "LOAD", source]))
        .to_vec();
    let reply = String::from_utf8_lossy(&reply);
    let digest = reply.lines().nth(1).unwrap_or_default().to_owned();
    for at in 0..KEYS {
        host.exchange(&request(&["SET", &format!("key:{at:06}"), argument]));
    }
    batches(bencher, pipeline, &mut host, |key| {
        request(&["EVALSHA", &digest, "1", key, argument])
    });
}

/// A document of many small objects.
fn document(len: usize) -> String {
    let mut document = "{\"version\":1,\"items\":[0".to_owned();
    while document.len() < len {
        let item = document.len();
        // Writing to a String cannot fail.
        let _ = write!(document, ",{{\"id\":{item},\"text\":\"0123456789abcdef\"}}");
    }
    document + "]}"
}

/// Lengths of documents.
const DOCUMENTS: [usize; 2] = [1000, 64 * 1024];

#[divan::bench(args = DOCUMENTS, min_time = 0.2)]
fn cjson_decode(bencher: Bencher<'_, '_>, len: usize) {
    let source = "return cjson.decode(ARGV[1]).version";
    script(bencher, 1, source, &document(len));
}

/// Ten times the same table, so that it is not its decoding that counts.
#[divan::bench(args = DOCUMENTS, min_time = 0.2, max_time = 2)]
fn cjson_encode_10(bencher: Bencher<'_, '_>, len: usize) {
    let source = "local d = cjson.decode(ARGV[1]) for _ = 1, 10 do cjson.encode(d) end return 1";
    script(bencher, 1, source, &document(len));
}

#[divan::bench(args = PIPELINES, min_time = 0.2)]
fn script_alone(bencher: Bencher<'_, '_>, pipeline: usize) {
    script(bencher, pipeline, "return 1", "value");
}

#[divan::bench(args = PIPELINES, min_time = 0.2)]
fn script_of_five_calls(bencher: Bencher<'_, '_>, pipeline: usize) {
    let source = "for _ = 1, 5 do redis.call('SET', KEYS[1], ARGV[1]) end return 1";
    script(bencher, pipeline, source, "value");
}

#[divan::bench(args = PIPELINES, min_time = 0.2)]
fn incr(bencher: Bencher<'_, '_>, pipeline: usize) {
    batches(bencher, pipeline, &mut Host::new(), |key| {
        request(&["INCR", key])
    });
}

#[divan::bench(args = PIPELINES, min_time = 0.2)]
fn hset(bencher: Bencher<'_, '_>, pipeline: usize) {
    batches(bencher, pipeline, &mut Host::new(), |key| {
        request(&["HSET", "hash", key, "0123456789abcdef"])
    });
}

#[divan::bench(args = PIPELINES, min_time = 0.2)]
fn zadd(bencher: Bencher<'_, '_>, pipeline: usize) {
    batches(bencher, pipeline, &mut Host::new(), |key| {
        request(&["ZADD", "zset", key.trim_start_matches("key:"), key])
    });
}

#[divan::bench(args = PIPELINES, min_time = 0.2)]
fn sadd(bencher: Bencher<'_, '_>, pipeline: usize) {
    batches(bencher, pipeline, &mut Host::new(), |key| {
        request(&["SADD", "set", key])
    });
}

/// A list that stays as long as it is.
#[divan::bench(args = PIPELINES, min_time = 0.2)]
fn lpush_and_rpop(bencher: Bencher<'_, '_>, pipeline: usize) {
    batches(bencher, pipeline, &mut Host::new(), |key| {
        let push = request(&["LPUSH", key, "0123456789abcdef"]);
        [push, request(&["RPOP", key])].concat()
    });
}

#[divan::bench(args = PIPELINES, min_time = 0.2)]
fn xadd(bencher: Bencher<'_, '_>, pipeline: usize) {
    batches(bencher, pipeline, &mut Host::new(), |key| {
        request(&["XADD", "stream", "MAXLEN", "~", "1000", "*", "field", key])
    });
}

#[divan::bench(args = PIPELINES, min_time = 0.2)]
fn multi_of_five(bencher: Bencher<'_, '_>, pipeline: usize) {
    batches(bencher, pipeline, &mut Host::new(), |key| {
        let mut bytes = request(&["MULTI"]);
        for at in 0..5 {
            bytes.extend(request(&[
                "SET",
                &format!("{key}:{at}"),
                "0123456789abcdef",
            ]));
        }
        bytes.extend(request(&["EXEC"]));
        bytes
    });
}
