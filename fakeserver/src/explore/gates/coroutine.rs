//! [`Coroutine`]: a thread that runs only while its task is polled, so that blocking code is one more task to the explorer.
//!
//! Task and thread hand each other the turn; the runtime's thread waits while the client's runs. Whenever the runtime parks,
//! each client's thread waits for a reply or for time, or has ended: nothing has to settle, and no two threads run at a time.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

use tokio::runtime::Handle;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Task,
    Thread,
}

#[derive(Debug)]
struct State {
    turn: Turn,
    waker: Waker,
    given_up: bool,
    ended: bool,
    /// What the thread did last at the gate, for whoever has to tell why it does not come back.
    last: Option<String>,
}

/// What a task and its thread share.
#[derive(Debug)]
pub(super) struct Coroutine {
    state: Mutex<State>,
    turned: Condvar,
    thread: OnceLock<ThreadId>,
    runtime: Handle,
}

/// How a turn of the thread ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Resumed {
    /// It waits.
    Waits,
    /// It has come to its end.
    Ended,
    /// It neither waits nor ends; what it did last.
    Gone(Option<String>),
}

/// Why a thread cannot wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The run is over, and this thread unwinds already.
    GivenUp,
    /// It is another thread than the client's.
    Foreign,
}

/// What the thread of a run that is given up unwinds with. It is not a panic: nothing is printed.
struct GivenUp;

impl Coroutine {
    /// Without a thread yet.
    pub(super) fn new(runtime: Handle) -> Arc<Coroutine> {
        Arc::new(Coroutine {
            state: Mutex::new(State {
                turn: Turn::Task,
                waker: Waker::noop().clone(),
                given_up: false,
                ended: false,
                last: None,
            }),
            turned: Condvar::new(),
            thread: OnceLock::new(),
            runtime,
        })
    }

    /// Starts its thread, which begins at the first [`Coroutine::resume`]. What the function returns or panics with goes to
    /// `finish`, unless the run is given up.
    pub(super) fn start<T>(
        self: &Arc<Coroutine>,
        name: String,
        run: impl FnOnce() -> T + Send + 'static,
        finish: impl FnOnce(Result<T, Box<dyn Any + Send>>) + Send + 'static,
    ) -> std::io::Result<()> {
        let own = Arc::clone(self);
        let body = move || {
            // Nobody has asked before.
            let _ = own.thread.set(thread::current().id());
            if own.wait_for_turn().is_ok() {
                match catch_unwind(AssertUnwindSafe(run)) {
                    Err(panic) if panic.is::<GivenUp>() => {}
                    result => finish(result),
                }
            }
            let mut state = own.lock();
            state.ended = true;
            state.turn = Turn::Task;
            own.turned.notify_all();
        };
        thread::Builder::new().name(name).spawn(body).map(drop)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of a client runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task's side: lets the thread run until it waits, ends, or has been gone for too long.
    pub(super) fn resume(&self, waker: &Waker, patience: Duration) -> Resumed {
        let mut state = self.lock();
        if state.ended {
            return Resumed::Ended;
        }
        state.waker.clone_from(waker);
        self.hand_over(state, patience)
    }

    /// The task's side: lets the thread unwind, for the run is over. Whether it has ended.
    pub(super) fn give_up(&self, patience: Duration) -> bool {
        let mut state = self.lock();
        state.given_up = true;
        state.ended || self.hand_over(state, patience) == Resumed::Ended
    }

    fn hand_over(&self, mut state: MutexGuard<'_, State>, patience: Duration) -> Resumed {
        state.turn = Turn::Thread;
        self.turned.notify_all();
        let is_away = |state: &mut State| state.turn == Turn::Thread;
        let waited = self.turned.wait_timeout_while(state, patience, is_away);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match state.turn {
            Turn::Thread => Resumed::Gone(state.last.clone()),
            Turn::Task if state.ended => Resumed::Ended,
            Turn::Task => Resumed::Waits,
        }
    }

    /// The thread's side: notes what it is about to do.
    pub(super) fn note(&self, what: String) {
        self.lock().last = Some(what);
    }

    /// The thread's side: waits for a future, which others decide upon meanwhile.
    pub(super) fn block_on<F: Future>(&self, future: F) -> Result<F::Output, Refusal> {
        if self.thread.get() != Some(&thread::current().id()) {
            return Err(Refusal::Foreign);
        }
        if self.lock().given_up {
            return Err(unwind());
        }
        let mut future = pin!(future);
        loop {
            let waker = self.lock().waker.clone();
            {
                // Timers belong to a runtime.
                let _entered = self.runtime.enter();
                if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker))
                {
                    return Ok(output);
                }
            }
            let mut state = self.lock();
            state.turn = Turn::Task;
            self.turned.notify_all();
            drop(state);
            if self.wait_for_turn().is_err() {
                return Err(unwind());
            }
        }
    }

    fn wait_for_turn(&self) -> Result<(), Refusal> {
        let waits = |state: &mut State| state.turn == Turn::Task;
        let waited = self.turned.wait_while(self.lock(), waits);
        let state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.given_up {
            return Err(Refusal::GivenUp);
        }
        Ok(())
    }
}

/// Leaves the client's code; code that runs because of that gets an error in place of a panic within a panic.
fn unwind() -> Refusal {
    if !thread::panicking() {
        resume_unwind(Box::new(GivenUp));
    }
    Refusal::GivenUp
}
