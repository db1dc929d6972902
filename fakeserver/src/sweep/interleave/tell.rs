//! What was found, in words.

use super::search::{Hunt, PREEMPTIONS, Wrong};
use super::{Explore, Strategy};
use crate::sweep::SweepError;
use crate::sweep::builder::Sweep;
use crate::sweep::conductor::Ran;
use crate::sweep::report::{Cause, Finding, Reference};
use crate::sweep::rules::differences;
use crate::sweep::schedule::Role;
use crate::sweep::search::order_text;
use crate::sweep::seen::Seen;
use crate::sweep::{cause, repair, tell};

/// Switches that a title names.
const SWITCHES_TOLD_MAX: usize = 3;

impl Hunt {
    /// What was found, for the report.
    pub(super) async fn finding(
        &mut self,
        sweep: &Sweep,
        wrong: &Wrong,
    ) -> Result<Finding, SweepError> {
        let labels = self.search.labels(&wrong.ran);
        let steps = wrong.ran.steps.iter();
        let steps = steps.map(|step| tell::shown_step(step, &labels)).collect();
        let mut expected: Vec<Reference> = Vec::new();
        for turns in self.orders.clone() {
            let ran = self.search.reference(&turns).await?;
            let outcome = self.search.outcome(&ran).shown();
            let order = order_text(&turns);
            if !expected.iter().any(|known| known.outcome == outcome) {
                expected.push(Reference { order, outcome });
            }
        }
        let kind = if wrong.ran.stuck {
            "stuck"
        } else {
            "isolation"
        };
        let (seen, cause) = blame(&wrong.ran);
        let interleaving = wrong.interleaving();
        Ok(Finding {
            kind: kind.to_owned(),
            title: title(wrong),
            schedule: interleaving.to_string(),
            also: wrong.also.iter().map(ToString::to_string).collect(),
            steps,
            outcome: self.search.outcome(&wrong.ran).shown(),
            expected,
            differences: differences(&wrong.mismatches),
            repair: repair::repair(kind, &seen, cause.as_ref()),
            cause,
            replay: sweep.command_to(&self.search, "explore", &interleaving.to_string()),
            confirmed: None,
        })
    }

    /// Tells what was special about runs.
    pub(super) fn tell_labels(&mut self) {
        for (label, (count, first)) in std::mem::take(&mut self.labels) {
            let note = match count {
                1 => format!("{label} in {first}"),
                more => format!("{label} in {more} runs, of which {first} is the first"),
            };
            self.search.notes.insert(note);
        }
    }

    /// What no finding means.
    pub(super) fn claim(&self, explore: &Explore, seed: u64, is_all: bool) -> String {
        let programs = self.orders.first().map_or(0, Vec::len);
        let whose = format!("of these {programs} programs, these inputs");
        let count = self.run;
        let preemptions = explore.preemptions.unwrap_or(PREEMPTIONS);
        match explore.strategy {
            Strategy::Bounded if is_all && self.is_steady => {
                format!("all {count} schedules with at most {preemptions} preemptions {whose}")
            }
            Strategy::Bounded if is_all => format!(
                "sampled {count} schedules with at most {preemptions} preemptions {whose}: equal beginnings did not always go on \
                 alike, so there may be more"
            ),
            Strategy::Bounded => format!(
                "sampled {count} schedules with at most {preemptions} preemptions {whose} (seed {seed})"
            ),
            Strategy::Random => format!("sampled {count} schedules {whose} (random, seed {seed})"),
            Strategy::Pct => format!("sampled {count} schedules {whose} (PCT, seed {seed})"),
        }
    }
}

/// The steps as the judges of causes see them, and who is to blame: the program that read is A there.
fn blame(ran: &Ran) -> (Vec<Seen>, Option<Cause>) {
    let seen = |of: Role| -> Vec<_> { ran.steps.iter().map(|step| step.seen(of)).collect() };
    for of in Role::PROGRAMS {
        let steps = seen(of);
        let cause = cause::cause(&steps);
        let is_own = |at: usize| ran.steps.get(at).is_some_and(|step| step.role == Some(of));
        if let Some(cause) = cause.filter(|cause| is_own(cause.read)) {
            return (steps, Some(cause));
        }
    }
    (seen(Role::A), None)
}

/// A finding in one line.
fn title(wrong: &Wrong) -> String {
    if wrong.ran.stuck {
        return "the programs do not end if they run side by side like this".to_owned();
    }
    let switches = wrong.passed.iter().filter_map(|one| {
        let (from, to) = (one.crossing.current?, one.choice.role);
        let command = &one.crossing.command;
        (from != to).then(|| format!("{to} runs before {from}'s `{command}`"))
    });
    let switches: Vec<_> = switches.collect();
    let told = switches.get(..SWITCHES_TOLD_MAX).unwrap_or(&switches);
    let more = match switches.len() - told.len() {
        0 => String::new(),
        more => format!(" and {more} more such turns"),
    };
    format!(
        "{}{more}: no serial order gives what comes of it",
        told.join(", ")
    )
}
