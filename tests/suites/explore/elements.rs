//! Elements of hashes, sets and sorted sets: fewer schedules than with whole keys, and the same outcomes; and scripts that touch
//! keys which they do not declare.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;

use fakeserver::explore::{
    Budget, Client, Coverage, Exhaustive, Exploration, Explorer, Granularity, Reduction, Run,
    Violation, Workload,
};
use redis::{Cmd, Value};

/// What clients send, one command after the other; `MULTI` up to `EXEC` too.
#[derive(Debug)]
struct Program {
    clients: Vec<Vec<String>>,
    outcomes: Mutex<BTreeSet<String>>,
}

impl Program {
    fn new(clients: &[&[&str]]) -> Program {
        let lines = |client: &&[&str]| client.iter().map(|&line| line.to_owned()).collect();
        Program {
            clients: clients.iter().map(lines).collect(),
            outcomes: Mutex::default(),
        }
    }

    fn explore(
        &self,
        reduction: Reduction,
        granularity: Granularity,
    ) -> (BTreeSet<String>, Exploration) {
        let strategy = Box::new(Exhaustive::new(reduction));
        let exploration = Explorer::new()
            .granularity(granularity)
            .explore(self, strategy, Budget::schedules(100_000))
            .unwrap();
        assert_eq!(exploration.coverage, Coverage::Exhaustive);
        (
            std::mem::take(&mut *self.outcomes.lock().unwrap()),
            exploration,
        )
    }

    /// Numbers of schedules without reduction, by keys and by elements, which all show the same outcomes.
    fn counts(&self) -> [u64; 3] {
        let (all, plain) = self.explore(Reduction::None, Granularity::Key);
        let counts = [Granularity::Key, Granularity::Element].map(|granularity| {
            let (some, reduced) = self.explore(Reduction::SleepSets, granularity);
            assert_eq!(some, all, "{granularity:?} {:?}", self.clients);
            reduced.schedules
        });
        [plain.schedules, counts[0], counts[1]]
    }
}

fn command(line: &str) -> Cmd {
    let mut command = Cmd::new();
    let mut rest = line;
    // A script stands between quotes.
    while let Some((before, quoted)) = rest.split_once('"') {
        let (inside, behind) = quoted.split_once('"').expect("an end of the quotes");
        before.split_whitespace().for_each(|word| {
            command.arg(word);
        });
        command.arg(inside);
        rest = behind;
    }
    rest.split_whitespace().for_each(|word| {
        command.arg(word);
    });
    command
}

const LOOKS: &[&str] = &[
    "HGETALL h",
    "SMEMBERS s",
    "ZRANGE z 0 -1 WITHSCORES",
    "GET x",
    "GET y",
    "PTTL h",
    "PTTL s",
    "PTTL z",
];

impl Workload for Program {
    type Input = ();
    type Output = String;

    fn description(&self) -> String {
        format!("{:?}", self.clients)
    }

    fn clients(&self) -> usize {
        self.clients.len()
    }

    fn prepare(
        &self,
        connector: fakeserver::explore::Connector,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let mut connection = connector.open().unwrap();
            for line in [
                "HSET h f0 1",
                "SADD s m0",
                "ZADD z 1 m0",
                "PEXPIRE h 9000",
                "PEXPIRE z 9000",
            ] {
                command(line).exec_async(&mut connection).await.unwrap();
            }
        })
    }

    fn client(&self, client: Client<(), String>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let lines = self.clients[client.index()].clone();
        Box::pin(async move {
            let mut connection = client.connect().await.unwrap();
            for line in lines {
                let command = command(&line);
                let call = async {
                    let reply: redis::RedisResult<Value> =
                        command.query_async(&mut connection).await;
                    format!("{reply:?}")
                };
                client.operation((), call).await;
            }
        })
    }

    fn check(&self, run: &Run<(), String>) -> Result<(), Violation> {
        let mut outcome = String::new();
        for look in LOOKS {
            let words = look.split(' ');
            let mut reply = run.call(words).unwrap();
            // The order of elements is none of the outcome, unless a client has looked.
            match &mut reply {
                Value::Array(items) if look.starts_with('S') => {
                    items.sort_by_key(|item| format!("{item:?}"));
                }
                Value::Array(items) if look.starts_with('H') => {
                    let mut pairs: Vec<_> =
                        items.chunks(2).map(|pair| format!("{pair:?}")).collect();
                    pairs.sort();
                    *items = vec![Value::SimpleString(pairs.concat())];
                }
                _ => {}
            }
            let _ = write!(outcome, "{look}={reply:?} ");
        }
        for client in 0..self.clients.len() {
            let own = run.history.iter().filter(|one| one.client == client);
            let said: Vec<_> = own.map(|one| one.output.clone()).collect();
            let _ = write!(outcome, "{client}: {said:?} ");
        }
        self.outcomes.lock().unwrap().insert(outcome);
        Ok(())
    }
}

