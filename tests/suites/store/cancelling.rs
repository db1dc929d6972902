//! Futures that are dropped: each call of the asynchronous twins, at each of its await points.

use std::{
    future::{Future, ready},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    time::Duration,
};

use fakeserver::Server;
use redis::{Cmd, Pipeline, RedisFuture, Value, aio::ConnectionLike};
use serde_json::{Map, json};
use store::{
    AsyncRedisStore, Commit, CommitPath, Cursor, Decision, Event, Execution, Index, ListFilter,
    Listing, Pacing, RetryPolicy, Round, Settings, SpawnIntent, Status, StoreError, Sweep, TimerOp,
    Version, aio,
    cluster::aio::Cluster,
    relay::PageStart,
    sharded::{AsyncShardedStore, Partitions},
    transport::{AsyncRedisTransport, Clock, Deliveries, Lease, Priority},
};

use crate::{
    backend::{AsyncConnection, SyncConnection, ask},
    keyspace::{self, Bytes, Held, Keyspace},
};

/// Ready at the second time of asking.
pub(crate) struct Once(pub(crate) bool);

impl Future for Once {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

/// A connection with an await point before a batch goes out, and one before its replies are handed over.
pub(crate) struct Stepping(pub(crate) AsyncConnection);

impl ConnectionLike for Stepping {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            Once(false).await;
            let answer = self.0.req_packed_command(command).await;
            Once(false).await;
            answer
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            Once(false).await;
            let answers = self.0.req_packed_commands(pipeline, offset, count).await;
            Once(false).await;
            answers
        })
    }

    fn get_db(&self) -> i64 {
        0
    }
}

type Store = AsyncRedisStore<aio::Exclusive<Stepping>>;
pub(crate) type Transport = AsyncRedisTransport<aio::Exclusive<Stepping>>;
/// That it can be sent to another thread is checked with every entry of the tables below.
type Work<'s> = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send + 's>>;

/// Asks so many times at most.
pub(crate) fn polled<F: Future>(future: F, times: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    (0..times).find_map(|_| match future.as_mut().poll(&mut context) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    })
}

const ENDLESS: usize = 10_000;

pub(crate) fn finished<F: Future>(future: F) -> F::Output {
    polled(future, ENDLESS).expect("the future ends")
}

pub(crate) fn read(server: &Server) -> Keyspace {
    keyspace::read(&mut SyncConnection(Box::new(server.connection())))
}

fn effects() -> Commit {
    Commit::for_event("e")
        .emit(Some("t"), Event::new("f", "K"))
        .spawn(SpawnIntent::new("c", "R"))
        .timer(TimerOp::schedule("P", 5.0))
        .trace(Map::from_iter([("k".to_owned(), json!(1))]))
}

fn seeded(path: CommitPath) -> (Server, Store) {
    let server = Server::new();
    let settings = Settings::default().commit_path(path).index(Index::Ordered);
    let connection = Stepping(AsyncConnection(Box::new(server.async_connection())));
    let mut store = AsyncRedisStore::with_settings(connection, settings);
    for (id, status) in [("a", Status::Running), ("b", Status::Done)] {
        let mut execution = Execution::new(id, "d");
        execution.status = status;
        execution.finished_at = Some(1.0);
        finished(store.commit(&mut execution, &effects())).unwrap();
    }
    let mut connection = SyncConnection(Box::new(server.connection()));
    // Due before what is looked for elsewhere, but nobody's.
    ask(&mut connection, &["ZADD", "stm:timers", "-inf", "c\0Q"]);
    // What is not known yet takes one more round trip.
    ask(&mut connection, &["SCRIPT", "FLUSH"]);
    (server, store)
}

fn at_version_1(id: &str) -> Execution {
    let mut execution = Execution::new(id, "d");
    execution.version = Version::new(1);
    execution
}

/// What a dropped call may leave.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    /// All or nothing, but for numbers that stay unused.
    AllOrNothing,
    /// A part, which doing it again completes.
    Part,
    Nothing,
}

