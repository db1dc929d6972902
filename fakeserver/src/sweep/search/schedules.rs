//! Which schedules there are, and which of them can matter.

use super::{Candidate, Search};
use crate::footprint::{Audience, Footprint, SessionState, Static};
use crate::sweep::SweepError;
use crate::sweep::conductor::{Ran, Turn};
use crate::sweep::rules::Clause;
use crate::sweep::schedule::{Act, Kind, Role, Schedule};
use crate::sweep::step::Step;
use crate::wire::Request;

impl Search {
    /// Tries all schedules of these kinds.
    pub(in crate::sweep) async fn explore(
        &mut self,
        kinds: &[Kind],
    ) -> Result<Vec<Candidate>, SweepError> {
        let mut found = Vec::new();
        let subjects: &[Role] = match (self.has_b(), self.is_symmetric) {
            (true, false) => &[Role::A, Role::B],
            _ => &[Role::A],
        };
        for kind in Kind::ALL.into_iter().filter(|kind| kinds.contains(kind)) {
            for of in subjects {
                match kind {
                    Kind::Isolation if !self.has_b() => {}
                    Kind::Isolation => self.isolate(*of, &mut found).await?,
                    Kind::Crash => self.crash(*of, &mut found).await?,
                    Kind::LostReply => {
                        let resets = kinds.contains(&Kind::Restart);
                        self.lose_replies(*of, resets, &mut found).await?;
                    }
                    Kind::Expiry => self.expire(*of, &mut found).await?,
                    Kind::Restart => self.restart(*of, &mut found).await?,
                }
            }
        }
        Ok(grouped(found))
    }

    fn skip(&mut self, kind: Kind) {
        *self.skipped.entry(kind.name()).or_default() += 1;
    }

    /// A program's visible commands when nothing but the turns in front of it came before.
    pub(super) async fn base(&mut self, of: Role) -> Result<Vec<Step>, SweepError> {
        Ok(own_steps(&*self.reference(&self.context(of)).await?, of))
    }

    /// Runs and judges a schedule; what was run.
    async fn check(
        &mut self,
        schedule: Schedule,
        found: &mut Vec<Candidate>,
    ) -> Result<Option<Ran>, SweepError> {
        let Some(ran) = self.try_schedule(schedule).await? else {
            return Ok(None);
        };
        found.extend(self.judge(schedule, ran.clone()).await?);
        Ok(Some(ran))
    }

    /// The other program runs whole before each command. Places between which no command can matter to it are one.
    async fn isolate(&mut self, of: Role, found: &mut Vec<Candidate>) -> Result<(), SweepError> {
        let (own, rival) = (Turn::Run(of), Turn::Run(of.rival()));
        let base = own_steps(&*self.reference(&[own, rival]).await?, of);
        // The order in which the other one is first is the run at point 0.
        let first = self.reference(&[rival, own]).await?;
        let mut same_until = same_places(&first, of, 0, &other_footprints(&first, of));
        for point in points(&base) {
            if same_until.is_some_and(|until| point <= until) {
                self.skip(Kind::Isolation);
                continue;
            }
            if self.rules.lacks(Clause::Conflicts) {
                continue;
            }
            let schedule = Schedule {
                of,
                point,
                act: Act::RunOther,
            };
            let Some(ran) = self.check(schedule, found).await? else {
                continue;
            };
            same_until = same_places(&ran, of, point, &other_footprints(&ran, of));
        }
        Ok(())
    }

    /// The program dies behind each command that changed something.
    async fn crash(&mut self, of: Role, found: &mut Vec<Candidate>) -> Result<(), SweepError> {
        let base = self.base(of).await?;
        for (point, piece) in pieces(&base) {
            if piece.iter().any(|step| step.changed) {
                let act = Act::Die;
                self.check(Schedule { of, point, act }, found).await?;
            } else {
                self.skip(Kind::Crash);
            }
        }
        Ok(())
    }

    /// Each reply is lost. That of a command that changed nothing is like a connection that was reset before it.
    async fn lose_replies(
        &mut self,
        of: Role,
        resets: bool,
        found: &mut Vec<Candidate>,
    ) -> Result<(), SweepError> {
        let base = self.base(of).await?;
        let starts = std::iter::once(0).chain(points(&base));
        let starts: Vec<_> = starts.filter(|point| *point < base.len()).collect();
        for (at, point) in starts.iter().enumerate() {
            let end = starts.get(at + 1).copied().unwrap_or(base.len());
            let piece = base.get(*point..end).unwrap_or_default();
            if resets && *point > 0 && !piece.iter().any(|step| step.changed) {
                self.skip(Kind::LostReply);
                continue;
            }
            let schedule = Schedule {
                of,
                point: *point,
                act: Act::LoseReply,
            };
            self.check(schedule, found).await?;
        }
        Ok(())
    }

