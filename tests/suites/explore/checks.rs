//! Every check finds what it is for, and is silent where nothing is wrong.

use std::sync::Arc;
use std::time::Duration;

use fakeserver::explore::{
    Connection, Coverage, Exhaustive, Explorer, Keeps, Phase, RandomWalk, Recipe, Reduction,
    Report, Scenario, Spec, Strategy,
};
use redis::{AsyncCommands, RedisResult, Value, cmd};

/// Clients that send these commands, separated by semicolons; `|` stands between clients.
fn programs(text: &str) -> Scenario<(), ()> {
    let clients: Arc<[Vec<String>]> = text
        .split('|')
        .map(|client| {
            client
                .split(';')
                .map(|line| line.trim().to_owned())
                .collect()
        })
        .collect();
    let count = clients.len();
    Explorer::new().clients(count, move |cx| {
        let lines = clients[cx.index()].clone();
        async move {
            let mut con = cx.connect().await?;
            for line in lines {
                let mut words = line.split(' ');
                let mut command = cmd(words.next().unwrap_or_default());
                words.for_each(|word| _ = command.arg(word));
                match command.exec_async(&mut con).await {
                    Err(error) if error.is_io_error() => return Err(error),
                    _ => {}
                }
            }
            RedisResult::Ok(())
        }
    })
}

fn property(report: &Report) -> Option<&str> {
    let found = report.counterexample.as_ref()?;
    Some(&found.violation.property)
}

fn details(report: &Report) -> &str {
    let found = report.counterexample.as_ref().unwrap();
    &found.violation.details
}

#[test]
fn lost_updates_are_found_and_nothing_else_is_taken_for_one() {
    let wrong = [
        // The whole key.
        "GET n;SET n 1|GET n;SET n 1",
        "GET n;SET n 1|INCR n",
        "GET n;DEL n|SET n 1",
        "GET n;SET n 1 XX EX 5;GET n;SETEX n 5 1|GET n;SET n 2",
        "LRANGE l 0 -1;DEL l|RPUSH l x",
        // Elements.
        "HGET h f;HSET h f 1|HSET h f 2",
        "HGET h f;HSET h f 1|HINCRBY h f 2",
        "HGETALL h;HSET h f 1|HSET h f 2",
        "HGET h f;HSET h f 1|DEL h;HSET h f 0",
        "ZSCORE z m;ZREM z m|ZADD z 200 m",
        "ZSCORE z m;ZADD z 1 m|ZADD z 200 m",
        // In transactions, watched too late or not at all.
        "GET n;MULTI;SET n 1;EXEC|SET n 2",
        "GET n;WATCH n;MULTI;SET n 1;EXEC|SET n 2",
        "GET n;SET n 1|MULTI;SET n 2;EXEC",
        // By a script: it wrote, and is overwritten.
        "GET n;SET n 1|EVAL redis.call('SET',KEYS[1],'2') 1 n",
    ];
    let right = [
        // Nothing that was read is overwritten.
        "SET n 1|SET n 2",
        "GET n;INCR n|GET n;INCR n",
        "GET n;SET m 1|SET n 2",
        "GET n;EXPIRE n 5|SET n 2",
        "GET n;SETNX n 1|SET n 2",
        "GET n;SET n 1 NX|SET n 2",
        "GET n;SET n 1|GET n",
        "GET n;SET n 1|SETNX m 2",
        "GET n;SET n 1|EXPIRE n 5",
        // Other elements.
        "HGET h f;HSET h f 1|HSET h g 2",
        "HGETALL h;HSET h f 1|HSET h g 2",
        "ZSCORE z m;ZREM z m|ZADD z 200 o",
        "SISMEMBER s m;SREM s m|SADD s o",
        // Watched in time.
        "WATCH n;GET n;MULTI;SET n 1;EXEC|SET n 2",
        "WATCH n;GET n;MULTI;SET n 1;EXEC|WATCH n;GET n;MULTI;SET n 2;EXEC",
        "WATCH h;HGET h f;MULTI;HSET h f 1;EXEC|HSET h f 2",
        // Discarded.
        "GET n;MULTI;SET n 1;DISCARD|SET n 2",
        // Looked at again.
        "EVAL redis.call('GET',KEYS[1]);redis.call('SET',KEYS[1],'2') 1 n|SET n 1",
        "GET n;EVAL redis.call('SET',KEYS[1],'2') 1 n|SET n 1",
        // What it relies on it has written itself.
        "GET n;SET n 1;RPUSH l x;SET n 2|BLPOP l 0;SET n 3",
    ];
    for text in &wrong {
        let report = programs(text).deny_lost_updates().explore().unwrap();
        assert_eq!(
            property(&report),
            Some("no lost updates"),
            "{text}: {report}"
        );
    }
    for text in &right {
        let report = programs(text).deny_lost_updates().explore().unwrap();
        assert_eq!(property(&report), None, "{text}: {report}");
        assert_eq!(report.coverage(), Coverage::Exhaustive, "{text}: {report}");
    }
}

