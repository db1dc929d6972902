//! The interleaving explorer: runs ordinary asynchronous code of several clients under every order of its commands, or under a
//! sample, and reports the shortest schedule that breaks a property.
//!
//! # How it works
//! The clients are tasks of a tokio runtime with a paused clock. Each command waits at a gate in front of the server; whenever
//! no task can go on, a [`Strategy`] says whose command runs next, whether a connection breaks, and what happens to the server
//! ([`Faults`]). There is no other source of concurrency, so a run depends on the choices alone and a [`Schedule`] repeats it.
//! Time-outs, sleeps and back-off, in clients and in commands that block, cost nothing: time goes on only when no command can
//! run, or because a schedule says so.
//!
//! # Layout
//! * [`Scenario`]: clients as closures, what must hold, how far to search: what a test says, begun by [`Explorer`]
//! * [`Spec`], [`Database`], [`Verdict`]: what must hold, for histories and for keys
//! * [`Recipe`], [`Phase`], [`Report`]: strategies with budgets, and what they have seen
//! * the layer below: [`Explorer`] explores a [`Workload`], whose [`Client`]s open [`Connection`]s through a [`Connector`]
//! * [`Exhaustive`], [`RandomWalk`], [`Pct`], [`Pos`], [`Replay`], [`Bytes`]: strategies
//! * [`OnThread`]: blocking clients, made by [`Client::on_thread`]; [`Stream`]: clients that speak RESP themselves
//! * [`Schedule`], [`Trace`], [`Operation`]: a run as data
//! * [`Counterexample`]: what was found, shrunk and drawn
//!
//! # What it does not do
//! Memory that clients share is invisible: only the order of commands is chosen. What leaves the runtime (`spawn_blocking`, a
//! connection on another thread, a socket) is noticed where it can be, and refused with the place ([`Escape`]).
//! `tokio::select!` takes a random branch of those that are ready, unless it is `biased`. A reduction keeps final states and
//! replies, but the order in real time of operations of different clients only after [`Strategy::keep_real_time`]. On a
//! real server a script is trusted to touch the keys that it declares; on the engine it is seen what it calls, and a script
//! that touches more makes the exploration begin anew.

mod aside;
mod backend;
mod builder;
mod check;
mod confirm;
mod connection;
mod escape;
mod explorer;
mod facts;
mod faults;
mod footprints;
mod gate;
mod gates;
mod history;
mod lane;
mod normal;
mod quiet;
pub mod report;
mod run;
mod schedule;
mod shrink;
mod stage;
mod strategy;
mod trace;
mod turn;

use std::future::Future;
use std::pin::Pin;

use redis::RedisResult;

pub use builder::{Ending, Environment, Keeps, Phase, PhaseReport, Recipe, Report, Scenario};
pub use check::{Database, Observer, Order, SEARCH_MAX, Serial, Spec, Verdict, search};
pub use confirm::{ConfirmError, Confirmation, Rehearsal};
pub use connection::{Connection, Connector};
pub use escape::Escape;
pub use explorer::{
    Budget, Counterexample, Exploration, ExploreError, Explorer, Replayed, Shrunk, Violation,
};
pub use faults::Faults;
pub use footprints::Footprints;
pub use gates::{BlockingClient, BlockingConnection, BlockingConnector, OnThread, Stream};
pub use history::{Failure, Operation, OperationId, Progress, Recorder};
pub use report::ExploreReport;
pub use run::{End, Run};
pub use schedule::{Act, Choice, LANES_MAX, Lane, Schedule, ScheduleError, WorkloadHash};
pub use strategy::{
    Bytes, Candidate, Coverage, Decision, EnabledBy, Exhaustive, Head, Marks, Pct, Point, Pos, Ran,
    RandomWalk, Reduction, Replay, Strategy,
};
pub use trace::{Change, Step, Trace};

use crate::clock::Timestamp;
pub use crate::footprint::Footprint;

/// How finely commands are told apart by what they touch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Granularity {
    /// Whole keys.
    Key,
    /// Fields of hashes, members of sets and of sorted sets, as long as nobody looks at their order.
    #[default]
    Element,
}

/// The server's clock when a run begins.
pub(crate) const ORIGIN: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// What is explored: clients, and what must hold after each run.
pub trait Workload: Sync {
    /// What a client marks when an operation begins.
    type Input: Send + 'static;
    /// What it marks when the operation returns.
    type Output: Send + 'static;

    /// Names the workload down to its last parameter; two with the same description have the same schedules.
    fn description(&self) -> String;

    /// How many clients there are, at most [`LANES_MAX`].
    fn clients(&self) -> usize;

    /// Fills the server before each run. Its commands are taken down once and repeated, so it may not depend on chance.
    fn prepare(&self, connector: Connector) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        drop(connector);
        Box::pin(async {})
    }

    /// What a client does.
    fn client(
        &self,
        client: Client<Self::Input, Self::Output>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Looks at the server after each step, if anybody is to.
    fn observer(&self, progress: Progress) -> Option<Box<dyn Observer>> {
        drop(progress);
        None
    }

    /// Whether [`Workload::check`] needs the trace, which costs time.
    fn needs_trace(&self) -> bool {
        false
    }

    /// Whether a complete run was right.
    ///
    /// # Errors
    /// What was not.
    fn check(&self, run: &Run<Self::Input, Self::Output>) -> Result<(), Violation>;
}

/// One client of a run.
#[derive(Debug)]
pub struct Client<I, O> {
    index: usize,
    connector: Connector,
    recorder: Recorder<I, O>,
}

impl<I, O> Client<I, O> {
    /// Its number, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// A connection to the server.
    ///
    /// # Errors
    /// As for [`Connector::open`].
    #[allow(
        clippy::unused_async,
        reason = "other transports have to wait for a connection"
    )]
    pub async fn connect(&self) -> RedisResult<Connection> {
        self.connector.open()
    }

    /// Opens connections, also after one was lost.
    pub fn connector(&self) -> Connector {
        self.connector.clone()
    }

    /// Where it marks its operations.
    pub fn recorder(&self) -> Recorder<I, O> {
        self.recorder.clone()
    }

    /// Marks an operation around a call.
    pub async fn operation(&self, input: I, call: impl Future<Output = O>) -> O
    where
        O: Clone,
    {
        let id = self.recorder.begin(self.index, input);
        let output = call.await;
        self.recorder.end(id, output.clone());
        output
    }

    /// Marks an operation around a call that can fail: if it does, the operation has not returned, so that a check may take it
    /// as done or not done.
    ///
    /// # Errors
    /// Those of the call.
    pub async fn attempt<E>(
        &self,
        input: I,
        call: impl Future<Output = Result<O, E>>,
    ) -> Result<O, E>
    where
        O: Clone,
    {
        let id = self.recorder.begin(self.index, input);
        let output = call.await?;
        self.recorder.end(id, output.clone());
        Ok(output)
    }
}
