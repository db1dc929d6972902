//! The documents: an execution, its children, its events.

use std::fmt;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::RowTail;

/// Version of an execution's row: 0 before the first save, one more with each commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version(i64);

impl Version {
    /// The version of an execution that was never saved.
    pub const NEW: Self = Self(0);
    /// From here on a version is refused: the next one would not be exact as a double, which is what scripts count with.
    pub const EDGE: Self = Self((1 << 53) - 1);

    /// A version by number; harel accepts negative ones, so this does too.
    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The version that a commit of this one creates; none at [`Version::EDGE`].
    pub fn next(self) -> Option<Self> {
        (self < Self::EDGE).then(|| Self(self.0 + 1))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where an execution stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Status {
    /// Created, not started.
    #[default]
    Pending,
    /// Started.
    Running,
    /// Ended well.
    Done,
    /// Ended by a cancel.
    Cancelled,
    /// Takes no events for now.
    Suspended,
    /// A cancel is under way.
    Cancelling,
    /// Ended by an error.
    Failed,
}

impl Status {
    /// Every status, in declaration order.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Running,
        Self::Done,
        Self::Cancelled,
        Self::Suspended,
        Self::Cancelling,
        Self::Failed,
    ];

    /// Whether nothing happens any more, unless the execution is revived.
    pub const fn is_finished(self) -> bool {
        matches!(self, Self::Done | Self::Cancelled | Self::Failed)
    }

    /// The spelling in the row.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Running => "RUNNING",
            Self::Done => "DONE",
            Self::Cancelled => "CANCELLED",
            Self::Suspended => "SUSPENDED",
            Self::Cancelling => "CANCELLING",
            Self::Failed => "FAILED",
        }
    }

    /// The status of that spelling; spellings are exact.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Members of an object that this version of the store does not know, kept so that a save does not lose what newer
