//! The connection of a commit, cut at every byte of what is sent and of what is answered.

use std::{panic, thread};

use redis::{Pipeline, RedisResult, cmd};
use store::{Commit, CommitPath, Execution, Resolution, StoreError, TimerOp, Version, codec};
use tests::proxy::{Proxy, Way};
use tests::server::{Backend, Kind};

use crate::ledger::{self, audit};
use crate::twin::Side;

/// What is cut, and how.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    side: Side,
    path: CommitPath,
    /// How many commits come before the one that is cut: the third changes nothing but the row.
    before: i64,
    /// Distance between two cuts.
    step: usize,
    /// Whether the server has to be told the script.
    is_script_unknown: bool,
}

/// The real server if there is one, the fake otherwise: continuous integration runs the suites both ways.
fn server() -> Backend {
    let kinds = Backend::kinds();
    let kind = if kinds.contains(&Kind::Real) {
        Kind::Real
    } else {
        Kind::Tcp
    };
    Backend::start(kind)
}

/// Cuts one commit after so many bytes; whether the cut fell into its exchange.
fn cut(url: &str, proxy: &Proxy, prefix: &str, exchange: Exchange, way: Way, bytes: usize) -> bool {
    let at = format!("{exchange:?}, {way:?} cut after {bytes}");
    let settings = ledger::settings(prefix).commit_path(exchange.path);
    let mut store = exchange.side.store(&proxy.url(), &settings);
    let mut execution = Execution::new("x", "d");
    for _ in 0..exchange.before {
        let commit = ledger::next(&mut execution);
        store.commit(&mut execution, &commit).unwrap();
    }
    if exchange.is_script_unknown {
        let mut raw = redis::Client::open(url).unwrap().get_connection().unwrap();
        cmd("SCRIPT").arg("FLUSH").exec(&mut raw).unwrap();
    }
    let commit = ledger::next(&mut execution);
    proxy.cut_after(way, bytes);
    let result = store.commit(&mut execution, &commit);
    let is_uncut = proxy.take_back_cut();
    let version = audit(url, prefix, &["x"]).versions["x"];
    match result {
        Ok(_) => assert_eq!(version, exchange.before + 1, "{at}"),
        // It may be repeated as it is: nothing has happened.
        Err(StoreError::Io { .. }) => assert_eq!(version, exchange.before, "{at}"),
        Err(StoreError::Indeterminate { attempt, .. }) => {
            let attempt = attempt.unwrap();
            match store.resolve(&mut execution, &attempt).unwrap() {
                Resolution::Landed(_) => assert_eq!(version, exchange.before + 1, "{at}"),
                Resolution::NotLanded { .. } => assert_eq!(version, exchange.before, "{at}"),
                other => panic!("{at}: {other:?}"),
            }
        }
        Err(error) => panic!("{at}: {error}"),
    }
    assert_eq!(execution.version, Version::new(version), "{at}");
    // The same store goes on from there.
    let commit = ledger::next(&mut execution);
    store.commit(&mut execution, &commit).unwrap();
    let after = audit(url, prefix, &["x"]).versions["x"];
    assert_eq!(after, version + 1, "{at}");
    !is_uncut
}

/// Cuts an exchange everywhere; in how many places.
fn cut_everywhere(url: &str, number: usize, exchange: Exchange) -> usize {
    let proxy = Proxy::before(url);
    let mut cuts = 0;
    for way in [Way::Request, Way::Reply] {
        for bytes in (0..).step_by(exchange.step) {
            let prefix = format!("c{number}-{way:?}-{bytes}");
            if !cut(url, &proxy, &prefix, exchange, way, bytes) {
                break;
            }
            cuts += 1;
        }
    }
    cuts
}

