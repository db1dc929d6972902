//! Rules about values that are read, changed and written.

use super::{Call, Situation};

/// Commands that read a key's value.
const READERS: [&str; 24] = [
    "DUMP",
    "EXISTS",
    "GET",
    "GETRANGE",
    "HEXISTS",
    "HGET",
    "HGETALL",
    "HLEN",
    "HMGET",
    "LINDEX",
    "LLEN",
    "LRANGE",
    "MGET",
    "SCARD",
    "SISMEMBER",
    "SMEMBERS",
    "STRLEN",
    "TYPE",
    "ZCARD",
    "ZCOUNT",
    "ZRANGE",
    "ZRANGEBYSCORE",
    "ZRANK",
    "ZSCORE",
];

/// Checks, the commands whose own replies make them needless, and why.
const OWN_REPLIES: [(&[&str], &str, Wanted, &str); 6] = [
    (
        &["SISMEMBER", "SMISMEMBER", "SMEMBERS"],
        "SADD",
        Wanted::Absent,
        "SADD answers 1 to the one who added the member, and 0 to all others",
    ),
    (
        &["HEXISTS", "HGET"],
        "HSET",
        Wanted::Absent,
        "HSETNX answers 1 to the one who set the field, and 0 to all others",
    ),
    (
        &["ZSCORE", "ZRANK"],
        "ZADD",
        Wanted::Absent,
        "ZADD NX answers 1 to the one who added the member, and 0 to all others",
    ),
    (
        &["SISMEMBER", "SMISMEMBER", "SMEMBERS"],
        "SREM",
        Wanted::Present,
        "SREM answers 1 to the one who removed the member, and 0 to all others (SPOP takes any)",
    ),
    (
        &["HEXISTS", "HGET"],
        "HDEL",
        Wanted::Present,
        "HDEL answers 1 to the one who removed the field, and 0 to all others",
    ),
    (
        &["ZSCORE", "ZRANK", "ZRANGE", "ZRANGEBYSCORE"],
        "ZREM",
        Wanted::Present,
        "ZREM answers 1 to the one who removed the member, and 0 to all others (ZPOPMIN takes the first)",
    ),
];

/// What a check has to have answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Absent,
    Present,
}

/// A value that is copied under another name, and then deleted.
pub(super) fn rename(situation: &Situation<'_>) -> Option<String> {
    let key = situation.key()?;
    let copied = |removal: &Call<'_>| {
        let earlier = || situation.own.iter().filter(|call| call.at < removal.at);
        let copy = earlier().any(|call| call.is(&["COPY"]) && call.is_on(key));
        let read = || earlier().filter(|call| call.is(&["GET", "DUMP"]) && call.is_on(key));
        let written = |value: &[u8]| {
            earlier().any(|call| {
                let elsewhere = call.is(&["SET", "SETEX", "PSETEX", "RESTORE"]) && !call.is_on(key);
                elsewhere && call.words.iter().skip(2).any(|word| word == value)
            })
        };
        copy || read().filter_map(Call::answer).any(written)
    };
    let removals = || {
        situation
            .own
            .iter()
            .filter(|call| call.is_removal() && call.is_on(key))
    };
    removals().find(|removal| copied(removal))?;
    Some(format!(
        "Move {key} by RENAME (RENAMENX, if the new name may be taken) instead of copying and deleting it: a write between the two goes along. \
         Writers that know the old name only need a script that looks up the name and writes."
    ))
}

/// GET and then DEL of the same key.
pub(super) fn getdel(situation: &Situation<'_>) -> Option<String> {
    let key = situation.key()?;
    situation
        .before()
        .find(|call| call.is(&["GET"]) && call.is_on(key) && !call.is_refused())?;
    situation
        .after()
        .find(|call| call.is_removal() && call.is_on(key))?;
    Some(format!(
        "Use GETDEL {key} instead of GET and DEL: only one caller gets the value. (Or let DEL's own reply decide: 1 for the one who deleted.)"
    ))
}

/// A check before SADD, HSET, ZADD, SREM, HDEL or ZREM.
pub(super) fn own_reply(situation: &Situation<'_>) -> Option<String> {
    let key = situation.key()?;
    OWN_REPLIES.iter().find_map(|(checks, act, wanted, why)| {
        let answered = |call: &Call<'_>| match wanted {
            // That a set has other members says nothing of this one.
            Wanted::Absent => call.is_refused() || call.is(&["SMEMBERS", "SMISMEMBER"]),
            Wanted::Present => !call.is_refused(),
        };
        let check = situation
            .before()
            .find(|call| call.is(checks) && call.is_on(key) && answered(call))?;
        situation
            .after()
            .find(|call| call.is(&[act]) && call.is_on(key) && !adds_only(call))?;
        let check = check.name();
        Some(format!("Drop {check} before {act} on {key}: {why}."))
    })
}

/// Whether it adds and changes nothing that is there: ZADD NX.
fn adds_only(call: &Call<'_>) -> bool {
    let mut options = call.words.iter().skip(2);
    call.is(&["ZADD"]) && options.any(|word| word.eq_ignore_ascii_case(b"NX"))
}

