//! Consumer groups of streams: XGROUP, and what becomes of entries that were delivered and not acknowledged yet.

use super::introspect::{help, subcommand_syntax};
use super::stream::{
    entry_reply, id_reply, parse_end, parse_id, parse_id_or_end, parse_ids, parse_start,
};
use super::{
    Args, Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words, WriteCall,
};
use crate::error::CommandError;
use crate::keyspace::{Event, Keyspace};
use crate::value::{self, Blob, Stream, StreamId, number};
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Stream, &[
    //                 name          arity  flags     keys            handler
    Command::write    ("XACK",       -4,    &[Fast],  KeySpec::FIRST, xack).since("5.0.0"),
    Command::write    ("XAUTOCLAIM", -6,    &[Fast],  KeySpec::FIRST, xautoclaim).since("6.2.0"),
    Command::write    ("XCLAIM",     -6,    &[Fast],  KeySpec::FIRST, xclaim).since("5.0.0"),
    Command::container("XGROUP",     -2,    &[],      XGROUP).since("5.0.0"),
    Command::read     ("XPENDING",   -3,    &[],      KeySpec::FIRST, xpending).since("5.0.0"),
]);

#[rustfmt::skip]
const XGROUP: &[Command] = &[
    //               name             arity  flags              keys           handler
    Command::write  ("CREATE",         -5,   &[DenyOom],        SECOND,        create).since("5.0.0"),
    Command::write  ("CREATECONSUMER",  5,   &[DenyOom],        SECOND,        createconsumer).since("6.2.0"),
    Command::write  ("DELCONSUMER",     5,   &[],               SECOND,        delconsumer).since("5.0.0"),
    Command::write  ("DESTROY",         4,   &[],               SECOND,        destroy).since("5.0.0"),
    Command::control("HELP",            2,   &[Loading, Stale], KeySpec::None, help).since("5.0.0"),
    Command::write  ("SETID",          -5,   &[],               SECOND,        setid).since("5.0.0"),
];

/// One key, behind the subcommand's name.
pub(super) const SECOND: KeySpec = KeySpec::Range {
    first: 2,
    last: 2,
    step: 1,
};

/// `XACK key group id [id ...]`: replies with the number of entries that were acknowledged. Errors: `WRONGTYPE`; invalid id.
fn xack(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (key, group) = (args.next()?, args.next()?);
    let stream = call.keyspace.peek::<Stream>(key)?;
    if !stream.is_some_and(|stream| stream.groups().contains_key(group)) {
        return Ok(Reply::Integer(0));
    }
    let ids = parse_ids(args)?;
    let acknowledged = with_group(call.keyspace, key, group, |_, group| {
        ids.into_iter().filter(|id| group.acknowledge(*id)).count()
    })?;
    if acknowledged > 0 {
        call.keyspace.changed_silently();
    }
    Ok(Reply::count(acknowledged))
}

