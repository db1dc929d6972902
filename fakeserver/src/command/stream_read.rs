//! XREAD and XREADGROUP: entries behind an id, of several streams, at once or as soon as there are some.

use super::stream::{entry_reply, id_reply, parse_id};
use super::stream_group::see_consumer;
use super::{
    Access, Caller, Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words,
    WriteCall,
};
use crate::blocking::Wait;
use crate::error::CommandError;
use crate::keyspace::{Keyspace, Typed};
use crate::value::{Blob, Stream, StreamId, number};
use crate::wire::{Reply, Request};
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Stream, &[
    //             name          arity  flags                     keys       handler
    Command::read ("XREAD",      -4,    &[Blocking, MovableKeys], READ_KEYS,  xread).since("5.0.0"),
    Command::write("XREADGROUP", -7,    &[Blocking, MovableKeys], WRITE_KEYS, xreadgroup).since("5.0.0"),
]);

const READ_KEYS: KeySpec = KeySpec::Custom(|request| stream_keys(request, Access::Read));
const WRITE_KEYS: KeySpec = KeySpec::Custom(|request| stream_keys(request, Access::Write));

/// Most entries that a client gets which waited and set no COUNT.
const WOKEN_COUNT: usize = 1000;

/// `XREAD [COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]`: replies with a map from keys to arrays of
/// entries behind the ids, or with a null array; `$` is the last id that there is.
///
/// Errors: `WRONGTYPE`; syntax; unbalanced list of streams; invalid id; not an integer; a negative time-out.
fn xread(call: &mut ReadCall<'_>) -> CommandResult {
    let query = Query::parse(call, call.caller)?;
    let mut after = Vec::with_capacity(query.keys.len());
    for (key, id) in query.keys.iter().zip(&query.ids) {
        // A client that waits goes on waiting if its key comes to hold another type.
        let stream = match call.keyspace.read::<Stream>(key) {
            Err(CommandError::WrongType) if call.woken_by.is_some() => None,
            found => found?,
        };
        after.push(match *id {
            b"$" => stream.map_or(StreamId::ZERO, Stream::last_id),
            b">" => return Err(CommandError::NewIdOfXread),
            id => parse_id(id, 0)?,
        });
    }
    let mut found = Vec::new();
    for (key, after) in query.keys.iter().zip(&after) {
        let stream = match call.woken_by {
            // Who waited is told of the one stream that woke it, and of the first id that it named for it.
            Some(woken_by) if woken_by != *key || !found.is_empty() => continue,
            Some(_) => call.keyspace.peek::<Stream>(key).unwrap_or(None),
            // Redis looks for the key a second time here, and tells of a second miss.
            None => call.keyspace.read::<Stream>(key)?,
        };
        let Some(stream) = stream else {
            continue;
        };
        let is_due = match call.woken_by {
            // What was added may be deleted again; then the reply has no entry (`t_stream.c`).
            Some(_) => stream.last_id() > *after,
            None => stream.last().is_some_and(|last| last.id > *after),
        };
        if is_due {
            let count = query.count(call.woken_by.is_some());
            found.push((Reply::bulk(key), entries_behind(stream, *after, count)));
        }
    }
    if found.is_empty() {
        let rewritten = with_ids(call.request, &after);
        call.wait = query.wait(Some(rewritten));
        return Ok(Reply::NullArray);
    }
    Ok(Reply::Streams(found))
}

/// `XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key ...] id [id ...]`: as XREAD; `>`
/// is what no consumer of the group got yet, and any other id asks for what this consumer has to acknowledge.
///
/// Errors: those of XREAD; no such key or group; the key or group that a client waited for is gone.
fn xreadgroup(call: &mut WriteCall<'_>) -> CommandResult {
    let query = Query::parse(call, call.caller)?;
    let Some((group, consumer)) = query.group else {
        return Err(CommandError::GroupOptionMissing);
    };
    let reader = Reader {
        group,
        consumer,
        count: query.count(call.woken_by.is_some()),
        must_acknowledge: query.must_acknowledge,
        now: call.now.millis(),
    };
    if let Some(key) = call.woken_by {
        if !may_be_read(call.keyspace, key, group)? {
            call.wait = query.wait(None);
            return Ok(Reply::NullArray);
        }
        let entries = reader.read_new(call.keyspace, key)?;
        return Ok(Reply::Streams(vec![(Reply::bulk(key), entries)]));
    }
    let mut from = Vec::with_capacity(query.keys.len());
    for (key, id) in query.keys.iter().zip(&query.ids) {
        let stream = call.keyspace.read::<Stream>(key)?;
        if !stream.is_some_and(|stream| stream.groups().contains_key(group)) {
            return Err(no_group_to_read(key, group));
        }
        from.push(match *id {
            b"$" => return Err(CommandError::LastIdOfXread),
            b">" => None,
            // The highest id stands for `>`, and so does its spelling.
            id => Some(parse_id(id, 0)?).filter(|id| *id != StreamId::MAX),
        });
    }
    let mut found = Vec::new();
    for (key, from) in query.keys.iter().zip(from) {
        let entries = match from {
            Some(after) => reader.read_history(call.keyspace, key, after)?,
            None if reader.has_new(call.keyspace, key)? => reader.read_new(call.keyspace, key)?,
            None => continue,
        };
        found.push((Reply::bulk(key), entries));
    }
    if found.is_empty() {
        call.wait = query.wait(None);
        return Ok(Reply::NullArray);
    }
    Ok(Reply::Streams(found))
}