use Leaves::{AllOrNothing, Nothing, Part};

type Call = for<'s> fn(&'s mut Store) -> Work<'s>;

/// Every call of a store that may write or read, on what [`seeded`] has stored.
const CALLS: [(&str, Leaves, Call); 40] = [
    ("waiting", Nothing, |s| {
        Box::pin(async { s.waiting().await.map(drop) })
    }),
    ("outbox_page", Nothing, |s| {
        Box::pin(async { s.outbox_page(PageStart::Anywhere, 9).await.map(drop) })
    }),
    ("spawns_page", Nothing, |s| {
        Box::pin(async { s.spawns_page(PageStart::Anywhere, 9).await.map(drop) })
    }),
    ("due_timers_page", Nothing, |s| {
        Box::pin(async {
            s.due_timers_page(9.0, PageStart::Anywhere, 9)
                .await
                .map(drop)
        })
    }),
    ("deliver", AllOrNothing, |s| {
        Box::pin(async {
            let page = s.outbox_page(PageStart::Anywhere, 9).await?;
            let entries = page.entries.into_iter().map(|it| (it, Priority::MIN));
            s.deliver(&entries.collect::<Vec<_>>()).await.map(drop)
        })
    }),
    ("fire", AllOrNothing, |s| {
        Box::pin(async {
            let page = s.due_timers_page(9.0, PageStart::Anywhere, 9).await?;
            let timers = page.entries.into_iter().map(|it| (it, Priority::MIN));
            s.fire(&timers.collect::<Vec<_>>()).await.map(drop)
        })
    }),
    ("ack_entry", AllOrNothing, |s| {
        Box::pin(async {
            let page = s.spawns_page(PageStart::Anywhere, 9).await?;
            match page.entries.first() {
                Some(entry) => s.ack_entry(entry).await.map(drop),
                None => Ok(()),
            }
        })
    }),
    ("quarantine", AllOrNothing, |s| {
        Box::pin(async {
            let page = s.due_timers_page(9.0, PageStart::Anywhere, 9).await?;
            for poison in &page.poison {
                s.quarantine(poison).await?;
            }
            Ok(())
        })
    }),
    ("with_retry", AllOrNothing, |s| {
        Box::pin(async {
            let policy = RetryPolicy::default();
            let mut pacing = Pacing::new(|_| ready(()));
            let decide = |execution: &mut Execution, _: &Round| {
                execution.outcome = Some("decided".to_owned());
                Decision::Commit(effects())
            };
            s.with_retry("a", &policy, &mut pacing, decide)
                .await
                .map(drop)
        })
    }),
    ("repair_counters", AllOrNothing, |s| {
        Box::pin(async { s.repair_counters().await.map(drop) })
    }),
    ("save", AllOrNothing, |s| {
        Box::pin(async { s.save(&mut at_version_1("a")).await.map(drop) })
    }),
    ("commit", AllOrNothing, |s| {
        Box::pin(async { s.commit(&mut at_version_1("a"), &effects()).await.map(drop) })
    }),
    ("stale commit", Nothing, |s| {
        Box::pin(async {
            s.commit(&mut Execution::new("a", "d"), &effects())
                .await
                .map(drop)
        })
    }),
    ("create", AllOrNothing, |s| {
        Box::pin(async {
            s.create(&mut Execution::new("n", "d"), &effects())
                .await
                .map(drop)
        })
    }),
    ("resolve", Nothing, |s| {
        Box::pin(async {
            let execution = at_version_1("a");
            let settings = Settings::default();
            let sent = store::op::CommitOperation::new(&settings, &execution, &effects())?;
            s.resolve(&mut at_version_1("a"), &sent.attempt())
                .await
                .map(drop)
        })
    }),
    ("load", Nothing, |s| {
        Box::pin(async { s.load("a").await.map(drop) })
    }),
    ("load_as", Nothing, |s| {
        Box::pin(async { s.load_as::<Execution>("a").await.map(drop) })
    }),
    ("load_for_event", Nothing, |s| {
        Box::pin(async { s.load_for_event("a", "e").await.map(drop) })
    }),
    ("load_for_event_as", Nothing, |s| {
        Box::pin(async { s.load_for_event_as::<Execution>("a", "e").await.map(drop) })
    }),
    ("is_processed", Nothing, |s| {
        Box::pin(async { s.is_processed("a", "e").await.map(drop) })
    }),
    ("status", Nothing, |s| {
        Box::pin(async { s.status("a").await.map(drop) })
    }),
    ("check", Nothing, |s| Box::pin(async { s.check().await })),
    ("pending_outbox", Nothing, |s| {
        Box::pin(async { s.pending_outbox().await.map(drop) })
    }),
    ("pending_spawns", Nothing, |s| {
        Box::pin(async { s.pending_spawns().await.map(drop) })
    }),
    ("ack_outbox", AllOrNothing, |s| {
        Box::pin(async { s.ack_outbox(store::Seq::new(1)).await.map(drop) })
    }),
    ("ack_spawn", AllOrNothing, |s| {
        Box::pin(async { s.ack_spawn(store::Seq::new(1)).await.map(drop) })
    }),
    ("due_timers", Nothing, |s| {
        Box::pin(async { s.due_timers(9.0).await.map(drop) })
    }),
    ("delete_timer", AllOrNothing, |s| {
        Box::pin(async { s.delete_timer("a", "P", 5.0).await.map(drop) })
    }),
    ("append_trace", AllOrNothing, |s| {
        Box::pin(async { s.append_trace("a", &Map::new()).await })
    }),
    ("read_trace", Nothing, |s| {
        Box::pin(async { s.read_trace("a").await.map(drop) })
    }),
    ("fork", AllOrNothing, |s| {
        Box::pin(async { s.fork("a", "n").await.map(drop) })
    }),
    ("fork_as", AllOrNothing, |s| {
        Box::pin(async { s.fork_as::<Execution>("a", "n").await.map(drop) })
    }),
    ("purge", AllOrNothing, |s| {
        Box::pin(async { s.purge("a", Version::new(1)).await.map(drop) })
    }),
    ("sweep_finished", Part, |s| {
        Box::pin(async {
            s.sweep_finished(&Sweep::finished_before(9.0), 10, None)
                .await
                .map(drop)
        })
    }),
    ("ids_with_prefix", Nothing, |s| {
        Box::pin(async { s.ids_with_prefix("").await.map(drop) })
    }),
    ("list_executions", Nothing, |s| {
        let cursor = "0".parse::<Cursor>().ok();
        Box::pin(async move {
            s.list_executions(&ListFilter::default(), 10, cursor)
                .await
                .map(drop)
        })
    }),
    ("list_ordered", Nothing, |s| {
        Box::pin(async {
            s.list_ordered(&ListFilter::default(), 10, None)
                .await
                .map(drop)
        })
    }),
    ("executions", Nothing, |s| {
        Box::pin(async {
            let mut executions = s.executions(Listing::new(ListFilter::default(), 10, None));
            while let Some(execution) = executions.next().await {
                execution?;
            }
            Ok(())
        })
    }),
    ("rebuild_index", Part, |s| {
        Box::pin(async { s.rebuild_index().await.map(drop) })
    }),
    ("record_backlog", Nothing, |s| {
        Box::pin(async { s.record_backlog(9.0).await.map(drop) })
    }),
];

