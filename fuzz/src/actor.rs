//! [`Actor`]: a client of the store that does what workers, relays and sweepers do, and marks it in the history.
//!
//! It uses the store as any program would, with bounded retries. A control replaces one call, or one line of this code.

use fakeserver::explore::Recorder;
use serde_json::{Map, json};
use store::aio::Connections;
use store::op::{DeleteTimer, Numbers};
use store::{
    AsyncRedisStore, Commit, Committed, DueTimer, Event, Execution, OutboxEntry, Resolution,
    Settings, SpawnEntry, SpawnIntent, StoreError, TimerOp,
};

use crate::call::{Answer, Attempt, Call, Outcome};
use crate::control::{BrokenCommit, BrokenDelete, BrokenResolve, Flaw};

/// The tag of rows that a scenario finds there.
pub const SEED: &str = "seed";

/// What a client adds to the row when it handles an event.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Targets of events to emit.
    pub emits: Vec<Option<&'static str>>,
    /// How many executions to start.
    pub spawns: usize,
    /// A timer to set: its path. The time is the attempt's own.
    pub timer: Option<&'static str>,
    /// Whether to write a trace step.
    pub traced: bool,
}

/// A client of the store.
pub struct Actor<P> {
    store: AsyncRedisStore<P>,
    settings: Settings,
    recorder: Recorder<Call, Outcome>,
    client: usize,
    attempts_max: u32,
    flaw: Option<Flaw>,
    attempts: u32,
    /// Leaves what it was at when its connection breaks; somebody comes back to it later.
    gives_up: bool,
    /// Asks what became of a commit whose reply was lost.
    resolves: bool,
    /// Numbers of an attempt that did not land, kept by a broken store.
    kept: Option<Numbers>,
}

impl<P: Connections> Actor<P> {
    /// Client number `client`, who tries at most so often.
    pub fn new(
        connections: P,
        settings: Settings,
        recorder: Recorder<Call, Outcome>,
        client: usize,
        attempts_max: u32,
        flaw: Option<Flaw>,
    ) -> Actor<P> {
        Actor {
            store: AsyncRedisStore::with_connections(connections, settings.clone()),
            settings,
            recorder,
            client,
            attempts_max,
            flaw,
            attempts: 0,
            gives_up: false,
            resolves: false,
            kept: None,
        }
    }

    /// Its number.
    pub fn client(&self) -> usize {
        self.client
    }

    /// From now on it leaves what it is at when its connection breaks.
    pub fn gives_up(&mut self) {
        self.gives_up = true;
    }

    /// From now on it asks what became of a commit whose reply was lost.
    pub fn resolves(&mut self) {
        self.resolves = true;
    }

    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// Handles an event once, however often it is told to: load, decide, commit, and again after a conflict or a lost reply.
    /// Whether it is known to be handled.
    pub async fn handle(&mut self, execution: &str, event: &str, effects: &Effects) -> bool {
        let mut blind = false;
        for _ in 0..self.attempts_max {
            let loaded = match self.store.load_for_event(execution, event).await {
                Ok(loaded) => loaded,
                Err(error) => {
                    expect_io(&error);
                    if self.gives_up {
                        return false;
                    }
                    continue;
                }
            };
            let mut row = match loaded {
                Some((_, true)) if !blind => return true,
                Some((row, _)) => row,
                None => Execution::new(execution, "hunted"),
            };
            if self.is(Flaw::MarkBeforeEffect) && !self.mark(execution, event).await {
                continue;
            }
            let (attempt, commit) = self.decide(&mut row, event, effects);
            match self.commit(&mut row, attempt, &commit).await {
                Answer::Landed { .. } => return true,
                Answer::Unknown | Answer::NotSent if self.gives_up => return false,
                Answer::Unknown => blind = self.is(Flaw::BlindRetry),
                _ => {}
            }
        }
        false
    }

