//! What a commit carries beside the execution, and what it hands back.

use std::fmt;

use serde_json::{Map, Value};

use crate::{Document, Event, RowTail, Version};

/// Everything that one event changes beside its execution: stored with it, or not at all.
///
/// ```
/// use store::{Commit, Event, TimerOp};
///
/// let commit = Commit::for_event("event-1")
///     .emit(Some("order-18"), Event::new("event-2", "Paid"))
///     .timer(TimerOp::schedule("Waiting", 1_700_000_000.5));
/// assert!(!commit.is_state_only());
/// assert!(Commit::for_event("event-1").is_state_only());
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Commit {
    /// Events to deliver, in order.
    pub emits: Vec<Emit>,
    /// The event that was handled; it will be known as processed.
    pub processed_event_id: Option<String>,
    /// Changes to the execution's timers, in order.
    pub timers: Vec<TimerOp>,
    /// Executions to start.
    pub spawns: Vec<SpawnIntent>,
    /// A step for the execution's trace; an empty object is a step.
    pub trace: Option<Map<String, Value>>,
}

impl Commit {
    /// A commit with nothing beside the execution.
    pub fn new() -> Self {
        Self::default()
    }

    /// A commit that marks this event as processed.
    pub fn for_event(event_id: impl Into<String>) -> Self {
        Self {
            processed_event_id: Some(event_id.into()),
            ..Self::default()
        }
    }

    /// Adds an event to deliver; without a target it is only recorded.
    #[must_use]
    pub fn emit(mut self, target: Option<&str>, event: Event) -> Self {
        self.emits.push(Emit {
            target: target.map(str::to_owned),
            event,
        });
        self
    }

    /// Adds a change to a timer.
    #[must_use]
    pub fn timer(mut self, timer: TimerOp) -> Self {
        self.timers.push(timer);
        self
    }

    /// Adds an execution to start.
    #[must_use]
    pub fn spawn(mut self, spawn: SpawnIntent) -> Self {
        self.spawns.push(spawn);
        self
    }

    /// Sets the trace step.
    #[must_use]
    pub fn trace(mut self, step: Map<String, Value>) -> Self {
        self.trace = Some(step);
        self
    }

    /// Whether it changes nothing but the execution and the dedupe mark.
    pub fn is_state_only(&self) -> bool {
        self.emits.is_empty()
            && self.timers.is_empty()
            && self.spawns.is_empty()
            && self.trace.is_none()
    }
}

/// An event on its way.
#[derive(Debug, Clone, PartialEq)]
pub struct Emit {
    /// The execution that is to handle it, if any.
    pub target: Option<String>,
    /// The event.
    pub event: Event,
}

/// A change to a timer of the committing execution.
#[derive(Debug, Clone, PartialEq)]
pub enum TimerOp {
    /// Sets the timer of this path, or moves it.
    Schedule {
        /// The state that waits.
        path: String,
        /// When, in seconds since the epoch; finite.
        fire_at_s: f64,
    },
    /// Removes the timer of this path, if there is one.
    Cancel {
        /// The state that waited.
        path: String,
    },
}

impl TimerOp {
    /// Sets the timer of this path to seconds since the epoch.
    pub fn schedule(path: impl Into<String>, fire_at_s: f64) -> Self {
        Self::Schedule {
            path: path.into(),
            fire_at_s,
        }
    }

    /// Removes the timer of this path.
    pub fn cancel(path: impl Into<String>) -> Self {
        Self::Cancel { path: path.into() }
    }
}

/// An execution to start.
#[derive(Debug, Clone, PartialEq)]
pub struct SpawnIntent {
    /// Its id.
    pub child_id: String,
    /// The part of the definition that it runs.
    pub root_path: String,
    /// Its first context.
    pub context: Map<String, Value>,
}

impl SpawnIntent {
    /// An execution to start with an empty context.
    pub fn new(child_id: impl Into<String>, root_path: impl Into<String>) -> Self {
        Self {
            child_id: child_id.into(),
            root_path: root_path.into(),
            context: Map::new(),
        }
    }
}

/// Position of an outbox or spawn entry: monotonic, never used twice, with gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(i64);

impl Seq {
    /// A position by number.
    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a commit that landed has made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Committed {
    /// The version of the row now.
    pub version: Version,
    /// Positions of the emitted events, in order.
    pub outbox: Vec<Seq>,
    /// Positions of the spawn intents, in order.
    pub spawns: Vec<Seq>,
    /// The end of the row, for the document.
    pub(crate) tail: RowTail,
}

impl Committed {
    /// The result of a commit that only changed the row.
    pub fn state_only(version: Version) -> Self {
        Self {
            version,
            outbox: Vec::new(),
            spawns: Vec::new(),
            tail: RowTail::default(),
        }
    }

    /// Notes in the document what it has become.
    pub fn note<D: Document>(&self, document: &mut D) {
        document.set_version(self.version);
        document.remember(self.tail.clone());
    }
}
