//! A control for the race sweep: an event is handled by a commit, on the path that is named (`script`, `mixed`, `watch`), or
//! the execution is created (`create`).
//!
//! `cargo run -p store --example control_commit -- script EVENT` (with `REDIS_URL`)

#![allow(clippy::print_stdout, reason = "a program shows its result")]

use std::env::{args, var};
use std::error::Error;

use store::sync::Reopening;
use store::{Commit, CommitPath, Event, Execution, RedisStore, Settings, StoreError, TimerOp};

fn main() -> Result<(), Box<dyn Error>> {
    let url = var("REDIS_URL")?;
    let arguments: Vec<String> = args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let settings = Settings::new("control")?;
    match words[..] {
        ["create"] => {
            let mut store = RedisStore::from_url(&url)?.settings(settings);
            store.create(&mut Execution::new("order", "control"), &Commit::new())?;
        }
        [path, event] => {
            let path = path_named(path).ok_or("paths: script, mixed, watch")?;
            let mut store = RedisStore::from_url(&url)?.settings(settings.commit_path(path));
            println!("{event} {}", handle(&mut store, event)?);
        }
        _ => return Err("usage: control_commit create | PATH EVENT".into()),
    }
    Ok(())
}

fn path_named(name: &str) -> Option<CommitPath> {
    match name {
        "script" => Some(CommitPath::Script),
        "mixed" => Some(CommitPath::Mixed),
        "watch" => Some(CommitPath::Watch),
        _ => None,
    }
}

/// Loads, decides and commits, and starts over when another commit came between.
fn handle(store: &mut RedisStore<Reopening>, event: &str) -> Result<&'static str, StoreError> {
    loop {
        let Some(mut execution) = store.load("order")? else {
            return Ok("has no execution");
        };
        if store.is_processed("order", event)? {
            return Ok("was handled before");
        }
        execution.processed_events += 1;
        let commit = Commit::for_event(event)
            .emit(Some("other"), Event::new(format!("{event}:out"), "Paid"))
            .timer(TimerOp::schedule("root", 1_722_150_000.0));
        match store.commit(&mut execution, &commit) {
            Ok(_) => return Ok("handled"),
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
    }
}
