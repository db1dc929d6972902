//! What the workers of a mixed fleet do with an event, in Rust, and what must be left when all of them are done.
//!
//! The Python side of it is `interop/fleet.py`; both must decide alike. A [`STEP`] is noted in its execution's context and
//! trace, arms a timer that is due at once and, while it has hops left, goes on to the neighbour and starts a child. A
//! [`TIMEOUT`] is noted and causes nothing more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value, json};
use store::sync::Reopening;
use store::transport::{Lease, Priority, RedisTransport};
use store::{
    Commit, Event, Execution, RedisStore, Settings, SpawnEntry, SpawnIntent, Status, StoreError,
    TimerOp,
};

/// The kind of an event that causes others.
pub const STEP: &str = "Step";
/// The kind of an event that a timer causes.
pub const TIMEOUT: &str = "Timeout";
/// When all timers are due: long ago.
pub const FIRE_AT_S: f64 = 1.5;

/// A step with so many hops before it.
pub fn step(id: &str, hops: u64) -> Event {
    let mut event = Event::new(id, STEP);
    event.data.insert("hops".to_owned(), hops.into());
    event
}

/// An execution that hands its steps on to this neighbour.
pub fn member(id: &str, neighbour: &str) -> Execution {
    let mut execution = Execution::new(id, "d");
    execution.status = Status::Running;
    let context = json!({ "next": neighbour, "seen": [] });
    execution.context = context.as_object().cloned().unwrap_or_default();
    execution
}

/// Where the event with this id goes on to.
pub fn follower(id: &str) -> String {
    format!("{id}>")
}

/// Applies an event to its execution.
pub fn decide(execution: &mut Execution, event: &Event) -> Commit {
    let seen = execution.context.get_mut("seen");
    if let Some(seen) = seen.and_then(Value::as_array_mut) {
        seen.push(event.id.clone().into());
    }
    execution.processed_events += 1;
    let commit = Commit::for_event(&event.id);
    if event.kind != STEP {
        return commit;
    }
    let path = format!("T.{}", event.id);
    let mut noted = Map::new();
    noted.insert("event".to_owned(), event.id.clone().into());
    let commit = commit
        .timer(TimerOp::schedule(path, FIRE_AT_S))
        .trace(noted);
    let hops = event.data.get("hops").and_then(Value::as_u64).unwrap_or(0);
    if hops == 0 {
        return commit;
    }
    let next = execution.context.get("next").and_then(Value::as_str);
    let note = Event::new(format!("{}!", event.id), "Note");
    let child = format!("{}.{}", execution.id, event.id);
    commit
        .emit(next, step(&follower(&event.id), hops - 1))
        .emit(None, note)
        .spawn(SpawnIntent::new(child, "R"))
}

/// What a turn came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// An event was taken, whatever became of it.
    Busy,
    /// There was none; what others have left was looked for.
    Idle,
}

/// A worker over the public API: claim, load, decide, commit, relay, acknowledge.
#[derive(Debug)]
pub struct Worker {
    store: RedisStore<Reopening>,
    transport: RedisTransport<Reopening>,
    visibility: Duration,
}

impl Worker {
    /// On this server, with leases of this length.
    ///
    /// # Errors
    /// If URL or prefix are malformed.
    pub fn new(url: &str, prefix: &str, visibility: Duration) -> Result<Worker, StoreError> {
        let settings = Settings::new(prefix)?;
        Ok(Worker {
            store: RedisStore::from_url(url)?.settings(settings.clone()),
            transport: RedisTransport::from_url(url)?.settings(settings),
            visibility,
        })
    }

    /// One event, or one look at what is left.
    ///
    /// # Errors
    /// Any of the store's: the lease is left to its end, and somebody else will take the event.
    pub fn turn(&mut self) -> Result<Turn, StoreError> {
        let claimed = self
            .transport
            .claim("rust", self.visibility, Priority::MIN)?;
        let Some(lease) = claimed.lease else {
            self.relay()?;
            self.sweep()?;
            return Ok(Turn::Idle);
        };
        self.handle(&lease)?;
        Ok(Turn::Busy)
    }

    fn handle(&mut self, lease: &Lease) -> Result<(), StoreError> {
        let (group, event) = (&lease.group_id, &lease.event);
        if let Some((mut execution, false)) = self.store.load_for_event(group, &event.id)? {
            let commit = decide(&mut execution, event);
            match self.store.commit(&mut execution, &commit) {
                Ok(_) if commit.is_state_only() => {}
                Ok(_) => self.relay()?,
                Err(StoreError::Conflict { .. }) => {
                    return self.transport.nack(lease, Duration::ZERO).map(drop);
                }
                Err(error) => return Err(error),
            }
        }
        self.transport.ack(lease).map(drop)
    }

    /// Delivers what is in the outbox and starts who waits to be started, whoever has left it there.
    fn relay(&mut self) -> Result<(), StoreError> {
        for spawn in self.store.pending_spawns()? {
            self.start(&spawn)?;
            self.store.ack_spawn(spawn.seq)?;
        }
        for entry in self.store.pending_outbox()? {
            if let Some(target) = &entry.target_id {
                self.transport
                    .publish(target, &entry.event, Priority::MIN)?;
            }
            self.store.ack_outbox(entry.seq)?;
        }
        Ok(())
    }

