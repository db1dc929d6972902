//! The sequential specification: what the store may have become, given what its calls answered.
//!
//! It is split into clauses that can be switched off one by one, so that a test can show that none of them is idle: without it
//! a broken store escapes.
//!
//! # What it says
//! A commit landed if it was answered so, or if its tag is in the row's log (the row names all commits that it is built on).
//! All others did not. Then versions, row, outbox, spawn intents, processed ids, timers and trace must be those of the landed
//! commits, one after the other in the order of their versions. Nothing depends on real time, so that an exploration may be
//! reduced.

mod effects;
mod fate;
mod rows;
mod state;
mod timers;

use fakeserver::explore::{Operation, Violation};

use self::fate::Ledger;
pub use self::state::{Entry, Reader, Row, State, TraceStep};
use crate::call::{Call, Outcome};

/// One rule of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clause {
    /// The versions of an execution's landed commits are 1..n, without gap or double.
    Versions,
    /// The row is at the last version, and made of all landed commits in the order of their versions: nothing was lost.
    Row,
    /// A commit that was answered with a conflict or an error did not land.
    Verdict,
    /// A conflict means that another commit had landed on the version.
    Progress,
    /// The version in memory moves with a landed commit, and only then.
    Memory,
    /// The outbox holds exactly the landed commits' events that nobody took off.
    Outbox,
    /// So do the spawn intents.
    Spawns,
    /// The processed ids are exactly those of the landed commits.
    Processed,
    /// The timers are what the landed commits and deletions leave, in order.
    Timers,
    /// The trace holds exactly the landed commits' steps, and those added outside of commits.
    Trace,
    /// Positions and trace steps follow the order of the versions.
    Order,
    /// An event is handled by at most one landed commit.
    Once,
    /// A commit whose reply was lost is there with all of its effects or with none.
    Whole,
    /// What was taken off as delivered was handled.
    Delivered,
}

impl Clause {
    /// All of them.
    pub const ALL: [Clause; 14] = [
        Clause::Versions,
        Clause::Row,
        Clause::Verdict,
        Clause::Progress,
        Clause::Memory,
        Clause::Outbox,
        Clause::Spawns,
        Clause::Processed,
        Clause::Timers,
        Clause::Trace,
        Clause::Order,
        Clause::Once,
        Clause::Whole,
        Clause::Delivered,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Clause::Versions => "versions",
            Clause::Row => "row",
            Clause::Verdict => "verdict",
            Clause::Progress => "progress",
            Clause::Memory => "memory",
            Clause::Outbox => "outbox",
            Clause::Spawns => "spawns",
            Clause::Processed => "processed",
            Clause::Timers => "timers",
            Clause::Trace => "trace",
            Clause::Order => "order",
            Clause::Once => "once",
            Clause::Whole => "whole",
            Clause::Delivered => "delivered",
        }
    }
}

/// Which clauses are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clauses(u32);

impl Clauses {
    /// All.
    pub const ALL: Clauses = Clauses(u32::MAX);

    /// All but this one.
    pub fn without(clause: Clause) -> Clauses {
        Clauses(u32::MAX & !(1 << clause as u32))
    }

    /// Whether this one is.
    pub fn has(self, clause: Clause) -> bool {
        self.0 & (1 << clause as u32) != 0
    }
}

/// What the checks see.
struct Case<'c> {
    state: &'c State,
    ledger: &'c Ledger<'c>,
    history: &'c [Operation<Call, Outcome>],
    trace_max: i64,
}

/// What a check finds wrong, in words.
type Finding = Result<(), String>;

/// Holds a history and the state that it left against the specification.
///
/// # Errors
/// The first clause that does not hold.
pub fn check(
    history: &[Operation<Call, Outcome>],
    state: &State,
    trace_max: i64,
    clauses: Clauses,
) -> Result<(), Violation> {
    let ledger = Ledger::new(history, state);
    let case = Case {
        state,
        ledger: &ledger,
        history,
        trace_max,
    };
    let rules: [fn(&Case<'_>) -> Finding; 14] = [
        rows::versions,
        rows::row,
        rows::verdict,
        rows::progress,
        rows::memory,
        effects::outbox,
        effects::spawns,
        effects::processed,
        timers::timers,
        effects::trace,
        effects::order,
        effects::once,
        effects::whole,
        effects::delivered,
    ];
    for (clause, rule) in Clause::ALL.into_iter().zip(rules) {
        if clauses.has(clause) {
            rule(&case).map_err(|details| Violation::new(clause.name(), details))?;
        }
    }
    Ok(())
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Finding {
    if holds { Ok(()) } else { Err(otherwise()) }
}
