//! Tasks run in the order in which they were woken.
//!
//! Whoever sends first is served first, as Redis serves the sockets that are ready in the order in which they became so. The
//! runtime takes the task that it woke last out of turn, before those that wait longer. Such a task steps back once, to the
//! end of the queue, where its turn is.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// What the tasks of one runtime know of each other.
#[derive(Default)]
pub(crate) struct Turns {
    /// Tasks that were woken and have not run since.
    waiting: AtomicUsize,
    /// The number of the task that was woken last.
    newest: AtomicU64,
}

/// Runs `future` whenever it is its turn among the others of `turns`.
pub(crate) async fn in_turn<F: Future>(turns: Arc<Turns>, future: F) -> F::Output {
    let place = Arc::new(Place {
        turns,
        state: Mutex::default(),
    });
    let _leaving = Leaving(&place);
    let waker = Waker::from(Arc::clone(&place));
    let mut future = pin!(future);
    poll_fn(|cx| {
        if place.steps_back(cx.waker()) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        future.as_mut().poll(&mut Context::from_waker(&waker))
    })
    .await
}

/// A task's place in the queue.
struct Place {
    turns: Arc<Turns>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What wakes the task itself; none before it has run and after it has ended.
    task: Option<Waker>,
    /// The number under which it was woken, until it runs.
    number: Option<u64>,
    has_stepped_back: bool,
}

impl Place {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the task, about to run, lets those pass that were woken before it. Once is enough, and all that is safe: more
    /// could keep it waiting for a task that never comes.
    fn steps_back(&self, task: &Waker) -> bool {
        let mut state = self.state();
        if !state
            .task
            .as_ref()
            .is_some_and(|known| known.will_wake(task))
        {
            state.task = Some(task.clone());
        }
        let is_newest = state.number == Some(self.turns.newest.load(Ordering::Relaxed));
        let is_early = is_newest && self.turns.waiting.load(Ordering::Relaxed) > 1;
        if is_early && !state.has_stepped_back {
            state.has_stepped_back = true;
            return true;
        }
        self.leave_queue(&mut state);
        false
    }

    fn leave_queue(&self, state: &mut State) {
        state.has_stepped_back = false;
        if state.number.take().is_some() {
            self.turns.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Wake for Place {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.state();
        let Some(task) = state.task.clone() else {
            return;
        };
        if state.number.is_none() {
            self.turns.waiting.fetch_add(1, Ordering::Relaxed);
            state.number = Some(self.turns.newest.fetch_add(1, Ordering::Relaxed) + 1);
        }
        drop(state);
        task.wake();
    }
}

/// Takes the task out of the queue whatever ends it.
struct Leaving<'a>(&'a Place);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        self.0.leave_queue(&mut state);
        state.task = None;
    }
}
