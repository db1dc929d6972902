//! [`Hunt`]: a scenario as the explorer runs it.

use std::future::Future;
use std::pin::Pin;

use fakeserver::explore::{
    Client, Connection, Connector, Faults, Operation, Run, Violation, Workload,
};
use redis::RedisResult;
use store::Settings;
use store::aio::Connections;
use store::op::Channel;

use super::Scenario;
use crate::actor::Actor;
use crate::call::{Call, Outcome};
use crate::control::Flaw;
use crate::spec::{Clauses, State, check};

/// The prefix of the store's keys on the embedded server.
const PREFIX: &str = "hunt";

/// A scenario, with its numbers, on the store or on a broken one.
#[derive(Clone, Debug)]
pub struct Hunt {
    /// What the clients do.
    pub scenario: Scenario,
    /// How many there are.
    pub clients: usize,
    /// How often each does it.
    pub rounds: u32,
    /// What is broken, if something is.
    pub flaw: Option<Flaw>,
    /// What is looked at.
    pub clauses: Clauses,
    /// Where its keys are.
    pub prefix: String,
}

impl Hunt {
    /// The scenario with so many clients, once.
    pub fn new(scenario: Scenario, clients: usize) -> Hunt {
        Hunt {
            scenario,
            clients,
            rounds: 1,
            flaw: None,
            clauses: Clauses::ALL,
            prefix: PREFIX.to_owned(),
        }
    }

    /// The scenario in which a broken store shows.
    pub fn control(flaw: Flaw) -> Hunt {
        Hunt {
            flaw: Some(flaw),
            ..Hunt::new(flaw.scenario(), 2)
        }
    }

    /// What the store is told.
    pub fn settings(&self) -> Settings {
        self.scenario.settings(&self.prefix)
    }

    /// What the store of one client is told.
    pub fn client_settings(&self, client: usize) -> Settings {
        self.scenario.client_settings(&self.prefix, client)
    }

    /// Both kinds of fault, at most so many.
    pub fn faults(most: usize) -> Faults {
        Faults::at_most(most).drop_before().lose_reply()
    }

    /// Holds what the clients did and left against the specification.
    ///
    /// # Errors
    /// What does not hold.
    pub fn judge(
        &self,
        history: &[Operation<Call, Outcome>],
        call: &mut crate::spec::Reader<'_>,
    ) -> Result<(), Violation> {
        let spawns = history.iter().flat_map(|operation| match &operation.input {
            Call::Commit(attempt) => attempt.spawns.clone(),
            _ => Vec::new(),
        });
        let spawns: Vec<String> = spawns.collect();
        let settings = self.settings();
        let executions = self.scenario.executions(self.clients, &spawns);
        let state = State::read(settings.keys(), &executions, call)
            .map_err(|error| Violation::new("readable", error.to_string()))?;
        check(history, &state, settings.trace_max_steps(), self.clauses)
    }
}

impl Workload for Hunt {
    type Input = Call;
    type Output = Outcome;

    fn description(&self) -> String {
        let flaw = self.flaw.map_or("none", Flaw::name);
        let (scenario, clients, rounds) = (self.scenario.name(), self.clients, self.rounds);
        format!("{scenario}, {clients} clients, {rounds} rounds, flaw: {flaw}")
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn prepare(&self, connector: Connector) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let connections = GatedConnections::new(connector);
        self.scenario
            .prepare(connections, self.settings(), self.clients)
    }

    fn client(&self, client: Client<Call, Outcome>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let actor = Actor::new(
            GatedConnections::new(client.connector()),
            self.client_settings(client.index()),
            client.recorder(),
            client.index(),
            self.scenario.attempts_max(self.clients),
            self.flaw,
        );
        Box::pin(self.scenario.act(actor, self.rounds))
    }

    fn check(&self, run: &Run<Call, Outcome>) -> Result<(), Violation> {
        self.judge(&run.history, &mut |words| run.call(words))
    }
}

/// A store's connections through the explorer's gate: one, opened again after it was lost.
#[derive(Debug)]
pub struct GatedConnections {
    connector: Connector,
    connection: Option<Connection>,
}

impl GatedConnections {
    /// From this connector; nothing is opened yet.
    pub fn new(connector: Connector) -> GatedConnections {
        GatedConnections {
            connector,
            connection: None,
        }
    }

    fn open(&mut self) -> RedisResult<&mut Connection> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connector.open()?,
        };
        Ok(self.connection.insert(connection))
    }
}

impl Connections for GatedConnections {
    type Shared = Connection;
    type Pinned = Connection;

    async fn shared(&mut self) -> RedisResult<&mut Connection> {
        self.open()
    }

    async fn pinned(&mut self) -> RedisResult<&mut Connection> {
        self.open()
    }

    async fn renew(&mut self) -> RedisResult<()> {
        self.connection = None;
        Ok(())
    }

    fn lost(&mut self, _: Channel) {
        self.connection = None;
    }
}
