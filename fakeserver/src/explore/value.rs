//! The engine's replies as redis-rs sees them over RESP2, and commands of redis-rs as requests.

use redis::{Arg, Cmd, Pipeline, RedisResult, Value};

use crate::wire::{Limits, Reply, Request, RequestDecoder};

/// What redis-rs would have read from a socket.
pub(super) fn to_value(reply: &Reply) -> Value {
    match reply {
        Reply::Simple(text) if text == "OK" => Value::Okay,
        Reply::Simple(text) => Value::SimpleString(text.clone().into_owned()),
        Reply::Integer(number) => Value::Int(*number),
        Reply::Bulk(bytes) => Value::BulkString(bytes.to_vec()),
        Reply::Null | Reply::NullArray => Value::Nil,
        Reply::Array(items) | Reply::Set(items) => {
            Value::Array(items.iter().map(to_value).collect())
        }
        Reply::Map(pairs) => {
            let flat = pairs.iter().flat_map(|(key, value)| [key, value]);
            Value::Array(flat.map(to_value).collect())
        }
        // Rare on the paths that are explored: through the bytes, so that encoder and parser decide.
        other => {
            let mut bytes = Vec::new();
            crate::wire::encode(other, crate::wire::Protocol::Resp2, &mut bytes);
            redis::parse_redis_value(&bytes).unwrap_or(Value::Nil)
        }
    }
}

/// A command's words.
pub(super) fn to_request(command: &Cmd) -> Request {
    let mut request = Request::default();
    for word in command.args_iter() {
        match word {
            Arg::Simple(word) => request.push(word),
            // A cursor argument stands for the number that an iteration begins with.
            _ => request.push(b"0"),
        }
    }
    request
}

/// The commands that a pipeline sends, the MULTI and EXEC of a transaction among them.
pub(super) fn to_requests(pipeline: &Pipeline) -> RedisResult<Vec<Request>> {
    if !pipeline.is_transaction() {
        return Ok(pipeline.cmd_iter().map(to_request).collect());
    }
    let mut decoder = RequestDecoder::default();
    decoder.feed(&pipeline.get_packed_pipeline());
    let (mut requests, mut request) = (Vec::new(), Request::default());
    loop {
        match decoder.next(&mut request, &Limits::default()) {
            Ok(true) => requests.push(request.clone()),
            Ok(false) => return Ok(requests),
            Err(error) => {
                let text = error.to_string();
                return Err((redis::ErrorKind::Client, "unreadable pipeline", text).into());
            }
        }
    }
}
