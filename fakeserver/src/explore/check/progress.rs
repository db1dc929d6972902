//! Runs that get nowhere: nothing returns, or a client does the same over and over.

use super::{Database, Observer};
use crate::explore::schedule::{Act, Lane};
use crate::explore::trace::{Trace, in_words};
use crate::explore::{Progress, Violation};

/// Sees to it that among so many commands something returns.
#[derive(Debug)]
pub(in crate::explore) struct Livelock {
    most: u64,
    progress: Progress,
    seen: u64,
    idle: u64,
}

impl Livelock {
    pub(in crate::explore) fn new(most: u64, progress: Progress) -> Livelock {
        Livelock {
            most,
            progress,
            seen: 0,
            idle: 0,
        }
    }
}

impl Observer for Livelock {
    fn stepped(&mut self, _: &mut Database<'_>) -> Result<(), Violation> {
        let seen = self.progress.count();
        // What returned because of the step before is seen now, so this is the first step since.
        self.idle = if seen == self.seen { self.idle + 1 } else { 1 };
        self.seen = seen;
        if self.idle <= self.most {
            return Ok(());
        }
        let details = format!(
            "{} commands ran and no operation returned, no client came to its end",
            self.idle
        );
        Err(Violation::new("livelock", details))
    }

    fn sees_states(&self) -> bool {
        false
    }
}

/// A run of commands that the end of the trace has at least so often is a pattern.
const TIMES_MIN: usize = 3;
/// Longest pattern looked for, and longest text of one.
const PERIOD_MAX: usize = 64;
const TEXT_LEN_MAX: usize = 160;

/// The commands that each client repeats at the end of a trace, in words.
pub(in crate::explore) fn repeats(trace: &Trace) -> Vec<String> {
    let clients = trace.clients.iter().max().map_or(0, |most| most + 1);
    (0..clients)
        .filter_map(|client| {
            let commands = commands_of(client, trace);
            let (pattern, times) = repeated(&commands)?;
            let lane = Lane::new(client)?;
            let pattern: String = pattern.join(", ").chars().take(TEXT_LEN_MAX).collect();
            Some(format!("{lane} repeats {pattern} ({times} times)"))
        })
        .collect()
}

fn commands_of(client: usize, trace: &Trace) -> Vec<String> {
    let of_client = |lane: Lane| trace.clients.get(lane.index()) == Some(&client);
    let steps = trace
        .steps
        .iter()
        .filter(|step| step.choice.act != Act::DropBefore && of_client(step.choice.lane));
    steps.map(|step| in_words(&step.request)).collect()
}

/// The shortest pattern that the list ends with again and again, and how often it does. Words behind the key may differ, such as
/// a token that is new each time.
fn repeated(commands: &[String]) -> Option<(&[String], usize)> {
    let head = |command: &String| -> String {
        let words: Vec<&str> = command.split(' ').take(2).collect();
        words.join(" ")
    };
    let heads: Vec<String> = commands.iter().map(head).collect();
    for period in 1..=PERIOD_MAX.min(heads.len() / TIMES_MIN) {
        let last = &heads[heads.len() - period..];
        let times = heads
            .rchunks_exact(period)
            .take_while(|chunk| *chunk == last)
            .count();
        if times >= TIMES_MIN {
            return Some((&commands[commands.len() - period..], times));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_pattern_at_the_end_is_named_with_its_number() {
        let list = |text: &str| -> Vec<String> { text.split(',').map(str::to_owned).collect() };
        for (commands, expected) in [
            ("GET k,GET k,GET k,GET k", Some(("GET k", 4))),
            (
                "SET a,GET k,DEL k,GET k,DEL k,GET k,DEL k",
                Some(("GET k,DEL k", 3)),
            ),
            ("SET k 1,SET k 2,SET k 3", Some(("SET k 3", 3))),
            ("GET k,GET k", None),
            ("GET a,GET b,GET c,GET d", None),
            ("", None),
        ] {
            let commands = list(commands);
            let found = repeated(&commands).map(|(pattern, times)| (pattern.join(","), times));
            let expected = expected.map(|(pattern, times)| (pattern.to_owned(), times));
            assert_eq!(found, expected, "{commands:?}");
        }
    }
}
