//! Random programs: what clients do, and all outcomes of it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use fakeserver::explore::{
    Budget, Client, Connection, Connector, Coverage, Exhaustive, Explorer, Faults, Operation,
    Reduction, Run, Strategy, Violation, Workload,
};
use redis::{Cmd, RedisResult, Value, cmd, pipe};
use tokio::sync::oneshot::{self, Receiver, Sender};

const KEYS: [&str; 2] = ["x", "y"];

/// What a client does; `from` and `to` are keys.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Get(usize),
    Incr(usize),
    /// GET, and SET of the other key to what was read.
    Copy {
        from: usize,
        to: usize,
    },
    /// GET, and INCR of the other key if that was odd, else DECR of the same.
    Branch {
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
    /// GET and INCR on two connections at a time, and another INCR once both have returned.
    Both {
        from: usize,
        to: usize,
    },
    /// The same, and what comes next depends on which returns first.
    First {
        from: usize,
        to: usize,
    },
}

impl Op {
    fn commands(self) -> u64 {
        match self {
            Op::Get(_) | Op::Incr(_) | Op::Script { .. } => 1,
            Op::Copy { .. } | Op::Branch { .. } => 2,
            Op::Both { .. } | Op::First { .. } => 3,
            Op::Guarded { .. } => 5,
        }
    }

    fn random(rng: &mut fastrand::Rng) -> Op {
        let [from, to] = [(); 2].map(|()| rng.usize(..KEYS.len()));
        match rng.u8(..14) {
            0 | 1 => Op::Get(from),
            2 | 3 => Op::Incr(to),
            4 | 5 => Op::Copy { from, to },
            6 | 7 => Op::Branch { from, to },
            8..=10 => Op::Guarded { from, to },
            11 => Op::Script { from, to },
            12 => Op::Both { from, to },
            _ => Op::First { from, to },
        }
    }

    async fn run(self, connector: &Connector, connection: &mut Connection) -> RedisResult<String> {
        let mut said = String::new();
        match self {
            Op::Get(key) => note(&mut said, &get(key), connection).await?,
            Op::Incr(key) => note(&mut said, &incr(key), connection).await?,
            Op::Copy { from, to } => {
                let value: Option<i64> = get(from).query_async(connection).await?;
                let set = cmd("SET").arg(KEYS[to]).arg(value.unwrap_or(7)).take();
                note(&mut said, &set, connection).await?;
            }
            Op::Branch { from, to } => {
                let value: Option<i64> = get(from).query_async(connection).await?;
                let next = match value.unwrap_or(0) % 2 {
                    0 => cmd("DECR").arg(KEYS[from]).take(),
                    _ => incr(to),
                };
                note(&mut said, &next, connection).await?;
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
                let mut eval = cmd("EVAL");
                eval.arg(source).arg(2).arg(KEYS[from]).arg(KEYS[to]);
                note(&mut said, &eval, connection).await?;
            }
            Op::Both { from, to } => {
                let mut second = connector.open()?;
                let mut other = String::new();
                let [get, add] = [get(from), incr(to)];
                let (one, two) = tokio::join!(
                    note(&mut said, &get, connection),
                    note(&mut other, &add, &mut second)
                );
                one.and(two)?;
                said.push_str(&other);
                note(&mut said, &incr(from), connection).await?;
            }
            Op::First { from, to } => {
                let mut second = connector.open()?;
                let mut other = String::new();
                let [get, add] = [get(from), incr(to)];
                let next = tokio::select! {
                    biased;
                    one = note(&mut said, &get, connection) => one.map(|()| from),
                    two = note(&mut other, &add, &mut second) => two.map(|()| to),
                }?;
                said.push_str(&other);
                note(&mut said, &incr(next), connection).await?;
            }
        }
        Ok(said)
    }
}

fn get(key: usize) -> Cmd {
    cmd("GET").arg(KEYS[key]).take()
}

fn incr(key: usize) -> Cmd {
    cmd("INCR").arg(KEYS[key]).take()
}

async fn note(said: &mut String, command: &Cmd, connection: &mut Connection) -> RedisResult<()> {
    let reply: Value = command.query_async(connection).await?;
    let _ = write!(said, "{reply:?} ");
    Ok(())
}

/// By which one client tells another to begin.
#[derive(Debug, Default)]
struct Channel {
    sender: Option<Sender<()>>,
    receiver: Option<Receiver<()>>,
}

/// Clients with their operations.
#[derive(Debug)]
pub(crate) struct Program {
    clients: Vec<Vec<Op>>,
    /// The second of these begins when the first has done its first operation.
    hands_over: Option<(usize, usize)>,
    faults: usize,
    channel: Mutex<Channel>,
    in_real_time: AtomicBool,
    outcomes: Mutex<BTreeSet<String>>,
}

impl Program {
    fn random(rng: &mut fastrand::Rng) -> Program {
        let clients = 2 + usize::from(rng.u8(..3) == 0);
        let ops = |rng: &mut fastrand::Rng| {
            let count = rng.usize(1..=3);
            (0..count).map(|_| Op::random(rng)).collect()
        };
        let [from, to] = [(); 2].map(|()| rng.usize(..clients));
        Program {
            clients: (0..clients).map(|_| ops(rng)).collect(),
            hands_over: (from != to).then_some((from, to)),
            faults: rng.usize(..=1),
            channel: Mutex::default(),
            in_real_time: AtomicBool::new(false),
            outcomes: Mutex::default(),
        }
    }

