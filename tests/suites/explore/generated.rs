//! Workloads from proptest: the smallest that goes wrong, with the shortest schedule that shows it.

use fakeserver::explore::{Exhaustive, Explorer, Recipe, Reduction};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use redis::{AsyncCommands, RedisResult, cmd};

/// What a client does to one of two accounts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Look(u8),
    Deposit(u8, i64),
    /// GET, then SET: wrong.
    Fee(u8),
    /// As `Fee`, in a script.
    FeeAtOnce(u8),
}

impl Op {
    fn amount(self) -> i64 {
        match self {
            Op::Look(_) => 0,
            Op::Deposit(_, amount) => amount,
            Op::Fee(_) | Op::FeeAtOnce(_) => -1,
        }
    }

    async fn run(self, con: &mut impl AsyncCommands) -> RedisResult<()> {
        let key = |account: u8| format!("account:{account}");
        match self {
            Op::Look(account) => con.get::<_, Option<i64>>(key(account)).await.map(drop),
            Op::Deposit(account, amount) => con.incr(key(account), amount).await,
            Op::Fee(account) => {
                let balance: Option<i64> = con.get(key(account)).await?;
                con.set(key(account), balance.unwrap_or(0) - 1).await
            }
            Op::FeeAtOnce(account) => {
                let text = "redis.call('SET', KEYS[1], (redis.call('GET', KEYS[1]) or 0) - 1)";
                cmd("EVAL")
                    .arg(text)
                    .arg(1)
                    .arg(key(account))
                    .exec_async(con)
                    .await
            }
        }
    }
}

fn op(wrong: bool) -> impl Strategy<Value = Op> {
    prop_oneof![
        (0..2_u8).prop_map(Op::Look),
        (0..2_u8, 1..100_i64).prop_map(|(account, amount)| Op::Deposit(account, amount)),
        (0..2_u8).prop_map(move |account| if wrong {
            Op::Fee(account)
        } else {
            Op::FeeAtOnce(account)
        }),
    ]
}

type Clients = Vec<Vec<Op>>;

fn clients(wrong: bool) -> impl Strategy<Value = Clients> {
    vec(vec(op(wrong), 0..3), 1..4)
}

/// The budget of each candidate.
const SCHEDULES: u64 = 400;

/// The property: money neither comes nor goes.
fn adds_up(clients: Clients) -> Result<(), TestCaseError> {
    let sum: i64 = clients.iter().flatten().map(|op| op.amount()).sum();
    let scenario = Explorer::new()
        .clients(clients.len(), move |cx| {
            let ops = clients[cx.index()].clone();
            async move {
                let mut con = cx.connect().await?;
                for op in ops {
                    op.run(&mut con).await?;
                }
                RedisResult::Ok(())
            }
        })
        .strategy(Exhaustive::new(Reduction::SleepSets).schedules(SCHEDULES))
        .at_end("the balances add up", move |db| {
            let balances = ["account:0", "account:1"].map(|key| db.get::<i64>(key).unwrap_or(0));
            balances.iter().sum::<i64>() == sum
        });
    scenario.holds().map(drop).map_err(TestCaseError::fail)
}

fn runner(cases: u32) -> TestRunner {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    TestRunner::new_with_rng(config, rng)
}

#[test]
fn a_workload_shrinks_together_with_its_schedule() {
    let Err(TestError::Fail(reason, smallest)) = runner(200).run(&clients(true), adds_up) else {
        panic!("no workload went wrong");
    };
    // Two clients with one operation each on one account: a fee, and another or the smallest deposit.
    let ops: Vec<Op> = smallest.iter().flatten().copied().collect();
    assert_eq!((smallest.len(), ops.len()), (2, 2), "{smallest:?}");
    let rank = |op: Op| match op {
        Op::Fee(account) => Some((account, true)),
        Op::Deposit(account, 1) => Some((account, false)),
        _ => None,
    };
    let ranks: Vec<(u8, bool)> = ops.iter().filter_map(|op| rank(*op)).collect();
    let [one, other] = ranks[..] else {
        panic!("{smallest:?}");
    };
    assert!(one.0 == other.0 && (one.1 || other.1), "{smallest:?}");
    // Three or four commands, one preemption.
    let text = reason.to_string();
    assert!(text.contains("1 preemptions, 0 faults)"), "{text}");
    assert!(
        text.contains("(3 commands") || text.contains("(4 commands"),
        "{text}"
    );
}

#[test]
fn right_workloads_pass() {
    runner(40).run(&clients(false), adds_up).unwrap();
}
