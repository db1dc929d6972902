//! Closures as clients: [`Staged`] is a [`Scenario`] as the [`Workload`] that the explorer runs.

use std::any::type_name;
use std::fmt::{self, Display};
use std::future::Future;
use std::pin::Pin;

use super::{Flaw, Invariant, Scenario, UNDECIDED};
use crate::explore::check::Livelock;
use crate::explore::{
    Client, Connector, Database, Lane, Observer, Progress, Run, Violation, Workload,
};

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;
type Attempt = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// What happens before each schedule.
pub(super) type Setup = Box<dyn Fn(Connector) -> Task + Send + Sync>;

/// How the future of a client may end: with nothing, or with a result.
pub trait Ending {
    /// Well, or the error's text.
    ///
    /// # Errors
    /// If it ended with an error.
    fn ending(self) -> Result<(), String>;
}

impl Ending for () {
    fn ending(self) -> Result<(), String> {
        Ok(())
    }
}

impl<T, E: Display> Ending for Result<T, E> {
    fn ending(self) -> Result<(), String> {
        self.map(drop).map_err(|error| error.to_string())
    }
}

/// Clients that do the same.
pub(super) struct Group<I, O> {
    pub(super) count: usize,
    /// The path of the closure, which begins with that of the function around it.
    pub(super) origin: &'static str,
    pub(super) may_fail: bool,
    run: Box<dyn Fn(Client<I, O>) -> Attempt + Send + Sync>,
}

impl<I, O> Group<I, O>
where
    I: Send + 'static,
    O: Send + 'static,
{
    pub(super) fn new<F, Fut>(count: usize, run: F) -> Group<I, O>
    where
        F: Fn(Client<I, O>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: Ending> + Send + 'static,
    {
        let origin = type_name::<F>();
        Group {
            count,
            origin: origin.strip_suffix("::{{closure}}").unwrap_or(origin),
            may_fail: false,
            run: Box::new(move |client| {
                let run = run(client);
                Box::pin(async move { run.await.ending() })
            }),
        }
    }
}

/// A failure here is one of the test itself, so it panics.
pub(super) fn setup<F, Fut>(setup: F) -> Setup
where
    F: Fn(Connector) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: Ending> + Send + 'static,
{
    Box::new(move |connector| {
        let setup = setup(connector);
        Box::pin(async move {
            if let Err(text) = setup.await.ending() {
                panic!("the setup failed: {text}");
            }
        })
    })
}

/// A scenario on stage.
pub(super) struct Staged<'s, I, O>(pub(super) &'s Scenario<I, O>);

impl<I, O> Workload for Staged<'_, I, O>
where
    I: Clone + fmt::Debug + Send + 'static,
    O: Clone + fmt::Debug + Send + 'static,
{
    type Input = I;
    type Output = O;

    fn description(&self) -> String {
        self.0.description()
    }

    fn clients(&self) -> usize {
        self.0.client_count()
    }

    fn prepare(&self, connector: Connector) -> Task {
        match &self.0.setup {
            Some(setup) => setup(connector),
            None => Box::pin(async {}),
        }
    }

    fn client(&self, client: Client<I, O>) -> Task {
        let mut before = 0;
        let index = client.index();
        let group = self.0.groups.iter().find(|group| {
            before += group.count;
            index < before
        });
        let Some(group) = group else {
            return Box::pin(async {});
        };
        let recorder = client.recorder();
        let (run, may_fail) = ((group.run)(client), group.may_fail);
        Box::pin(async move {
            if let Err(text) = run.await
                && !may_fail
            {
                recorder.fail(index, text);
            }
        })
    }

    fn observer(&self, progress: Progress) -> Option<Box<dyn Observer>> {
        let livelock = self
            .0
            .progress_within
            .map(|most| Livelock::new(most, progress));
        let invariants = self.0.invariants.clone();
        (livelock.is_some() || !invariants.is_empty()).then(|| -> Box<dyn Observer> {
            Box::new(Onlooker {
                livelock,
                invariants,
            })
        })
    }

    fn needs_trace(&self) -> bool {
        self.0.needs_trace
    }

    fn check(&self, run: &Run<I, O>) -> Result<(), Violation> {
        if let Some(failure) = run.failures.first() {
            let lane = Lane::new(failure.client).map_or_else(String::new, |lane| lane.to_string());
            let details = format!("client {lane} ended with: {}", failure.text);
            return Err(Violation::new("no client fails", details));
        }
        for check in &self.0.checks {
            match check(run) {
                Ok(()) => {}
                Err(Flaw::Broken(violation)) => return Err(violation),
                Err(Flaw::Undecided(text)) => return Err(Violation::new(UNDECIDED, text)),
            }
        }
        Ok(())
    }
}

struct Onlooker {
    livelock: Option<Livelock>,
    invariants: Vec<Invariant>,
}

impl Observer for Onlooker {
    fn stepped(&mut self, database: &mut Database<'_>) -> Result<(), Violation> {
        if let Some(livelock) = &mut self.livelock {
            livelock.stepped(database)?;
        }
        self.invariants
            .iter()
            .try_for_each(|invariant| invariant(database))
    }

    fn sees_states(&self) -> bool {
        !self.invariants.is_empty()
    }
}