/// `XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]`: hands entries that were not acknowledged for so
/// long to another consumer; replies with where to go on, an array of entries or ids, and an array of the ids of deleted entries.
///
/// Errors: `WRONGTYPE`; no such key or group; not an integer; invalid id; syntax.
fn xautoclaim(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (key, group, consumer) = (args.next()?, args.next()?, args.next()?);
    let min_idle_ms = parse_min_idle(args.next()?, "XAUTOCLAIM")?;
    let start = parse_start(args.next()?)?;
    let (mut count, mut is_just_id) = (100, false);
    while !args.is_empty() {
        if args.len() > 1 && args.keyword("COUNT") {
            let given = number::parse_integer(args.next()?);
            let in_range = given.filter(|count| (1..=AUTOCLAIM_COUNT_MAX).contains(count));
            count = in_range.ok_or(CommandError::AutoclaimCount)? as usize;
        } else if args.keyword("JUSTID") {
            is_just_id = true;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    must_have_group(call.keyspace, key, group)?;
    let now = call.now.millis();
    let claim = Claim {
        consumer,
        min_idle_ms,
        is_just_id,
        delivered_at: now,
        deliveries: None,
    };
    let (mut replies, mut deleted, mut next) = (Vec::new(), Vec::new(), StreamId::ZERO);
    let mut left = count;
    // Entries that are too young count as attempts too, so that one call looks at a bounded number of them.
    let mut attempts = count.saturating_mul(ATTEMPTS_PER_ENTRY);
    for id in pending_from(call.keyspace, key, group, start, attempts + 1)? {
        if attempts == 0 || left == 0 {
            next = id;
            break;
        }
        attempts -= 1;
        match claim.run(call.keyspace, key, group, id, now)? {
            Claimed::Gone => deleted.push(id_reply(id)),
            Claimed::Refused => continue,
            Claimed::Done(reply) => replies.push(reply),
        }
        left -= 1;
    }
    Ok(Reply::Array(vec![
        id_reply(next),
        Reply::Array(replies),
        Reply::Array(deleted),
    ]))
}

/// `XCLAIM key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-ms] [RETRYCOUNT count] [FORCE] [JUSTID]
/// [LASTID id]`: hands entries to another consumer; replies with an array of the entries, or of their ids.
///
/// Errors: `WRONGTYPE`; no such key or group; not an integer; unrecognized option; invalid id.
fn xclaim(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (key, group, consumer) = (args.next()?, args.next()?, args.next()?);
    must_have_group(call.keyspace, key, group)?;
    let min_idle_ms = parse_min_idle(args.next()?, "XCLAIM")?;
    let mut ids = Vec::new();
    while let Some(id) = args.peek().and_then(|text| StreamId::parse(text, 0)) {
        ids.push(id);
        args.next()?;
    }
    let now = call.now.millis();
    let options = ClaimOptions::parse(args, now)?;
    if let Some(last_id) = options.last_id {
        let is_ahead = with_group(call.keyspace, key, group, |_, group| {
            let is_ahead = last_id > group.last_id;
            group.last_id = group.last_id.max(last_id);
            is_ahead
        })?;
        if is_ahead {
            call.keyspace.changed_silently();
        }
    }
    let claim = Claim {
        consumer,
        min_idle_ms,
        is_just_id: options.is_just_id,
        delivered_at: options.delivered_at,
        deliveries: options.deliveries,
    };
    let mut replies = Vec::new();
    for id in ids {
        let is_pending = with_group(call.keyspace, key, group, |stream, group| {
            let is_known = group.pending().contains_key(&id);
            is_known || (options.is_forced && stream.get(id).is_some())
        })?;
        if is_pending && let Claimed::Done(reply) = claim.run(call.keyspace, key, group, id, now)? {
            replies.push(reply);
        }
    }
    Ok(Reply::Array(replies))
}

/// `XPENDING key group [[IDLE min-idle-time] start end count [consumer]]`: replies with a summary of what is to be acknowledged,
/// or with an array of entries: id, consumer, milliseconds since the delivery, number of deliveries.
///
/// Errors: `WRONGTYPE`; no such key or group; not an integer; invalid id; syntax.
fn xpending(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (key, group) = (args.next()?, args.next()?);
    let detail = PendingDetail::parse(args)?;
    let stream = call.keyspace.read::<Stream>(key)?;
    let found = stream.and_then(|stream| stream.groups().get(group));
    let found = found.ok_or_else(|| no_key_or_group(key, group))?;
    match detail {
        None => Ok(summary(found)),
        Some(detail) => Ok(detail.reply(found, call.now.millis())),
    }
}

/// `XGROUP CREATE key group id | $ [MKSTREAM] [ENTRIESREAD entries-read]`: replies with `OK`.
///
/// Errors: `WRONGTYPE`; a missing key; a group that there is already; invalid id; not an integer; syntax.
fn create(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (key, group, id) = (args.next()?, args.next()?, args.next()?);
    let options = GroupOptions::parse(call, args, true)?;
    let stream = call.keyspace.peek::<Stream>(key)?;
    if stream.is_none() && !options.makes_stream {
        return Err(CommandError::GroupNeedsKey);
    }
    let is_new_key = stream.is_none();
    let id = match id {
        b"$" => stream.map_or(StreamId::ZERO, Stream::last_id),
        id => parse_id(id, 0)?,
    };
    if stream.is_some_and(|stream| stream.groups().contains_key(group)) {
        return Err(CommandError::BusyGroup);
    }
    let stream = call.keyspace.write_or_create(key, Stream::default)?;
    let made = value::Group::new(id, options.entries_read);
    stream.groups_mut().insert(Blob::from(group), made);
    let event = Event::stream("xgroup-create");
    let event = if is_new_key {
        event
    } else {
        event.unwatched().unawaited()
    };
    call.keyspace.changed(key, event);
    Ok(Reply::OK)
}

/// `XGROUP CREATECONSUMER key group consumer`: replies with 1 if the consumer is new, else with 0.
///
/// Errors: `WRONGTYPE`; a missing key; no such group.
fn createconsumer(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, _, key, group, consumer] = call.words()?;
    must_have_named_group(call.keyspace, key, group)?;
    let now = call.now.millis();
    let is_new = with_group(call.keyspace, key, group, |_, group| {
        !group.consumers().contains_key(consumer)
    })?;
    if is_new {
        see_consumer(call.keyspace, key, group, consumer, now)?;
    }
    Ok(Reply::flag(is_new))
}

/// `XGROUP DELCONSUMER key group consumer`: replies with the number of entries that it had to acknowledge.
///
/// Errors: `WRONGTYPE`; a missing key; no such group.
fn delconsumer(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, _, key, group, consumer] = call.words()?;
    must_have_named_group(call.keyspace, key, group)?;
    let removed = with_group(call.keyspace, key, group, |_, group| {
        group.remove_consumer(consumer)
    })?;
    if removed.is_some() {
        report(call.keyspace, key, "xgroup-delconsumer");
    }
    Ok(Reply::count(removed.unwrap_or(0)))
}

