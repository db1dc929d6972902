//! What a server is asked before it is trusted.

use redis::Client;
use store::{
    AsyncRedisStore, CommitPath, Execution, RedisStore, Settings, StoreError, Unfit, aio, sync,
};
use tests::both;
use tokio::runtime::{Builder, Runtime};

use crate::{
    backend::{Backend, Protocol, ask},
    meddling::Plan,
    twin::{Side, with_each, with_each_alone},
};

/// The other ones have neither users nor masters.
fn is_real(backend: &Backend) -> bool {
    backend.name == "redis-server"
}

#[test]
fn a_server_as_it_should_be_passes() {
    with_each(|backend, side| side.store(backend).check().unwrap());
}

// C31, what happens otherwise: the server throws rows away to make room for others, without a word to anybody.
#[test]
fn naively_a_server_that_evicts_loses_rows_that_were_acknowledged() {
    with_each_alone(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        let mut set = |name: &str, value: &str| {
            drop(ask(&mut connection, &["CONFIG", "SET", name, value]));
        };
        let mut store = side.store(backend);
        set("maxmemory-policy", "allkeys-random");
        set("maxmemory", "4mb");
        let saved = (0..400).all(|number| {
            let mut execution = Execution::new(format!("row-{number}"), "d");
            let padding = "x".repeat(16 * 1024).into();
            execution.context.insert("padding".to_owned(), padding);
            store.save(&mut execution).is_ok()
        });
        let checked = store.check();
        set("maxmemory", "0");
        set("maxmemory-policy", "noeviction");
        let left = (0..400)
            .filter(|number| store.load(&format!("row-{number}")).unwrap().is_some())
            .count();
        assert!(saved && left < 400, "{saved} {left}");
        assert!(matches!(
            checked,
            Err(StoreError::Unfit {
                reason: Unfit::Evicting,
                ..
            })
        ));
    });
}

// C31, ours: such a server is refused at the start.
#[test]
fn a_server_that_evicts_rows_is_named_and_a_store_that_does_not_ask_works() {
    with_each_alone(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        for policy in ["allkeys-lru", "volatile-ttl"] {
            ask(
                &mut connection,
                &["CONFIG", "SET", "maxmemory-policy", policy],
            );
            let mut store = side.store(backend);
            let checked = store.check();
            store.save(&mut Execution::new(policy, "d")).unwrap();
            ask(
                &mut connection,
                &["CONFIG", "SET", "maxmemory-policy", "noeviction"],
            );
            let error = checked.unwrap_err();
            assert!(
                matches!(&error, StoreError::Unfit { reason: Unfit::Evicting, found } if found == policy),
                "{error}"
            );
            assert!(error.to_string().contains("noeviction"), "{error}");
            store.check().unwrap();
        }
    });
}

#[test]
fn a_user_without_scripts_or_without_questions_is_told_so() {
    with_each_alone(|backend, side| {
        if !is_real(backend) {
            return;
        }
        let mut connection = backend.connect(Protocol::Resp2);
        let mut user = |rules: &[&str]| {
            let words = [&["ACL", "SETUSER", "default"], rules].concat();
            drop(ask(&mut connection, &words));
        };
        let mut store = side.store(backend);
        let watch = Settings::default().commit_path(CommitPath::Watch);
        let mut watching = side.store_with(backend, watch, Plan::none());
        user(&["-eval", "-evalsha"]);
        let (scripts, none_needed) = (store.check(), watching.check());
        user(&["+@all", "-info"]);
        let questions = store.check();
        user(&["+@all"]);
        let error = scripts.unwrap_err();
        assert!(
            matches!(
                &error,
                StoreError::Unfit {
                    reason: Unfit::WithoutScripts,
                    ..
                }
            ),
            "{error}"
        );
        none_needed.unwrap();
        let error = questions.unwrap_err();
        assert!(matches!(error, StoreError::Refused { .. }), "{error}");
    });
}

