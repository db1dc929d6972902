//! What the holder of a lease does with it.

use std::time::Duration;

use super::{Clock, Lease, Priority, call::SETTLE, milliseconds};
use crate::{
    Settings, StoreError,
    op::{Call, Operation, Replies, Step, reply},
};

/// One script: ends or prolongs a lease if it still holds; whether it did. A stale lease changes nothing.
///
/// Whatever goes wrong with the connection is [`StoreError::Io`]: repeating it is harmless, since only the lease's own token
/// opens the lock. A repetition that answers `false` says either that the first one worked or that the lease had ended.
#[derive(Debug)]
pub struct Settle {
    call: Call,
    name: &'static str,
}

impl Settle {
    /// Takes the event off the queue and lets the group go on behind the others.
    pub fn ack(settings: &Settings, clock: Clock, lease: &Lease) -> Self {
        let (group, token) = (&lease.group_id, &lease.token);
        Self::of("ack", settings, clock, group, token, ("ack", 0))
    }

    /// Gives the event back: at once, or after a pause in which nobody gets the group (it is parked).
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a pause that is out of range.
    pub fn nack(
        settings: &Settings,
        clock: Clock,
        lease: &Lease,
        delay: Duration,
    ) -> Result<Self, StoreError> {
        let action = if delay.is_zero() {
            ("release", 0)
        } else {
            ("hold", milliseconds("delay", delay)?)
        };
        let (group, token) = (&lease.group_id, &lease.token);
        Ok(Self::of("nack", settings, clock, group, token, action))
    }

    /// Prolongs the lease: it ends so long after the present.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a time that is out of range.
    pub fn extend(
        settings: &Settings,
        clock: Clock,
        lease: &Lease,
        visibility: Duration,
    ) -> Result<Self, StoreError> {
        let (group, token) = (&lease.group_id, &lease.token);
        let action = ("hold", milliseconds("visibility", visibility)?);
        Ok(Self::of("extend", settings, clock, group, token, action))
    }

    /// Moves what is at the head of the queue to the dead letters and lets the group go on.
    pub(super) fn bury(settings: &Settings, clock: Clock, group: &str, token: &str) -> Self {
        Self::of("bury", settings, clock, group, token, ("bury", 0))
    }

    fn of(
        name: &'static str,
        settings: &Settings,
        clock: Clock,
        group: &str,
        token: &str,
        (action, duration_ms): (&str, u64),
    ) -> Self {
        let keys = settings.keys();
        let mut names = vec![keys.lock(group), keys.queue(group), keys.priorities()];
        names.extend(keys.tiers(Priority::MIN));
        names.push(keys.dead(group));
        let arguments = vec![
            clock.argument(),
            token.as_bytes().to_vec(),
            group.as_bytes().to_vec(),
            action.as_bytes().to_vec(),
            duration_ms.to_string().into_bytes(),
        ];
        Self {
            call: Call::new(&SETTLE, names, arguments),
            name,
        }
    }
}

impl Operation for Settle {
    const NAME: &'static str = "settle";

    type Output = bool;

    fn name(&self) -> &'static str {
        self.name
    }

    fn step(&mut self, replies: Replies) -> Step<bool> {
        if let Some(batch) = self.call.next(&replies) {
            return Step::Send(batch);
        }
        Step::Done(replies.harmless().and_then(|[settled]| {
            reply::integer(&self.call.accepted(settled)?)
                .map(|settled| settled == 1)
                .ok_or_else(|| reply::unexpected("EVALSHA"))
        }))
    }
}
