//! Stores over pools, and over redis-rs' connection manager.
//!
//! `cargo run -p store --features async --example pools -- redis://127.0.0.1:6379/` (or `REDIS_URL`).

mod deadpool;
mod r2d2;

use std::{env, error::Error, process::ExitCode, thread, time::Duration};

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use store::{
    AsyncRedisStore, Commit, CommitPath, Event, Execution, RedisStore, Settings, StoreError,
};

const PREFIX: &str = "example";

fn main() -> ExitCode {
    let Some(url) = env::args().nth(1).or_else(|| env::var("REDIS_URL").ok()) else {
        eprintln!("usage: pools REDIS_URL");
        return ExitCode::from(2);
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = runtime.map_err(Into::into).and_then(|runtime| {
        runtime.block_on(over_deadpool(&url))?;
        runtime.block_on(over_a_manager(&url))?;
        over_r2d2(&url)
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pools: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Many tasks, few connections: each task has a store of its own, which costs nothing while it has nothing to do.
async fn over_deadpool(url: &str) -> Result<(), Box<dyn Error>> {
    let manager = deadpool_redis::Manager::new(url)?;
    let pool = deadpool_redis::Pool::builder(manager).max_size(2).build()?;
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let connections = deadpool::Pooled::new(pool.clone());
            tokio::spawn(async move {
                // Commits that watch are the harder case; by default nothing is watched.
                let settings = Settings::new(PREFIX)?.commit_path(CommitPath::Watch);
                let mut store = AsyncRedisStore::with_connections(connections, settings);
                let id = format!("deadpool-{}-{task}", std::process::id());
                let commit = Commit::new().emit(None, Event::new(&id, "Began"));
                store
                    .create(&mut Execution::new(&id, "task"), &commit)
                    .await
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    eprintln!("deadpool: 8 tasks over {} connections", pool.status().size);
    Ok(())
}

/// A connection manager opens a new connection after the old one was lost; it sends nothing twice. What must not happen is that it
/// does so between a `WATCH` and its `EXEC`: commits that watch get connections of their own.
async fn over_a_manager(url: &str) -> Result<(), Box<dyn Error>> {
    let client = redis::Client::open(url)?;
    // The number of attempts to connect, not to send.
    let config = ConnectionManagerConfig::new().set_number_of_retries(3);
    let manager = ConnectionManager::new_with_config(client.clone(), config).await?;
    let open = move || {
        let client = client.clone();
        async move { client.get_multiplexed_async_connection().await }
    };
    let settings = Settings::new(PREFIX)?.commit_path(CommitPath::Watch);
    let mut store = AsyncRedisStore::sharing(manager, open, settings);
    let id = format!("manager-{}", std::process::id());
    store.save(&mut Execution::new(&id, "task")).await?;
    eprintln!(
        "connection manager: {:?}",
        store.status(&id).await?.map(|status| status.version)
    );
    Ok(())
}

/// The same with threads.
fn over_r2d2(url: &str) -> Result<(), Box<dyn Error>> {
    let client = redis::Client::open(url)?;
    let manager = r2d2::Manager::new(client, Duration::from_secs(5));
    let pool = ::r2d2::Pool::builder().max_size(2).build(manager)?;
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let connections = r2d2::Pooled::new(pool.clone());
            thread::spawn(move || -> Result<(), StoreError> {
                let settings = Settings::new(PREFIX)?.commit_path(CommitPath::Watch);
                let mut store = RedisStore::with_connections(connections, settings);
                let id = format!("r2d2-{}-{number}", std::process::id());
                store.save(&mut Execution::new(&id, "task")).map(drop)
            })
        })
        .collect();
    for thread in threads {
        thread.join().map_err(|_| "a thread panicked")??;
    }
    eprintln!(
        "r2d2: 8 threads over {} connections",
        pool.state().connections
    );
    Ok(())
}
