//! What is asked in each round, and what comes of it.

use crate::{Commit, Committed, StoreError};

/// What a round knows about those before it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Round {
    /// Its number, from 1.
    pub number: u32,
    /// What the one before it failed with: a conflict, or a connection.
    pub last_error: Option<StoreError>,
}

/// What the caller wants to be done with the document that it was shown.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Decision {
    /// Commit it as it is now, with these effects. If it conflicts, the caller is asked again about the document as it is
    /// then.
    Commit(Commit),
    /// Nothing: it is as it should be, or the caller gives up after a conflict.
    Leave,
}

/// What it came to.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Retried<D> {
    /// It was committed; the document at its new version.
    Committed(D, Committed),
    /// A commit whose reply was lost, or another one of the same event, has handled the event, and others have committed
    /// since; the document as it is now.
    Overtaken(D),
    /// The caller has left it.
    Left(D),
    /// There is no such row.
    Missing,
}