#[test]
fn a_lost_update_names_the_three_commands() {
    let report = programs("ZSCORE timers m;ZREM timers m|ZADD timers 200 m")
        .setup(|cx| async move {
            cx.connect()
                .await?
                .zadd::<_, _, _, ()>("timers", "m", 100)
                .await
        })
        .deny_lost_updates()
        .explore()
        .unwrap();
    assert_eq!(
        details(&report),
        "timers, element m: a read it (step 0, ZSCORE timers m), b wrote it (step 1, ZADD timers 200 m), \
         a overwrote that unseen (step 2, ZREM timers m)"
    );
}

/// What a counter is asked.
#[derive(Clone, Copy, Debug)]
enum Call {
    Add,
    Read,
}

/// Both calls answer the value afterwards.
struct Counter;

impl Spec for Counter {
    type State = i64;
    type Input = Call;
    type Output = i64;

    fn init(&self) -> i64 {
        0
    }

    fn step(&self, n: &i64, call: &Call, answer: Option<&i64>) -> impl IntoIterator<Item = i64> {
        let next = match call {
            Call::Add => n + 1,
            Call::Read => *n,
        };
        answer.is_none_or(|answer| *answer == next).then_some(next)
    }
}

async fn add_by_get_and_set(con: &mut Connection) -> RedisResult<i64> {
    let n: Option<i64> = con.get("n").await?;
    let n = n.unwrap_or(0) + 1;
    con.set::<_, _, ()>("n", n).await?;
    Ok(n)
}

#[test]
fn a_specification_is_held_against_what_clients_mark() {
    let wrong = Explorer::new()
        .serializable_as(Counter)
        .clients(2, |cx| async move {
            let mut con = cx.connect().await?;
            cx.attempt(Call::Add, add_by_get_and_set(&mut con)).await
        });
    let report = wrong.explore().unwrap();
    assert_eq!(property(&report), Some("serializable"));
    assert!(details(&report).contains("client b: Add -> 1"), "{report}");
    let right = Explorer::new()
        .serializable_as(Counter)
        .clients(3, |cx| async move {
            let mut con = cx.connect().await?;
            cx.attempt(Call::Add, con.incr("n", 1)).await
        });
    let report = right.explore().unwrap();
    assert_eq!(property(&report), None, "{report}");
    assert_eq!(
        (report.schedules(), report.coverage()),
        (6, Coverage::Exhaustive)
    );
}

/// A client that keeps what it has read, and one that adds. The first may come first or second.
fn cache(first: bool, phase: impl Into<Phase>) -> Report {
    let scenario = Explorer::new().linearizable_as(Counter).strategy(phase);
    let reader = |scenario: Scenario<Call, i64>| {
        scenario.client(|cx| async move {
            let mut con = cx.connect().await?;
            let read = async { Ok(con.get::<_, Option<i64>>("n").await?.unwrap_or(0)) };
            let n: RedisResult<i64> = cx.attempt(Call::Read, read).await;
            let n = n?;
            con.set::<_, _, ()>("elsewhere", 1).await?;
            cx.operation(Call::Read, async { n }).await;
            RedisResult::Ok(())
        })
    };
    let writer = |scenario: Scenario<Call, i64>| {
        scenario.client(|cx| async move {
            let mut con = cx.connect().await?;
            cx.attempt(Call::Add, con.incr("n", 1)).await
        })
    };
    let scenario = if first {
        writer(reader(scenario))
    } else {
        reader(writer(scenario))
    };
    scenario.explore().unwrap()
}

/// A strategy that is not told to keep the order in real time.
struct Careless(Exhaustive);

impl Recipe for Careless {
    fn name(&self) -> String {
        "careless".to_owned()
    }

    fn samples(&self) -> bool {
        false
    }

