//! Which of the two ways a commit takes.

use super::{CommitByScript, CommitByWatch, Operation, Replies, Step, Writes};
use crate::{Attempt, Commit, CommitPath, Committed, Document, Settings, StoreError, Version};

/// A commit on the path that the settings choose.
#[derive(Debug)]
pub enum CommitOperation {
    /// One script.
    Script(Box<CommitByScript>),
    /// `WATCH`, `MULTI`, `EXEC`.
    Watch(Box<CommitByWatch>),
}

impl CommitOperation {
    /// Of this document, with these effects. Everything is checked and spelled here; Redis has not been asked yet.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for input that can not be stored without breaking a guarantee.
    pub fn new<D: Document>(
        settings: &Settings,
        document: &D,
        commit: &Commit,
    ) -> Result<Self, StoreError> {
        let writes = Writes::new(settings, document, commit)?;
        Ok(Self::of(settings, writes, commit))
    }

    /// Of a document that must not be there yet; a row in its place is [`StoreError::AlreadyExists`].
    ///
    /// # Errors
    /// As for [`CommitOperation::new`], and [`StoreError::Invalid`] for a document that was loaded.
    pub fn creating<D: Document>(
        settings: &Settings,
        document: &D,
        commit: &Commit,
    ) -> Result<Self, StoreError> {
        let writes = Writes::creating(settings, document, commit)?;
        Ok(Self::of(settings, writes, commit))
    }

    fn of(settings: &Settings, mut writes: Writes, commit: &Commit) -> Self {
        let by_script = match settings.path() {
            CommitPath::Script => true,
            CommitPath::Mixed => commit.is_state_only(),
            CommitPath::Watch => false,
        };
        if commit.is_state_only() {
            // Without strictness: the Python store records an empty event id only beside other effects.
            writes.processed_event_id = writes.processed_event_id.filter(|id| !id.is_empty());
        }
        if by_script {
            Self::Script(Box::new(CommitByScript::of(writes)))
        } else {
            Self::Watch(Box::new(CommitByWatch::of(writes)))
        }
    }

    /// What is needed to find out later whether it landed: to be kept where the call may not get to say so, because its
    /// future is dropped or its process ends. The same is in [`StoreError::Indeterminate`].
    pub fn attempt(&self) -> Attempt {
        match self {
            Self::Script(commit) => commit.attempt(),
            Self::Watch(commit) => commit.attempt(),
        }
    }
}

impl Operation for CommitOperation {
    const NAME: &'static str = "commit";

    type Output = Committed;

    fn name(&self) -> &'static str {
        match self {
            Self::Script(commit) => commit.name(),
            Self::Watch(commit) => commit.name(),
        }
    }

    fn expected(&self) -> Option<Version> {
        match self {
            Self::Script(commit) => commit.expected(),
            Self::Watch(commit) => commit.expected(),
        }
    }

    fn step(&mut self, replies: Replies) -> Step<Committed> {
        match self {
            Self::Script(commit) => commit.step(replies),
            Self::Watch(commit) => commit.step(replies),
        }
    }
}