    /// Keys expire between two commands, and the other program runs then.
    async fn expire(&mut self, of: Role, found: &mut Vec<Candidate>) -> Result<(), SweepError> {
        let base = self.base(of).await?;
        let (mut same_until, mut same_with_other) = (None, None);
        for (point, piece) in pieces(&base) {
            if !piece.last().is_some_and(|step| step.mortal) {
                continue;
            }
            let try_it = |until: Option<usize>| until.is_none_or(|until| point > until);
            if try_it(same_until) {
                let act = Act::Expire;
                if let Some(ran) = self.check(Schedule { of, point, act }, found).await? {
                    same_until = same_places(&ran, of, point, &expired_footprints(&ran));
                }
            } else {
                self.skip(Kind::Expiry);
            }
            if !self.has_b() {
                continue;
            }
            if try_it(same_with_other) {
                let act = Act::ExpireAndRunOther;
                if let Some(ran) = self.check(Schedule { of, point, act }, found).await? {
                    let mut footprints = expired_footprints(&ran);
                    footprints.extend(other_footprints(&ran, of));
                    same_with_other = same_places(&ran, of, point, &footprints);
                }
            } else {
                self.skip(Kind::Expiry);
            }
        }
        Ok(())
    }

    /// The server or its connections go and come back between two commands.
    async fn restart(&mut self, of: Role, found: &mut Vec<Candidate>) -> Result<(), SweepError> {
        let base = self.base(of).await?;
        for point in points(&base) {
            let rest = base.get(point..).unwrap_or_default();
            let calls_now = rest.first().is_some_and(Step::calls_by_hash);
            let calls_later = rest.iter().any(Step::calls_by_hash);
            for (act, matters) in [
                (Act::FlushScripts, calls_now),
                (Act::Reset, true),
                (Act::RestartKept, calls_later),
                (Act::RestartEmpty, true),
            ] {
                if matters {
                    self.check(Schedule { of, point, act }, found).await?;
                } else {
                    self.skip(Kind::Restart);
                }
            }
        }
        Ok(())
    }
}

/// Findings with the same differences are one: the first place stands for them.
fn grouped(found: Vec<Candidate>) -> Vec<Candidate> {
    let mut groups: Vec<((Kind, Role, String), Candidate)> = Vec::new();
    for candidate in found {
        let signature = candidate.signature();
        match groups.iter_mut().find(|(known, _)| *known == signature) {
            Some((_, first)) => first.also.push(candidate.schedule),
            None => groups.push((signature, candidate)),
        }
    }
    groups.into_iter().map(|(_, candidate)| candidate).collect()
}

/// A program's visible commands.
fn own_steps(ran: &Ran, of: Role) -> Vec<Step> {
    let own = ran
        .steps
        .iter()
        .filter(|step| step.role == Some(of) && step.point.is_some());
    own.cloned().collect()
}

/// Places between what a program sends, but for its beginning.
fn points(steps: &[Step]) -> Vec<usize> {
    let begin = steps.iter().skip(1).filter(|step| step.begins);
    begin.filter_map(|step| step.point).collect()
}

/// Each of those places with the commands right before it.
fn pieces(steps: &[Step]) -> Vec<(usize, Vec<Step>)> {
    let mut start = 0;
    let piece = |point: usize| {
        let piece = steps.get(start..point).unwrap_or_default().to_vec();
        start = point;
        (point, piece)
    };
    points(steps).into_iter().map(piece).collect()
}

/// What the other program touched.
fn other_footprints(ran: &Ran, of: Role) -> Vec<Footprint> {
    let other = of.rival();
    let steps = ran.steps.iter().filter(|step| step.role == Some(other));
    steps.map(|step| step.footprint.clone()).collect()
}

/// The keys that expired, as if they had been deleted, and the time that passed.
fn expired_footprints(ran: &Ran) -> Vec<Footprint> {
    let events = ran
        .steps
        .iter()
        .filter(|step| step.role.is_none() && !step.request.is_empty());
    let delete = |step: &Step| {
        let words = std::iter::once(&b"DEL"[..]).chain(step.request.words());
        SessionState::default().footprint(&Static::of(&Request::new(words)))
    };
    events.map(delete).chain([Footprint::of_time()]).collect()
}

/// The last place up to which what happened at `from` might as well have happened: from there on no command of the program
/// conflicts with what happened, up to the one right before the next place. None if a program waited or heard of others' commands,
/// which makes places differ.
fn same_places(ran: &Ran, of: Role, from: usize, happened: &[Footprint]) -> Option<usize> {
    if !ran.labels.is_empty() || ran.audience != Audience::Nobody {
        return None;
    }
    let mut until = None;
    for step in ran.steps.iter().filter(|step| step.role == Some(of)) {
        let Some(point) = step.point.filter(|point| *point >= from) else {
            continue;
        };
        if happened
            .iter()
            .any(|other| other.conflicts(&step.footprint))
        {
            return until.or(Some(from));
        }
        until = Some(point + 1);
    }
    Some(usize::MAX)
}
