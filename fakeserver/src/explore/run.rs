//! One schedule: a runtime of its own, the clients as its tasks, the gate in its park hook.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use redis::{RedisResult, Value};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::backend::Backend;
use super::connection::Connector;
use super::gate::{Gate, Stop};
use super::history::{Operation, Recorder};
use super::schedule::Choice;
use super::strategy::Strategy;
use super::trace::Trace;
use super::{Client, Faults, Workload};
use crate::wire::Request;

/// Virtual time after which nothing but a deadlock is left to explain that nobody went on.
const DEADLOCK_AFTER: Duration = Duration::from_secs(1 << 30);

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
    /// The program used a thread of its own: what happens there is not under control.
    Escaped,
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
    /// Virtual time that passed.
    pub elapsed: Duration,
    gate: Arc<Gate>,
}

impl<I, O> Run<I, O> {
    /// What the next run's server can begin with.
    pub(super) fn retire(&self) -> Option<crate::script::ScriptEngine> {
        self.gate.lock().backend.retire()
    }

    /// Runs commands on the server as the run has left it.
    ///
    /// # Errors
    /// Only if a real server executes them and cannot be reached.
    pub fn call_all(&self, requests: &[Request]) -> RedisResult<Vec<Value>> {
        self.gate.lock().call_all(requests)
    }

    /// Runs a command on the server as the run has left it. Errors as for [`Run::call_all`].
    pub fn call<T: AsRef<[u8]>>(&self, words: impl IntoIterator<Item = T>) -> RedisResult<Value> {
        let reply = self.call_all(&[Request::new(words)])?.pop();
        reply.ok_or_else(super::gate::closed)
    }
}

/// What a run is made of.
pub(super) struct Plan<'p> {
    pub(super) backend: Box<dyn Backend>,
    pub(super) strategy: Box<dyn Strategy>,
    pub(super) preparation: &'p [Request],
    pub(super) faults: Faults,
    pub(super) steps_max: usize,
    pub(super) with_trace: bool,
}

/// Runs the workload once; the strategy comes back for the next time.
pub(super) fn run<W: Workload>(
    workload: &W,
    plan: Plan<'_>,
) -> RedisResult<(Run<W::Input, W::Output>, Box<dyn Strategy>)> {
    let gate = Arc::new(Gate::new(plan.backend, workload.clients(), plan.faults));
    {
        let mut state = gate.lock();
        state.call_all(plan.preparation)?;
        state.steps_max = plan.steps_max;
        state.trace = plan.with_trace.then(Trace::default);
    }
    gate.shut(plan.strategy);
    let threads = Arc::new(AtomicUsize::new(0));
    let start = Arc::new(OnceLock::new());
    let recorder = Recorder::default();
    let runtime = runtime(&gate, &threads, &start)?;
    let (end, elapsed) = runtime.block_on(async {
        let start = *start.get_or_init(Instant::now);
        let end = drive(workload, &gate, &recorder).await;
        (end, start.elapsed())
    });
    // Tasks that were left give their connections back before the state is looked at.
    runtime.shutdown_background();
    let end = if threads.load(Ordering::Relaxed) > 0 {
        End::Escaped
    } else {
        end
    };
    let mut state = gate.lock();
    let strategy = state.strategy.take().ok_or_else(super::gate::closed)?;
    let choices = std::mem::take(&mut state.choices);
    let preemptions = state.preemptions;
    let trace = state.trace.take();
    drop(state);
    let history = recorder.take();
    let run = Run {
        end,
        choices,
        preemptions,
        trace,
        history,
        elapsed,
        gate,
    };
    Ok((run, strategy))
}

/// Runs the workload's preparation and takes down its commands, which are then repeated before each run.
pub(super) fn prepare<W: Workload>(
    workload: &W,
    backend: Box<dyn Backend>,
) -> RedisResult<Vec<Request>> {
    let gate = Arc::new(Gate::new(backend, 1, Faults::none()));
    gate.lock().log = Some(Vec::new());
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    let connector = Connector {
        gate: Arc::clone(&gate),
        client: 0,
    };
    runtime.block_on(workload.prepare(connector));
    drop(runtime);
    let log = gate.lock().log.take();
    Ok(log.unwrap_or_default())
}

fn runtime(
    gate: &Arc<Gate>,
    threads: &Arc<AtomicUsize>,
    start: &Arc<OnceLock<Instant>>,
) -> std::io::Result<Runtime> {
    let (gate, threads, start) = (Arc::clone(gate), Arc::clone(threads), Arc::clone(start));
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .on_thread_park(move || {
            let elapsed = start.get().map(Instant::elapsed);
            gate.on_park(elapsed.unwrap_or_default());
        })
        // Only threads of the blocking pool start on this kind of runtime.
        .on_thread_start(move || {
            threads.fetch_add(1, Ordering::Relaxed);
        })
        .build()
}

async fn drive<W: Workload>(
    workload: &W,
    gate: &Arc<Gate>,
    recorder: &Recorder<W::Input, W::Output>,
) -> End {
    let mut clients = JoinSet::new();
    for index in 0..workload.clients() {
        clients.spawn(workload.client(Client {
            index,
            connector: Connector {
                gate: Arc::clone(gate),
                client: index,
            },
            recorder: recorder.clone(),
        }));
    }
    // A task of its own, since the hook may wake tasks only.
    let stopped = Arc::clone(gate);
    let mut watch = tokio::spawn(poll_fn(move |cx| stopped.poll_stopped(cx)));
    let deadlock = tokio::time::sleep(DEADLOCK_AFTER);
    tokio::pin!(deadlock);
    loop {
        tokio::select! {
            biased;
            _ = &mut watch => return stopped_end(gate),
            ended = clients.join_next() => match ended {
                None => return End::Complete,
                Some(Ok(())) => {}
                Some(Err(error)) => return End::Panicked(panic_text(error)),
            },
            () = &mut deadlock => return End::Deadlock(gate.waiting().join(", ")),
        }
    }
}

fn stopped_end(gate: &Gate) -> End {
    let state = gate.lock();
    match &state.stop {
        Some(Stop::Pruned) => End::Pruned,
        Some(Stop::Diverged(how)) => End::Diverged(how.clone()),
        Some(Stop::StepLimit) => End::StepLimit(state.steps_max),
        None => End::Complete,
    }
}

fn panic_text(error: JoinError) -> String {
    let Ok(payload) = error.try_into_panic() else {
        return "cancelled".to_owned();
    };
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic".to_owned())
}
