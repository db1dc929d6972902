//! [`repair()`]: advice for the classic faults, by rules over what a program did.
//!
//! Each rule sees the commands of the program that was interrupted, and is silent unless it recognises all of its pattern. The first that
//! speaks is taken: the special ones stand in front.

mod faults;
mod locks;
mod values;

use crate::sweep::report::{Cause, Repair};
use crate::sweep::seen::{self, Role, Seen, bytes, shown};
use crate::wire::Reply;

/// What would help against a finding of this kind, if a rule knows.
pub(crate) fn repair(kind: &str, steps: &[Seen], cause: Option<&Cause>) -> Option<Repair> {
    let situation = Situation::new(kind, steps, cause);
    RULES.iter().find_map(|(rule, advise)| {
        let text = advise(&situation)?;
        let rule = (*rule).to_owned();
        Some(Repair { rule, text })
    })
}

/// A rule's name, and its advice if it has any.
type Rule = (&'static str, fn(&Situation<'_>) -> Option<String>);

const RULES: [Rule; 16] = [
    ("noscript", faults::noscript),
    ("idempotency-key", faults::idempotency_key),
    ("own-marker", faults::own_marker),
    ("dedicated-connection", locks::dedicated_connection),
    ("compare-and-delete", locks::compare_and_delete),
    ("fencing-token", locks::fencing_token),
    ("rename", values::rename),
    ("getdel", values::getdel),
    ("own-reply", values::own_reply),
    ("incr-expire", values::incr_expire),
    ("look-again", locks::look_again),
    ("set-nx-ex", locks::set_nx_ex),
    ("zadd-xx", values::zadd_xx),
    ("marker", faults::marker),
    ("watch", values::watch),
    ("multi", faults::multi),
];

/// What the rules look at.
struct Situation<'a> {
    kind: &'a str,
    steps: &'a [Seen],
    cause: Option<&'a Cause>,
    /// The commands of the program that was interrupted, in order, those of a transaction one by one.
    own: Vec<Call<'a>>,
    /// The step in which the world changed: the cause's, else the first thing that the schedule did.
    gap: usize,
}

/// One command of the program that was interrupted.
#[derive(Clone, Copy)]
struct Call<'a> {
    /// Its step, or that of its EXEC.
    at: usize,
    connection: usize,
    words: &'a [Vec<u8>],
    reply: Option<&'a Reply>,
    missing: bool,
}

impl<'a> Situation<'a> {
    fn new(kind: &'a str, steps: &'a [Seen], cause: Option<&'a Cause>) -> Situation<'a> {
        let reader = cause.and_then(|cause| steps.get(cause.read));
        let role = reader.map_or(Role::A, |step| step.role);
        let gap = cause.map(|cause| cause.written);
        let event = || steps.iter().position(|step| step.role == Role::Server);
        Situation {
            kind,
            steps,
            cause,
            own: calls(steps, role),
            gap: gap.or_else(event).unwrap_or(steps.len()),
        }
    }

    fn key(&self) -> Option<&'a str> {
        self.cause.map(|cause| cause.key.as_str())
    }

    /// The program's own commands up to the change.
    fn before(&self) -> impl DoubleEndedIterator<Item = Call<'a>> + Clone {
        let gap = self.gap;
        self.own.iter().copied().filter(move |call| call.at < gap)
    }

    /// Those behind it, with those that did not happen any more.
    fn after(&self) -> impl DoubleEndedIterator<Item = Call<'a>> + Clone {
        let gap = self.gap;
        self.own.iter().copied().filter(move |call| call.at > gap)
    }

    /// Whether the finding is about what a program leaves half done. After a restart it may be the server that lost the other half.
    fn is_about_halves(&self) -> bool {
        let went_on = self.after().any(|call| !call.missing && self.writes(&call));
        ["crash", "lost-reply"].contains(&self.kind) && !went_on
    }

    /// Whether a command may have changed something.
    fn writes(&self, call: &Call<'_>) -> bool {
        let step = self.steps.get(call.at);
        step.is_some_and(|step| !step.writes.is_empty())
    }

    /// Whether the program took the key as a lock or marker before the change: by SETNX, or SET NX.
    fn acquired(&self, key: &str) -> Option<Call<'a>> {
        self.before()
            .find(|call| call.is_on(key) && call.is_acquire() && !call.is_refused())
    }
}

fn calls(steps: &[Seen], role: Role) -> Vec<Call<'_>> {
    let own = steps
        .iter()
        .enumerate()
        .filter(|(_, step)| step.role == role);
    let mut calls = Vec::new();
    for (at, step) in own {
        let call = |words, reply| Call {
            at,
            connection: step.connection,
            words,
            reply,
            missing: step.missing,
        };
        if step.transaction.is_empty() {
            // A queued command is seen again in its EXEC.
            let queued = matches!(&step.reply, Some(Reply::Simple(text)) if text == "QUEUED");
            if !queued {
                calls.push(call(step.words.as_slice(), step.reply.as_ref()));
            }
            continue;
        }
        calls.push(call(step.words.as_slice(), step.reply.as_ref()));
        let replies = match &step.reply {
            Some(Reply::Array(replies)) => replies.as_slice(),
            _ => &[],
        };
        let queued = step.transaction.iter().enumerate();
        calls.extend(queued.map(|(nth, words)| call(words.as_slice(), replies.get(nth))));
    }
    calls
}

impl<'a> Call<'a> {
    fn name(&self) -> String {
        seen::name(self.words)
    }

    fn is(&self, names: &[&str]) -> bool {
        names.contains(&self.name().as_str())
    }

    /// Whether its first argument is this key.
    fn is_on(&self, key: &str) -> bool {
        self.words.get(1).is_some_and(|word| shown(word) == key)
    }

    fn key(&self) -> Option<String> {
        self.words.get(1).map(|word| shown(word))
    }

    fn word(&self, at: usize) -> Option<&'a [u8]> {
        self.words.get(at).map(Vec::as_slice)
    }

    fn has_option(&self, names: &[&str]) -> bool {
        let options = self.words.iter().skip(3);
        let named = |word: &Vec<u8>| {
            names
                .iter()
                .any(|name| word.eq_ignore_ascii_case(name.as_bytes()))
        };
        options.into_iter().any(named)
    }

    fn is_acquire(&self) -> bool {
        self.is(&["SETNX"]) || (self.is(&["SET"]) && self.has_option(&["NX"]))
    }

    fn is_removal(&self) -> bool {
        self.is(&["DEL", "UNLINK"])
    }

    fn is_expire(&self) -> bool {
        self.is(&["EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT"])
    }

    /// Whether its reply says no: nil, 0, an empty array, or an error.
    fn is_refused(&self) -> bool {
        match self.reply {
            Some(Reply::Null | Reply::NullArray | Reply::Integer(0) | Reply::Error(_)) => true,
            Some(Reply::Array(items) | Reply::Set(items)) => items.is_empty(),
            Some(Reply::Map(pairs) | Reply::Pairs(pairs)) => pairs.is_empty(),
            _ => false,
        }
    }

    /// The string that it answered.
    fn answer(&self) -> Option<&'a [u8]> {
        self.reply.and_then(bytes)
    }

    fn is_script(&self) -> bool {
        self.is(&["EVAL", "EVALSHA", "FCALL"])
    }
}

#[cfg(test)]
mod tests;
