//! [`Stage`]: a runtime with the gate in its park hook, on which schedules are played one after the other.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use smallvec::SmallVec;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, Sleep};

use super::ORIGIN;
use super::backend::Backend;
use super::escape::Escape;
use super::gate::Gate;
use super::run::End;

/// What a client does.
pub(super) type ClientFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A server behind a gate, and a runtime for its clients.
///
/// A runtime that a schedule has left as it found it serves the next one too, since making one takes longer than most schedules
/// do: no task is left, and virtual time is at a whole millisecond, where tokio's timers count from.
pub(super) struct Stage {
    pub(super) gate: Arc<Gate>,
    runtime: Option<Runtime>,
}

/// Tasks of a runtime that is not in use: the one that watches the gate.
const TASKS_IDLE: usize = 1;

impl Stage {
    /// With this server.
    pub(super) fn new(backend: Box<dyn Backend>) -> Stage {
        Stage {
            gate: Arc::new(Gate::new(backend)),
            runtime: None,
        }
    }

    /// The same stage with a server as if newly made; none if that is not possible.
    pub(super) fn renewed(self) -> Option<Stage> {
        let is_new = self.gate.lock().backend.renew(ORIGIN);
        is_new.then_some(self)
    }

    /// Has clients do what they do, under the gate's strategy; how that ended, and how much time passed for them.
    pub(super) fn play(
        &mut self,
        clients: impl Iterator<Item = ClientFuture>,
    ) -> std::io::Result<(End, Duration)> {
        let runtime = match self.runtime.take() {
            Some(runtime) => runtime,
            None => runtime(&self.gate)?,
        };
        let gate = &self.gate;
        let (end, elapsed) = runtime.block_on(async {
            let start = Instant::now();
            gate.start(start);
            let mut clients = Clients::spawn(clients);
            let end = poll_fn(|cx| match gate.poll_stopped(cx) {
                Poll::Ready((stop, steps_max)) => Poll::Ready(End::of(stop, steps_max)),
                Poll::Pending => clients.poll(gate, cx),
            })
            .await;
            let elapsed = start.elapsed();
            // The rest gives its connections back before the state is looked at.
            clients.leave().await;
            (end, elapsed)
        });
        gate.finish();
        let is_whole = elapsed.subsec_nanos() % 1_000_000 == 0;
        let is_idle = runtime.metrics().num_alive_tasks() == TASKS_IDLE;
        if is_whole && is_idle && !matches!(end, End::Escaped(_)) {
            self.runtime = Some(runtime);
        } else {
            runtime.shutdown_background();
            self.gate.lock().forget_wakers();
        }
        Ok((end, elapsed))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        // A waker knows its task, the task its runtime, the runtime the hook and the hook the gate, which must not know wakers.
        self.gate.lock().forget_wakers();
    }
}

fn runtime(gate: &Arc<Gate>) -> std::io::Result<Runtime> {
    let (hook, watched, left) = (Arc::clone(gate), Arc::clone(gate), Arc::clone(gate));
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .on_thread_park(move || hook.on_park())
        // Only the blocking pool has threads to be named, and whoever hands it work names them.
        .thread_name_fn(move || {
            left.escape(Escape::to_pool(&left.progress()));
            "blocking".to_owned()
        })
        .build()?;
    runtime.spawn(watch(watched));
    Ok(runtime)
}

/// The task that does what the hook cannot, which may wake tasks only: it has timers, and wakes the runtime's main future.
async fn watch(gate: Arc<Gate>) {
    let mut sleeping: Option<(Instant, Pin<Box<Sleep>>)> = None;
    poll_fn::<(), _>(move |cx| {
        let until = gate.poll_watch(cx);
        if sleeping.as_ref().map(|(until, _)| *until) != until {
            sleeping = until.map(|until| (until, Box::pin(tokio::time::sleep_until(until))));
        }
        if let Some((_, sleep)) = &mut sleeping {
            // The hook looks at the time itself.
            let _ = sleep.as_mut().poll(cx);
        }
        Poll::Pending
    })
    .await;
}

/// The clients' tasks; none where one is at its end.
struct Clients(SmallVec<[Option<JoinHandle<()>>; 4]>);

impl Clients {
    fn spawn(clients: impl Iterator<Item = ClientFuture>) -> Clients {
        Clients(clients.map(|client| Some(tokio::spawn(client))).collect())
    }

    fn poll(&mut self, gate: &Gate, cx: &mut Context<'_>) -> Poll<End> {
        let mut is_complete = true;
        for (index, slot) in self.0.iter_mut().enumerate() {
            let Some(client) = slot else {
                continue;
            };
            match Pin::new(client).poll(cx) {
                Poll::Pending => is_complete = false,
                Poll::Ready(ended) => {
                    *slot = None;
                    if let Err(error) = ended {
                        return Poll::Ready(failed(index, error, gate));
                    }
                    gate.ended(index);
                }
            }
        }
        if is_complete {
            // What was sent arrives, also if its sender did not wait: else the end would hide in which orders it can.
            gate.poll_drained().map(|()| End::Complete)
        } else {
            Poll::Pending
        }
    }

    /// Ends those that are left.
    async fn leave(self) {
        for client in self.0.into_iter().flatten() {
            client.abort();
            let _ = client.await;
        }
    }
}

/// A client that panicked.
fn failed(index: usize, error: JoinError, gate: &Gate) -> End {
    let text = panic_text(error);
    match Escape::of_panic(index, &text, &gate.progress()) {
        Some(escape) => End::Escaped(escape),
        None => End::Panicked(text),
    }
}

fn panic_text(error: JoinError) -> String {
    let Ok(payload) = error.try_into_panic() else {
        return "cancelled".to_owned();
    };
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    super::quiet::placed(text.as_deref().unwrap_or("panic"))
}
