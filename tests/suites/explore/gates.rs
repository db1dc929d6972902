//! Ways to the gate: direct, blocking on threads, and redis-rs' own connection over a stream. A schedule is the same on each.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fakeserver::explore::{
    BlockingClient, Budget, Client, Coverage, Exhaustive, ExploreError, Explorer, Faults,
    RandomWalk, Reduction, Replayed, Run, Schedule, Violation, Workload, WorkloadHash,
};
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, ProtocolVersion, RedisConnectionInfo, RedisResult, Value, cmd, pipe,
};

/// How a client reaches the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    Direct,
    Blocking,
    Multiplexed,
    Resp3,
    /// The first client blocking, the others direct.
    Mixed,
}

/// Clients that add one to a counter by WATCH, GET, MULTI, SET, EXEC, and try again after a conflict or a lost connection.
pub(crate) struct Adders {
    way: Way,
    clients: usize,
    /// Schedules and what came of them.
    seen: Mutex<BTreeSet<(String, String)>>,
}

pub(crate) const ATTEMPTS_MAX: usize = 5;

impl Adders {
    pub(crate) fn new(way: Way, clients: usize) -> Adders {
        Adders {
            way,
            clients,
            seen: Mutex::default(),
        }
    }

    fn all(way: Way, reduction: Reduction, faults: Faults) -> BTreeSet<(String, String)> {
        let adders = Adders::new(way, 2);
        let strategy = Box::new(Exhaustive::new(reduction));
        let found = Explorer::new()
            .faults(faults)
            .explore(&adders, strategy, Budget::schedules(100_000))
            .unwrap();
        assert_eq!(found.coverage, Coverage::Exhaustive);
        assert!(found.counterexample.is_none(), "{found:?}");
        let seen = adders.seen.into_inner().unwrap();
        assert_eq!(seen.len() as u64, found.schedules);
        seen
    }
}

async fn add(connection: &mut impl redis::aio::ConnectionLike) -> RedisResult<bool> {
    cmd("WATCH").arg("n").exec_async(connection).await?;
    let count: Option<i64> = cmd("GET").arg("n").query_async(connection).await?;
    let mut set = pipe();
    set.atomic().cmd("SET").arg("n").arg(count.unwrap_or(0) + 1);
    let done: Option<(String,)> = set.query_async(connection).await?;
    Ok(done.is_some())
}

pub(crate) fn add_blocking(connection: &mut impl redis::ConnectionLike) -> RedisResult<bool> {
    cmd("WATCH").arg("n").exec(connection)?;
    let count: Option<i64> = cmd("GET").arg("n").query(connection)?;
    let mut set = pipe();
    set.atomic().cmd("SET").arg("n").arg(count.unwrap_or(0) + 1);
    let done: Option<(String,)> = set.query(connection)?;
    Ok(done.is_some())
}

/// What a client says of an attempt; the connection is lost where an error is not the server's.
pub(crate) fn said(added: &RedisResult<bool>) -> String {
    match added {
        Ok(added) => added.to_string(),
        Err(error) if error.is_io_error() || error.is_connection_dropped() => "lost".to_owned(),
        Err(error) => error.to_string(),
    }
}

async fn multiplexed_in_resp3(client: &Client<(), String>) -> RedisResult<MultiplexedConnection> {
    let info = RedisConnectionInfo::default().set_protocol(ProtocolVersion::RESP3);
    let config = AsyncConnectionConfig::new();
    let stream = client.stream()?;
    let (connection, driver) =
        MultiplexedConnection::new_with_config(&info, stream, config).await?;
    tokio::spawn(driver);
    Ok(connection)
}

async fn attempts<C, F>(client: &Client<(), String>, connect: impl Fn() -> F)
where
    C: redis::aio::ConnectionLike,
    F: Future<Output = RedisResult<C>>,
{
    let mut connection = connect().await.unwrap();
    for _ in 0..ATTEMPTS_MAX {
        let attempt = async { said(&add(&mut connection).await) };
        match client.operation((), attempt).await.as_str() {
            "true" => return,
            "lost" => connection = connect().await.unwrap(),
            _ => {}
        }
    }
}

