//! Where a command's keys are among its words.

use crate::value::number;
use crate::wire::Request;

/// What a command does with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Access {
    /// Only looks.
    Read,
    /// May change it.
    Write,
}

/// Positions of the keys; position 0 is the command's name, for a subcommand its container's.
#[derive(Clone, Copy, Debug)]
pub enum KeySpec {
    /// No keys.
    None,
    /// From `first` to `last` (negative: counted from the end, -1 is the last word), every `step` words.
    Range {
        /// Position of the first key.
        first: usize,
        /// Position of the last key.
        last: i32,
        /// Distance between keys.
        step: usize,
    },
    /// The number of keys stands at this position, the keys behind it (EVAL, SINTERCARD).
    CountAt(usize),
    /// The destination stands at 1, the number of the other keys at 2, they behind it (ZUNIONSTORE).
    DestinationAndCount,
    /// Depends on the words in another way.
    Custom(fn(&Request) -> Vec<(usize, Access)>),
}

impl KeySpec {
    /// One key, right behind the name.
    pub const FIRST: KeySpec = KeySpec::Range {
        first: 1,
        last: 1,
        step: 1,
    };
    /// All words behind the name.
    pub const ALL: KeySpec = KeySpec::Range {
        first: 1,
        last: -1,
        step: 1,
    };

    /// Positions of the keys of `request`, and what a command of the given kind does with each. Positions are inside of the
    /// request; a malformed count yields no keys, since the command will refuse it.
    pub fn positions(&self, request: &Request, kind: Access) -> Vec<(usize, Access)> {
        let mut positions = Vec::new();
        self.visit(request, kind, |at, access| positions.push((at, access)));
        positions
    }

    /// Calls `visit` with what [`KeySpec::positions`] collects.
    pub fn visit(&self, request: &Request, kind: Access, mut visit: impl FnMut(usize, Access)) {
        match self {
            KeySpec::None => {}
            KeySpec::Range { first, last, step } => {
                let last = if *last < 0 {
                    request.len() as i64 + i64::from(*last)
                } else {
                    i64::from(*last)
                };
                let end = (last + 1).clamp(0, request.len() as i64) as usize;
                (*first..end)
                    .step_by((*step).max(1))
                    .for_each(|at| visit(at, kind));
            }
            KeySpec::CountAt(at) => counted(request, *at).for_each(|at| visit(at, kind)),
            KeySpec::DestinationAndCount => {
                if request.len() > 1 {
                    visit(1, Access::Write);
                }
                counted(request, 2).for_each(|at| visit(at, Access::Read));
            }
            KeySpec::Custom(positions) => {
                for (at, access) in positions(request) {
                    visit(at, access);
                }
            }
        }
    }
}

fn counted(request: &Request, at: usize) -> std::ops::Range<usize> {
    let count = request.get(at).and_then(number::parse_integer).unwrap_or(0);
    let left = request.len().saturating_sub(at + 1) as i64;
    if (0..=left).contains(&count) {
        at + 1..at + 1 + count as usize
    } else {
        0..0
    }
}
