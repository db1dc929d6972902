//! Counterexamples on a real server: every reply and the final key space are the same, and what is not is told.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use fakeserver::explore::{
    Budget, Client, Confirmation, Counterexample, Exhaustive, Explorer, Reduction, Rehearsal, Run,
    Schedule, Violation, Workload, WorkloadHash,
};
use redis::{Commands, RedisResult, Value, cmd};
use tests::local::LocalServer;

use crate::counter::{Counter, Way};
use crate::faults::{Push, Retry};

fn server() -> Option<LocalServer> {
    LocalServer::start(&["--save", ""])
}

fn found<W: Workload>(explorer: &Explorer, workload: &W) -> Counterexample {
    let strategy = Box::new(Exhaustive::new(Reduction::None));
    let exploration = explorer.explore(workload, strategy, Budget::schedules(100_000));
    exploration.unwrap().counterexample.unwrap()
}

fn rehearsed<W: Workload>(explorer: &Explorer, workload: &W) -> Rehearsal {
    let found = found(explorer, workload);
    explorer.rehearse(workload, &found.schedule).unwrap()
}

/// The run of a schedule that is written down.
fn in_order<W: Workload>(workload: &W, order: &str) -> Rehearsal {
    let hash = WorkloadHash::of(&workload.description());
    let schedule: Schedule = format!("v1:{hash}:{order}").parse().unwrap();
    Explorer::new().rehearse(workload, &schedule).unwrap()
}

fn assert_same(confirmation: &Confirmation) {
    assert!(confirmation.same, "{confirmation:?}");
    assert_eq!(confirmation.first_difference, None);
    assert!(
        confirmation.server_version.starts_with("redis-server 7"),
        "{confirmation:?}"
    );
}

/// What a client of `Odd` does; whatever comes of it is called a violation.
#[derive(Clone, Copy, Debug)]
enum Odd {
    /// One waits for what the other one pushes.
    Waits,
    /// A key expires while nobody looks.
    Expires,
    /// One waits in vain.
    TimesOut,
    /// A key with a deadline, a script, and a look at both.
    World,
    /// One is told another thing each time, and another one has an order that means nothing.
    Chance,
}

impl Workload for Odd {
    type Input = ();
    type Output = ();

    fn description(&self) -> String {
        format!("{self:?}")
    }

    fn clients(&self) -> usize {
        2
    }

    fn client(&self, client: Client<(), ()>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (odd, index) = (*self, client.index());
        Box::pin(async move {
            let mut connection = client.connect().await.unwrap();
            let lines: &[&str] = match (odd, index) {
                (Odd::Waits, 0) => &["BLPOP queue 0", "SET served yes"],
                (Odd::Waits, _) => &["RPUSH queue one two", "GET served"],
                (Odd::Expires, 0) => &[
                    "SET k v PX 1500",
                    "PTTL k",
                    "pause",
                    "GET k",
                    "SET l v EX 100",
                ],
                (Odd::Expires, _) => &["TTL l"],
                (Odd::TimesOut, 0) => &["BLPOP queue 0.2", "SET l v"],
                (Odd::TimesOut, _) => &["SET k v"],
                (Odd::World, 0) => &["SET k v PX 50000", "SET l v", "EVAL return_1 0", "GET k"],
                (Odd::World, _) => &[
                    "GET l",
                    "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0",
                    "GET l",
                ],
                (Odd::Chance, 0) => &[
                    "SADD s a b c d e f g",
                    "SMEMBERS s",
                    "SRANDMEMBER s",
                    "TIME",
                ],
                (Odd::Chance, _) => &[
                    "XADD x * f v",
                    "MULTI",
                    "HSET h 1 a 2 b",
                    "HGETALL h",
                    "EXEC",
                ],
            };
            for line in lines {
                if *line == "pause" {
                    tokio::time::sleep(Duration::from_secs(2)).await;
                    continue;
                }
                let mut words = line.split(' ').map(|word| word.replace('_', " "));
                let mut command = cmd(&words.next().unwrap());
                command.arg(words.collect::<Vec<_>>());
                let answer: RedisResult<Value> = command.query_async(&mut connection).await;
                if answer.is_err_and(|error| error.is_io_error()) {
                    connection = client.connect().await.unwrap();
                }
            }
        })
    }

    fn check(&self, run: &Run<(), ()>) -> Result<(), Violation> {
        // Nothing waits for what was pushed before.
        if let (Odd::Waits, 1) = (self, run.choices[0].lane.index()) {
            return Ok(());
        }
        Err(Violation::new("odd", "by definition"))
    }
}

