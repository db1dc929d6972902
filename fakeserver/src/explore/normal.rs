//! [`normal_form()`]: the same run in another order of its commands that commute, with as few switches between lanes as a walk
//! without search finds.
//!
//! Steps that depend on each other keep their order: those of one lane, those that conflict, and a step with the one after which
//! its command was sent. Any order that keeps these is the same run for clients and server, up to real-time order.

use std::time::Duration;

use super::schedule::{Choice, Lane};
use super::trace::Step;

/// Longer traces are left as they are: what depends on what takes a look at each pair.
const STEPS_MAX: usize = 4_000;

/// The steps in the order with the fewest preemptions and switches of all that were tried. None if there is none better than
/// the order in which they ran.
pub(super) fn normal_form(steps: &[Step]) -> Option<Vec<Choice>> {
    if steps.len() > STEPS_MAX {
        return None;
    }
    let walk = Walk::new(steps);
    let as_it_ran: Vec<usize> = (0..steps.len()).collect();
    let first_lanes = 0..walk.lanes.len();
    let tried =
        first_lanes.flat_map(|lane| [Next::Earliest, Next::Needed].map(|next| (lane, next)));
    let orders = tried.filter_map(|(lane, next)| walk.order(lane, next));
    let best = orders.min_by_key(|order| walk.cost(order))?;
    let better = walk.cost(&best) < walk.cost(&as_it_ran);
    better.then(|| {
        best.iter()
            .filter_map(|at| Some(steps.get(*at)?.choice))
            .collect()
    })
}

/// For each step those of other lanes that it depends on, the last one of each lane only. None at all for a long trace.
pub(super) fn dependencies(steps: &[Step]) -> Vec<Vec<usize>> {
    if steps.len() > STEPS_MAX {
        return vec![Vec::new(); steps.len()];
    }
    let lanes = lanes_of(steps);
    let mut found = Vec::with_capacity(steps.len());
    for (at, step) in steps.iter().enumerate() {
        let mut last: Vec<Option<usize>> = vec![None; lanes.len()];
        for (earlier, other) in steps.iter().enumerate().take(at) {
            let apart = other.choice.lane != step.choice.lane;
            // What was sent after a pause was not sent because of the step before it.
            let enabled = step.enabled_by == Some(earlier) && step.at == other.at;
            let depends = enabled || step.footprint.conflicts(&other.footprint);
            if let (true, Ok(lane)) = (apart && depends, lanes.binary_search(&other.choice.lane))
                && let Some(last) = last.get_mut(lane)
            {
                *last = Some(earlier);
            }
        }
        found.push(last.into_iter().flatten().collect());
    }
    found
}

/// [`dependencies`] but for those that follow from others.
pub(super) fn reduced(steps: &[Step], dependencies: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let lanes = lanes_of(steps);
    let lane_of = |at: usize| {
        let step = steps.get(at)?;
        lanes.binary_search(&step.choice.lane).ok()
    };
    // For each step the last one of each lane that happened before it, itself among them; counted from 1.
    let mut known: Vec<Vec<usize>> = Vec::with_capacity(steps.len());
    let mut last: Vec<Option<usize>> = vec![None; lanes.len()];
    let mut found = Vec::with_capacity(steps.len());
    for (at, after) in dependencies.iter().enumerate() {
        let Some(lane) = lane_of(at) else {
            continue;
        };
        let before = last.get_mut(lane).and_then(|last| last.replace(at));
        let all: Vec<usize> = after.iter().copied().chain(before).collect();
        let knows = |one: usize, other: usize| {
            let known = known.get(one).and_then(|known| known.get(lane_of(other)?));
            one != other && known > Some(&other)
        };
        let follows = |one: &usize| all.iter().any(|other| knows(*other, *one));
        found.push(after.iter().copied().filter(|one| !follows(one)).collect());
        let mut own = vec![0; lanes.len()];
        for other in &all {
            for (own, other) in own.iter_mut().zip(known.get(*other).into_iter().flatten()) {
                *own = (*own).max(*other);
            }
        }
        if let Some(own) = own.get_mut(lane) {
            *own = at + 1;
        }
        known.push(own);
    }
    found
}

fn lanes_of(steps: &[Step]) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = steps.iter().map(|step| step.choice.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    lanes
}

/// Who goes on when a lane cannot.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// Whoever did in the run.
    Earliest,
    /// The lane that it waits for.
    Needed,
}

/// Steps, and what each waits for.
struct Walk<'s> {
    steps: &'s [Step],
    /// The steps of each lane.
    lanes: Vec<Vec<usize>>,
    lane_of: Vec<usize>,
    waits_for: Vec<Vec<usize>>,
}

