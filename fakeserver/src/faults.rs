//! Faults that a test asks for: a command's error, a connection that breaks before or behind it, a reply that is late.
//!
//! Rules look at what clients send, as a network would: a command that MULTI queues counts where it is sent, and what EXEC and
//! scripts run does not count on its own. Without a rule all this costs one look at an empty list for each request.

use std::sync::Arc;

use crate::blocking::{Blocked, Wait};
use crate::command::{Flag, Row, lookup};
use crate::config::Config;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::resolve::find;
use crate::session::SessionId;
use crate::value::Blob;
use crate::wire::{Reply, Request};

/// Rules that a server holds at most: far more than a test has use for, and every request looks at all of them.
const RULES_MAX: usize = 1024;

/// What goes wrong with a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is not run, and answered with this text.
    Error(Blob),
    /// It is not run, and the connection is closed.
    DropBefore,
    /// It is run, and the connection is closed in place of its reply.
    DropAfter,
    /// It is run, and its reply comes so many milliseconds later.
    Delay(i64),
}

/// Which of the requests that a rule looks at have the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// One alone, counted from 1 on since the rule was made.
    Nth(u64),
    /// All of them.
    Always,
}

/// Which requests a rule looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// All that name a command of the table, those with which clients begin a connection included.
    Any,
    /// Those of one command, or of all subcommands of a container.
    Command(&'static Row),
}

impl Target {
    /// What a name stands for: `*`, a command, a container, or a subcommand as in `CONFIG|GET`. Errors: no such command.
    pub(crate) fn parse(name: &[u8]) -> Result<Target, CommandError> {
        if name == b"*" {
            return Ok(Target::Any);
        }
        let mut words = name.splitn(2, |byte| *byte == b'|');
        let row = words.next().and_then(lookup);
        let row = match words.next() {
            Some(subcommand) => row.and_then(|row| row.subcommand(subcommand)),
            None => row,
        };
        row.map(Target::Command).ok_or_else(|| {
            let text = [b"ERR there is no command '", name, b"' that could fail"];
            CommandError::custom(text.concat())
        })
    }

    fn covers(self, request: &Request) -> bool {
        match self {
            Target::Any => lookup(request.name()).is_some(),
            Target::Command(row) => [lookup(request.name()), find(request)]
                .into_iter()
                .flatten()
                .any(|named| std::ptr::eq(named, row)),
        }
    }
}

#[derive(Debug)]
struct Rule {
    target: Target,
    when: When,
    fault: Fault,
    seen: u64,
}

/// The rules in force, in the order in which they were made.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    rules: Vec<Rule>,
}

impl Faults {
    /// Whether nothing goes wrong.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Adds a rule. Errors: there are too many.
    pub(crate) fn add(
        &mut self,
        target: Target,
        when: When,
        fault: Fault,
    ) -> Result<(), CommandError> {
        if self.rules.len() >= RULES_MAX {
            return Err(CommandError::custom(format!(
                "ERR there are {RULES_MAX} faults already"
            )));
        }
        self.rules.push(Rule {
            target,
            when,
            fault,
            seen: 0,
        });
        Ok(())
    }

    /// Forgets all rules; how many there were.
    pub(crate) fn clear(&mut self) -> usize {
        std::mem::take(&mut self.rules).len()
    }

    /// Counts a request; the fault that it has, of several the one that was asked for first. Rules that are spent go.
    fn next(&mut self, request: &Request) -> Option<Fault> {
        let mut hit = None;
        self.rules.retain_mut(|rule| {
            if !rule.target.covers(request) {
                return true;
            }
            rule.seen += 1;
            let strikes = match rule.when {
                When::Nth(n) => rule.seen >= n,
                When::Always => true,
            };
            if strikes && hit.is_none() {
                hit = Some(rule.fault.clone());
            }
            rule.when == When::Always || !strikes
        });
        hit
    }
}

/// What a test steers the server with, beside its commands.
#[derive(Debug, Default)]
pub(crate) struct Control {
    pub faults: Faults,
    /// The settings to go back to, where clients may ask for that.
    pub initial: Option<Arc<Config>>,
    /// What a moved clock has made due is being done.
    pub is_catching_up: bool,
}

impl Control {
    pub(crate) fn new(config: &Config) -> Control {
        Control {
            initial: config.admin.then(|| Arc::new(config.clone())),
            ..Control::default()
        }
    }
}

impl Engine {
    /// Answers a request, with the fault that a rule has for it.
    pub(crate) fn answer_or_fail(&mut self, id: SessionId, request: &Request) -> Reply {
        // What is held back is counted when it comes again.
        let row = find(request).filter(|row| !self.holds_back(id, row, request));
        let Some(row) = row else {
            return self.answer(id, request);
        };
        match self.control.faults.next(request) {
            None => self.answer(id, request),
            Some(Fault::Error(text)) => self.refuse_with(id, row, text),
            Some(Fault::DropBefore) => {
                self.hang_up(id);
                Reply::Nothing
            }
            Some(late) => {
                let reply = self.answer(id, request);
                self.answer_late(id, row, request, reply, late)
            }
        }
    }

    /// An error in place of the command: it dooms the transaction that it would have been queued in, and ends the one that it
    /// would have run.
    fn refuse_with(&mut self, id: SessionId, row: &'static Row, text: Blob) -> Reply {
        let error = CommandError::Custom(text);
        self.stats.rejected(Some(row), &error);
        let ends = row.has(Flag::EndsTransaction);
        if let Some(session) = self.sessions.get_mut(&id) {
            if ends {
                session.transaction = None;
            } else if let Some(transaction) = &mut session.transaction {
                transaction.dirty_exec = true;
            }
        }
        if ends {
            self.keyspace.watch.unwatch(id);
        }
        Reply::Error(error)
    }

    /// The fault of a command that has been run; one that waits has it when it is answered.
    fn answer_late(
        &mut self,
        id: SessionId,
        row: &'static Row,
        request: &Request,
        reply: Reply,
        fault: Fault,
    ) -> Reply {
        let Some(session) = self.sessions.get_mut(&id) else {
            return reply;
        };
        if let Some(blocked) = &mut session.blocked {
            blocked.fault = Some(fault);
            return reply;
        }
        let db = session.db;
        match fault {
            Fault::Delay(timeout_ms) if timeout_ms > 0 => {
                let wait = Wait {
                    keys: Vec::new(),
                    timeout_ms,
                    timeout_reply: Some(reply),
                    rewritten: None,
                    needs_key: false,
                };
                self.block(id, db, row, request, wait, Reply::Nothing)
            }
            Fault::DropAfter => {
                self.hang_up(id);
                Reply::Nothing
            }
            Fault::Delay(_) | Fault::Error(_) | Fault::DropBefore => reply,
        }
    }

    /// Answers a client that has waited and waits no longer, with the fault that its command has.
    pub(crate) fn answer_waiting(&mut self, id: SessionId, blocked: Blocked, reply: Reply) {
        let reply = match blocked.fault {
            None => reply,
            Some(fault) => self.answer_late(id, blocked.row, &blocked.request, reply, fault),
        };
        self.send(id, reply);
        self.resumed.push_back(id);
    }
}
