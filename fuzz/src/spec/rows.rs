//! Clauses about versions, rows and what the client is told.

use super::fate::Entry;
use super::{Case, Finding, ensure};
use crate::actor::SEED;
use crate::call::Answer;

/// Versions are 1..n, without gap or double. A row that the scenario prepared is at 1 and counts as a commit.
pub(super) fn versions(case: &Case<'_>) -> Finding {
    for (execution, commits) in &case.ledger.landed {
        let versions: Vec<i64> = commits.iter().map(|entry| entry.version).collect();
        let first = 1 + i64::from(case.state.is_logged(execution, SEED));
        let expected: Vec<i64> = (first..).take(versions.len()).collect();
        ensure(versions == expected, || {
            let tags: Vec<&str> = commits.iter().map(|one| one.attempt.tag.as_str()).collect();
            format!("commits {tags:?} landed on {execution} with versions {versions:?}")
        })?;
    }
    Ok(())
}

/// The row has the last version, and was made from all landed commits in the order of their versions.
pub(super) fn row(case: &Case<'_>) -> Finding {
    for (execution, commits) in &case.ledger.landed {
        let last = commits.last().map_or(0, |entry| entry.version);
        let row = case.state.rows.get(*execution);
        let row = row.ok_or_else(|| format!("{execution} has no row, but a version {last}"))?;
        let landed: Vec<&str> = commits.iter().map(|one| one.attempt.tag.as_str()).collect();
        let made_of: Vec<&str> = row.log.iter().map(String::as_str).collect();
        let made_of = made_of.strip_prefix(&[SEED]).unwrap_or(&made_of);
        ensure(row.version == last && *made_of == landed, || {
            let version = row.version;
            format!(
                "{execution} is at version {version}, made of {made_of:?}; {landed:?} had landed, the last as {last}"
            )
        })?;
    }
    Ok(())
}

/// What was refused did not land.
pub(super) fn verdict(case: &Case<'_>) -> Finding {
    for entry in case.ledger.entries.iter().filter(|entry| entry.is_in()) {
        let refused = matches!(entry.answer(), Some(Answer::Conflict | Answer::NotSent));
        ensure(!refused, || {
            let (tag, answer) = (&entry.attempt.tag, entry.answer());
            format!("commit {tag} was answered {answer:?}, and landed")
        })?;
    }
    Ok(())
}

/// A conflict has a cause: a commit of another client, or an earlier one of the same. What the client does after the conflict
/// cannot have caused it. That it has landed itself is for another clause to say.
pub(super) fn progress(case: &Case<'_>) -> Finding {
    for entry in &case.ledger.entries {
        let attempt = entry.attempt;
        let earlier =
            |other: &Entry<'_>| other.client != entry.client || other.invoked <= entry.invoked;
        let caused = entry.answer() != Some(&Answer::Conflict)
            || case
                .ledger
                .landed_on(&attempt.execution)
                .iter()
                .any(|other| other.version > attempt.expected && earlier(other));
        ensure(caused, || {
            format!(
                "commit {} on version {} of {} met a conflict, and nobody else had committed",
                attempt.tag, attempt.expected, attempt.execution
            )
        })?;
    }
    Ok(())
}

/// The version in memory is the row's that was loaded, or that was made.
pub(super) fn memory(case: &Case<'_>) -> Finding {
    for entry in &case.ledger.entries {
        let Some(outcome) = entry.outcome else {
            continue;
        };
        let expected = match outcome.answer {
            Answer::Landed { version, .. } => version,
            _ => entry.attempt.expected,
        };
        ensure(outcome.memory == expected, || {
            format!(
                "after commit {} ({:?}) the execution in memory is at version {}, not {expected}",
                entry.attempt.tag, outcome.answer, outcome.memory
            )
        })?;
    }
    Ok(())
}
