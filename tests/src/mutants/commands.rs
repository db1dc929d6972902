//! Faults of single commands, seen in their replies.

use fakeserver::command::lookup;

use super::{Exchange, Mutant, edit_items, line, mutant, ok};
use crate::frame::Frame;
use crate::raw::{PATIENCE, Received};

#[rustfmt::skip]
pub(super) const MUTANTS: &[Mutant] = &[
    mutant("APPEND loses the last byte", append_loses_a_byte),
    mutant("DEL counts missing keys", del_counts_missing),
    mutant("DISCARD runs what was queued", discard_runs),
    mutant("EXEC runs in spite of an error while queueing", queue_error_ignored),
    mutant("EXPIRE GT sets a deadline where there is none", expire_gt_on_persistent),
    mutant("EXPIRE in the past leaves the key", expire_in_the_past_ignored),
    mutant("GEODIST always answers metres", |x| { if x.is("GEODIST") && x.words.len() == 5 { x.words.pop(); } x.send() }),
    mutant("GEOSEARCH sorts backwards", geosearch_backwards),
    mutant("GETRANGE leaves out its end", getrange_end_exclusive),
    mutant("HSET counts fields that were there", hset_counts_all),
    mutant("INCR wraps around", incr_wraps),
    mutant("LPUSH pushes at the tail", |x| { x.rename("LPUSH", "RPUSH"); x.send() }),
    mutant("LRANGE leaves out its end", |x| x.change(&["LRANGE"], |_, reply| edit_items(reply, |items| { items.pop(); }))),
    mutant("LREM ignores the sign of its count", lrem_ignores_sign),
    mutant("PERSIST leaves the deadline", persist_does_nothing),
    mutant("PFCOUNT counts the first key only", |x| { if x.is("PFCOUNT") { x.words.truncate(2); } x.send() }),
    mutant("RENAME leaves the old key", rename_copies),
    mutant("RESP3 null as in RESP2", |x| map_frames(x, |frame| if frame == Frame::Line(b"_".to_vec()) { Frame::Line(b"$-1".to_vec()) } else { frame })),
    mutant("RESP3 maps as arrays", |x| map_frames(x, |frame| match frame { Frame::Items(b'%', items) => Frame::Items(b'*', items), other => other })),
    mutant("SCAN skips a key", |x| x.change(&["SCAN"], |_, reply| edit_items(reply, |items| { items.pop(); }))),
    mutant("SELECT is forgotten", |x| match x.words.as_slice() { [name, db] if name.eq_ignore_ascii_case(b"SELECT") && db == b"1" && !x.in_transaction() => ok(), _ => x.send() }),
    mutant("SET keeps the deadline", set_keeps_ttl),
    mutant("SETNX overwrites", setnx_overwrites),
    mutant("SINTER leaves out missing keys", sinter_skips_missing),
    mutant("TTL in milliseconds", |x| { x.rename("TTL", "PTTL"); x.send() }),
    mutant("WATCH is forgotten", |x| if x.is("WATCH") && x.words.len() > 1 && !x.in_transaction() { ok() } else { x.send() }),
    mutant("ZADD ignores NX", |x| { if x.is("ZADD") { x.words.retain(|word| word != b"NX"); } x.send() }),
    mutant("ZCOUNT counts an exclusive bound", zcount_inclusive),
    mutant("ZPOPMIN pops the greatest", |x| { x.rename("ZPOPMIN", "ZPOPMAX"); x.send() }),
    mutant("a due key is still seen", due_key_lives),
    mutant("a key of another type counts as missing", wrong_type_is_null),
    mutant("a script's false is an empty string", script_false_is_empty),
    mutant("members of equal score come backwards", |x| x.change(&["ZRANGEBYLEX"], |_, reply| edit_items(reply, |items| items.reverse()))),
    mutant("queued commands run at once", queued_commands_run_at_once),
];

fn append_loses_a_byte(x: &mut Exchange<'_>) -> Received {
    if x.is("APPEND")
        && let [_, _, value] = x.words.as_mut_slice()
    {
        value.pop();
    }
    x.send()
}

