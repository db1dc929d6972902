//! Clients as people use them: redis-rs in its forms and both protocols, redis-cli, redis-benchmark.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::process::{Command, Stdio};

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncCommands, Client, ConnectionLike, IntoConnectionInfo, ProtocolVersion, RedisResult, Value,
};
use tests::server::{Backend, Kind};

const PROTOCOLS: [ProtocolVersion; 2] = [ProtocolVersion::RESP2, ProtocolVersion::RESP3];

/// Opens a client in a protocol.
fn client(url: &str, protocol: ProtocolVersion) -> Client {
    let info = url.into_connection_info().unwrap();
    let settings = info.redis_settings().clone().set_protocol(protocol);
    Client::open(info.set_redis_settings(settings)).unwrap()
}

/// Runs a test on each server that listens on a port, empty each time, in both protocols.
fn each_socket(test: impl Fn(&Backend, &Client)) {
    for kind in Backend::kinds() {
        if *kind == Kind::Memory {
            continue;
        }
        for protocol in PROTOCOLS {
            let backend = Backend::start(*kind);
            test(&backend, &client(&backend.url().unwrap(), protocol));
        }
    }
}

fn commands(connection: &mut dyn ConnectionLike) {
    let mut run = |words: &[&str]| -> RedisResult<Value> {
        let mut cmd = redis::Cmd::new();
        for word in words {
            cmd.arg(*word);
        }
        connection.req_command(&cmd).and_then(Value::extract_error)
    };
    assert_eq!(run(&["SET", "k", "v"]).unwrap(), Value::Okay);
    assert_eq!(
        run(&["GET", "k"]).unwrap(),
        Value::BulkString(b"v".to_vec())
    );
    assert_eq!(run(&["GET", "missing"]).unwrap(), Value::Nil);
    assert_eq!(
        run(&["HSET", "h", "f", "1", "g", "2"]).unwrap(),
        Value::Int(2)
    );
    assert_eq!(run(&["ZADD", "z", "1.5", "m"]).unwrap(), Value::Int(1));
    let score: f64 = redis::from_redis_value(run(&["ZSCORE", "z", "m"]).unwrap()).unwrap();
    assert_eq!(score, 1.5);
    let error = run(&["HGET", "k", "f"]).unwrap_err();
    assert_eq!(error.code(), Some("WRONGTYPE"));
}

#[test]
fn blocking_commands_pipelines_and_transactions_work() {
    each_socket(|_, client| {
        let mut connection = client.get_connection().unwrap();
        commands(&mut connection);
        let (a, b): (i64, Vec<String>) = redis::pipe()
            .cmd("INCRBY")
            .arg("n")
            .arg(5)
            .cmd("RPUSH")
            .arg("l")
            .arg("x")
            .arg("y")
            .ignore()
            .cmd("LRANGE")
            .arg("l")
            .arg(0)
            .arg(-1)
            .query(&mut connection)
            .unwrap();
        assert_eq!((a, b), (5, vec!["x".to_owned(), "y".to_owned()]));
        let map: std::collections::BTreeMap<String, i64> = redis::cmd("HGETALL")
            .arg("h")
            .query(&mut connection)
            .unwrap();
        assert_eq!(map.len(), 2);
        let (sum,): (i64,) = redis::transaction(&mut connection, &["n"], |connection, pipe| {
            let n: i64 = redis::cmd("GET").arg("n").query(connection)?;
            pipe.cmd("SET")
                .arg("n")
                .arg(n + 1)
                .ignore()
                .cmd("INCR")
                .arg("n")
                .query(connection)
        })
        .unwrap();
        assert_eq!(sum, 7);
    });
}

#[test]
fn the_socketless_connection_runs_the_same_commands() {
    let backend = Backend::start(Kind::Memory);
    commands(&mut *backend.connection());
}

#[tokio::test]
async fn many_tasks_share_a_multiplexed_connection() {
    for kind in Backend::kinds() {
        for protocol in PROTOCOLS {
            let backend = Backend::start(*kind);
            let Some(url) = backend.url() else { continue };
            let connection = client(&url, protocol)
                .get_multiplexed_async_connection()
                .await
                .unwrap();
            share(connection).await;
        }
    }
}

async fn share(connection: MultiplexedConnection) {
    let tasks: Vec<_> = (0..16)
        .map(|task| {
            let mut connection = connection.clone();
            tokio::spawn(async move {
                for round in 0..20 {
                    let key = format!("k:{task}");
                    let n: i64 = connection.incr(&key, 1).await.unwrap();
                    assert_eq!(n, round + 1);
                    let (n, missing): (i64, Option<String>) = redis::pipe()
                        .atomic()
                        .get(&key)
                        .get("missing")
                        .query_async(&mut connection)
                        .await
                        .unwrap();
                    assert_eq!((n, missing), (round + 1, None));
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Runs a program of Redis' own; none if it is not installed, which is a failure on continuous integration.
fn tool(name: &str, backend: &Backend, arguments: &[&str]) -> Option<String> {
    let url = backend.url().unwrap();
    let (host, port) = url
        .trim_start_matches("redis://")
        .trim_end_matches('/')
        .rsplit_once(':')?;
    let output = Command::new(name)
        .args(["-h", host, "-p", port])
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(
                output.status.success(),
                "{name} {arguments:?}: {text}{}",
                String::from_utf8_lossy(&output.stderr)
            );
            Some(text)
        }
        Err(error) => {
            assert!(
                std::env::var_os("CI").is_none(),
                "{name} is required on CI: {error}"
            );
            eprintln!("{name} is left out: {error}");
            None
        }
    }
}

#[test]
fn redis_cli_connects_and_works_in_both_protocols() {
    let backend = Backend::start(Kind::Tcp);
    for flag in ["-2", "-3"] {
        let run = |words: &[&str]| tool("redis-cli", &backend, &[&[flag], words].concat());
        let Some(set) = run(&["SET", "k", "a b"]) else {
            return;
        };
        assert_eq!(set, "OK\n");
        assert_eq!(run(&["GET", "k"]).unwrap(), "a b\n");
        assert_eq!(run(&["EVAL", "return {1,'x'}", "0"]).unwrap(), "1\nx\n");
        assert!(
            run(&["INFO", "server"])
                .unwrap()
                .contains("redis_version:7.0.15")
        );
        assert!(run(&["GET"]).unwrap().contains("wrong number of arguments"));
        assert_eq!(run(&["--scan"]).unwrap(), "k\n");
    }
}

#[test]
fn redis_benchmark_runs_with_and_without_pipelining() {
    let backend = Backend::start(Kind::Tcp);
    for pipeline in ["1", "16"] {
        let arguments = [
            "-q",
            "-n",
            "2000",
            "-c",
            "8",
            "-P",
            pipeline,
            "-t",
            "ping,set,get,incr,lpush,sadd,hset,zadd,mset",
        ];
        let Some(report) = tool("redis-benchmark", &backend, &arguments) else {
            return;
        };
        for name in [
            "SET", "GET", "INCR", "LPUSH", "SADD", "HSET", "ZADD", "MSET",
        ] {
            assert!(report.contains(name), "{name} in {report}");
        }
        assert!(!report.contains("Error"), "{report}");
    }
}
