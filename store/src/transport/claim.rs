//! Taking a lease.

use std::{mem, time::Duration};

use redis::Value;

use super::{
    Claimed, Clock, DeadLetter, Deliveries, Lease, NextReady, Priority, Settle,
    call::{CLAIM, corrupt},
    milliseconds,
};
use crate::{
    Settings, StoreError, codec,
    op::{Call, Operation, Replies, Step, over, reply},
};

/// How many dead letters one claim moves out of the way before it answers without a lease.
pub const BURIALS_MAX: usize = 16;

/// One script: the lease of the group that has waited longest, with its oldest event.
///
/// Of the groups that are due and not locked the one with the lowest time wins; on a tie the one of lower priority. What
/// it finds on the way it repairs: groups without events leave their tier, locked groups that are due move to the end of
/// their lock, so that they fill nobody's window; a group that is not locked is claimable, even if a worker with a fast clock
/// has put it off. A group whose keys are not a transport's is passed over; it is reported
/// ([`StoreError::Corrupt`]) when nothing else is claimable.
///
/// An event that cannot be read, or was delivered too often ([`Claim::counting`]), goes to the dead letters under the lease's
/// fence (one more round trip), and the claim goes on with the next group.
///
/// The script can declare the tiers only: which group it will find is what it is asked. The queues and locks that it then
/// uses have the same prefix, so that on a cluster a `{tag}` in it keeps them all in the one slot that the declared keys
/// lead to; without a tag the tiers themselves lie apart and the server refuses the script before it runs.
///
/// A lost reply is [`StoreError::Io`]: claiming again is safe; a lease that nobody knows of ends by itself.
#[derive(Debug)]
pub struct Claim {
    settings: Settings,
    clock: Clock,
    token: String,
    min_priority: Priority,
    deliveries: Deliveries,
    call: Call,
    burial: Option<(Settle, DeadLetter)>,
    buried: Vec<DeadLetter>,
}

impl Claim {
    /// With this token, which no lease has had before, for so long, of a group of at least this priority.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a visibility that is out of range.
    pub fn new(
        settings: &Settings,
        clock: Clock,
        token: String,
        visibility: Duration,
        min_priority: Priority,
    ) -> Result<Self, StoreError> {
        let keys = settings.keys();
        let arguments = vec![
            clock.argument(),
            token.as_bytes().to_vec(),
            milliseconds("visibility", visibility)?
                .to_string()
                .into_bytes(),
            keys.queue("").into_bytes(),
            keys.lock("").into_bytes(),
            Vec::new(),
        ];
        Ok(Self {
            settings: settings.clone(),
            clock,
            token,
            min_priority,
            deliveries: Deliveries::Uncounted,
            call: Call::new(&CLAIM, keys.tiers(min_priority).collect(), arguments),
            burial: None,
            buried: Vec::new(),
        })
    }

    /// Sets whether deliveries are counted, and how many an event may have.
    #[must_use]
    pub fn counting(mut self, deliveries: Deliveries) -> Self {
        self.deliveries = deliveries;
        let counts = self.settings.keys().tries("").into_bytes();
        let is_counted = deliveries != Deliveries::Uncounted;
        self.call
            .set_last_argument(if is_counted { counts } else { Vec::new() });
        self
    }

    fn claimed(&mut self, replies: Replies) -> Step<Claimed> {
        let answer = replies.harmless().and_then(|[answer]| self.answer(answer));
        match answer {
            Err(error) => Step::Done(Err(error)),
            Ok(Answer::Found(lease)) => self.done(Some(lease), None),
            Ok(Answer::Nothing(next)) => self.done(None, next),
            Ok(Answer::Dead(letter)) => {
                let holder = (&*letter.group_id, &*self.token);
                let is_counted = self.deliveries != Deliveries::Uncounted;
                let burial = Settle::bury(&self.settings, self.clock, holder, is_counted);
                self.burial = Some((burial, letter));
                self.bury(Replies::Start)
            }
        }
    }

