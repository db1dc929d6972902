//! [`Survey`]: what the transcripts show of each command, and what nobody shows.

use std::collections::BTreeMap;

use super::described::Described;
use super::syntax::Choice;
use super::walk::walk;
use crate::frame::Frame;
use crate::transcript::{Exchange, Transcript};

/// What the transcripts show of the commands that a server has.
#[derive(Clone, Debug)]
pub struct Survey {
    pub(super) commands: Vec<Surveyed>,
    /// Requests that were answered without an error although they do not follow the syntax.
    strays: Vec<String>,
}

/// What the transcripts show of one command.
#[derive(Clone, Debug)]
pub(super) struct Surveyed {
    pub(super) command: Described,
    pub(super) choices: Vec<(Choice, Evidence)>,
}

/// How often each file shows a way to use a command.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    pub(super) answered: BTreeMap<String, usize>,
    refused: BTreeMap<String, usize>,
    unanswered: BTreeMap<String, usize>,
}

/// Why a way to use a command has no exchange that is answered without an error.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// The command; `cluster|*` is all that begin so.
    pub command: &'static str,
    /// The labels of the choices, or `*` for all.
    pub choices: &'static [&'static str],
    /// What is there instead.
    pub shown: Shown,
    /// Why.
    pub reason: &'static str,
}

/// What shows a way to use a command that has no exchange without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// An exchange that is answered by an error.
    ByError,
    /// An exchange that is not answered.
    BySilence,
    /// A test in this suite, which names the command.
    BySuite(&'static str),
}

impl Exception {
    fn covers(&self, command: &str, choice: &str) -> bool {
        let named = match self.command.strip_suffix('*') {
            Some(start) => command.starts_with(start),
            None => command == self.command,
        };
        named
            && self
                .choices
                .iter()
                .any(|label| *label == "*" || *label == choice)
    }
}

impl Survey {
    /// Looks for the commands' choices in the transcripts.
    pub fn new(commands: Vec<Described>, transcripts: &[Transcript]) -> Survey {
        let surveyed = commands.into_iter().map(|command| {
            let choices = command.syntax.choices().into_iter();
            let choices = choices.map(|choice| (choice, Evidence::default()));
            Surveyed {
                choices: choices.collect(),
                command,
            }
        });
        let mut survey = Survey {
            commands: surveyed.collect(),
            strays: Vec::new(),
        };
        let places: BTreeMap<String, usize> = survey.places();
        for transcript in transcripts {
            let file = transcript.name();
            for exchange in transcript.exchanges() {
                let Some((at, skipped)) = place(&places, &exchange.words) else {
                    continue;
                };
                let words = exchange.words.get(skipped..).unwrap_or_default();
                survey.note(at, words, file, &exchange);
            }
        }
        survey
    }

    fn places(&self) -> BTreeMap<String, usize> {
        let all = self.commands.iter().enumerate();
        all.filter(|(_, surveyed)| surveyed.command.callable)
            .map(|(at, surveyed)| (surveyed.command.name.clone(), at))
            .collect()
    }

    fn note(&mut self, at: usize, words: &[Vec<u8>], file: &str, exchange: &Exchange) {
        let Some(surveyed) = self.commands.get_mut(at) else {
            return;
        };
        let answer = Answer::of(exchange);
        let Some(used) = walk(&surveyed.command.syntax, words) else {
            if answer == Some(Answer::Good) {
                let line = exchange.at;
                let name = &surveyed.command.name;
                self.strays
                    .push(format!("{file}:{line}: not in the syntax of {name}"));
            }
            return;
        };
        for (choice, evidence) in &mut surveyed.choices {
            if !used.contains(&choice.usage) {
                continue;
            }
            let files = match answer {
                Some(Answer::Good) => &mut evidence.answered,
                Some(Answer::Error) => &mut evidence.refused,
                Some(Answer::Silence) => &mut evidence.unanswered,
                None => continue,
            };
            *files.entry(file.to_owned()).or_default() += 1;
        }
    }

    /// What is not shown, and which exceptions do not hold, a text for each.
    pub fn failures(
        &self,
        exceptions: &[Exception],
        in_suite: impl Fn(&str, &str) -> bool,
    ) -> Vec<String> {
        let mut failures = self.strays.clone();
        let mut needed = vec![false; exceptions.len()];
        for Surveyed { command, choices } in &self.commands {
            if !command.callable {
                continue;
            }
            let name = &command.name;
            for (choice, evidence) in choices {
                let label = &choice.label;
                let found = exceptions
                    .iter()
                    .position(|exception| exception.covers(name, label));
                let excepted = found.and_then(|at| exceptions.get(at));
                if let Some((file, _)) = evidence.answered.first_key_value() {
                    if let Some(exception) = excepted {
                        failures.push(format!(
                            "{name} {label}: {file} shows it, so the exception is not needed: {}",
                            exception.reason
                        ));
                    }
                    continue;
                }
                let shown = excepted.is_some_and(|exception| match exception.shown {
                    Shown::ByError => !evidence.refused.is_empty(),
                    Shown::BySilence => !evidence.unanswered.is_empty(),
                    Shown::BySuite(file) => in_suite(file, name),
                });
                if let Some(needed) = found.and_then(|at| needed.get_mut(at)) {
                    *needed = true;
                }
                if !shown {
                    failures.push(format!("{name} {label}: no transcript shows it"));
                }
            }
        }
        for (exception, _) in exceptions.iter().zip(needed).filter(|(_, needed)| !needed) {
            failures.push(format!("{exception:?}: nothing needs this exception"));
        }
        failures
    }
}

/// How a server answered a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Good,
    Error,
    Silence,
}

impl Answer {
    /// Nothing for a request that was queued: its answer is in the reply of EXEC.
    fn of(exchange: &Exchange) -> Option<Answer> {
        let replies = &exchange.replies;
        if replies.is_empty() {
            return Some(Answer::Silence);
        }
        if replies.iter().any(Frame::is_error) {
            return Some(Answer::Error);
        }
        let queued = Frame::Line(b"+QUEUED".to_vec());
        (replies.first() != Some(&queued)).then_some(Answer::Good)
    }
}

/// The command that a request calls, and of how many words its name is.
fn place(places: &BTreeMap<String, usize>, words: &[Vec<u8>]) -> Option<(usize, usize)> {
    let lower = |at: usize| Some(String::from_utf8_lossy(words.get(at)?).to_ascii_lowercase());
    let command = lower(0)?;
    let subcommand = lower(1).and_then(|below| places.get(&format!("{command}|{below}")));
    match subcommand {
        Some(at) => Some((*at, 2)),
        None => places.get(&command).map(|at| (*at, 1)),
    }
}
