//! [`Single`]: one form of a command at a time, for tests that combine commands themselves.

use super::data::{LARGE, SMALL};
use super::draw::{READY, Ready};
use super::{maker, row_name};

/// Bytes from which one command is drawn.
const BYTES: usize = 80;

/// A form of a command.
#[derive(Clone, Copy)]
pub struct Single(&'static Ready);

impl std::fmt::Debug for Single {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.0.form.name, self.0.form.grammar)
    }
}

impl Single {
    /// The full name of its row.
    pub fn row(&self) -> String {
        row_name(self.0.form.name)
    }

    /// Whether it may wait for good.
    pub fn blocks(&self) -> bool {
        self.0.form.grammar.contains("forever") || self.0.form.grammar.contains("brief")
    }

    /// A command of this form: half of its keys are the one that has this number among those of their type. In front of it the
    /// command that loads the script or library which it runs.
    pub fn draw(&self, key: usize, serial: usize, rng: &mut fastrand::Rng) -> Vec<Vec<Vec<u8>>> {
        let bytes: Vec<u8> = (0..BYTES).map(|_| rng.u8(..)).collect();
        let (loads, words) = maker::single(self.0, key, serial, &bytes);
        loads.into_iter().chain([words]).collect()
    }
}

/// All forms of commands that programs are made of.
pub fn singles() -> Vec<Single> {
    READY.iter().map(Single).collect()
}

/// Commands that fill a server, with small values and with large ones.
pub fn states() -> [Vec<Vec<Vec<u8>>>; 2] {
    [SMALL, LARGE].map(|lines| {
        let words = |line: &&str| {
            let words = line.split(' ').map(|word| match word {
                "L" => vec![b'L'; 70],
                word => word.as_bytes().to_vec(),
            });
            words.collect()
        };
        lines.iter().map(words).collect()
    })
}
