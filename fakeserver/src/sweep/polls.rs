//! [`Polls`]: notices a program that asks the same again and again while nothing changes.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::time::Duration;

use foldhash::fast::FixedState;
use tokio::time::Instant;

use super::atoms::{atoms, is_time};
use crate::wire::{Reply, Request};

/// Longest round of commands that is recognised.
const PERIOD_MAX: usize = 8;

/// How often a round has to be repeated to count as waiting.
const ROUNDS: usize = 4;

/// A program's latest visible commands and their replies.
#[derive(Debug, Default)]
pub(super) struct Polls {
    latest: VecDeque<u64>,
    since: Option<Instant>,
}

impl Polls {
    /// Takes note of a command. One that changed something begins anew. Times near `now_seconds` are all the same.
    pub(super) fn note(
        &mut self,
        request: &Request,
        reply: Option<&Reply>,
        changed: bool,
        now_seconds: f64,
    ) {
        if changed {
            self.clear();
            return;
        }
        let timeless = |word| without_times(word, now_seconds);
        let words: Vec<Vec<u8>> = request.words().map(timeless).collect();
        let sign = FixedState::default().hash_one((words, format!("{reply:?}")));
        if self.latest.len() == PERIOD_MAX * ROUNDS {
            self.latest.pop_front();
        }
        self.latest.push_back(sign);
        self.since.get_or_insert_with(Instant::now);
    }

    /// Whether the program waits for something to change.
    pub(super) fn is_waiting(&self) -> bool {
        let len = self.latest.len();
        (1..=PERIOD_MAX).any(|period| {
            let Some(start) = len.checked_sub(period * ROUNDS) else {
                return false;
            };
            (start..len - period).all(|at| self.latest.get(at) == self.latest.get(at + period))
        })
    }

    /// Whether it has done so for this long.
    pub(super) fn lasts(&self, how_long: Duration) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= how_long)
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.latest.clear();
        self.since = None;
    }
}

/// A word without the times that it holds: who polls often says when.
fn without_times(word: &[u8], now_seconds: f64) -> Vec<u8> {
    let mut rest = Vec::with_capacity(word.len());
    let mut done = 0;
    for range in atoms(word) {
        if is_time(word.get(range.clone()).unwrap_or_default(), now_seconds) {
            rest.extend_from_slice(word.get(done..range.start).unwrap_or_default());
            done = range.end;
        }
    }
    rest.extend_from_slice(word.get(done..).unwrap_or_default());
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(commands: &[(&str, i64, bool)]) -> bool {
        let mut polls = Polls::default();
        for (words, reply, changed) in commands {
            let request = Request::new(words.split(' '));
            let reply = Reply::Integer(*reply);
            polls.note(&request, Some(&reply), *changed, 1_700_000_000.0);
        }
        polls.is_waiting()
    }

    #[test]
    fn a_round_that_repeats_itself_is_a_wait() {
        let round = [("EXISTS lock", 1, false), ("SET lock x NX", 0, false)];
        assert!(waits(&round.repeat(4)));
        assert!(!waits(&round.repeat(3)));
        assert!(waits(&[("GET k", 1, false); 4]));
        let timed = ["1700000000", "1700000001.5", "1700000002111", "1700000003"];
        let timed = timed.map(|at| (format!("EVALSHA f 1 k {at}"), 0, false));
        assert!(waits(&timed.each_ref().map(|(words, reply, changed)| (
            words.as_str(),
            *reply,
            *changed
        ))));
    }

    #[test]
    fn other_replies_and_changes_are_progress() {
        let counting: Vec<_> = (0..40).map(|n| ("GET k", n, false)).collect();
        assert!(!waits(&counting));
        assert!(!waits(&[("INCR k", 1, true); 40]));
    }
}
