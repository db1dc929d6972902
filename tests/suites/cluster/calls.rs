//! Call by call, in both twins.

use std::time::Duration;

use serde_json::{Map, json};
use store::{
    AsyncRedisStore, Commit, CommitPath, Event, Execution, RedisStore, Settings, SpawnIntent,
    StoreError, TimerOp,
    cluster::Slot,
    transport::{AsyncRedisTransport, Priority, RedisTransport},
};
use tests::cluster::Cluster;

use crate::twin::{FLAVOURS, Twin};

fn everything() -> Commit {
    let step: Map<_, _> = [("event".to_owned(), json!("one"))].into_iter().collect();
    Commit::for_event("one")
        .emit(Some("other"), Event::new("two", "Paid"))
        .emit(None, Event::new("three", "Noted"))
        .timer(TimerOp::schedule("Waiting", 5.5))
        .spawn(SpawnIntent::new("child", "Root"))
        .trace(step)
}

fn check(store: &mut Twin) {
    let mut execution = Execution::new("order", "shop");
    let committed = store.commit(&mut execution, &everything()).unwrap();
    assert_eq!(
        (
            execution.version.get(),
            committed.outbox.len(),
            committed.spawns.len()
        ),
        (1, 2, 1)
    );
    assert_eq!(
        store.load_for_event("order", "one").unwrap(),
        Some((execution.clone(), true))
    );
    let mut stale = Execution::new("order", "shop");
    assert!(matches!(
        store.save(&mut stale),
        Err(StoreError::Conflict { .. })
    ));
    store.save(&mut execution).unwrap();
    assert_eq!(store.load("order").unwrap(), Some(execution.clone()));
    let pending = store.pending_outbox().unwrap();
    assert_eq!(
        pending
            .iter()
            .map(|entry| entry.event.id.as_str())
            .collect::<Vec<_>>(),
        ["two", "three"]
    );
    for entry in &pending {
        assert!(store.ack_outbox(entry.seq).unwrap());
    }
    assert_eq!(store.pending_outbox().unwrap(), []);
    assert_eq!(store.pending_spawns().unwrap().len(), 1);
    assert_eq!(store.due_timers(6.0).unwrap().len(), 1);
    assert!(store.delete_timer("order", "Waiting", 5.5).unwrap());
    assert_eq!(store.read_trace("order").unwrap().len(), 1);
    for number in 0..50 {
        store
            .save(&mut Execution::new(format!("n{number}"), "shop"))
            .unwrap();
    }
    assert_eq!(store.ids().len(), 51);
    assert!(store.purge("order", execution.version).unwrap());
    assert_eq!(store.load("order").unwrap(), None);
    assert!(!store.is_processed("order", "one").unwrap());
    assert_eq!(store.pending_spawns().unwrap(), []);
    store.check().unwrap();
}

#[test]
fn every_call_works_under_a_tag_on_whichever_node_has_it() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    for path in [CommitPath::Script, CommitPath::Mixed, CommitPath::Watch] {
        for flavour in FLAVOURS {
            // Slots of different masters.
            for prefix in ["{a}", "shop:{b}", "{c}:x", "{d}"] {
                cluster.empty();
                let settings = Settings::new(prefix).unwrap().commit_path(path);
                check(&mut flavour.open(&cluster, settings));
            }
        }
    }
}

#[test]
fn a_prefix_without_a_tag_is_refused_before_anything_is_sent() {
    // Nobody listens there: whoever asked would get another error.
    let nobody = ["redis://127.0.0.1:1/"];
    let says = |error: StoreError| {
        assert_eq!(
            error.to_string(),
            "invalid prefix: has no `{tag}`, which a cluster needs"
        );
    };
    for prefix in ["stm", "{}", "{}:{t}", "a:{t"] {
        says(RedisStore::cluster(nobody, Settings::new(prefix).unwrap()).unwrap_err());
        says(AsyncRedisStore::cluster(nobody, Settings::new(prefix).unwrap()).unwrap_err());
        let store = RedisStore::cluster(nobody, Settings::new("{t}").unwrap()).unwrap();
        let mut later = store.settings(Settings::new(prefix).unwrap());
        says(later.load("order").unwrap_err());
    }
}

