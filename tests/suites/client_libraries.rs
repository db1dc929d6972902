//! Further Rust clients, on the fake behind a TCP port and on the real server: redis-rs' `ConnectionManager`, publishing and
//! streams, fred, and the pools of deadpool and bb8.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::future::Future;
use std::time::Duration;

use fred::clients::Client as Fred;
use fred::interfaces::*;
use fred::types::config::{Config, ReconnectPolicy};
use fred::types::{Builder, RespVersion, Value as FredValue};
use futures_util::StreamExt;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::streams::{
    StreamAutoClaimOptions, StreamAutoClaimReply, StreamReadOptions, StreamReadReply,
};
use redis::{AsyncCommands, Client, IntoConnectionInfo, ProtocolVersion};
use tests::server::{Backend, Kind};

const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a test on each server that listens on a port, empty each time, once per protocol version.
fn each<F: Future<Output = ()>>(test: impl Fn(String, u8) -> F) {
    for kind in Backend::kinds() {
        if *kind == Kind::Memory {
            continue;
        }
        for protocol in [2, 3] {
            let backend = Backend::start(*kind);
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            let test = test(backend.url().unwrap(), protocol);
            runtime
                .block_on(async { tokio::time::timeout(PATIENCE, test).await })
                .unwrap();
        }
    }
}

fn redis_rs(url: &str, protocol: u8) -> Client {
    let version = if protocol == 2 {
        ProtocolVersion::RESP2
    } else {
        ProtocolVersion::RESP3
    };
    let info = url.into_connection_info().unwrap();
    let settings = info.redis_settings().clone().set_protocol(version);
    Client::open(info.set_redis_settings(settings)).unwrap()
}

