//! The bugs, each in a file of its own.

mod dedupe_marker;
mod json_cache;
mod lock_release;
mod rate_limiter;
mod setnx_expire;
mod shared_watch;

use fakeserver::explore::{ExploreError, Report};

type Explored = Result<Report, ExploreError>;

/// A bug, as a wrong program and the right one.
pub(crate) struct Bug {
    pub(crate) name: &'static str,
    wrong: fn() -> Explored,
    right: fn() -> Explored,
}

pub(crate) const BUGS: [Bug; 6] = [
    Bug {
        name: "a lock is looked at, then released",
        wrong: lock_release::wrong,
        right: lock_release::right,
    },
    Bug {
        name: "SETNX, then EXPIRE",
        wrong: setnx_expire::wrong,
        right: setnx_expire::right,
    },
    Bug {
        name: "a rate limiter that reads, then counts",
        wrong: rate_limiter::wrong,
        right: rate_limiter::right,
    },
    Bug {
        name: "a cached JSON text is read, changed and written back",
        wrong: json_cache::wrong,
        right: json_cache::right,
    },
    Bug {
        name: "WATCH on a connection that tasks share",
        wrong: shared_watch::wrong,
        right: shared_watch::right,
    },
    Bug {
        name: "a message is marked as seen before its effect",
        wrong: dedupe_marker::wrong,
        right: dedupe_marker::right,
    },
];

impl Bug {
    /// What the explorer says of both.
    pub(crate) fn text(&self) -> Result<String, ExploreError> {
        let (name, wrong, right) = (self.name, (self.wrong)()?, (self.right)()?);
        Ok(format!("== {name}\n\n{wrong}\n\n{right}\n"))
    }
}
