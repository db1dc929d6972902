//! [`Bell`]: how other threads, and the engine, reach a driver.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mio::{Registry, Waker};

use super::BELL;

/// What is left for a driver, and what wakes it.
pub(crate) struct Bell {
    waker: Waker,
    /// Whether the driver sleeps, or is about to. On its own thread it never does, so that nothing wakes it there.
    is_asleep: AtomicBool,
    /// Connections for which the engine has something.
    with_output: Mutex<VecDeque<usize>>,
    has_output: AtomicBool,
    timer_has_moved: AtomicBool,
    is_stopping: AtomicBool,
}

impl Bell {
    pub(super) fn new(registry: &Registry) -> io::Result<Bell> {
        Ok(Bell {
            waker: Waker::new(registry, BELL)?,
            is_asleep: AtomicBool::new(false),
            with_output: Mutex::default(),
            has_output: AtomicBool::new(false),
            timer_has_moved: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
        })
    }

    /// The driver is to end.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.ring();
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    /// The engine wants to be woken at another time than it said.
    pub(super) fn timer_has_moved(&self) {
        self.timer_has_moved.store(true, Ordering::SeqCst);
        self.ring();
    }

    /// Whether it did since the last call.
    pub(super) fn has_timer_moved(&self) -> bool {
        self.timer_has_moved.load(Ordering::Relaxed)
            && self.timer_has_moved.swap(false, Ordering::SeqCst)
    }

    /// The engine has something for a connection.
    pub(super) fn has_output(&self, number: usize) {
        let mut with_output = self.with_output();
        with_output.push_back(number);
        self.has_output.store(true, Ordering::SeqCst);
        drop(with_output);
        self.ring();
    }

    /// The next connection for which the engine has something.
    pub(super) fn next_with_output(&self) -> Option<usize> {
        if !self.has_output.load(Ordering::Relaxed) {
            return None;
        }
        let mut with_output = self.with_output();
        let next = with_output.pop_front();
        if with_output.is_empty() {
            self.has_output.store(false, Ordering::SeqCst);
        }
        next
    }

    /// Lets the driver sleep for some time, none for ever; not at all if something was left for it.
    pub(super) fn asleep<T>(
        &self,
        wait: Option<Duration>,
        sleep: impl FnOnce(Option<Duration>) -> T,
    ) -> T {
        if wait == Some(Duration::ZERO) {
            return sleep(wait);
        }
        // Whoever leaves something does so before asking whether anybody sleeps; here it is the other way round.
        self.is_asleep.store(true, Ordering::SeqCst);
        let wait = if self.has_work() {
            Some(Duration::ZERO)
        } else {
            wait
        };
        let result = sleep(wait);
        self.is_asleep.store(false, Ordering::SeqCst);
        result
    }

    fn has_work(&self) -> bool {
        [&self.has_output, &self.timer_has_moved, &self.is_stopping]
            .iter()
            .any(|flag| flag.load(Ordering::SeqCst))
    }

    fn ring(&self) {
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            // It fails only if the driver is gone.
            let _ = self.waker.wake();
        }
    }

    fn with_output(&self) -> MutexGuard<'_, VecDeque<usize>> {
        self.with_output
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