#[test]
fn different_elements_have_one_schedule() {
    let hash = Program::new(&[
        &["HSET h a 1", "HGET h a", "HINCRBY h a 1"],
        &["HSET h b 1", "HGET h b"],
    ]);
    // By keys: which of three places each of two commands of b takes among a's, less what commutes (HGET with HGET).
    assert_eq!(hash.counts()[0], 10);
    assert_eq!(hash.counts()[2], 1);
    let zset = Program::new(&[&["ZADD z 1 a", "ZSCORE z a"], &["ZADD z 2 b", "ZSCORE z b"]]);
    assert_eq!(zset.counts()[2], 1);
    // The sum of two commands that each take out an element is what matters, not which one takes the key along.
    let set = Program::new(&[&["SREM s m0"], &["SREM s m1"]]);
    assert_eq!(set.counts(), [2, 2, 1]);
    // The last element takes the time to live along.
    let last = Program::new(&[&["HDEL h f0"], &["HSET h f1 1"]]);
    assert_eq!(last.counts(), [2, 2, 2]);
}

#[test]
fn who_looks_at_the_order_makes_the_key_whole() {
    let order = Program::new(&[
        &["SADD s a", "SET x 1"],
        &["SADD s b", "GET x", "SMEMBERS s"],
    ]);
    let (outcomes, exploration) = order.explore(Reduction::SleepSets, Granularity::Element);
    assert_eq!(exploration.restarts, 1);
    let (all, plain) = order.explore(Reduction::None, Granularity::Key);
    assert_eq!((outcomes, plain.restarts), (all, 0));
    let keys = Program::new(&[&["SET n0 1"], &["SET n1 1"], &["KEYS n*"]]);
    assert!(keys.counts()[1] >= 4);
}

#[test]
fn what_serves_a_blocked_client_touches_what_that_touches() {
    let program = Program::new(&[
        &["BLMOVE from to LEFT RIGHT 0"],
        &["RPUSH from a"],
        &["RPUSH to b", "LRANGE to 0 -1"],
    ]);
    program.counts();
    let sorted = Program::new(&[&["BZPOPMIN q 0"], &["ZADD q 1 a"], &["ZADD q 2 b"]]);
    assert_eq!(sorted.counts()[2], sorted.counts()[1]);
}

const UNDECLARED: &str = "EVAL \"return redis.call('INCR', 'x')\" 0";

#[test]
fn a_script_that_touches_undeclared_keys_is_found_out() {
    let program = Program::new(&[&["SET x 5", "GET x"], &[UNDECLARED]]);
    let (all, plain) = program.explore(Reduction::None, Granularity::Key);
    let (some, reduced) = program.explore(Reduction::SleepSets, Granularity::Element);
    assert_eq!((some, plain.schedules, reduced.restarts), (all, 3, 1));
    let declared = "EVAL \"return redis.call('HGET', KEYS[1], 'f0')\" 1 h";
    let program = Program::new(&[&[declared, "SET x 1"], &["GET y", "GET y"]]);
    assert_eq!(
        program
            .explore(Reduction::SleepSets, Granularity::Element)
            .1
            .restarts,
        0
    );
    // What it publishes, or the time that it asks for, makes it no script that touches everything.
    let publishes = "EVAL \"return redis.call('PUBLISH', 'news', 'x')\" 0";
    let program = Program::new(&[&[publishes], &["GET y", "GET y", "SET x 1"]]);
    let (_, exploration) = program.explore(Reduction::SleepSets, Granularity::Element);
    assert_eq!((exploration.restarts, exploration.schedules), (1, 1));
}

