//! [`Reply`] to bytes, the one place that knows how RESP2 and RESP3 differ.

use std::io::Write;

use super::Reply;
use crate::value::number;

/// The protocol version of a session, chosen by `HELLO`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// RESP2, what a connection starts with.
    #[default]
    Resp2,
    /// RESP3.
    Resp3,
}

/// Appends `reply` to `out` as `protocol` spells it.
pub fn encode(reply: &Reply, protocol: Protocol, out: &mut Vec<u8>) {
    let resp3 = protocol == Protocol::Resp3;
    match reply {
        Reply::Simple(text) => line(out, b'+', text.as_bytes()),
        Reply::Error(error) => error_line(out, &error.to_bytes()),
        Reply::Integer(n) => length(out, b':', *n),
        Reply::Bulk(bytes) => bulk(out, bytes),
        Reply::Null if resp3 => out.extend_from_slice(b"_\r\n"),
        Reply::Null => out.extend_from_slice(b"$-1\r\n"),
        Reply::NullArray if resp3 => out.extend_from_slice(b"_\r\n"),
        Reply::NullArray => out.extend_from_slice(b"*-1\r\n"),
        Reply::Array(items) => sequence(out, b'*', items, protocol),
        Reply::Set(items) => sequence(out, if resp3 { b'~' } else { b'*' }, items, protocol),
        Reply::Push(items) => sequence(out, if resp3 { b'>' } else { b'*' }, items, protocol),
        Reply::Map(pairs) if resp3 => {
            length(out, b'%', pairs.len() as i64);
            self::pairs(out, pairs, protocol);
        }
        Reply::Map(pairs) => {
            length(out, b'*', 2 * pairs.len() as i64);
            self::pairs(out, pairs, protocol);
        }
        Reply::Double(value) if resp3 => line(out, b',', number::format_double(*value).as_bytes()),
        Reply::Double(value) => bulk(out, number::format_double(*value).as_bytes()),
        Reply::Boolean(value) if resp3 => {
            out.extend_from_slice(if *value { b"#t\r\n" } else { b"#f\r\n" })
        }
        Reply::Boolean(value) => length(out, b':', i64::from(*value)),
        Reply::BigNumber(digits) if resp3 => line(out, b'(', digits.as_bytes()),
        Reply::BigNumber(digits) => bulk(out, digits.as_bytes()),
        Reply::Verbatim(format, text) if resp3 => {
            length(out, b'=', text.len() as i64 + 4);
            out.extend_from_slice(format);
            out.push(b':');
            out.extend_from_slice(text);
            out.extend_from_slice(b"\r\n");
        }
        Reply::Verbatim(_, text) => bulk(out, text),
        Reply::Attribute(attributes, reply) => {
            if resp3 {
                length(out, b'|', attributes.len() as i64);
                pairs(out, attributes, protocol);
            }
            encode(reply, protocol, out);
        }
        Reply::Several(replies) => replies
            .iter()
            .for_each(|reply| encode(reply, protocol, out)),
        Reply::Nothing => {}
    }
}

fn sequence(out: &mut Vec<u8>, kind: u8, items: &[Reply], protocol: Protocol) {
    length(out, kind, items.len() as i64);
    for item in items {
        encode(item, protocol, out);
    }
}

fn pairs(out: &mut Vec<u8>, pairs: &[(Reply, Reply)], protocol: Protocol) {
    for (key, value) in pairs {
        encode(key, protocol, out);
        encode(value, protocol, out);
    }
}

fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    length(out, b'$', bytes.len() as i64);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn line(out: &mut Vec<u8>, kind: u8, text: &[u8]) {
    out.push(kind);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

/// An error is one line: Redis replaces line breaks inside its text by blanks (networking.c, `afterErrorReply`'s callers).
fn error_line(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'-');
    out.extend(text.iter().map(|byte| {
        if matches!(byte, b'\r' | b'\n') {
            b' '
        } else {
            *byte
        }
    }));
    out.extend_from_slice(b"\r\n");
}

fn length(out: &mut Vec<u8>, kind: u8, n: i64) {
    out.push(kind);
    if (0..10).contains(&n) {
        out.push(b'0' + n as u8);
        out.extend_from_slice(b"\r\n");
        return;
    }
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{n}\r\n");
}
