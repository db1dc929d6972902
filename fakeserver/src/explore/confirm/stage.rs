//! [`Stage`]: a real server on which a schedule's commands are issued again.

use std::collections::BTreeMap;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use redis::Value;

use super::alike::{
    BY_CHANCE, LIVES, UNORDERED, is_named_by_clock, lives_alike, plain, sorted, ttl_alike, written,
};
use super::{ConfirmError, Rehearsal};
use crate::error::CommandError;
use crate::explore::schedule::{Act, Lane};
use crate::explore::trace::{Answered, Step, Trace, spell, told_command};
use crate::redis_client::to_value;
use crate::remote::snapshot::{self, Entry, Place, Snapshot, flat, shown_value};
use crate::remote::{self, Address, Line};
use crate::wire::{Protocol, Reply};

/// How long a command may take to be answered, or to begin to wait.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longest time-out of a blocking command that is waited for.
const TIMEOUT_MAX: Duration = Duration::from_secs(30);

/// How long a reply is waited for before the server is asked whether the command waits.
const LOOK_AFTER: Duration = Duration::from_millis(5);

/// Why the commands are not issued any further.
pub(super) enum Halt {
    Differs(String),
    Failed(ConfirmError),
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Halt {
        Halt::Failed(error.into())
    }
}

/// A connection of one lane.
struct Played {
    line: Line,
    /// Which of the lane's connections it is.
    number: u32,
    /// The server's name for it.
    id: String,
    /// Names of the commands that are queued for EXEC.
    queued: Vec<String>,
}

/// A real server, and the connections of all lanes.
pub(super) struct Stage {
    address: Address,
    own: Line,
    lines: BTreeMap<Lane, Played>,
    pub(super) by_type_only: usize,
    /// Keys whose content depends on chance or on the server's clock.
    loose: Vec<Vec<u8>>,
}

impl Stage {
    /// On this server, with a connection that is none of the schedule's.
    pub(super) fn new(address: Address, own: Line) -> Stage {
        Stage {
            address,
            own,
            lines: BTreeMap::new(),
            by_type_only: 0,
            loose: Vec::new(),
        }
    }

    /// Issues all commands; stops at the first difference.
    pub(super) fn play(&mut self, rehearsal: &Rehearsal) -> Result<(), Halt> {
        remote::empty(&mut |words| ask(&mut self.own, words));
        let mut preparing = self.address.connect()?;
        for request in &rehearsal.preparation {
            preparing.ask(&request.words().collect::<Vec<_>>())?;
        }
        drop(preparing);
        let steps = &rehearsal.trace.steps;
        let (mut waiting, mut now) = (Vec::new(), Duration::ZERO);
        for (at, step) in steps.iter().enumerate() {
            self.time_out(&rehearsal.trace, &mut waiting, step.at)?;
            self.pass_time(&mut now, step.at);
            if step.choice.lane == Lane::WORLD {
                self.strike(at, step, &mut waiting)?;
                continue;
            }
            self.step(at, &rehearsal.trace, &mut waiting)?;
            let is_served = |waits: &usize| rehearsal.trace.answered(*waits) == Answered::By(at);
            let (served, rest) = waiting.into_iter().partition(is_served);
            waiting = rest;
            for served in served {
                self.served(served, &steps[served], PATIENCE)?;
            }
        }
        self.time_out(&rehearsal.trace, &mut waiting, Duration::MAX)?;
        self.pass_time(&mut now, rehearsal.ended);
        self.compare_keys(&rehearsal.left)
    }

    fn pass_time(&mut self, now: &mut Duration, until: Duration) {
        let by = until.saturating_sub(*now).as_millis();
        if by > 0 {
            let by = i64::try_from(by).unwrap_or(i64::MAX);
            remote::shorten_lives(&mut |words| ask(&mut self.own, words), by);
            *now = until;
        }
    }

    /// Commands whose time was up by then are answered now; there, time has to pass.
    fn time_out(
        &mut self,
        trace: &Trace,
        waiting: &mut Vec<usize>,
        until: Duration,
    ) -> Result<(), Halt> {
        let due = |at: usize| match trace.answered(at) {
            Answered::After(waited) => {
                let step = trace.steps.get(at)?;
                let by = step.at.saturating_add(waited);
                (by <= until).then_some((at, step, waited))
            }
            _ => None,
        };
        let served: Vec<_> = waiting.iter().filter_map(|at| due(*at)).collect();
        waiting.retain(|at| due(*at).is_none());
        for (at, step, waited) in served {
            if waited > TIMEOUT_MAX {
                return Err(Halt::Failed(ConfirmError::Unsupported(at)));
            }
            self.served(at, step, waited + PATIENCE)?;
        }
        Ok(())
    }

