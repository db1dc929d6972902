//! [`Rehearsal`]: a schedule that ran here, and [`Confirmation`]: whether a real server answers the same.
//!
//! The commands are issued again, one at a time and in their order, on as many connections. What the clients would have sent after
//! another reply is not known: the comparison ends at the first difference.

mod alike;
mod stage;

use std::fmt;
use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::stage::{Halt, Stage};
use super::trace::Trace;
use crate::remote::snapshot::Snapshot;
use crate::remote::{self, Address};
use crate::wire::Request;

/// Whether a real server answers a schedule's commands as they were answered here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmation {
    /// Which server, `redis-server 7.0.15`.
    pub server_version: String,
    /// Whether every reply and the final key space are the same.
    pub same: bool,
    /// The first reply or key that is not.
    pub first_difference: Option<String>,
    /// Replies that depend on chance or on the server's clock, of which only the type was compared.
    pub by_type_only: usize,
}

impl fmt::Display for Confirmation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.first_difference {
            None if self.same => write!(f, "the same on {}", self.server_version),
            None => write!(f, "not the same on {}", self.server_version),
            Some(difference) => write!(f, "not the same on {}: {difference}", self.server_version),
        }
    }
}

/// Why a schedule could not be tried on a real server.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfirmError {
    /// It is no URL of the form that is understood.
    #[error("{0} is not of the form redis://[[user]:password@]host[:port]")]
    Address(String),
    /// It cannot be reached, or may not be emptied.
    #[error("server: {0}")]
    Server(#[from] io::Error),
    /// A step that only happens to a server of our own: a fail-over, or a time-out that takes too long in real time.
    #[error("step {0} of the schedule cannot happen to a server elsewhere")]
    Unsupported(usize),
}

/// A schedule that ran, with all that it takes to run its commands elsewhere.
#[derive(Clone, Debug)]
pub struct Rehearsal {
    /// What ran.
    pub trace: Trace,
    /// What filled the server before.
    pub(super) preparation: Vec<Request>,
    /// The key space at the end.
    pub(super) left: Snapshot,
    /// Virtual time at the end.
    pub(super) ended: Duration,
}

impl Rehearsal {
    /// Issues the commands again on the server of a URL, `redis://[[user]:password@]host[:port]`, which has to be empty, and is
    /// empty again at the end.
    ///
    /// # Errors
    /// If the schedule cannot be tried there, see [`ConfirmError`]. A difference is no error.
    pub fn confirm_on(&self, url: &str) -> Result<Confirmation, ConfirmError> {
        let address = Address::parse(url).ok_or_else(|| ConfirmError::Address(url.to_owned()))?;
        let mut own = address.connect()?;
        let server_version = remote::version_if_empty(&mut own)?;
        let mut stage = Stage::new(address, own);
        let played = stage.play(self);
        stage.clean_up();
        let first_difference = match played {
            Ok(()) => None,
            Err(Halt::Differs(what)) => Some(what),
            Err(Halt::Failed(error)) => return Err(error),
        };
        Ok(Confirmation {
            server_version,
            same: first_difference.is_none(),
            first_difference,
            by_type_only: stage.by_type_only,
        })
    }
}