/// Waits until as many clients are blocked as told.
async fn blocked(client: &Client, count: usize) {
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let wanted = format!("blocked_clients:{count}\r\n");
    loop {
        let info: String = redis::cmd("INFO")
            .arg("clients")
            .query_async(&mut connection)
            .await
            .unwrap();
        if info.contains(&wanted) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn a_connection_manager_survives_the_loss_of_its_connection() {
    each(|url, protocol| async move {
        let client = redis_rs(&url, protocol);
        let config = ConnectionManagerConfig::new().set_min_delay(Duration::from_millis(1));
        let mut manager = ConnectionManager::new_with_config(client.clone(), config)
            .await
            .unwrap();
        let () = manager.set("k", "v").await.unwrap();
        let id: u64 = redis::cmd("CLIENT")
            .arg("ID")
            .query_async(&mut manager)
            .await
            .unwrap();
        let mut other = client.get_multiplexed_async_connection().await.unwrap();
        let killed: u64 = redis::cmd("CLIENT")
            .arg(&["KILL", "ID"])
            .arg(id)
            .query_async(&mut other)
            .await
            .unwrap();
        assert_eq!(killed, 1);
        loop {
            match manager.get::<_, String>("k").await {
                Ok(value) => break assert_eq!(value, "v"),
                Err(error) => assert!(error.is_io_error(), "{error:?}"),
            }
        }
        let new: u64 = redis::cmd("CLIENT")
            .arg("ID")
            .query_async(&mut manager)
            .await
            .unwrap();
        assert!(new > id);
    });
}

#[test]
fn redis_rs_publishes_and_subscribes() {
    each(|url, protocol| async move {
        let client = redis_rs(&url, protocol);
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut pubsub = client.get_async_pubsub().await.unwrap();
        pubsub.subscribe("news").await.unwrap();
        pubsub.psubscribe("n*").await.unwrap();
        let reached: u64 = connection.publish("news", "hello").await.unwrap();
        assert_eq!(reached, 2);
        let mut messages = pubsub.on_message();
        let plain = messages.next().await.unwrap();
        let pattern = messages.next().await.unwrap();
        assert!(!plain.from_pattern() && pattern.from_pattern());
        assert_eq!(plain.get_payload::<String>().unwrap(), "hello");
        assert_eq!(pattern.get_channel_name(), "news");
        drop(messages);
        pubsub.unsubscribe("news").await.unwrap();
        pubsub.punsubscribe("n*").await.unwrap();
        let reached: u64 = connection.publish("news", "again").await.unwrap();
        assert_eq!(reached, 0);
    });
}

#[test]
fn redis_rs_reads_streams_in_groups_and_loads_scripts() {
    each(|url, protocol| async move {
        let client = redis_rs(&url, protocol);
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let () = connection
            .xgroup_create_mkstream("s", "g", "0")
            .await
            .unwrap();
        let first: String = connection.xadd("s", "*", &[("n", 1)]).await.unwrap();
        let second: String = connection.xadd("s", "*", &[("n", 2)]).await.unwrap();
        let options = StreamReadOptions::default().group("g", "c").count(5);
        let reply: StreamReadReply = connection
            .xread_options(&["s"], &[">"], &options)
            .await
            .unwrap();
        let ids: Vec<&str> = reply.keys[0]
            .ids
            .iter()
            .map(|entry| entry.id.as_str())
            .collect();
        assert_eq!(ids, [&first, &second]);
        let acknowledged: u64 = connection.xack("s", "g", &[&first]).await.unwrap();
        assert_eq!(acknowledged, 1);
        let claimed: StreamAutoClaimReply = connection
            .xautoclaim_options("s", "g", "d", 0, "0", StreamAutoClaimOptions::default())
            .await
            .unwrap();
        assert_eq!(claimed.claimed[0].id, second);

        let script = redis::Script::new("return {KEYS[1], ARGV[1], redis.call('XLEN', KEYS[1])}");
        for _ in 0..2 {
            let () = redis::cmd("SCRIPT")
                .arg("FLUSH")
                .query_async(&mut connection)
                .await
                .unwrap();
            let (key, argument, len): (String, String, u64) = script
                .key("s")
                .arg("a")
                .invoke_async(&mut connection)
                .await
                .unwrap();
            assert_eq!((key.as_str(), argument.as_str(), len), ("s", "a", 2));
        }

        let mut waiting = client.get_multiplexed_async_connection().await.unwrap();
        let pop =
            tokio::spawn(async move { waiting.blpop::<_, (String, String)>("l", 20.0).await });
        blocked(&client, 1).await;
        let () = connection.rpush("l", "x").await.unwrap();
        assert_eq!(
            pop.await.unwrap().unwrap(),
            ("l".to_owned(), "x".to_owned())
        );
    });
}

async fn fred(url: &str, protocol: u8) -> Fred {
    let mut config = Config::from_url(url).unwrap();
    config.version = if protocol == 2 {
        RespVersion::RESP2
    } else {
        RespVersion::RESP3
    };
    let client = Builder::from_config(config)
        .set_policy(ReconnectPolicy::new_constant(0, 10))
        .build()
        .unwrap();
    client.init().await.unwrap();
    client
}

#[test]
fn fred_runs_commands_transactions_and_scripts() {
    each(|url, protocol| async move {
        let client = fred(&url, protocol).await;
        let () = client.set("k", "v", None, None, false).await.unwrap();
        let missing: Option<String> = client.get("missing").await.unwrap();
        let value: String = client.get("k").await.unwrap();
        assert_eq!((value.as_str(), missing), ("v", None));
        let added: u64 = client
            .zadd("z", None, None, false, false, (1.5, "m"))
            .await
            .unwrap();
        let score: f64 = client.zscore("z", "m").await.unwrap();
        assert_eq!((added, score), (1, 1.5));
        let () = client.hset("h", [("f", 1), ("g", 2)]).await.unwrap();
        let map: std::collections::BTreeMap<String, i64> = client.hgetall("h").await.unwrap();
        assert_eq!(map.len(), 2);
        let error = client.lpush::<i64, _, _>("k", 1).await.unwrap_err();
        assert!(error.details().starts_with("WRONGTYPE"), "{error:?}");

        let transaction = client.multi();
        let queued: FredValue = transaction.incr("n").await.unwrap();
        assert!(queued.is_queued());
        let _: FredValue = transaction.get("k").await.unwrap();
        let (n, value): (i64, String) = transaction.exec(true).await.unwrap();
        assert_eq!((n, value.as_str()), (1, "v"));

        let pipeline = client.pipeline();
        for _ in 0..100 {
            let () = pipeline.incr("n").await.unwrap();
        }
        let counts: Vec<i64> = pipeline.all().await.unwrap();
        assert_eq!(counts, (2..=101).collect::<Vec<i64>>());

        let () = client.script_flush(false).await.unwrap();
        let sha: String = client
            .script_load("return {KEYS[1], ARGV[1], 3}")
            .await
            .unwrap();
        let (key, argument, three): (String, String, i64) =
            client.evalsha(sha, "k", "a").await.unwrap();
        assert_eq!((key.as_str(), argument.as_str(), three), ("k", "a", 3));
        client.quit().await.unwrap();
    });
}

#[test]
fn fred_blocks_subscribes_and_reconnects() {
    each(|url, protocol| async move {
        let client = fred(&url, protocol).await;
        let waiting = fred(&url, protocol).await;
        let pop =
            tokio::spawn(async move { waiting.blpop::<(String, String), _>("l", 20.0).await });
        blocked(&redis_rs(&url, protocol), 1).await;
        let () = client.rpush("l", "x").await.unwrap();
        assert_eq!(
            pop.await.unwrap().unwrap(),
            ("l".to_owned(), "x".to_owned())
        );

        let subscriber = fred(&url, protocol).await;
        let mut messages = subscriber.message_rx();
        subscriber.subscribe("news").await.unwrap();
        subscriber.psubscribe("n*").await.unwrap();
        // The library does not wait for the confirmations.
        while client.pubsub_numpat::<u64>().await.unwrap() == 0 {
            tokio::task::yield_now().await;
        }
        let reached: u64 = client.publish("news", "hello").await.unwrap();
        assert_eq!(reached, 2);
        for _ in 0..2 {
            let message = messages.recv().await.unwrap();
            assert_eq!(message.value.as_string().unwrap(), "hello");
        }

        let admin = fred(&url, protocol).await;
        let id: u64 = client.client_id().await.unwrap();
        let () = admin
            .client_kill(vec![fred::types::client::ClientKillFilter::ID(
                id.to_string(),
            )])
            .await
            .unwrap();
        let new = loop {
            if let Ok(new) = client.client_id::<u64>().await {
                break new;
            }
        };
        assert!(new > id);
    });
}

#[test]
fn pools_hand_out_connections_that_work() {
    each(|url, protocol| async move {
        let manager = deadpool_redis::Manager::new(url.as_str()).unwrap();
        let pool = deadpool_redis::Pool::builder(manager)
            .max_size(3)
            .build()
            .unwrap();
        let tasks: Vec<_> = (0..12)
            .map(|_| {
                let pool = pool.clone();
                tokio::spawn(async move {
                    for _ in 0..10 {
                        let mut connection = pool.get().await.unwrap();
                        let _: i64 = connection.incr("n", 1).await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert!(pool.status().size <= 3);

        let client = redis_rs(&url, protocol);
        let manager =
            bb8_redis::RedisConnectionManager::new(client.get_connection_info().clone()).unwrap();
        let pool = bb8_redis::bb8::Pool::builder()
            .max_size(3)
            .test_on_check_out(true)
            .build(manager)
            .await
            .unwrap();
        let tasks: Vec<_> = (0..12)
            .map(|_| {
                let pool = pool.clone();
                tokio::spawn(async move {
                    for _ in 0..10 {
                        let mut connection = pool.get().await.unwrap();
                        let _: i64 = connection.incr("n", 1).await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let mut connection = pool.get().await.unwrap();
        let n: i64 = connection.get("n").await.unwrap();
        assert_eq!(n, 240);
    });
}