/// `XGROUP DESTROY key group`: replies with 1 if there was such a group, else with 0. Errors: `WRONGTYPE`; a missing key.
fn destroy(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, _, key, group] = call.words()?;
    let stream = call.keyspace.write::<Stream>(key)?;
    let stream = stream.ok_or(CommandError::GroupNeedsKey)?;
    let is_known = stream.groups_mut().remove(group).is_some();
    if is_known {
        // Who waits as a consumer of the group is to hear that it waits in vain.
        let event = Event::stream("xgroup-destroy").unwatched();
        call.keyspace.changed(key, event);
    }
    Ok(Reply::flag(is_known))
}

/// `XGROUP SETID key group id | $ [ENTRIESREAD entries-read]`: replies with `OK`.
///
/// Errors: `WRONGTYPE`; a missing key; no such group; invalid id; not an integer; syntax.
fn setid(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (key, group, id) = (args.next()?, args.next()?, args.next()?);
    let options = GroupOptions::parse(call, args, false)?;
    must_have_named_group(call.keyspace, key, group)?;
    let last_id = call.keyspace.peek::<Stream>(key)?.map(Stream::last_id);
    let id = match id {
        b"$" => last_id.unwrap_or_default(),
        id => parse_id_or_end(id, 0)?,
    };
    with_group(call.keyspace, key, group, |_, group| {
        group.last_id = id;
        group.entries_read = options.entries_read;
    })?;
    report(call.keyspace, key, "xgroup-setid");
    Ok(Reply::OK)
}

/// Most entries that `XAUTOCLAIM` takes, and how many it looks at for each.
const AUTOCLAIM_COUNT_MAX: i64 = i64::MAX / 16;
const ATTEMPTS_PER_ENTRY: usize = 10;

/// What groups let out: a change that no watcher sees and that serves no client that waits.
fn report(keyspace: &mut Keyspace, key: &[u8], event: &'static str) {
    keyspace.changed(key, Event::stream(event).unwatched().unawaited());
}