/// Without the counters, since numbers may stay unused, and without the times of the index.
pub(crate) fn settled(mut keyspace: Keyspace) -> Keyspace {
    let is_counter = |Bytes(key): &Bytes| {
        let key = String::from_utf8_lossy(key);
        key.ends_with(":seq") || key.contains(":trace:seq:")
    };
    keyspace.retain(|key, _| !is_counter(key));
    if let Some(Held::Zset(index)) = keyspace.get_mut(&Bytes(b"stm:index".to_vec())) {
        for (_, time) in index.iter_mut() {
            *time = 0.0;
        }
        index.sort_by(|a, b| a.0.cmp(&b.0));
    }
    keyspace
}

#[test]
fn a_call_of_a_store_that_is_dropped_has_happened_wholly_or_not_at_all() {
    for path in [CommitPath::Script, CommitPath::Mixed, CommitPath::Watch] {
        for (name, leaves, call) in CALLS {
            let (server, mut store) = seeded(path);
            let before = settled(read(&server));
            let outcome = finished(call(&mut store));
            let after = settled(read(&server));
            assert_eq!(
                outcome.is_err(),
                name == "stale commit",
                "{name}: {outcome:?}"
            );
            // Counters and the index are in order from the start.
            let writes = leaves != Nothing && !["repair_counters", "rebuild_index"].contains(&name);
            assert_eq!(before != after, writes, "{name}");
            let mut times = 0;
            loop {
                times += 1;
                let about = format!("{name} over {path:?}, dropped after {times} polls");
                let (server, mut store) = seeded(path);
                let ended = polled(call(&mut store), times).is_some();
                let left = settled(read(&server));
                assert!(
                    leaves == Part || left == before || left == after,
                    "{about}: {left:?}"
                );
                assert!(!ended || left == after, "{about}");
                carries_no_watch(&server, &mut store, &about);
                // And it can be called again.
                let again = finished(call(&mut store));
                if leaves == Part {
                    again.unwrap();
                }
                if ended {
                    break;
                }
            }
            assert!(times > 2, "{name} has no await points");
        }
    }
}