#[test]
fn a_script_that_a_node_does_not_know_is_sent_as_source() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    for flavour in FLAVOURS {
        cluster.empty();
        let mut store = flavour.open(&cluster, Settings::new("{t}").unwrap());
        let mut execution = Execution::new("order", "shop");
        for version in 1..4 {
            for master in cluster.masters() {
                master.ask(&["SCRIPT", "FLUSH"]);
            }
            store.save(&mut execution).unwrap();
            assert_eq!(execution.version.get(), version);
        }
    }
}

#[test]
fn a_server_that_is_no_cluster_is_an_error_and_so_is_nobody() {
    let fake = fakeserver::Server::start();
    for url in [fake.url(), "redis://127.0.0.1:1/".to_owned()] {
        let nodes = store::cluster::sync::Cluster::new([url]).unwrap();
        let nodes = nodes.patience(Duration::from_millis(50));
        let mut store = RedisStore::with_connections(nodes, Settings::new("{t}").unwrap());
        let error = store
            .save(&mut Execution::new("order", "shop"))
            .unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
    }
    let none: [&str; 0] = [];
    assert!(matches!(
        RedisStore::cluster(none, Settings::new("{t}").unwrap()),
        Err(StoreError::Io { .. })
    ));
}

#[test]
fn queues_work_under_a_tag() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    let lease = Duration::from_secs(60);
    for prefix in ["{a}", "shop:{b}", "{c}:x"] {
        cluster.empty();
        let settings = Settings::new(prefix).unwrap();
        let mut transport = RedisTransport::cluster(cluster.urls(), settings.clone()).unwrap();
        transport
            .publish("order", &Event::new("one", "Paid"), Priority::MIN)
            .unwrap();
        let claimed = transport
            .claim("w", lease, Priority::MIN)
            .unwrap()
            .lease
            .unwrap();
        assert!(transport.nack(&claimed, Duration::ZERO).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut transport = AsyncRedisTransport::cluster(cluster.urls(), settings).unwrap();
            let claimed = transport
                .claim("w", lease, Priority::MIN)
                .await
                .unwrap()
                .lease
                .unwrap();
            assert!(transport.ack(&claimed).await.unwrap());
            assert_eq!(transport.queue_length("order").await.unwrap(), 0);
        });
    }
    let untagged =
        RedisTransport::cluster(cluster.urls(), Settings::new("stm").unwrap()).unwrap_err();
    assert!(untagged.to_string().contains("has no `{tag}`"));
}

#[test]
fn a_listing_that_began_on_another_node_is_refused() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    for flavour in FLAVOURS {
        cluster.empty();
        let slot = Slot::of("{listing}").number();
        let mut store = flavour.open(&cluster, Settings::new("{listing}").unwrap());
        for number in 0..80 {
            store
                .save(&mut Execution::new(format!("n{number}"), "shop"))
                .unwrap();
        }
        let cursor = store.list(20, None).unwrap().next_cursor;
        assert!(cursor.is_some());
        let to = cluster.other_master(slot);
        cluster.begin_to_move(slot, to);
        cluster.move_keys(slot, to, 40);
        // Half of the rows are elsewhere: nobody may see a half.
        let mut hasty = flavour.open_patiently(
            &cluster,
            Settings::new("{listing}").unwrap(),
            Duration::from_millis(30),
        );
        assert!(matches!(
            hasty.list(20, None),
            Err(StoreError::Refused { .. })
        ));
        while cluster.move_keys(slot, to, 50) > 0 {}
        cluster.end_move(slot, to);
        let error = store.list(20, cursor).unwrap_err();
        assert!(error.to_string().contains("begin it again"), "{error}");
        assert_eq!(store.ids().len(), 80);
    }
}
