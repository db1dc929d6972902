//! XINFO: what streams, consumer groups and consumers are made of.

use super::introspect::{help, subcommand_syntax};
use super::stream::{entry_reply, id_reply};
use super::stream_group::{SECOND, no_group};
use super::{Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words};
use crate::error::CommandError;
use crate::value::{self, Consumer, Stream};
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Stream, &[
    Command::container("XINFO", -2, &[], XINFO).since("5.0.0"),
]);

#[rustfmt::skip]
const XINFO: &[Command] = &[
    //               name        arity  flags              keys           handler
    Command::read   ("CONSUMERS",  4,   &[],               SECOND,        consumers).since("5.0.0"),
    Command::read   ("GROUPS",     3,   &[],               SECOND,        groups).since("5.0.0"),
    Command::control("HELP",       2,   &[Loading, Stale], KeySpec::None, help).since("5.0.0"),
    Command::read   ("STREAM",    -3,   &[],               SECOND,        stream).since("5.0.0"),
];

/// `XINFO CONSUMERS key group`: replies with an array of maps. Errors: `WRONGTYPE`; no such key; no such group.
fn consumers(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, _, key, group] = call.words()?;
    let stream = find(call, key)?;
    let found = stream.groups().get(group);
    let found = found.ok_or_else(|| no_group(key, group))?;
    let now = call.now.millis();
    let rows = found.consumers().iter().map(|(name, consumer)| {
        map([
            ("name", Reply::Bulk(name.clone())),
            ("pending", Reply::count(consumer.pending.len())),
            (
                "idle",
                Reply::Integer(now.saturating_sub(consumer.seen_at).max(0)),
            ),
        ])
    });
    Ok(Reply::Array(rows.collect()))
}

/// `XINFO GROUPS key`: replies with an array of maps. Errors: `WRONGTYPE`; no such key.
fn groups(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, _, key] = call.words()?;
    let stream = find(call, key)?;
    let rows = stream.groups().iter().map(|(name, group)| {
        map([
            ("name", Reply::Bulk(name.clone())),
            ("consumers", Reply::count(group.consumers().len())),
            ("pending", Reply::count(group.pending().len())),
            ("last-delivered-id", id_reply(group.last_id)),
            ("entries-read", integer_or_null(group.entries_read)),
            ("lag", integer_or_null(stream.lag(group))),
        ])
    });
    Ok(Reply::Array(rows.collect()))
}

/// `XINFO STREAM key [FULL [COUNT count]]`: replies with a map; FULL has all groups, consumers and entries in it, or `count` of
/// each kind of entries.
///
/// Errors: `WRONGTYPE`; no such key; not an integer; syntax.
fn stream(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let stream = find(call, args.next()?)?;
    if args.is_empty() {
        return Ok(short(stream));
    }
    let is_known_len = matches!(args.len(), 1 | 3);
    if !is_known_len || !args.keyword("FULL") {
        return Err(subcommand_syntax(call));
    }
    let mut count = FULL_COUNT_DEFAULT;
    if !args.is_empty() {
        if !args.keyword("COUNT") {
            return Err(subcommand_syntax(call));
        }
        count = usize::try_from(args.integer()?).unwrap_or(FULL_COUNT_DEFAULT);
    }
    Ok(full(stream, if count == 0 { usize::MAX } else { count }))
}

/// Entries that `XINFO STREAM FULL` answers without a COUNT, and with one below 0.
const FULL_COUNT_DEFAULT: usize = 10;

fn find<'a>(call: &ReadCall<'a>, key: &[u8]) -> Result<&'a Stream, CommandError> {
    let stream = call.keyspace.read::<Stream>(key)?;
    stream.ok_or(CommandError::NoSuchKey)
}

fn map<const N: usize>(pairs: [(&'static str, Reply); N]) -> Reply {
    let pairs = pairs.into_iter();
    Reply::Map(
        pairs
            .map(|(name, value)| (Reply::bulk(name), value))
            .collect(),
    )
}

fn integer_or_null(value: Option<i64>) -> Reply {
    value.map_or(Reply::Null, Reply::Integer)
}

/// The fields that both forms begin with.
fn head(stream: &Stream) -> [(&'static str, Reply); 7] {
    [
        ("length", Reply::count(stream.len())),
        ("radix-tree-keys", Reply::count(stream.nodes_len())),
        ("radix-tree-nodes", Reply::count(stream.radix_nodes_len())),
        ("last-generated-id", id_reply(stream.last_id())),
        ("max-deleted-entry-id", id_reply(stream.max_deleted_id())),
        ("entries-added", Reply::Integer(stream.entries_added())),
        ("recorded-first-entry-id", id_reply(stream.first_id())),
    ]
}

fn short(stream: &Stream) -> Reply {
    let mut pairs = Vec::from(head(stream));
    pairs.push(("groups", Reply::count(stream.groups().len())));
    pairs.push((
        "first-entry",
        stream.first().map_or(Reply::Null, entry_reply),
    ));
    pairs.push(("last-entry", stream.last().map_or(Reply::Null, entry_reply)));
    let pairs = pairs.into_iter();
    Reply::Map(
        pairs
            .map(|(name, value)| (Reply::bulk(name), value))
            .collect(),
    )
}

fn full(stream: &Stream, count: usize) -> Reply {
    let entries = stream.iter().take(count).map(entry_reply).collect();
    let groups = stream.groups().iter();
    let groups = groups.map(|(name, group)| full_group(stream, name, group, count));
    let mut pairs = Vec::from(head(stream));
    pairs.push(("entries", Reply::Array(entries)));
    pairs.push(("groups", Reply::Array(groups.collect())));
    let pairs = pairs.into_iter();
    Reply::Map(
        pairs
            .map(|(name, value)| (Reply::bulk(name), value))
            .collect(),
    )
}

fn full_group(stream: &Stream, name: &[u8], group: &value::Group, count: usize) -> Reply {
    let pending = group.pending().iter().take(count).map(|(id, pending)| {
        Reply::Array(vec![
            id_reply(*id),
            Reply::Bulk(pending.consumer.clone()),
            Reply::Integer(pending.delivered_at),
            Reply::Integer(pending.deliveries),
        ])
    });
    let consumers = group.consumers().iter();
    let consumers = consumers.map(|(name, consumer)| full_consumer(group, name, consumer, count));
    map([
        ("name", Reply::bulk(name)),
        ("last-delivered-id", id_reply(group.last_id)),
        ("entries-read", integer_or_null(group.entries_read)),
        ("lag", integer_or_null(stream.lag(group))),
        ("pel-count", Reply::count(group.pending().len())),
        ("pending", Reply::Array(pending.collect())),
        ("consumers", Reply::Array(consumers.collect())),
    ])
}

fn full_consumer(group: &value::Group, name: &[u8], consumer: &Consumer, count: usize) -> Reply {
    let pending = consumer.pending.iter().take(count).filter_map(|id| {
        let pending = group.pending().get(id)?;
        Some(Reply::Array(vec![
            id_reply(*id),
            Reply::Integer(pending.delivered_at),
            Reply::Integer(pending.deliveries),
        ]))
    });
    map([
        ("name", Reply::bulk(name)),
        ("seen-time", Reply::Integer(consumer.seen_at)),
        ("pel-count", Reply::count(consumer.pending.len())),
        ("pending", Reply::Array(pending.collect())),
    ])
}
