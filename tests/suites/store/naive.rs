//! Commits as one would write them at first, to show what goes wrong with them: never used by a store.

use redis::{ConnectionLike, Pipeline, RedisResult, Value, cmd};

use crate::backend::SyncConnection;

/// A state-only commit by script, of the same form as the Python store's: decode, compare, set, note.
pub(crate) const COMPARE_AND_SET: &str = "
    local row = redis.call('GET', KEYS[1])
    local found = row and cjson.decode(row).version
    if not (not row and ARGV[2] == '0') and tostring(found) ~= ARGV[2] and found ~= tonumber(ARGV[2]) then
      return redis.error_reply('STM_CONFLICT:' .. tostring(found))
    end
    redis.call('SET', KEYS[1], ARGV[1])
    if ARGV[3] ~= '' then redis.call('SADD', KEYS[2], ARGV[3]) end
    return 1";

/// A row at this version with nothing else of interest.
pub(crate) fn row(version: i64) -> String {
    format!(r#"{{"id":"a","definition_id":"d","version":{version}}}"#)
}

/// The script on execution `a`.
pub(crate) fn by_script(
    connection: &mut SyncConnection,
    row: &str,
    expected: i64,
    event_id: &str,
) -> RedisResult<Value> {
    cmd("EVAL")
        .arg(COMPARE_AND_SET)
        .arg(2)
        .arg(&["stm:exe:a", "stm:processed:a"])
        .arg(row)
        .arg(expected)
        .arg(event_id)
        .query(connection)
}

/// `MULTI`, these commands, `EXEC`, without a look at anything before; the replies to the commands.
pub(crate) fn transaction(connection: &mut SyncConnection, commands: &[&[&str]]) -> Vec<Value> {
    let mut pipeline = Pipeline::new();
    pipeline.cmd("MULTI");
    for words in commands {
        let (name, arguments) = words.split_first().unwrap();
        pipeline.cmd(name).arg(arguments);
    }
    pipeline.cmd("EXEC");
    let packed = pipeline.get_packed_pipeline();
    let replies = connection.req_packed_commands(&packed, 0, commands.len() + 2);
    match replies.unwrap().pop() {
        Some(Value::Array(replies)) => replies,
        other => panic!("{other:?}"),
    }
}

/// How many of these are errors.
pub(crate) fn errors(replies: &[Value]) -> usize {
    let is_error = |reply: &&Value| matches!(reply, Value::ServerError(_));
    replies.iter().filter(is_error).count()
}
