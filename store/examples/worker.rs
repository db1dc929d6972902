//! A worker: two players throw a ball from one to the other until it has been caught four times.
//!
//! `cargo run -p store --example worker -- redis://127.0.0.1:6379/` (or `REDIS_URL`).

use std::{env, error::Error, process::ExitCode};

use store::{
    Commit, Event, Execution, RedisStore, Settings, SpawnEntry, Status, StoreError,
    transport::{Priority, RedisTransport},
    worker::{Conduct, Handler, StopHandle, Verdict, Worker, WorkerOptions, child_of},
};

fn main() -> ExitCode {
    let Some(url) = env::args().nth(1).or_else(|| env::var("REDIS_URL").ok()) else {
        eprintln!("usage: worker REDIS_URL");
        return ExitCode::from(2);
    };
    match work(&url) {
        Ok(caught) => {
            eprintln!("handled {caught} events");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("worker: {error}");
            ExitCode::FAILURE
        }
    }
}

fn work(url: &str) -> Result<usize, Box<dyn Error>> {
    let settings = Settings::new("example")?;
    let mut store = RedisStore::connect(url, settings.clone())?;
    for id in ["ping", "pong"] {
        match store.create(&mut Execution::new(id, "player"), &Commit::new()) {
            Ok(_) | Err(StoreError::AlreadyExists { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // The first event comes from outside; its id must be new, or it counts as handled already.
    let serve = Event::new(format!("serve-{}", std::process::id()), "Ball");
    let mut transport = RedisTransport::from_url(url)?.settings(settings);
    transport.publish("ping", &serve, Priority::MIN)?;

    let mut worker = Worker::new(store, WorkerOptions::new("example"), Player::default());
    worker.handler().stop = worker.stop_handle();
    worker.run()?;
    Ok(worker.handler().caught)
}

/// Throws the ball back, four times.
#[derive(Default)]
struct Player {
    caught: usize,
    stop: StopHandle,
}

impl Conduct<Execution> for Player {
    fn child(&mut self, parent: &Execution, spawn: &SpawnEntry) -> Option<(Execution, Commit)> {
        Some(child_of(parent, spawn))
    }
}

impl Handler<Execution> for Player {
    fn handle(&mut self, execution: &mut Execution, event: &Event) -> Verdict {
        execution.status = Status::Running;
        execution.processed_events += 1;
        self.caught += 1;
        if self.caught == 4 {
            self.stop.stop();
            return Verdict::Commit(Commit::new());
        }
        let other = if execution.id == "ping" {
            "pong"
        } else {
            "ping"
        };
        let ball = Event::new(format!("{}:{}", event.id, execution.version), "Ball");
        Verdict::Commit(Commit::new().emit(Some(other), ball))
    }
}
