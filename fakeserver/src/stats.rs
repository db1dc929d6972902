//! Counters that `INFO` prints and `CONFIG RESETSTAT` clears.

use std::collections::BTreeMap;

use crate::command::{Row, row_count};
use crate::durations::Durations;
use crate::error::CommandError;

/// Different error codes that are counted apart. Scripts can invent codes, so there must be a bound; Redis' own number about 20.
const ERROR_CODES_MAX: usize = 1024;

/// What one command did since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandStats {
    pub calls: u64,
    /// Those of the calls whose duration was noted (`latency-tracking`).
    pub timed: u64,
    /// Microseconds of all calls.
    pub micros: i64,
    /// Refused before execution: wrong arity, not authenticated, not allowed in the session's state.
    pub rejected: u64,
    /// Executed, with an error as reply.
    pub failed: u64,
}

/// What scripts and functions there are, and what they take; sizes are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScriptFigures {
    pub scripts: usize,
    pub scripts_size: usize,
    pub scripts_lua_size: usize,
    pub libraries: usize,
    pub functions: usize,
    pub functions_size: usize,
    pub functions_lua_size: usize,
}

/// Figures by command. A server in a test is sent few of them, and thousands of servers have a table each, so that only those that
/// were sent have room in it.
#[derive(Debug)]
struct CommandTable {
    /// One more than the place of a command's figures, by [`Row::index`]; 0 for those that have none.
    places: Box<[u16]>,
    figures: Vec<CommandStats>,
}

impl CommandTable {
    fn new() -> CommandTable {
        CommandTable {
            places: vec![0; row_count()].into(),
            figures: Vec::new(),
        }
    }

    fn get(&self, row: &Row) -> Option<&CommandStats> {
        let place = *self.places.get(row.index())?;
        self.figures.get(usize::from(place).checked_sub(1)?)
    }

    fn of(&mut self, row: &Row) -> Option<&mut CommandStats> {
        let place = self.places.get_mut(row.index())?;
        if *place == 0 {
            self.figures.push(CommandStats::default());
            *place = u16::try_from(self.figures.len()).ok()?;
        }
        self.figures.get_mut(usize::from(*place) - 1)
    }
}

/// What the server did since the last reset.
#[derive(Debug)]
pub(crate) struct ServerStats {
    commands: CommandTable,
    /// Of the calls whose duration was noted, by [`Row::index`].
    durations: BTreeMap<usize, Durations>,
    /// Times that the data was saved, or would have been.
    pub saves: u64,
    /// Times that the append-only file was rewritten, or would have been.
    pub rewrites: u64,
    /// Error replies by their code.
    errors: BTreeMap<Box<[u8]>, u64>,
    pub connections_received: u64,
    pub connections_rejected: u64,
    pub commands_processed: u64,
    pub error_replies: u64,
    /// The error that the running script ends with was counted when a command of it failed.
    pub is_counted: bool,
    pub input_bytes: u64,
    pub output_bytes: u64,
    pub reads: u64,
    pub writes: u64,
}

impl ServerStats {
    pub(crate) fn new() -> ServerStats {
        ServerStats::of_commands(CommandTable::new())
    }

    /// As newly made, but the memory is kept.
    #[cfg(feature = "explore")]
    pub(crate) fn renew(&mut self) {
        let places = std::mem::take(&mut self.commands.places);
        let mut figures = std::mem::take(&mut self.commands.figures);
        figures.fill(CommandStats::default());
        *self = ServerStats::of_commands(CommandTable { places, figures });
    }

    fn of_commands(commands: CommandTable) -> ServerStats {
        ServerStats {
            commands,
            durations: BTreeMap::new(),
            saves: 0,
            rewrites: 0,
            errors: BTreeMap::new(),
            connections_received: 0,
            connections_rejected: 0,
            commands_processed: 0,
            error_replies: 0,
            is_counted: false,
            input_bytes: 0,
            output_bytes: 0,
            reads: 0,
            writes: 0,
        }
    }

    /// Counts an execution; `timed` is whether its duration is kept.
    pub(crate) fn called(&mut self, row: &Row, timed: bool, micros: i64) {
        self.commands_processed += 1;
        // Almost all take no time, which their number tells.
        if timed && micros > 0 {
            let durations = self.durations.entry(row.index()).or_default();
            durations.add(micros);
        }
        if let Some(stats) = self.commands.of(row) {
            stats.calls += 1;
            stats.micros += micros;
            stats.timed += u64::from(timed);
        }
    }

    /// Counts an execution's error.
    pub(crate) fn failed(&mut self, row: &Row, error: &CommandError) {
        self.interrupted(row);
        self.error(error);
    }

    /// Counts an execution that failed without an error.
    pub(crate) fn interrupted(&mut self, row: &Row) {
        if let Some(stats) = self.commands.of(row) {
            stats.failed += 1;
        }
    }

    /// Counts a request that was not executed; `row` is none if the command is unknown.
    pub(crate) fn rejected(&mut self, row: Option<&Row>, error: &CommandError) {
        if let Some(stats) = row.and_then(|row| self.commands.of(row)) {
            stats.rejected += 1;
        }
        self.error(error);
    }

    /// Counts an error by its code.
    pub(crate) fn error(&mut self, error: &CommandError) {
        self.error_replies += 1;
        let text = error.to_bytes();
        let code = text.split(|byte| *byte == b' ').next().unwrap_or_default();
        if let Some(count) = self.errors.get_mut(code) {
            *count += 1;
        } else if self.errors.len() < ERROR_CODES_MAX {
            self.errors.insert(code.into(), 1);
        }
    }

    /// The figures of one command.
    pub(crate) fn command(&self, row: &Row) -> CommandStats {
        self.commands.get(row).copied().unwrap_or_default()
    }

    /// How long the calls of a command took.
    pub(crate) fn durations(&self, row: &Row) -> Durations {
        let slow = self.durations.get(&row.index()).cloned();
        let mut durations = slow.unwrap_or_default();
        durations.add_instant(self.command(row).timed - durations.calls());
        durations
    }

    /// Error codes with their counts, by name.
    pub(crate) fn errors(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.errors.iter().map(|(code, count)| (&**code, *count))
    }

    /// Starts to count anew (`CONFIG RESETSTAT`).
    pub(crate) fn reset(&mut self) {
        *self = ServerStats::new();
    }
}
