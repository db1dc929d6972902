//! A store over many slots.

use std::collections::{BTreeMap, BTreeSet};

use store::{
    Commit, Event, Execution, ListFilter, Settings, StoreError,
    cluster::{Slot, aio, sync},
    sharded::{AsyncShardedStore, Partitions, ShardedCursor, ShardedStore},
};
use tests::cluster::Cluster;
use tokio::runtime::Builder;

const COUNT: u16 = 12;

fn partitions() -> Partitions {
    Partitions::new(COUNT).unwrap()
}

fn settings() -> Settings {
    Settings::new("orders").unwrap()
}

fn open(cluster: &Cluster) -> ShardedStore<sync::Cluster> {
    ShardedStore::open(
        sync::Cluster::new(cluster.urls()).unwrap(),
        &settings(),
        partitions(),
    )
    .unwrap()
}

/// Each execution emits to the one before it, which mostly lies elsewhere.
fn fill(store: &mut ShardedStore<sync::Cluster>, count: usize) {
    for number in 0..count {
        let mut execution = Execution::new(format!("x{number}"), "shop");
        let target = format!("x{}", number.saturating_sub(1));
        let commit =
            Commit::for_event("start").emit(Some(&target), Event::new(format!("e{number}"), "Go"));
        store.commit(&mut execution, &commit).unwrap();
    }
}

#[test]
fn executions_are_spread_over_the_masters_and_found_again() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    cluster.empty();
    let mut store = open(&cluster);
    fill(&mut store, 60);
    let owners: BTreeSet<u16> = partitions()
        .iter()
        .map(|partition| {
            cluster
                .owner(Slot::of(store.settings_of(partition).unwrap().keys().prefix()).number())
                .port()
        })
        .collect();
    assert!(owners.len() > 1, "the partitions are on several masters");
    for number in 0..60 {
        let (execution, handled) = store
            .load_for_event(&format!("x{number}"), "start")
            .unwrap()
            .unwrap();
        assert_eq!((execution.version.get(), handled), (1, true));
    }
    let mut stale = Execution::new("x7", "shop");
    assert!(matches!(
        store.save(&mut stale),
        Err(StoreError::Conflict { .. })
    ));
}

#[test]
fn sweeps_visit_each_partition_in_its_turn_and_relay_across_them() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    cluster.empty();
    let mut store = open(&cluster).sweep_from(5);
    fill(&mut store, 60);
    let mut visits: BTreeMap<u16, usize> = BTreeMap::new();
    let mut relayed = 0;
    for _ in 0..2 * COUNT {
        let partition = store.next_partition();
        *visits.entry(partition.number()).or_default() += 1;
        let pending = store
            .partition(partition)
            .unwrap()
            .pending_outbox()
            .unwrap();
        for entry in pending {
            let target = entry.target_id.clone().unwrap();
            let (mut execution, handled) = store
                .load_for_event(&target, &entry.event.id)
                .unwrap()
                .unwrap();
            assert!(!handled);
            store
                .commit(&mut execution, &Commit::for_event(&entry.event.id))
                .unwrap();
            assert!(
                store
                    .partition(partition)
                    .unwrap()
                    .ack_outbox(entry.seq)
                    .unwrap()
            );
            relayed += 1;
        }
    }
    assert_eq!(relayed, 60);
    assert!(
        visits.len() == usize::from(COUNT) && visits.values().all(|count| *count == 2),
        "{visits:?}"
    );
    // The first emitted to itself, and so did the second; the last was nobody's target.
    assert_eq!(store.load("x0").unwrap().unwrap().version.get(), 3);
    assert_eq!(store.load("x59").unwrap().unwrap().version.get(), 1);
}

#[test]
fn a_listing_goes_over_all_partitions() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    cluster.empty();
    let mut store = open(&cluster);
    fill(&mut store, 60);
    let mut found = BTreeSet::new();
    let mut cursor: Option<ShardedCursor> = None;
    loop {
        let page = store
            .list_executions(&ListFilter::default(), 20, cursor)
            .unwrap();
        found.extend(page.page.items.into_iter().map(|item| item.id));
        // As text and back, as it would travel.
        cursor = page
            .next_cursor
            .map(|cursor| cursor.to_string().parse().unwrap());
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found, (0..60).map(|number| format!("x{number}")).collect());
}

#[test]
fn another_number_of_partitions_is_refused_by_both_twins() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    cluster.empty();
    drop(open(&cluster));
    drop(open(&cluster));
    let other = Partitions::new(COUNT + 1).unwrap();
    let says = |error: StoreError| {
        assert_eq!(
            error.to_string(),
            "{orders:layout} says crc16/12, not crc16/13"
        );
    };
    let nodes = sync::Cluster::new(cluster.urls()).unwrap();
    says(ShardedStore::open(nodes, &settings(), other).unwrap_err());
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let nodes = aio::Cluster::new(cluster.urls()).unwrap();
        says(
            AsyncShardedStore::open(nodes.clone(), &settings(), other)
                .await
                .unwrap_err(),
        );
        let mut store = AsyncShardedStore::open(nodes, &settings(), partitions())
            .await
            .unwrap();
        for number in 0..30 {
            store
                .save(&mut Execution::new(format!("a{number}"), "shop"))
                .await
                .unwrap();
        }
        for number in 0..30 {
            assert!(store.load(&format!("a{number}")).await.unwrap().is_some());
        }
        let mut ids = Vec::new();
        let mut cursor = None;
        loop {
            let page = store
                .list_executions(&ListFilter::default(), 20, cursor)
                .await
                .unwrap();
            ids.extend(page.page.items.into_iter().map(|item| item.id));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(ids.len(), 30);
    });
}
