//! [`Shared`]: an engine that several threads use in turn, with its clock and with ways to wake the drivers of its sessions.
//!
//! Whoever works on the engine takes it from its seat, once per batch of a connection's input and never across an await. Amid
//! a script that takes too long it is put back for a moment, so that whoever waits for it is answered by it.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::clock::{Clock, Timestamp};
use crate::config::Config;
use crate::engine::{Engine, Peer};
use crate::links::{Link, LinkError, Patience, Place};
use crate::running::Interlude;
use crate::session::SessionId;

/// Microseconds from one slice of what is to be freed to the next: a thread that works without a pause waits for its turn on the
/// processor when a client comes, one that hardly works does not.
const SLICE_EVERY: i64 = 1_000;

/// What is called when a session has something to send; it must not block, nor enter the engine.
pub(crate) type Waker = Box<dyn Fn() + Send>;

/// How a driver's thread serves its connections in the middle of a script that it runs for one of them.
#[derive(Clone, Copy)]
pub(crate) struct Aside {
    /// Whether this thread is the driver's.
    pub is_needed: fn() -> bool,
    /// Serves those that are ready, while the engine is in its seat.
    pub run: fn(),
}

/// Opens a connection to another server.
pub(crate) type Dial = fn(&Place, &Patience<'_>) -> Result<Box<dyn Link>, LinkError>;

/// An engine that several drivers and the test share.
pub(crate) struct Shared {
    seat: Mutex<Seat>,
    /// Told when the engine is free.
    freed: Condvar,
    /// Told when the engine is free again while it is lent.
    returned: Condvar,
    drivers: Mutex<Drivers>,
    /// When the timer's owner will come, microseconds since the epoch: at the end of time if nothing is to be done, at its
    /// beginning if there is no timer.
    timer_at: AtomicI64,
    clock: Clock,
    /// What the driver's thread does meanwhile; see [`Shared::step_aside_by`].
    aside: Mutex<Option<Aside>>,
    /// How connections to other servers are opened, if they can be.
    dial: Mutex<Option<Dial>>,
    is_ending: AtomicBool,
}

/// Where the engine is when nobody works on it.
struct Seat {
    engine: Option<Box<Engine>>,
    waiting: usize,
    /// Turns that are left for others while a script lends the engine.
    turns: Option<usize>,
    /// What a script has in its hands while it lends the engine.
    substitute: Option<Box<Engine>>,
}

/// Who is to be told of what.
#[derive(Default)]
struct Drivers {
    wakers: HashMap<SessionId, Waker, foldhash::fast::FixedState>,
    /// Called when the engine wants to be woken earlier than it said before.
    timer: Option<Waker>,
}

impl Shared {
    pub(crate) fn new(mut engine: Engine, clock: Clock) -> Arc<Shared> {
        Arc::new_cyclic(|shared| {
            let driver: std::sync::Weak<Shared> = shared.clone();
            engine.interlude = Some(driver);
            Shared {
                seat: Mutex::new(Seat {
                    engine: Some(Box::new(engine)),
                    waiting: 0,
                    turns: None,
                    substitute: None,
                }),
                freed: Condvar::new(),
                returned: Condvar::new(),
                drivers: Mutex::default(),
                timer_at: AtomicI64::new(i64::MIN),
                clock,
                aside: Mutex::new(None),
                dial: Mutex::new(None),
                is_ending: AtomicBool::new(false),
            }
        })
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Works on the engine at the clock's time, then wakes whoever has something to send.
    pub(crate) fn enter<T>(&self, work: impl FnOnce(&mut Engine, Timestamp) -> T) -> T {
        let mut taken = self.take();
        let engine = &mut *taken;
        // The clock is read when the engine is there, so that time does not go back from one batch to the next.
        let now = self.clock.now();
        let result = work(engine, now);
        self.wake(engine);
        result
    }

    /// Lets the engine catch up with the clock: ends waits and removes due keys, slice by slice; when to come back.
    pub(crate) fn tick(&self) -> Option<Timestamp> {
        self.enter(|engine, now| {
            engine.handle_timeout(now);
            if engine.monitors_latency() {
                let took = self.clock.now().micros() - now.micros();
                engine.note_expire_cycle(took);
            }
            engine.keyspace.free_slice();
            let next = due(engine, now);
            let micros = next.map_or(i64::MAX, Timestamp::micros);
            self.timer_at.store(micros, Relaxed);
            next
        })
    }

    /// Ticks until nothing more is due; for clocks that a test has moved.
    pub(crate) fn catch_up(&self) {
        while self.tick().is_some_and(|at| at <= self.clock.now()) {}
    }

    /// Makes a session with the waker that `connect`'s session is to have.
    pub(crate) fn connect(&self, peer: Peer, direct: bool, waker: Waker) -> SessionId {
        self.enter(|engine, now| {
            let id = if direct {
                engine.connect_direct(peer, now)
            } else {
                engine.connect(peer, now)
            };
            lock(&self.drivers).wakers.insert(id, waker);
            id
        })
    }

    pub(crate) fn disconnect(&self, id: SessionId) {
        self.enter(|engine, _| {
            lock(&self.drivers).wakers.remove(&id);
            engine.disconnect(id);
        });
    }

    /// Who is called when the engine's next time-out has moved ahead.
    #[cfg(feature = "net")]
    pub(crate) fn set_timer(&self, waker: Waker) {
        lock(&self.drivers).timer = Some(waker);
        self.timer_at.store(i64::MAX, Relaxed);
        // While time stands still, what INFO says of it would depend on how fast this thread is.
        if !self.clock.is_frozen() {
            self.enter(|engine, _| engine.keyspace.free_in_slices());
        }
    }

    /// What a thread does for its other connections while it lends the engine amid a script.
    #[cfg(feature = "net")]
    pub(crate) fn step_aside_by(&self, aside: Aside) {
        *lock(&self.aside) = Some(aside);
    }

    /// How long until [`Shared::tick`] has something to do; none if time stands still, or nothing is to be done.
    #[cfg(feature = "net")]
    pub(crate) fn due_in(&self) -> Option<std::time::Duration> {
        let at = self.timer_at.load(Relaxed);
        if at == i64::MAX {
            return None;
        }
        let micros = at.saturating_sub(self.clock.now().micros()).max(0);
        // A clock that stands still does not come there by itself.
        (micros == 0 || !self.clock.is_frozen())
            .then(|| std::time::Duration::from_micros(micros as u64))
    }

    /// How connections to other servers are opened; without it there is no way to them.
    #[cfg(feature = "net")]
    pub(crate) fn dial_by(&self, dial: Dial) {
        *lock(&self.dial) = Some(dial);
    }

    /// Ends the script under way, if there is one: nobody will be there for its reply.
    #[cfg(feature = "net")]
    pub(crate) fn end(&self) {
        self.is_ending.store(true, Relaxed);
    }

    /// Takes the engine from its seat, in turn.
    fn take(&self) -> Taken<'_> {
        let mut seat = lock(&self.seat);
        loop {
            if seat.turns != Some(0)
                && let Some(engine) = seat.engine.take()
            {
                if let Some(turns) = &mut seat.turns {
                    *turns -= 1;
                }
                return Taken {
                    engine: Some(engine),
                    shared: self,
                };
            }
            seat.waiting += 1;
            seat = self
                .freed
                .wait(seat)
                .unwrap_or_else(PoisonError::into_inner);
            seat.waiting -= 1;
        }
    }

    fn put(&self, engine: Box<Engine>) {
        let mut seat = lock(&self.seat);
        seat.engine = Some(engine);
        let (waiting, lent) = (seat.waiting, seat.turns);
        drop(seat);
        if lent == Some(0) {
            self.returned.notify_one();
        } else if waiting > 0 {
            self.freed.notify_one();
        }
    }

    /// Puts the engine of a script back, for what this thread has to do aside and then for as many turns as there are others who
    /// wait for one.
    fn lend(&self, engine: &mut Engine, aside: Option<fn()>) {
        let mut seat = lock(&self.seat);
        if seat.waiting == 0 && aside.is_none() {
            return;
        }
        let mut lent = seat
            .substitute
            .take()
            .unwrap_or_else(|| Box::new(Engine::new(Config::default(), engine.now)));
        std::mem::swap(engine, &mut lent);
        seat.engine = Some(lent);
        if let Some(aside) = aside {
            drop(seat);
            aside();
            seat = lock(&self.seat);
        }
        seat.turns = Some(seat.waiting);
        self.freed.notify_all();
        let mut lent = loop {
            if seat.turns == Some(0)
                && let Some(lent) = seat.engine.take()
            {
                break lent;
            }
            seat = self
                .returned
                .wait(seat)
                .unwrap_or_else(PoisonError::into_inner);
        };
        std::mem::swap(engine, &mut lent);
        seat.turns = None;
        seat.substitute = Some(lent);
    }

    /// Tells the drivers what has come up.
    fn wake(&self, engine: &mut Engine) {
        let mut ready = engine.poll_ready();
        let next = due(engine, engine.now).map_or(i64::MAX, Timestamp::micros);
        let is_earlier = next < self.timer_at.load(Relaxed);
        if ready.is_none() && !is_earlier && !engine.shutdown_requested() {
            return;
        }
        let drivers = lock(&self.drivers);
        while let Some(id) = ready {
            if let Some(waker) = drivers.wakers.get(&id) {
                waker();
            }
            ready = engine.poll_ready();
        }
        if is_earlier {
            self.timer_at.store(next, Relaxed);
        }
        if let Some(timer) = &drivers.timer
            && (is_earlier || engine.shutdown_requested())
        {
            timer();
        }
    }
}

/// The engine in somebody's hands; it goes back to its seat, even if the work ends in a panic.
struct Taken<'a> {
    engine: Option<Box<Engine>>,
    shared: &'a Shared,
}

