//! Clients that commit on few executions, and the one invariant that must hold afterwards.
//!
//! Each commit handles an event, keeps its id in the row, emits, traces and marks it as handled. So the row says which effects
//! there must be: no more, no fewer. Each client also notes which event was the row's last when it decided; the events of a row
//! are a chain by these notes, and a commit that overwrote another one breaks it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use serde_json::{Map, Value, json};
use store::{Commit, CommitPath, Event, Execution, Settings, StoreError};
use tests::cluster::Cluster;

use crate::twin::{Flavour, Twin};

pub(crate) const CLIENTS: usize = 6;
pub(crate) const EXECUTIONS: usize = 5;

/// What clients know when they are done.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Of every commit that was sent: its event, and the row's last event when it was decided. An event that was tried again has
    /// several.
    bases: Mutex<BTreeMap<String, BTreeSet<String>>>,
    /// Acknowledged: execution, event, and whether it began after the fail-over.
    acknowledged: Mutex<Vec<(String, String, bool)>>,
    failed_over: AtomicBool,
    /// How the clients commit.
    path: CommitPath,
    landed: AtomicUsize,
    conflicts: AtomicUsize,
    indeterminate: AtomicUsize,
    refused: AtomicUsize,
    over: AtomicBool,
}

impl Ledger {
    /// Of clients that commit so.
    pub(crate) fn of(path: CommitPath) -> Self {
        Self {
            path,
            ..Self::default()
        }
    }

    /// From now on nothing that is acknowledged may be lost: the old master is dead, and the new one serves.
    pub(crate) fn fail_over(&self) {
        self.failed_over.store(true, Ordering::SeqCst);
    }

    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// Says how it went; shown for a test that failed.
    pub(crate) fn report(&self, lost: usize) {
        let count = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
        eprintln!(
            "{} commits, {} conflicts, {} refused, {} unknown; acknowledged and lost: {lost}",
            self.landed(),
            count(&self.conflicts),
            count(&self.refused),
            count(&self.indeterminate),
        );
    }

    pub(crate) fn landed(&self) -> usize {
        self.landed.load(Ordering::SeqCst)
    }
}

pub(crate) fn settings(prefix: &str) -> Settings {
    Settings::new(prefix).unwrap().trace_max(0)
}

fn id_of(number: usize) -> String {
    format!("x{}", number % EXECUTIONS)
}

/// One client, until the ledger is closed: each event is tried until it is known to have been handled.
pub(crate) fn client(number: usize, cluster: &Cluster, prefix: &str, ledger: &Ledger) {
    let flavour = if number.is_multiple_of(2) {
        Flavour::Sync
    } else {
        Flavour::Async
    };
    let settings = settings(prefix).commit_path(ledger.path);
    let mut store = flavour.open(cluster, settings);
    let mut random = fastrand::Rng::with_seed(number as u64);
    let mut round = 0;
    while !ledger.over.load(Ordering::SeqCst) {
        let id = id_of(random.usize(..EXECUTIONS));
        let event = format!("e{number}-{round}");
        round += 1;
        let mut handled = false;
        while !handled && !ledger.over.load(Ordering::SeqCst) {
            handled = handle(&mut store, &id, &event, ledger);
        }
    }
}

/// Whether the event is handled now.
fn handle(store: &mut Twin, id: &str, event: &str, ledger: &Ledger) -> bool {
    let failed_over = ledger.failed_over.load(Ordering::SeqCst);
    let loaded = match store.load_for_event(id, event) {
        Ok(loaded) => loaded,
        Err(error) => return tolerate(&error, ledger),
    };
    let mut execution = match loaded {
        Some((_, true)) => return true,
        Some((execution, false)) => execution,
        None => Execution::new(id, "load"),
    };
    let mut events = events_of(&execution);
    let base = events.last().cloned().unwrap_or_default();
    ledger
        .bases
        .lock()
        .unwrap()
        .entry(event.to_owned())
        .or_default()
        .insert(base);
    events.push(event.to_owned());
    execution.context.insert("events".to_owned(), json!(events));
    let step: Map<String, Value> = [("event".to_owned(), json!(event))].into_iter().collect();
    let commit = Commit::for_event(event)
        .emit(Some(id), Event::new(format!("out-{event}"), "Done"))
        .trace(step);
    match store.commit(&mut execution, &commit) {
        Ok(_) => {
            ledger.acknowledged.lock().unwrap().push((
                id.to_owned(),
                event.to_owned(),
                failed_over,
            ));
            ledger.landed.fetch_add(1, Ordering::SeqCst);
            true
        }
        Err(error) => tolerate(&error, ledger),
    }
}

/// Errors that a client of a cluster in trouble may meet; any other is a failure.
fn tolerate(error: &StoreError, ledger: &Ledger) -> bool {
    let count = match error {
        StoreError::Conflict { .. } => &ledger.conflicts,
        StoreError::Indeterminate { .. } => &ledger.indeterminate,
        StoreError::Refused { .. } | StoreError::Io { .. } => &ledger.refused,
        other => panic!("{other}"),
    };
    count.fetch_add(1, Ordering::SeqCst);
    false
}

