//! The order in real time of operations of different clients: a read that is served from a client's own cache after another
//! client's write has returned. No reply shows it, so that a reduction that looks at replies alone may leave it out.

use std::future::Future;
use std::pin::Pin;

use fakeserver::explore::{
    Budget, Client, Exhaustive, Explorer, Operation, Pct, Pos, RandomWalk, Reduction, Run,
    Strategy, Violation, Workload,
};
use redis::cmd;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Read,
    Cached,
    Increment,
}

/// What the reader does last before it serves from its cache.
#[derive(Clone, Copy, Debug)]
enum Last {
    /// Writes a key that nobody else uses.
    Set,
    /// Sends what nobody else can see.
    Unwatch,
}

/// A reader with a cache, and a client that increments what the reader has read.
#[derive(Clone, Copy, Debug)]
struct Cache {
    reader: usize,
    last: Last,
}

async fn read(client: &Client<Call, i64>, last: Last) {
    let mut connection = client.connect().await.unwrap();
    let first = async {
        if let Last::Unwatch = last {
            let watch = cmd("WATCH").arg("x").take();
            watch.exec_async(&mut connection).await.unwrap();
        }
        let get = cmd("GET").arg("x").take();
        let value: Option<i64> = get.query_async(&mut connection).await.unwrap();
        let end = match last {
            Last::Set => cmd("SET").arg("z").arg(1).take(),
            Last::Unwatch => cmd("UNWATCH"),
        };
        end.exec_async(&mut connection).await.unwrap();
        value.unwrap_or(0)
    };
    let value = client.operation(Call::Read, first).await;
    client.operation(Call::Cached, async { value }).await;
}

impl Workload for Cache {
    type Input = Call;
    type Output = i64;

    fn description(&self) -> String {
        format!("{self:?}")
    }

    fn clients(&self) -> usize {
        2
    }

    fn client(&self, client: Client<Call, i64>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let Cache { reader, last } = *self;
        Box::pin(async move {
            if client.index() == reader {
                read(&client, last).await;
                return;
            }
            let mut connection = client.connect().await.unwrap();
            let incr = cmd("INCR").arg("x").take();
            let call = async { incr.query_async(&mut connection).await.unwrap() };
            client.operation(Call::Increment, call).await;
        })
    }

    fn check(&self, run: &Run<Call, i64>) -> Result<(), Violation> {
        let of = |call| run.history.iter().find(move |one| one.input == call);
        let (Some(cached), Some(increment)) = (of(Call::Cached), of(Call::Increment)) else {
            return Ok(());
        };
        if is_before(increment, cached) && cached.output == Some(0) {
            return Err(Violation::new("linearizable", "a read misses a write"));
        }
        Ok(())
    }
}

fn is_before<I, O>(one: &Operation<I, O>, other: &Operation<I, O>) -> bool {
    one.returned
        .is_some_and(|returned| returned < other.invoked)
}

fn finds(cache: Cache, strategy: Box<dyn Strategy>) -> bool {
    let exploration = Explorer::new()
        .explore(&cache, strategy, Budget::schedules(100))
        .unwrap();
    exploration.counterexample.is_some()
}

fn caches() -> impl Iterator<Item = Cache> {
    [Last::Set, Last::Unwatch]
        .into_iter()
        .flat_map(|last| [0, 1].map(|reader| Cache { reader, last }))
}

#[test]
fn a_stale_read_is_found_by_whatever_keeps_real_time() {
    for cache in caches() {
        let mut strategies: Vec<Box<dyn Strategy>> = vec![
            Box::new(RandomWalk::new(1)),
            Box::new(Pct::depths(1..=3)),
            Box::new(Pos::new(1)),
        ];
        for reduction in [
            Reduction::None,
            Reduction::LocalFirst,
            Reduction::SleepSets,
            Reduction::SourceDpor,
        ] {
            strategies.push(Box::new(Exhaustive::new(reduction)));
        }
        for (at, mut strategy) in strategies.into_iter().enumerate() {
            strategy.keep_real_time();
            assert!(finds(cache, strategy), "strategy {at}, {cache:?}");
        }
    }
}

/// Which caches' stale reads are missed.
fn missed_with(reduction: Reduction) -> Vec<(usize, bool)> {
    let missed = caches().filter(|cache| !finds(*cache, Box::new(Exhaustive::new(reduction))));
    missed
        .map(|cache| (cache.reader, matches!(cache.last, Last::Unwatch)))
        .collect()
}

#[test]
fn reductions_that_keep_replies_alone_miss_a_stale_read() {
    assert_eq!(missed_with(Reduction::None), []);
    // A command that nobody sees may be the end of an operation.
    assert_eq!(missed_with(Reduction::LocalFirst), [(0, true), (1, true)]);
    for reduction in [Reduction::SleepSets, Reduction::SourceDpor] {
        let all = [(0, false), (1, false), (0, true), (1, true)];
        assert_eq!(missed_with(reduction), all, "{reduction:?}");
    }
}
