//! Which outcomes of a schedule are right.

use std::collections::BTreeSet;

use super::{A, B, Candidate, Search};
use crate::sweep::SweepError;
use crate::sweep::conductor::{Ran, Turn};
use crate::sweep::rules::{Clause, Scope};
use crate::sweep::schedule::{Act, Schedule};
use crate::sweep::seen::Seen;

impl Search {
    /// The orders that would be right for a schedule, and what is compared.
    pub(super) async fn right_orders(
        &mut self,
        schedule: Schedule,
        ran: &Ran,
    ) -> Result<(Vec<Vec<Turn>>, Scope), SweepError> {
        let of = schedule.of;
        let whole = self.context(of);
        let before = self.before(of);
        let remains = Scope::Remains { of };
        let succeeded = match schedule.act {
            Act::RunOther | Act::Expire | Act::ExpireAndRunOther => true,
            Act::Die => false,
            _ => {
                let reference = self.reference(&whole).await?;
                ran.status(of) == reference.status(of)
            }
        };
        // The interrupted program may seem to have run before or after what happened.
        let around = |event: Turn| {
            let own = Turn::Run(of);
            vec![
                [before.clone(), vec![own, event]].concat(),
                [before.clone(), vec![event, own]].concat(),
            ]
        };
        Ok(match (schedule.act, succeeded) {
            (Act::RunOther, _) => (vec![vec![A, B], vec![B, A]], Scope::Whole),
            (Act::ExpireAndRunOther | Act::Expire, _) => {
                let Some(expiry) = ran.expired_at.map(Turn::Pass) else {
                    return Ok((vec![whole], Scope::Whole));
                };
                let (own, rival) = (Turn::Run(of), Turn::Run(of.rival()));
                let orders = match schedule.act {
                    Act::Expire => around(expiry),
                    // The other one ran when the keys had expired.
                    _ => vec![
                        vec![own, expiry, rival],
                        vec![expiry, own, rival],
                        vec![expiry, rival, own],
                    ],
                };
                (orders, Scope::Whole)
            }
            (Act::RestartEmpty, true) => (around(Turn::Wipe), Scope::Healed),
            (Act::RestartEmpty, false) => {
                let lost = [before, vec![Turn::Wipe]].concat();
                let orders = vec![lost.clone(), [lost, vec![Turn::Run(of)]].concat()];
                (orders, remains)
            }
            (_, true) => (vec![whole], Scope::Healed),
            (_, false) => (vec![before, whole], remains),
        })
    }

    /// Whether a run gave what none of the right orders gives.
    pub(in crate::sweep) async fn judge(
        &mut self,
        schedule: Schedule,
        ran: Ran,
    ) -> Result<Option<Candidate>, SweepError> {
        let (orders, scope) = self.right_orders(schedule, &ran).await?;
        let outcome = self.outcome(&ran);
        let mut mismatches = Vec::new();
        let mut seen = BTreeSet::new();
        for turns in &orders {
            if !seen.insert(turns.clone()) {
                continue;
            }
            let reference = self.reference(turns).await?;
            let reference = self.outcome(&reference);
            let found = self.rules.mismatches(&outcome, &reference, scope);
            if found.is_empty() && !ran.stuck {
                return Ok(None);
            }
            if self.rules.lacks(scope.clause(schedule.act)) {
                return Ok(None);
            }
            mismatches.push(found);
        }
        Ok(Some(Candidate {
            schedule,
            also: Vec::new(),
            ran,
            orders,
            mismatches,
        }))
    }

    /// Whether the server gives for a schedule what another one gave, and for the serial orders something else.
    pub(in crate::sweep) async fn confirms(
        &mut self,
        candidate: &Candidate,
    ) -> Result<bool, SweepError> {
        let schedule = candidate.schedule;
        let ran = self
            .counted("confirm", self.turns_of(schedule), Some(schedule))
            .await?;
        let (_, scope) = self.right_orders(schedule, &ran).await?;
        let (there, here) = (self.outcome(&ran), self.outcome(&candidate.ran));
        let is_same = self.rules.mismatches(&there, &here, scope).is_empty();
        Ok(is_same && self.judge(schedule, ran).await?.is_some())
    }

    /// What the judges of causes are to know of a finding: the interrupted program is A there. What a program that died would
    /// have done next is added at the end.
    pub(in crate::sweep) async fn seen(
        &mut self,
        candidate: &Candidate,
    ) -> Result<Vec<Seen>, SweepError> {
        let Schedule { of, point, act } = candidate.schedule;
        let mut seen: Vec<_> = candidate
            .ran
            .steps
            .iter()
            .map(|step| step.seen(of))
            .collect();
        if act == Act::Die {
            let base = self.base(of).await?;
            let missing = base
                .get(point..)
                .unwrap_or_default()
                .iter()
                .map(|step| Seen {
                    missing: true,
                    reply: None,
                    ..step.seen(of)
                });
            seen.extend(missing);
        }
        Ok(seen)
    }
}

impl Scope {
    /// The clause by which a schedule is judged.
    fn clause(self, act: Act) -> Clause {
        match (self, act) {
            (_, Act::RunOther) => Clause::Serial,
            (_, Act::Expire | Act::ExpireAndRunOther) => Clause::Expiry,
            (Scope::Whole | Scope::Healed, _) => Clause::Done,
            (Scope::Remains { .. }, _) => Clause::AllOrNothing,
        }
    }
}