#[test]
fn a_replica_is_named_with_its_master() {
    with_each_alone(|backend, side| {
        if !is_real(backend) {
            return;
        }
        let mut store = side.store(backend);
        let mut connection = backend.connect(Protocol::Resp2);
        // Nobody listens there.
        ask(&mut connection, &["REPLICAOF", "127.0.0.1", "1"]);
        let checked = store.check();
        ask(&mut connection, &["REPLICAOF", "NO", "ONE"]);
        let error = checked.unwrap_err();
        assert!(
            matches!(&error, StoreError::Unfit { reason: Unfit::Replica, found } if found.contains("127.0.0.1")),
            "{error}"
        );
    });
}

#[test]
fn connecting_asks_at_once_and_a_store_from_a_url_with_its_first_call() {
    with_each_alone(|backend, side| {
        let Some(client) = backend.client(Protocol::Resp3) else {
            return;
        };
        let address = client.get_connection_info().addr().clone();
        let db = client.get_connection_info().redis_settings().db();
        let url = format!("redis://{address}/{db}");
        let mut connection = backend.connect(Protocol::Resp2);
        let mut policy = |name: &str| {
            ask(
                &mut connection,
                &["CONFIG", "SET", "maxmemory-policy", name],
            );
        };
        let connect = || match side {
            Side::Sync => RedisStore::connect(&url, Settings::default()).map(drop),
            Side::Async => runtime()
                .block_on(AsyncRedisStore::connect(&url, Settings::default()))
                .map(drop),
        };
        let mut store = Opened::new(side, &url);
        policy("allkeys-random");
        let connected = connect();
        let mut execution = Execution::new("x", "d");
        let refused = [store.save(&mut execution), store.save(&mut execution)];
        policy("noeviction");
        connect().unwrap();
        let is_unfit = |outcome: &_| matches!(outcome, Err(StoreError::Unfit { .. }));
        assert!(is_unfit(&connected) && refused.iter().all(is_unfit));
        assert_eq!(execution.version.get(), 0);
        assert!(side.store(backend).load("x").unwrap().is_none());
        // From here on it has its answer.
        store.save(&mut execution).unwrap();
        policy("allkeys-random");
        let saved = store.save(&mut execution);
        let mut trusting = Opened::trusting(side, client);
        let trusted = trusting.save(&mut execution);
        policy("noeviction");
        saved.unwrap();
        trusted.unwrap();
        assert!(RedisStore::from_url("redis://127.0.0.1:1/").is_ok());
        assert!(matches!(
            RedisStore::connect("redis://127.0.0.1:1/", Settings::default()),
            Err(StoreError::Io { .. })
        ));
    });
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A store that opens its connection by itself.
enum Opened {
    Sync(Box<RedisStore<sync::Reopening>>),
    Async(Runtime, Box<AsyncRedisStore<aio::Reopening>>),
}

impl Opened {
    fn new(side: Side, url: &str) -> Self {
        match side {
            Side::Sync => Self::Sync(Box::new(RedisStore::from_url(url).unwrap())),
            Side::Async => {
                Self::Async(runtime(), Box::new(AsyncRedisStore::from_url(url).unwrap()))
            }
        }
    }

    /// One that never asks.
    fn trusting(side: Side, client: Client) -> Self {
        let settings = Settings::default();
        match side {
            Side::Sync => {
                let connections = sync::Reopening::new(client);
                Self::Sync(Box::new(RedisStore::with_connections(
                    connections,
                    settings,
                )))
            }
            Side::Async => {
                let connections = aio::Reopening::new(client);
                let store = AsyncRedisStore::with_connections(connections, settings);
                Self::Async(runtime(), Box::new(store))
            }
        }
    }

    fn save(&mut self, execution: &mut Execution) -> Result<(), StoreError> {
        both!(self.save(execution)).map(drop)
    }
}
