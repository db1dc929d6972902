//! Faults of scripts and of what keys become outside of the server.

use super::{Exchange, Mutant, faultless, mutant};
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
    mutant("cjson encodes an empty table as a list", |x| in_strings(x, b"\"{}\"", b"\"[]\"")),
    mutant("cjson loses the escape of a slash", |x| { replace(x, "cjson.decode(t))", "cjson.decode(t)):gsub([[\\/]], '/')"); x.send() }),
    mutant("cmsgpack reads on at the wrong place", |x| { replace(x, "cmsgpack.unpack_one, ", "function(t, n) return cmsgpack.unpack_one(t, (n or 0) + 1) end, "); x.send() }),
    mutant("struct packs with the other byte first", |x| { replace(x, "struct.pack, '", "struct.pack, '>"); x.send() }),
    mutant("setresp is forgotten", |x| { replace(x, "redis.setresp(3)", ""); x.send() }),
];

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

/// Changes the bulk strings in a script's reply.
fn in_strings(x: &mut Exchange<'_>, what: &[u8], with: &[u8]) -> Received {
    fn each(frame: Frame, what: &[u8], with: &[u8]) -> Frame {
        match frame {
            Frame::Items(kind, items) => {
                let items = items.into_iter().map(|item| each(item, what, with));
                Frame::Items(kind, items.collect())
            }
            Frame::Blob(kind, bytes) => {
                match bytes.windows(what.len()).position(|part| part == what) {
                    Some(at) => {
                        let changed = [&bytes[..at], with, &bytes[at + what.len()..]].concat();
                        Frame::Blob(kind, changed)
                    }
                    None => Frame::Blob(kind, bytes),
                }
            }
            line @ Frame::Line(_) => line,
        }
    }
    match x.send() {
        Received::Frame(frame) if x.is("EVAL") => Received::Frame(each(frame, what, with)),
        reply => reply,
    }
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
