//! [`Schedule`]: the order in which commands ran and what was done to them, as data that can be printed and read again.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sha1::{Digest, Sha1};
use thiserror::Error;

/// Most lanes of one run; each has a letter, `a` to `z` and then `A` to `Z`.
pub const LANES_MAX: usize = 52;

/// A client's connection as the schedule names it: client number `n` has lane `n`, and keeps it when it reconnects. A client
/// that holds several connections at a time has further lanes, numbered in the order in which they were opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane(pub(super) u8);

impl Lane {
    /// Whose choices are about no connection, but about the server and its time. It has no letter.
    pub const WORLD: Lane = Lane(LANES_MAX as u8);

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
        if *self == Lane::WORLD {
            return f.pad("world");
        }
        let letter = if self.0 < 26 {
            b'a' + self.0
        } else {
            b'A' + self.0 - 26
        };
        write!(f, "{}", char::from(letter))
    }
}

/// What happens: to a command whose turn it is or, on [`Lane::WORLD`], to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Act {
    /// The command runs and is answered.
    Execute,
    /// The connection is lost before the command runs.
    DropBefore,
    /// The command runs, and the connection is lost before its reply arrives.
    LoseReply,
    /// No command runs for so long. The clients' timers go off as their time comes, and what they send then has to wait too.
    Advance(Duration),
    /// A key's time is up: of all keys that have a deadline the one of this number, in order of deadline, then database, then
    /// name.
    Expire(u32),
    /// The script cache is emptied, as `SCRIPT FLUSH` does.
    FlushScripts,
    /// The server ends and starts again: all connections are lost and no script is cached.
    Restart {
        /// Whether keys and functions are still there.
        keeps_data: bool,
    },
    /// A replica takes the place of the server: as a restart, but the last steps that wrote are undone.
    Failover {
        /// How many of them.
        lost: u32,
    },
}

/// Longest time that a schedule lets pass at once: a year.
pub(super) const ADVANCE_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Act {
    /// Whether it is one of [`Lane::WORLD`].
    pub fn is_of_world(self) -> bool {
        !matches!(self, Act::Execute | Act::DropBefore | Act::LoseReply)
    }

    /// What stands between the parentheses of a schedule.
    fn from_text(text: &str) -> Option<Act> {
        if let Some(time) = text.strip_prefix('+') {
            let time = match time.strip_suffix("ms") {
                Some(millis) => Duration::from_millis(number(millis)?),
                None => Duration::from_micros(number(time.strip_suffix("us")?)?),
            };
            return (time <= ADVANCE_MAX).then_some(Act::Advance(time));
        }
        match text.split_once(' ') {
            None if text == "flush" => Some(Act::FlushScripts),
            None if text == "restart" => Some(Act::Restart { keeps_data: true }),
            Some(("restart", "empty")) => Some(Act::Restart { keeps_data: false }),
            Some(("expire", nth)) => Some(Act::Expire(number(nth)?)),
            Some(("failover", lost)) => Some(Act::Failover {
                lost: number(lost)?,
            }),
            _ => None,
        }
    }
}

/// Digits alone, without a sign.
fn number<T: FromStr>(text: &str) -> Option<T> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// As in a schedule, without the lane.
impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Act::Execute => Ok(()),
            Act::DropBefore => f.write_str("!"),
            Act::LoseReply => f.write_str("~"),
            Act::Advance(by) if by.subsec_micros() % 1000 == 0 => {
                write!(f, "(+{}ms)", by.as_millis())
            }
            Act::Advance(by) => write!(f, "(+{}us)", by.as_micros()),
            Act::Expire(nth) => write!(f, "(expire {nth})"),
            Act::FlushScripts => f.write_str("(flush)"),
            Act::Restart { keeps_data: true } => f.write_str("(restart)"),
            Act::Restart { keeps_data: false } => f.write_str("(restart empty)"),
            Act::Failover { lost } => write!(f, "(failover {lost})"),
        }
    }
}

/// One step of a schedule: whose command, and what happens to it; or what happens to the server.
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

    /// Something happens to the server.
    pub fn world(act: Act) -> Choice {
        Choice {
            lane: Lane::WORLD,
            act,
        }
    }

    /// Whether something goes wrong: a connection is lost, or something happens to the server.
    pub fn is_fault(self) -> bool {
        self.act != Act::Execute
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.act.fmt(f)?;
        if self.act.is_of_world() {
            return Ok(());
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
/// connection lost before lane `a`'s command ran, `~a` for one lost before its reply arrived, and in parentheses what happens
/// to the server: `(+250ms)`, `(expire 0)`, `(flush)`, `(restart)`, `(restart empty)`, `(failover 1)`.
///
/// ```
/// # #[cfg(feature = "explore")] {
/// use fakeserver::explore::Schedule;
///
/// let schedule: Schedule = "v1:00c0ffee:abb~a(restart)ab".parse()?;
/// assert_eq!(schedule.choices().len(), 7);
/// assert_eq!(schedule.to_string(), "v1:00c0ffee:abb~a(restart)ab");
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
    /// A letter is missing behind `!` or `~`, or there is something that is neither a letter nor known in parentheses.
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
        let mut rest = letters;
        while !rest.is_empty() {
            let (choice, behind) = next_choice(rest).ok_or_else(|| {
                let read = letters.len() - rest.len();
                ScheduleError::Choice(letters[..read].chars().count())
            })?;
            choices.push(choice);
            rest = behind;
        }
        Ok(Schedule::new(WorkloadHash(workload), choices))
    }
}

/// The choice that a text begins with, and the rest.
fn next_choice(text: &str) -> Option<(Choice, &str)> {
    if let Some(text) = text.strip_prefix('(') {
        let (act, rest) = text.split_once(')')?;
        return Some((Choice::world(Act::from_text(act)?), rest));
    }
    let mut letters = text.chars();
    let (act, letter) = match letters.next()? {
        '!' => (Act::DropBefore, letters.next()?),
        '~' => (Act::LoseReply, letters.next()?),
        letter => (Act::Execute, letter),
    };
    let lane = Lane::from_letter(letter)?;
    Some((Choice { lane, act }, letters.as_str()))
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
    fn what_happens_to_the_server_is_read_as_it_was_printed() {
        let text = "v1:0123abcd:a(+250ms)!b(+1us)(expire 7)(flush)c(restart)~d(restart empty)(failover 3)a";
        let schedule: Schedule = text.parse().unwrap();
        assert_eq!(schedule.to_string(), text);
        assert_eq!(schedule.choices().len(), 12);
        let world = schedule.choices().iter();
        assert_eq!(world.filter(|one| one.lane == Lane::WORLD).count(), 7);
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
            ("v1:00000000:a(", ScheduleError::Choice(1)),
            ("v1:00000000:(flush", ScheduleError::Choice(0)),
            ("v1:00000000:!(flush)", ScheduleError::Choice(0)),
            ("v1:00000000:(flush)(flush )", ScheduleError::Choice(7)),
            ("v1:00000000:(expire -1)", ScheduleError::Choice(0)),
            ("v1:00000000:(expire +1)", ScheduleError::Choice(0)),
            ("v1:00000000:(expire )", ScheduleError::Choice(0)),
            ("v1:00000000:(+9)", ScheduleError::Choice(0)),
            ("v1:00000000:(+99999999999999ms)", ScheduleError::Choice(0)),
            (
                "v1:00000000:(failover 99999999999)",
                ScheduleError::Choice(0),
            ),
            ("v1:00000000:\u{e9}", ScheduleError::Choice(0)),
        ] {
            assert_eq!(text.parse::<Schedule>(), Err(error), "{text}");
        }
    }
}