fn del_counts_missing(x: &mut Exchange<'_>) -> Received {
    x.change(&["DEL"], |words, reply| match reply {
        Frame::Line(line) if line.starts_with(b":") => {
            Frame::Line(format!(":{}", words.len() - 1).into_bytes())
        }
        other => other,
    })
}

fn discard_runs(x: &mut Exchange<'_>) -> Received {
    if !x.is("DISCARD") || !x.in_transaction() || x.words.len() > 1 {
        return x.send();
    }
    x.rename("DISCARD", "EXEC");
    x.send();
    ok()
}

fn queue_error_ignored(x: &mut Exchange<'_>) -> Received {
    let known = lookup(&x.words[0]).is_some_and(|row| row.accepts(x.words.len()));
    if x.in_transaction() && !known {
        let words: Vec<&[u8]> = x.words.iter().map(Vec::as_slice).collect();
        x.memory.control.request(&words);
        return x.memory.control.receive(PATIENCE);
    }
    x.send()
}

fn expire_gt_on_persistent(x: &mut Exchange<'_>) -> Received {
    if x.is_any(&["EXPIRE", "PEXPIRE"])
        && x.words.last().is_some_and(|word| word == b"GT")
        && !x.in_transaction()
    {
        let key = x.words[1].clone();
        if x.ask(&[&b"TTL"[..], &key]) == line(":-1") {
            x.words.pop();
        }
    }
    x.send()
}

fn expire_in_the_past_ignored(x: &mut Exchange<'_>) -> Received {
    if x.is_any(&["EXPIRE", "PEXPIRE"])
        && x.words.len() == 3
        && x.words[2].starts_with(b"-")
        && !x.in_transaction()
    {
        let key = x.words[1].clone();
        return x.ask(&[&b"EXISTS"[..], &key]);
    }
    x.send()
}

fn geosearch_backwards(x: &mut Exchange<'_>) -> Received {
    if x.is("GEOSEARCH") {
        for word in &mut x.words {
            if word == b"ASC" {
                *word = b"DESC".to_vec();
            }
        }
    }
    x.send()
}

fn getrange_end_exclusive(x: &mut Exchange<'_>) -> Received {
    x.change(&["GETRANGE"], |_, reply| match reply {
        Frame::Blob(kind, mut bytes) => {
            bytes.pop();
            Frame::Blob(kind, bytes)
        }
        other => other,
    })
}

fn hset_counts_all(x: &mut Exchange<'_>) -> Received {
    x.change(&["HSET"], |words, reply| match reply {
        Frame::Line(line) if line.starts_with(b":") => {
            Frame::Line(format!(":{}", (words.len() - 2) / 2).into_bytes())
        }
        other => other,
    })
}

fn incr_wraps(x: &mut Exchange<'_>) -> Received {
    match x.send() {
        Received::Frame(Frame::Line(text))
            if x.is_any(&["INCR", "INCRBY"]) && text.ends_with(b"would overflow") =>
        {
            line(":-9223372036854775808")
        }
        reply => reply,
    }
}

fn lrem_ignores_sign(x: &mut Exchange<'_>) -> Received {
    if x.is("LREM")
        && let [_, _, count, _] = x.words.as_mut_slice()
        && count.starts_with(b"-")
    {
        count.remove(0);
    }
    x.send()
}

fn persist_does_nothing(x: &mut Exchange<'_>) -> Received {
    if let [_, key] = x.words.as_slice()
        && x.is("PERSIST")
    {
        x.words = vec![
            b"EXPIRE".to_vec(),
            key.clone(),
            b"100000".to_vec(),
            b"XX".to_vec(),
        ];
    }
    x.send()
}

fn rename_copies(x: &mut Exchange<'_>) -> Received {
    if let [_, from, to] = x.words.as_slice()
        && x.is("RENAME")
        && from != to
        && !x.in_transaction()
    {
        let (from, to) = (from.clone(), to.clone());
        if x.ask(&[&b"COPY"[..], &from, &to, b"REPLACE"]) == line(":1") {
            return ok();
        }
    }
    x.send()
}

