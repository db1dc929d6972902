//! Clauses about what a commit writes beside the row.

use std::collections::BTreeMap;

use super::fate::{Entry, Fate};
use super::{Case, Finding, ensure};
use crate::call::{Answer, Call, Outcome};

/// Whether a call that takes something off may have done so.
fn may_have(outcome: Option<&Outcome>) -> bool {
    let answer = outcome.map(|outcome| &outcome.answer);
    matches!(answer, None | Some(Answer::Removed(true) | Answer::Unknown))
}

impl Case<'_> {
    fn outbox_acked(&self, event: &str) -> bool {
        self.history.iter().any(|operation| {
            let of_it =
                matches!(&operation.input, Call::AckOutbox { event: acked, .. } if acked == event);
            of_it && may_have(operation.output.as_ref())
        })
    }

    fn spawn_acked(&self, child: &str) -> bool {
        self.history.iter().any(|operation| {
            let of_it =
                matches!(&operation.input, Call::AckSpawn { child: acked, .. } if acked == child);
            of_it && may_have(operation.output.as_ref())
        })
    }

    fn landed(&self) -> impl Iterator<Item = &Entry<'_>> {
        self.ledger.entries.iter().filter(|entry| entry.is_landed())
    }
}

pub(super) fn outbox(case: &Case<'_>) -> Finding {
    for entry in case.landed() {
        let (positions, _) = entry.positions();
        let tag = &entry.attempt.tag;
        ensure(positions.len() == entry.attempt.emits.len(), || {
            format!("commit {tag} was given positions {positions:?} for its events")
        })?;
        for (seq, (target, event)) in positions.iter().zip(&entry.attempt.emits) {
            let stored = case.state.outbox.get(seq);
            let there = stored.is_some_and(|it| it.event == *event && it.target == *target);
            ensure(there || case.outbox_acked(event), || {
                format!(
                    "event {event} of landed commit {tag} is not in the outbox at {seq}: {stored:?}"
                )
            })?;
        }
    }
    for (seq, stored) in &case.state.outbox {
        let emitted = |entry: &&Entry<'_>| {
            let mut emits = entry.attempt.emits.iter();
            emits.any(|(_, event)| *event == stored.event)
        };
        let origin = case.ledger.entries.iter().find(emitted);
        let Some(origin) = origin else {
            return Err(format!(
                "nobody emitted {stored:?}, which is in the outbox at {seq}"
            ));
        };
        let right = match origin.fate {
            Fate::Landed => origin.positions().0.contains(seq),
            // What is not known to the client must be whole, which is another clause.
            Fate::Logged => true,
            Fate::Absent => origin.is_open(),
        };
        ensure(right, || {
            let tag = &origin.attempt.tag;
            format!(
                "event {} of commit {tag}, which did not land so, is in the outbox at {seq}",
                stored.event
            )
        })?;
    }
    Ok(())
}

pub(super) fn spawns(case: &Case<'_>) -> Finding {
    for entry in case.landed() {
        let (_, positions) = entry.positions();
        for (seq, child) in positions.iter().zip(&entry.attempt.spawns) {
            let stored = case.state.spawns.get(seq);
            ensure(stored == Some(child) || case.spawn_acked(child), || {
                let tag = &entry.attempt.tag;
                format!("spawn {child} of landed commit {tag} is not at {seq}: {stored:?}")
            })?;
        }
    }
    for (seq, child) in &case.state.spawns {
        let origin = case
            .ledger
            .entries
            .iter()
            .find(|entry| entry.attempt.spawns.contains(child));
        let right = origin.is_some_and(|origin| match origin.fate {
            Fate::Landed => origin.positions().1.contains(seq),
            Fate::Logged => true,
            Fate::Absent => origin.is_open(),
        });
        ensure(right, || {
            format!("spawn {child} at {seq} is of no commit that landed")
        })?;
    }
    Ok(())
}

