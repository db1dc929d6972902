//! What goes wrong on a cluster without care, and what our connections make of the same.

use redis::cluster::{ClusterClient, ClusterClientBuilder};
use store::{
    AsyncRedisStore, Commit, Event, Execution, RedisStore, Settings, StoreError,
    cluster::{Slot, sync},
    sync::Exclusive,
};
use tests::cluster::Cluster;

use crate::proxy::Proxy;

const PREFIX: &str = "{lost}";

fn settings() -> Settings {
    Settings::new(PREFIX).unwrap()
}

/// A proxy before the slot's master, which knows the script already.
fn prepared(cluster: &Cluster) -> Proxy {
    cluster.empty();
    let mut store = RedisStore::cluster(cluster.urls(), settings()).unwrap();
    store.save(&mut Execution::new("other", "shop")).unwrap();
    Proxy::before(cluster.owner(Slot::of(PREFIX).number()))
}

fn version(cluster: &Cluster) -> i64 {
    let mut store = RedisStore::cluster(cluster.urls(), settings()).unwrap();
    store
        .load("order")
        .unwrap()
        .map_or(0, |execution| execution.version.get())
}

/// C6: the commit ran, its reply was lost, and the client sent it again on its own.
#[test]
fn a_cluster_connection_that_sends_again_conflicts_with_its_own_commit() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    let proxy = prepared(&cluster);
    let connection = ClusterClient::new([proxy.url()])
        .unwrap()
        .get_connection()
        .unwrap();
    let mut store = RedisStore::with_settings(connection, settings());
    proxy.swallow_a_reply();
    let error = store
        .save(&mut Execution::new("order", "shop"))
        .unwrap_err();
    assert!(proxy.has_swallowed());
    let StoreError::Conflict { found, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(
        (found.map(store::Version::get), version(&cluster)),
        (Some(1), 1)
    );
}

/// C6: ours says that it does not know, and finds out.
#[test]
fn a_commit_whose_reply_was_lost_is_sent_once_and_resolved() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    let proxy = prepared(&cluster);
    let mut store =
        RedisStore::with_connections(sync::Cluster::new([proxy.url()]).unwrap(), settings());
    proxy.swallow_a_reply();
    let mut execution = Execution::new("order", "shop");
    let error = store
        .commit(
            &mut execution,
            &Commit::for_event("one").emit(None, Event::new("two", "Done")),
        )
        .unwrap_err();
    assert!(proxy.has_swallowed());
    let StoreError::Indeterminate {
        attempt: Some(attempt),
        ..
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!(execution.version.get(), 0);
    store.resolve(&mut execution, &attempt).unwrap();
    assert_eq!((execution.version.get(), version(&cluster)), (1, 1));
    store.save(&mut execution).unwrap();
    assert_eq!(store.pending_outbox().unwrap().len(), 1);
}

/// C6: a connection of redis-rs' own that was told not to send again keeps the promise.
#[test]
fn a_cluster_connection_without_retries_loses_its_reply_once() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    let proxy = prepared(&cluster);
    let client = ClusterClientBuilder::new([proxy.url()])
        .retries(0)
        .build()
        .unwrap();
    let mut store =
        RedisStore::with_connections(Exclusive::new(client.get_connection().unwrap()), settings());
    proxy.swallow_a_reply();
    let error = store
        .save(&mut Execution::new("order", "shop"))
        .unwrap_err();
    assert!(
        proxy.has_swallowed() && matches!(error, StoreError::Indeterminate { .. }),
        "{error}"
    );
    assert_eq!(version(&cluster), 1);
}

/// C25: the keys of one commit lie in four slots.
#[test]
fn keys_without_a_tag_are_refused_by_the_cluster_after_a_number_was_drawn() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    cluster.empty();
    let owner = cluster.owner(Slot::of("stm:outbox:seq").number());
    owner.ask(&["INCR", "stm:outbox:seq"]);
    let keys = ["stm:exe:order", "stm:processed:order"];
    let error = owner
        .try_ask(&["EVAL", "return 1", "2", keys[0], keys[1]])
        .unwrap_err();
    assert_eq!(error.code(), Some("CROSSSLOT"));
    assert_ne!(Slot::of(keys[0]), Slot::of(keys[1]));
}

/// C25: ours refuses before anything is sent, over redis-rs' own cluster connections as well; with a tag both twins work.
#[test]
fn cluster_connections_of_redis_rs_need_a_tag_too() {
    let Some(cluster) = Cluster::claim() else {
        return;
    };
    cluster.empty();
    let client = ClusterClientBuilder::new(cluster.urls())
        .retries(0)
        .build()
        .unwrap();
    let commit = Commit::for_event("one").emit(None, Event::new("two", "Done"));
    let untagged = Settings::new("stm").unwrap();
    let mut store = RedisStore::with_settings(client.get_connection().unwrap(), untagged.clone());
    let error = store
        .commit(&mut Execution::new("order", "shop"), &commit)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid prefix: has no `{tag}`, which a cluster needs"
    );
    let mut store = store.settings(settings());
    store
        .commit(&mut Execution::new("order", "shop"), &commit)
        .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let connection = client.get_async_connection().await.unwrap();
        let mut store = AsyncRedisStore::with_settings(connection, untagged);
        let error = store
            .commit(&mut Execution::new("order", "shop"), &commit)
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid prefix: has no `{tag}`, which a cluster needs"
        );
        let mut store = store.settings(settings());
        let mut execution = store.load("order").await.unwrap().unwrap();
        store.commit(&mut execution, &commit).await.unwrap();
        assert_eq!(store.pending_outbox().await.unwrap().len(), 2);
    });
    let keys: i64 = cluster
        .masters()
        .iter()
        .map(|node| match node.ask(&["DBSIZE"]) {
            redis::Value::Int(count) => count,
            other => panic!("{other:?}"),
        })
        .sum();
    assert_eq!(
        keys, 4,
        "nothing but the tagged row, its mark, outbox and counter"
    );
}
