//! What a worker asks its owner.

use std::{future::Future, time::Duration};

use crate::{
    Commit, Document, Event, Execution, SpawnEntry, Status, StoreError, Version, control_event,
    relay::Poison,
    transport::{DeadLetter, Lease, Priority},
};

/// How a worker behaves beside handling events; the part that both twins share.
pub trait Conduct<D: Document> {
    /// Whether an event is handled by a document in this state. Unless said otherwise, what [`Admission::by_status`] says.
    fn admit(&mut self, document: &D, event: &Event) -> Admission {
        document.status().map_or(Admission::Handle, |status| {
            Admission::by_status(status, event)
        })
    }

    /// The document of an execution to start, and what is committed with it, made from the row of its parent: whose definition
    /// it runs is the parent's to say, not the worker's. None leaves it to other workers. For an [`Execution`] there is
    /// [`child_of`].
    ///
    /// May be asked several times about the same entry; the child is created once.
    fn child(&mut self, parent: &D, spawn: &SpawnEntry) -> Option<(D, Commit)>;

    /// The priority of a group that has no events yet.
    fn priority(&mut self, target: &str, event: &Event) -> Priority {
        let _ = (target, event);
        Priority::MIN
    }

    /// Hears of what went wrong without stopping the worker.
    fn trouble(&mut self, trouble: &Trouble<'_>) {
        let _ = trouble;
    }
}

/// Decides what an event changes. Blocking.
pub trait Handler<D: Document>: Conduct<D> {
    /// Changes the document and says what else to commit. It may be asked again about the same event, on the document as it is
    /// then, so that effects outside of the commit need a key by which they are done once, such as id, version and position.
    ///
    /// A panic leaves the event to be claimed again when the lease has ended.
    fn handle(&mut self, document: &mut D, event: &Event) -> Verdict;
}

/// Decides what an event changes. Asynchronous.
pub trait AsyncHandler<D: Document>: Conduct<D> + Send {
    /// As [`Handler::handle`]. While it awaits, the lease is prolonged; if it is lost all the same, the future is dropped and
    /// nothing is committed.
    fn handle(&mut self, document: &mut D, event: &Event) -> impl Future<Output = Verdict> + Send;
}

/// What a handler wants.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// Commit the document as it is now, with these effects. The event is marked as processed, whatever the commit names.
    Commit(Commit),
    /// Change nothing; the event is done with.
    Ignore,
    /// Change nothing; the event comes again after so long, and until then no other of its group.
    Later(Duration),
}

/// Whether a document takes an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Admission {
    /// It does.
    Handle,
    /// It does not: the event is done with.
    Drop,
    /// Not now: it comes again after [`WorkerOptions::suspend_pause`](super::WorkerOptions::suspend_pause).
    Later,
}

impl Admission {
    /// What the Python worker does: one that was cancelled takes no events, one that is being cancelled only `Cancel`, one that
    /// is suspended takes them later.
    pub fn by_status(status: Status, event: &Event) -> Self {
        match status {
            Status::Cancelled => Self::Drop,
            Status::Cancelling if event.kind != "Cancel" => Self::Drop,
            Status::Suspended => Self::Later,
            _ => Self::Handle,
        }
    }
}

/// What went wrong without stopping the worker.
#[derive(Debug)]
#[non_exhaustive]
pub enum Trouble<'a> {
    /// A payload in a queue is no event, or was delivered too often; it is among the dead letters of its group.
    Buried(&'a DeadLetter),
    /// An entry of outbox, spawns or timers can not be worked off; it was set aside.
    Quarantined(&'a Poison),
    /// An event can not be handled as things are; it comes again after a pause.
    Parked {
        /// Whose it is.
        lease: &'a Lease,
        /// Why.
        error: &'a StoreError,
    },
    /// Something waits that could not be worked off; the next sweep tries again.
    Left {
        /// The execution that it is for.
        id: &'a str,
        /// Why, if the store said so; else a key of its queue holds what is not ours.
        error: Option<&'a StoreError>,
    },
    /// A turn failed; the worker goes on after a pause.
    Failed(&'a StoreError),
}

/// The execution that a spawn intent asks for, as the Python runner makes it: the parent's definition, the intent's part of it
/// and context; and a `Start` event to itself, whose id is the same whoever makes it.
pub fn child_of(parent: &Execution, spawn: &SpawnEntry) -> (Execution, Commit) {
    let mut child = Execution::new(spawn.child_id.as_str(), parent.definition_id.as_str());
    child.definition_fqn.clone_from(&parent.definition_fqn);
    child.root_path.clone_from(&spawn.root_path);
    child.context.clone_from(&spawn.context);
    child.parent_id = Some(parent.id.clone());
    child.priority = parent.priority;
    let start = control_event("Start", &child.id, Version::NEW);
    let commit = Commit::new().emit(Some(&child.id), start);
    (child, commit)
}