#[test]
fn what_is_found_is_the_same_on_a_real_server() {
    let Some(server) = server() else {
        return;
    };
    let plain = Explorer::new();
    let counter = Counter::new(2, Way::GetSet);
    let confirm = |rehearsal: Rehearsal| rehearsal.confirm_on(&server.url()).unwrap();
    let exact = [
        rehearsed(&plain, &counter),
        rehearsed(&crate::faults::explorer(), &Push(Retry::Blind)),
        rehearsed(&plain, &Odd::Waits),
        rehearsed(&plain, &Odd::Expires),
        rehearsed(&plain, &Odd::TimesOut),
        in_order(&Odd::World, "aaaa(expire 0)bbb"),
        in_order(&Odd::World, "aa(+60000ms)aabbb"),
        in_order(&Odd::World, "aaabb(flush)ba"),
        in_order(&Odd::World, "aaa(restart)bb"),
        in_order(&Odd::World, "aaa(restart empty)bb"),
    ];
    for rehearsal in exact {
        let confirmation = confirm(rehearsal);
        assert_same(&confirmation);
        assert_eq!(confirmation.by_type_only, 0);
    }
    let loose = confirm(rehearsed(&plain, &Odd::Chance));
    assert_same(&loose);
    assert_eq!(loose.by_type_only, 3, "{loose:?}");
    let mut connection = redis::Client::open(server.url())
        .unwrap()
        .get_connection()
        .unwrap();
    assert_eq!(cmd("DBSIZE").query::<usize>(&mut connection), Ok(0));
}

#[test]
fn a_reply_that_a_real_server_does_not_give_is_told() {
    let Some(server) = server() else {
        return;
    };
    let rehearsal = rehearsed(&Explorer::new(), &Counter::new(2, Way::GetSet));
    let mut altered = rehearsal.clone();
    altered.trace.steps[1].reply = Some(Value::BulkString(b"7".to_vec()));
    let told = altered.confirm_on(&server.url()).unwrap();
    assert!(!told.same);
    assert_eq!(
        told.first_difference.as_deref(),
        Some("step 1, b's GET n: 7 here, and nil there")
    );
    // A write less: all replies are as they were, and a key is not.
    let mut shorter = rehearsal;
    let last = shorter.trace.steps.pop().unwrap();
    assert_eq!(last.request.name(), b"SET");
    shorter.trace.steps.pop().unwrap();
    let told = shorter.confirm_on(&server.url()).unwrap();
    assert_eq!(
        told.first_difference.as_deref(),
        Some("at the end key \"n\" is string \"1\" here, and missing there")
    );
    // What waits here has to wait there.
    let mut waits = rehearsed(&Explorer::new(), &Odd::Waits);
    assert_eq!(waits.trace.steps[0].answered_by, Some(1));
    waits.trace.steps.swap(0, 1);
    waits.trace.steps[0].answered_by = Some(0);
    waits.trace.steps[1].answered_by = Some(2);
    let told = waits.confirm_on(&server.url()).unwrap();
    let told = told.first_difference.unwrap();
    assert!(
        told.ends_with("no reply yet here, and [queue one] there"),
        "{told}"
    );
}

#[test]
fn a_server_with_keys_is_left_alone() {
    let Some(server) = server() else {
        return;
    };
    let mut connection = redis::Client::open(server.url())
        .unwrap()
        .get_connection()
        .unwrap();
    connection.set::<_, _, ()>("k", "v").unwrap();
    let rehearsal = rehearsed(&Explorer::new(), &Counter::new(2, Way::GetSet));
    let refused = rehearsal.confirm_on(&server.url()).unwrap_err();
    assert!(refused.to_string().contains("it holds keys"), "{refused}");
    assert_eq!(connection.get::<_, String>("k").unwrap(), "v");
    let refused = rehearsal.confirm_on("localhost:6379").unwrap_err();
    assert!(
        refused.to_string().contains("is not of the form"),
        "{refused}"
    );
}

#[test]
fn a_fail_over_cannot_be_tried_elsewhere() {
    let Some(server) = server() else {
        return;
    };
    let rehearsal = in_order(&Odd::World, "aa(failover 1)abb");
    let refused = rehearsal.confirm_on(&server.url()).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("step 2 of the schedule cannot happen"),
        "{refused}"
    );
}
