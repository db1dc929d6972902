//! [`Ledger`]: each try to commit and what became of it.

use std::collections::BTreeMap;

use fakeserver::explore::Operation;

use super::State;
use crate::call::{Answer, Attempt, Call, Outcome};

/// What became of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The client was told that it landed.
    Landed,
    /// The client was told something else, or nothing, and the row is built on it.
    Logged,
    /// It left nothing in the row.
    Absent,
}

/// A try and its fate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'h> {
    /// Whose, and its place among all calls.
    pub(super) client: usize,
    pub(super) invoked: u64,
    pub(super) attempt: &'h Attempt,
    /// None if it never returned.
    pub(super) outcome: Option<&'h Outcome>,
    pub(super) fate: Fate,
    /// The version that it made, or would have made.
    pub(super) version: i64,
}

impl<'h> Entry<'h> {
    pub(super) fn answer(&self) -> Option<&'h Answer> {
        self.outcome.map(|outcome| &outcome.answer)
    }

    /// Whether the client cannot know.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.answer(), None | Some(Answer::Unknown))
    }

    pub(super) fn is_in(&self) -> bool {
        self.fate != Fate::Absent
    }

    /// Whether its effects must be all there: it landed, and the client knows.
    pub(super) fn is_landed(&self) -> bool {
        self.fate == Fate::Landed
    }

    pub(super) fn positions(&self) -> (&'h [i64], &'h [i64]) {
        match self.answer() {
            Some(Answer::Landed { outbox, spawns, .. }) => (outbox, spawns),
            _ => (&[], &[]),
        }
    }
}

/// All tries, and those that landed by execution in the order of their versions.
#[derive(Debug)]
pub(super) struct Ledger<'h> {
    pub(super) entries: Vec<Entry<'h>>,
    pub(super) landed: BTreeMap<&'h str, Vec<Entry<'h>>>,
}

impl<'h> Ledger<'h> {
    pub(super) fn new(history: &'h [Operation<Call, Outcome>], state: &State) -> Ledger<'h> {
        let entries: Vec<Entry<'h>> = history
            .iter()
            .filter_map(|operation| match &operation.input {
                Call::Commit(attempt) => Some(entry(operation, attempt, state)),
                _ => None,
            })
            .collect();
        let mut landed: BTreeMap<&str, Vec<Entry<'h>>> = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.is_in()) {
            landed
                .entry(entry.attempt.execution.as_str())
                .or_default()
                .push(*entry);
        }
        for commits in landed.values_mut() {
            // Of two that made the same version none comes first; their positions decide, so that only one clause objects.
            commits.sort_by_key(|entry| (entry.version, entry.positions()));
        }
        Ledger { entries, landed }
    }

    /// The landed commits of an execution, by version.
    pub(super) fn landed_on(&self, execution: &str) -> &[Entry<'h>] {
        self.landed.get(execution).map_or(&[], Vec::as_slice)
    }
}

fn entry<'h>(
    operation: &'h Operation<Call, Outcome>,
    attempt: &'h Attempt,
    state: &State,
) -> Entry<'h> {
    let outcome = operation.output.as_ref();
    let logged = state.is_logged(&attempt.execution, &attempt.tag);
    let (fate, version) = match outcome.map(|outcome| &outcome.answer) {
        Some(Answer::Landed { version, .. }) => (Fate::Landed, *version),
        _ if logged => (Fate::Logged, attempt.expected + 1),
        _ => (Fate::Absent, attempt.expected + 1),
    };
    Entry {
        client: operation.client,
        invoked: operation.invoked,
        attempt,
        outcome,
        fate,
        version,
    }
}
