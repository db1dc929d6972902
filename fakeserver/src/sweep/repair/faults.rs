//! Rules about programs that die, replies that are lost and servers that start anew.

use super::{Call, Situation};
use crate::sweep::seen::Role;
use crate::wire::Reply;

/// A script that is called by its digest alone.
pub(super) fn noscript(situation: &Situation<'_>) -> Option<String> {
    let refused = |call: &&Call<'_>| matches!(call.reply, Some(Reply::Error(error)) if error.to_string().starts_with("NOSCRIPT"));
    let refused = situation.own.iter().find(refused)?;
    let again = |call: &Call<'_>| {
        let load = call.is(&["SCRIPT"])
            && call
                .word(1)
                .is_some_and(|word| word.eq_ignore_ascii_case(b"LOAD"));
        (call.is(&["EVAL"]) || load) && call.at > refused.at
    };
    if situation.own.iter().any(again) {
        return None;
    }
    Some(
        "Answer NOSCRIPT by sending the script itself (EVAL, which also puts it into the cache again): a server that was started anew or flushed \
         knows no digest. Most clients' script objects do that by themselves."
            .to_owned(),
    )
}

/// A command that is sent again after its reply was lost, and counts twice.
pub(super) fn idempotency_key(situation: &Situation<'_>) -> Option<String> {
    let again = repeated(situation).filter(|again| !again.is_refused())?;
    Some(format!(
        "The client sends {} again, since it cannot know that the first one ran. Give each operation an id of its own and remember it in the same \
         script or transaction (SET id 1 NX EX seconds; nothing else if it was there), or switch the client's retries off for it.",
        again.name()
    ))
}

/// A marker that is refused to the one who set it, since the reply was lost.
pub(super) fn own_marker(situation: &Situation<'_>) -> Option<String> {
    let again = repeated(situation).filter(|again| again.is_acquire() && again.is_refused())?;
    let key = again.key()?;
    Some(format!(
        "The retry of {} on {key} is refused by the marker that this very program set when the reply was lost. Put an id of its own into the \
         value and look (GET {key}) whose it is; or set the marker and do what it stands for in one script.",
        again.name()
    ))
}

/// The second of two equal writes, as a client sends them that got no reply to the first.
fn repeated<'a>(situation: &Situation<'a>) -> Option<Call<'a>> {
    if situation.kind != "lost-reply" {
        return None;
    }
    let own = &situation.own;
    own.iter().copied().enumerate().find_map(|(nth, again)| {
        let mut earlier = own.iter().take(nth);
        let is_repeated =
            earlier.any(|first| first.words == again.words && situation.writes(first));
        (is_repeated && !again.missing).then_some(again)
    })
}

/// A marker that is set before what it stands for.
pub(super) fn marker(situation: &Situation<'_>) -> Option<String> {
    if !situation.is_about_halves() {
        return None;
    }
    let marks = |call: &Call<'_>| call.is_acquire() || call.is(&["SADD", "HSETNX", "PFADD"]);
    let mark = situation
        .before()
        .find(|call| marks(call) && !call.is_refused())?;
    let key = mark.key()?;
    let pushes = |call: &Call<'_>| {
        call.is(&[
            "LPUSH", "RPUSH", "XADD", "ZADD", "SADD", "HSET", "PUBLISH", "SET",
        ]) && !call.is_on(&key)
    };
    let push = situation.after().find(pushes)?;
    Some(format!(
        "Set the marker {key} and run {} in one MULTI and EXEC, or in one script, so that a program that dies between them leaves both or neither.",
        push.name()
    ))
}

/// Several writes that belong together.
pub(super) fn multi(situation: &Situation<'_>) -> Option<String> {
    if !situation.is_about_halves() {
        return None;
    }
    let died = situation.steps.iter().any(|step| step.role == Role::Server);
    let writes = |call: &Call<'_>| situation.writes(call);
    let last = situation
        .before()
        .filter(|call| !call.is(&["EXEC"]))
        .rfind(writes)?;
    let next = situation
        .own
        .iter()
        .find(|call| call.missing && writes(call));
    let next = next.map_or_else(|| "the next write".to_owned(), Call::name);
    died.then(|| {
        format!(
            "Run {} and {next} in one MULTI and EXEC, or in one script, so that a program that dies between them leaves both or neither.",
            last.name()
        )
    })
}
