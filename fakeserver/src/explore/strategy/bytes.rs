//! [`Bytes`]: a schedule for a fuzzer to bend.

use super::{Decision, Point, Strategy};

/// Bytes as deviations from the default: a pair says for how many steps the default is followed and what comes then. Without
/// bytes it is the serial run, and a changed byte stays a local change.
#[derive(Clone, Debug)]
pub struct Bytes {
    script: Vec<u8>,
    at: usize,
    gap: Option<u8>,
    begun: bool,
}

impl Bytes {
    /// These bytes, once.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Bytes {
        Bytes {
            script: bytes.into(),
            at: 0,
            gap: None,
            begun: false,
        }
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.script.get(self.at).copied();
        self.at += 1;
        byte
    }
}

/// Longest stretch of defaults that one byte asks for; longer ones are several pairs.
const GAP_MAX: u8 = 32;

impl Strategy for Bytes {
    fn begin(&mut self) -> bool {
        self.at = 0;
        self.gap = self.next().map(|byte| byte % GAP_MAX);
        !std::mem::replace(&mut self.begun, true)
    }

    fn choose(&mut self, point: &Point<'_>) -> Decision {
        let candidates = point.candidates();
        let at = match self.gap {
            None => 0,
            Some(0) => {
                let at = self.next().map_or(0, usize::from) % candidates.len().max(1);
                self.gap = self.next().map(|byte| byte % GAP_MAX);
                at
            }
            Some(left) => {
                self.gap = Some(left - 1);
                0
            }
        };
        match candidates.get(at) {
            Some(candidate) => Decision::Take(candidate.choice),
            None => Decision::Diverged("nothing to choose from".to_owned()),
        }
    }
}
