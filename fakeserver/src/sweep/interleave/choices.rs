//! [`Interleaving`]: whose command ran, one after the other, as a text.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::sweep::schedule::Role;

/// What happens to the command whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fate {
    /// It runs and is answered.
    Execute,
    /// Its connection is closed before it runs.
    DropBefore,
    /// What the program sent with it runs, and its connection is closed before the reply is sent.
    LoseReply,
}

/// One turn: whose, and what happens to the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Choice {
    /// Whose.
    pub role: Role,
    /// What happens.
    pub fate: Fate,
}

impl Choice {
    /// The program's next command runs.
    pub const fn execute(role: Role) -> Choice {
        Choice {
            role,
            fate: Fate::Execute,
        }
    }
}

/// Turns in order: a letter for each command that others can see, or for a program that had its turn and sent none. `explore:aba`;
/// `!a` closes the connection before the command, `~a` before its reply.
///
/// ```
/// use fakeserver::sweep::Interleaving;
///
/// let text = "explore:aab~a";
/// assert_eq!(text.parse::<Interleaving>().unwrap().to_string(), text);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Interleaving(pub(super) Vec<Choice>);

impl Interleaving {
    /// These turns.
    pub fn new(choices: Vec<Choice>) -> Interleaving {
        Interleaving(choices)
    }

    /// The turns.
    pub fn choices(&self) -> &[Choice] {
        &self.0
    }
}

impl fmt::Display for Interleaving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        for choice in &self.0 {
            f.write_str(match choice.fate {
                Fate::Execute => "",
                Fate::DropBefore => "!",
                Fate::LoseReply => "~",
            })?;
            f.write_str(choice.role.name())?;
        }
        Ok(())
    }
}

/// In front of the letters, so that nobody takes them for a word.
const PREFIX: &str = "explore:";

/// A text that is no interleaving.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{0}` is no interleaving; one looks like explore:abba")]
pub struct InterleavingError(String);

impl FromStr for Interleaving {
    type Err = InterleavingError;

    fn from_str(text: &str) -> Result<Interleaving, InterleavingError> {
        let bad = || InterleavingError(text.to_owned());
        let letters = text.strip_prefix(PREFIX).ok_or_else(bad)?;
        let mut choices = Vec::new();
        let mut letters = letters.chars();
        while let Some(letter) = letters.next() {
            let (fate, letter) = match letter {
                '!' => (Fate::DropBefore, letters.next()),
                '~' => (Fate::LoseReply, letters.next()),
                _ => (Fate::Execute, Some(letter)),
            };
            let is_it = |role: &Role| Some(role.name()) == letter.map(String::from).as_deref();
            let role = Role::PROGRAMS.into_iter().find(is_it).ok_or_else(bad)?;
            choices.push(Choice { role, fate });
        }
        Ok(Interleaving(choices))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interleaving_is_read_as_it_is_written() {
        for text in ["explore:", "explore:abcde", "explore:a~ab!b"] {
            let read: Interleaving = text.parse().unwrap();
            assert_eq!(read.to_string(), text);
        }
        for text in [
            "",
            "abab",
            "explore:f",
            "explore:a!",
            "explore:!~a",
            "explore:A",
        ] {
            assert!(text.parse::<Interleaving>().is_err(), "{text}");
        }
    }
}
