//! Turns of a worker whose futures are dropped, at each of their await points.

use std::{
    future::{Future, Ready, ready},
    time::Duration,
};

use fakeserver::Server;
use store::{
    AsyncRedisStore, Commit, Event, Execution, Pacing, SpawnEntry, aio,
    transport::{Deliveries, Priority},
    worker::{AsyncHandler, AsyncWorker, Conduct, Verdict, WorkerOptions, child_of},
};

use crate::{
    backend::{AsyncConnection, SyncConnection, ask},
    cancelling::{Once, Stepping, finished, is_send, polled, queued, read, settled},
    workers::Ledger,
};

/// Takes its time to decide what [`Ledger`] would.
struct Slow;

impl Conduct<Execution> for Slow {
    fn child(&mut self, parent: &Execution, spawn: &SpawnEntry) -> Option<(Execution, Commit)> {
        Some(child_of(parent, spawn))
    }
}

impl AsyncHandler<Execution> for Slow {
    async fn handle(&mut self, execution: &mut Execution, event: &Event) -> Verdict {
        Once(false).await;
        Ledger::decide(execution, event)
    }
}

type Employed = AsyncWorker<aio::Exclusive<Stepping>, Slow, Execution, fn(Duration) -> Ready<()>>;

/// A worker and an event with all kinds of effects; once more, so that there is something behind it.
fn employed() -> (Server, Employed) {
    let (server, mut transport, _) = queued();
    let mut connection = SyncConnection(Box::new(server.connection()));
    ask(&mut connection, &["FLUSHALL"]);
    let connect = || Stepping(AsyncConnection(Box::new(server.async_connection())));
    let mut store = AsyncRedisStore::new(connect());
    for id in ["a", "b"] {
        finished(store.save(&mut Execution::new(id, "d"))).unwrap();
    }
    for (id, kind) in [("1", "All"), ("2", "Later"), ("3", "Note")] {
        let group = if kind == "Later" { "b" } else { "a" };
        finished(transport.publish(group, &Event::new(id, kind), Priority::MIN)).unwrap();
    }
    let options = WorkerOptions::new("w").deliveries(Deliveries::Counted);
    let worker = AsyncWorker::new(AsyncRedisStore::new(connect()), options, Slow);
    let pauseless: fn(Duration) -> Ready<()> = |_| ready(());
    (server, worker.pacing(Pacing::new(pauseless)))
}

#[test]
fn turns_of_a_worker_that_are_dropped_lose_nothing_and_do_nothing_twice() {
    async fn work<P, S, T>(worker: &mut AsyncWorker<P, Slow, Execution, S>) -> usize
    where
        P: aio::Connections,
        S: FnMut(Duration) -> T + Send,
        T: Future<Output = ()> + Send,
    {
        for turns in 0..100 {
            if worker.turn().await.unwrap().is_idle() {
                return turns;
            }
        }
        panic!("there is always something to do")
    }
    // The event that is to come later never ends, and holds what comes behind it in its group.
    let end = |server: &Server| {
        let mut connection = SyncConnection(Box::new(server.connection()));
        for group in ["a", "b", "a*1"] {
            ask(&mut connection, &["DEL", &format!("stm:lock:{group}")]);
            let name = format!("stm:tries:{group}");
            ask(&mut connection, &["DEL", &name]);
            ask(&mut connection, &["ZADD", "stm:ready:0", "XX", "0", group]);
        }
    };
    let (server, mut worker) = employed();
    assert!(finished(work(&mut worker)) > 4);
    end(&server);
    let wanted = settled(read(&server));
    let mut times = 0;
    loop {
        times += 1;
        let (server, mut worker) = employed();
        let ended = polled(is_send(work(&mut worker)), times).is_some();
        end(&server);
        finished(work(&mut worker));
        end(&server);
        let left = settled(read(&server));
        assert!(left == wanted, "dropped after {times} polls: {left:?}");
        if ended {
            break;
        }
    }
    assert!(times > 60, "only {times} await points");
}
