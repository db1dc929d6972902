//! [`ExploreReport`]: what a schedule broke, as data, as text for a terminal, and as a page.

mod html;
mod of;
mod text;
mod view;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use super::confirm::Confirmation;
pub use super::explorer::Shrunk;
pub use crate::report::cause::Cause;

/// Version of the JSON form.
pub(super) const FORMAT: u32 = 1;

/// A schedule that breaks a property, for readers. Its JSON form is stable: members may be added, none changes its meaning under
/// one `format`.
///
/// ```
/// # #[cfg(feature = "explore")] {
/// # use fakeserver::explore::*;
/// # fn shown(found: &Counterexample) {
/// let report = ExploreReport::of(found, "counter").replayed_by("cargo test counts");
/// println!("{}", report.text());
/// std::fs::write("counter.html", report.html()).unwrap();
/// # }
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExploreReport {
    /// Version of this form.
    pub format: u32,
    /// What was explored.
    pub workload: String,
    /// The property that does not hold.
    pub property: String,
    /// What is wrong.
    pub details: String,
    /// How it was found, and what no finding would have meant; empty if it was given.
    pub claim: String,
    /// The schedule, as short as it could be made.
    pub schedule: String,
    /// How often it takes the turn from a client that could have gone on.
    pub preemptions: usize,
    /// How many faults it holds.
    pub faults: usize,
    /// What it was shrunk from.
    pub shrunk: Option<Shrunk>,
    /// Connections, by letter.
    pub lanes: Vec<ShownLane>,
    /// The key space before the first step.
    pub keys: Vec<ShownKey>,
    /// What the server saw, in order.
    pub steps: Vec<ShownStep>,
    /// Which commands are to blame, if that can be told.
    pub cause: Option<Cause>,
    /// A command that runs the schedule again.
    pub replay: String,
    /// What a real server gave, if one was asked.
    pub confirmed: Option<Confirmation>,
    /// What a reader should know besides.
    pub notes: Vec<String>,
}

/// A connection of a client's, and those that came after it was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownLane {
    /// Its letter in schedules.
    pub name: String,
    /// Whose it is.
    pub client: String,
}

/// A key at some time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownKey {
    /// The key as redis-cli quotes it, with its database if that is not the first.
    pub key: String,
    /// Its type, value and deadline.
    pub value: String,
}

/// One command that the server saw, or something that happened to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownStep {
    /// The lane's letter; empty for what the schedule did.
    pub lane: String,
    /// Which of the lane's connections, from 1.
    pub connection: u32,
    /// The command as redis-cli would take it, or what the schedule did.
    pub command: String,
    /// The reply as redis-cli prints it on one line; empty if there was none.
    pub reply: String,
    /// `read`, `write`, `local` (nothing that others can see), or `event`.
    pub access: String,
    /// `the reply is lost`.
    pub note: Option<String>,
    /// Earlier steps of other lanes whose order to this one matters, but for those that follow from others.
    pub after: Vec<usize>,
    /// What it changed in the key space.
    pub changes: Vec<ShownChange>,
    /// Virtual time since the beginning, in milliseconds.
    pub at_ms: u64,
}

/// A key that is not after a step what it was before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownChange {
    /// As in [`ShownKey::key`].
    pub key: String,
    /// Its value before; none if there was no such key.
    pub before: Option<String>,
    /// Its value after.
    pub after: Option<String>,
}

impl ExploreReport {
    /// How it was found, and what no finding would have meant.
    #[must_use]
    pub fn claimed(mut self, claim: impl Into<String>) -> ExploreReport {
        self.claim = claim.into();
        self
    }

    /// The command that runs the test; the schedule is put in front of it as `EXPLORER_SCHEDULE`.
    #[must_use]
    pub fn replayed_by(mut self, command: &str) -> ExploreReport {
        self.replay = format!("EXPLORER_SCHEDULE='{}' {command}", self.schedule);
        self
    }

    /// Who read, who wrote between, who overwrote.
    #[must_use]
    pub fn caused_by(mut self, cause: Cause) -> ExploreReport {
        self.cause = Some(cause);
        self
    }

    /// What a real server gave.
    #[must_use]
    pub fn confirmed(mut self, confirmation: Confirmation) -> ExploreReport {
        self.confirmed = Some(confirmation);
        self
    }

    /// Something that a reader should know besides.
    #[must_use]
    pub fn noted(mut self, note: impl Into<String>) -> ExploreReport {
        self.notes.push(note.into());
        self
    }

    /// The clients' names, in their order, in place of numbers.
    #[must_use]
    pub fn clients_named(mut self, names: &[&str]) -> ExploreReport {
        for lane in &mut self.lanes {
            let number = lane.client.strip_prefix(of::CLIENT);
            let name = number.and_then(|number| names.get(number.parse::<usize>().ok()?));
            if let Some(name) = name {
                lane.client = (*name).to_owned();
            }
        }
        self
    }

    /// The report for a terminal, or for the message of a test that failed.
    pub fn text(&self) -> String {
        text::text(self)
    }

    /// The report as one page that needs no network and no server.
    pub fn html(&self) -> String {
        html::html(self)
    }

    /// The report as JSON, indented.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}