    /// What happened to the server happens to that one, as far as it can be told to.
    fn strike(&mut self, at: usize, step: &Step, waiting: &mut Vec<usize>) -> Result<(), Halt> {
        match step.choice.act {
            // Time passes in front of what follows.
            Act::Advance(_) => {}
            Act::FlushScripts => {
                ask(&mut self.own, &[b"SCRIPT", b"FLUSH"]);
            }
            Act::Expire(_) => {
                let gone = |key: &[u8]| {
                    let key = snapshot::quoted(key);
                    let mut changes = step.changes.iter();
                    changes.any(|change| change.key == key && change.after.is_none())
                };
                remote::expire(&mut |words| ask(&mut self.own, words), gone);
            }
            Act::Restart { keeps_data } => {
                for lane in self.lines.keys().copied().collect::<Vec<_>>() {
                    self.close(lane)?;
                }
                waiting.clear();
                ask(&mut self.own, &[b"SCRIPT", b"FLUSH"]);
                if !keeps_data {
                    remote::empty(&mut |words| ask(&mut self.own, words));
                }
            }
            _ => return Err(Halt::Failed(ConfirmError::Unsupported(at))),
        }
        Ok(())
    }

    fn step(&mut self, at: usize, trace: &Trace, waiting: &mut Vec<usize>) -> Result<(), Halt> {
        let Some(step) = trace.steps.get(at) else {
            return Ok(());
        };
        let lane = step.choice.lane;
        self.connect(lane, step)?;
        if step.choice.act != Act::DropBefore {
            let words: Vec<&[u8]> = step.request.words().collect();
            self.line(lane)?.line.write(&words);
            let answered_now = trace.answered(at) == Answered::AtOnce;
            let takes_push = matches!(step.reply, Some(Value::Push { .. }));
            match self.reply(lane, waiting.len(), takes_push)? {
                Some(reply) if answered_now => self.compare(at, step, reply)?,
                Some(reply) => {
                    let got = spell(&to_value(reply, Protocol::Resp3));
                    return Err(differs(at, step, "no reply yet", &got));
                }
                None if answered_now => {
                    return Err(differs(at, step, &told_reply(step), "no reply"));
                }
                None if step.choice.is_fault() => {}
                None => waiting.push(at),
            }
        }
        if step.choice.is_fault() {
            self.close(lane)?;
        }
        Ok(())
    }

