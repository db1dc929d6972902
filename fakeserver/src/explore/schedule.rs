//! [`Schedule`]: the order in which commands ran and what was done to them, as data that can be printed and read again.

use std::fmt;
use std::str::FromStr;

use sha1::{Digest, Sha1};
use thiserror::Error;

/// Most lanes of one run; each has a letter, `a` to `z` and then `A` to `Z`.
pub const LANES_MAX: usize = 52;

/// A client's connection as the schedule names it: client number `n` has lane `n`, and keeps it when it reconnects. A client
/// that holds several connections at a time has further lanes, numbered in the order in which they were opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane(pub(super) u8);

impl Lane {
    /// The lane of this number. `None` from [`LANES_MAX`] on.
    pub fn new(number: usize) -> Option<Lane> {
        (number < LANES_MAX).then_some(Lane(number as u8))
    }

    /// Its number, from 0.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    fn from_letter(letter: char) -> Option<Lane> {
        match letter {
            'a'..='z' => Some(Lane(letter as u8 - b'a')),
            'A'..='Z' => Some(Lane(letter as u8 - b'A' + 26)),
            _ => None,
        }
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = if self.0 < 26 {
            b'a' + self.0
        } else {
            b'A' + self.0 - 26
        };
        write!(f, "{}", char::from(letter))
    }
}

/// What happens to a command whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Act {
    /// It runs and is answered.
    Execute,
    /// The connection is lost before it runs.
    DropBefore,
    /// It runs, and the connection is lost before its reply arrives.
    LoseReply,
}

/// One step of a schedule: whose command, and what happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Choice {
    /// Whose.
    pub lane: Lane,
    /// What happens.
    pub act: Act,
}

impl Choice {
    /// The lane's next command runs.
    pub fn execute(lane: Lane) -> Choice {
        Choice {
            lane,
            act: Act::Execute,
        }
    }

    /// Whether the connection is lost.
    pub fn is_fault(self) -> bool {
        self.act != Act::Execute
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.act {
            Act::Execute => {}
            Act::DropBefore => f.write_str("!")?,
            Act::LoseReply => f.write_str("~")?,
        }
        self.lane.fmt(f)
    }
}

/// Identifies a workload, so that a schedule is not replayed against another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorkloadHash(u32);

impl WorkloadHash {
    /// Of the workload with this description.
    pub fn of(description: &str) -> WorkloadHash {
        let digest = Sha1::digest(description.as_bytes());
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&digest[..4]);
        WorkloadHash(u32::from_be_bytes(bytes))
    }
}

impl fmt::Display for WorkloadHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// Choices in order, of one workload. Prints as `v1:` workload `:` choices, a letter for each command that ran, `!a` for a
/// connection lost before lane `a`'s command ran, `~a` for one lost before its reply arrived.
///
/// ```
/// # #[cfg(feature = "explore")] {
/// use fakeserver::explore::Schedule;
///
/// let schedule: Schedule = "v1:00c0ffee:abb~a".parse()?;
/// assert_eq!(schedule.choices().len(), 4);
/// assert_eq!(schedule.to_string(), "v1:00c0ffee:abb~a");
/// # }
/// # Ok::<(), fakeserver::explore::ScheduleError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    workload: WorkloadHash,
    choices: Vec<Choice>,
}

impl Schedule {
    /// These choices of this workload.
    pub fn new(workload: WorkloadHash, choices: Vec<Choice>) -> Schedule {
        Schedule { workload, choices }
    }

    /// The workload that it belongs to.
    pub fn workload(&self) -> WorkloadHash {
        self.workload
    }

    /// The choices in order.
    pub fn choices(&self) -> &[Choice] {
        &self.choices
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v1:{}:", self.workload)?;
        self.choices.iter().try_for_each(|choice| choice.fmt(f))
    }
}

/// A text that is not a schedule.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScheduleError {
    /// It does not begin with a version, a workload and a colon.
    #[error("a schedule has the form v1:<8 hexadecimal digits>:<choices>")]
    Form,
    /// A letter is missing behind `!` or `~`, or there is something that is no letter.
    #[error("no choice at position {0} of the schedule")]
    Choice(usize),
}

impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Schedule, ScheduleError> {
        let rest = text.strip_prefix("v1:").ok_or(ScheduleError::Form)?;
        let (hash, letters) = rest.split_once(':').ok_or(ScheduleError::Form)?;
        let is_hash = hash.len() == 8 && hash.bytes().all(|digit| digit.is_ascii_hexdigit());
        let workload = u32::from_str_radix(hash, 16)
            .ok()
            .filter(|_| is_hash)
            .ok_or(ScheduleError::Form)?;
        let mut choices = Vec::new();
        let mut letters = letters.chars().enumerate();
        while let Some((at, letter)) = letters.next() {
            let act = match letter {
                '!' => Act::DropBefore,
                '~' => Act::LoseReply,
                _ => Act::Execute,
            };
            let letter = match act {
                Act::Execute => Some(letter),
                _ => letters.next().map(|(_, letter)| letter),
            };
            let lane = letter
                .and_then(Lane::from_letter)
                .ok_or(ScheduleError::Choice(at))?;
            choices.push(Choice { lane, act });
        }
        Ok(Schedule::new(WorkloadHash(workload), choices))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_read_as_it_was_printed() {
        for text in ["v1:00000000:", "v1:0123abcd:abAZz!a~b!B", "v1:ffffffff:~~"] {
            match text.parse::<Schedule>() {
                Ok(schedule) => assert_eq!(schedule.to_string(), text),
                Err(error) => {
                    assert_eq!((error, text), (ScheduleError::Choice(0), "v1:ffffffff:~~"));
                }
            }
        }
    }

    #[test]
    fn a_malformed_schedule_is_refused_with_the_place() {
        for (text, error) in [
            ("", ScheduleError::Form),
            ("v2:00000000:a", ScheduleError::Form),
            ("v1:0000000:a", ScheduleError::Form),
            ("v1:+0000000:a", ScheduleError::Form),
            ("v1:00000000", ScheduleError::Form),
            ("v1:00000000:ab1", ScheduleError::Choice(2)),
            ("v1:00000000:a!", ScheduleError::Choice(1)),
            ("v1:00000000:!!a", ScheduleError::Choice(0)),
        ] {
            assert_eq!(text.parse::<Schedule>(), Err(error), "{text}");
        }
    }
}
