//! [`cause()`]: who read, who wrote between, who wrote in the belief that nothing had changed.

use crate::sweep::report::Cause;
use crate::sweep::seen::{Role, Seen, shown};

/// How well three steps explain a finding; less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// The value that was read is overwritten.
    ReadThenSame,
    /// What the program itself had written is written again.
    WroteThenSame,
    /// Something else is written after a read.
    ReadThenOther,
    /// Something else is written, as under a lock that is gone.
    WroteThenOther,
    /// The program did not write any more, but answered by what it had read.
    ReadOnly,
}

/// The three steps that explain a finding best, if any do: a program reads `key`, another one or the schedule changes it, and the
/// first writes as if it had not.
pub(crate) fn cause(steps: &[Seen]) -> Option<Cause> {
    let of = |reader| best(steps, reader);
    let found = [of(Role::A), of(Role::B)].into_iter().flatten();
    // The first of equals, so that the same steps are always explained in the same way.
    found.min_by_key(|(rank, _)| *rank).map(|(_, cause)| cause)
}

fn best(steps: &[Seen], reader: Role) -> Option<(Rank, Cause)> {
    let mut best: Option<(Rank, Cause)> = None;
    for (read, step) in steps.iter().enumerate() {
        if step.role != reader || step.failed() || step.missing {
            continue;
        }
        // A key that it reads and writes (INCR, SET NX) tells it something, too; but a plain read tells more.
        let reads = step
            .reads
            .iter()
            .map(|key| (key, !step.writes.contains(key)));
        let writes = step.writes.iter().map(|key| (key, false));
        for (key, is_read) in reads.chain(writes) {
            let Some(found) = explained(steps, read, key, is_read) else {
                continue;
            };
            // Of equals the later read: it is the one that was believed.
            if best.as_ref().is_none_or(|(rank, _)| found.0 <= *rank) {
                best = Some(found);
            }
        }
    }
    best
}

/// What followed the step that touched the key, if somebody else changed it then.
fn explained(steps: &[Seen], read: usize, key: &[u8], is_read: bool) -> Option<(Rank, Cause)> {
    let reader = steps.get(read)?.role;
    let writes = |step: &Seen| step.writes.iter().any(|written| written == key);
    let later = || steps.iter().enumerate().skip(read + 1);
    // A change behind the reader's next look is the next look's matter.
    let informed =
        later().find(|(_, step)| step.role == reader && touches(step, key) && !writes(step));
    let end = informed.map_or(steps.len(), |(at, _)| at);
    let foreign = |step: &Seen| step.role != reader && step.role != Role::After && !step.was_idle();
    let changes: Vec<usize> = later()
        .take_while(|(at, _)| *at < end)
        .filter(|(_, step)| foreign(step) && writes(step))
        .map(|(at, _)| at)
        .collect();
    let first = *changes.first()?;
    let acts = |(_, step): &(usize, &Seen)| step.role == reader && !step.failed() && !step.missing;
    let after = || later().filter(|(at, _)| *at > first).filter(acts);
    let same = after().find(|(_, step)| writes(step)).map(|(at, _)| at);
    let other = after()
        .find(|(_, step)| !step.writes.is_empty())
        .map(|(at, _)| at);
    let (rank, overwritten) = match (same, other, is_read) {
        (Some(at), _, true) => (Rank::ReadThenSame, Some(at)),
        (Some(at), _, false) => (Rank::WroteThenSame, Some(at)),
        (None, Some(at), true) => (Rank::ReadThenOther, Some(at)),
        (None, Some(at), false) => (Rank::WroteThenOther, Some(at)),
        (None, None, true) => (Rank::ReadOnly, None),
        (None, None, false) => return None,
    };
    let before = |at: &&usize| overwritten.is_none_or(|end| **at < end);
    let event = changes.iter().filter(before).find(|at| {
        let step = steps.get(**at);
        step.is_some_and(|step| step.role == Role::Server)
    });
    // What the schedule did comes first; else what was lost is what was written last.
    let written = *event.or_else(|| changes.iter().rfind(before))?;
    let cause = Cause {
        key: shown(key),
        read,
        written,
        overwritten,
    };
    Some((rank, cause))
}

