//! [`Shared`]: an engine behind one lock, with its clock and with ways to wake the drivers of its sessions.
//!
//! The lock is taken once per batch of a connection's input and never held across an await.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::{Clock, Timestamp};
use crate::engine::{Engine, Peer};
use crate::session::SessionId;

/// What is called when a session has something to send; it must not block, nor enter the engine.
pub(crate) type Waker = Box<dyn Fn() + Send>;

/// An engine that several drivers and the test share.
pub(crate) struct Shared {
    state: Mutex<State>,
    clock: Clock,
}

struct State {
    engine: Engine,
    wakers: HashMap<SessionId, Waker, foldhash::fast::FixedState>,
    /// Called when the engine wants to be woken earlier than it said before.
    timer: Option<Waker>,
    timer_at: Option<Timestamp>,
}

impl Shared {
    pub(crate) fn new(engine: Engine, clock: Clock) -> Arc<Shared> {
        let state = State {
            engine,
            wakers: HashMap::default(),
            timer: None,
            timer_at: None,
        };
        Arc::new(Shared {
            state: Mutex::new(state),
            clock,
        })
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Works on the engine at the clock's time, then wakes whoever has something to send.
    pub(crate) fn enter<T>(&self, work: impl FnOnce(&mut Engine, Timestamp) -> T) -> T {
        let mut state = self.lock();
        // The clock is read under the lock, so that time does not go back from one batch to the next.
        let now = self.clock.now();
        let result = work(&mut state.engine, now);
        state.wake();
        result
    }

    /// Lets the engine catch up with the clock: ends waits and removes due keys, slice by slice; when to come back.
    pub(crate) fn tick(&self) -> Option<Timestamp> {
        let mut state = self.lock();
        let now = self.clock.now();
        state.engine.handle_timeout(now);
        state.timer_at = state.engine.poll_timeout();
        state.wake();
        state.timer_at
    }

    /// Ticks until nothing more is due; for clocks that a test has moved.
    pub(crate) fn catch_up(&self) {
        while self.tick().is_some_and(|at| at <= self.clock.now()) {}
    }

    /// Makes a session with the waker that `connect`'s session is to have.
    pub(crate) fn connect(&self, peer: Peer, direct: bool, waker: Waker) -> SessionId {
        let mut state = self.lock();
        let now = self.clock.now();
        let id = if direct {
            state.engine.connect_direct(peer, now)
        } else {
            state.engine.connect(peer, now)
        };
        state.wakers.insert(id, waker);
        // A client too many has something to read at once.
        state.wake();
        id
    }

    pub(crate) fn disconnect(&self, id: SessionId) {
        let mut state = self.lock();
        state.wakers.remove(&id);
        state.engine.disconnect(id);
        state.wake();
    }

    /// Who is called when the engine's next time-out has moved ahead.
    #[cfg(feature = "net")]
    pub(crate) fn set_timer(&self, waker: Waker) {
        self.lock().timer = Some(waker);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic inside of the engine is a bug of ours; other tests of the process may still want their answers.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wake(&mut self) {
        while let Some(id) = self.engine.poll_ready() {
            if let Some(waker) = self.wakers.get(&id) {
                waker();
            }
        }
        let Some(timer) = &self.timer else { return };
        if self.engine.shutdown_requested() {
            timer();
            return;
        }
        let next = self.engine.poll_timeout();
        if next.is_some() && (self.timer_at.is_none() || next < self.timer_at) {
            self.timer_at = next;
            timer();
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}