fn run(exchanges: &[Exchange]) {
    let backend = server();
    let url = backend.url().unwrap();
    thread::scope(|scope| {
        for (number, exchange) in exchanges.iter().enumerate() {
            let url = &url;
            scope.spawn(move || {
                let cuts = cut_everywhere(url, number, *exchange);
                eprintln!("{cuts} cuts: {exchange:?}");
                assert!(cuts > 100, "{exchange:?}: {cuts}");
            });
        }
    });
}

#[test]
fn a_connection_cut_at_any_byte_of_a_commit_is_told_as_it_was() {
    let mut exchanges = Vec::new();
    for side in [Side::Sync, Side::Async] {
        for path in [CommitPath::Script, CommitPath::Watch] {
            for before in [1, 2] {
                exchanges.push(Exchange {
                    side,
                    path,
                    before,
                    step: 1,
                    is_script_unknown: false,
                });
            }
        }
    }
    run(&exchanges);
}

#[test]
fn a_connection_cut_while_the_script_is_told_is_told_as_it_was() {
    // The text of the script has the same everywhere; what is around it is cut often enough. One after the other, since what
    // one has told the server the other would find there.
    for side in [Side::Sync, Side::Async] {
        run(&[Exchange {
            side,
            path: CommitPath::Script,
            before: 1,
            step: 41,
            is_script_unknown: true,
        }]);
    }
}

/// The commit of the ledger as one would write it without a store: the same commands, one after the other.
fn naive(prefix: &str, execution: &Execution, commit: &Commit) -> Pipeline {
    let mut pipeline = redis::pipe();
    let id = &execution.id;
    let row = codec::encode_execution(execution, execution.version.next().unwrap());
    pipeline.set(format!("{prefix}:exe:{id}"), row);
    let event = commit.processed_event_id.as_deref().unwrap();
    pipeline.sadd(format!("{prefix}:processed:{id}"), event);
    for (seq, emit) in (1..).zip(&commit.emits) {
        let entry = codec::encode_outbox(emit);
        pipeline.incr(format!("{prefix}:outbox:seq"), 1);
        pipeline.hset(format!("{prefix}:outbox"), seq, entry);
    }
    for spawn in &commit.spawns {
        let entry = codec::encode_spawn(id, spawn);
        pipeline.incr(format!("{prefix}:spawns:seq"), 1);
        pipeline.hset(format!("{prefix}:spawns"), 1, entry);
    }
    for timer in &commit.timers {
        let TimerOp::Schedule { path, fire_at_s } = timer else {
            continue;
        };
        pipeline.zadd(
            format!("{prefix}:timers"),
            format!("{id}\0{path}"),
            *fire_at_s,
        );
    }
    let step = codec::encode_trace_step(commit.trace.as_ref().unwrap(), &0.into());
    pipeline.incr(format!("{prefix}:trace:seq:{id}"), 1);
    pipeline.rpush(format!("{prefix}:trace:{id}"), step);
    pipeline
}

#[test]
fn the_same_commands_without_a_store_are_left_half_done_by_a_cut() {
    let backend = server();
    let url = backend.url().unwrap();
    let proxy = Proxy::before(&url);
    let (mut whole, mut half) = (0, 0);
    for bytes in (0..).step_by(7) {
        let prefix = format!("naive{bytes}");
        let mut execution = Execution::new("x", "d");
        let commit = ledger::next(&mut execution);
        let client = redis::Client::open(proxy.url()).unwrap();
        let mut connection = client.get_connection().unwrap();
        proxy.cut_after(Way::Request, bytes);
        let sent: RedisResult<()> = naive(&prefix, &execution, &commit).query(&mut connection);
        let is_uncut = proxy.take_back_cut();
        let audited = panic::catch_unwind(|| audit(&url, &prefix, &["x"]));
        match audited {
            Ok(ledger) => {
                whole += 1;
                assert_eq!(ledger.versions["x"], i64::from(sent.is_ok()));
            }
            Err(_) => half += 1,
        }
        if is_uncut {
            break;
        }
    }
    assert!(half > 50 && whole > 2, "{half} half, {whole} whole");
}
