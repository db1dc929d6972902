//! Workloads whose classes of schedules are known: a timer that is deleted while another client sets it anew, behind any number
//! of commands that concern nobody else, and the commit of eight.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};

use fakeserver::explore::{Client, Connection, Connector, Run, Violation, Workload};
use redis::{Value, cmd, pipe};

/// What a client of [`Timers`] does with the one timer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Role {
    /// ZSCORE, and ZREM if the timer is due.
    Delete,
    /// ZADD of a later time.
    Reschedule,
    /// Nothing.
    Bystander,
}

/// A timer must still be there once it was set anew.
#[derive(Debug)]
pub(crate) struct Timers {
    /// What each client does, and how many commands on a key of its own come before that.
    clients: Vec<(Role, usize)>,
    checked: bool,
    lost: AtomicU64,
}

const DUE: f64 = 100.0;
const LATER: f64 = 200.0;

impl Timers {
    fn new(clients: Vec<(Role, usize)>) -> Timers {
        Timers {
            clients,
            checked: true,
            lost: AtomicU64::new(0),
        }
    }

    pub(crate) fn of(roles: &[Role]) -> Timers {
        Timers::new(roles.iter().map(|role| (*role, 0)).collect())
    }

    /// A single place behind so many commands where the other client's only command does harm.
    pub(crate) fn needle(private: usize) -> Timers {
        Timers::new(vec![(Role::Delete, private), (Role::Reschedule, 0)])
    }

    /// A race of three clients at the end of so many commands of each.
    pub(crate) fn deep(private: usize) -> Timers {
        let roles = [Role::Delete, Role::Reschedule, Role::Bystander];
        Timers::new(roles.map(|role| (role, private)).to_vec())
    }

    /// A lost timer is counted, and no violation.
    pub(crate) fn unchecked(self) -> Timers {
        Timers {
            checked: false,
            ..self
        }
    }

    /// In how many runs the timer was lost.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

async fn play(role: Role, connection: &mut Connection) {
    match role {
        Role::Delete => {
            let score = cmd("ZSCORE").arg("timers").arg("m").take();
            let score: Option<f64> = score.query_async(connection).await.unwrap();
            if score.is_some_and(|score| score <= DUE) {
                let remove = cmd("ZREM").arg("timers").arg("m").take();
                remove.exec_async(connection).await.unwrap();
            }
        }
        Role::Reschedule => {
            let add = cmd("ZADD").arg("timers").arg(LATER).arg("m").take();
            add.exec_async(connection).await.unwrap();
        }
        Role::Bystander => {}
    }
}

impl Workload for Timers {
    type Input = ();
    type Output = ();

    fn description(&self) -> String {
        format!("timers {:?}", self.clients)
    }

    fn clients(&self) -> usize {
        self.clients.len()
    }

    fn prepare(&self, connector: Connector) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let mut connection = connector.open().unwrap();
            let add = cmd("ZADD").arg("timers").arg(DUE).arg("m").take();
            add.exec_async(&mut connection).await.unwrap();
        })
    }

    fn client(&self, client: Client<(), ()>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (role, private) = self.clients[client.index()];
        Box::pin(async move {
            let mut connection = client.connect().await.unwrap();
            for _ in 0..private {
                let own = format!("own:{}", client.index());
                let incr = cmd("INCR").arg(own).take();
                incr.exec_async(&mut connection).await.unwrap();
            }
            play(role, &mut connection).await;
        })
    }

    fn check(&self, run: &Run<(), ()>) -> Result<(), Violation> {
        let score = run.call(["ZSCORE", "timers", "m"]).unwrap();
        if score != Value::Nil {
            return Ok(());
        }
        self.lost.fetch_add(1, Ordering::Relaxed);
        if self.checked {
            return Err(Violation::new("timer", "set anew, and gone"));
        }
        Ok(())
    }
}

/// Clients that each commit once as the store does by WATCH: a number, then the row, the outbox and an index in a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commits {
    pub(crate) clients: usize,
}

async fn commit(connection: &mut Connection) -> bool {
    let number = cmd("INCR").arg("seq").take();
    let number: i64 = number.query_async(connection).await.unwrap();
    let watch = cmd("WATCH").arg("row").take();
    watch.exec_async(connection).await.unwrap();
    let get = cmd("GET").arg("row").take();
    let row: Option<i64> = get.query_async(connection).await.unwrap();
    let mut transaction = pipe();
    transaction
        .atomic()
        .cmd("SET")
        .arg("row")
        .arg(row.unwrap_or(0) + 1);
    transaction
        .cmd("HSET")
        .arg("outbox")
        .arg(number)
        .arg("emit");
    transaction.cmd("SADD").arg("pending").arg(number);
    let done: Option<Vec<Value>> = transaction.query_async(connection).await.unwrap();
    done.is_some()
}

impl Workload for Commits {
    type Input = ();
    type Output = ();

    fn description(&self) -> String {
        format!("{self:?}")
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn client(&self, client: Client<(), ()>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let mut connection = client.connect().await.unwrap();
            for _ in 0..5 {
                if commit(&mut connection).await {
                    return;
                }
            }
            panic!("gave up");
        })
    }

    fn check(&self, run: &Run<(), ()>) -> Result<(), Violation> {
        let row = run.call(["GET", "row"]).unwrap();
        if redis::from_redis_value::<usize>(row).unwrap() == self.clients {
            return Ok(());
        }
        Err(Violation::new("lost update", "a commit is missing"))
    }
}