    /// The reply to a command that was just sent. None if it waits; so many others do.
    fn reply(
        &mut self,
        lane: Lane,
        others: usize,
        takes_push: bool,
    ) -> Result<Option<Reply>, Halt> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let played = self.line(lane)?;
            if let Some(frame) = played.line.next(LOOK_AFTER) {
                if takes_push || !matches!(frame.reply, Reply::Push(_)) {
                    return Ok(Some(frame.reply));
                }
                continue;
            }
            if !played.line.is_open() {
                return Ok(None);
            }
            if self.blocked() > others {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// How many connections wait in a command.
    fn blocked(&mut self) -> usize {
        let info = flat(ask(&mut self.own, &[b"INFO", b"clients"])).concat();
        let info = String::from_utf8_lossy(&info).into_owned();
        let mut lines = info.lines();
        let blocked = lines.find_map(|line| line.strip_prefix("blocked_clients:"));
        blocked
            .and_then(|count| count.trim().parse().ok())
            .unwrap_or(0)
    }

    /// A command that waited has been answered by now.
    fn served(&mut self, at: usize, step: &Step, patience: Duration) -> Result<(), Halt> {
        match self.line(step.choice.lane)?.line.next(patience) {
            Some(frame) => self.compare(at, step, frame.reply),
            None => Err(differs(at, step, &told_reply(step), "no reply")),
        }
    }

    /// Has the lane on the connection of this step.
    fn connect(&mut self, lane: Lane, step: &Step) -> Result<(), Halt> {
        let number = step.connection;
        if self
            .lines
            .get(&lane)
            .is_some_and(|played| played.number == number)
        {
            return Ok(());
        }
        self.close(lane)?;
        let mut line = self.address.connect()?;
        let id = flat(line.ask(&[b"CLIENT", b"ID"])?).concat();
        if step.resp3 && !step.request.name().eq_ignore_ascii_case(b"HELLO") {
            line.ask(&[b"HELLO", b"3"])?;
        }
        let played = Played {
            line,
            number,
            id: String::from_utf8_lossy(&id).into_owned(),
            queued: Vec::new(),
        };
        self.lines.insert(lane, played);
        Ok(())
    }

    fn line(&mut self, lane: Lane) -> Result<&mut Played, Halt> {
        let missing = || io::Error::new(io::ErrorKind::NotConnected, "a lane has no connection");
        Ok(self.lines.get_mut(&lane).ok_or_else(missing)?)
    }

    /// Ends a connection, and waits until the server knows.
    fn close(&mut self, lane: Lane) -> Result<(), Halt> {
        let Some(Played { line, id, .. }) = self.lines.remove(&lane) else {
            return Ok(());
        };
        drop(line);
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let listed = ask(&mut self.own, &[b"CLIENT", b"LIST", b"ID", id.as_bytes()]);
            if flat(listed).concat().is_empty() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(1));
        }
        let what = "it keeps a connection that was closed";
        Err(io::Error::new(io::ErrorKind::TimedOut, what).into())
    }

    fn compare(&mut self, at: usize, step: &Step, reply: Reply) -> Result<(), Halt> {
        // What only RESP3 has is not sent in RESP2.
        let there = plain(to_value(reply, Protocol::Resp3));
        let here = plain(step.reply.clone().unwrap_or(Value::Nil));
        let played = self.line(step.choice.lane)?;
        let name = String::from_utf8_lossy(step.request.name()).to_ascii_uppercase();
        let mut names = vec![name];
        if names == ["EXEC"] {
            names.append(&mut played.queued);
        } else if there == Value::SimpleString("QUEUED".to_owned()) {
            played.queued.append(&mut names);
        } else if ["MULTI", "DISCARD", "RESET"].contains(&names[0].as_str()) {
            played.queued.clear();
        }
        let any = |listed: &[&str]| names.iter().any(|name| listed.contains(&name.as_str()));
        let loose = any(&BY_CHANCE) || is_named_by_clock(&step.request);
        if loose {
            self.by_type_only += 1;
            self.loose.extend(written(&step.request));
        }
        let same = here == there
            || any(&UNORDERED) && sorted(&here) == sorted(&there)
            || any(&LIVES) && lives_alike(&here, &there)
            || loose && std::mem::discriminant(&here) == std::mem::discriminant(&there);
        if same {
            return Ok(());
        }
        Err(differs(at, step, &spell(&here), &spell(&there)))
    }

    fn compare_keys(&mut self, here: &Snapshot) -> Result<(), Halt> {
        let there = snapshot::take(&mut |words| ask(&mut self.own, words));
        let mut places: Vec<&Place> = here.keys().chain(there.keys()).collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            let (one, other) = (here.get(place), there.get(place));
            let alike = match (one, other) {
                (Some(one), Some(other)) if self.loose.contains(&place.1) => one.kind == other.kind,
                (Some(one), Some(other)) => {
                    (&one.kind, &one.value) == (&other.kind, &other.value)
                        && ttl_alike(one.ttl, other.ttl)
                }
                _ => false,
            };
            if !alike {
                let key = snapshot::quoted(&place.1);
                let (one, other) = (told_entry(one), told_entry(other));
                return Err(Halt::Differs(format!(
                    "at the end key {key} is {one} here, and {other} there"
                )));
            }
        }
        Ok(())
    }

    /// Leaves the server as it was.
    pub(super) fn clean_up(&mut self) {
        self.lines.clear();
        remote::empty(&mut |words| ask(&mut self.own, words));
    }
}

fn ask(line: &mut Line, words: &[&[u8]]) -> Reply {
    let failed = |error: io::Error| Reply::Error(CommandError::custom(error.to_string()));
    line.ask(words).unwrap_or_else(failed)
}

fn differs(at: usize, step: &Step, here: &str, there: &str) -> Halt {
    let lane = step.choice.lane;
    let command = told_command(&step.request);
    Halt::Differs(format!(
        "step {at}, {lane}'s {command}: {here} here, and {there} there"
    ))
}

fn told_reply(step: &Step) -> String {
    step.reply
        .as_ref()
        .map_or_else(|| "no reply".to_owned(), spell)
}

fn told_entry(entry: Option<&Entry>) -> String {
    match entry {
        None => "missing".to_owned(),
        Some(Entry { kind, ttl, value }) => {
            let ttl = ttl
                .map(|ttl| format!(" with {ttl} ms to live"))
                .unwrap_or_default();
            format!("{kind} {}{ttl}", shown_value(value))
        }
    }
}
