//! [`Reply`] to bytes, the one place that knows how RESP2 and RESP3 differ; and requests, for other servers.

use super::{Part, Reply};
use crate::value::number;
use crate::value::string::Decimal;

/// A sequence of more items than this gets its room at once.
const LARGE: usize = 1024;

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
        Reply::Status(text) => line(out, b'+', text),
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
        Reply::Map(pairs) | Reply::Streams(pairs) if resp3 => {
            length(out, b'%', pairs.len() as i64);
            self::pairs(out, pairs, protocol);
        }
        Reply::Pairs(pairs) if resp3 => arrays_of_two(out, pairs, protocol),
        Reply::Streams(pairs) => arrays_of_two(out, pairs, protocol),
        Reply::Map(pairs) | Reply::Pairs(pairs) => {
            length(out, b'*', 2 * pairs.len() as i64);
            self::pairs(out, pairs, protocol);
        }
        Reply::Double(value) if resp3 => line(out, b',', number::format_double(*value).as_bytes()),
        Reply::Double(value) => bulk(out, number::format_double(*value).as_bytes()),
        Reply::PlainDouble(value) if resp3 => {
            line(out, b',', number::format_plain(*value).as_bytes());
        }
        Reply::PlainDouble(value) => bulk(out, number::format_plain(*value).as_bytes()),
        Reply::Boolean(value) if resp3 => {
            out.extend_from_slice(if *value { b"#t\r\n" } else { b"#f\r\n" });
        }
        Reply::Boolean(value) => length(out, b':', i64::from(*value)),
        Reply::BigNumber(digits) if resp3 => line(out, b'(', digits),
        Reply::BigNumber(digits) => bulk(out, digits),
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
        Reply::Spoken(protocol, reply) => encode(reply, *protocol, out),
        Reply::Deep(parts) => parts
            .iter()
            .for_each(|part| encode_part(part, protocol, out)),
        Reply::Several(replies) => replies
            .iter()
            .for_each(|reply| encode(reply, protocol, out)),
        Reply::Nothing => {}
    }
}

/// Appends a request as clients send it.
pub(crate) fn encode_request(words: &[&[u8]], out: &mut Vec<u8>) {
    length(out, b'*', words.len() as i64);
    for word in words {
        bulk(out, word);
    }
}

fn encode_part(part: &Part, protocol: Protocol, out: &mut Vec<u8>) {
    let resp3 = protocol == Protocol::Resp3;
    match part {
        Part::Map(pairs) if resp3 => length(out, b'%', *pairs as i64),
        Part::Map(pairs) => length(out, b'*', 2 * *pairs as i64),
        Part::Set(items) if resp3 => length(out, b'~', *items as i64),
        Part::Array(items) | Part::Set(items) => length(out, b'*', *items as i64),
        Part::Reply(reply) => encode(reply, protocol, out),
    }
}

fn sequence(out: &mut Vec<u8>, kind: u8, items: &[Reply], protocol: Protocol) {
    length(out, kind, items.len() as i64);
    if items.len() > LARGE {
        // A vector that doubles until it holds a million items touches twice the memory and copies all of it.
        out.reserve(items.iter().map(len_about).sum());
    }
    for item in items {
        encode(item, protocol, out);
    }
}

/// Bytes of a reply, roughly.
fn len_about(reply: &Reply) -> usize {
    match reply {
        Reply::Bulk(bytes) => {
            let digits = Decimal::new(bytes.len() as i64);
            bytes.len() + digits.as_bytes().len() + b"$\r\n\r\n".len()
        }
        _ => b":0\r\n".len(),
    }
}

fn pairs(out: &mut Vec<u8>, pairs: &[(Reply, Reply)], protocol: Protocol) {
    for (key, value) in pairs {
        encode(key, protocol, out);
        encode(value, protocol, out);
    }
}

