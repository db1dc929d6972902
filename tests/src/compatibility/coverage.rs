//! [`Survey`]: what the transcripts show of each command, and what nobody shows.

use std::collections::BTreeMap;

use super::described::Described;
use super::remark::{Kind, Remark};
use super::syntax::Choice;
use super::walk::walk;
use crate::frame::Frame;
use crate::transcript::{Exchange, Transcript};

/// What the transcripts show of the commands that a server has.
#[derive(Clone, Debug)]
pub struct Survey {
    pub(super) commands: Vec<Surveyed>,
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
    pub(super) refused: BTreeMap<String, usize>,
    pub(super) unanswered: BTreeMap<String, usize>,
}

/// Whether a way to use a command is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// By an exchange that is answered without an error.
    Answered,
    /// By what a remark says.
    Remarked(Kind),
    /// Not at all.
    Nowhere,
}

impl Surveyed {
    /// Where a choice is shown, or what stands for that.
    pub(super) fn status(&self, at: usize, remarks: &[Remark]) -> Status {
        let Some((choice, evidence)) = self.choices.get(at) else {
            return Status::Nowhere;
        };
        if !evidence.answered.is_empty() {
            return Status::Answered;
        }
        let instead = remarks.iter().find(|remark| {
            remark.kind != Kind::AnswersOnly && remark.covers(&self.command.name, &choice.label)
        });
        match instead {
            Some(remark) => Status::Remarked(remark.kind),
            None => Status::Nowhere,
        }
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
        // Redis takes some requests that its documentation does not: LINDEX of a missing key at no number.
        let Some(used) = walk(&surveyed.command.syntax, words) else {
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

    /// What is not shown, and which remarks do not hold, a text for each. `in_suite` tells whether a suite calls a command.
    pub fn failures(
        &self,
        remarks: &[Remark],
        in_suite: impl Fn(&str, &str) -> bool,
    ) -> Vec<String> {
        let mut failures = Vec::new();
        let mut used = vec![false; remarks.len()];
        for Surveyed { command, choices } in self.callable() {
            for (choice, evidence) in choices {
                let place = format!("{} {}", command.name, choice.label);
                let mut shown = !evidence.answered.is_empty();
                for (remark, used) in remarks.iter().zip(&mut used) {
                    if !remark.covers(&command.name, &choice.label) {
                        continue;
                    }
                    *used = true;
                    match (remark.kind, evidence.answered.first_key_value()) {
                        (Kind::AnswersOnly, _) => {}
                        (_, None) => shown |= remark.holds(&command.name, evidence, &in_suite),
                        (_, Some((file, _))) => failures.push(format!(
                            "{place}: {file} shows it, so this remark is wrong: {}",
                            remark.reason
                        )),
                    }
                }
                if !shown {
                    failures.push(format!("{place}: no transcript shows it"));
                }
            }
        }
        for (remark, _) in remarks.iter().zip(used).filter(|(_, used)| !used) {
            failures.push(format!("{remark:?}: there is nothing that this is about"));
        }
        failures
    }

    pub(super) fn callable(&self) -> impl Iterator<Item = &Surveyed> {
        let all = self.commands.iter();
        all.filter(|surveyed| surveyed.command.callable)
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
