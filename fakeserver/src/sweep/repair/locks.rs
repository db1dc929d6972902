//! Rules about locks, markers and WATCH.

use super::Situation;
use crate::sweep::seen::{Role, Seen};
use crate::wire::Reply;

/// A WATCH that did not protect: another user of the connection consumed it, or EXEC went over another connection.
pub(super) fn dedicated_connection(situation: &Situation<'_>) -> Option<String> {
    let key = situation.key()?;
    let watches = |call: &super::Call<'_>| {
        call.is(&["WATCH"])
            && call
                .words
                .iter()
                .skip(1)
                .any(|word| super::shown(word) == key)
    };
    let watch = situation.before().find(watches)?;
    let done =
        |call: &super::Call<'_>| call.is(&["EXEC"]) && matches!(call.reply, Some(Reply::Array(_)));
    let exec = situation.after().find(done)?;
    let how = if exec.connection == watch.connection {
        "something else on the same connection ended the WATCH before this EXEC"
    } else {
        "EXEC went over another connection than WATCH"
    };
    Some(format!(
        "WATCH belongs to a connection, and {how}. Run WATCH, the reads, MULTI and EXEC on a connection that nobody else uses meanwhile."
    ))
}

/// A lock that ends before the work under it does.
pub(super) fn fencing_token(situation: &Situation<'_>) -> Option<String> {
    if !["isolation", "expiry"].contains(&situation.kind) {
        return None;
    }
    let (key, lost) = lost_lock(situation)?;
    let mut late = situation.own.iter().filter(|call| call.at > lost);
    late.find(|call| {
        let step = situation.steps.get(call.at);
        step.is_some_and(|step| {
            let mut touched = step.writes.iter().chain(&step.reads);
            // A script that names the lock checks it, or gives it back.
            let about_lock = touched.any(|word| super::shown(word) == key);
            !step.writes.is_empty() && !step.failed() && !step.missing && !about_lock
        })
    })?;
    Some(format!(
        "The lock {key} ended before the work under it did. Take a fencing token with the lock (INCR a counter) and write by a script that \
         refuses a token older than the newest seen; renewing the lock while the work goes on makes it rarer only."
    ))
}

/// A lock that the program held when it ended or somebody else took it, and the step of that.
fn lost_lock(situation: &Situation<'_>) -> Option<(String, usize)> {
    let taken = situation
        .own
        .iter()
        .filter(|call| call.is_acquire() && !call.is_refused() && !call.missing);
    taken.into_iter().find_map(|lock| {
        let key = lock.key()?;
        let own_role = situation.steps.get(lock.at)?.role;
        let mut later = situation.steps.iter().enumerate().skip(lock.at + 1);
        let (at, step) = later.find(|(_, step)| {
            let changes = step.writes.iter().any(|word| super::shown(word) == key);
            changes && !step.was_idle()
        })?;
        (step.role != own_role && step.role != Role::After).then_some((key, at))
    })
}

/// A lock that is given back without a look at its owner, or by GET and then DEL.
pub(super) fn compare_and_delete(situation: &Situation<'_>) -> Option<String> {
    let key = situation.key()?;
    situation.acquired(key).or_else(|| {
        // The read of an owner's token, to give the lock back.
        let token = situation
            .before()
            .find(|call| call.is(&["GET"]) && call.is_on(key))?;
        let set = situation
            .own
            .iter()
            .find(|call| call.is(&["SET", "SETNX"]) && call.is_on(key) && call.at < token.at)?;
        (set.word(2) == token.answer()).then_some(*set)
    })?;
    situation
        .after()
        .find(|call| call.is_removal() && call.is_on(key) && !call.is_refused())?;
    Some(format!(
        "Keep a random token in {key} and give the lock back by a script that compares: if redis.call('GET', KEYS[1]) == ARGV[1] then return \
         redis.call('DEL', KEYS[1]) end return 0"
    ))
}

/// A value that is looked for before a lock is taken, and not again under it.
pub(super) fn look_again(situation: &Situation<'_>) -> Option<String> {
    let cause = situation.cause?;
    let key = &cause.key;
    let mut between = situation.own.iter().filter(|call| call.at > cause.read);
    let guard = between.find(|call| call.is_acquire() && !call.is_refused() && !call.is_on(key))?;
    let guard_key = guard.key()?;
    let overwritten = cause.overwritten.filter(|at| *at > guard.at)?;
    let theirs = |step: &Seen| {
        let is_other = step.role != Role::Server
            && step.role
                != situation
                    .steps
                    .get(guard.at)
                    .map_or(Role::A, |own| own.role);
        is_other
            && step
                .writes
                .iter()
                .any(|word| super::shown(word) == guard_key)
    };
    let mut earlier = situation.steps.iter().take(guard.at);
    (earlier.any(theirs) && overwritten > guard.at).then(|| {
        format!(
            "Read {key} again once {guard_key} is taken: whoever had it before may have written {key} since the first look."
        )
    })
}

/// A check for absence followed by SET, or SETNX followed by EXPIRE.
pub(super) fn set_nx_ex(situation: &Situation<'_>) -> Option<String> {
    // A document that is there later is not to be replaced by the first one, but to be changed.
    let is_document = |call: &super::Call<'_>| {
        let value = if call.is(&["SET"]) {
            call.word(2)
        } else {
            call.word(3)
        };
        value.is_some_and(|value| value.starts_with(b"[") || value.starts_with(b"{"))
    };
    let unguarded = |call: &super::Call<'_>| {
        call.is(&["SET", "SETEX", "PSETEX"])
            && !call.has_option(&["NX", "XX"])
            && !is_document(call)
    };
    if let Some(key) = situation.key() {
        let check = situation
            .before()
            .find(|call| call.is(&["GET", "EXISTS"]) && call.is_on(key) && call.is_refused());
        let set = situation
            .after()
            .find(|call| unguarded(call) && call.is_on(key));
        if let (Some(check), Some(_)) = (check, set) {
            return Some(format!(
                "Instead of {} and SET, use SET {key} value NX EX seconds alone: only the one that it answers OK may go on.",
                check.name()
            ));
        }
    }
    let acquire = situation.before().find(|call| {
        let bare = !call.has_option(&["EX", "PX", "EXAT", "PXAT"]);
        call.is_acquire() && bare && !call.is_refused()
    })?;
    let key = acquire.key()?;
    let expire = situation
        .own
        .iter()
        .find(|call| call.is_expire() && call.is_on(&key) && call.at > acquire.at)?;
    (expire.at > situation.gap).then(|| {
        format!(
            "Instead of {} and {}, use SET {key} value NX EX seconds: value and time to live in one command.",
            acquire.name(),
            expire.name()
        )
    })
}
