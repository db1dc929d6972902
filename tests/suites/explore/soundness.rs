//! A reduction may leave out schedules, never an outcome: random programs end in the same set of final states and replies with
//! and without it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;

use fakeserver::explore::{
    Budget, Client, Connection, Coverage, Exhaustive, Explorer, Faults, Reduction, Run, Violation,
    Workload,
};
use redis::{Cmd, RedisResult, Value, cmd, pipe};

const KEYS: [&str; 2] = ["x", "y"];

/// What a client does; `from` and `to` are keys.
#[derive(Clone, Copy, Debug)]
enum Op {
    Get(usize),
    Incr(usize),
    /// GET, and SET of the other key to what was read.
    Copy {
        from: usize,
        to: usize,
    },
    /// WATCH and GET of one key, INCR of the other in a transaction.
    Guarded {
        from: usize,
        to: usize,
    },
    /// A script that adds one key to the other.
    Script {
        from: usize,
        to: usize,
    },
}

impl Op {
    fn commands(self) -> u64 {
        match self {
            Op::Get(_) | Op::Incr(_) => 1,
            // EVAL by source.
            Op::Script { .. } => 1,
            Op::Copy { .. } => 2,
            Op::Guarded { .. } => 5,
        }
    }

    fn random(rng: &mut fastrand::Rng) -> Op {
        let [from, to] = [(); 2].map(|()| rng.usize(..KEYS.len()));
        match rng.u8(..5) {
            0 => Op::Get(from),
            1 => Op::Incr(to),
            2 => Op::Copy { from, to },
            3 => Op::Guarded { from, to },
            _ => Op::Script { from, to },
        }
    }

    async fn run(self, connection: &mut Connection) -> RedisResult<String> {
        let get = |key: usize| cmd("GET").arg(KEYS[key]).take();
        let incr = |key: usize| cmd("INCR").arg(KEYS[key]).take();
        let mut said = String::new();
        match self {
            Op::Get(key) => note(&mut said, &get(key), connection).await?,
            Op::Incr(key) => note(&mut said, &incr(key), connection).await?,
            Op::Copy { from, to } => {
                let value: Option<i64> = get(from).query_async(connection).await?;
                let set = cmd("SET").arg(KEYS[to]).arg(value.unwrap_or(7)).take();
                note(&mut said, &set, connection).await?;
            }
            Op::Guarded { from, to } => {
                let watch = cmd("WATCH").arg(KEYS[from]).take();
                watch.exec_async(connection).await?;
                note(&mut said, &get(from), connection).await?;
                let mut transaction = pipe();
                transaction.atomic().add_command(incr(to));
                let done: Option<Vec<Value>> = transaction.query_async(connection).await?;
                let _ = write!(said, "{done:?}");
            }
            Op::Script { from, to } => {
                let source = "local n = redis.call('GET', KEYS[1]) or 0 \
                              return redis.call('INCRBY', KEYS[2], n + 1)";
                let eval = cmd("EVAL").arg(source).arg(2).take();
                let eval = eval.clone().arg(KEYS[from]).arg(KEYS[to]).take();
                note(&mut said, &eval, connection).await?;
            }
        }
        Ok(said)
    }
}

async fn note(said: &mut String, command: &Cmd, connection: &mut Connection) -> RedisResult<()> {
    let reply: Value = command.query_async(connection).await?;
    let _ = write!(said, "{reply:?} ");
    Ok(())
}

struct Program {
    clients: Vec<Vec<Op>>,
    outcomes: Mutex<BTreeSet<String>>,
}

impl Program {
    fn random(rng: &mut fastrand::Rng) -> Program {
        let clients = 2 + usize::from(rng.u8(..4) == 0);
        let ops = |rng: &mut fastrand::Rng| {
            let count = rng.usize(1..=2);
            (0..count).map(|_| Op::random(rng)).collect()
        };
        Program {
            clients: (0..clients).map(|_| ops(rng)).collect(),
            outcomes: Mutex::default(),
        }
    }

    /// How many schedules there are without faults, at most.
    fn schedules(&self) -> u64 {
        let (mut placed, mut schedules) = (0, 1);
        for client in &self.clients {
            for nth in 1..=client.iter().map(|op| op.commands()).sum() {
                placed += 1;
                schedules = schedules * placed / nth;
            }
        }
        schedules
    }

    fn outcomes(&self, reduction: Reduction, faults: usize) -> (BTreeSet<String>, u64) {
        self.outcomes.lock().unwrap().clear();
        let faults = Faults::at_most(faults).drop_before().lose_reply();
        let exploration = Explorer::new()
            .faults(faults)
            .explore(
                self,
                Box::new(Exhaustive::new(reduction)),
                Budget::schedules(100_000),
            )
            .unwrap();
        assert_eq!(exploration.coverage, Coverage::Exhaustive);
        let outcomes = std::mem::take(&mut *self.outcomes.lock().unwrap());
        (outcomes, exploration.schedules)
    }
}

impl Workload for Program {
    type Input = ();
    type Output = String;

    fn description(&self) -> String {
        format!("{:?}", self.clients)
    }

    fn clients(&self) -> usize {
        self.clients.len()
    }

    fn client(&self, client: Client<(), String>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let ops = self.clients[client.index()].clone();
        Box::pin(async move {
            let mut connection = client.connect().await.unwrap();
            for op in ops {
                let call = async {
                    let said = op.run(&mut connection).await;
                    said.unwrap_or_else(|error| error.to_string())
                };
                client.operation((), call).await;
            }
        })
    }

    fn check(&self, run: &Run<(), String>) -> Result<(), Violation> {
        let mut outcome = String::new();
        for key in KEYS {
            let _ = write!(outcome, "{key}={:?} ", run.call(["GET", key]));
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
fn reductions_lose_no_outcome_of_random_programs() {
    let mut rng = fastrand::Rng::with_seed(7);
    let (mut programs, mut plain, mut reduced) = (0, 0, 0);
    while programs < 60 {
        let program = Program::random(&mut rng);
        if program.schedules() > 300 {
            continue;
        }
        programs += 1;
        let faults = usize::from(program.schedules() < 40);
        let (all, schedules) = program.outcomes(Reduction::None, faults);
        plain += schedules;
        for reduction in [Reduction::LocalFirst, Reduction::SleepSets] {
            let (some, schedules) = program.outcomes(reduction, faults);
            assert_eq!(some, all, "{reduction:?} {}", program.description());
            if reduction == Reduction::SleepSets {
                reduced += schedules;
            }
        }
    }
    assert!(reduced * 2 < plain, "{reduced} of {plain}");
}
