//! Orders from outside to a running execution, such that giving them twice is giving them once.

use serde_json::{Map, Value};

use crate::{Commit, Decision, Event, Execution, Status, Version};

/// An event whose id is made from the execution and the version that it was decided on: whoever decides the same on the same
/// version, again after a lost reply or at the same time, makes the same event, and the second one is dropped as handled.
///
/// ```
/// use store::{Version, control_event};
///
/// let event = control_event("Cancel", "order-17", Version::new(3));
/// assert_eq!(event.id, "cancel:order-17:3");
/// ```
pub fn control_event(kind: &str, execution_id: &str, version: Version) -> Event {
    let id = format!("{}:{execution_id}:{version}", kind.to_lowercase());
    Event::new(id, kind)
}

/// Asks an execution to cancel itself: status `CANCELLING`, and a `Cancel` event to itself in the same commit. Nothing is to be
/// done for one that has ended, or that was asked before. Made for `with_retry`:
///
/// ```no_run
/// use store::{Pacing, RedisStore, Retried, RetryPolicy, request_cancel};
///
/// let mut store = RedisStore::from_url("redis://127.0.0.1/")?;
/// let (policy, mut pacing) = (RetryPolicy::default(), Pacing::blocking());
/// let asked = store.with_retry("order-17", &policy, &mut pacing, |execution, _| {
///     request_cancel(execution, serde_json::Map::new())
/// })?;
/// assert!(!matches!(asked, Retried::Missing));
/// # Ok::<(), store::StoreError>(())
/// ```
pub fn request_cancel(execution: &mut Execution, reason: Map<String, Value>) -> Decision {
    if execution.status.is_finished() || execution.status == Status::Cancelling {
        return Decision::Leave;
    }
    let (id, version) = (execution.id.as_str(), execution.version);
    let mut event = control_event("Cancel", id, version);
    event.data = reason;
    // A mark of its own, by which a commit whose reply was lost is found again after others have committed.
    let mark = format!("cancel-request:{id}:{version}");
    let commit = Commit::for_event(mark).emit(Some(id), event);
    execution.status = Status::Cancelling;
    Decision::Commit(commit)
}