    /// Random ones that can be explored without a reduction in no time.
    pub(crate) fn small_ones(seed: u64) -> impl Iterator<Item = Program> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let programs = std::iter::from_fn(move || Some(Program::random(&mut rng)));
        programs.filter(|program| {
            let schedules = program.schedules_max();
            schedules <= if program.faults > 0 { 20 } else { 130 }
        })
    }

    /// How many schedules there are without faults, at most.
    fn schedules_max(&self) -> u64 {
        let (mut placed, mut schedules) = (0, 1_u64);
        for client in &self.clients {
            for nth in 1..=client.iter().map(|op| op.commands()).sum() {
                placed += 1;
                schedules = schedules.saturating_mul(placed) / nth;
            }
        }
        schedules
    }

    /// What a client has of this run's channel.
    fn ends(&self, client: usize) -> (Option<Sender<()>>, Option<Receiver<()>>) {
        let mut channel = self.channel.lock().unwrap();
        if client == 0 {
            let (sender, receiver) = oneshot::channel();
            *channel = Channel {
                sender: Some(sender),
                receiver: Some(receiver),
            };
        }
        match self.hands_over {
            Some((from, _)) if from == client => (channel.sender.take(), None),
            Some((_, to)) if to == client => (None, channel.receiver.take()),
            _ => (None, None),
        }
    }

    /// Every outcome, and how many complete schedules showed them.
    pub(crate) fn outcomes(&self, reduction: Reduction) -> (BTreeSet<String>, u64) {
        self.outcomes_by(Exhaustive::new(reduction))
    }

    /// The same; which operation returned before which one began belongs to an outcome.
    pub(crate) fn outcomes_in_real_time(&self, reduction: Reduction) -> (BTreeSet<String>, u64) {
        let mut strategy = Exhaustive::new(reduction);
        strategy.keep_real_time();
        self.in_real_time.store(true, Ordering::Relaxed);
        let outcomes = self.outcomes_by(strategy);
        self.in_real_time.store(false, Ordering::Relaxed);
        outcomes
    }

    fn outcomes_by(&self, strategy: Exhaustive) -> (BTreeSet<String>, u64) {
        self.outcomes.lock().unwrap().clear();
        let faults = Faults::at_most(self.faults).drop_before().lose_reply();
        let exploration = Explorer::new()
            .faults(faults)
            .explore(self, Box::new(strategy), Budget::schedules(100_000))
            .unwrap();
        assert_eq!(exploration.coverage, Coverage::Exhaustive);
        let outcomes = std::mem::take(&mut *self.outcomes.lock().unwrap());
        (outcomes, exploration.schedules)
    }
}

/// Of each operation its client, and how many of each other client's had returned when it began.
fn real_time(history: &[Operation<(), String>], clients: usize) -> Vec<(usize, Vec<usize>)> {
    let returned = |client: usize, before: u64| {
        let own = history.iter().filter(|one| one.client == client);
        own.filter(|one| one.returned.is_some_and(|at| at < before))
            .count()
    };
    let mut orders: Vec<(usize, Vec<usize>)> = history
        .iter()
        .map(|one| {
            let all = 0..clients;
            (
                one.client,
                all.map(|client| returned(client, one.invoked)).collect(),
            )
        })
        .collect();
    // A stable sort: a client's operations stay in order.
    orders.sort_by_key(|(client, _)| *client);
    orders
}

/// A client's operations; after a lost connection the next one has a new one.
async fn play(ops: Vec<Op>, client: Client<(), String>, mut over: Option<Sender<()>>) {
    let connector = client.connector();
    let mut connection = Some(connector.open().unwrap());
    for op in ops {
        let call = async {
            let mut own = match connection.take() {
                Some(own) => own,
                None => connector.open().unwrap(),
            };
            match op.run(&connector, &mut own).await {
                Ok(said) => {
                    connection = Some(own);
                    said
                }
                Err(error) => error.to_string(),
            }
        };
        client.operation((), call).await;
        if let Some(over) = over.take() {
            let _ = over.send(());
        }
    }
}

impl Workload for Program {
    type Input = ();
    type Output = String;

    fn description(&self) -> String {
        format!("{:?} {:?} {}", self.clients, self.hands_over, self.faults)
    }

    fn clients(&self) -> usize {
        self.clients.len()
    }

    fn client(&self, client: Client<(), String>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let index = client.index();
        let ops = self.clients[index].clone();
        let (sender, receiver) = self.ends(index);
        Box::pin(async move {
            if let Some(receiver) = receiver {
                let _ = receiver.await;
            }
            play(ops, client, sender).await;
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
        if self.in_real_time.load(Ordering::Relaxed) {
            let _ = write!(outcome, "{:?}", real_time(&run.history, self.clients.len()));
        }
        self.outcomes.lock().unwrap().insert(outcome);
        Ok(())
    }
}