/// A counter that gets its time to live in a second command, or that is looked at before it is counted.
pub(super) fn incr_expire(situation: &Situation<'_>) -> Option<String> {
    let counts =
        |call: &Call<'_>| call.is(&["DECR", "DECRBY", "HINCRBY", "INCR", "INCRBY", "INCRBYFLOAT"]);
    let script = "local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end return n";
    let expires = |key: &str| {
        let mut late = situation.own.iter().filter(|call| call.at > situation.gap);
        late.find(|call| call.is_expire() && call.is_on(key))
            .copied()
    };
    for count in situation.own.iter().filter(|call| counts(call)) {
        let key = count.key()?;
        if count.at < situation.gap && expires(&key).is_some() {
            return Some(format!(
                "Count and set the time to live of {key} in one script: {script}"
            ));
        }
    }
    let key = situation.key()?;
    situation
        .before()
        .find(|call| call.is(&["GET", "HGET"]) && call.is_on(key))?;
    // What takes from a balance after a look at it wants more than its own reply: `watch` speaks of that.
    let takes = |call: &Call<'_>| call.is(&["DECR", "DECRBY"]);
    let count = situation.after().find(|call| {
        let counts = counts(call) && !takes(call) || counts_by_set(situation, call);
        counts && call.is_on(key)
    })?;
    if count.is(&["SET", "SETEX", "PSETEX"]) {
        return Some(format!(
            "Count {key} and set its time to live in one script instead of GET and {}, and judge by its reply: {script}",
            count.name()
        ));
    }
    Some(format!(
        "Count {key} first and judge by the reply of {}, not by a GET before it; with a time to live in one script: {script}",
        count.name()
    ))
}

/// Whether it writes, with a time to live, one more than a GET answered.
fn counts_by_set(situation: &Situation<'_>, call: &Call<'_>) -> bool {
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<i64>().ok();
    let written = match call.name().as_str() {
        "SET" if call.has_option(&["EX", "PX", "EXAT", "PXAT", "KEEPTTL"]) => call.word(2),
        "SETEX" | "PSETEX" => call.word(3),
        _ => None,
    };
    let Some(written) = written.and_then(number) else {
        return false;
    };
    let reads = situation
        .before()
        .rfind(|read| read.is(&["GET"]) && read.word(1) == call.word(1));
    // A marker is often a 1 where nothing was.
    let read = reads.and_then(|read| read.answer()).and_then(number);
    read.is_some_and(|read| read.checked_add(1) == Some(written))
}

/// A member of a sorted set that is removed and then added again.
pub(super) fn zadd_xx(situation: &Situation<'_>) -> Option<String> {
    let removals = situation.own.iter().filter(|call| call.is(&["ZREM"]));
    for removal in removals {
        let again = situation.own.iter().find(|call| {
            let same = call.is(&["ZADD"]) && call.word(1) == removal.word(1);
            same && call.at > removal.at
                && call
                    .words
                    .iter()
                    .skip(3)
                    .any(|word| Some(word.as_slice()) == removal.word(2))
        });
        let key = removal.key()?;
        // Whoever came between may have found nothing, and so have changed nothing.
        let interrupted = |again: &Call<'_>| {
            let own = situation.steps.get(removal.at).map(|step| step.role);
            let mut between = situation.steps.iter().take(again.at).skip(removal.at);
            between.any(|step| Some(step.role) != own)
        };
        if again.is_some_and(interrupted) {
            return Some(format!(
                "Move the member of {key} by ZADD XX alone: it changes the score of a member that is there, and adds none that was removed. \
                 If more hangs on it, remove and add in one script."
            ));
        }
    }
    None
}

/// A value that is read, changed by the program, and written.
pub(super) fn watch(situation: &Situation<'_>) -> Option<String> {
    let cause = situation.cause?;
    let overwritten = cause.overwritten?;
    let read = situation.own.iter().find(|call| call.at == cause.read)?;
    if !read.is(&READERS) {
        return None;
    }
    let write = situation
        .own
        .iter()
        .rfind(|call| call.at == overwritten && !call.is(&["EXEC"]))?;
    let key = &cause.key;
    let name = read.name();
    let number =
        |text: &[u8]| std::str::from_utf8(text).is_ok_and(|text| text.parse::<f64>().is_ok());
    let more = match (write.name().as_str(), read.answer()) {
        ("SET", Some(answer)) if number(answer) => " A number is changed in one command by INCRBY.",
        ("HSET" | "HMSET", _) if read.is(&["HGETALL", "HGET", "HMGET"]) => {
            " Write only the fields that change; a number is changed by HINCRBY."
        }
        ("DEL" | "RPUSH" | "LSET", _) if read.is(&["LRANGE"]) => {
            " A member of a list is removed by LREM and added by RPUSH alone."
        }
        _ => "",
    };
    let with = if write.is_script() {
        "the script"
    } else {
        "it"
    };
    Some(format!(
        "WATCH {key} before {name}, write inside MULTI and EXEC, and start anew if EXEC answers nil; or read and write in one script, by which \
         {with} decides on what is there at that moment.{more}"
    ))
}
