//! Slots that move to another master under load.

use std::{sync::atomic::Ordering, thread};

use store::cluster::Slot;
use tests::cluster::{Cluster, Node, eventually};

use crate::load::{CLIENTS, Ledger, audit, client};

const PREFIX: &str = "{moving}";

fn count(nodes: &[Node], code: &str) -> u64 {
    nodes.iter().map(|node| node.errors(code)).sum()
}

/// To a master that does not have it, with a stop in the middle until clients were sent there.
fn move_slot(cluster: &Cluster, slot: u16) {
    let owner = cluster.owner(slot).port();
    let masters = cluster.masters();
    let to = masters.iter().find(|node| node.port() != owner).unwrap();
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
    assert_eq!(missing, [], "every acknowledged commit is there");
    println!(
        "{} commits, {} conflicts, {} refused, {} unknown",
        ledger.landed(),
        ledger.conflicts.load(Ordering::SeqCst),
        ledger.refused.load(Ordering::SeqCst),
        ledger.indeterminate.load(Ordering::SeqCst),
    );
}