/// Whether a group has something to deliver to a client that waited. Errors: the key or the group is gone.
fn may_be_read(keyspace: &Keyspace, key: &[u8], group: &[u8]) -> Result<bool, CommandError> {
    let stream = keyspace.value(key).and_then(Stream::of);
    let stream = stream.ok_or(CommandError::StreamVanished)?;
    let group = stream.groups().get(group);
    let group = group.ok_or(CommandError::GroupVanished)?;
    Ok(stream.last_id() > group.last_id)
}

fn no_group_to_read(key: &[u8], group: &[u8]) -> CommandError {
    let parts: [&[u8]; 5] = [
        b"NOGROUP No such key '",
        key,
        b"' or consumer group '",
        group,
        b"' in XREADGROUP with GROUP option",
    ];
    CommandError::custom(parts.concat())
}

fn entries_behind(stream: &Stream, after: StreamId, count: usize) -> Reply {
    let entries = after
        .next()
        .map(|start| stream.range(start, StreamId::MAX).take(count));
    Reply::Array(entries.into_iter().flatten().map(entry_reply).collect())
}

/// What a consumer of a group asks for.
#[derive(Clone, Copy, Debug)]
struct Reader<'a> {
    group: &'a [u8],
    consumer: &'a [u8],
    count: usize,
    must_acknowledge: bool,
    now: i64,
}

impl Reader<'_> {
    /// Whether there are entries that no consumer of the group got yet.
    fn has_new(&self, keyspace: &Keyspace, key: &[u8]) -> Result<bool, CommandError> {
        let stream = keyspace.read::<Stream>(key)?;
        Ok(stream.is_some_and(|stream| {
            let group = stream.groups().get(self.group);
            group
                .zip(stream.last())
                .is_some_and(|(group, last)| last.id > group.last_id)
        }))
    }

    /// Delivers entries that no consumer of the group got yet.
    fn read_new(&self, keyspace: &mut Keyspace, key: &[u8]) -> CommandResult {
        keyspace.answer_around_next(&[0]);
        see_consumer(keyspace, key, self.group, self.consumer, self.now)?;
        let Some(stream) = keyspace.write::<Stream>(key)? else {
            return Err(CommandError::StreamVanished);
        };
        let Some(group) = stream.groups().get(self.group) else {
            return Err(CommandError::GroupVanished);
        };
        let (mut last_id, mut entries_read) = (group.last_id, group.entries_read);
        let (mut replies, mut delivered) = (Vec::new(), Vec::new());
        let start = last_id.next();
        let entries = start.map(|start| stream.range(start, StreamId::MAX).take(self.count));
        for entry in entries.into_iter().flatten() {
            entries_read = match entries_read {
                Some(read) if !stream.has_tombstones_from(entry.id) => Some(read.wrapping_add(1)),
                read if stream.entries_added() == 0 => read,
                _ => stream.entries_up_to(entry.id),
            };
            last_id = entry.id;
            delivered.push(entry.id);
            replies.push(entry_reply(entry));
        }
        if let Some(group) = stream.groups_mut().get_mut(self.group) {
            group.last_id = last_id;
            group.entries_read = entries_read;
            if self.must_acknowledge {
                for id in delivered {
                    group.deliver(id, self.consumer, self.now);
                }
            }
        }
        keyspace.changed_silently();
        Ok(Reply::Array(replies))
    }

    /// Delivers again what the consumer has to acknowledge; an entry that was deleted is answered as a null array.
    fn read_history(&self, keyspace: &mut Keyspace, key: &[u8], after: StreamId) -> CommandResult {
        keyspace.answer_around_next(&[0]);
        see_consumer(keyspace, key, self.group, self.consumer, self.now)?;
        let Some(stream) = keyspace.write::<Stream>(key)? else {
            return Err(CommandError::StreamVanished);
        };
        let group = stream.groups().get(self.group);
        let consumer = group.and_then(|group| group.consumers().get(self.consumer));
        let mut ids = Vec::new();
        if let Some((consumer, start)) = consumer.zip(after.next()) {
            ids.extend(consumer.pending.range(start..).take(self.count).copied());
        }
        let (mut replies, mut delivered) = (Vec::new(), Vec::new());
        for id in ids {
            if let Some(entry) = stream.get(id) {
                delivered.push(id);
                replies.push(entry_reply(entry));
            } else {
                replies.push(Reply::Array(vec![id_reply(id), Reply::NullArray]));
            }
        }
        if let Some(group) = stream.groups_mut().get_mut(self.group) {
            for id in delivered {
                group.deliver_again(id, self.now);
            }
        }
        keyspace.changed_silently();
        Ok(Reply::Array(replies))
    }
}

