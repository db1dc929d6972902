//! [`Report`]: what a sweep found, as data. `text.rs` and `html.rs` draw it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use crate::report::cause::Cause;

/// Version of the JSON form.
pub(crate) const FORMAT: u32 = 1;

/// What a sweep did and found. Its JSON form is stable: members may be added, none changes its meaning under one `format`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of this form.
    pub format: u32,
    /// What the programs talked to.
    pub server: String,
    /// What no finding means, exactly.
    pub claim: String,
    /// The programs, as command lines.
    pub programs: Programs,
    /// Runs by what they were for: `serial`, the kinds of schedules, and `check` for those that looked at a finding again.
    pub runs: BTreeMap<String, usize>,
    /// Schedules by kind that were not run since their outcome follows from one that was.
    pub skipped: BTreeMap<String, usize>,
    /// Wall time.
    pub seconds: f64,
    /// What was left out of the comparison, since it differs between two equal runs.
    pub left_out: Vec<String>,
    /// What a reader should know besides: which program waited for which, and what could not be tried.
    pub notes: Vec<String>,
    /// What the serial orders gave.
    pub serial: Vec<Reference>,
    /// What was found, by kind and place.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// The report as JSON, indented.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// The programs of a sweep, as command lines; one that a test runs itself has a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Programs {
    /// The one that is held.
    pub a: Vec<String>,
    /// The one that runs meanwhile.
    pub b: Option<Vec<String>>,
    /// Further programs, `c` and so on, where more than two were explored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<Vec<String>>,
    /// What ran before everything.
    pub setup: Option<Vec<String>>,
    /// What runs at the end of each run.
    pub after: Option<Vec<String>>,
}

/// An outcome that is right, and how it comes about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// `A, then B`.
    pub order: String,
    /// What it gives.
    pub outcome: Shown,
}

/// An outcome for readers: texts as redis-cli quotes them, random parts as `<A.1>`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// How A ended; none if it did not run.
    pub a: Option<Ending>,
    /// How B ended.
    pub b: Option<Ending>,
    /// How further programs ended, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub more: BTreeMap<String, Ending>,
    /// How the program behind all runs ended.
    pub after: Option<Ending>,
    /// The key space, by database and key.
    pub keys: Vec<ShownKey>,
    /// What was special about the run, `B waits for A`.
    pub labels: Vec<String>,
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// Its exit status.
    pub status: Status,
    /// What it printed.
    pub output: String,
}

/// An exit status, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Status {
    /// What the program itself ended with; 0 is success.
    Code(i32),
    /// `killed` if the schedule ended it, `time limit` if it did not end by itself, `signal 11`.
    Other(String),
}

impl Status {
    /// Whether the program says that all went well.
    pub fn is_success(&self) -> bool {
        *self == Status::Code(0)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Code(code) => code.fmt(f),
            Status::Other(other) => f.write_str(other),
        }
    }
}

/// A key for readers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownKey {
    /// Index of the database.
    pub db: usize,
    /// The key.
    pub key: String,
    /// `string`, `list`, `set`, `zset`, `hash` or `stream`.
    pub r#type: String,
    /// The value.
    pub value: String,
    /// Whether it has a time to live.
    pub ttl: bool,
}

/// A schedule whose outcome no serial order gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// `isolation`, `crash`, `lost-reply`, `expiry`, `restart`, or `stuck` if the programs wait for each other for ever.
    pub kind: String,
    /// The finding in one line.
    pub title: String,
    /// The smallest schedule that shows it.
    pub schedule: String,
    /// Other schedules of the kind with the same outcome.
    pub also: Vec<String>,
    /// What the server saw, in order.
    pub steps: Vec<ShownStep>,
    /// What came of it.
    pub outcome: Shown,
    /// What would have been right.
    pub expected: Vec<Reference>,
    /// Where the two differ.
    pub differences: Vec<Difference>,
    /// Which commands are to blame, if that can be told.
    pub cause: Option<Cause>,
    /// What would help, if a rule knows.
    pub repair: Option<Repair>,
    /// A command that runs the schedule again; empty if the programs are no command lines.
    pub replay: String,
    /// Whether a real server gives the same.
    pub confirmed: Option<Confirmed>,
}

/// One command that the server saw, or something that happened to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownStep {
    /// `a` to `e`, `after`, or `server` for what the schedule did.
    pub role: String,
    /// Which of the program's connections, from 1; 0 for the server.
    pub connection: usize,
    /// The command as redis-cli would take it, or what the schedule did.
    pub command: String,
    /// The reply as redis-cli prints it on one line; empty if there was none.
    pub reply: String,
    /// `read`, `write`, `local` (nothing that others can see), or `event`.
    pub access: String,
    /// The command's number in the schedule's count, if it is visible.
    pub point: Option<usize>,
    /// `the reply is lost`.
    pub note: Option<String>,
}

/// A place where an outcome differs from all that would be right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// `key "stock"`, `output of A`, `status of B`.
    pub at: String,
    /// What is there.
    pub got: String,
    /// What the serial orders give there, each once.
    pub expected: Vec<String>,
}

/// What would help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repair {
    /// A short name: `getdel`, `set-nx-ex`, `script`, `compare-and-delete`, `watch`.
    pub rule: String,
    /// The advice.
    pub text: String,
}

/// What a real server gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmed {
    /// Which server.
    pub server: String,
    /// Whether the schedule gave the same outcome there, and the serial orders do not.
    pub same: bool,
}