fn arrays_of_two(out: &mut Vec<u8>, pairs: &[(Reply, Reply)], protocol: Protocol) {
    length(out, b'*', pairs.len() as i64);
    for pair in pairs {
        out.extend_from_slice(b"*2\r\n");
        self::pairs(out, std::slice::from_ref(pair), protocol);
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
    out.extend_from_slice(Decimal::new(n).as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use redis_protocol::resp2::decode::decode as decode2;
    use redis_protocol::resp2::types::OwnedFrame as Frame2;
    use redis_protocol::resp3::decode::complete::decode as decode3;
    use redis_protocol::resp3::types::{OwnedFrame as Frame3, VerbatimStringFormat};

    use super::*;
    use crate::error::CommandError;

    fn bytes(reply: &Reply, protocol: Protocol) -> Vec<u8> {
        let mut out = Vec::new();
        encode(reply, protocol, &mut out);
        out
    }

    /// What an independent decoder reads from the RESP2 encoding.
    fn frame2(reply: &Reply) -> Frame2 {
        let out = bytes(reply, Protocol::Resp2);
        let (frame, len) = decode2(&out).unwrap().unwrap();
        assert_eq!(len, out.len(), "{reply:?} leaves bytes behind");
        frame
    }

    fn frame3(reply: &Reply) -> Frame3 {
        let out = bytes(reply, Protocol::Resp3);
        let (frame, len) = decode3(&out).unwrap().unwrap();
        assert_eq!(len, out.len(), "{reply:?} leaves bytes behind");
        frame
    }

    fn nested() -> Reply {
        Reply::Array(vec![
            Reply::Map(vec![(Reply::bulk("k"), Reply::Integer(-7))]),
            Reply::Set(vec![Reply::bulk("a\r\nb")]),
            Reply::Double(0.1),
            Reply::Boolean(true),
            Reply::Null,
            Reply::Error(CommandError::WrongType),
        ])
    }

    #[test]
    fn an_independent_decoder_reads_resp2_as_meant() {
        let bulk = |text: &str| Frame2::BulkString(text.into());
        let error = Frame2::Error(CommandError::WrongType.to_string());
        let map = Frame2::Array(vec![bulk("k"), Frame2::Integer(-7)]);
        let set = Frame2::Array(vec![bulk("a\r\nb")]);
        let items = vec![
            map,
            set,
            bulk("0.10000000000000001"),
            Frame2::Integer(1),
            Frame2::Null,
            error,
        ];
        assert_eq!(frame2(&nested()), Frame2::Array(items));
        assert_eq!(frame2(&Reply::OK), Frame2::SimpleString("OK".into()));
        assert_eq!(frame2(&Reply::Verbatim(*b"txt", "t".into())), bulk("t"));
        assert_eq!(frame2(&Reply::Integer(i64::MIN)), Frame2::Integer(i64::MIN));
    }

    #[test]
    fn an_independent_decoder_reads_resp3_as_meant() {
        let Frame3::Array { data, .. } = frame3(&nested()) else {
            panic!("an array was encoded")
        };
        assert!(matches!(&data[0], Frame3::Map { data, .. } if data.len() == 1));
        assert!(matches!(&data[1], Frame3::Set { data, .. } if data.len() == 1));
        assert!(matches!(&data[2], Frame3::Double { data, .. } if *data == 0.1));
        assert!(matches!(&data[3], Frame3::Boolean { data: true, .. }));
        assert!(matches!(&data[4], Frame3::Null));
        assert!(
            matches!(&data[5], Frame3::SimpleError { data, .. } if data.starts_with("WRONGTYPE"))
        );
        let verbatim = frame3(&Reply::Verbatim(*b"txt", "t".into()));
        assert!(matches!(
            verbatim,
            Frame3::VerbatimString {
                format: VerbatimStringFormat::Text,
                ..
            }
        ));
        assert!(matches!(
            frame3(&Reply::Push(vec![Reply::bulk("message")])),
            Frame3::Push { .. }
        ));
        assert!(matches!(
            frame3(&Reply::BigNumber("12".into())),
            Frame3::BigNumber { .. }
        ));
    }

    #[test]
    fn what_the_decoder_cannot_tell_apart_is_spelled_as_the_server_spells_it() {
        assert_eq!(bytes(&Reply::NullArray, Protocol::Resp2), b"*-1\r\n");
        assert_eq!(bytes(&Reply::NullArray, Protocol::Resp3), b"_\r\n");
        assert_eq!(
            bytes(&Reply::Double(0.1), Protocol::Resp3),
            b",0.10000000000000001\r\n"
        );
        assert_eq!(
            bytes(&Reply::Double(f64::NEG_INFINITY), Protocol::Resp2),
            b"$4\r\n-inf\r\n"
        );
        let error = Reply::Error(CommandError::custom("ERR two\r\nlines"));
        assert_eq!(bytes(&error, Protocol::Resp2), b"-ERR two  lines\r\n");
    }
}