fn set_keeps_ttl(x: &mut Exchange<'_>) -> Received {
    if x.is("SET") && x.words.len() == 3 {
        x.words.push(b"KEEPTTL".to_vec());
    }
    x.send()
}

fn setnx_overwrites(x: &mut Exchange<'_>) -> Received {
    if !x.is("SETNX") || x.words.len() != 3 || x.in_transaction() {
        return x.send();
    }
    x.rename("SETNX", "SET");
    x.send();
    line(":1")
}

fn sinter_skips_missing(x: &mut Exchange<'_>) -> Received {
    if x.is("SINTER") && x.words.len() > 1 && !x.in_transaction() {
        let keys = x.words.split_off(1);
        for key in keys {
            if x.ask(&[&b"EXISTS"[..], &key]) == line(":1") {
                x.words.push(key);
            }
        }
        if x.words.len() == 1 {
            x.words.push(b"missing".to_vec());
        }
    }
    x.send()
}

fn zcount_inclusive(x: &mut Exchange<'_>) -> Received {
    if x.is("ZCOUNT") && x.words.len() == 4 {
        for bound in &mut x.words[2..] {
            if bound.starts_with(b"(") {
                bound.remove(0);
            }
        }
    }
    x.send()
}

fn due_key_lives(x: &mut Exchange<'_>) -> Received {
    if x.is_any(&["SET", "PEXPIRE", "PSETEX", "GETEX"]) {
        let at = if x.is_any(&["PEXPIRE", "PSETEX"]) {
            Some(2)
        } else {
            x.words
                .iter()
                .position(|word| word == b"PX")
                .map(|at| at + 1)
        };
        if let Some(time) = at.and_then(|at| x.words.get_mut(at))
            && time == b"1"
        {
            *time = b"100000".to_vec();
        }
    }
    x.send()
}

fn wrong_type_is_null(x: &mut Exchange<'_>) -> Received {
    match x.send() {
        Received::Frame(Frame::Line(text)) if text.starts_with(b"-WRONGTYPE") => line("$-1"),
        reply => reply,
    }
}

fn script_false_is_empty(x: &mut Exchange<'_>) -> Received {
    match x.send() {
        reply if x.is_any(&["EVAL", "EVALSHA"]) && (reply == line("$-1") || reply == line("_")) => {
            Received::Frame(Frame::Blob(b'$', Vec::new()))
        }
        reply => reply,
    }
}

/// Changes a reply and everything inside of it.
fn map_frames(x: &mut Exchange<'_>, change: fn(Frame) -> Frame) -> Received {
    fn each(frame: Frame, change: fn(Frame) -> Frame) -> Frame {
        change(match frame {
            Frame::Items(kind, items) => Frame::Items(
                kind,
                items.into_iter().map(|item| each(item, change)).collect(),
            ),
            other => other,
        })
    }
    match x.send() {
        Received::Frame(frame) => Received::Frame(each(frame, change)),
        other => other,
    }
}

/// Other connections see a transaction's writes before its EXEC.
fn queued_commands_run_at_once(x: &mut Exchange<'_>) -> Received {
    if x.is("MULTI") && x.words.len() == 1 && !x.in_transaction() {
        x.memory.replies[x.client].clear();
        return ok();
    }
    if !x.in_transaction() || x.is_any(&["MULTI", "WATCH", "RESET", "QUIT"]) {
        return x.send();
    }
    if x.is("DISCARD") && x.words.len() == 1 {
        return ok();
    }
    if x.is("EXEC") && x.words.len() == 1 {
        let replies = std::mem::take(&mut x.memory.replies[x.client]);
        return Received::Frame(Frame::Items(b'*', replies));
    }
    match x.send() {
        Received::Frame(frame) => {
            x.memory.replies[x.client].push(frame);
            line("+QUEUED")
        }
        other => other,
    }
}
