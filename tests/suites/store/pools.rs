//! Stores over pools and over redis-rs' connection manager, as the examples set them up.

use std::{
    future::{Future, poll_fn},
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::Poll,
    thread,
    time::Duration,
};

use fakeserver::Server;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use store::{
    AsyncRedisStore, Commit, CommitPath, Event, Execution, RedisStore, Rejection, Resolution,
    Settings, StoreError,
};
use tokio::runtime::{Builder, Runtime};

use crate::backend::{Backend, Protocol, ask, on_each};

#[path = "../../../store/examples/pools/deadpool.rs"]
mod deadpool;
#[path = "../../../store/examples/pools/r2d2.rs"]
mod r2d2;

const PATHS: [CommitPath; 3] = [CommitPath::Script, CommitPath::Mixed, CommitPath::Watch];

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn with_an_effect() -> Commit {
    Commit::for_event("e").emit(None, Event::new("f", "K"))
}

/// A pool of one connection: whoever does not give it back blocks everybody.
fn single(client: &redis::Client) -> deadpool_redis::Pool {
    let manager = deadpool_redis::Manager::new(client.get_connection_info().clone()).unwrap();
    deadpool_redis::Pool::builder(manager)
        .max_size(1)
        .wait_timeout(Some(Duration::from_secs(5)))
        .runtime(deadpool_redis::Runtime::Tokio1)
        .build()
        .unwrap()
}

fn pooled(pool: &deadpool_redis::Pool, path: CommitPath) -> AsyncRedisStore<deadpool::Pooled> {
    let settings = Settings::default().commit_path(path);
    AsyncRedisStore::with_connections(deadpool::Pooled::new(pool.clone()), settings)
}

/// Polls it so many times at most while the runtime goes on.
async fn polled<F: Future>(future: F, times: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = times;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

fn on_sockets(test: impl Fn(&Backend, &redis::Client)) {
    on_each(|backend| {
        if let Some(client) = backend.client(Protocol::Resp3) {
            test(backend, &client);
        }
    });
}

#[test]
fn stores_share_a_pool_of_deadpool_whatever_their_path() {
    on_sockets(|_, client| {
        runtime().block_on(async {
            let pool = single(client);
            for (number, path) in PATHS.into_iter().enumerate() {
                // With a single connection, two that need it at once would wait for ever if one kept it.
                let (mut one, mut other) = (pooled(&pool, path), pooled(&pool, path));
                let mut execution = Execution::new(format!("a{number}"), "d");
                one.commit(&mut execution, &with_an_effect()).await.unwrap();
                other.save(&mut execution.clone()).await.unwrap();
                let error = one.save(&mut execution).await.unwrap_err();
                assert!(matches!(error, StoreError::Conflict { .. }), "{error}");
                assert_eq!(pool.status().available, 1);
            }
        });
    });
}

#[test]
fn a_connection_that_may_carry_a_watch_does_not_go_back_to_a_pool() {
    on_sockets(|backend, client| {
        let mut rival = backend.connect(Protocol::Resp2);
        for times in 1..12 {
            runtime().block_on(async {
                let pool = single(client);
                let mut store = pooled(&pool, CommitPath::Watch);
                let mut execution = Execution::new(format!("a{times}"), "d");
                store.save(&mut execution).await.unwrap();
                let key = format!("stm:exe:a{times}");
                let ended = polled(store.save(&mut execution), times).await;
                drop(store);
                // For a watch of the row that is a change.
                ask(&mut rival, &["APPEND", &key, ""]);
                let mut next = pooled(&pool, CommitPath::Watch);
                let mut other = Execution::new(format!("b{times}"), "d");
                next.commit(&mut other, &with_an_effect()).await.unwrap();
                assert_eq!(pool.status().available, 1, "{ended:?}");
                let stored = next.load(&execution.id).await.unwrap().unwrap();
                assert!((1..=2).contains(&stored.version.get()));
                assert!(ended.is_none() || stored.version == execution.version);
            });
        }
    });
}

#[test]
fn threads_share_a_pool_of_r2d2_whatever_their_path() {
    on_sockets(|_, client| {
        let pool = ::r2d2::Pool::builder()
            .max_size(1)
            .connection_timeout(Duration::from_secs(5))
            .build(r2d2::Manager::new(client.clone(), Duration::from_secs(5)))
            .unwrap();
        let threads: Vec<_> = (0..6)
            .zip(PATHS.into_iter().cycle())
            .map(|(number, path)| {
                let connections = r2d2::Pooled::new(pool.clone());
                thread::spawn(move || {
                    let settings = Settings::default().commit_path(path);
                    let mut store = RedisStore::with_connections(connections, settings);
                    let mut execution = Execution::new(format!("a{number}"), "d");
                    store.commit(&mut execution, &with_an_effect()).unwrap();
                    store.save(&mut execution.clone()).unwrap();
                    let error = store.save(&mut execution).unwrap_err();
                    assert!(matches!(error, StoreError::Conflict { .. }), "{error}");
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(pool.state().idle_connections, 1);
    });
}

#[test]
fn what_changes_its_connection_can_not_watch() {
    on_sockets(|_, client| {
        let watching = || Settings::default().commit_path(CommitPath::Watch);
        let is_refused = |result: Result<_, StoreError>| {
            matches!(
                result,
                Err(StoreError::Invalid {
                    reason: Rejection::NotOneConnection,
                    ..
                })
            )
        };
        runtime().block_on(async {
            let manager = ConnectionManager::new(client.clone()).await.unwrap();
            let mut store = AsyncRedisStore::with_settings(manager, watching());
            assert!(is_refused(store.save(&mut Execution::new("a", "d")).await));
        });
        let mut store = RedisStore::with_settings(client.clone(), watching());
        assert!(is_refused(store.save(&mut Execution::new("a", "d"))));
    });
}

#[test]
fn a_late_reply_is_not_taken_for_that_of_another_call_on_a_pool() {
    let server = Server::start();
    let client = redis::Client::open(server.url()).unwrap();
    let mut rival = RedisStore::new(client.get_connection().unwrap());
    rival.save(&mut Execution::new("a", "d")).unwrap();
    let manager = r2d2::Manager::new(client, Duration::from_secs(1));
    let pool = ::r2d2::Pool::builder().max_size(1).build(manager).unwrap();
    let store = |path| {
        let settings = Settings::default().commit_path(path);
        RedisStore::with_connections(r2d2::Pooled::new(pool.clone()), settings)
    };
    for path in [CommitPath::Script, CommitPath::Watch] {
        let mut execution = rival.load("a").unwrap().unwrap();
        let mut connection = rival.into_connection();
        let pause = redis::cmd("CLIENT")
            .arg("PAUSE")
            .arg(2_500)
            .arg("WRITE")
            .take();
        let () = pause.query(&mut connection).unwrap();
        rival = RedisStore::new(connection);
        let error = store(path).save(&mut execution).unwrap_err();
        let StoreError::Indeterminate {
            attempt: Some(attempt),
            ..
        } = error
        else {
            panic!("{path:?}: {error}")
        };
        thread::sleep(Duration::from_secs(2));
        // A server forgets what waits on a connection that is gone, so that either may be the case.
        store(path).resolve(&mut execution, &attempt).unwrap();
        let mut fresh = store(path).load("a").unwrap().unwrap();
        assert_eq!(store(path).load("b").unwrap(), None);
        store(path).save(&mut fresh).unwrap();
    }
}

/// A way to a server that cuts the connection when the first commit was passed on, before its reply comes back.
struct Cutting {
    url: String,
    /// How many commits were passed on.
    commits: Arc<AtomicUsize>,
}

impl Cutting {
    fn to(upstream: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let upstream = upstream.trim_start_matches("redis://").to_owned();
        let commits = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&commits);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(&upstream).unwrap();
                let is_cut = Arc::new(AtomicBool::new(false));
                let (seen, cut) = (Arc::clone(&seen), Arc::clone(&is_cut));
                let ends = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || requests(ends, &seen, &cut));
                thread::spawn(move || replies((client, server), &is_cut));
            }
        });
        Self { url, commits }
    }
}

