//! [`Mutator`]: inputs for a target without a coverage-guided fuzzer, on any compiler.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::target::{LEN_MAX, Target};

/// Most changes of one input.
const CHANGES_MAX: usize = 8;

/// Bytes that mean something somewhere.
const TELLING: [&[u8]; 16] = [
    b"\r\n",
    b"*3\r\n$3\r\n",
    b"$-1\r\n",
    b"\xff\xff\xff\xff",
    b"\x00\x00\x00\x00",
    b"\x7f",
    b"\x80",
    b"-1",
    b"9223372036854775807",
    b" while true do ",
    b" pcall(",
    b"[==[",
    b"setmetatable(",
    b"{[",
    b"1e309",
    b"\xdc\xff\xff",
];

/// Makes inputs of known ones.
#[derive(Debug)]
pub struct Mutator {
    random: fastrand::Rng,
    corpus: Vec<Vec<u8>>,
}

/// An input that does not hold.
#[derive(Debug)]
pub struct Found {
    /// The input.
    pub input: Vec<u8>,
    /// What does not hold.
    pub text: String,
}

impl Mutator {
    /// A mutator that starts from these inputs.
    pub fn new(seed: u64, corpus: Vec<Vec<u8>>) -> Mutator {
        Mutator {
            random: fastrand::Rng::with_seed(seed),
            corpus,
        }
    }

    /// Runs inputs until the time is over or one does not hold; how many, and that one.
    pub fn run(&mut self, target: Target, time: Duration) -> (u64, Option<Found>) {
        let until = Instant::now() + time;
        let mut runs = 0;
        while Instant::now() < until {
            let input = self.input();
            runs += 1;
            if let Some(text) = failure(target, &input) {
                return (runs, Some(Found { input, text }));
            }
        }
        (runs, None)
    }

    /// The next input: a known one, changed.
    pub fn input(&mut self) -> Vec<u8> {
        let mut input = self.known();
        for _ in 0..self.random.usize(1..=CHANGES_MAX) {
            self.change(&mut input);
        }
        input.truncate(LEN_MAX);
        input
    }

    fn known(&mut self) -> Vec<u8> {
        let len = self.corpus.len();
        let which = self.random.usize(..len.max(1));
        self.corpus.get(which).cloned().unwrap_or_default()
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.random.usize(..=input.len());
        let len = self.random.usize(..=(input.len() - at).min(32));
        match self.random.u8(..7) {
            0 => drop(input.drain(at..at + len)),
            1 => {
                let piece = TELLING[self.random.usize(..TELLING.len())];
                input.splice(at..at, piece.iter().copied());
            }
            2 => {
                let copy = input[at..at + len].to_vec();
                let to = self.random.usize(..=input.len());
                input.splice(to..to, copy);
            }
            3 => {
                let other = self.known();
                let from = self.random.usize(..=other.len());
                let to = (from + self.random.usize(..64)).min(other.len());
                input.splice(at..at, other[from..to].iter().copied());
            }
            4 => input.insert(at, self.random.u8(..)),
            _ => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = match self.random.u8(..3) {
                        0 => *byte ^ (1 << self.random.u8(..8)),
                        1 => byte.wrapping_add(self.random.u8(..)),
                        _ => self.random.u8(..),
                    };
                }
            }
        }
    }
}

/// What does not hold of an input; a panic is that too.
pub fn failure(target: Target, input: &[u8]) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(|| target.run(input))) {
        Ok(result) => result.err(),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied());
            Some(format!("panic: {}", text.unwrap_or("of another kind")))
        }
    }
}
