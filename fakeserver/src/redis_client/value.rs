//! Replies as redis-rs' values.

use redis::{PushKind, Value, VerbatimFormat};

use crate::value::number;
use crate::wire::{Protocol, Reply};

/// A value that a connection read, as the reply that it was.
#[cfg(feature = "explore")]
pub(crate) fn to_reply(value: Value) -> Reply {
    match value {
        Value::Int(n) => Reply::Integer(n),
        Value::BulkString(bytes) => Reply::bulk(bytes),
        Value::SimpleString(text) => Reply::status(text.into_bytes()),
        Value::Okay => Reply::OK,
        Value::Array(items) => Reply::Array(items.into_iter().map(to_reply).collect()),
        Value::ServerError(error) => {
            let text = [error.code(), error.details().unwrap_or_default()].join(" ");
            Reply::Error(crate::error::CommandError::custom(text))
        }
        Value::Double(n) => Reply::Double(n),
        Value::Boolean(yes) => Reply::Boolean(yes),
        Value::BigNumber(digits) => Reply::BigNumber(digits.into()),
        Value::VerbatimString { text, .. } => Reply::bulk(text.into_bytes()),
        Value::Set(items) => Reply::Set(items.into_iter().map(to_reply).collect()),
        Value::Push { data, .. } => Reply::Push(data.into_iter().map(to_reply).collect()),
        Value::Map(pairs) => Reply::Map(
            pairs
                .into_iter()
                .map(|(key, value)| (to_reply(key), to_reply(value)))
                .collect(),
        ),
        Value::Attribute { data, .. } => to_reply(*data),
        _ => Reply::Null,
    }
}

/// A reply as redis-rs reads it from a connection of this protocol version.
pub fn to_value(reply: Reply, protocol: Protocol) -> Value {
    let resp3 = protocol == Protocol::Resp3;
    let values = |items: Vec<Reply>| {
        items
            .into_iter()
            .map(|item| to_value(item, protocol))
            .collect::<Vec<_>>()
    };
    let pairs = |pairs: Vec<(Reply, Reply)>| {
        pairs
            .into_iter()
            .map(|(key, value)| (to_value(key, protocol), to_value(value, protocol)))
            .collect::<Vec<_>>()
    };
    match reply {
        Reply::Simple(text) if text == "OK" => Value::Okay,
        Reply::Simple(text) => Value::SimpleString(text.into_owned()),
        Reply::Status(text) => Value::SimpleString(lossy(&text)),
        Reply::Error(error) => error_value(&error.to_bytes()),
        // As of its parser, which gives up on replies that are nested so deep.
        Reply::Deep(_) => error_value(b"ERR Maximum recursion depth exceeded"),
        Reply::Integer(n) => Value::Int(n),
        Reply::Bulk(bytes) => Value::BulkString(bytes.into_vec()),
        Reply::Null | Reply::NullArray | Reply::Nothing => Value::Nil,
        Reply::Array(items) | Reply::Several(items) => Value::Array(values(items)),
        Reply::Set(items) if resp3 => Value::Set(values(items)),
        Reply::Set(items) => Value::Array(values(items)),
        Reply::Streams(map) if resp3 => Value::Map(pairs(map)),
        Reply::Streams(map) => arrays_of_two(pairs(map)),
        Reply::Pairs(map) if resp3 => arrays_of_two(pairs(map)),
        Reply::Push(items) if resp3 => push(values(items)),
        Reply::Push(items) => Value::Array(values(items)),
        Reply::Map(map) if resp3 => Value::Map(pairs(map)),
        Reply::Map(map) | Reply::Pairs(map) => Value::Array(
            pairs(map)
                .into_iter()
                .flat_map(|(key, value)| [key, value])
                .collect(),
        ),
        Reply::Double(value) if resp3 => Value::Double(value),
        Reply::Double(value) => Value::BulkString(number::format_double(value).into_bytes()),
        Reply::PlainDouble(value) if resp3 => Value::Double(number::as_plain(value)),
        Reply::PlainDouble(value) => Value::BulkString(number::format_plain(value).into_bytes()),
        Reply::Boolean(value) if resp3 => Value::Boolean(value),
        Reply::Boolean(value) => Value::Int(i64::from(value)),
        Reply::BigNumber(digits) if resp3 => Value::BigNumber(digits.into_vec()),
        Reply::BigNumber(digits) => Value::BulkString(digits.into_vec()),
        Reply::Verbatim(format, text) if resp3 => Value::VerbatimString {
            format: match &format {
                b"txt" => VerbatimFormat::Text,
                b"mkd" => VerbatimFormat::Markdown,
                other => VerbatimFormat::Unknown(String::from_utf8_lossy(other).into_owned()),
            },
            text: String::from_utf8_lossy(&text).into_owned(),
        },
        Reply::Verbatim(_, text) => Value::BulkString(text.into_vec()),
        Reply::Attribute(attributes, data) if resp3 => Value::Attribute {
            data: Box::new(to_value(*data, protocol)),
            attributes: pairs(attributes),
        },
        Reply::Attribute(_, data) => to_value(*data, protocol),
        Reply::Spoken(protocol, data) => to_value(*data, protocol),
    }
}

/// The first item names the kind of the push.
fn push(mut data: Vec<Value>) -> Value {
    let kind = if data.is_empty() {
        Value::Nil
    } else {
        data.remove(0)
    };
    Value::Push {
        kind: push_kind(&kind),
        data,
    }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

fn arrays_of_two(pairs: Vec<(Value, Value)>) -> Value {
    let items = pairs
        .into_iter()
        .map(|(first, second)| Value::Array(vec![first, second]));
    Value::Array(items.collect())
}

/// redis-rs does not let others make its server errors, but it parses them.
fn error_value(text: &[u8]) -> Value {
    let line = [b"-".as_slice(), text, b"\r\n"].concat();
    redis::parse_redis_value(&line).unwrap_or(Value::Nil)
}

fn push_kind(kind: &Value) -> PushKind {
    let name = match kind {
        Value::BulkString(bytes) => lossy(bytes),
        Value::SimpleString(text) => text.clone(),
        _ => String::new(),
    };
    match name.as_str() {
        "disconnection" => PushKind::Disconnection,
        "invalidate" => PushKind::Invalidate,
        "message" => PushKind::Message,
        "pmessage" => PushKind::PMessage,
        "smessage" => PushKind::SMessage,
        "unsubscribe" => PushKind::Unsubscribe,
        "punsubscribe" => PushKind::PUnsubscribe,
        "sunsubscribe" => PushKind::SUnsubscribe,
        "subscribe" => PushKind::Subscribe,
        "psubscribe" => PushKind::PSubscribe,
        "ssubscribe" => PushKind::SSubscribe,
        _ => PushKind::Other(name),
    }
}
