//! An asynchronous worker: two players throw a ball from one to the other until it has been caught four times.
//!
//! `cargo run -p store --features async --example worker_async -- redis://127.0.0.1:6379/` (or `REDIS_URL`).

use std::{env, error::Error, process::ExitCode};

use store::{
    AsyncRedisStore, Commit, Event, Execution, Settings, SpawnEntry, Status, StoreError,
    transport::{AsyncRedisTransport, Priority},
    worker::{AsyncHandler, AsyncWorker, Conduct, StopHandle, Verdict, WorkerOptions, child_of},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Some(url) = env::args().nth(1).or_else(|| env::var("REDIS_URL").ok()) else {
        eprintln!("usage: worker_async REDIS_URL");
        return ExitCode::from(2);
    };
    match work(&url).await {
        Ok(caught) => {
            eprintln!("handled {caught} events");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("worker_async: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn work(url: &str) -> Result<usize, Box<dyn Error>> {
    let settings = Settings::new("example")?;
    let mut store = AsyncRedisStore::connect(url, settings.clone()).await?;
    for id in ["ping", "pong"] {
        let mut player = Execution::new(id, "player");
        match store.create(&mut player, &Commit::new()).await {
            Ok(_) | Err(StoreError::AlreadyExists { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // The first event comes from outside; its id must be new, or it counts as handled already.
    let serve = Event::new(format!("serve-{}", std::process::id()), "Ball");
    let mut transport = AsyncRedisTransport::from_url(url)?.settings(settings);
    transport.publish("ping", &serve, Priority::MIN).await?;

    let mut worker = AsyncWorker::new(store, WorkerOptions::new("example"), Player::default());
    worker.handler().stop = worker.stop_handle();
    worker.run().await?;
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

impl AsyncHandler<Execution> for Player {
    async fn handle(&mut self, execution: &mut Execution, event: &Event) -> Verdict {
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
