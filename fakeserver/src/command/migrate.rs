//! MIGRATE: keys that go to another server (cluster.c, `migrateCommand`).

use std::time::Duration;

use super::{
    Access, Args, Command, CommandResult, ControlCall, Family, Flag, Group, KeySpec, Words,
};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::keyspace::{Event, Reason};
use crate::links::{Kept, LinkError, Patience, Place};
use crate::payload;
use crate::value::{Blob, number};
use crate::wire::{Reply, Request, encode_request};
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Generic, &[
    //               name      arity  flags                  keys                        handler
    Command::control("MIGRATE", -6,   &[Write, MovableKeys], KeySpec::Custom(positions), migrate).with_secrets(secrets).since("2.6.0"),
]);

/// Where the only key is, and where the options begin.
const KEY_AT: usize = 3;
const OPTIONS_AT: usize = 6;

/// Milliseconds that each step may take where a request asks for none.
const TIMEOUT_MS: u64 = 1000;

/// Most bytes that are sent in one step.
const CHUNK_LEN: usize = 64 * 1024;

/// `MIGRATE host port key|"" destination-db timeout [COPY] [REPLACE] [AUTH password | AUTH2 username password]
/// [KEYS key [key ...]]`: moves keys to another server, by RESTORE there and, without COPY, DEL here; each step may take so many
/// milliseconds. Replies with `OK`, or with `NOKEY` if none of the keys exists.
///
/// Errors: syntax; not an integer; a key beside KEYS; `IOERR` if the other server cannot be reached or does not answer in time,
/// when some keys may have been moved; the first error of the other server, when the keys that it has accepted are moved.
fn migrate(call: &mut ControlCall<'_>) -> CommandResult {
    let mut task = Task::parse(call)?;
    let keyspace = &call.engine.keyspace;
    task.keys.retain(|key| keyspace.read_any(key).is_some());
    if task.keys.is_empty() {
        return Ok(Reply::simple("NOKEY"));
    }
    // A connection that was kept has often been closed by now, and it would be a shame to tell.
    let done = match task.attempt(call.engine) {
        Err(failure) if failure.may_retry => task.attempt(call.engine),
        done => done,
    };
    done.map_err(|failure| failure.error)
}

/// What a request asks for.
struct Task<'a> {
    place: Place,
    db: i64,
    timeout: Duration,
    is_copy: bool,
    replaces: bool,
    user: Option<&'a [u8]>,
    password: Option<&'a [u8]>,
    keys: Vec<&'a [u8]>,
}

/// Why an attempt did not succeed.
struct Failure {
    error: CommandError,
    /// It was no time-out, and surely nothing has happened.
    may_retry: bool,
}

impl Failure {
    /// The connection failed when something was done with it.
    fn of_link(cause: LinkError, doing: &str) -> Failure {
        let doing = if cause == LinkError::NoWay {
            "connecting to the client".to_owned()
        } else {
            format!("{doing} to target instance")
        };
        Failure {
            error: CommandError::custom(format!("IOERR error or timeout {doing}")),
            may_retry: cause == LinkError::Closed,
        }
    }
}