const LINES: &[&str] = &[
    "HSET h f0 2",
    "HSET h f1 3",
    "HDEL h f0",
    "HDEL h f1",
    "HGET h f0",
    "HINCRBY h f1 1",
    "HLEN h",
    "HSETNX h f2 1",
    "SADD s m0",
    "SADD s m1",
    "SREM s m0",
    "SREM s m1",
    "SISMEMBER s m1",
    "SCARD s",
    "SMOVE s t m0",
    "ZADD z 1 m0",
    "ZADD z 5 m1",
    "ZREM z m0",
    "ZREM z m1",
    "ZSCORE z m1",
    "ZRANGE z 0 -1",
    "ZINCRBY z 1 m1",
    "ZPOPMIN z",
    "EXISTS h",
    "DEL h",
    "PERSIST h",
    "TYPE s",
    "WATCH h",
    "MULTI",
    "EXEC",
    "SET s x",
    "GET x",
    "SET x 1",
    "HGETALL h",
    "SMEMBERS s",
    "HVALS h",
    "SINTER s s",
    "RENAME h g",
    "KEYS *",
    "EVAL \"return redis.call('HSET', KEYS[1], 'f3', 1)\" 1 h",
    "EVAL \"return redis.call('HGETALL', 'h')\" 0",
    "EVAL \"return redis.call('ZADD', KEYS[1], 3, 'm2')\" 1 z",
];

/// As many as `ELEMENT_PROGRAMS` says.
#[test]
fn elements_lose_no_outcome_of_random_programs() {
    let mut rng = fastrand::Rng::with_seed(3);
    let mut sums = [0; 3];
    let programs = std::env::var("ELEMENT_PROGRAMS").map_or(60, |count| count.parse().unwrap());
    for _ in 0..programs {
        let clients = 2 + usize::from(rng.u8(..4) == 0);
        let dwell = rng.usize(..LINES.len());
        let lines = (0..clients).map(|_| {
            let count = rng.usize(1..=if clients == 2 { 4 } else { 2 });
            let line = |rng: &mut fastrand::Rng| {
                let at = if rng.bool() {
                    dwell + rng.usize(..8)
                } else {
                    rng.usize(..LINES.len())
                };
                LINES[at % LINES.len()].to_owned()
            };
            (0..count).map(|_| line(&mut rng)).collect()
        });
        let program = Program {
            clients: lines.collect(),
            outcomes: Mutex::default(),
        };
        for (sum, count) in sums.iter_mut().zip(program.counts()) {
            *sum += count;
        }
    }
    assert!(sums[2] < sums[1] && sums[1] < sums[0], "{sums:?}");
    eprintln!("{sums:?}");
}

/// Commits as the store made them that this one began as: a number is drawn, the state is read under WATCH, and written with a
/// field of a hash and a member of a set. Each client commits to the first of so many executions, or to one of its own.
fn commits(clients: usize, executions: usize) -> Program {
    let lines = |client: usize| {
        let execution = client % executions;
        let lines = [
            format!("INCR n{execution}"),
            format!("WATCH state{execution}"),
            format!("GET state{execution}"),
            "MULTI".to_owned(),
            format!("SET state{execution} by{client}"),
            format!("HSET h step{client} 1"),
            format!("SADD s member{client}"),
            "EXEC".to_owned(),
        ];
        lines.to_vec()
    };
    Program {
        clients: (0..clients).map(lines).collect(),
        outcomes: Mutex::default(),
    }
}

fn both(program: &Program) -> [u64; 2] {
    let [keys, elements] = [Granularity::Key, Granularity::Element]
        .map(|granularity| program.explore(Reduction::SleepSets, granularity));
    assert_eq!(keys.0, elements.0, "{:?}", program.clients);
    [keys.1.schedules, elements.1.schedules]
}

#[test]
fn commits_to_executions_of_their_own_no_longer_meet_in_a_shared_hash() {
    // On one execution the state decides, however fine the rest is.
    assert_eq!(both(&commits(2, 1)), [12, 12]);
    // The orders of the EXECs, whose hash and set are shared.
    assert_eq!(both(&commits(2, 2)), [2, 1]);
    assert_eq!(both(&commits(3, 3)), [6, 1]);
    let (all, plain) = commits(2, 2).explore(Reduction::LocalFirst, Granularity::Key);
    let (some, _) = commits(2, 2).explore(Reduction::SleepSets, Granularity::Element);
    assert_eq!((some, plain.schedules), (all, 70));
}

/// With `ELEMENT_PROGRAMS`, which asks for more than a moment, three on one execution too: 3! orders of the INCRs; 3! of the
/// EXECs, in front of which the reads of the second client have 3 places, of the third 6.
#[test]
fn three_commits_of_which_two_meet_have_fewer_classes_by_elements() {
    // As two on one execution; by keys the third EXEC has three places among the two.
    assert_eq!(both(&commits(3, 2)), [36, 12]);
    if std::env::var_os("ELEMENT_PROGRAMS").is_some() {
        assert_eq!(both(&commits(3, 1)), [648, 648]);
    }
}