impl Deref for Taken<'_> {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        self.engine.as_ref().expect("it is given back on drop only")
    }
}

impl DerefMut for Taken<'_> {
    fn deref_mut(&mut self) -> &mut Engine {
        self.engine.as_mut().expect("it is given back on drop only")
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.take() {
            self.shared.put(engine);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic inside of the engine is a bug of ours; other tests of the process may still want their answers.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When [`Shared::tick`] has something to do for an engine, or the next slice is to be freed.
fn due(engine: &Engine, now: Timestamp) -> Option<Timestamp> {
    let garbage = engine.keyspace.has_garbage();
    let slice = garbage.then(|| Timestamp::from_micros(now.micros().saturating_add(SLICE_EVERY)));
    engine.poll_timeout().into_iter().chain(slice).min()
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

impl Interlude for Shared {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn has_time(&self) -> bool {
        !self.clock.is_frozen()
    }

    fn attend(&self, engine: &mut Engine) {
        let aside = *lock(&self.aside);
        let aside = aside.filter(|aside| (aside.is_needed)());
        self.lend(engine, aside.map(|aside| aside.run));
    }

    fn is_ending(&self) -> bool {
        self.is_ending.load(Relaxed)
    }

    fn dial(&self, place: &Place, patience: &Patience<'_>) -> Result<Box<dyn Link>, LinkError> {
        let dial = *lock(&self.dial);
        dial.map_or(Err(LinkError::NoWay), |dial| dial(place, patience))
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn clock_moved(&self) {
        // Without a timer there is nobody to ask.
        if self.timer_at.load(Relaxed) != i64::MIN {
            self.timer_at.store(i64::MAX, Relaxed);
        }
    }
}
