//! Clients that add one to counters, in several ways, with and without work of their own between the commands.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use fakeserver::explore::{Client, Connection, Run, Violation, Workload};
use redis::{Value, cmd, pipe};

/// How a client adds one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    /// GET, then SET.
    GetSet,
    /// WATCH, GET, then MULTI, SET, EXEC in one write; again if the key was changed.
    Optimistic,
    /// As `Optimistic`, each client on a key of its own.
    Disjoint,
}

/// What a client does between its commands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Noise {
    None,
    Yields(usize),
    Tasks(usize),
    Blocking,
    BackOff,
    TimeOut,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Counter {
    pub(crate) clients: usize,
    pub(crate) way: Way,
    pub(crate) noise: Noise,
    /// Whether a lost update is a violation; without, all schedules of a wrong program can be counted.
    pub(crate) checked: bool,
}

impl Counter {
    pub(crate) fn new(clients: usize, way: Way) -> Counter {
        Counter {
            clients,
            way,
            noise: Noise::None,
            checked: true,
        }
    }

    pub(crate) fn unchecked(self) -> Counter {
        Counter {
            checked: false,
            ..self
        }
    }

    pub(crate) fn with(self, noise: Noise) -> Counter {
        Counter { noise, ..self }
    }

    fn key(self, client: usize) -> String {
        match self.way {
            Way::Disjoint => format!("n{client}"),
            _ => "n".to_owned(),
        }
    }

    async fn add(self, connection: &mut Connection, key: &str) -> bool {
        if self.way == Way::GetSet {
            let count = get(connection, key).await;
            self.noise.make().await;
            let set = cmd("SET").arg(key).arg(count + 1).take();
            set.exec_async(connection).await.unwrap();
            return true;
        }
        let watch = cmd("WATCH").arg(key).take();
        watch.exec_async(connection).await.unwrap();
        self.noise.make().await;
        let count = get(connection, key).await;
        self.noise.make().await;
        let mut transaction = pipe();
        transaction.atomic().cmd("SET").arg(key).arg(count + 1);
        let done: Option<Vec<Value>> = transaction.query_async(connection).await.unwrap();
        done.is_some()
    }
}

impl Noise {
    async fn make(self) {
        match self {
            Noise::None | Noise::BackOff => {}
            Noise::Yields(count) => {
                for _ in 0..count {
                    tokio::task::yield_now().await;
                }
            }
            Noise::Tasks(count) => chain(count).await,
            Noise::Blocking => tokio::task::spawn_blocking(|| {
                std::thread::sleep(Duration::from_millis(1));
            })
            .await
            .unwrap(),
            Noise::TimeOut => {
                let never = std::future::pending::<()>();
                let _ = tokio::time::timeout(Duration::from_millis(10), never).await;
            }
        }
    }
}

/// Tasks that each wait for the next.
fn chain(count: usize) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        if count > 0 {
            tokio::spawn(chain(count - 1)).await.unwrap();
        }
    })
}

async fn get(connection: &mut Connection, key: &str) -> i64 {
    let get = cmd("GET").arg(key).take();
    let count: Option<i64> = get.query_async(connection).await.unwrap();
    count.unwrap_or(0)
}

const ATTEMPTS_MAX: u64 = 5;

impl Workload for Counter {
    type Input = ();
    type Output = bool;

    fn description(&self) -> String {
        format!("{self:?}")
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn client(&self, client: Client<(), bool>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let counter = *self;
        Box::pin(async move {
            let mut connection = client.connect().await.unwrap();
            let key = counter.key(client.index());
            for attempt in 1..=ATTEMPTS_MAX {
                let added = counter.add(&mut connection, &key);
                if client.operation((), added).await {
                    return;
                }
                if let Noise::BackOff = counter.noise {
                    tokio::time::sleep(Duration::from_secs(attempt)).await;
                }
            }
            panic!("gave up");
        })
    }

    fn check(&self, run: &Run<(), bool>) -> Result<(), Violation> {
        let added = run.history.iter().filter(|one| one.output == Some(true));
        let mut sum = 0;
        for client in 0..self.clients {
            let reply = run.call(["GET", &self.key(client)]).unwrap();
            sum += redis::from_redis_value::<Option<usize>>(reply)
                .unwrap()
                .unwrap_or(0);
            if self.way != Way::Disjoint {
                break;
            }
        }
        let added = added.count();
        if sum == added || !self.checked {
            return Ok(());
        }
        let details = format!("added {added} times, counted {sum}");
        Err(Violation::new("lost update", details))
    }
}
