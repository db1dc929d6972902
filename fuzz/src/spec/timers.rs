//! The clause about timers: what the landed commits and the deletions leave, in the order of the versions.

use std::collections::BTreeMap;

use store::TimerOp;

use super::{Case, Finding, ensure};
use crate::call::{Answer, Call};

/// Times by path. Scenarios arm no two timers at the same time, so that a deletion names the commit that it undoes.
type Timers<'c> = BTreeMap<(&'c str, &'c str), f64>;

pub(super) fn timers(case: &Case<'_>) -> Finding {
    let mut expected = prepared(case);
    for (execution, commits) in &case.ledger.landed {
        for timer in commits.iter().flat_map(|entry| &entry.attempt.timers) {
            match timer {
                TimerOp::Schedule { path, fire_at_s } => {
                    expected.insert((execution, path), *fire_at_s);
                }
                TimerOp::Cancel { path } => {
                    expected.remove(&(*execution, path.as_str()));
                }
            }
        }
    }
    let mut doubtful = Vec::new();
    for operation in case.history {
        let Call::DeleteTimer {
            execution,
            path,
            fire_at_s,
            ..
        } = &operation.input
        else {
            continue;
        };
        let key = (execution.as_str(), path.as_str());
        // Undoes the commit that set this time, unless a later one has moved the timer.
        let undoes = expected.get(&key) == Some(fire_at_s);
        match operation.output.as_ref().map(|outcome| &outcome.answer) {
            Some(Answer::Removed(true)) if undoes => {
                expected.remove(&key);
            }
            None | Some(Answer::Unknown) if undoes => doubtful.push(key),
            _ => {}
        }
    }
    compare(case, &expected, &doubtful)
}

/// A timer that no commit in the history set and that a deletion names was there from the beginning.
fn prepared<'c>(case: &Case<'c>) -> Timers<'c> {
    let touched = |execution: &str, path: &str| {
        let commits = case.ledger.landed_on(execution).iter();
        commits
            .flat_map(|entry| &entry.attempt.timers)
            .any(|timer| {
                let (TimerOp::Schedule { path: other, .. } | TimerOp::Cancel { path: other }) =
                    timer;
                other == path
            })
    };
    let mut timers = Timers::new();
    for operation in case.history {
        if let Call::DeleteTimer {
            execution,
            path,
            fire_at_s,
            ..
        } = &operation.input
            && !touched(execution, path)
        {
            timers.insert((execution, path), *fire_at_s);
        }
    }
    timers
}

fn compare(case: &Case<'_>, expected: &Timers<'_>, doubtful: &[(&str, &str)]) -> Finding {
    for ((execution, path), time) in &case.state.timers {
        let key = (execution.as_str(), path.as_str());
        let known = case.ledger.landed.contains_key(execution.as_str());
        // A prepared timer of an execution that nobody touched is nobody's business.
        ensure(expected.get(&key) == Some(time) || !known, || {
            format!(
                "timer {execution}/{path} is at {time}, expected {:?}",
                expected.get(&key)
            )
        })?;
    }
    for (key, time) in expected {
        let (execution, path) = *key;
        let place = (execution.to_owned(), path.to_owned());
        let there = case.state.timers.contains_key(&place) || doubtful.contains(key);
        ensure(there, || {
            format!(
                "timer {execution}/{path} was set to {time}, and nobody deleted it, but it is gone"
            )
        })?;
    }
    Ok(())
}