pub(super) fn processed(case: &Case<'_>) -> Finding {
    for entry in case.landed() {
        let attempt = entry.attempt;
        ensure(
            case.state.is_processed(&attempt.execution, &attempt.event),
            || {
                format!(
                    "commit {} landed, but {} is not marked",
                    attempt.tag, attempt.event
                )
            },
        )?;
    }
    for (execution, events) in &case.state.processed {
        for event in events {
            let handled = case.ledger.entries.iter().any(|entry| {
                let of_it = entry.attempt.execution == *execution && entry.attempt.event == *event;
                of_it && (entry.is_in() || entry.is_open())
            });
            ensure(handled, || {
                format!("{event} is marked as processed by {execution}, and no commit of it landed")
            })?;
        }
    }
    Ok(())
}

pub(super) fn trace(case: &Case<'_>) -> Finding {
    for (execution, steps) in &case.state.traces {
        let count = |tag: &str| steps.iter().filter(|step| step.tag == tag).count();
        let (mut sure, mut open) = (0, 0);
        let tries = case.ledger.entries.iter();
        for entry in tries.filter(|one| one.attempt.execution == *execution && one.attempt.traced) {
            let tag = &entry.attempt.tag;
            let most = usize::from(entry.is_in() || entry.is_open());
            ensure(count(tag) <= most, || {
                format!(
                    "step {tag} is {} times in the trace of {execution}",
                    count(tag)
                )
            })?;
            sure += usize::from(entry.is_landed());
            open += usize::from(!entry.is_landed() && most > 0);
        }
        for operation in case.history {
            let Call::Append { execution: of, tag } = &operation.input else {
                continue;
            };
            let done = operation.output.as_ref().map(|outcome| &outcome.answer);
            if of == execution {
                let most = usize::from(done != Some(&Answer::NotSent));
                ensure(count(tag) <= most, || {
                    format!(
                        "step {tag} is {} times in the trace of {execution}",
                        count(tag)
                    )
                })?;
                sure += usize::from(done == Some(&Answer::Done));
                open += usize::from(matches!(done, None | Some(Answer::Unknown)));
            }
        }
        ring(case, execution, sure, open)?;
    }
    Ok(())
}

/// The ring holds the last steps, and as many as it may.
fn ring(case: &Case<'_>, execution: &str, sure: usize, open: usize) -> Finding {
    let steps = case.state.trace(execution);
    let limit = match case.trace_max {
        0 => usize::MAX,
        most => most.unsigned_abs() as usize,
    };
    // A step whose append broke off may not have been followed by the cut.
    let (least, most) = (
        sure.min(limit),
        (sure + open).min(limit.saturating_add(open)),
    );
    ensure((least..=most).contains(&steps.len()), || {
        let len = steps.len();
        format!("the trace of {execution} has {len} steps, expected {least} to {most}")
    })?;
    let traced = case.ledger.landed_on(execution).iter();
    let mut shown = false;
    for entry in traced.filter(|entry| entry.attempt.traced && entry.is_landed()) {
        let tag = &entry.attempt.tag;
        let there = steps.iter().any(|step| step.tag == *tag);
        ensure(there || !shown, || {
            format!("step {tag} is missing from the trace of {execution}, an earlier one is there")
        })?;
        shown |= there;
    }
    Ok(())
}

