//! [`Recorder`]: what clients did, as they mark it: operations with the time of call and return.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::strategy::Marks;

/// A place in one order for each call and return.
#[derive(Debug, Default)]
pub(super) struct Clock {
    now: AtomicU64,
    begins: AtomicBool,
    returns: AtomicBool,
}

impl Clock {
    fn begin(&self) -> u64 {
        self.begins.store(true, Ordering::Relaxed);
        self.now.fetch_add(1, Ordering::Relaxed)
    }

    fn end(&self) -> u64 {
        self.returns.store(true, Ordering::Relaxed);
        self.now.fetch_add(1, Ordering::Relaxed)
    }

    /// What has happened since this was last asked.
    pub(super) fn marks(&self) -> Marks {
        Marks {
            begins: self.begins.swap(false, Ordering::Relaxed),
            returns: self.returns.swap(false, Ordering::Relaxed),
        }
    }
}

/// One call of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation<I, O> {
    /// Who called.
    pub client: usize,
    /// When, on the recorder's clock.
    pub invoked: u64,
    /// When it returned; none if it never did.
    pub returned: Option<u64>,
    /// What was asked.
    pub input: I,
    /// What came back.
    pub output: Option<O>,
}

/// Names an operation that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationId(usize);

/// Takes down operations, in the order of their calls. Clones share one list.
///
/// It works as well without an explorer: with clients on threads it gives each call and return a place in one order.
#[derive(Debug)]
pub struct Recorder<I, O> {
    clock: Arc<Clock>,
    operations: Arc<Mutex<Vec<Operation<I, O>>>>,
    failures: Arc<Mutex<Vec<Failure>>>,
    progress: Progress,
}

/// A client that came to its end with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which.
    pub client: usize,
    /// The error's text.
    pub text: String,
}

/// Counts operations that returned and clients that came to their end.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    /// How many so far.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn made(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl<I, O> Clone for Recorder<I, O> {
    fn clone(&self) -> Self {
        Recorder {
            clock: Arc::clone(&self.clock),
            operations: Arc::clone(&self.operations),
            failures: Arc::clone(&self.failures),
            progress: self.progress.clone(),
        }
    }
}

impl<I, O> Default for Recorder<I, O> {
    fn default() -> Self {
        Recorder {
            clock: Arc::default(),
            operations: Arc::default(),
            failures: Arc::default(),
            progress: Progress::default(),
        }
    }
}

impl<I, O> Recorder<I, O> {
    /// What tells the gate that an operation began or returned.
    pub(super) fn clock(&self) -> Arc<Clock> {
        Arc::clone(&self.clock)
    }

    fn operations(&self) -> MutexGuard<'_, Vec<Operation<I, O>>> {
        // A client that panicked half-way leaves an operation without an end, which is what it is.
        self.operations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins.
    pub fn begin(&self, client: usize, input: I) -> OperationId {
        let mut operations = self.operations();
        operations.push(Operation {
            client,
            invoked: self.clock.begin(),
            returned: None,
            input,
            output: None,
        });
        OperationId(operations.len() - 1)
    }

    /// A call returns.
    pub fn end(&self, id: OperationId, output: O) {
        let mut operations = self.operations();
        if let Some(operation) = operations.get_mut(id.0) {
            operation.returned = Some(self.clock.end());
            operation.output = Some(output);
            self.progress.made();
        }
    }

    /// A client came to its end with an error.
    pub fn fail(&self, client: usize, text: impl Into<String>) {
        let text = text.into();
        self.failures().push(Failure { client, text });
    }

    /// How many operations have returned.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    fn failures(&self) -> MutexGuard<'_, Vec<Failure>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The errors with which clients ended; the list is empty afterwards.
    pub fn take_failures(&self) -> Vec<Failure> {
        std::mem::take(&mut self.failures())
    }

    /// Everything taken down so far; the list is empty afterwards.
    pub fn take(&self) -> Vec<Operation<I, O>> {
        std::mem::take(&mut self.operations())
    }
}
