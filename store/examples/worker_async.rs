//! An asynchronous worker: load, decide, commit, relay the outbox; retries are bounded.
//!
//! `cargo run -p store --features async --example worker_async -- redis://127.0.0.1:6379/` (or `REDIS_URL`).

use std::{env, error::Error, process::ExitCode, time::Duration};

use store::{
    AsyncRedisStore, Commit, Event, Execution, Settings, Status, StoreError, aio::Reopening,
};

type Store = AsyncRedisStore<Reopening>;

const ATTEMPTS_MAX: u32 = 5;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Some(url) = env::args().nth(1).or_else(|| env::var("REDIS_URL").ok()) else {
        eprintln!("usage: worker_async REDIS_URL");
        return ExitCode::from(2);
    };
    match work(&url).await {
        Ok(handled) => {
            eprintln!("handled {handled} events");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("worker_async: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn work(url: &str) -> Result<usize, Box<dyn Error>> {
    let mut store = AsyncRedisStore::from_url(url)?.settings(Settings::new("example")?);
    if store.load("ping").await?.is_none() {
        store.save(&mut Execution::new("ping", "player")).await?;
    }
    if store.load("pong").await?.is_none() {
        store.save(&mut Execution::new("pong", "player")).await?;
    }
    // In earnest the first event comes from outside; its id must be new, or it counts as handled already.
    let serve = Event::new(format!("serve-{}", std::process::id()), "Ball");
    handle(&mut store, "ping", &serve).await?;
    let mut handled = 1;
    while handled < 4 {
        handled += relay(&mut store).await?;
    }
    for entry in store.pending_outbox().await? {
        store.ack_outbox(entry.seq).await?;
    }
    store.close().await;
    Ok(handled)
}

/// Handles one event: once, however often it is delivered.
async fn handle(store: &mut Store, id: &str, event: &Event) -> Result<(), StoreError> {
    let mut last = None;
    for attempt in 0..ATTEMPTS_MAX {
        tokio::time::sleep(Duration::from_millis(u64::from(attempt) * 10)).await;
        let Some((mut execution, false)) = store.load_for_event(id, &event.id).await? else {
            return Ok(());
        };
        let commit = decide(&mut execution, event);
        match store.commit(&mut execution, &commit).await {
            Ok(_) => return Ok(()),
            // Loading again answers both: who was faster, and whether our own commit landed.
            Err(error @ (StoreError::Conflict { .. } | StoreError::Indeterminate { .. })) => {
                last = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    last.map_or(Ok(()), Err)
}

/// The ball goes back to the other player.
fn decide(execution: &mut Execution, event: &Event) -> Commit {
    execution.status = Status::Running;
    execution.processed_events += 1;
    let other = if execution.id == "ping" {
        "pong"
    } else {
        "ping"
    };
    Commit::for_event(&event.id).emit(
        Some(other),
        Event::new(format!("{}:{}", event.id, execution.version), "Ball"),
    )
}

/// Delivers what waits; an entry is acknowledged only after it was handled, so that a crash repeats it.
async fn relay(store: &mut Store) -> Result<usize, StoreError> {
    let entries = store.pending_outbox().await?;
    for entry in &entries {
        if let Some(target) = &entry.target_id {
            handle(store, target, &entry.event).await?;
        }
        store.ack_outbox(entry.seq).await?;
    }
    Ok(entries.len())
}