pub(super) fn order(case: &Case<'_>) -> Finding {
    for (execution, commits) in &case.ledger.landed {
        let positions =
            |of: fn(&Entry<'_>) -> Vec<i64>| -> Vec<i64> { commits.iter().flat_map(of).collect() };
        let outbox = positions(|entry| entry.positions().0.to_vec());
        let spawns = positions(|entry| entry.positions().1.to_vec());
        for (what, seqs) in [("outbox", &outbox), ("spawn", &spawns)] {
            ensure(seqs.windows(2).all(|pair| pair[0] < pair[1]), || {
                format!("{what} positions of {execution} by version are {seqs:?}")
            })?;
        }
        let versions: BTreeMap<&str, i64> = commits
            .iter()
            .map(|entry| (entry.attempt.tag.as_str(), entry.version))
            .collect();
        let shown: Vec<(i64, i64)> = case
            .state
            .trace(execution)
            .iter()
            .filter_map(|step| Some((*versions.get(step.tag.as_str())?, step.index)))
            .collect();
        let rises = |pair: &[(i64, i64)]| {
            pair[0].0 == pair[1].0 || (pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1)
        };
        ensure(shown.windows(2).all(rises), || {
            format!("versions and indices of the trace of {execution} are {shown:?}")
        })?;
    }
    Ok(())
}

pub(super) fn once(case: &Case<'_>) -> Finding {
    for (execution, commits) in &case.ledger.landed {
        let mut handled: BTreeMap<&str, &str> = BTreeMap::new();
        for entry in commits {
            let attempt = entry.attempt;
            if let Some(before) = handled.insert(&attempt.event, &attempt.tag) {
                let (event, tag) = (&attempt.event, &attempt.tag);
                return Err(format!(
                    "{event} was handled twice by {execution}: {before}, {tag}"
                ));
            }
        }
    }
    Ok(())
}

pub(super) fn whole(case: &Case<'_>) -> Finding {
    for entry in case
        .ledger
        .entries
        .iter()
        .filter(|entry| !entry.is_landed())
    {
        if !entry.is_open() && !entry.is_in() {
            continue;
        }
        let attempt = entry.attempt;
        let mut parts: Vec<(String, bool)> = Vec::new();
        for (_, event) in &attempt.emits {
            let mut stored = case.state.outbox.values();
            let there = stored.any(|it| it.event == *event) || case.outbox_acked(event);
            parts.push((format!("event {event}"), there));
        }
        for child in &attempt.spawns {
            let mut stored = case.state.spawns.values();
            let there = stored.any(|it| it == child) || case.spawn_acked(child);
            parts.push((format!("spawn {child}"), there));
        }
        let commits = case.ledger.landed_on(&attempt.execution);
        let another = commits
            .iter()
            .any(|other| other.attempt.event == attempt.event && other.attempt.tag != attempt.tag);
        if !another {
            let there = case.state.is_processed(&attempt.execution, &attempt.event);
            parts.push((format!("mark of {}", attempt.event), there));
        }
        let steps = case.state.trace(&attempt.execution);
        let has_room = case.trace_max == 0 || (steps.len() as i64) < case.trace_max;
        if attempt.traced && has_room {
            let there = steps.iter().any(|step| step.tag == attempt.tag);
            parts.push(("trace step".to_owned(), there));
        }
        for (part, there) in parts {
            ensure(there == entry.is_in(), || {
                let (row, part_is) = (said(entry.is_in()), said(there));
                let tag = &attempt.tag;
                format!(
                    "commit {tag}, whose reply was lost: its row is {row}, its {part} is {part_is}"
                )
            })?;
        }
    }
    Ok(())
}

fn said(there: bool) -> &'static str {
    if there { "there" } else { "not there" }
}

pub(super) fn delivered(case: &Case<'_>) -> Finding {
    for operation in case.history {
        let answer = operation.output.as_ref().map(|outcome| &outcome.answer);
        if answer != Some(&Answer::Removed(true)) {
            continue;
        }
        let (what, done) = match &operation.input {
            Call::AckOutbox {
                target: Some(target),
                event,
                ..
            } => (event, case.state.is_processed(target, event)),
            Call::AckSpawn { child, .. } => (child, case.state.rows.contains_key(child)),
            Call::DeleteTimer {
                execution, event, ..
            } => (event, case.state.is_processed(execution, event)),
            _ => continue,
        };
        ensure(done, || format!("{what} was taken off, and never handled"))?;
    }
    Ok(())
}