/// A watch of the row that the dropped call may have left would fail the next commit that watches: it is not there.
fn carries_no_watch(server: &Server, store: &mut Store, about: &str) {
    let mut rival = SyncConnection(Box::new(server.connection()));
    for key in ["stm:exe:a", "stm:exe:n"] {
        // The value stays as it is; for a watch it has changed all the same.
        ask(&mut rival, &["APPEND", key, ""]);
        if ask(&mut rival, &["STRLEN", key]) == Value::Int(0) {
            ask(&mut rival, &["DEL", key]);
        }
    }
    let settings = Settings::default().commit_path(CommitPath::Watch);
    let mut other = Execution::new("other", "d");
    let commit = store::op::CommitOperation::new(&settings, &other, &Commit::new()).unwrap();
    let committed = finished(store.run(commit)).unwrap_or_else(|error| panic!("{about}: {error}"));
    committed.note(&mut other);
    assert!(
        finished(store.purge("other", other.version)).unwrap(),
        "{about}"
    );
}

pub(crate) fn queued() -> (Server, Transport, Lease) {
    let server = Server::new();
    let connection = Stepping(AsyncConnection(Box::new(server.async_connection())));
    let mut transport = AsyncRedisTransport::new(connection).deliveries(Deliveries::Counted);
    // One that stands still, so that two runs leave the same.
    transport.set_clock(Clock::Fixed(1_700_000_000_000));
    for id in ["e", "f"] {
        finished(transport.publish("g", &Event::new(id, "K"), Priority::MIN)).unwrap();
    }
    finished(transport.publish("h", &Event::new("i", "K"), Priority::MIN)).unwrap();
    let lease = finished(transport.claim("w", LONG, Priority::MIN))
        .unwrap()
        .lease
        .unwrap();
    let mut connection = SyncConnection(Box::new(server.connection()));
    let letter = ["RPUSH", &format!("stm:dead:{}", lease.group_id), "x"];
    ask(&mut connection, &letter);
    ask(&mut connection, &["SCRIPT", "FLUSH"]);
    (server, transport, lease)
}

const LONG: Duration = Duration::from_secs(30);

type Carry = for<'s> fn(&'s mut Transport, &'s Lease) -> Work<'s>;

