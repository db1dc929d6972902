//! [`Coverage`]: what programs have reached.

use std::collections::BTreeMap;

use super::{executed, queued};
use crate::frame::{Frame, printable};
use crate::program::{Step, Target};

/// What programs have reached: by command and option, what was replied and how often.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    reached: BTreeMap<(String, &'static str), BTreeMap<String, usize>>,
    succeeded: usize,
    failed: usize,
}

/// Of an error's text so much is told; behind it stands what the client sent.
const ERROR_LEN_MAX: usize = 48;

impl Coverage {
    pub(super) fn note(&mut self, step: &Step, queue: &[&Step], reply: &Frame) {
        if reply.is_error() {
            self.failed += 1;
        } else {
            self.succeeded += 1;
        }
        self.add(step, reply);
        for (queued, reply) in queue
            .iter()
            .zip(executed(step, queue, reply).unwrap_or_default())
        {
            self.add(queued, reply);
        }
    }

    fn add(&mut self, step: &Step, reply: &Frame) {
        let kind = kind(reply);
        for option in [""].iter().chain(&step.options) {
            let kinds = self
                .reached
                .entry((step.command.clone(), option))
                .or_default();
            *kinds.entry(kind.clone()).or_default() += 1;
        }
    }

    /// Takes in what other programs have reached.
    pub fn merge(&mut self, other: &Coverage) {
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        for (target, kinds) in &other.reached {
            let own = self.reached.entry(target.clone()).or_default();
            for (kind, count) in kinds {
                *own.entry(kind.clone()).or_default() += count;
            }
        }
    }

    /// Commands that did not fail, of a hundred.
    pub fn success_rate(&self) -> usize {
        100 * self.succeeded / (self.succeeded + self.failed).max(1)
    }

    /// Commands that were compared.
    pub fn commands(&self) -> usize {
        self.succeeded + self.failed
    }

    /// Whether a row and option were reached as they are to be: with a reply that is no error and no `QUEUED`.
    pub fn has(&self, target: &Target) -> bool {
        let reached = self.reached.get(&(target.command.clone(), target.option));
        reached.is_some_and(|kinds| {
            let counts =
                |kind: &String| target.fails || !(kind.starts_with('-') || kind == "queued");
            kinds.keys().any(counts)
        })
    }

    /// A line for each command and option: what was replied, how often.
    pub fn table(&self) -> Vec<String> {
        let line = |((command, option), kinds): (&(String, &str), &BTreeMap<String, usize>)| {
            let kinds: Vec<String> = kinds
                .iter()
                .map(|(kind, n)| format!("{kind} x{n}"))
                .collect();
            format!("{command:<18} {option:<14} {}", kinds.join(", "))
        };
        self.reached.iter().map(line).collect()
    }
}

fn kind(reply: &Frame) -> String {
    match reply {
        reply if *reply == queued() => "queued".to_owned(),
        Frame::Line(line) if line.starts_with(b"-") => {
            printable(&line[..line.len().min(ERROR_LEN_MAX)])
        }
        Frame::Line(line) if matches!(line.as_slice(), b"$-1" | b"*-1" | b"_") => printable(line),
        reply => (reply.kind() as char).to_string(),
    }
}
