//! The same scenarios on a real server, with real concurrency: each client a task with a connection of its own.

use std::time::{Duration, Instant};

use fakeserver::explore::{ExploreError, Explorer, Operation, Recorder, Replayed, Violation};
use indicatif::ProgressBar;
use redis::{Client, Connection, RedisResult, Value};
use store::aio::Reopening;

use crate::actor::Actor;
use crate::call::{Answer, Call, Outcome};
use crate::runner::Control;
use crate::scenario::{Hunt, Scenario};

/// A server, and the part of its keys that is ours.
pub struct Live {
    client: Client,
    /// Begins the prefix of all our keys.
    namespace: String,
    runs: u64,
}

/// What became of a scenario.
#[derive(Clone, Debug)]
pub struct Trampled {
    /// Which.
    pub scenario: Scenario,
    /// With how many clients.
    pub clients: usize,
    /// How often it ran.
    pub runs: u64,
    /// How many commits landed.
    pub landed: u64,
    /// How many met a conflict.
    pub conflicts: u64,
    /// What is wrong, if something is.
    pub violation: Option<Violation>,
}

/// How often each client does its part in one run.
const ROUNDS: u32 = 5;
/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

impl Live {
    /// The server at this URL, with keys of our own under a prefix that no other run uses.
    ///
    /// # Errors
    /// If the URL is malformed or the server does not answer.
    pub fn connect(url: &str, nonce: u64) -> RedisResult<Live> {
        let client = Client::open(url)?;
        let mut connection = client.get_connection_with_timeout(CONNECT_TIMEOUT)?;
        redis::cmd("PING").exec(&mut connection)?;
        Ok(Live {
            client,
            namespace: format!("hunt-{nonce:016x}"),
            runs: 0,
        })
    }

    fn next_prefix(&mut self) -> String {
        self.runs += 1;
        format!("{}:{}", self.namespace, self.runs)
    }

    /// Runs a scenario over and over for so long.
    ///
    /// # Errors
    /// If the server fails.
    pub fn trample(
        &mut self,
        scenario: Scenario,
        clients: usize,
        time: Duration,
        progress: &ProgressBar,
    ) -> RedisResult<Trampled> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        let mut trampled = Trampled {
            scenario,
            clients,
            runs: 0,
            landed: 0,
            conflicts: 0,
            violation: None,
        };
        progress.set_message(format!("{}, {clients} clients", scenario.name()));
        let begin = Instant::now();
        while trampled.violation.is_none() && (trampled.runs == 0 || begin.elapsed() < time) {
            let hunt = Hunt {
                rounds: ROUNDS,
                prefix: self.next_prefix(),
                ..Hunt::new(scenario, clients)
            };
            let (history, failed) = runtime.block_on(run(&hunt, &self.client));
            let mut connection = self.client.get_connection()?;
            let verdict = hunt.judge(&history, &mut |words| call(&mut connection, words));
            trampled.violation = failed.or(verdict.err());
            trampled.runs += 1;
            trampled.landed += count(&history, |answer| matches!(answer, Answer::Landed { .. }));
            trampled.conflicts += count(&history, |answer| *answer == Answer::Conflict);
            remove(&mut connection, &hunt.prefix)?;
            progress.inc(1);
        }
        Ok(trampled)
    }

    /// Has the commands of a control's schedule executed by the server, in that order; whether the same goes wrong.
    ///
    /// # Errors
    /// If the server fails.
    pub fn confirm(&mut self, control: &Control) -> Result<bool, ExploreError> {
        let Some(found) = &control.counterexample else {
            return Ok(false);
        };
        let hunt = Hunt {
            prefix: self.next_prefix(),
            ..Hunt::control(control.flaw)
        };
        let replayed = Explorer::new()
            .on(self.client.clone())
            .replay(&hunt, &found.schedule);
        let mut connection = self.client.get_connection()?;
        remove(&mut connection, &hunt.prefix)?;
        Ok(match replayed? {
            Replayed::Breaks(again) => again.violation.property == found.violation.property,
            Replayed::Holds(_) => false,
        })
    }
}

/// What the clients did, and the words of one that failed.
async fn run(hunt: &Hunt, client: &Client) -> (Vec<Operation<Call, Outcome>>, Option<Violation>) {
    let connections = || Reopening::new(client.clone());
    hunt.scenario
        .prepare(connections(), hunt.settings(), hunt.clients)
        .await;
    let recorder = Recorder::default();
    let mut tasks = tokio::task::JoinSet::new();
    for index in 0..hunt.clients {
        let attempts = hunt.scenario.attempts_max(hunt.clients);
        let actor = Actor::new(
            connections(),
            hunt.client_settings(index),
            recorder.clone(),
            index,
            attempts,
            hunt.flaw,
        );
        tasks.spawn(hunt.scenario.act(actor, hunt.rounds));
    }
    let mut failed = None;
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            failed = Some(Violation::new("panic", error.to_string()));
        }
    }
    (recorder.take(), failed)
}

fn count(history: &[Operation<Call, Outcome>], is: impl Fn(&Answer) -> bool) -> u64 {
    let answers = history.iter().filter_map(|one| one.output.as_ref());
    answers.filter(|outcome| is(&outcome.answer)).count() as u64
}

fn call(connection: &mut Connection, words: &[&str]) -> RedisResult<Value> {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(*word);
    }
    command.query(connection)
}

/// Removes all keys of a prefix.
fn remove(connection: &mut Connection, prefix: &str) -> RedisResult<()> {
    let mut cursor = 0_u64;
    loop {
        let (next, keys): (u64, Vec<Vec<u8>>) = redis::cmd("SCAN")
            .arg(cursor)
            .arg("MATCH")
            .arg(format!("{prefix}:*"))
            .arg("COUNT")
            .arg(1_000)
            .query(connection)?;
        if !keys.is_empty() {
            redis::cmd("DEL").arg(keys).exec(connection)?;
        }
        if next == 0 {
            return Ok(());
        }
        cursor = next;
    }
}
