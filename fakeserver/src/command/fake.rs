//! FAKE: the word by which a test in any language steers the server. It is no command of Redis: it is in no table, and unless
//! [`crate::Config::admin`] allows it, it is as unknown as on redis-server.

use std::sync::Arc;

use super::{Args, CommandResult};
use crate::acl::{Acl, UserId};
use crate::clock::Clock;
use crate::dump::text_of;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::faults::{Fault, Target, When};
use crate::running::Interlude;
use crate::session::SessionId;
use crate::value::{Blob, number};
use crate::wire::{Protocol, Reply, Request};

const NAME: &str = "FAKE";

/// The latest time that the clock can be set to, in milliseconds: the end of the year 9999. Far from the end of what the
/// arithmetic of deadlines can bear.
const MILLIS_MAX: i64 = 253_402_300_799_999;

const HELP: &[&str] = &[
    "FAKE <subcommand> [<arg> ...]. Subcommands are:",
    "CLOCK FREEZE [<milliseconds>]",
    "    Stop the clock, at a time since the epoch or where it stands.",
    "CLOCK REAL",
    "    Go on with the time of the machine.",
    "CLOCK ADVANCE <milliseconds>",
    "    Move the clock on; keys expire and waiting clients time out before this replies.",
    "CLOCK NOW",
    "    Return the time. So do the other three.",
    "FAIL <command>|* [NTH <n>|ALWAYS] ERROR <text>|DROP-BEFORE|DROP-AFTER|DELAY <milliseconds>",
    "    Let a command fail the next time, the n-th time from now on, or always: with an error instead of being run, by a",
    "    connection that is closed before it is run or before it is answered, or by a reply that is late.",
    "    A subcommand is named as in CONFIG|GET.",
    "FAIL CLEAR",
    "    Forget all faults. Return how many there were.",
    "DUMP",
    "    Return all keys with their values and times to live, in the same order each time.",
    "RESET",
    "    Empty the server: no keys, scripts, functions and faults, settings as at the start, the real clock, no connection but",
    "    this one.",
    "HELP",
    "    Print this help.",
];

impl Engine {
    /// Whether a request that names no command of the table is one for [`Engine::administer`].
    pub(crate) fn is_administered_by(&self, request: &Request) -> bool {
        self.config.admin && request.name().eq_ignore_ascii_case(NAME.as_bytes())
    }

    /// `FAKE subcommand [argument ...]`: see [`HELP`]. It is run at once, in a transaction and while clients are paused too.
    ///
    /// Errors: not authenticated; in a RESP2 client that subscribes; amid a script; an unknown subcommand; syntax.
    pub(crate) fn administer(&mut self, id: SessionId, request: &Request) -> Reply {
        match self.check_administrator(id) {
            Ok(()) => self.run_administration(id, request).into(),
            Err(error) => Reply::Error(error),
        }
    }

    fn check_administrator(&self, id: SessionId) -> Result<(), CommandError> {
        let Some(session) = self.sessions.get(&id) else {
            return Ok(());
        };
        if !session.authenticated && !self.acl.is_open() {
            return Err(CommandError::NoAuth);
        }
        if session.protocol == Protocol::Resp2 && self.pubsub.is_subscriber(id) {
            return Err(CommandError::NotForSubscribers(
                NAME.to_ascii_lowercase().into(),
            ));
        }
        self.busy().map_or(Ok(()), Err)
    }

    fn run_administration(&mut self, id: SessionId, request: &Request) -> CommandResult {
        let mut args = Args::new(request, 1);
        let result = if args.keyword("CLOCK") {
            clock(self, args)
        } else if args.keyword("FAIL") {
            fail(self, args)
        } else if args.keyword("DUMP") && args.is_empty() {
            Ok(Reply::Verbatim(*b"txt", text_of(&self.keyspace).into()))
        } else if args.keyword("RESET") && args.is_empty() {
            reset(self, id)
        } else if args.keyword("HELP") && args.is_empty() {
            Ok(Reply::Array(
                HELP.iter().map(|line| Reply::simple(line)).collect(),
            ))
        } else {
            Err(CommandError::Syntax)
        };
        result.map_err(|error| match error {
            CommandError::Syntax => {
                CommandError::custom(format!("ERR syntax error, try {NAME} HELP"))
            }
            error => error,
        })
    }
}

/// `FAKE CLOCK FREEZE [milliseconds] | REAL | ADVANCE milliseconds | NOW`: replies with the time in milliseconds.
///
/// Errors: not an integer; a time outside of the years from 1970 to 9999; an engine without a clock.
fn clock(engine: &mut Engine, mut args: Args<'_>) -> CommandResult {
    let driver = driver(engine)?;
    let clock = driver.clock();
    if args.keyword("FREEZE") {
        let at = args.next_if_any().map(millis).transpose()?;
        args.finish()?;
        match at {
            Some(at) => clock.freeze_at(at),
            None => clock.freeze(),
        }
    } else if args.keyword("REAL") && args.is_empty() {
        clock.resume();
    } else if args.keyword("ADVANCE") {
        let by = millis(args.next()?)?;
        args.finish()?;
        if clock.now().millis().saturating_add(by) > MILLIS_MAX {
            return Err(out_of_range());
        }
        clock.advance(std::time::Duration::from_millis(by as u64));
    } else if !(args.keyword("NOW") && args.is_empty()) {
        return Err(CommandError::Syntax);
    }
    engine.catch_up_with(clock);
    driver.clock_moved();
    Ok(Reply::Integer(clock.now().millis()))
}