fn attempts_blocking(client: &BlockingClient<(), String>) {
    let mut connection = client.connect().unwrap();
    for _ in 0..ATTEMPTS_MAX {
        let added = client.operation((), || said(&add_blocking(&mut connection)));
        match added.as_str() {
            "true" => return,
            "lost" => {
                assert!(!redis::ConnectionLike::is_open(&connection));
                connection = client.connector().open().unwrap();
            }
            _ => assert!(redis::ConnectionLike::is_open(&connection)),
        }
    }
}

impl Workload for Adders {
    type Input = ();
    type Output = String;

    fn description(&self) -> String {
        "adders".to_owned()
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn client(&self, client: Client<(), String>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let way = match self.way {
            Way::Mixed if client.index() == 0 => Way::Blocking,
            Way::Mixed => Way::Direct,
            way => way,
        };
        Box::pin(async move {
            match way {
                Way::Direct | Way::Mixed => attempts(&client, || client.connect()).await,
                Way::Multiplexed => attempts(&client, || client.multiplexed()).await,
                Way::Resp3 => attempts(&client, || multiplexed_in_resp3(&client)).await,
                Way::Blocking => {
                    client.on_thread(|client| attempts_blocking(&client)).await;
                }
            }
        })
    }

    fn check(&self, run: &Run<(), String>) -> Result<(), Violation> {
        let choices = Schedule::new(WorkloadHash::of("adders"), run.choices.clone());
        let said: Vec<_> = run
            .history
            .iter()
            .map(|one| (one.client, one.output.clone()))
            .collect();
        let outcome = format!("{:?} {said:?}", run.call(["GET", "n"]).unwrap());
        self.seen
            .lock()
            .unwrap()
            .insert((choices.to_string(), outcome));
        Ok(())
    }
}

#[test]
fn every_way_to_the_gate_has_the_same_252_schedules_with_the_same_outcomes() {
    let direct = Adders::all(Way::Direct, Reduction::None, Faults::none());
    assert_eq!(direct.len(), 252);
    for way in [Way::Blocking, Way::Mixed, Way::Multiplexed, Way::Resp3] {
        let other = Adders::all(way, Reduction::None, Faults::none());
        assert_eq!(other, direct, "{way:?}");
    }
}

#[test]
fn every_way_loses_connections_alike() {
    let faults = Faults::at_most(1).drop_before().lose_reply();
    let direct = Adders::all(Way::Direct, Reduction::LocalFirst, faults);
    let lost = |(schedule, _): &&(String, String)| schedule.contains(['!', '~']);
    assert!(direct.iter().filter(lost).count() > 100, "{}", direct.len());
    for way in [Way::Blocking, Way::Multiplexed] {
        let other = Adders::all(way, Reduction::LocalFirst, faults);
        let missing: Vec<_> = direct.difference(&other).take(3).collect();
        assert!(missing.is_empty(), "{way:?} {missing:?}");
        assert_eq!(other.len(), direct.len(), "{way:?}");
    }
}

/// So many schedules of this many clients, with up to two lost connections each.
pub(crate) fn random_schedules(clients: usize, count: u64) -> Vec<String> {
    let adders = Adders::new(Way::Direct, clients);
    let walk = Box::new(RandomWalk::new(1));
    Explorer::new()
        .faults(Faults::at_most(2).drop_before().lose_reply())
        .explore(&adders, walk, Budget::schedules(count))
        .unwrap();
    let seen = adders.seen.into_inner().unwrap();
    seen.into_iter().map(|(schedule, _)| schedule).collect()
}

#[test]
fn a_replay_has_the_same_trace_on_every_way_also_after_a_reconnect() {
    for text in random_schedules(3, 40) {
        let schedule: Schedule = text.parse().unwrap();
        let trace = |way| match Explorer::new().replay(&Adders::new(way, 3), &schedule) {
            Ok(Replayed::Holds(trace)) => trace.to_string(),
            other => panic!("{text} {way:?}: {other:?}"),
        };
        let direct = trace(Way::Direct);
        for way in [Way::Direct, Way::Blocking, Way::Multiplexed, Way::Resp3] {
            assert_eq!(trace(way), direct, "{text} {way:?}");
        }
    }
}

/// One client each of several kinds; `live` counts those whose code has not been left.
struct Habits {
    clients: Vec<fn(&BlockingClient<(), ()>)>,
    live: &'static AtomicUsize,
    patience: Duration,
}

struct Leaves(&'static AtomicUsize);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Workload for Habits {
    type Input = ();
    type Output = ();

    fn description(&self) -> String {
        "habits".to_owned()
    }

    fn clients(&self) -> usize {
        self.clients.len()
    }

    fn client(&self, client: Client<(), ()>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (run, live) = (self.clients[client.index()], self.live);
        let on_thread = client.on_thread(move |client| {
            live.fetch_add(1, Ordering::SeqCst);
            let _leaves = Leaves(live);
            run(&client);
        });
        Box::pin(on_thread.patience(self.patience))
    }

    fn check(&self, _: &Run<(), ()>) -> Result<(), Violation> {
        Ok(())
    }
}

fn explore(
    clients: Vec<fn(&BlockingClient<(), ()>)>,
    live: &'static AtomicUsize,
) -> Result<(u64, Option<Violation>), ExploreError> {
    explore_within(clients, live, Duration::from_secs(30))
}

fn explore_within(
    clients: Vec<fn(&BlockingClient<(), ()>)>,
    live: &'static AtomicUsize,
    patience: Duration,
) -> Result<(u64, Option<Violation>), ExploreError> {
    let strategy = Box::new(Exhaustive::new(Reduction::SleepSets));
    let habits = Habits {
        clients,
        live,
        patience,
    };
    let found =
        Explorer::new()
            .steps_at_most(50)
            .explore(&habits, strategy, Budget::schedules(1_000))?;
    let violation = found.counterexample.map(|found| found.violation);
    Ok((found.schedules, violation))
}

fn incr(client: &BlockingClient<(), ()>) {
    let mut connection = client.connect().unwrap();
    cmd("INCR").arg("n").exec(&mut connection).unwrap();
}

#[test]
fn scripts_and_transactions_for_blocking_connections_run_unmodified() {
    static LIVE: AtomicUsize = AtomicUsize::new(0);
    let by_script = |client: &BlockingClient<(), ()>| {
        let mut connection = client.connect().unwrap();
        let script = redis::Script::new("return redis.call('INCR', KEYS[1])");
        let count: i64 = script.key("n").invoke(&mut connection).unwrap();
        assert!((1..=2).contains(&count));
        assert!(redis::ConnectionLike::check_connection(&mut connection));
    };
    let by_transaction = |client: &BlockingClient<(), ()>| {
        let mut connection = client.connect().unwrap();
        let count = redis::transaction(&mut connection, &["n"], |connection, pipe| {
            let count: Option<i64> = cmd("GET").arg("n").query(connection)?;
            let next = count.unwrap_or(0) + 1;
            let done: Option<()> = pipe
                .cmd("SET")
                .arg("n")
                .arg(next)
                .ignore()
                .query(connection)?;
            Ok(done.map(|()| next))
        });
        assert!((1..=2).contains(&count.unwrap()));
    };
    let (schedules, violation) = explore(vec![by_script, by_transaction], &LIVE).unwrap();
    assert_eq!(violation, None);
    assert!(schedules > 2, "{schedules}");
    assert_eq!(LIVE.load(Ordering::SeqCst), 0);
}

#[test]
fn blocking_code_sleeps_in_virtual_time() {
    static LIVE: AtomicUsize = AtomicUsize::new(0);
    let sleeps = |client: &BlockingClient<(), ()>| {
        client.sleep(Duration::from_secs(3600));
        incr(client);
        client.sleep(Duration::from_secs(3600));
        incr(client);
    };
    let began = std::time::Instant::now();
    let (schedules, violation) = explore(vec![sleeps, sleeps], &LIVE).unwrap();
    // Two orders in each of the two hours.
    assert_eq!((schedules, violation), (4, None));
    assert!(began.elapsed() < Duration::from_secs(3600));
}

#[test]
fn a_blocking_client_that_panics_or_waits_for_ever_is_a_violation_and_leaves_no_thread() {
    static LIVE: AtomicUsize = AtomicUsize::new(0);
    let panics = |client: &BlockingClient<(), ()>| {
        incr(client);
        assert!(client.index() > 9, "no such client");
    };
    let waits = |client: &BlockingClient<(), ()>| {
        let mut connection = client.connect().unwrap();
        let _: RedisResult<Value> = cmd("BLPOP").arg("list").arg(0).query(&mut connection);
    };
    let endless = |client: &BlockingClient<(), ()>| {
        let mut connection = client.connect().unwrap();
        loop {
            let _: RedisResult<()> = cmd("GET").arg("n").query(&mut connection);
        }
    };
    for (client, property) in [
        (panics as fn(&BlockingClient<(), ()>), "panic"),
        (waits, "deadlock"),
        (endless, "step limit"),
    ] {
        let (_, violation) = explore(vec![client, incr], &LIVE).unwrap();
        assert_eq!(violation.unwrap().property, property);
        assert_eq!(LIVE.load(Ordering::SeqCst), 0, "{property}");
    }
}

#[test]
fn code_that_talks_to_the_server_while_it_is_given_up_gets_errors() {
    static LIVE: AtomicUsize = AtomicUsize::new(0);
    struct Release(fakeserver::explore::BlockingConnection);
    impl Drop for Release {
        fn drop(&mut self) {
            let released: RedisResult<i64> = cmd("DEL").arg("lock").query(&mut self.0);
            assert!(released.is_ok() || std::thread::panicking());
        }
    }
    let holds = |client: &BlockingClient<(), ()>| {
        let mut release = Release(client.connect().unwrap());
        let _: Value = cmd("BLPOP")
            .arg("list")
            .arg(0)
            .query(&mut release.0)
            .unwrap();
    };
    let (_, violation) = explore(vec![holds, holds], &LIVE).unwrap();
    assert_eq!(violation.unwrap().property, "deadlock");
    assert_eq!(LIVE.load(Ordering::SeqCst), 0);
}

#[test]
fn a_client_that_waits_for_another_outside_of_the_server_is_refused_by_name() {
    static LIVE: AtomicUsize = AtomicUsize::new(0);
    static LOCK: Mutex<()> = Mutex::new(());
    let locks = |client: &BlockingClient<(), ()>| {
        incr(client);
        let _held = LOCK.lock();
        incr(client);
    };
    let patience = Duration::from_millis(200);
    let error = explore_within(vec![locks, locks], &LIVE, patience)
        .unwrap_err()
        .to_string();
    assert!(error.contains("client b has not come back"), "{error}");
    assert!(error.contains("since its command 1, INCR n"), "{error}");
    // Whoever held the lock was given up, and then the other one is.
    while LIVE.load(Ordering::SeqCst) > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn a_connection_on_another_thread_than_its_clients_is_refused() {
    static LIVE: AtomicUsize = AtomicUsize::new(0);
    let spawns = |client: &BlockingClient<(), ()>| {
        let mut connection = client.connect().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let asked: RedisResult<()> = cmd("INCR").arg("n").exec(&mut connection);
                assert!(asked.is_err());
            });
        });
    };
    let error = explore(vec![spawns, incr], &LIVE).unwrap_err().to_string();
    assert!(
        error.contains("client a uses its connection on another thread"),
        "{error}"
    );
}