    fn strategy(&self, seed: u64, _: Keeps) -> Box<dyn Strategy> {
        self.0.strategy(seed, Keeps::Outcomes)
    }
}

#[test]
fn a_stale_cache_is_found_by_every_strategy() {
    for first in [true, false] {
        for phase in [
            Phase::from(Exhaustive::new(Reduction::None)),
            Phase::from(Exhaustive::new(Reduction::LocalFirst)),
            Phase::from(Exhaustive::new(Reduction::SleepSets)),
            Phase::from(Exhaustive::new(Reduction::None).preemptions_at_most(1)),
            Phase::from(RandomWalk::new(3)),
        ] {
            let name = format!("{phase:?}, {first}");
            let report = cache(first, phase);
            assert_eq!(property(&report), Some("linearizable"), "{name}: {report}");
        }
    }
    // With a reduction that loses real time it depends on luck.
    let lucky = [true, false].map(|first| {
        let careless = Careless(Exhaustive::new(Reduction::SleepSets));
        property(&cache(first, careless)).is_some()
    });
    assert!(lucky.contains(&false), "{lucky:?}");
}

#[test]
fn an_invariant_sees_every_state_though_the_writes_commute() {
    let in_order = |text: &str| {
        let scenario =
            programs(text).invariant("first x, then y", |db| db.exists("x") || !db.exists("y"));
        scenario.explore().unwrap()
    };
    for wrong in ["SET x 1|SET y 1", "SET y 1|SET x 1", "SET y 1;SET x 1"] {
        let report = in_order(wrong);
        assert_eq!(property(&report), Some("first x, then y"), "{wrong}");
        // The run ends with the step that breaks it.
        let found = report.counterexample.as_ref().unwrap();
        assert_eq!(found.trace.steps.len(), 1, "{wrong}: {report}");
    }
    for right in ["SET x 1;SET y 1|GET z", "MULTI;SET y 1;SET x 1;EXEC|GET y"] {
        let report = in_order(right);
        assert_eq!(property(&report), None, "{right}: {report}");
        assert_eq!(report.coverage(), Coverage::Exhaustive);
    }
}

#[test]
fn only_invariants_between_steps_make_the_order_of_all_writes_matter() {
    let three = || programs("SET x 1|SET y 1|SET z 1");
    let at_end = three()
        .at_end("all there", |db| db.keys("*").len() == 3)
        .explore()
        .unwrap();
    assert_eq!(
        (at_end.schedules(), at_end.coverage()),
        (1, Coverage::Exhaustive)
    );
    let between = three()
        .invariant("few", |db| db.keys("*").len() <= 3)
        .explore()
        .unwrap();
    assert_eq!(
        (between.schedules(), between.coverage()),
        (6, Coverage::Exhaustive)
    );
}

#[test]
fn a_look_at_the_keys_shows_nowhere() {
    let scenario =
        || {
            Explorer::new().history::<(), String>().clients(2, |cx| async move {
            let mut con = cx.connect().await?;
            let index = cx.index();
            let ask = async {
                con.set_ex::<_, _, ()>("volatile", 1, 1).await?;
                con.get::<_, Value>("volatile").await?;
                tokio::time::sleep(Duration::from_millis(10 + index as u64)).await;
                let id: u64 = cmd("CLIENT").arg("ID").query_async(&mut con).await?;
                let stats: String = cmd("INFO").query_async(&mut con).await?;
                let random: Value = cmd("SRANDMEMBER").arg("set").query_async(&mut con).await?;
                let left: i64 = con.pttl("volatile").await?;
                RedisResult::Ok(format!("{id} {random:?} {left} {stats}"))
            };
            cx.attempt((), ask).await
        })
        .setup(|cx| async move { cx.connect().await?.sadd::<_, _, ()>("set", (1, 2, 3)).await })
        .strategy(Exhaustive::new(Reduction::None).schedules(50))
        };
    let seen = |observed: bool| {
        let seen: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
        let keep = Arc::clone(&seen);
        let mut scenario = scenario().verify("kept", move |run| {
            let outputs = run.history.iter().filter_map(|one| one.output.clone());
            keep.lock().unwrap().extend(outputs);
        });
        if observed {
            scenario = scenario.invariant("looks", |db| {
                db.get::<i64>("volatile").is_none_or(|n| n == 1)
                    && db.get::<i64>("missing").is_none()
                    && db.call(["SRANDMEMBER", "set"]) != Value::Nil
            });
        }
        let report = scenario.explore().unwrap();
        assert_eq!(property(&report), None, "{report}");
        let seen = seen.lock().unwrap();
        seen.clone()
    };
    let unobserved = seen(false);
    // Six orders of the first two commands; then one client wakes before the other. The first order comes twice, since only then
    // it is known that INFO is asked.
    assert_eq!(unobserved.len(), 14);
    assert_eq!(seen(true), unobserved);
}

