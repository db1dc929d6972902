//! Commands and replies as redis-cli writes them.

use crate::remote::snapshot::quoted;
use crate::value::number;
use crate::wire::{Part, Reply, Request};

/// What readers are shown in place of some bytes.
pub(crate) type Named<'a> = dyn Fn(&[u8]) -> Vec<u8> + 'a;

/// Elements of a reply that are shown.
const ELEMENTS_MAX: usize = 20;

/// A command as redis-cli would take it.
pub(crate) fn command_text(request: &Request, named: &Named<'_>) -> String {
    let word = |word: &[u8]| shown(&named(word));
    request.words().map(word).collect::<Vec<_>>().join(" ")
}

/// A reply on one line, as redis-cli prints its parts.
pub(crate) fn reply_text(reply: &Reply, named: &Named<'_>) -> String {
    let text = |bytes: &[u8]| quoted(&named(bytes));
    let plain = |bytes: &[u8]| String::from_utf8_lossy(&named(bytes)).into_owned();
    let list = |items: &[Reply]| {
        let shown = items.iter().take(ELEMENTS_MAX);
        let mut shown: Vec<_> = shown.map(|item| reply_text(item, named)).collect();
        if items.len() > ELEMENTS_MAX {
            shown.push(format!("{} more", items.len() - ELEMENTS_MAX));
        }
        format!("[{}]", shown.join(", "))
    };
    let pairs = |items: &[(Reply, Reply)]| {
        let pair = |(key, value): &(Reply, Reply)| {
            format!("{}: {}", reply_text(key, named), reply_text(value, named))
        };
        let shown: Vec<_> = items.iter().take(ELEMENTS_MAX).map(pair).collect();
        format!("{{{}}}", shown.join(", "))
    };
    match reply {
        Reply::Simple(words) => words.clone().into_owned(),
        Reply::Status(words) => plain(words),
        Reply::Error(error) => format!("(error) {}", plain(&error.to_bytes())),
        Reply::Integer(n) => format!("(integer) {n}"),
        Reply::Bulk(bytes) | Reply::BigNumber(bytes) | Reply::Verbatim(_, bytes) => text(bytes),
        Reply::Null | Reply::NullArray => "(nil)".to_owned(),
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) | Reply::Several(items) => {
            list(items)
        }
        Reply::Map(items) | Reply::Pairs(items) | Reply::Streams(items) => pairs(items),
        Reply::Double(n) | Reply::PlainDouble(n) => {
            format!("(double) {}", number::format_double(*n))
        }
        Reply::Boolean(yes) => format!("({yes})"),
        Reply::Attribute(_, reply) | Reply::Spoken(_, reply) => reply_text(reply, named),
        Reply::Deep(parts) => match parts.first() {
            Some(Part::Reply(reply)) => reply_text(reply, named),
            _ => format!("[{} nested parts]", parts.len()),
        },
        Reply::Nothing => String::new(),
    }
}

/// A key or another word for readers: as it is if it is plain, else as redis-cli quotes it.
pub(crate) fn shown(key: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    if !key.is_empty() && key.iter().all(plain) {
        return String::from_utf8_lossy(key).into_owned();
    }
    quoted(key)
}
