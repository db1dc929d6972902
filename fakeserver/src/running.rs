//! The script under way. While one takes longer than `busy-reply-threshold`, the other clients are attended to in between and
//! answered that the server is busy (script.c, `scriptInterrupt`).

#![cfg_attr(
    not(feature = "lua"),
    allow(dead_code, reason = "there is nothing to run without Lua")
)]

use std::fmt;
use std::sync::Arc;

use crate::clock::{Clock, Timestamp};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::links::{Link, LinkError, Patience, Place};
use crate::session::SessionId;

/// Which family of commands a script belongs to: each has a command of its own to kill it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptKind {
    /// `EVAL` and its kin; `SCRIPT KILL`.
    Eval,
    /// `FCALL` and its kin; `FUNCTION KILL`.
    Function,
}

impl ScriptKind {
    /// What others are answered while such a script takes too long.
    pub(crate) fn busy(self) -> CommandError {
        let container = match self {
            ScriptKind::Eval => "SCRIPT",
            ScriptKind::Function => "FUNCTION",
        };
        CommandError::Busy(container)
    }
}

/// The script under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    pub kind: ScriptKind,
    /// Who waits for its end.
    pub caller: SessionId,
    /// When it was first looked at: some hundred thousand instructions after its start.
    pub since: Option<Timestamp>,
    /// It takes too long: others are answered, but for little more than that the server is busy.
    pub is_slow: bool,
    /// It has called a command that writes, so ending it would leave half of its work behind.
    pub has_written: bool,
    /// Its end was asked for.
    pub is_killed: bool,
}

impl Running {
    /// A script that begins.
    pub(crate) fn new(kind: ScriptKind, caller: SessionId) -> Running {
        Running {
            kind,
            caller,
            since: None,
            is_slow: false,
            has_written: false,
            is_killed: false,
        }
    }
}

/// What a driver does for the others while a script takes long.
pub(crate) trait Interlude: fmt::Debug + Send + Sync {
    /// What time it is.
    fn now(&self) -> Timestamp;

    /// Whether time passes while a script runs.
    fn has_time(&self) -> bool;

    /// Lets whoever waits for the engine have it for a moment.
    fn attend(&self, engine: &mut Engine);

    /// Whether the driver itself is to end, and waits for the script only.
    fn is_ending(&self) -> bool;

    /// Opens a connection to another server.
    fn dial(&self, place: &Place, patience: &Patience<'_>) -> Result<Box<dyn Link>, LinkError>;

    /// The clock behind all this, for whoever moves it.
    fn clock(&self) -> &Clock;

    /// Makes the driver ask anew when the engine wants to be woken: the clock was moved from within.
    fn clock_moved(&self);
}

/// What becomes of a script that was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It goes on.
    GoOn,
    /// A client has asked for its end.
    Killed,
    /// The server ends.
    Ending,
}

impl Engine {
    /// Whether a script takes too long.
    pub(crate) fn is_busy(&self) -> bool {
        self.running.is_some_and(|running| running.is_slow)
    }

    /// What a command is answered that has to wait for a script's end.
    pub(crate) fn busy(&self) -> Option<CommandError> {
        let running = self.running.filter(|running| running.is_slow)?;
        Some(running.kind.busy())
    }

    /// Marks the script under way for its end (`SCRIPT KILL`, `FUNCTION KILL`). Errors: there is none; it has written; it is of
    /// the other kind.
    pub(crate) fn kill_script(&mut self, kind: ScriptKind) -> Result<(), CommandError> {
        let Some(running) = &mut self.running else {
            return Err(CommandError::NotBusy);
        };
        if running.has_written {
            return Err(CommandError::Unkillable);
        }
        if running.kind != kind {
            return Err(running.kind.busy());
        }
        running.is_killed = true;
        Ok(())
    }

    /// Whoever drives the engine while it has work to do; none if nobody does.
    pub(crate) fn driver(&self) -> Option<Arc<dyn Interlude>> {
        self.interlude.as_ref().and_then(std::sync::Weak::upgrade)
    }

    /// Looks up from the script under way: if it takes too long, the other clients are attended to.
    pub(crate) fn interrupt_script(&mut self) -> Verdict {
        let Some(driver) = self.driver() else {
            return Verdict::GoOn;
        };
        if driver.is_ending() {
            self.abandon_caller();
            return Verdict::Ending;
        }
        if !self.script_is_slow(&driver) {
            return Verdict::GoOn;
        }
        driver.attend(self);
        if self.shutdown {
            self.abandon_caller();
            return Verdict::Ending;
        }
        match self.running {
            Some(Running {
                is_killed: true, ..
            }) => Verdict::Killed,
            _ => Verdict::GoOn,
        }
    }

    /// How long the script under way has run so far, in milliseconds.
    pub(crate) fn script_duration_ms(&self) -> i64 {
        let driver = self.driver();
        let since = self.running.and_then(|running| running.since);
        match (driver, since) {
            (Some(driver), Some(since)) => (driver.now().micros() - since.micros()) / 1000,
            _ => 0,
        }
    }

    fn script_is_slow(&mut self, driver: &Arc<dyn Interlude>) -> bool {
        let Some(running) = &mut self.running else {
            return false;
        };
        let threshold_ms = self.config.busy_reply_threshold;
        if running.is_slow || threshold_ms == 0 {
            return running.is_slow;
        }
        let now = driver.now();
        let since = *running.since.get_or_insert(now);
        running.is_slow = now >= since.plus_millis(threshold_ms);
        running.is_slow
    }

    /// A server that ends in the middle of a script does not answer it.
    fn abandon_caller(&mut self) {
        let Some(caller) = self.running.map(|running| running.caller) else {
            return;
        };
        self.hang_up_unanswered(caller);
    }
}