    /// Changes the row in memory and says what is to be written with it; everything carries the attempt's tag.
    fn decide(&mut self, row: &mut Execution, event: &str, effects: &Effects) -> (Attempt, Commit) {
        self.attempts += 1;
        let (client, number) = (self.client, self.attempts);
        let tag = format!("c{client}.{number}");
        row.processed_events += 1;
        let log = row.context.entry("log").or_insert_with(|| json!([]));
        if let Some(log) = log.as_array_mut() {
            log.push(json!(tag));
        }
        let mut commit = match self.flaw {
            Some(Flaw::MarkBeforeEffect) => Commit::new(),
            _ => Commit::for_event(event),
        };
        let mut attempt = Attempt {
            tag: tag.clone(),
            execution: row.id.clone(),
            expected: row.version.get(),
            event: event.to_owned(),
            emits: Vec::new(),
            spawns: Vec::new(),
            timers: Vec::new(),
            traced: effects.traced,
        };
        for (at, target) in effects.emits.iter().enumerate() {
            let id = format!("{tag}>{at}");
            commit = commit.emit(*target, Event::new(id.clone(), "Emitted"));
            attempt.emits.push((target.map(str::to_owned), id));
        }
        for at in 0..effects.spawns {
            let id = format!("{tag}*{at}");
            commit = commit.spawn(SpawnIntent::new(id.clone(), "root"));
            attempt.spawns.push(id);
        }
        if let Some(path) = effects.timer {
            let timer = TimerOp::schedule(path, time_of(client, number));
            commit = commit.timer(timer.clone());
            attempt.timers.push(timer);
        }
        if effects.traced {
            commit = commit.trace(step(&tag));
        }
        (attempt, commit)
    }

    async fn commit(&mut self, row: &mut Execution, attempt: Attempt, commit: &Commit) -> Answer {
        let id = self
            .recorder
            .begin(self.client, Call::Commit(Box::new(attempt)));
        let result = match self.flaw {
            Some(flaw) if flaw.is_in_commit() => self.broken_commit(row, commit, flaw).await,
            _ => self.store.commit(row, commit).await,
        };
        let answer = match result {
            Ok(committed) => landed(&committed),
            Err(StoreError::Conflict { .. }) => Answer::Conflict,
            Err(StoreError::Indeterminate {
                attempt: Some(attempt),
                ..
            }) if self.resolves => self.resolve(row, &attempt).await,
            Err(StoreError::Indeterminate { .. }) => Answer::Unknown,
            Err(error) => {
                expect_io(&error);
                Answer::NotSent
            }
        };
        let memory = row.version.get();
        let outcome = Outcome {
            answer: answer.clone(),
            memory,
        };
        self.recorder.end(id, outcome);
        answer
    }

    /// What became of a commit whose reply was lost, as far as the store can tell.
    async fn resolve(&mut self, row: &mut Execution, attempt: &store::Attempt) -> Answer {
        let resolution = if self.is(Flaw::BelieveVersion) {
            let believed = BrokenResolve::new(&self.settings, attempt);
            self.store.run(believed).await
        } else {
            self.store.resolve(row, attempt).await
        };
        match resolution {
            Ok(Resolution::Landed(committed)) => {
                committed.note(row);
                landed(&committed)
            }
            Ok(Resolution::NotLanded { is_final: true, .. }) => Answer::NotSent,
            Ok(_) => Answer::Unknown,
            Err(error) => {
                expect_io(&error);
                Answer::Unknown
            }
        }
    }

    async fn broken_commit(
        &mut self,
        row: &mut Execution,
        commit: &Commit,
        flaw: Flaw,
    ) -> Result<Committed, StoreError> {
        let kept = self.kept.take();
        let mut operation = BrokenCommit::new(&self.settings, row, commit, flaw, kept)?;
        if flaw == Flaw::BumpBeforeSuccess {
            row.version = row.version.next().unwrap_or(row.version);
        }
        let result = self.store.run(&mut operation).await;
        if flaw == Flaw::KeepNumbers && result.is_err() {
            self.kept = operation.numbers();
        }
        let committed = result?;
        row.version = committed.version;
        Ok(committed)
    }

    /// A broken worker's mark, before the effect and apart from it.
    async fn mark(&mut self, execution: &str, event: &str) -> bool {
        let mark = crate::control::Mark::new(&self.settings, execution, event);
        self.store.run(mark).await.is_ok()
    }

    /// One pass of a relay: starts what waits to be started, delivers what waits to be delivered, and takes each off only then.
    pub async fn relay(&mut self) {
        let Ok(spawns) = self.store.pending_spawns().await else {
            return;
        };
        for spawn in &spawns {
            if self.start(spawn).await {
                self.ack_spawn(spawn).await;
            }
        }
        let Ok(entries) = self.store.pending_outbox().await else {
            return;
        };
        for entry in &entries {
            let target = entry.target_id.as_deref();
            let ack_first = self.is(Flaw::AckBeforeDelivery);
            if ack_first {
                self.ack_outbox(entry).await;
            }
            let delivered = match target {
                None => true,
                Some(target) => {
                    self.handle(target, &entry.event.id, &Effects::default())
                        .await
                }
            };
            if delivered && !ack_first {
                self.ack_outbox(entry).await;
            }
        }
    }