#[test]
fn a_check_that_panics_or_writes_breaks_its_property() {
    let report = programs("SET n one")
        .invariant("a number", |db| db.get::<i64>("n").is_some())
        .explore()
        .unwrap();
    assert_eq!(property(&report), Some("a number"));
    let report = programs("SET n one").at_end("looks", |db| db.call(["DEL", "n"]) == Value::Nil);
    let report = report.explore().unwrap();
    let details_of = details(&report);
    assert!(
        details_of.starts_with("a check may only read, and DEL may do more ("),
        "{report}"
    );
    let report = programs("SET n one").at_end("is a list", |db| db.lrange("n").is_empty());
    let report = report.explore().unwrap();
    assert!(details(&report).contains("WRONGTYPE"), "{report}");
}

#[test]
fn a_deadlock_names_who_waits_for_what() {
    let (send, _) = tokio::sync::broadcast::channel::<()>(1);
    let scenario = programs("BLPOP queue 0|SET n 1").client(move |_| {
        let mut receive = send.subscribe();
        async move { receive.recv().await.unwrap() }
    });
    let report = scenario.explore().unwrap();
    assert_eq!(property(&report), Some("deadlock"));
    assert_eq!(
        details(&report),
        "nobody can go on, and no time-out will help; a waits in BLPOP queue 0, c waits for another client, or for a thread that is not under control"
    );
    let report = programs("BLPOP queue 0|RPUSH queue 1").explore().unwrap();
    assert_eq!(property(&report), None, "{report}");
}

/// Clients that take a lock, again and again if need be, and release it.
fn spin(pause: Duration) -> Scenario<(), ()> {
    Explorer::new().clients(2, move |cx| async move {
        let mut con = cx.connect().await?;
        while !con.set_nx::<_, _, bool>("lock", cx.index()).await? {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
        con.del::<_, ()>("lock").await
    })
}

#[test]
fn a_client_that_spins_is_a_livelock_and_one_that_pauses_is_not() {
    let report = spin(Duration::ZERO).progress_within(8).explore().unwrap();
    assert_eq!(property(&report), Some("livelock"));
    assert_eq!(
        details(&report),
        "9 commands ran and no operation returned, no client came to its end"
    );
    let pause = spin(Duration::from_millis(5)).progress_within(8);
    let report = pause.explore().unwrap();
    assert_eq!(property(&report), None, "{report}");
    assert_eq!(report.coverage(), Coverage::Exhaustive);
}

#[test]
fn a_retry_without_a_bound_is_named() {
    let report = spin(Duration::ZERO).steps_at_most(30).explore().unwrap();
    assert_eq!(property(&report), Some("step limit"));
    assert_eq!(
        details(&report),
        "not at an end after 30 commands; b repeats SETNX lock 1 (29 times)"
    );
    let report = spin(Duration::from_millis(5))
        .steps_at_most(30)
        .explore()
        .unwrap();
    assert_eq!(property(&report), None, "{report}");
}

/// A key of this test alone, since others use the same server.
const STOCK: &str = "explorer:checks:stock";

#[test]
fn a_real_server_breaks_the_same_invariant_in_the_same_order() {
    let Some(url) = tests::server::real_url() else {
        return;
    };
    let oversold = |explorer: Explorer| {
        let scenario = explorer
            .setup(|cx| async move { cx.connect().await?.set::<_, _, ()>(STOCK, 1).await })
            .clients(2, |cx| async move {
                let mut con = cx.connect().await?;
                let stock: i64 = con.get(STOCK).await?;
                if stock > 0 {
                    con.decr::<_, _, ()>(STOCK, 1).await?;
                }
                RedisResult::Ok(())
            })
            .invariant("never negative", |db| db.get::<i64>(STOCK) >= Some(0));
        scenario.explore().unwrap().to_string()
    };
    let real = Explorer::new().on(redis::Client::open(url).unwrap());
    assert_eq!(oversold(real), oversold(Explorer::new()));
}