/// Makes a consumer of a group that there is if it is new, reports that, and notes when it was seen.
pub(super) fn see_consumer(
    keyspace: &mut Keyspace,
    key: &[u8],
    group: &[u8],
    consumer: &[u8],
    now: i64,
) -> Result<(), CommandError> {
    let is_new = with_group(keyspace, key, group, |_, group| {
        group.see_consumer(consumer, now)
    })?;
    if is_new {
        report(keyspace, key, "xgroup-createconsumer");
    }
    Ok(())
}

/// Has `act` change a group. Errors: `WRONGTYPE`; no such key or group.
fn with_group<T>(
    keyspace: &mut Keyspace,
    key: &[u8],
    name: &[u8],
    act: impl FnOnce(&Stream, &mut value::Group) -> T,
) -> Result<T, CommandError> {
    let stream = keyspace.write::<Stream>(key)?;
    let stream = stream.ok_or_else(|| no_key_or_group(key, name))?;
    // The group leaves the stream for the time being, so that the entries can be looked at.
    let Some((name, mut group)) = stream.groups_mut().remove_entry(name) else {
        return Err(no_key_or_group(key, name));
    };
    let result = act(stream, &mut group);
    stream.groups_mut().insert(name, group);
    Ok(result)
}

/// Ids of a group that were not acknowledged, from `start` on, at most so many.
fn pending_from(
    keyspace: &Keyspace,
    key: &[u8],
    group: &[u8],
    start: StreamId,
    len_max: usize,
) -> Result<Vec<StreamId>, CommandError> {
    let stream = keyspace.peek::<Stream>(key)?;
    let group = stream.and_then(|stream| stream.groups().get(group));
    let ids = group.map(|group| group.pending().range(start..).take(len_max));
    Ok(ids.into_iter().flatten().map(|(id, _)| *id).collect())
}

fn must_have_group(keyspace: &Keyspace, key: &[u8], group: &[u8]) -> Result<(), CommandError> {
    let stream = keyspace.read::<Stream>(key)?;
    if stream.is_some_and(|stream| stream.groups().contains_key(group)) {
        Ok(())
    } else {
        Err(no_key_or_group(key, group))
    }
}

/// The same with the errors of XGROUP.
fn must_have_named_group(
    keyspace: &Keyspace,
    key: &[u8],
    group: &[u8],
) -> Result<(), CommandError> {
    let stream = keyspace.peek::<Stream>(key)?;
    let stream = stream.ok_or(CommandError::GroupNeedsKey)?;
    if stream.groups().contains_key(group) {
        Ok(())
    } else {
        Err(no_group(key, group))
    }
}

fn parse_min_idle(text: &[u8], command: &'static str) -> Result<i64, CommandError> {
    let idle = number::parse_integer(text).ok_or(CommandError::InvalidMinIdleTime(command))?;
    Ok(idle.max(0))
}

/// What became of an entry that was to change hands.
#[derive(Clone, Debug)]
enum Claimed {
    /// It was deleted from the stream, and now it is from the group.
    Gone,
    /// It was delivered too short a time ago.
    Refused,
    Done(Reply),
}

/// How entries change hands.
#[derive(Clone, Copy, Debug)]
struct Claim<'a> {
    consumer: &'a [u8],
    min_idle_ms: i64,
    is_just_id: bool,
    delivered_at: i64,
    /// A new number of deliveries; without one it is one more, or the same where only ids are asked for.
    deliveries: Option<i64>,
}