fn requests(
    (mut client, mut server): (TcpStream, TcpStream),
    seen: &AtomicUsize,
    cut: &AtomicBool,
) {
    let mut bytes = [0; 4_096];
    while let Ok(count @ 1..) = client.read(&mut bytes) {
        let part = &bytes[..count];
        if part.windows(7).any(|word| word == b"EVALSHA")
            && seen.fetch_add(1, Ordering::SeqCst) == 0
        {
            cut.store(true, Ordering::SeqCst);
        }
        if server.write_all(part).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
}

fn replies((mut client, mut server): (TcpStream, TcpStream), cut: &AtomicBool) {
    let mut bytes = [0; 4_096];
    while let Ok(count @ 1..) = server.read(&mut bytes) {
        if cut.load(Ordering::SeqCst) || client.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
}

#[test]
fn a_connection_manager_reconnects_and_sends_no_commit_twice() {
    let server = Server::start();
    // The script is known, so that the first request is the one that runs.
    let direct = redis::Client::open(server.url()).unwrap();
    let mut warm = RedisStore::new(direct.get_connection().unwrap());
    warm.save(&mut Execution::new("warm", "d")).unwrap();
    let cutting = Cutting::to(&server.url());
    runtime().block_on(async {
        let client = redis::Client::open(cutting.url.as_str()).unwrap();
        let config = ConnectionManagerConfig::new().set_min_delay(Duration::from_millis(1));
        let manager = ConnectionManager::new_with_config(client, config)
            .await
            .unwrap();
        let mut store = AsyncRedisStore::new(manager);
        let mut execution = Execution::new("a", "d");
        let error = store.save(&mut execution).await.unwrap_err();
        let StoreError::Indeterminate {
            attempt: Some(attempt),
            ..
        } = error
        else {
            panic!("{error}")
        };
        assert_eq!(execution.version.get(), 0);
        // It connects again behind our back; until it has, nothing goes out.
        let mut resolution = store.resolve(&mut execution, &attempt).await;
        for _ in 0..500 {
            if resolution.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            resolution = store.resolve(&mut execution, &attempt).await;
        }
        assert!(
            matches!(resolution, Ok(Resolution::Landed(_))),
            "{resolution:?}"
        );
        assert_eq!(cutting.commits.load(Ordering::SeqCst), 1);
        store.save(&mut execution).await.unwrap();
        assert_eq!(execution.version.get(), 2);
    });
}
