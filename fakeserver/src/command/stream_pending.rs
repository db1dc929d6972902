//! Entries that were delivered to consumers and not acknowledged yet: XACK, XCLAIM, XAUTOCLAIM, XPENDING.

use super::stream::{entry_reply, id_reply, parse_end, parse_id, parse_ids, parse_start};
use super::stream_group::{c_string, no_key_or_group, see_consumer, with_group};
use super::{
    Args, Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words, WriteCall,
};
use crate::error::CommandError;
use crate::keyspace::Keyspace;
use crate::value::{self, Stream, StreamId, number};
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Stream, &[
    //             name          arity  flags     keys            handler
    Command::write("XACK",       -4,    &[Fast],  KeySpec::FIRST, xack).since("5.0.0"),
    Command::write("XAUTOCLAIM", -6,    &[Fast],  KeySpec::FIRST, xautoclaim).since("6.2.0"),
    Command::write("XCLAIM",     -6,    &[Fast],  KeySpec::FIRST, xclaim).since("5.0.0"),
    Command::read ("XPENDING",   -3,    &[],      KeySpec::FIRST, xpending).since("5.0.0"),
]);

/// `XACK key group id [id ...]`: replies with the number of entries that were acknowledged. Errors: `WRONGTYPE`; invalid id.
fn xack(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (key, group) = (args.next()?, args.next()?);
    let stream = call.keyspace.read::<Stream>(key)?;
    if !stream.is_some_and(|stream| stream.groups().contains_key(group)) {
        return Ok(Reply::Integer(0));
    }
    let ids = parse_ids(args)?;
    let acknowledged = with_group(call.keyspace, key, group, |_, group| {
        ids.into_iter().filter(|id| group.acknowledge(*id)).count()
    })?;
    (0..acknowledged).for_each(|_| call.keyspace.changed_silently());
    Ok(Reply::count(acknowledged))
}

/// `XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]`: hands entries that were not acknowledged for so
/// long to another consumer; replies with where to go on, an array of entries or ids, and an array of the ids of deleted entries.
///
/// Errors: `WRONGTYPE`; no such key or group; not an integer; invalid id; syntax.
fn xautoclaim(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (key, group, consumer) = (args.next()?, args.next()?, args.next()?);
    // Redis looks for the key before anything else, and tells of a miss even if the arguments are wrong.
    call.keyspace.read_any(key);
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
        within: &[1, 0],
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
    call.keyspace.read_any(key);
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
        within: &[0],
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

/// Most entries that `XAUTOCLAIM` takes, and how many it looks at for each.
const AUTOCLAIM_COUNT_MAX: i64 = i64::MAX / 16;
const ATTEMPTS_PER_ENTRY: usize = 10;

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
    let stream = keyspace.peek::<Stream>(key)?;
    if stream.is_some_and(|stream| stream.groups().contains_key(group)) {
        Ok(())
    } else {
        Err(no_key_or_group(key, group))
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
    /// Leads to the first entry in the reply.
    within: &'static [usize],
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
        keyspace.answer_around_next(self.within);
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