/// Time goes on only when no command can run: what was done before a pause stays before it.
fn keep_pauses(steps: &[Step], lane_of: &[usize], waits_for: &mut [Vec<usize>]) {
    let count = lane_of.iter().max().map_or(0, |most| most + 1);
    let mut last = vec![None; count];
    let mut before_pause = last.clone();
    let mut now = Duration::ZERO;
    for (at, ((step, lane), waits_for)) in steps.iter().zip(lane_of).zip(waits_for).enumerate() {
        if step.at > now {
            before_pause.clone_from(&last);
            now = step.at;
        }
        waits_for.extend(before_pause.iter().flatten());
        if let Some(last) = last.get_mut(*lane) {
            *last = Some(at);
        }
    }
}

/// How far a walk has come.
struct Progress {
    done: Vec<bool>,
    next: Vec<usize>,
}

impl<'s> Walk<'s> {
    fn new(steps: &'s [Step]) -> Walk<'s> {
        let names = lanes_of(steps);
        let mut lanes = vec![Vec::new(); names.len()];
        let mut lane_of = Vec::with_capacity(steps.len());
        for (at, step) in steps.iter().enumerate() {
            let lane = names.binary_search(&step.choice.lane).unwrap_or_default();
            lane_of.push(lane);
            if let Some(own) = lanes.get_mut(lane) {
                own.push(at);
            }
        }
        let mut waits_for = dependencies(steps);
        keep_pauses(steps, &lane_of, &mut waits_for);
        Walk {
            steps,
            lanes,
            lane_of,
            waits_for,
        }
    }

    /// One order that keeps what depends on each other: each lane goes on as long as it can.
    fn order(&self, first: usize, rule: Next) -> Option<Vec<usize>> {
        let mut progress = Progress {
            done: vec![false; self.steps.len()],
            next: vec![0; self.lanes.len()],
        };
        let mut order = Vec::with_capacity(self.steps.len());
        let mut lane = first;
        while order.len() < self.steps.len() {
            let Some(at) = self.ready(&progress, lane) else {
                lane = self.other(&progress, lane, rule)?;
                continue;
            };
            order.push(at);
            *progress.done.get_mut(at)? = true;
            *progress.next.get_mut(lane)? += 1;
        }
        Some(order)
    }

    /// The lane's next step.
    fn next(&self, progress: &Progress, lane: usize) -> Option<usize> {
        let next = progress.next.get(lane)?;
        self.lanes.get(lane)?.get(*next).copied()
    }

    fn missing(&self, progress: &Progress, at: usize) -> Option<usize> {
        let waits_for = self.waits_for.get(at)?;
        let missing = |at: &&usize| progress.done.get(**at) == Some(&false);
        waits_for.iter().find(missing).copied()
    }

    fn ready(&self, progress: &Progress, lane: usize) -> Option<usize> {
        let at = self.next(progress, lane)?;
        self.missing(progress, at).is_none().then_some(at)
    }

    /// A lane that can go on in place of this one. There always is one: the step that ran first of those left waits for none.
    fn other(&self, progress: &Progress, lane: usize, rule: Next) -> Option<usize> {
        let mut needed = lane;
        // Each step on this way ran before the one before it, so that it ends.
        while let (Next::Needed, Some(at)) = (rule, self.next(progress, needed)) {
            match self.missing(progress, at) {
                None => return Some(needed),
                Some(missing) => needed = *self.lane_of.get(missing)?,
            }
        }
        let ready = (0..self.lanes.len()).filter_map(|lane| self.ready(progress, lane));
        self.lane_of.get(ready.min()?).copied()
    }

    /// Preemptions, then switches. Whether a lane could have gone on is a guess: its next command was sent by then.
    fn cost(&self, order: &[usize]) -> (usize, usize) {
        let (mut preemptions, mut switches) = (0, 0);
        let mut place = vec![0; order.len()];
        for (to, at) in order.iter().enumerate() {
            if let Some(place) = place.get_mut(*at) {
                *place = to;
            }
        }
        let mut next = vec![0; self.lanes.len()];
        for (to, pair) in order.windows(2).enumerate() {
            let &[one, other] = pair else { continue };
            let (Some(&lane), Some(&other)) = (self.lane_of.get(one), self.lane_of.get(other))
            else {
                continue;
            };
            let Some(behind) = next.get_mut(lane) else {
                continue;
            };
            *behind += 1;
            if lane == other {
                continue;
            }
            switches += 1;
            let left = self.lanes.get(lane).and_then(|own| own.get(*behind));
            let waits = left.and_then(|at| self.steps.get(*at)?.enabled_by);
            let could = left.is_some() && waits.is_none_or(|by| place.get(by) <= Some(&to));
            preemptions += usize::from(could);
        }
        (preemptions, switches)
    }
}
