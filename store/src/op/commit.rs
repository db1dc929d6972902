//! Which of the two ways a commit takes.

use super::{CommitByScript, CommitByWatch, Operation, Replies, Step};
use crate::{Commit, CommitPath, Committed, Execution, Settings, StoreError};

/// A commit on the path that the settings choose.
#[derive(Debug)]
pub enum CommitOperation {
    /// Only the row and the dedupe mark change: one script.
    Script(CommitByScript),
    /// Everything else: `WATCH`, `MULTI`, `EXEC`.
    Watch(Box<CommitByWatch>),
}

impl CommitOperation {
    /// Of this execution, with these effects. Everything is checked and spelled here; Redis has not been asked yet.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for input that can not be stored without breaking a guarantee.
    pub fn new(
        settings: &Settings,
        execution: &Execution,
        commit: &Commit,
    ) -> Result<Self, StoreError> {
        if commit.is_state_only() && settings.path() == CommitPath::Mixed {
            return CommitByScript::new(settings, execution, commit).map(Self::Script);
        }
        CommitByWatch::new(settings, execution, commit)
            .map(Box::new)
            .map(Self::Watch)
    }
}

impl Operation for CommitOperation {
    type Output = Committed;

    fn step(&mut self, replies: Replies) -> Step<Committed> {
        match self {
            Self::Script(commit) => commit.step(replies),
            Self::Watch(commit) => commit.step(replies),
        }
    }
}