    fn bury(&mut self, replies: Replies) -> Step<Claimed> {
        let Some((mut burial, letter)) = self.burial.take() else {
            return over();
        };
        match burial.step(replies) {
            Step::Send(batch) => {
                self.burial = Some((burial, letter));
                Step::Send(batch)
            }
            Step::Done(Err(error)) => Step::Done(Err(error)),
            Step::Done(Ok(done)) => {
                // Not done: the lease has ended meanwhile, and whoever has it now meets the same payload.
                if done {
                    self.buried.push(letter);
                }
                if !done || self.buried.len() >= BURIALS_MAX {
                    return self.done(None, None);
                }
                Step::Send(self.call.by_hash())
            }
        }
    }

    fn done(&mut self, lease: Option<Lease>, next_ready: Option<NextReady>) -> Step<Claimed> {
        Step::Done(Ok(Claimed {
            lease,
            buried: mem::take(&mut self.buried),
            next_ready,
        }))
    }

    fn answer(&self, answer: Value) -> Result<Answer, StoreError> {
        let malformed = || reply::unexpected("EVALSHA");
        let items = reply::items(self.call.accepted(answer)?).ok_or_else(malformed)?;
        let items: Option<Vec<Vec<u8>>> = items.into_iter().map(reply::bytes).collect();
        let items = items.ok_or_else(malformed)?;
        let items: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
        match *items.as_slice() {
            [b"lease", tier, group, payload, delivery] => {
                let tier: u8 = number(tier).ok_or_else(malformed)?;
                self.found(tier, group, payload, number(delivery))
            }
            [b"none", now, next] => {
                let now_ms = number(now).ok_or_else(malformed)?;
                let next_ready_ms = number(next);
                Ok(Answer::Nothing(next_ready_ms.map(|next_ready_ms| {
                    NextReady {
                        now_ms,
                        next_ready_ms,
                    }
                })))
            }
            [b"corrupt", key] => Err(corrupt(&String::from_utf8_lossy(key))),
            _ => Err(malformed()),
        }
    }

    fn found(
        &self,
        tier: u8,
        group: &[u8],
        payload: &[u8],
        delivery: Option<u32>,
    ) -> Result<Answer, StoreError> {
        // The first tier that was asked for is number 1 of the script.
        let priority = Priority::clamped(i64::from(self.min_priority.get()) + i64::from(tier) - 1);
        let Ok(group_id) = String::from_utf8(group.to_vec()) else {
            return Err(StoreError::Corrupt {
                key: self.settings.keys().ready(priority),
                field: Some(String::from_utf8_lossy(group).into_owned()),
                reason: "the name of the group is not UTF-8".to_owned(),
            });
        };
        let event = match self.deliveries {
            Deliveries::AtMost(most) if delivery > Some(most.get()) => {
                Err(format!("delivered {most} times, and never settled"))
            }
            _ => codec::decode_event(payload),
        };
        Ok(match event {
            Ok(event) => Answer::Found(Lease {
                group_id,
                event,
                token: self.token.clone(),
                priority,
                delivery,
            }),
            Err(reason) => Answer::Dead(DeadLetter {
                group_id,
                payload: payload.to_vec(),
                reason,
            }),
        })
    }
}

impl Operation for Claim {
    const NAME: &'static str = "claim";

    type Output = Claimed;

    fn step(&mut self, replies: Replies) -> Step<Claimed> {
        if self.burial.is_some() {
            return self.bury(replies);
        }
        match self.call.next(&replies) {
            Some(batch) => Step::Send(batch),
            None => self.claimed(replies),
        }
    }
}

enum Answer {
    Found(Lease),
    Dead(DeadLetter),
    Nothing(Option<NextReady>),
}

fn number<N: std::str::FromStr>(text: &[u8]) -> Option<N> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
