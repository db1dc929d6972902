//! [`Picture`]: a run as it is drawn, whoever made it.

/// Lanes, and what happened on them in the order in which the server saw it.
#[derive(Debug, Default)]
pub(crate) struct Picture {
    /// From left to right.
    pub(crate) lanes: Vec<Lane>,
    /// From top to bottom.
    pub(crate) steps: Vec<Step>,
    /// Pictures of more rows than this leave out what is far from everything that matters.
    pub(crate) row_count_max: usize,
    /// So many rows around one that matters are shown in any case.
    pub(crate) rows_around: usize,
}

/// A lane: a connection, or all those of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lane {
    /// What stands above it.
    pub(crate) name: String,
    /// Which connection, if that has to be said.
    pub(crate) detail: String,
    /// What runs on it.
    pub(crate) program: String,
    /// The class that gives it its colour.
    pub(crate) class: &'static str,
}

impl Lane {
    /// The lane's head in one line.
    pub(crate) fn head(&self) -> String {
        match self.program.as_str() {
            "" => self.name.clone(),
            program => format!("{}: {program}", self.name),
        }
    }
}

/// One thing that happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Step {
    /// Where; none for what the schedule did, which goes across all lanes.
    pub(crate) lane: Option<usize>,
    /// Whose command it is, for readers who do not see the lane.
    pub(crate) who: String,
    /// The same in full.
    pub(crate) whose: String,
    /// Which connection, if the lane has several.
    pub(crate) number: Option<usize>,
    /// Its name in the margin.
    pub(crate) point: String,
    /// The command, or what the schedule did.
    pub(crate) command: String,
    /// The reply; empty if there was none.
    pub(crate) reply: String,
    /// What it did to what others can see.
    pub(crate) access: Access,
    /// What else happened to it.
    pub(crate) note: Option<String>,
    /// Its part in what is wrong.
    pub(crate) mark: Option<Mark>,
    /// Earlier steps of other lanes whose order to this one matters.
    pub(crate) after: Vec<usize>,
    /// What it changed: key, value before, value after.
    pub(crate) changes: Vec<(String, String, String)>,
}

/// What a step did to what others can see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Access {
    /// Nothing.
    #[default]
    Local,
    /// Looked.
    Read,
    /// Changed something.
    Write,
    /// It is no command, but something that the schedule did.
    Event,
}

impl Access {
    /// What reports call so in their JSON form.
    pub(crate) fn of(name: &str) -> Access {
        match name {
            "read" => Access::Read,
            "write" => Access::Write,
            "event" => Access::Event,
            _ => Access::Local,
        }
    }
}

/// What a step has to do with the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// What was read, and believed later.
    Read,
    /// What was done and believed to last, as a lock that was taken.
    Relied,
    /// What made it untrue.
    Written,
    /// What was done in the belief.
    Overwritten,
}

impl Mark {
    /// The word for readers.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Mark::Read => "read",
            Mark::Relied => "relied on",
            Mark::Written => "written",
            Mark::Overwritten => "overwritten",
        }
    }
}