#[test]
fn commands_of_one_multiplexed_connection_keep_their_order() {
    struct Shared;
    impl Workload for Shared {
        type Input = ();
        type Output = ();
        fn description(&self) -> String {
            "shared".to_owned()
        }
        fn clients(&self) -> usize {
            1
        }
        fn client(&self, client: Client<(), ()>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(async move {
                let connection = client.multiplexed().await.unwrap();
                let tasks = (0..3).map(|_| {
                    let mut connection = connection.clone();
                    tokio::spawn(async move {
                        let count: i64 = cmd("INCR").arg("n").query_async(&mut connection).await?;
                        let error = cmd("LPUSH")
                            .arg("n")
                            .arg(1)
                            .exec_async(&mut connection)
                            .await;
                        assert_eq!(error.unwrap_err().code(), Some("WRONGTYPE"));
                        RedisResult::Ok(count)
                    })
                });
                let mut counts = Vec::new();
                for task in tasks.collect::<Vec<_>>() {
                    counts.push(task.await.unwrap().unwrap());
                }
                assert_eq!(counts, [1, 2, 3]);
            })
        }
        fn check(&self, run: &Run<(), ()>) -> Result<(), Violation> {
            assert_eq!(run.choices.len(), 6);
            Ok(())
        }
    }
    let found = Explorer::new()
        .explore(&Shared, Box::new(RandomWalk::new(1)), Budget::schedules(5))
        .unwrap();
    assert!(found.counterexample.is_none(), "{found:?}");
}
