//! What the clients do: a table of scenarios, each a few roles that the clients take by number.

mod crowd;
mod hunt;
mod transport;

use std::future::Future;
use std::pin::Pin;

use store::aio::Connections;
use store::{AsyncRedisStore, Commit, CommitPath, Execution, Settings, TimerOp};

pub use self::crowd::{Crowd, Jam};
pub use self::hunt::{GatedConnections, Hunt};
pub use self::transport::{Act, Bout, Duel, Held};
use crate::actor::{Actor, Effects, SEED};

/// A workload on the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scenario {
    /// Commits that change the row only, by script.
    StateOnly,
    /// The same over WATCH, MULTI and EXEC.
    StateWatched,
    /// Commits with all effects, on a row that is not there yet.
    Complex,
    /// Both kinds on one execution.
    Mixed,
    /// Commits on neighbouring executions, which share counters and the outbox.
    Neighbours,
    /// A committer, and relays that deliver what it emits.
    Relay,
    /// A committer that moves a timer, and sweepers that fire it.
    Timers,
    /// Traced commits on a short ring, and steps added outside of commits.
    Trace,
    /// Clients with few attempts and a pause after each.
    Retry,
    /// Commits with all effects by script, on a row that is not there yet.
    Scripted,
    /// Every way of a commit on one execution: by script, over WATCH, by the kind of commit.
    Paths,
    /// Commits by script; who loses a reply asks what became of it, and believes it.
    Resolve,
}

/// The present of sweepers: behind the prepared timer, before all that commits set.
const NOW_S: f64 = 5_000.0;
const PREPARED_TIMER_S: f64 = 1_000.0;
const PATH: &str = "Waiting";

