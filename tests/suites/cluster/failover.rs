//! A master that is killed.
//!
//! Replication is asynchronous: the replica that takes over may lack the end of what the old master acknowledged. That can not
//! be helped; that it is noticed, and that nothing else happens, is shown here.

use std::thread;

use serde_json::{Map, json};
use store::{Commit, CommitPath, Event, Execution, Settings, StoreError, cluster::Slot};
use tests::cluster::{Cluster, eventually};

use crate::{
    load::{CLIENTS, Ledger, audit, client},
    twin::FLAVOURS,
};

const PREFIX: &str = "{failing}";

/// Kills the master of the clients' slot under load. With `cut`, its replica is not told of some commits before. Which
/// acknowledged ones are missing afterwards; the audit fails for anything but the end of a row's history, as a whole.
fn fail_over(cluster: &Cluster, path: CommitPath, cut: bool) -> Vec<(String, String)> {
    cluster.empty();
    let slot = Slot::of(PREFIX).number();
    let ledger = Ledger::of(path);
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let ledger = &ledger;
            scope.spawn(move || client(number, cluster, PREFIX, ledger));
        }
        eventually("clients get on", || ledger.landed() > 100);
        let master = cluster.owner(slot);
        if cut {
            cluster.cut_replication(master);
            let landed = ledger.landed();
            eventually("clients get on", || ledger.landed() > landed + 30);
        }
        master.kill();
        cluster.await_failover(slot, master);
        ledger.fail_over();
        let landed = ledger.landed();
        eventually("clients get on", || ledger.landed() > landed + 100);
        ledger.end();
    });
    let missing = audit(cluster, PREFIX, &ledger);
    ledger.report(missing.len());
    missing
}

#[test]
fn a_killed_master_loses_at_most_the_end_of_what_it_acknowledged() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    let missing = fail_over(&cluster, CommitPath::Script, false);
    assert!(
        missing.len() < 100,
        "the replica was in step: {}",
        missing.len()
    );
}

#[test]
fn commits_that_no_replica_was_told_of_are_counted_as_lost_and_leave_nothing_half() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    let missing = fail_over(&cluster, CommitPath::Script, true);
    assert!(missing.len() >= 30, "{}", missing.len());
}

/// A transaction is replicated as one, and its watch ends with its connection.
#[test]
fn commits_that_watch_are_lost_as_a_whole_or_not_at_all_when_their_master_is_killed() {
    for cut in [false, true] {
        let Some(cluster) = Cluster::claim() else {
            return;
        };
        let missing = fail_over(&cluster, CommitPath::Watch, cut);
        assert_eq!(missing.len() >= 30, cut, "{}", missing.len());
    }
}

/// The holder of a lost version sees a conflict with a smaller one, on every path; nobody overwrites.
#[test]
fn who_holds_a_version_that_was_lost_is_told_a_smaller_one() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    cluster.empty();
    let slot = Slot::of(PREFIX).number();
    let mut stores: Vec<_> = [CommitPath::Script, CommitPath::Watch]
        .into_iter()
        .flat_map(|path| FLAVOURS.map(|flavour| (path, flavour)))
        .map(|(path, flavour)| {
            flavour.open(&cluster, Settings::new(PREFIX).unwrap().commit_path(path))
        })
        .collect();
    let step: Map<_, _> = [("step".to_owned(), json!(1))].into_iter().collect();
    let mut held: Vec<_> = (0..stores.len())
        .map(|number| Execution::new(format!("h{number}"), "shop"))
        .collect();
    let commit = |event: &str| {
        Commit::for_event(event)
            .emit(None, Event::new(format!("out-{event}"), "Done"))
            .trace(step.clone())
    };
    for (store, execution) in stores.iter_mut().zip(&mut held) {
        store.commit(execution, &commit("a")).unwrap();
    }
    let master = cluster.owner(slot);
    cluster.await_replicated(master);
    cluster.cut_replication(master);
    for (store, execution) in stores.iter_mut().zip(&mut held) {
        store.commit(execution, &commit("b")).unwrap();
        store.commit(execution, &commit("c")).unwrap();
        assert_eq!(execution.version.get(), 3);
    }
    master.kill();
    cluster.await_failover(slot, master);
    for (store, execution) in stores.iter_mut().zip(&mut held) {
        let error = loop {
            match store.commit(execution, &commit("d")) {
                // A watch follows no redirection, and who sent to a dead node can not know.
                Err(
                    StoreError::Refused { .. }
                    | StoreError::Io { .. }
                    | StoreError::Indeterminate { .. },
                ) => {}
                other => break other.unwrap_err(),
            }
        };
        let StoreError::Conflict {
            expected, found, ..
        } = error
        else {
            panic!("{error}")
        };
        assert_eq!(
            (expected.get(), found.map(store::Version::get)),
            (3, Some(1))
        );
        let id = execution.id.clone();
        let mut loaded = store.load(&id).unwrap().unwrap();
        assert_eq!(loaded.version.get(), 1);
        let handled = ["a", "b", "c", "d"].map(|event| store.is_processed(&id, event).unwrap());
        assert_eq!(
            handled,
            [true, false, false, false],
            "redelivery brings back what was lost"
        );
        assert_eq!(store.read_trace(&id).unwrap().len(), 1);
        store.commit(&mut loaded, &commit("b")).unwrap();
        assert_eq!(store.load(&id).unwrap(), Some(loaded));
    }
}