    fn start(&mut self, spawn: &SpawnEntry) -> Result<(), StoreError> {
        let mut child = Execution::new(&spawn.child_id, "d");
        child.root_path.clone_from(&spawn.root_path);
        child.context.clone_from(&spawn.context);
        child.parent_id = Some(spawn.parent_id.clone());
        match self.store.create(&mut child, &Commit::new()) {
            Err(StoreError::AlreadyExists { .. }) => Ok(()),
            other => other.map(drop),
        }
    }

    fn sweep(&mut self) -> Result<(), StoreError> {
        for timer in self.store.due_timers(FIRE_AT_S)? {
            let event = Event::new(timer.event_id(), TIMEOUT);
            self.transport
                .publish(&timer.execution_id, &event, Priority::MIN)?;
            self.store
                .delete_timer(&timer.execution_id, &timer.path, timer.fire_at_s)?;
        }
        Ok(())
    }

    /// What is left to do: events queued, entries to relay, timers armed.
    ///
    /// # Errors
    /// Any of the store's.
    pub fn left(&mut self) -> Result<Vec<String>, StoreError> {
        let tiers = self.transport.backlog()?.tiers;
        let queued = tiers.into_iter().filter(|tier| tier.groups > 0);
        let mut left: Vec<String> = queued.map(|tier| format!("{tier:?}")).collect();
        let outbox = self.store.pending_outbox()?;
        left.extend(outbox.iter().map(|entry| format!("{entry:?}")));
        let spawns = self.store.pending_spawns()?;
        left.extend(spawns.iter().map(|entry| format!("{entry:?}")));
        let timers = self.store.due_timers(f64::MAX)?;
        left.extend(timers.iter().map(|timer| format!("{timer:?}")));
        Ok(left)
    }

    /// Creates an execution, and queues steps for it.
    ///
    /// # Errors
    /// Any of the store's.
    pub fn begin(&mut self, mut member: Execution, steps: &[Event]) -> Result<(), StoreError> {
        self.store.create(&mut member, &Commit::new())?;
        for step in steps {
            self.transport.publish(&member.id, step, Priority::MIN)?;
        }
        Ok(())
    }

    /// What is wrong with the executions, if anything: each must have handled exactly what it should, once.
    ///
    /// # Errors
    /// Any of the store's.
    pub fn audit(&mut self, expected: &Expected) -> Result<Vec<String>, StoreError> {
        let mut wrong = Vec::new();
        for (id, handled) in &expected.handled {
            let Some(execution) = self.store.load(id)? else {
                wrong.push(format!("{id} is not there"));
                continue;
            };
            for event in &handled.processed {
                if !self.store.is_processed(id, event)? {
                    wrong.push(format!("{id}: {event} is not marked as processed"));
                }
            }
            handled.compare(&execution, &self.store.read_trace(id)?, &mut wrong);
        }
        for (child, parent) in &expected.children {
            match self.store.load(child)? {
                Some(started)
                    if started.parent_id.as_ref() == Some(parent) && started.version.get() == 1 => {
                }
                other => wrong.push(format!("child {child}: {other:?}")),
            }
        }
        Ok(wrong)
    }
}

/// The id of the event that a step's timer causes.
fn timeout_id(execution_id: &str, step_id: &str) -> String {
    format!("timeout:{execution_id}:T.{step_id}:{FIRE_AT_S}")
}

/// What must have happened in the end.
#[derive(Debug, Default)]
pub struct Expected {
    handled: BTreeMap<String, Handled>,
    /// Children, and who has started them.
    children: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
struct Handled {
    processed: BTreeSet<String>,
    traced: BTreeSet<String>,
}

impl Expected {
    /// Adds what a step causes that begins at the first of these executions, each the next one's neighbour.
    pub fn add(&mut self, step_id: &str, path: &[String]) {
        let mut id = step_id.to_owned();
        for (hop, execution) in path.iter().enumerate() {
            let handled = self.handled.entry(execution.clone()).or_default();
            handled.processed.insert(timeout_id(execution, &id));
            handled.processed.insert(id.clone());
            handled.traced.insert(id.clone());
            if hop + 1 < path.len() {
                let child = format!("{execution}.{id}");
                self.children.insert(child, execution.clone());
            }
            id = follower(&id);
        }
    }
}

impl Handled {
    fn compare(&self, found: &Execution, trace: &[Map<String, Value>], wrong: &mut Vec<String>) {
        let texts = |values: &[Value]| {
            let mut texts: Vec<String> = values
                .iter()
                .map(|value| value.as_str().unwrap_or_default().to_owned())
                .collect();
            texts.sort();
            texts
        };
        let seen = found.context.get("seen").and_then(Value::as_array);
        let seen = texts(seen.map_or(&[], Vec::as_slice));
        let processed: Vec<String> = self.processed.iter().cloned().collect();
        if seen != processed {
            wrong.push(format!("{}: {seen:?} instead of {processed:?}", found.id));
        }
        let traced: Vec<Value> = trace.iter().map(|step| step["event"].clone()).collect();
        let traced = texts(&traced);
        let expected: Vec<String> = self.traced.iter().cloned().collect();
        if traced != expected {
            wrong.push(format!("{}: trace {traced:?}", found.id));
        }
        let is_rising = trace
            .windows(2)
            .all(|pair| pair[0]["index"].as_u64() < pair[1]["index"].as_u64());
        if !is_rising {
            wrong.push(format!("{}: trace out of order: {trace:?}", found.id));
        }
        // The creation is one commit, each event another.
        let version = found.version.get() as usize;
        if version != processed.len() + 1 {
            wrong.push(format!("{}: version {version}", found.id));
        }
    }
}
