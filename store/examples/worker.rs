//! A worker: load, decide, commit, relay the outbox; retries are bounded.
//!
//! `cargo run -p store --example worker -- redis://127.0.0.1:6379/` (or `REDIS_URL`).

use std::{env, error::Error, process::ExitCode, thread, time::Duration};

use store::{Commit, Event, Execution, RedisStore, Settings, Status, StoreError, sync::Reopening};

type Store = RedisStore<Reopening>;

const ATTEMPTS_MAX: u32 = 5;

fn main() -> ExitCode {
    let Some(url) = env::args().nth(1).or_else(|| env::var("REDIS_URL").ok()) else {
        eprintln!("usage: worker REDIS_URL");
        return ExitCode::from(2);
    };
    match work(&url) {
        Ok(handled) => {
            eprintln!("handled {handled} events");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("worker: {error}");
            ExitCode::FAILURE
        }
    }
}

fn work(url: &str) -> Result<usize, Box<dyn Error>> {
    let mut store = RedisStore::from_url(url)?.settings(Settings::new("example")?);
    if store.load("ping")?.is_none() {
        store.save(&mut Execution::new("ping", "player"))?;
    }
    if store.load("pong")?.is_none() {
        store.save(&mut Execution::new("pong", "player"))?;
    }
    // In earnest the first event comes from outside; its id must be new, or it counts as handled already.
    let serve = Event::new(format!("serve-{}", std::process::id()), "Ball");
    handle(&mut store, "ping", &serve)?;
    let mut handled = 1;
    while handled < 4 {
        handled += relay(&mut store)?;
    }
    for entry in store.pending_outbox()? {
        store.ack_outbox(entry.seq)?;
    }
    store.close();
    Ok(handled)
}

/// Handles one event: once, however often it is delivered.
fn handle(store: &mut Store, id: &str, event: &Event) -> Result<(), StoreError> {
    let mut last = None;
    for attempt in 0..ATTEMPTS_MAX {
        thread::sleep(Duration::from_millis(u64::from(attempt) * 10));
        let Some((mut execution, false)) = store.load_for_event(id, &event.id)? else {
            return Ok(());
        };
        let commit = decide(&mut execution, event);
        match store.commit(&mut execution, &commit) {
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
fn relay(store: &mut Store) -> Result<usize, StoreError> {
    let entries = store.pending_outbox()?;
    for entry in &entries {
        if let Some(target) = &entry.target_id {
            handle(store, target, &entry.event)?;
        }
        store.ack_outbox(entry.seq)?;
    }
    Ok(entries.len())
}
