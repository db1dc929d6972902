//! [`Remark`]: what is to be said of a way to use a command, where a transcript with a good answer does not say it all.

use super::coverage::Evidence;

/// Something to be said of some ways to use some commands.
#[derive(Clone, Copy, Debug)]
pub struct Remark {
    /// The command's full name; `cluster|*` is all that begin so.
    pub command: &'static str,
    /// The labels of the choices, or `*` for all.
    pub choices: &'static [&'static str],
    /// What is the case.
    pub kind: Kind,
    /// Why, as the table shows it.
    pub reason: &'static str,
}

/// What a remark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// There is an answer without an error, but the work is not done.
    AnswersOnly,
    /// The answer is an error, as from a redis-server that stands alone; a transcript shows it.
    Refused,
    /// An error is what it is called for; a transcript shows it.
    Error,
    /// There is no answer, as from redis-server; a transcript shows it.
    Silent,
    /// No transcript can hold it; a suite does.
    InSuite(&'static str),
    /// It is not there, though the command is.
    Missing,
}

impl Remark {
    pub(super) fn covers(&self, command: &str, choice: &str) -> bool {
        let named = match self.command.strip_suffix('*') {
            Some(start) => command.starts_with(start),
            None => command == self.command,
        };
        let mut choices = self.choices.iter();
        named && choices.any(|label| *label == "*" || *label == choice)
    }

    /// Whether what it says instead of an answer is the case.
    pub(super) fn holds(
        &self,
        command: &str,
        evidence: &Evidence,
        in_suite: impl Fn(&str, &str) -> bool,
    ) -> bool {
        match self.kind {
            Kind::AnswersOnly => false,
            Kind::Refused | Kind::Error => !evidence.refused.is_empty(),
            Kind::Silent => !evidence.unanswered.is_empty(),
            Kind::InSuite(file) => in_suite(file, command),
            Kind::Missing => true,
        }
    }
}
