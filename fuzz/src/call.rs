//! What clients mark in the history: calls on the store and what they answered.

use store::TimerOp;

/// One call on the store that changes something.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// A commit.
    Commit(Box<Attempt>),
    /// A trace step outside of a commit.
    Append {
        /// Whose trace.
        execution: String,
        /// The step's tag.
        tag: String,
    },
    /// An event taken off the outbox.
    AckOutbox {
        /// Its position.
        seq: i64,
        /// Who was to handle it.
        target: Option<String>,
        /// The event.
        event: String,
    },
    /// A spawn intent taken off the list.
    AckSpawn {
        /// Its position.
        seq: i64,
        /// The execution that it asked for.
        child: String,
    },
    /// A timer deleted after it fired.
    DeleteTimer {
        /// Whose.
        execution: String,
        /// Of which state.
        path: String,
        /// When it fired.
        fire_at_s: f64,
        /// The event that it caused.
        event: String,
    },
}

/// One try to commit. Everything that it writes carries its tag, so that it can be told from every other try.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Its name, different from all others.
    pub tag: String,
    /// The execution.
    pub execution: String,
    /// The version that it was decided on.
    pub expected: i64,
    /// The event that it handles.
    pub event: String,
    /// Ids of the events that it emits, and their targets.
    pub emits: Vec<(Option<String>, String)>,
    /// Ids of the executions that it starts.
    pub spawns: Vec<String>,
    /// What it does to the execution's timers.
    pub timers: Vec<TimerOp>,
    /// Whether it writes a trace step.
    pub traced: bool,
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What it answered.
    pub answer: Answer,
    /// The version of the execution in memory afterwards; of no meaning but for a commit.
    pub memory: i64,
}

/// What a call answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The commit landed, at this version, with these positions.
    Landed {
        /// The row's version.
        version: i64,
        /// Positions of its events.
        outbox: Vec<i64>,
        /// Positions of its spawn intents.
        spawns: Vec<i64>,
    },
    /// Somebody else was faster.
    Conflict,
    /// Nothing was written, for another reason.
    NotSent,
    /// Nobody knows.
    Unknown,
    /// An entry, a timer was removed, or was not there.
    Removed(bool),
    /// Done.
    Done,
}
