//! The way of one batch through a cluster, without I/O: where it goes next, and when it is over.
//!
//! A command is sent again only if a server has said that it did not run it, or if no byte of it went out. A lost reply ends
//! the course: what may have run is never sent twice.

use std::{borrow::Cow, time::Duration};

use redis::{Arg, Cmd, ErrorKind, Pipeline, RedisError, ServerError, ServerErrorKind, Value, cmd};

use super::chart::Address;
use crate::op::{Batch, Replies, protocol_error};

/// How often a batch follows a redirection without a pause in between. One is usual, two happen while a slot moves back.
const REDIRECTS_MAX: u32 = 5;
/// The first pause, and the longest: each is twice the one before.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// How long a call waits in all for a cluster that moves a slot or promotes a replica, unless told otherwise.
pub(super) const PATIENCE_DEFAULT: Duration = Duration::from_secs(5);

/// Commands that read: one that ran ahead of one that did not may run again.
const READERS: [&str; 20] = [
    "EXISTS",
    "GET",
    "GETRANGE",
    "HGET",
    "HGETALL",
    "HLEN",
    "HMGET",
    "HSCAN",
    "LINDEX",
    "LLEN",
    "LRANGE",
    "MGET",
    "SCAN",
    "SCARD",
    "SISMEMBER",
    "TYPE",
    "ZCARD",
    "ZRANGE",
    "ZRANGEBYSCORE",
    "ZSCORE",
];

/// Where a leg goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum To {
    /// The node that serves the slot.
    Owner,
    /// The node that is about to: it serves what it is told that it is asked on purpose.
    Asking(Address),
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Next {
    /// These are the replies.
    Done(Replies),
    /// The slot has another owner; go on there.
    Moved(Address),
    /// Wait, ask who serves the slot if that is in doubt, go on.
    Wait { pause: Duration, doubt: bool },
    /// Go on.
    Go,
}

/// One batch on its way.
#[derive(Debug)]
pub(super) struct Course<'b> {
    batch: &'b Batch,
    /// Scans have no key, so that no node would refuse one: commands that have are put around them. Such a course starts over
    /// instead of going on.
    probed: Option<Pipeline>,
    answers: Vec<Value>,
    writes: bool,
    /// The first node that was not reached.
    unreached: Option<Address>,
    to: To,
    redirects: u32,
    patience: Duration,
    pause: Duration,
}

impl<'b> Course<'b> {
    /// Of this batch; `probe` is a key of the slot.
    pub(super) fn new(
        batch: &'b Batch,
        probe: impl FnOnce() -> String,
        patience: Duration,
    ) -> Self {
        let scans = batch.commands().any(|command| is(command, "SCAN"));
        let probed = scans.then(|| {
            let exists = cmd("EXISTS").arg(probe()).take();
            let mut pipeline = Pipeline::new();
            pipeline.add_command(exists.clone());
            for command in batch.commands() {
                pipeline.add_command(command.clone());
            }
            pipeline.add_command(exists);
            pipeline
        });
        Self {
            batch,
            probed,
            answers: Vec::new(),
            writes: !batch.commands().all(reads),
            unreached: None,
            to: To::Owner,
            redirects: 0,
            patience,
            pause: PAUSE_MIN,
        }
    }

    /// Where the next leg goes.
    pub(super) fn to(&self) -> &To {
        &self.to
    }

    /// Whether a scan is among the commands, and if so, whether from the start.
    pub(super) fn scans_from_start(&self) -> Option<bool> {
        self.probed.as_ref()?;
        let mut scans = self.batch.commands().filter(|command| is(command, "SCAN"));
        Some(scans.all(|scan| matches!(scan.args_iter().nth(1), Some(Arg::Simple(b"0")))))
    }

    /// What the next leg carries, how many replies come before those to the batch's commands, and how many those are.
    pub(super) fn leg(&self) -> (Cow<'_, Pipeline>, usize, usize) {
        let whole = self.probed.as_ref().unwrap_or(self.batch.pipeline());
        let done = self.answers.len();
        match self.to {
            To::Owner if done == 0 => (Cow::Borrowed(whole), 0, whole.len()),
            To::Owner => (
                Cow::Owned(pipeline(whole.cmd_iter().skip(done))),
                0,
                whole.len() - done,
            ),
            To::Asking(_) => {
                let asking = cmd("ASKING");
                let commands = [&asking]
                    .into_iter()
                    .chain(whole.cmd_iter().skip(done).take(1));
                (Cow::Owned(pipeline(commands)), 1, 1)
            }
        }
    }

    /// After a leg: its replies, from the node that was asked, but for those that come before.
    pub(super) fn after(&mut self, replies: Replies, asked: &Address) -> Next {
        match replies {
            Replies::Received(values) => self.received(values, asked),
            Replies::Unsent(error) => {
                self.unreached.get_or_insert_with(|| asked.clone());
                self.unreachable(error)
            }
            other => Next::Done(other),
        }
    }

    /// The end, if the next leg would carry a write from a node that failed to the one that took over. That one may lack
    /// commits, and may since have come to the same version by others: the caller has to load again.
    pub(super) fn crosses_to(&self, node: &Address) -> Option<Next> {
        let failed = self.unreached.as_ref()?;
        if !self.writes || failed == node {
            return None;
        }
        let what = "the slot's node has failed and another one took over: load again";
        let error = RedisError::from((ErrorKind::Io, what));
        Some(Next::Done(if self.answers.is_empty() {
            Replies::Unsent(error)
        } else {
            Replies::Lost(error)
        }))
    }