impl<'a> Task<'a> {
    fn parse(call: &ControlCall<'a>) -> Result<Task<'a>, CommandError> {
        let mut args = call.args();
        let place = Place {
            host: Blob::from(args.next()?),
            port: Blob::from(args.next()?),
        };
        let (key, db, timeout) = (args.next()?, args.next()?, args.next()?);
        let mut task = Task {
            place,
            db: 0,
            timeout: Duration::ZERO,
            is_copy: false,
            replaces: false,
            user: None,
            password: None,
            keys: vec![key],
        };
        while !args.is_empty() {
            if args.keyword("COPY") {
                task.is_copy = true;
            } else if args.keyword("REPLACE") {
                task.replaces = true;
            } else if args.len() > 1 && args.keyword("AUTH") {
                task.password = Some(args.next()?);
            } else if args.len() > 2 && args.keyword("AUTH2") {
                (task.user, task.password) = (Some(args.next()?), Some(args.next()?));
            } else if args.keyword("KEYS") {
                if !key.is_empty() {
                    return Err(CommandError::MigrateKeyBesideKeys);
                }
                task.keys = args.rest().collect();
                break;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        let integer = |word| number::parse_integer(word).ok_or(CommandError::NotAnInteger);
        let timeout_ms = u64::try_from(integer(timeout)?).unwrap_or_default();
        task.timeout = match timeout_ms {
            0 => Duration::from_millis(TIMEOUT_MS),
            millis => Duration::from_millis(millis),
        };
        task.db = integer(db)?;
        Ok(task)
    }

    /// Sends the keys and takes the answers, on the connection that was kept or on a new one.
    fn attempt(&self, engine: &mut Engine) -> CommandOrFailure {
        let failure = |cause| Failure::of_link(cause, "writing");
        let Some(driver) = engine.driver() else {
            return Err(failure(LinkError::NoWay));
        };
        let patience = Patience {
            timeout: self.timeout,
            driver: &*driver,
        };
        let mut kept = if let Some(kept) = engine.links.take(&self.place) {
            kept
        } else {
            engine.links.make_room(&mut engine.rng);
            let link = driver.dial(&self.place, &patience).map_err(failure)?;
            Kept::new(link)
        };
        for chunk in self.requests(engine, kept.db).chunks(CHUNK_LEN) {
            kept.link.send(chunk, &patience).map_err(failure)?;
        }
        let answer = self.answers(engine, &mut kept, &patience)?;
        // After an error nobody knows what is selected there.
        kept.db = if answer.is_ok() { self.db } else { -1 };
        let now = engine.keyspace.now();
        engine.links.keep(self.place.clone(), kept, now);
        answer.map_err(|error| Failure {
            error,
            may_retry: false,
        })
    }

    /// The requests that the other server is to get, on a connection on which a database is selected.
    fn requests(&self, engine: &Engine, selected: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        match (self.user, self.password) {
            (Some(user), Some(password)) => encode_request(&[b"AUTH", user, password], &mut bytes),
            (_, Some(password)) => encode_request(&[b"AUTH", password], &mut bytes),
            (_, None) => {}
        }
        if selected != self.db {
            encode_request(&[b"SELECT", self.db.to_string().as_bytes()], &mut bytes);
        }
        let now = engine.keyspace.now().millis();
        let compression = engine.config.payload_compression();
        for key in &self.keys {
            let Some(entry) = engine.keyspace.entry(key) else {
                continue;
            };
            let ttl = entry.deadline().map(|deadline| (deadline - now).max(1));
            let ttl = ttl.unwrap_or_default().to_string();
            let payload = payload::dump(entry.value(), compression);
            let words: [&[u8]; 5] = [b"RESTORE", key, ttl.as_bytes(), &payload, b"REPLACE"];
            encode_request(&words[..if self.replaces { 5 } else { 4 }], &mut bytes);
        }
        bytes
    }

    /// Takes the answers to [`Task::requests`], and removes each key that has arrived; the reply, or the other server's error.
    fn answers(
        &self,
        engine: &mut Engine,
        kept: &mut Kept,
        patience: &Patience<'_>,
    ) -> Result<CommandResult, Failure> {
        let failure = |cause| Failure::of_link(cause, "reading");
        let preliminaries = usize::from(self.password.is_some()) + usize::from(kept.db != self.db);
        let mut refusal = None;
        for _ in 0..preliminaries {
            let line = kept.link.receive_line(patience).map_err(failure)?;
            refusal = refusal.or_else(|| error_in(&line));
        }
        let mut error = None;
        for (at, key) in self.keys.iter().enumerate() {
            let line = match kept.link.receive_line(patience) {
                Ok(line) => line,
                Err(cause) => {
                    let may_retry = at == 0 && cause == LinkError::Closed;
                    return Err(Failure {
                        error: error.unwrap_or_else(|| failure(cause).error),
                        may_retry,
                    });
                }
            };
            match refusal.clone().or_else(|| error_in(&line)) {
                Some(_) if error.is_some() => {}
                Some(refusal) => {
                    engine.keyspace.answer_here();
                    error = Some(refusal);
                }
                None if self.is_copy => {}
                None => {
                    engine.keyspace.delete(key, Reason::Replaced);
                    engine.keyspace.changed(key, Event::generic("del"));
                }
            }
        }
        Ok(error.map_or(Ok(Reply::OK), Err))
    }
}

/// A reply, or why an attempt has failed.
type CommandOrFailure = Result<Reply, Failure>;

/// The error that a line of another server's reply stands for, if it is one.
fn error_in(line: &[u8]) -> Option<CommandError> {
    let text = line.strip_prefix(b"-")?;
    // To Redis it is a C string, and no line break may get into a simple error.
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let mut error = b"ERR Target instance replied with error: ".to_vec();
    error.extend(
        text.iter()
            .map(|byte| if *byte == b'\r' { b' ' } else { *byte }),
    );
    Some(CommandError::custom(error))
}

/// Where the keys are: behind KEYS, or the only one (`migrateGetKeys`). With KEYS beside a key there are none.
fn positions(request: &Request) -> Vec<(usize, Access)> {
    let is = |at: usize, word: &[u8]| {
        let found = request.get(at);
        found.is_some_and(|found| found.eq_ignore_ascii_case(word))
    };
    // The key spec looks for KEYS from the end, at the last word but one, and only then the options are looked at.
    let is_last_but_one = |at: usize| at + 1 < request.len();
    let mut at = OPTIONS_AT;
    let has_keyword = (2..request.len()).any(|at| is(at, b"KEYS") && is_last_but_one(at));
    while has_keyword && at < request.len() {
        if is(at, b"KEYS") {
            let is_alone = request.get(KEY_AT).is_some_and(<[u8]>::is_empty);
            let first = if is_alone { at + 1 } else { request.len() };
            return (first..request.len())
                .map(|at| (at, Access::Write))
                .collect();
        }
        at += 1 + if is(at, b"AUTH2") {
            2
        } else {
            usize::from(is(at, b"AUTH"))
        };
    }
    (KEY_AT..request.len().min(KEY_AT + 1))
        .map(|at| (at, Access::Write))
        .collect()
}

/// Passwords and the names that belong to them, as far as the options can be read.
fn secrets(request: &Request) -> Vec<usize> {
    let mut args = Args::new(request, OPTIONS_AT);
    let mut secrets = Vec::new();
    while !args.is_empty() {
        let at = request.len() - args.len();
        if args.keyword("COPY") || args.keyword("REPLACE") {
            continue;
        }
        let count = if args.len() > 1 && args.keyword("AUTH") {
            1
        } else if args.len() > 2 && args.keyword("AUTH2") {
            2
        } else {
            break;
        };
        secrets.extend(at + 1..=at + count);
        args = Args::new(request, at + 1 + count);
    }
    secrets
}