fn events_of(execution: &Execution) -> Vec<String> {
    let events = execution.context.get("events").and_then(Value::as_array);
    let events = events.into_iter().flatten().filter_map(Value::as_str);
    events.map(str::to_owned).collect()
}

/// Checks the invariant; which acknowledged commits are not there.
pub(crate) fn audit(cluster: &Cluster, prefix: &str, ledger: &Ledger) -> Vec<(String, String)> {
    let mut store = Flavour::Sync.open(cluster, settings(prefix));
    let bases = ledger.bases.lock().unwrap();
    let outbox = store.pending_outbox().unwrap();
    let mut present = BTreeSet::new();
    for number in 0..EXECUTIONS {
        let id = id_of(number);
        let Some(execution) = store.load(&id).unwrap() else {
            assert!(
                store.read_trace(&id).unwrap().is_empty(),
                "{id}: effects without a row"
            );
            continue;
        };
        let events = events_of(&execution);
        assert_eq!(
            execution.version.get(),
            events.len() as i64,
            "{id}: a version for each event"
        );
        let mut base = String::new();
        for event in &events {
            assert!(
                present.insert((id.clone(), event.clone())),
                "{id}: {event} was applied twice"
            );
            assert!(
                bases.get(event).is_some_and(|bases| bases.contains(&base)),
                "{id}: {event} was not decided on {base:?}"
            );
            assert!(
                store.is_processed(&id, event).unwrap(),
                "{id}: {event} is not marked"
            );
            base.clone_from(event);
        }
        let emitted = outbox
            .iter()
            .filter(|entry| entry.target_id.as_deref() == Some(id.as_str()));
        let emitted: Vec<_> = emitted.map(|entry| entry.event.id.clone()).collect();
        let expected: Vec<_> = events.iter().map(|event| format!("out-{event}")).collect();
        assert_eq!(emitted, expected, "{id}: an emit for each event, in order");
        assert_traced(&mut store, &id, &events, ledger.path);
        assert_eq!(
            processed(cluster, prefix, &id),
            events.len(),
            "{id}: no mark without its commit"
        );
    }
    assert_eq!(outbox.len(), present.len(), "no emit without its commit");
    let mut missing = Vec::new();
    for (id, event, failed_over) in ledger.acknowledged.lock().unwrap().iter() {
        let commit = (id.clone(), event.clone());
        if !present.contains(&commit) {
            assert!(!failed_over, "{id}: {event} was overwritten");
            missing.push(commit);
        }
    }
    missing
}

fn assert_traced(store: &mut Twin, id: &str, events: &[String], path: CommitPath) {
    let trace = store.read_trace(id).unwrap();
    let steps: Vec<_> = trace.iter().map(|step| step["event"].clone()).collect();
    assert_eq!(steps, events, "{id}: a step for each event");
    let numbers: Vec<_> = trace.iter().map(|step| step["index"].as_u64()).collect();
    // One that watches has drawn its number before it conflicts.
    let is_gapless = path == CommitPath::Script;
    let expected: Vec<_> = (0..events.len() as u64).map(Some).collect();
    assert!(
        if is_gapless {
            numbers == expected
        } else {
            numbers.is_sorted_by(|one, other| one < other)
        },
        "{id}: numbered in order: {numbers:?}"
    );
}

/// How many marks an execution has.
fn processed(cluster: &Cluster, prefix: &str, id: &str) -> usize {
    let owner = cluster.owner(store::cluster::Slot::of(prefix).number());
    match owner.ask(&["SCARD", &format!("{prefix}:processed:{id}")]) {
        redis::Value::Int(count) => count as usize,
        other => panic!("no number: {other:?}"),
    }
}

/// Each row's history is replayed with one thing changed behind the store's back; the audit has to fail, and does not without.
#[test]
fn the_audit_notices_what_is_lost_or_half_there() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    let prefix = "{audit}";
    let key = |rest: &str| format!("{prefix}:{rest}");
    let (row, marks, trace) = (key("exe:x0"), key("processed:x0"), key("trace:x0"));
    let older = r#"{"id":"x0","definition_id":"load","context":{"events":["a"]},"version":1}"#;
    let skipped =
        r#"{"id":"x0","definition_id":"load","context":{"events":["a","c"]},"version":2}"#;
    let changes: [&[&str]; 7] = [
        &[],
        &["SREM", &marks, "b"],
        &["SADD", &marks, "d"],
        &["LPOP", &trace],
        &["HDEL", &key("outbox"), "2"],
        &["SET", &row, older],
        &["SET", &row, skipped],
    ];
    for change in changes {
        cluster.empty();
        let ledger = Ledger::default();
        let mut store = Flavour::Sync.open(&cluster, settings(prefix));
        for event in ["a", "b", "c"] {
            assert!(handle(&mut store, "x0", event, &ledger));
        }
        if !change.is_empty() {
            cluster
                .owner(store::cluster::Slot::of(prefix).number())
                .ask(change);
        }
        let audited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            audit(&cluster, prefix, &ledger)
        }));
        assert_eq!(audited.is_err(), !change.is_empty(), "{change:?}");
    }
}
