//! A master that is killed under load.

use std::{sync::atomic::Ordering, thread};

use store::cluster::Slot;
use tests::cluster::{Cluster, eventually};

use crate::load::{CLIENTS, Ledger, audit, client};

const PREFIX: &str = "{failing}";

/// What asynchronous replication may lose is the end of what the old master acknowledged, and each commit of it as a whole. The
/// audit fails for anything else: for a commit that was decided on one that is missing and is there itself, for effects without
/// their row, for a row without its effects.
#[test]
fn a_killed_master_loses_at_most_the_end_of_what_it_acknowledged() {
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
        eventually("clients get on", || ledger.landed() > 150);
        let master = cluster.owner(slot);
        master.kill();
        cluster.await_failover(slot, master);
        let landed = ledger.landed();
        eventually("clients get on", || ledger.landed() > landed + 150);
        ledger.end();
    });
    let missing = audit(&cluster, PREFIX, &ledger);
    println!(
        "{} commits, {} conflicts, {} refused, {} unknown; acknowledged and lost: {}",
        ledger.landed(),
        ledger.conflicts.load(Ordering::SeqCst),
        ledger.refused.load(Ordering::SeqCst),
        ledger.indeterminate.load(Ordering::SeqCst),
        missing.len(),
    );
}
