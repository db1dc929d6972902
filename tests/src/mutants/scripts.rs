//! Faults of scripts and of what keys become outside of the server.

use super::{Exchange, Mutant, faultless, mutant, ok};
use crate::frame::Frame;
use crate::raw::Received;

#[rustfmt::skip]
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant { question: dump_without_a_field, ..mutant("DUMP of a hash leaves out a field", faultless) },
    mutant("RESTORE sets no deadline", |x| { if x.is("RESTORE") && let Some(time) = x.words.get_mut(2) { *time = b"0".to_vec(); } x.send() }),
    mutant("XAUTOCLAIM takes what is young", |x| { if x.is("XAUTOCLAIM") && let Some(idle) = x.words.get_mut(4) { *idle = b"0".to_vec(); } x.send() }),
    mutant("a nil does not end a script's list", |x| { replace(x, "nil, ", ""); x.send() }),
    mutant("a script's error loses its code to ERR", error_without_code),
    mutant("a script's fraction is rounded up", |x| { replace(x, "3.99", "4"); x.send() }),
    mutant("cjson encodes an empty table as a list", |x| in_strings(x, "EVAL", b"\"{}\"", b"\"[]\"")),
    mutant("cjson loses the escape of a slash", |x| { replace(x, "cjson.decode(t))", "cjson.decode(t)):gsub([[\\/]], '/')"); x.send() }),
    mutant("cmsgpack reads on at the wrong place", |x| { replace(x, "cmsgpack.unpack_one, ", "function(t, n) return cmsgpack.unpack_one(t, (n or 0) + 1) end, "); x.send() }),
    mutant("struct packs with the other byte first", |x| { replace(x, "struct.pack, '", "struct.pack, '>"); x.send() }),
    mutant("FCALL_RO lets writes through", |x| { x.rename("FCALL_RO", "FCALL"); x.send() }),
    mutant("FUNCTION RESTORE APPEND replaces", |x| restoring(x, b"APPEND", b"REPLACE")),
    mutant("FUNCTION RESTORE FLUSH leaves what was there", |x| restoring(x, b"FLUSH", b"REPLACE")),
    mutant("FUNCTION LOAD forgets flags", load_without_flags),
    mutant("FUNCTION LOAD always replaces", load_always_replaces),
    mutant("FUNCTION FLUSH does nothing", |x| if x.is("FUNCTION") && is_at(x, 1, b"FLUSH") && x.words.len() == 2 { in_turn(x) } else { x.send() }),
    mutant("a function's keys are arguments", |x| { if x.is("FCALL") && let Some(keys) = x.words.get_mut(2) && matches!(keys.as_slice(), b"1" | b"2") { *keys = b"0".to_vec(); } x.send() }),
    mutant("setresp is forgotten", |x| { replace(x, "redis.setresp(3)", ""); x.send() }),
];

fn is_at(x: &Exchange<'_>, at: usize, word: &[u8]) -> bool {
    x.words
        .get(at)
        .is_some_and(|it| it.eq_ignore_ascii_case(word))
}

/// The answer of a command that is not run, be it that it is put off.
fn in_turn(x: &mut Exchange<'_>) -> Received {
    if x.in_transaction() { x.send() } else { ok() }
}

/// Changes the policy of FUNCTION RESTORE, which is APPEND where none is named.
fn restoring(x: &mut Exchange<'_>, from: &[u8], to: &[u8]) -> Received {
    if x.is("FUNCTION") && is_at(x, 1, b"RESTORE") {
        if x.words.len() == 3 {
            x.words.push(b"APPEND".to_vec());
        }
        if is_at(x, 3, from) {
            x.words[3] = to.to_vec();
        }
    }
    x.send()
}

/// Loads a library whose functions lack their flags, and shows its code with them.
fn load_without_flags(x: &mut Exchange<'_>) -> Received {
    const FLAG: &[u8] = b"{'no-writes'}";
    const BLANK: &[u8] = b"{           }";
    if x.is("FUNCTION")
        && is_at(x, 1, b"LOAD")
        && let Some(source) = x.words.last_mut()
    {
        *source = replaced(source, FLAG, BLANK);
    }
    in_strings(x, "FUNCTION", BLANK, FLAG)
}

fn load_always_replaces(x: &mut Exchange<'_>) -> Received {
    if x.is("FUNCTION") && is_at(x, 1, b"LOAD") && x.words.len() == 3 {
        x.words.insert(2, b"REPLACE".to_vec());
    }
    x.send()
}

/// Changes a script's source.
fn replace(x: &mut Exchange<'_>, what: &str, with: &str) {
    if x.is_any(&["EVAL", "EVAL_RO"])
        && let Some(source) = x.words.get_mut(1)
        && let Ok(text) = std::str::from_utf8(source)
    {
        *source = text.replace(what, with).into_bytes();
    }
}

fn error_without_code(x: &mut Exchange<'_>) -> Received {
    match x.send() {
        Received::Frame(Frame::Line(text)) if x.is("EVAL") && text.starts_with(b"-MINE") => {
            Received::Frame(Frame::Line([b"-ERR ", &text[1..]].concat()))
        }
        reply => reply,
    }
}

/// Changes the bulk strings in a command's reply.
fn in_strings(x: &mut Exchange<'_>, command: &str, what: &[u8], with: &[u8]) -> Received {
    fn each(frame: Frame, what: &[u8], with: &[u8]) -> Frame {
        match frame {
            Frame::Items(kind, items) => {
                let items = items.into_iter().map(|item| each(item, what, with));
                Frame::Items(kind, items.collect())
            }
            Frame::Blob(kind, bytes) => Frame::Blob(kind, replaced(&bytes, what, with)),
            line @ Frame::Line(_) => line,
        }
    }
    match x.send() {
        Received::Frame(frame) if x.is(command) => Received::Frame(each(frame, what, with)),
        reply => reply,
    }
}

/// The bytes with each `what` in them another.
fn replaced(bytes: &[u8], what: &[u8], with: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(what.len()).position(|part| part == what) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(with);
        rest = &rest[at + what.len()..];
    }
    out.extend_from_slice(rest);
    out
}

/// Has the engine dump a copy of a hash that lacks a field.
fn dump_without_a_field(words: &mut Vec<Vec<u8>>) {
    const SOURCE: &str = "if redis.call('TYPE', KEYS[1]).ok == 'hash' then redis.call('COPY', KEYS[1], KEYS[2]) \
                          redis.call('HDEL', KEYS[2], redis.call('HKEYS', KEYS[2])[1]) local dump = redis.call('DUMP', KEYS[2]) \
                          redis.call('DEL', KEYS[2]) return dump end return redis.call('DUMP', KEYS[1])";
    if let [name, key] = words.as_slice()
        && name == b"DUMP"
    {
        let dump = [b"EVAL", SOURCE.as_bytes(), b"2", key, b"a copy"];
        *words = dump.map(<[u8]>::to_vec).to_vec();
    }
}