fn driver(engine: &Engine) -> Result<Arc<dyn Interlude>, CommandError> {
    let driver = engine.interlude.as_ref().and_then(std::sync::Weak::upgrade);
    driver.ok_or(CommandError::custom(
        "ERR this server is told the time by its driver",
    ))
}

fn millis(word: &[u8]) -> Result<i64, CommandError> {
    let millis = number::parse_integer(word).ok_or(CommandError::NotAnInteger)?;
    if (0..=MILLIS_MAX).contains(&millis) {
        Ok(millis)
    } else {
        Err(out_of_range())
    }
}

fn out_of_range() -> CommandError {
    CommandError::custom(format!(
        "ERR milliseconds are out of range, the clock goes from 0 to {MILLIS_MAX}"
    ))
}

impl Engine {
    /// Lets all happen that is due now that the clock was moved: after this nobody waits who need not.
    fn catch_up_with(&mut self, clock: &Clock) {
        // A client that goes on because of it may move the clock too. One loop is enough, and needs no deep stack.
        if std::mem::replace(&mut self.control.is_catching_up, true) {
            return;
        }
        self.catch_up(|| clock.now());
        self.control.is_catching_up = false;
    }
}

/// `FAKE FAIL command [NTH n | ALWAYS] ERROR text | DROP-BEFORE | DROP-AFTER | DELAY milliseconds`, `FAKE FAIL CLEAR`: replies
/// with `OK`, and to CLEAR with the number of faults that are gone.
///
/// Errors: no such command; a number below 1; an empty text or one with line breaks; too many faults.
fn fail(engine: &mut Engine, mut args: Args<'_>) -> CommandResult {
    let name = args.next()?;
    if args.is_empty() && name.eq_ignore_ascii_case(b"CLEAR") {
        return Ok(Reply::count(engine.control.faults.clear()));
    }
    let target = Target::parse(name)?;
    let when = if args.keyword("NTH") {
        let n = args.integer()?;
        let n = u64::try_from(n).ok().filter(|n| *n > 0);
        When::Nth(n.ok_or(CommandError::custom("ERR NTH counts from 1 on"))?)
    } else if args.keyword("ALWAYS") {
        When::Always
    } else {
        When::Nth(1)
    };
    let fault = if args.keyword("ERROR") {
        Fault::Error(error_text(args.next()?)?)
    } else if args.keyword("DROP-BEFORE") {
        Fault::DropBefore
    } else if args.keyword("DROP-AFTER") {
        Fault::DropAfter
    } else if args.keyword("DELAY") {
        Fault::Delay(millis(args.next()?)?)
    } else {
        return Err(CommandError::Syntax);
    };
    args.finish()?;
    engine.control.faults.add(target, when, fault)?;
    Ok(Reply::OK)
}

/// The text of an error as it can be sent. Errors: it is empty, or would end before its end.
pub(crate) fn error_text(text: &[u8]) -> Result<Blob, CommandError> {
    if text.is_empty() || text.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
        return Err(CommandError::custom(
            "ERR the text of an error is one line, and not empty",
        ));
    }
    Ok(Blob::from(text))
}

/// `FAKE RESET`: makes the server what it was at its start; replies with `OK`.
fn reset(engine: &mut Engine, caller: SessionId) -> CommandResult {
    let driver = driver(engine)?;
    engine.control.faults.clear();
    let mut others: Vec<_> = engine.sessions.keys().copied().collect();
    others.retain(|id| *id != caller);
    others.sort_unstable();
    for id in others {
        engine.hang_up(id);
    }
    engine.keyspace.flush_all(false);
    forget_scripts(engine);
    engine.end_pause();
    if let Some(initial) = &engine.control.initial {
        engine.config = (**initial).clone();
        engine.apply_config();
    }
    engine.acl = Acl::new(&engine.config);
    if let Some(session) = engine.sessions.get_mut(&caller) {
        session.user = UserId::DEFAULT;
    }
    engine.slowlog.clear();
    engine.latency_events.clear();
    engine.stats.reset();
    engine.keyspace.stats.reset();
    driver.clock().resume();
    engine.catch_up_with(driver.clock());
    driver.clock_moved();
    Ok(Reply::OK)
}

#[cfg(feature = "lua")]
fn forget_scripts(engine: &mut Engine) {
    engine.scripts.flush();
    engine.scripts.functions.flush();
}

#[cfg(not(feature = "lua"))]
fn forget_scripts(_: &mut Engine) {}