impl Claim<'_> {
    /// Hands over an entry; one that nobody has to acknowledge counts as delivered once.
    fn run(
        &self,
        keyspace: &mut Keyspace,
        key: &[u8],
        group: &[u8],
        id: StreamId,
        now: i64,
    ) -> Result<Claimed, CommandError> {
        let seen = with_group(keyspace, key, group, |stream, group| {
            let pending = group.pending().get(&id);
            let idle_ms = pending.map(|pending| now.saturating_sub(pending.delivered_at));
            let deliveries = pending.map_or(1, |pending| pending.deliveries);
            let entry = stream.get(id).map(entry_reply);
            if entry.is_none() {
                group.acknowledge(id);
            }
            (entry, idle_ms, deliveries)
        })?;
        let (entry, idle_ms, deliveries) = seen;
        let Some(entry) = entry else {
            keyspace.changed_silently();
            return Ok(Claimed::Gone);
        };
        if self.min_idle_ms > 0 && idle_ms.is_some_and(|idle_ms| idle_ms < self.min_idle_ms) {
            return Ok(Claimed::Refused);
        }
        see_consumer(keyspace, key, group, self.consumer, now)?;
        let one_more = deliveries.saturating_add(i64::from(!self.is_just_id));
        let deliveries = self.deliveries.unwrap_or(one_more);
        with_group(keyspace, key, group, |_, group| {
            group.assign(id, self.consumer, self.delivered_at, deliveries);
        })?;
        keyspace.changed_silently();
        Ok(Claimed::Done(if self.is_just_id {
            id_reply(id)
        } else {
            entry
        }))
    }
}

/// The options of XCLAIM.
#[derive(Clone, Copy, Debug)]
struct ClaimOptions {
    delivered_at: i64,
    deliveries: Option<i64>,
    is_forced: bool,
    is_just_id: bool,
    last_id: Option<StreamId>,
}

impl ClaimOptions {
    fn parse(mut args: Args<'_>, now: i64) -> Result<ClaimOptions, CommandError> {
        let mut options = ClaimOptions {
            delivered_at: now,
            deliveries: None,
            is_forced: false,
            is_just_id: false,
            last_id: None,
        };
        let integer = |args: &mut Args<'_>, name| {
            let value = number::parse_integer(args.next()?);
            value.ok_or(CommandError::InvalidXclaimOption(name))
        };
        while let Some(word) = args.peek() {
            if args.keyword("FORCE") {
                options.is_forced = true;
            } else if args.keyword("JUSTID") {
                options.is_just_id = true;
            } else if args.len() > 1 && args.keyword("IDLE") {
                options.delivered_at = now.wrapping_sub(integer(&mut args, "IDLE")?);
            } else if args.len() > 1 && args.keyword("TIME") {
                options.delivered_at = integer(&mut args, "TIME")?;
            } else if args.len() > 1 && args.keyword("RETRYCOUNT") {
                let count = integer(&mut args, "RETRYCOUNT")?;
                options.deliveries = Some(count).filter(|count| *count >= 0);
            } else if args.len() > 1 && args.keyword("LASTID") {
                options.last_id = Some(parse_id(args.next()?, 0)?);
            } else {
                let parts: [&[u8]; 3] = [b"ERR Unrecognized XCLAIM option '", c_string(word), b"'"];
                return Err(CommandError::custom(parts.concat()));
            }
        }
        // Clients reckon with their own clock: a time that cannot be is no error, but now.
        if !(0..=now).contains(&options.delivered_at) {
            options.delivered_at = now;
        }
        Ok(options)
    }
}

/// The options of XGROUP CREATE and SETID.
#[derive(Clone, Copy, Debug, Default)]
struct GroupOptions {
    makes_stream: bool,
    entries_read: Option<i64>,
}

impl GroupOptions {
    fn parse(
        call: &WriteCall<'_>,
        mut args: Args<'_>,
        may_make_stream: bool,
    ) -> Result<GroupOptions, CommandError> {
        let mut options = GroupOptions::default();
        let len_max = if may_make_stream { 3 } else { 2 };
        let is_too_long = args.len() > len_max;
        while !args.is_empty() {
            if may_make_stream && args.keyword("MKSTREAM") {
                options.makes_stream = true;
            } else if args.len() > 1 && args.keyword("ENTRIESREAD") {
                let read = args.integer()?;
                if read < -1 {
                    return Err(CommandError::EntriesReadNegative);
                }
                options.entries_read = Some(read).filter(|read| *read >= 0);
            } else {
                return Err(subcommand_syntax(call));
            }
        }
        if is_too_long {
            return Err(subcommand_syntax(call));
        }
        Ok(options)
    }
}