/// writers added. Each stands after as many known members as it did when it was read.
#[derive(Debug, Clone, Default)]
pub struct Unknown(Vec<UnknownMember>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnknownMember {
    /// How many known members come before it.
    pub(crate) known_before: usize,
    pub(crate) name: String,
    pub(crate) value: Value,
    /// Whether it is the place of a member that not every dialect writes; its value is in the model.
    pub(crate) is_place: bool,
}

impl Unknown {
    /// Name and value of each, in the order of the row.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.kept()
            .map(|member| (member.name.as_str(), &member.value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kept().next().is_none()
    }

    /// Whether members of the model stand among them.
    pub(crate) fn has_places(&self) -> bool {
        self.0.iter().any(|member| member.is_place)
    }

    fn kept(&self) -> impl Iterator<Item = &UnknownMember> {
        self.0.iter().filter(|member| !member.is_place)
    }

    pub(crate) fn push(&mut self, known_before: usize, name: String, value: Value) {
        self.0.push(UnknownMember {
            known_before,
            name,
            value,
            is_place: false,
        });
    }

    /// As a member of that name becomes one of the model: its place is kept, its value is handed out.
    pub(crate) fn claim(&mut self, name: &str) -> Option<&mut Value> {
        // Names are unique: the reader keeps the last of equal ones.
        let member = self.0.iter_mut().find(|member| member.name == name)?;
        member.is_place = true;
        Some(&mut member.value)
    }

    pub(crate) fn members(&self) -> &[UnknownMember] {
        &self.0
    }
}

/// Places say nothing about the document.
impl PartialEq for Unknown {
    fn eq(&self, other: &Self) -> bool {
        self.kept().eq(other.kept())
    }
}

impl Eq for Unknown {}

/// One run of a definition: the document that a commit replaces.
///
/// ```
/// use store::{Execution, Status};
///
/// let mut execution = Execution::new("order-17", "order");
/// execution.status = Status::Running;
/// execution.context.insert("attempts".to_owned(), 1.into());
/// assert_eq!(execution.version.get(), 0);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Execution {
    /// Its name; part of key names, so it has no NUL and does not begin with `seq:`.
    pub id: String,
    /// Which definition it runs.
    pub definition_id: String,
    /// Where that definition is found.
    pub definition_fqn: Option<String>,
    /// The part of the definition that it runs; empty for all of it.
    pub root_path: String,
    /// Where it stands.
    pub status: Status,
    /// How it ended, in the definition's words.
    pub outcome: Option<String>,
    /// What ended it.
    pub error: Option<String>,
    /// The state that it is in.
    pub active_path: Option<String>,
    /// Last active states, for history transitions.
    pub history: Map<String, Value>,
    /// The caller's data.
    pub context: Map<String, Value>,
    /// How many events it has handled.
    pub processed_events: i64,
    /// The version of the row that this was loaded from. Only a commit that is known to have landed changes it.
    pub version: Version,
    /// 0 (lowest) to 4.
    pub priority: u8,
    /// The execution that started this one.
    pub parent_id: Option<String>,
    /// The name under which the parent knows it.
    pub child_id: Option<String>,
    /// Events put aside for later.
    pub deferred: Vec<Event>,
    /// The executions that this one started.
    pub children: IndexMap<String, ChildState>,
    /// Calls of sub-machines so far, by path.
    pub invoke_seq: IndexMap<String, i64>,
    /// When it was first stored, in seconds since the epoch. This time and the next three are written by
    /// [`Dialect::V09`](crate::Dialect::V09) always, by the seed's dialect if they were in the row or have a value. The
    /// store never sets one of them.
    pub created_at: Option<f64>,
    /// When it was last stored.
    pub updated_at: Option<f64>,
    /// When it became done, cancelled or failed.
    pub finished_at: Option<f64>,
    /// When it ends for want of activity.
    pub expires_at: Option<f64>,
    /// Members written by others.
    pub unknown: Unknown,
    /// The end of the row that this was loaded from.
    pub(crate) tail: RowTail,
}

impl Execution {
    /// A new execution at version 0, all else at its default.
    pub fn new(id: impl Into<String>, definition_id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            definition_id: definition_id.into(),
            definition_fqn: None,
            root_path: String::new(),
            status: Status::Pending,
            outcome: None,
            error: None,
            active_path: None,
            history: Map::new(),
            context: Map::new(),
            processed_events: 0,
            version: Version::NEW,
            priority: 0,
            parent_id: None,
            child_id: None,
            deferred: Vec::new(),
            children: IndexMap::new(),
            invoke_seq: IndexMap::new(),
            created_at: None,
            updated_at: None,
            finished_at: None,
            expires_at: None,
            unknown: Unknown::default(),
            tail: RowTail::default(),
        }
    }
}

/// What a parent knows of an execution that it started.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ChildState {
    /// The part of the definition that the child runs.
    pub root_path: String,
    /// Whether it has ended.
    pub finished: bool,
    /// How.
    pub outcome: Option<String>,
    /// What it left.
    pub result: Map<String, Value>,
    /// Whether it is a sub-machine.
    pub submachine: bool,
    /// Its key in the parent.
    pub key: String,
    /// Members written by others.
    pub unknown: Unknown,
}

impl ChildState {
    /// A child that has just been started.
    pub fn new(root_path: impl Into<String>) -> Self {
        Self {
            root_path: root_path.into(),
            finished: false,
            outcome: None,
            result: Map::new(),
            submachine: false,
            key: String::new(),
            unknown: Unknown::default(),
        }
    }
}

/// Something that happened, to be handled by an execution.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// Its name, by which deliveries are deduplicated.
    pub id: String,
    /// What kind of thing happened.
    pub kind: String,
    /// When, as `2026-01-02T03:04:05[.ffffff][Z|+hh:mm]`; kept as it was read.
    pub created_time: Option<String>,
    /// When it arrived, in the same form.
    pub received_time: Option<String>,
    /// What else there is to say.
    pub data: Map<String, Value>,
    /// Members written by others.
    pub unknown: Unknown,
}

impl Event {
    /// An event without times or data.
    pub fn new(id: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            kind: kind.into(),
            created_time: None,
            received_time: None,
            data: Map::new(),
            unknown: Unknown::default(),
        }
    }
}
