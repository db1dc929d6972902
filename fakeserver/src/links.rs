//! Connections to other servers, over which `MIGRATE` moves keys (cluster.c, `migrateGetSocket`). They are kept for a while, since
//! keys are moved in rows.

#![cfg_attr(
    not(feature = "net"),
    allow(dead_code, reason = "there is nobody to open connections")
)]

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use thiserror::Error;

use crate::clock::Timestamp;
use crate::running::Interlude;
use crate::value::Blob;

/// Connections that are kept at most; for one more another one goes (`MIGRATE_SOCKET_CACHE_ITEMS`).
const LINKS_MAX: usize = 64;

/// Seconds without use behind which a connection is closed: Redis looks once a second for those unused for more than ten
/// (`MIGRATE_SOCKET_CACHE_TTL`).
const IDLE_SECONDS: i64 = 11;

/// Where another server listens, by the words of a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub host: Blob,
    pub port: Blob,
}

/// A connection to another server. Its calls last until they have succeeded or failed: meanwhile nobody else is served, as with
/// Redis.
pub(crate) trait Link: fmt::Debug + Send {
    /// Sends bytes.
    fn send(&mut self, bytes: &[u8], patience: &Patience<'_>) -> Result<(), LinkError>;

    /// The next line of what the other server sends, without its end. Long ones come in pieces.
    fn receive_line(&mut self, patience: &Patience<'_>) -> Result<Vec<u8>, LinkError>;
}

/// How long a call of a [`Link`] may take, in time that passes whatever the server's clock shows.
#[derive(Debug)]
pub(crate) struct Patience<'a> {
    pub timeout: Duration,
    /// Whoever drives the engine: when it is to end, nothing is waited for any more.
    pub driver: &'a dyn Interlude,
}

/// Why a call of a [`Link`] did not succeed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum LinkError {
    /// There is no way to the other server: an unknown name, or nobody here to open connections.
    #[error("no way to the other server")]
    NoWay,
    /// Time is over.
    #[error("the other server takes too long")]
    TimedOut,
    /// The connection was refused or has ended.
    #[error("the connection has ended")]
    Closed,
}

/// The connections of an engine.
#[derive(Debug, Default)]
pub(crate) struct Links {
    open: BTreeMap<Place, Kept>,
}

/// A connection and what is known of the other end.
#[derive(Debug)]
pub(crate) struct Kept {
    pub link: Box<dyn Link>,
    /// The database that was selected there, -1 if that is not known.
    pub db: i64,
    /// When it was last taken for use, in seconds since the epoch.
    used_at: i64,
}

impl Kept {
    /// A new connection.
    pub(crate) fn new(link: Box<dyn Link>) -> Kept {
        Kept {
            link,
            db: -1,
            used_at: 0,
        }
    }
}

impl Links {
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Takes the connection to a place for use, if there is one.
    pub(crate) fn take(&mut self, place: &Place) -> Option<Kept> {
        self.open.remove(place)
    }

    /// Makes room for one more: if there are too many, any one is closed.
    pub(crate) fn make_room(&mut self, rng: &mut fastrand::Rng) {
        if self.open.len() >= LINKS_MAX {
            let chosen = self.open.keys().nth(rng.usize(..self.open.len()));
            if let Some(place) = chosen.cloned() {
                self.open.remove(&place);
            }
        }
    }

    /// Keeps a connection that was used just now.
    pub(crate) fn keep(&mut self, place: Place, mut kept: Kept, now: Timestamp) {
        kept.used_at = now.seconds();
        self.open.insert(place, kept);
    }

    /// When [`Links::close_idle`] has something to do.
    pub(crate) fn next_close(&self) -> Option<Timestamp> {
        let used_at = self.open.values().map(|kept| kept.used_at).min()?;
        let at_seconds = used_at.saturating_add(IDLE_SECONDS);
        Some(Timestamp::from_millis(at_seconds.saturating_mul(1000)))
    }

    /// Closes connections that were not used for a while.
    pub(crate) fn close_idle(&mut self, now: Timestamp) {
        let oldest = now.seconds().saturating_sub(IDLE_SECONDS);
        self.open.retain(|_, kept| kept.used_at > oldest);
    }
}