    /// No node could be asked.
    pub(super) fn unreachable(&mut self, error: RedisError) -> Next {
        match self.wait(true) {
            Some(next) => next,
            None if self.answers.is_empty() => Next::Done(Replies::Unsent(error)),
            // Some of the batch ran.
            None => Next::Done(Replies::Lost(error)),
        }
    }

    fn received(&mut self, values: Vec<Value>, asked: &Address) -> Next {
        let Some(refused) = values
            .iter()
            .position(|value| Refusal::of(value, asked).is_some())
        else {
            self.answers.extend(values);
            self.to = To::Owner;
            let total = self.probed.as_ref().map_or(self.batch.len(), Pipeline::len);
            return if self.answers.len() < total {
                Next::Go
            } else {
                self.done(Vec::new())
            };
        };
        let Some(refusal) = values
            .get(refused)
            .and_then(|value| Refusal::of(value, asked))
        else {
            return Next::Done(Replies::Lost(protocol_error("no such reply")));
        };
        if !self.may_repeat(refused, &values, asked) {
            return self.done(values);
        }
        let kept = values.len() - refused;
        let next = match refusal {
            // A slot in motion has rows on two nodes; a scan sees those of one.
            Refusal::Ask(_) if self.probed.is_some() => self.wait(false),
            Refusal::Ask(to) => self.follow(To::Asking(to), Next::Go),
            Refusal::Moved(to) => self.follow(To::Owner, Next::Moved(to)),
            Refusal::NotNow => self.wait(false),
            Refusal::NotHere => self.wait(true),
        };
        let Some(next) = next else {
            return self.done(values);
        };
        if self.probed.is_none() {
            self.answers
                .extend(values.into_iter().rev().skip(kept).rev());
        }
        next
    }

    /// Whether everything from the first command that was refused on may be sent: nothing of it ran, or it only read.
    fn may_repeat(&self, refused: usize, values: &[Value], asked: &Address) -> bool {
        let first = self.answers.len() + refused;
        let commands = self.batch.commands().skip(first);
        self.probed.is_some()
            || values
                .iter()
                .skip(refused)
                .zip(commands)
                .all(|(value, command)| Refusal::of(value, asked).is_some() || reads(command))
    }

    fn follow(&mut self, to: To, next: Next) -> Option<Next> {
        self.redirects += 1;
        if self.redirects > REDIRECTS_MAX {
            return self.wait(true);
        }
        self.to = to;
        Some(next)
    }

    /// None if it has waited long enough.
    fn wait(&mut self, doubt: bool) -> Option<Next> {
        self.to = To::Owner;
        let pause = self.pause.min(self.patience);
        self.patience -= pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        (!pause.is_zero()).then_some(Next::Wait { pause, doubt })
    }

    fn done(&mut self, rest: Vec<Value>) -> Next {
        let mut answers = std::mem::take(&mut self.answers);
        answers.extend(rest);
        if self.probed.is_some() {
            let behind = answers.pop();
            let mut answers = answers.into_iter();
            let before = answers.next();
            let refused = [before, behind]
                .into_iter()
                .flatten()
                .find(|probe| matches!(probe, Value::ServerError(_)));
            // What a scan saw does not count where its probes were refused.
            let answers = answers.map(|answer| refused.clone().unwrap_or(answer));
            return Next::Done(Replies::Received(answers.collect()));
        }
        Next::Done(Replies::Received(answers))
    }
}

fn pipeline<'c>(commands: impl Iterator<Item = &'c Cmd>) -> Pipeline {
    let mut pipeline = Pipeline::new();
    for command in commands {
        pipeline.add_command(command.clone());
    }
    pipeline
}

fn is(command: &Cmd, name: &str) -> bool {
    matches!(command.args_iter().next(), Some(Arg::Simple(word)) if word.eq_ignore_ascii_case(name.as_bytes()))
}

fn reads(command: &Cmd) -> bool {
    READERS.iter().any(|name| is(command, name))
}

/// Why a node did not run a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It does not serve the slot; this one does.
    Moved(Address),
    /// It serves the slot no longer for this key; this one does.
    Ask(Address),
    /// Some of the keys are elsewhere while their slot moves; or it still loads.
    NotNow,
    /// It can not serve the slot; perhaps another one can.
    NotHere,
}

impl Refusal {
    pub(super) fn of(reply: &Value, asked: &Address) -> Option<Self> {
        let Value::ServerError(error) = reply else {
            return None;
        };
        match error.kind()? {
            ServerErrorKind::Moved => target(error, asked).map(Self::Moved),
            ServerErrorKind::Ask => target(error, asked).map(Self::Ask),
            ServerErrorKind::TryAgain | ServerErrorKind::BusyLoading => Some(Self::NotNow),
            ServerErrorKind::ClusterDown
            | ServerErrorKind::MasterDown
            | ServerErrorKind::ReadOnly => Some(Self::NotHere),
            _ => None,
        }
    }
}

/// Whether a node that was asked over a pinned connection has refused, as the slot is not its own or not for now.
pub(super) fn is_elsewhere(replies: &Replies) -> bool {
    let nowhere = Address::new("", 0);
    match replies {
        Replies::Received(values) => values
            .iter()
            .any(|value| Refusal::of(value, &nowhere).is_some()),
        _ => false,
    }
}

/// The end of a listing whose cursor means nothing where the slot is now.
pub(super) fn moved_under_a_scan() -> RedisError {
    let what = "the slot has moved to another node since this listing began: begin it again";
    (ErrorKind::Client, what).into()
}

/// Slot, blank, address.
fn target(error: &ServerError, asked: &Address) -> Option<Address> {
    let (_, address) = error.details()?.split_once(' ')?;
    Address::parse(address, asked)
}