/// `[IDLE min-idle-time] start end count [consumer]`
#[derive(Clone, Copy, Debug)]
struct PendingDetail<'a> {
    min_idle_ms: i64,
    start: StreamId,
    end: StreamId,
    count: usize,
    consumer: Option<&'a [u8]>,
}

impl<'a> PendingDetail<'a> {
    /// Reads the detail, if any is asked for. The count is looked at first (`t_stream.c`, `xpendingCommand`).
    fn parse(mut args: Args<'a>) -> Result<Option<PendingDetail<'a>>, CommandError> {
        match args.len() {
            0 => return Ok(None),
            3..=6 => {}
            _ => return Err(CommandError::Syntax),
        }
        let mut min_idle_ms = 0;
        if args.keyword("IDLE") {
            min_idle_ms = args.integer()?;
            if args.len() < 3 {
                return Err(CommandError::Syntax);
            }
        }
        let (start, end) = (args.next()?, args.next()?);
        Ok(Some(PendingDetail {
            min_idle_ms,
            count: args.integer()?.max(0) as usize,
            start: parse_start(start)?,
            end: parse_end(end)?,
            consumer: args.next_if_any(),
        }))
    }

    fn reply(self, group: &value::Group, now: i64) -> Reply {
        let row = |id: StreamId| {
            let pending = group.pending().get(&id)?;
            let idle_ms = now.saturating_sub(pending.delivered_at);
            if self.min_idle_ms != 0 && idle_ms < self.min_idle_ms {
                return None;
            }
            Some(Reply::Array(vec![
                id_reply(id),
                Reply::Bulk(pending.consumer.clone()),
                Reply::Integer(idle_ms.max(0)),
                Reply::Integer(pending.deliveries),
            ]))
        };
        if self.start > self.end {
            return Reply::Array(Vec::new());
        }
        let ids = self.start..=self.end;
        let rows = match self.consumer {
            None => {
                let pending = group.pending().range(ids);
                let rows = pending.filter_map(|(id, _)| row(*id));
                rows.take(self.count).collect()
            }
            Some(name) => {
                let consumer = group.consumers().get(name);
                let pending = consumer.map(|consumer| consumer.pending.range(ids));
                let rows = pending.into_iter().flatten().filter_map(|id| row(*id));
                rows.take(self.count).collect()
            }
        };
        Reply::Array(rows)
    }
}

/// Number, first and last id, and consumers of what is to be acknowledged.
fn summary(group: &value::Group) -> Reply {
    let pending = group.pending();
    let (Some((first, _)), Some((last, _))) = (pending.first_key_value(), pending.last_key_value())
    else {
        return Reply::Array(vec![
            Reply::Integer(0),
            Reply::Null,
            Reply::Null,
            Reply::NullArray,
        ]);
    };
    let busy = group.consumers().iter();
    let busy = busy.filter(|(_, consumer)| !consumer.pending.is_empty());
    let consumers = busy.map(|(name, consumer)| {
        let count = Reply::bulk(consumer.pending.len().to_string());
        Reply::Array(vec![Reply::Bulk(name.clone()), count])
    });
    Reply::Array(vec![
        Reply::count(pending.len()),
        id_reply(*first),
        id_reply(*last),
        Reply::Array(consumers.collect()),
    ])
}

/// Redis prints what it echoes here as a C string.
fn c_string(bytes: &[u8]) -> &[u8] {
    &bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())]
}

fn no_key_or_group(key: &[u8], group: &[u8]) -> CommandError {
    let parts: [&[u8]; 5] = [
        b"NOGROUP No such key '",
        c_string(key),
        b"' or consumer group '",
        c_string(group),
        b"'",
    ];
    CommandError::custom(parts.concat())
}

/// The error of a group that a stream does not have.
pub(super) fn no_group(key: &[u8], group: &[u8]) -> CommandError {
    let parts: [&[u8]; 5] = [
        b"NOGROUP No such consumer group '",
        c_string(group),
        b"' for key name '",
        c_string(key),
        b"'",
    ];
    CommandError::custom(parts.concat())
}