impl Scenario {
    /// All of them.
    pub const ALL: [Scenario; 12] = [
        Scenario::StateOnly,
        Scenario::StateWatched,
        Scenario::Complex,
        Scenario::Mixed,
        Scenario::Neighbours,
        Scenario::Relay,
        Scenario::Timers,
        Scenario::Trace,
        Scenario::Retry,
        Scenario::Scripted,
        Scenario::Paths,
        Scenario::Resolve,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Scenario::StateOnly => "state-only",
            Scenario::StateWatched => "state-watched",
            Scenario::Complex => "complex",
            Scenario::Mixed => "mixed",
            Scenario::Neighbours => "neighbours",
            Scenario::Relay => "relay",
            Scenario::Timers => "timers",
            Scenario::Trace => "trace",
            Scenario::Retry => "retry",
            Scenario::Scripted => "scripted",
            Scenario::Paths => "paths",
            Scenario::Resolve => "resolve",
        }
    }

    /// The scenario of this name.
    pub fn from_name(name: &str) -> Option<Scenario> {
        Scenario::ALL.into_iter().find(|one| one.name() == name)
    }

    /// What the store is told.
    pub fn settings(self, prefix: &str) -> Settings {
        let settings = Settings::new(prefix).unwrap_or_default();
        match self {
            Scenario::StateWatched => settings.commit_path(CommitPath::Watch),
            Scenario::StateOnly | Scenario::Scripted | Scenario::Resolve => {
                settings.commit_path(CommitPath::Script)
            }
            Scenario::Trace => settings.commit_path(CommitPath::Mixed).trace_max(2),
            _ => settings.commit_path(CommitPath::Mixed),
        }
    }

    /// What the store of client number `client` is told.
    pub fn client_settings(self, prefix: &str, client: usize) -> Settings {
        let settings = self.settings(prefix);
        match (self, client % 3) {
            (Scenario::Paths, 0) => settings.commit_path(CommitPath::Script),
            (Scenario::Paths, 1) => settings.commit_path(CommitPath::Watch),
            _ => settings,
        }
    }

    /// How often a client tries to handle an event.
    pub fn attempts_max(self, clients: usize) -> u32 {
        match self {
            Scenario::Retry => 2,
            _ => clients as u32 + 2,
        }
    }

    /// The execution that client number `client` works on.
    fn execution(self, client: usize) -> String {
        match self {
            Scenario::Neighbours => format!("x{client}"),
            _ => "x".to_owned(),
        }
    }

    /// Every execution that can come to be.
    pub fn executions(self, clients: usize, history_spawns: &[String]) -> Vec<String> {
        let mut all: Vec<String> = (0..clients).map(|client| self.execution(client)).collect();
        all.push("y".to_owned());
        all.extend_from_slice(history_spawns);
        all.sort();
        all.dedup();
        all
    }

    /// Fills the store before the clients begin.
    pub fn prepare<P: Connections + 'static>(
        self,
        connections: P,
        settings: Settings,
        clients: usize,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let mut store = AsyncRedisStore::with_connections(connections, settings);
            // Complex commits race to create the row.
            let mut ids = vec!["y".to_owned()];
            if !matches!(
                self,
                Scenario::Complex | Scenario::Neighbours | Scenario::Scripted
            ) {
                ids.extend((0..clients).map(|client| self.execution(client)));
                ids.dedup();
            }
            for id in ids {
                let mut row = Execution::new(id, "hunted");
                let log = serde_json::json!([SEED]);
                row.context.insert("log".to_owned(), log);
                let mut commit = Commit::new();
                if self == Scenario::Timers && row.id == "x" {
                    commit = commit.timer(TimerOp::schedule(PATH, PREPARED_TIMER_S));
                }
                let saved = store.commit(&mut row, &commit).await;
                saved.expect("an empty store takes its first rows");
            }
        })
    }

    /// What client number `actor.client()` does, so often.
    pub async fn act<P: Connections>(self, mut actor: Actor<P>, rounds: u32) {
        let client = actor.client();
        for round in 0..rounds {
            self.round(&mut actor, client, round).await;
        }
    }

    async fn round<P: Connections>(self, actor: &mut Actor<P>, client: usize, round: u32) {
        let execution = self.execution(client);
        let event = format!("event{client}.{round}");
        let is_first_role = client.is_multiple_of(2);
        match self {
            Scenario::StateOnly | Scenario::StateWatched => {
                actor.handle(&execution, &event, &Effects::default()).await;
            }
            Scenario::Resolve => {
                actor.resolves();
                actor.handle(&execution, &event, &Effects::default()).await;
            }
            Scenario::Complex | Scenario::Neighbours | Scenario::Scripted | Scenario::Paths => {
                actor.handle(&execution, &event, &all_effects()).await;
            }
            Scenario::Mixed if is_first_role => {
                actor.handle(&execution, &event, &Effects::default()).await;
            }
            Scenario::Mixed => {
                actor.handle(&execution, &event, &emitting(&[None])).await;
            }
            Scenario::Relay if client == 0 => {
                let effects = Effects {
                    spawns: 1,
                    ..emitting(&[Some("y")])
                };
                actor.handle(&execution, &event, &effects).await;
            }
            Scenario::Relay => {
                // What the first pass leaves behind is there for the second.
                actor.gives_up();
                actor.relay().await;
                actor.relay().await;
            }
            Scenario::Timers if is_first_role => {
                let effects = Effects {
                    timer: Some(PATH),
                    ..Effects::default()
                };
                actor.handle(&execution, &event, &effects).await;
            }
            Scenario::Timers => actor.sweep(NOW_S).await,
            Scenario::Trace if is_first_role => {
                let effects = Effects {
                    traced: true,
                    ..Effects::default()
                };
                actor.handle(&execution, &event, &effects).await;
            }
            Scenario::Trace => {
                actor.append_trace(&execution).await;
            }
            Scenario::Retry => {
                let effects = emitting(&[None]);
                let handled = actor.handle(&execution, &event, &effects).await;
                if !handled {
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                    actor.handle(&execution, &event, &effects).await;
                }
            }
        }
    }
}

fn emitting(targets: &[Option<&'static str>]) -> Effects {
    Effects {
        emits: targets.to_vec(),
        ..Effects::default()
    }
}

fn all_effects() -> Effects {
    Effects {
        emits: vec![Some("y"), None],
        spawns: 1,
        timer: Some(PATH),
        traced: true,
    }
}
