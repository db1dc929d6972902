//! Slots that move to another master under load.

use std::thread;

use store::{CommitPath, Execution, Settings, StoreError, cluster::Slot};
use tests::cluster::{Cluster, Node, eventually};

use crate::{
    load::{CLIENTS, Ledger, audit, client},
    twin::FLAVOURS,
};

const PREFIX: &str = "{moving}";

fn count(nodes: &[Node], code: &str) -> u64 {
    nodes.iter().map(|node| node.errors(code)).sum()
}

/// To a master that does not have it, with a stop in the middle until clients were sent there.
fn move_slot(cluster: &Cluster, slot: u16) {
    let to = cluster.other_master(slot);
    let before = count(cluster.nodes(), "ASK");
    cluster.begin_to_move(slot, to);
    for _ in 0..3 {
        cluster.move_keys(slot, to, 4);
    }
    eventually("a client is told to ask elsewhere", || {
        count(cluster.nodes(), "ASK") > before
    });
    while cluster.move_keys(slot, to, 50) > 0 {}
    let before = count(cluster.nodes(), "MOVED");
    cluster.end_move(slot, to);
    eventually("a client is told that the slot moved", || {
        count(cluster.nodes(), "MOVED") > before
    });
}

#[test]
fn no_commit_is_lost_doubled_or_halved_while_its_slot_moves() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    cluster.empty();
    let slot = Slot::of(PREFIX).number();
    let ledger = Ledger::default();
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (cluster, ledger) = (&*cluster, &ledger);
            scope.spawn(move || client(number, cluster, PREFIX, ledger));
        }
        for _ in 0..3 {
            let landed = ledger.landed();
            eventually("clients get on", || ledger.landed() > landed + 60);
            move_slot(&cluster, slot);
        }
        let landed = ledger.landed();
        eventually("clients get on", || ledger.landed() > landed + 60);
        ledger.end();
    });
    let missing = audit(&cluster, PREFIX, &ledger);
    ledger.report(missing.len());
    assert_eq!(missing, [], "every acknowledged commit is there");
}

/// A watch belongs to a connection, so that such a commit follows no redirection.
#[test]
fn a_commit_that_watches_is_refused_once_after_its_slot_moved() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    let slot = Slot::of(PREFIX).number();
    for flavour in FLAVOURS {
        cluster.empty();
        let settings = Settings::new(PREFIX)
            .unwrap()
            .commit_path(CommitPath::Watch);
        let mut store = flavour.open(&cluster, settings);
        let mut execution = Execution::new("order", "shop");
        store.save(&mut execution).unwrap();
        let to = cluster.other_master(slot);
        cluster.begin_to_move(slot, to);
        while cluster.move_keys(slot, to, 50) > 0 {}
        cluster.end_move(slot, to);
        let error = store.save(&mut execution).unwrap_err();
        assert!(matches!(error, StoreError::Refused { .. }), "{error}");
        assert_eq!(execution.version.get(), 1);
        store.save(&mut execution).unwrap();
        assert_eq!(store.load("order").unwrap(), Some(execution));
    }
}
