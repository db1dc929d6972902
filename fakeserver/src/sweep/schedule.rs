//! [`Schedule`]: where one program is interrupted, and by what.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Who sends commands in a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// What fills the server before everything.
    Setup,
    /// The first program.
    A,
    /// The second program.
    B,
    /// The third program, where more than two are explored.
    C,
    /// The fourth.
    D,
    /// The fifth.
    E,
    /// What runs at the end of each run.
    After,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 7] = [
        Role::Setup,
        Role::A,
        Role::B,
        Role::C,
        Role::D,
        Role::E,
        Role::After,
    ];

    /// The programs that are run side by side: a sweep has the first two of them.
    pub const PROGRAMS: [Role; 5] = [Role::A, Role::B, Role::C, Role::D, Role::E];

    /// `setup`, `a` to `e`, or `after`.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Setup => "setup",
            Role::A => "a",
            Role::B => "b",
            Role::C => "c",
            Role::D => "d",
            Role::E => "e",
            Role::After => "after",
        }
    }

    /// Whether it is one of the programs that run side by side.
    pub(crate) fn is_program(self) -> bool {
        Role::PROGRAMS.contains(&self)
    }

    /// The other of the two programs.
    pub(crate) const fn rival(self) -> Role {
        match self {
            Role::B => Role::A,
            _ => Role::B,
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// As a reader calls it.
impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Setup => "the setup",
            Role::A => "A",
            Role::B => "B",
            Role::C => "C",
            Role::D => "D",
            Role::E => "E",
            Role::After => "the program after",
        })
    }
}

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The other program runs whole between two commands.
    Isolation,
    /// The program dies.
    Crash,
    /// A reply is lost.
    LostReply,
    /// Keys expire.
    Expiry,
    /// The server or the connection goes and comes back.
    Restart,
}

impl Kind {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Kind; 5] = [
        Kind::Isolation,
        Kind::Crash,
        Kind::LostReply,
        Kind::Expiry,
        Kind::Restart,
    ];

    /// `isolation`, `crash`, `lost-reply`, `expiry` or `restart`.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Isolation => "isolation",
            Kind::Crash => "crash",
            Kind::LostReply => "lost-reply",
            Kind::Expiry => "expiry",
            Kind::Restart => "restart",
        }
    }
}

impl FromStr for Kind {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Kind, ScheduleError> {
        let found = Kind::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| ScheduleError::Kind(text.to_owned()))
    }
}

/// What happens at the point where a program is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Act {
    /// The other program runs to its end.
    RunOther,
    /// The program dies.
    Die,
    /// The next command runs, its reply is lost and its connection closed.
    LoseReply,
    /// Time goes on until a key expires.
    Expire,
    /// The same, and then the other program runs to its end.
    ExpireAndRunOther,
    /// The script cache is emptied.
    FlushScripts,
    /// All connections are closed.
    Reset,
    /// The server is gone and comes back with its keys, without scripts and connections.
    RestartKept,
    /// The server is gone and comes back empty.
    RestartEmpty,
}

impl Act {
    /// What it belongs to.
    pub const fn kind(self) -> Kind {
        match self {
            Act::RunOther => Kind::Isolation,
            Act::Die => Kind::Crash,
            Act::LoseReply => Kind::LostReply,
            Act::Expire | Act::ExpireAndRunOther => Kind::Expiry,
            Act::FlushScripts | Act::Reset | Act::RestartKept | Act::RestartEmpty => Kind::Restart,
        }
    }

    /// Behind the point in a schedule's text.
    const fn suffix(self, of: Role) -> &'static str {
        match self {
            Act::ExpireAndRunOther => match of {
                Role::B => ":a",
                _ => ":b",
            },
            Act::FlushScripts => ":scripts",
            Act::Reset => ":reset",
            Act::RestartKept => ":kept",
            Act::RestartEmpty => ":empty",
            _ => "",
        }
    }

    const ALL: [Act; 9] = [
        Act::RunOther,
        Act::Die,
        Act::LoseReply,
        Act::Expire,
        Act::ExpireAndRunOther,
        Act::FlushScripts,
        Act::Reset,
        Act::RestartKept,
        Act::RestartEmpty,
    ];
}

/// One interruption: `isolation:a3`, `restart:b1:empty`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Schedule {
    /// Who is interrupted, A or B.
    pub of: Role,
    /// Before which of its visible commands, counted from 0 over all its connections.
    pub point: usize,
    /// By what.
    pub act: Act,
}

/// A text that is no schedule.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScheduleError {
    /// There is no such kind.
    #[error("there is no kind `{0}`; the kinds are isolation, crash, lost-reply, expiry, restart")]
    Kind(String),
    /// It has another form.
    #[error("`{0}` is no schedule; one looks like isolation:a3 or restart:b1:empty")]
    Form(String),
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, suffix) = (self.act.kind().name(), self.act.suffix(self.of));
        write!(f, "{kind}:{}{}{suffix}", self.of.name(), self.point)
    }
}

impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Schedule, ScheduleError> {
        let bad = || ScheduleError::Form(text.to_owned());
        let (kind, rest) = text.split_once(':').ok_or_else(bad)?;
        let kind: Kind = kind.parse()?;
        let (of, rest) = match rest.split_at_checked(1).ok_or_else(bad)? {
            ("a", rest) => (Role::A, rest),
            ("b", rest) => (Role::B, rest),
            _ => return Err(bad()),
        };
        let end = rest.find(':').unwrap_or(rest.len());
        let (point, suffix) = rest.split_at(end);
        let point = point.parse().map_err(|_| bad())?;
        let act = Act::ALL
            .into_iter()
            .find(|act| act.kind() == kind && act.suffix(of) == suffix)
            .ok_or_else(bad)?;
        Ok(Schedule { of, point, act })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_read_as_it_is_written() {
        for of in [Role::A, Role::B] {
            for act in Act::ALL {
                let schedule = Schedule { of, point: 12, act };
                assert_eq!(schedule.to_string().parse(), Ok(schedule), "{schedule}");
            }
        }
        let expire = Schedule {
            of: Role::A,
            point: 2,
            act: Act::ExpireAndRunOther,
        };
        assert_eq!(expire.to_string(), "expiry:a2:b");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "isolation",
            "isolation:",
            "isolation:c1",
            "isolation:a",
            "isolation:a-1",
            "restart:a1",
            "restart:a1:never",
            "crash:a1:b",
            "isolation:é",
        ] {
            assert!(text.parse::<Schedule>().is_err(), "{text}");
        }
        assert_eq!(
            "luck:a1".parse::<Schedule>(),
            Err(ScheduleError::Kind("luck".to_owned()))
        );
    }
}