/// What a request asks for.
#[derive(Clone, Debug)]
struct Query<'a> {
    group: Option<(&'a [u8], &'a [u8])>,
    /// 0 for all.
    count: usize,
    block_ms: Option<i64>,
    must_acknowledge: bool,
    keys: Vec<&'a [u8]>,
    ids: Vec<&'a [u8]>,
}

impl<'a> Query<'a> {
    fn parse(call: &impl Words<'a>, caller: Caller) -> Result<Query<'a>, CommandError> {
        let mut args = call.args();
        let is_group_command = call.row().has(Write);
        let mut query = Query {
            group: None,
            count: 0,
            block_ms: None,
            must_acknowledge: true,
            keys: Vec::new(),
            ids: Vec::new(),
        };
        while !args.is_empty() {
            if args.len() > 1 && args.keyword("BLOCK") {
                if caller == Caller::Script {
                    let text = b" command is not allowed with BLOCK option from scripts";
                    let parts: [&[u8]; 3] = [b"ERR ", call.request().name(), text];
                    return Err(CommandError::custom(parts.concat()));
                }
                let timeout = number::parse_integer(args.next()?);
                let timeout = timeout.ok_or(CommandError::TimeoutNotAnInteger)?;
                if timeout < 0 {
                    return Err(CommandError::TimeoutNegative);
                }
                query.block_ms = Some(timeout);
            } else if args.len() > 1 && args.keyword("COUNT") {
                query.count = args.integer()?.max(0) as usize;
            } else if args.len() > 1 && args.keyword("STREAMS") {
                if args.len() % 2 != 0 {
                    return Err(CommandError::StreamsUnbalanced);
                }
                query.keys = args.rest().collect();
                query.ids = query.keys.split_off(query.keys.len() / 2);
                return Ok(query);
            } else if args.len() > 2 && args.keyword("GROUP") {
                if !is_group_command {
                    return Err(CommandError::GroupOptionOfXread);
                }
                query.group = Some((args.next()?, args.next()?));
            } else if args.keyword("NOACK") {
                if !is_group_command {
                    return Err(CommandError::NoackOptionOfXread);
                }
                query.must_acknowledge = false;
            } else {
                break;
            }
        }
        Err(CommandError::Syntax)
    }

    /// Most entries of one stream.
    fn count(&self, is_woken: bool) -> usize {
        match self.count {
            0 if is_woken => WOKEN_COUNT,
            0 => usize::MAX,
            count => count,
        }
    }

    /// What the client waits for, if it asked to.
    fn wait(&self, rewritten: Option<Request>) -> Option<Wait> {
        Some(Wait {
            keys: self.keys.iter().copied().map(Blob::from).collect(),
            timeout_ms: self.block_ms?,
            timeout_reply: None,
            needs_key: self.group.is_some(),
            rewritten,
        })
    }
}

/// A request with ids that do not change any more in the place of its last words.
fn with_ids(request: &Request, ids: &[StreamId]) -> Request {
    let kept = request.len().saturating_sub(ids.len());
    let mut rewritten = Request::new(request.words().take(kept));
    for id in ids {
        rewritten.push(id.to_string().as_bytes());
    }
    rewritten
}

/// The first half of what stands behind STREAMS.
fn stream_keys(request: &Request, access: Access) -> Vec<(usize, Access)> {
    let mut at = 1;
    while let Some(word) = request.get(at) {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        if is("STREAMS") {
            let first = at + 1;
            let count = request.len().saturating_sub(first) / 2;
            return (first..first + count).map(|at| (at, access)).collect();
        }
        at += match () {
            () if is("GROUP") => 3,
            () if is("BLOCK") || is("COUNT") => 2,
            // The command refuses words that it does not know, but Redis looks for keys behind them too.
            () => 1,
        };
    }
    Vec::new()
}