fn touches(step: &Seen, key: &[u8]) -> bool {
    step.reads.iter().any(|read| read == key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::samples::steps;

    /// The cause as `key read written overwritten`.
    fn told(script: &str) -> String {
        match cause(&steps(script)) {
            None => "none".to_owned(),
            Some(cause) => {
                let overwritten = cause
                    .overwritten
                    .map_or("-".to_owned(), |at| at.to_string());
                format!(
                    "{} {} {} {overwritten}",
                    cause.key, cause.read, cause.written
                )
            }
        }
    }

    #[test]
    fn a_lost_update_names_its_three_commands() {
        let script =
            "a GET stock -> 5 | b GET stock -> 5 | b SET stock 4 -> OK | a SET stock 4 -> OK";
        assert_eq!(told(script), "stock 0 2 3");
    }

    #[test]
    fn the_program_that_was_interrupted_may_be_b() {
        let script =
            "b GET stock -> 5 | a GET stock -> 5 | a SET stock 4 -> OK | b SET stock 4 -> OK";
        assert_eq!(told(script), "stock 0 2 3");
    }

    #[test]
    fn the_key_that_was_read_is_preferred_to_others() {
        let script = "a GET x -> 1 | a GET y -> 1 | b SET x 2 -> OK | b SET y 2 -> OK | a SET z 1 -> OK | a SET x 3 -> OK";
        assert_eq!(told(script), "x 0 2 5");
    }

    #[test]
    fn a_write_elsewhere_counts_if_there_is_none_to_the_key() {
        let script = "a GET x -> 1 | b SET x 2 -> OK | a SET z 1 -> OK";
        assert_eq!(told(script), "x 0 1 2");
    }

    #[test]
    fn a_reader_that_only_answers_is_a_cause_without_a_write() {
        assert_eq!(told("a GET x -> 1 | b SET x 2 -> OK"), "x 0 1 -");
    }

    #[test]
    fn an_expiry_plays_the_writer() {
        let script = "a SET lock t NX PX 9 -> OK | server expire lock | b SET lock u NX PX 9 -> OK | a DEL lock -> 1";
        assert_eq!(told(script), "lock 0 1 3");
    }

    #[test]
    fn a_lock_that_is_gone_explains_a_write_elsewhere() {
        let script = "a SET lock t NX PX 9 -> OK | server expire lock | a SET stock 4 -> OK";
        assert_eq!(told(script), "lock 0 1 2");
    }

    #[test]
    fn nothing_explains_programs_that_do_not_meet() {
        assert_eq!(
            told("a GET x -> 1 | b SET y 2 -> OK | a SET x 3 -> OK"),
            "none"
        );
        assert_eq!(
            told("b SET x 2 -> OK | a GET x -> 2 | a SET x 3 -> OK"),
            "none"
        );
        assert_eq!(told(""), "none");
    }

    #[test]
    fn the_last_look_before_the_change_is_the_one_that_was_believed() {
        let script =
            "a GET x -> 1 | a GET x -> 1 | b SET x 2 -> OK | a TTL x -> 9 | a SET x 3 -> OK";
        assert_eq!(told(script), "x 1 2 4");
    }

    #[test]
    fn what_changed_nothing_is_no_writer() {
        let script = "a GET x -> 1 | b SETNX x 2 -> 0 | b DEL x -> 0 | a SET x 3 -> OK";
        assert_eq!(told(script), "none");
    }

    #[test]
    fn an_exec_that_answers_nil_overwrites_nothing() {
        let script = "a GET x -> 1 | b SET x 2 -> OK | a EXEC [SET x 3] -> nil";
        assert_eq!(told(script), "x 0 1 -");
    }

    #[test]
    fn keys_with_odd_bytes_are_quoted() {
        assert_eq!(shown(b"a b\"\\\x00\xff\n"), r#""a b\"\\\x00\xff\n""#);
        assert_eq!(shown(b"user:1"), "user:1");
        assert_eq!(shown(b""), "\"\"");
    }
}
