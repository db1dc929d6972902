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

/// What a script does with a lease.
#[derive(Clone, Copy)]
struct Action {
    name: &'static str,
    verb: &'static str,
    duration_ms: u64,
    /// Whether the delivery is taken back from the count.
    is_uncounted: bool,
}

impl Action {
    fn new(name: &'static str, verb: &'static str) -> Self {
        Self {
            name,
            verb,
            duration_ms: 0,
            is_uncounted: false,
        }
    }

    fn giving_back(name: &'static str, delay: Duration) -> Result<Self, StoreError> {
        if delay.is_zero() {
            return Ok(Self::new(name, "release"));
        }
        Self::holding(name, "delay", delay)
    }

    fn holding(
        name: &'static str,
        what: &'static str,
        duration: Duration,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            duration_ms: milliseconds(what, duration)?,
            ..Self::new(name, "hold")
        })
    }
}

impl Settle {
    /// Takes the event off the queue and lets the group go on behind the others.
    pub fn ack(settings: &Settings, clock: Clock, lease: &Lease) -> Self {
        Self::of(settings, clock, lease, Action::new("ack", "ack"))
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
        let action = Action::giving_back("nack", delay)?;
        Ok(Self::of(settings, clock, lease, action))
    }

    /// As [`Settle::nack`], of an event that nothing is wrong with: the delivery is taken back from the count, if deliveries
    /// are counted.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a pause that is out of range.
    pub fn postpone(
        settings: &Settings,
        clock: Clock,
        lease: &Lease,
        delay: Duration,
    ) -> Result<Self, StoreError> {
        let action = Action {
            is_uncounted: true,
            ..Action::giving_back("postpone", delay)?
        };
        Ok(Self::of(settings, clock, lease, action))
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
        let action = Action::holding("extend", "visibility", visibility)?;
        Ok(Self::of(settings, clock, lease, action))
    }

    fn of(settings: &Settings, clock: Clock, lease: &Lease, action: Action) -> Self {
        let (group, token) = (&lease.group_id, &lease.token);
        let is_counted = lease.delivery.is_some();
        Self::call(settings, clock, (group, token), is_counted, action)
    }

    /// Moves what is at the head of the queue to the dead letters and lets the group go on.
    pub(super) fn bury(
        settings: &Settings,
        clock: Clock,
        (group, token): (&str, &str),
        is_counted: bool,
    ) -> Self {
        let action = Action::new("bury", "bury");
        Self::call(settings, clock, (group, token), is_counted, action)
    }

    fn call(
        settings: &Settings,
        clock: Clock,
        (group, token): (&str, &str),
        is_counted: bool,
        action: Action,
    ) -> Self {
        let keys = settings.keys();
        let mut names = vec![keys.lock(group), keys.queue(group), keys.priorities()];
        names.extend(keys.tiers(Priority::MIN));
        names.push(keys.dead(group));
        names.extend(is_counted.then(|| keys.tries(group)));
        let arguments = vec![
            clock.argument(),
            token.as_bytes().to_vec(),
            group.as_bytes().to_vec(),
            action.verb.as_bytes().to_vec(),
            action.duration_ms.to_string().into_bytes(),
            u8::from(action.is_uncounted).to_string().into_bytes(),
        ];
        Self {
            call: Call::new(&SETTLE, names, arguments),
            name: action.name,
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
