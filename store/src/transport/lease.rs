//! What goes into a transport and comes out of it.

use std::{num::NonZeroU32, time::Duration};

use crate::{Event, Rejection, StoreError};

/// How urgent a group is: 0 (the least) to 4. A worker may ask for groups of a priority and above only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Priority(u8);

impl Priority {
    /// The least urgent.
    pub const MIN: Self = Self(0);
    /// The most urgent.
    pub const MAX: Self = Self(4);

    /// The nearest priority that there is, which is what the Python transport takes.
    pub fn clamped(number: i64) -> Self {
        Self(number.clamp(0, i64::from(Self::MAX.0)) as u8)
    }

    /// As a number.
    pub fn get(self) -> u8 {
        self.0
    }

    /// All of them, the least urgent first.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=Self::MAX.0).map(Self)
    }
}

impl TryFrom<u8> for Priority {
    type Error = StoreError;

    fn try_from(number: u8) -> Result<Self, StoreError> {
        if number > Self::MAX.0 {
            return Err(StoreError::Invalid {
                what: "priority",
                reason: Rejection::OutOfRange,
            });
        }
        Ok(Self(number))
    }
}

/// The right to handle the oldest event of a group, until it ends or is given back.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Lease {
    /// The group: the id of the execution that is to handle the event.
    pub group_id: String,
    /// The event; it stays at the head of the queue until it is acknowledged.
    pub event: Event,
    /// The fence: whoever holds the lock of the group has written this into it.
    pub token: String,
    /// The tier that the group was found in.
    pub priority: Priority,
    /// Which delivery of the event this is, from 1, if deliveries are counted ([`Deliveries`]).
    pub delivery: Option<u32>,
}

/// Whether it is counted how often an event is delivered, and how often it may be.
///
/// A delivery counts when its lease is given: also if its holder dies, or the reply is lost. It is taken back by `postpone`. The
/// count belongs to the event at the head of a queue and ends with it, or a day after its last lease. Claims and
/// settlements of workers that do not count, such as those of Python, leave it as it is, so that their deliveries are not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Deliveries {
    /// They are not: no key is used that the Python transport does not know.
    #[default]
    Uncounted,
    /// They are: [`Lease::delivery`] says how many there were.
    Counted,
    /// They are, and an event that was delivered so often without being settled is moved to the dead letters of its group by the
    /// claim that meets it next.
    AtMost(NonZeroU32),
}

/// What a claim came to.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Claimed {
    /// The lease; none if there is nothing to handle.
    pub lease: Option<Lease>,
    /// Events that nobody can read, or that were delivered too often, taken off their queues on the way.
    pub buried: Vec<DeadLetter>,
    /// When to ask again, if nothing is published before; none with a lease, or if nothing waits.
    pub next_ready: Option<NextReady>,
}

/// A payload that is not an event, or was delivered too often, moved to the dead letters of its group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The group.
    pub group_id: String,
    /// Exactly what was in the queue.
    pub payload: Vec<u8>,
    /// Why it is there.
    pub reason: String,
}

/// When something that waits becomes claimable, by the clock that the transport goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NextReady {
    /// The present, in milliseconds since the epoch.
    pub now_ms: u64,
    /// That moment; it may have passed.
    pub next_ready_ms: u64,
}

impl NextReady {
    /// How long to sleep: the same on any machine, whatever its clock says.
    pub fn wait(self) -> Duration {
        Duration::from_millis(self.next_ready_ms.saturating_sub(self.now_ms))
    }
}

/// How much waits, by priority.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backlog {
    /// The present that it was taken at, in milliseconds since the epoch.
    pub now_ms: u64,
    /// Each priority, the least urgent first.
    pub tiers: Vec<TierBacklog>,
}

impl Backlog {
    /// When the first group of at least this priority becomes claimable that is not claimable now.
    pub fn next_ready(&self, min_priority: Priority) -> Option<NextReady> {
        let wanted = self
            .tiers
            .iter()
            .filter(|tier| tier.priority >= min_priority);
        let next = wanted.filter_map(|tier| tier.next_ready_ms).min();
        next.map(|next_ready_ms| NextReady {
            now_ms: self.now_ms,
            next_ready_ms,
        })
    }
}

/// How much waits at one priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TierBacklog {
    /// The priority.
    pub priority: Priority,
    /// Groups with events, leased and parked ones among them.
    pub groups: u64,
    /// Those that are due.
    pub due: u64,
    /// When the first of the others is.
    pub next_ready_ms: Option<u64>,
}