    /// Creates an execution that is not there yet.
    async fn start(&mut self, spawn: &SpawnEntry) -> bool {
        let event = format!("start:{}", spawn.child_id);
        self.handle(&spawn.child_id, &event, &Effects::default())
            .await
    }

    async fn ack_spawn(&mut self, spawn: &SpawnEntry) {
        let call = Call::AckSpawn {
            seq: spawn.seq.get(),
            child: spawn.child_id.clone(),
        };
        let id = self.recorder.begin(self.client, call);
        let removed = self.store.ack_spawn(spawn.seq).await;
        self.recorder
            .end(id, outcome_of(removed.map(Answer::Removed)));
    }

    async fn ack_outbox(&mut self, entry: &OutboxEntry) {
        let call = Call::AckOutbox {
            seq: entry.seq.get(),
            target: entry.target_id.clone(),
            event: entry.event.id.clone(),
        };
        let id = self.recorder.begin(self.client, call);
        let removed = self.store.ack_outbox(entry.seq).await;
        self.recorder
            .end(id, outcome_of(removed.map(Answer::Removed)));
    }

    /// One pass of a sweeper: handles each due timer's event, then deletes the timer if it still has that time.
    pub async fn sweep(&mut self, now_s: f64) {
        let Ok(timers) = self.store.due_timers(now_s).await else {
            return;
        };
        for timer in timers {
            let event = timeout_of(&timer);
            if self
                .handle(&timer.execution_id, &event, &Effects::default())
                .await
            {
                self.delete_timer(timer, event).await;
            }
        }
    }

    async fn delete_timer(&mut self, timer: DueTimer, event: String) {
        let DueTimer {
            execution_id,
            path,
            fire_at_s,
            ..
        } = timer;
        let call = Call::DeleteTimer {
            execution: execution_id.clone(),
            path: path.clone(),
            fire_at_s,
            event,
        };
        let id = self.recorder.begin(self.client, call);
        let removed = match DeleteTimer::new(&self.settings, &execution_id, &path, fire_at_s) {
            Ok(_) if self.is(Flaw::UnguardedDelete) => {
                let delete = BrokenDelete::new(&self.settings, &execution_id, &path, fire_at_s);
                self.store.run(delete).await
            }
            Ok(delete) => self.store.run(delete).await,
            Err(error) => Err(error),
        };
        self.recorder
            .end(id, outcome_of(removed.map(Answer::Removed)));
    }

    /// Adds a trace step that belongs to no commit.
    pub async fn append_trace(&mut self, execution: &str) {
        self.attempts += 1;
        let tag = format!("c{}.{}", self.client, self.attempts);
        let call = Call::Append {
            execution: execution.to_owned(),
            tag: tag.clone(),
        };
        let id = self.recorder.begin(self.client, call);
        let done = self.store.append_trace(execution, &step(&tag)).await;
        let answer = match done {
            Ok(()) => Answer::Done,
            Err(StoreError::Indeterminate { .. }) => Answer::Unknown,
            Err(error) => {
                expect_io(&error);
                Answer::NotSent
            }
        };
        self.recorder.end(id, Outcome { answer, memory: 0 });
    }
}

fn step(tag: &str) -> Map<String, serde_json::Value> {
    let mut step = Map::new();
    step.insert("tag".to_owned(), json!(tag));
    step
}

/// A time that no other attempt uses, far behind the sweeper's present.
fn time_of(client: usize, number: u32) -> f64 {
    10_000.0 + 1_000.0 * client as f64 + f64::from(number)
}

/// The id of the event that a timer causes.
fn timeout_of(timer: &DueTimer) -> String {
    format!(
        "timeout:{}:{}:{}",
        timer.execution_id,
        timer.path,
        store::codec::python_float(timer.fire_at_s)
    )
}

fn landed(committed: &Committed) -> Answer {
    Answer::Landed {
        version: committed.version.get(),
        outbox: committed.outbox.iter().map(|seq| seq.get()).collect(),
        spawns: committed.spawns.iter().map(|seq| seq.get()).collect(),
    }
}

/// The outcome of a call that is harmless to repeat: with the connection lost nobody knows.
fn outcome_of(result: Result<Answer, StoreError>) -> Outcome {
    let answer = result.unwrap_or_else(|error| {
        expect_io(&error);
        Answer::Unknown
    });
    Outcome { answer, memory: 0 }
}

/// A lost connection is part of the game. Anything else ends the client, and the run reports its words.
fn expect_io(error: &StoreError) {
    assert!(
        matches!(error, StoreError::Io { source } if source.is_io_error()),
        "unexpected error of the store: {error}"
    );
}
