//! Call by call, in both twins.

use serde_json::{Map, json};
use store::{
    AsyncRedisStore, Commit, CommitPath, Event, Execution, RedisStore, Settings, SpawnIntent,
    StoreError, TimerOp,
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
    assert_eq!(store.load("order").unwrap(), Some(execution));
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
}

#[test]
fn every_call_works_under_a_tag_on_whichever_node_has_it() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    for (number, path) in [CommitPath::Mixed, CommitPath::Watch]
        .into_iter()
        .enumerate()
    {
        for flavour in FLAVOURS {
            // Slots of different masters.
            for prefix in ["{a}", "shop:{b}", "{c}:x", "{d}"] {
                cluster.empty();
                let settings = Settings::new(prefix).unwrap().commit_path(path);
                check(&mut flavour.open(&cluster, settings));
            }
        }
        assert!(number < 2);
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
        )
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
        let nodes = nodes.patience(std::time::Duration::from_millis(50));
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
