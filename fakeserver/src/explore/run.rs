//! One schedule: what goes into it and what comes of it.

use std::sync::Arc;
use std::time::Duration;

use redis::{ErrorKind, RedisResult, Value};

use super::connection::Connector;
use super::escape::Escape;
use super::facts::Facts;
use super::gate::Stop;
use super::history::{Failure, Operation, Recorder};
use super::schedule::Choice;
use super::stage::Stage;
use super::strategy::Strategy;
use super::trace::Trace;
use super::{Client, Database, Faults, Violation, Workload};
use crate::redis_client::to_reply;
use crate::remote::snapshot::{self, Snapshot};
use crate::wire::Request;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// All clients came to their end.
    Complete,
    /// The strategy has seen the rest already.
    Pruned,
    /// The clients that are left wait for each other.
    Deadlock(String),
    /// More commands ran than allowed: a client that tries again without a bound.
    StepLimit(usize),
    /// A client panicked.
    Panicked(String),
    /// The run was another one than the strategy remembers: the program depends on more than replies and time.
    Diverged(String),
    /// The program did what is not under control.
    Escaped(Escape),
    /// A property broke before the end.
    Broken(Violation),
}

/// A schedule that has run, and what it left.
pub struct Run<I, O> {
    /// How it ended.
    pub end: End,
    /// What was chosen.
    pub choices: Vec<Choice>,
    /// How often the turn was taken from a client that could have gone on.
    pub preemptions: usize,
    /// What ran; only if it was asked for.
    pub trace: Option<Trace>,
    /// What the clients marked.
    pub history: Vec<Operation<I, O>>,
    /// Clients that came to their end with an error.
    pub failures: Vec<Failure>,
    /// Virtual time that passed.
    pub elapsed: Duration,
    stage: Stage,
}

impl<I, O> Run<I, O> {
    /// The strategy back, for the next run.
    pub(super) fn take_strategy(&self) -> Option<Box<dyn Strategy>> {
        self.stage.gate.lock().strategy.take()
    }

    /// What the next run can begin with.
    pub(super) fn into_stage(self) -> Stage {
        self.stage
    }

    /// What turned out in this run and before.
    pub(super) fn take_facts(&self) -> Facts {
        std::mem::take(&mut self.stage.gate.lock().facts)
    }

    /// The key space as the run has left it, and virtual time then.
    pub(super) fn left(&self) -> RedisResult<(Snapshot, Duration)> {
        let mut state = self.stage.gate.lock();
        let snapshot = state.with_connection(|state, link| {
            snapshot::take(&mut |words| {
                let reply = state.call(link, Request::new(words));
                to_reply(reply.unwrap_or(Value::Nil))
            })
        });
        Ok((snapshot?, state.elapsed()))
    }

    /// Looks at the keys as the run has left them.
    pub fn look<T>(&self, look: impl FnOnce(&mut Database<'_>) -> T) -> T {
        let mut state = self.stage.gate.lock();
        look(&mut Database::new(&mut |request| state.peek(request)))
    }

    /// Runs commands on the server as the run has left it.
    ///
    /// # Errors
    /// Only if a real server executes them and cannot be reached.
    pub fn call_all(&self, requests: &[Request]) -> RedisResult<Vec<Value>> {
        self.stage.gate.lock().call_all(requests)
    }

    /// Runs a command on the server as the run has left it. Errors as for [`Run::call_all`].
    pub fn call<T: AsRef<[u8]>>(&self, words: impl IntoIterator<Item = T>) -> RedisResult<Value> {
        let reply = self.call_all(&[Request::new(words)])?.pop();
        reply.ok_or_else(super::gate::closed)
    }
}

/// What a run takes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Record {
    /// The choices.
    Choices,
    /// Commands and replies.
    Trace,
    /// These, and what each step changed in the key space.
    Changes,
}

/// What a run is made of.
pub(super) struct Plan<'p> {
    pub(super) stage: Stage,
    pub(super) strategy: Box<dyn Strategy>,
    pub(super) preparation: &'p [Request],
    pub(super) facts: Facts,
    pub(super) faults: Faults,
    pub(super) steps_max: usize,
    pub(super) record: Record,
}

/// Runs the workload once.
pub(super) fn run<W: Workload>(
    workload: &W,
    plan: Plan<'_>,
) -> RedisResult<Run<W::Input, W::Output>> {
    let mut stage = plan.stage;
    let recorder = Recorder::default();
    {
        let mut state = stage.gate.lock();
        state.begin(workload.clients());
        state.call_all(plan.preparation)?;
        state.backend.keep_undo(plan.faults.undo_steps());
        state.facts = plan.facts;
        state.faults = plan.faults;
        state.steps_max = plan.steps_max;
        if plan.record == Record::Changes {
            state.keys = state.backend.keys();
        }
        let keys = state.keys.clone().unwrap_or_default();
        state.trace = (plan.record >= Record::Trace).then(|| Trace {
            keys,
            ..Trace::default()
        });
        state.strategy = Some(plan.strategy);
        state.progress = recorder.progress();
        state.observer = workload.observer(recorder.progress());
        state.operations = Some(recorder.clock());
    }
    let gate = Arc::clone(&stage.gate);
    let clients = (0..workload.clients()).map(|index| {
        workload.client(Client {
            index,
            connector: Connector {
                gate: Arc::clone(&gate),
                client: index,
            },
            recorder: recorder.clone(),
        })
    });
    let (end, elapsed) = stage.play(clients)?;
    let mut state = stage.gate.lock();
    state.end();
    let choices = std::mem::take(&mut state.choices);
    state.choices_len_last = choices.len();
    let preemptions = state.preemptions;
    let mut trace = state.trace.take();
    if let Some(trace) = &mut trace {
        trace.clients = state.clients();
    }
    drop(state);
    let (history, failures) = (recorder.take(), recorder.take_failures());
    Ok(Run {
        end,
        choices,
        preemptions,
        trace,
        history,
        failures,
        elapsed,
        stage,
    })
}

/// Runs the workload's preparation and takes down its commands, which are then repeated before each run.
pub(super) fn prepare<W: Workload>(workload: &W, mut stage: Stage) -> RedisResult<Vec<Request>> {
    {
        let mut state = stage.gate.lock();
        state.begin(1);
        state.log = Some(Vec::new());
    }
    let connector = Connector {
        gate: Arc::clone(&stage.gate),
        client: 0,
    };
    let (end, _) = stage.play(std::iter::once(workload.prepare(connector)))?;
    let what = match end {
        End::Complete => return Ok(stage.gate.lock().log.take().unwrap_or_default()),
        End::Panicked(text) => format!("it panicked: {text}"),
        End::Escaped(escape) => escape.to_string(),
        End::Deadlock(who) => format!("it waits for ever; {who}"),
        other => format!("{other:?}"),
    };
    Err((ErrorKind::Client, "the preparation came to no end", what).into())
}

impl End {
    /// That of a run which was stopped.
    pub(super) fn of(stop: Stop, steps_max: usize) -> End {
        match stop {
            Stop::Pruned => End::Pruned,
            Stop::Diverged(how) => End::Diverged(how),
            Stop::StepLimit => End::StepLimit(steps_max),
            Stop::Broken(violation) => End::Broken(violation),
            Stop::Deadlock(who) => End::Deadlock(who),
            Stop::Escaped(escape) => End::Escaped(escape),
        }
    }
}