const CARRIES: [(&str, Carry); 12] = [
    ("publish", |t, _| {
        Box::pin(async {
            let event = Event::new("j", "K");
            t.publish("g", &event, Priority::MAX).await.map(drop)
        })
    }),
    ("claim", |t, _| {
        Box::pin(async { t.claim("v", LONG, Priority::MIN).await.map(drop) })
    }),
    ("ack", |t, lease| {
        Box::pin(async { t.ack(lease).await.map(drop) })
    }),
    ("nack", |t, lease| {
        Box::pin(async { t.nack(lease, Duration::ZERO).await.map(drop) })
    }),
    ("postpone", |t, lease| {
        Box::pin(async { t.postpone(lease, LONG).await.map(drop) })
    }),
    ("park", |t, lease| {
        Box::pin(async { t.nack(lease, LONG).await.map(drop) })
    }),
    ("extend", |t, lease| {
        Box::pin(async { t.extend(lease, LONG).await.map(drop) })
    }),
    ("backlog", |t, _| {
        Box::pin(async { t.backlog().await.map(drop) })
    }),
    ("record_backlog", |t, _| {
        Box::pin(async { t.record_backlog().await.map(drop) })
    }),
    ("queue_length", |t, _| {
        Box::pin(async { t.queue_length("g").await.map(drop) })
    }),
    ("dead_letters", |t, _| {
        Box::pin(async { t.dead_letters("g", 9).await.map(drop) })
    }),
    ("discard_dead_letter", |t, lease| {
        Box::pin(async { t.discard_dead_letter(&lease.group_id, b"x").await.map(drop) })
    }),
];

/// Tokens are drawn at random: what counts is whether there is a lock.
fn locks_alike(mut keyspace: Keyspace) -> Keyspace {
    for (Bytes(key), held) in &mut keyspace {
        if key.starts_with(b"stm:lock:") {
            *held = Held::String(Bytes(Vec::new()));
        }
    }
    keyspace
}

#[test]
fn a_call_of_a_transport_that_is_dropped_has_happened_wholly_or_not_at_all() {
    for (name, call) in CARRIES {
        let (server, mut transport, lease) = queued();
        let before = locks_alike(read(&server));
        finished(call(&mut transport, &lease)).unwrap();
        let after = locks_alike(read(&server));
        let mut times = 0;
        loop {
            times += 1;
            let about = format!("{name}, dropped after {times} polls");
            let (server, mut transport, lease) = queued();
            let ended = polled(call(&mut transport, &lease), times).is_some();
            let left = locks_alike(read(&server));
            assert!(left == before || left == after, "{about}: {left:?}");
            assert!(!ended || left == after, "{about}");
            finished(call(&mut transport, &lease)).unwrap();
            if ended {
                break;
            }
        }
        assert!(times > 2, "{name} has no await points");
    }
}

pub(crate) fn is_send<F: Future + Send>(future: F) -> F {
    future
}

/// Not to be run: that it compiles is the test. Futures over sources of connections of all kinds can be sent.
#[allow(dead_code, reason = "the compiler is the one who runs it")]
async fn futures_over_all_kinds_of_connections_can_be_sent(
    cluster: Cluster,
) -> Result<(), StoreError> {
    let commit = Commit::new();
    let mut execution = Execution::new("a", "d");
    let connecting = AsyncRedisStore::connect("redis://127.0.0.1/", Settings::default());
    let mut reopening = is_send(connecting).await?;
    is_send(reopening.commit(&mut execution, &commit)).await?;
    is_send(reopening.close()).await;
    let mut clustered = AsyncRedisStore::with_connections(cluster.clone(), Settings::default());
    is_send(clustered.commit(&mut execution, &commit)).await?;
    let partitions = Partitions::new(4)?;
    let settings = Settings::default();
    let mut sharded = is_send(AsyncShardedStore::open(cluster, &settings, partitions)).await?;
    is_send(sharded.commit(&mut execution, &commit)).await?;
    is_send(sharded.save(&mut execution)).await?;
    is_send(sharded.load("a")).await?;
    is_send(sharded.load_for_event("a", "e")).await?;
    is_send(sharded.list_executions(&ListFilter::default(), 10, None)).await?;
    Ok(())
}
