//! Stream commands on entries; reading, consumer groups and XINFO have files of their own.

use super::{
    Args, Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words, WriteCall,
};
use crate::config::Config;
use crate::error::CommandError;
use crate::keyspace::{Event, Told};
use crate::value::{Blob, Entry, NodeLimits, Stream, StreamId, Trim, TrimTo};
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Stream, &[
    //             name         arity  flags             keys            handler
    Command::write("XADD",      -5,    &[DenyOom, Fast], KeySpec::FIRST, xadd).since("5.0.0"),
    Command::write("XDEL",      -3,    &[Fast],          KeySpec::FIRST, xdel).since("5.0.0"),
    Command::read ("XLEN",       2,    &[Fast],          KeySpec::FIRST, xlen).since("5.0.0"),
    Command::read ("XRANGE",    -4,    &[],              KeySpec::FIRST, xrange).since("5.0.0"),
    Command::read ("XREVRANGE", -4,    &[],              KeySpec::FIRST, xrevrange).since("5.0.0"),
    Command::write("XSETID",    -3,    &[DenyOom, Fast], KeySpec::FIRST, xsetid).since("5.0.0"),
    Command::write("XTRIM",     -4,    &[],              KeySpec::FIRST, xtrim).since("5.0.0"),
]);

/// `XADD key [NOMKSTREAM] [MAXLEN | MINID [= | ~] threshold [LIMIT count]] * | id field value [field value ...]`: appends an
/// entry; replies with its id, or with null if the key is missing and must not be made.
///
/// Errors: `WRONGTYPE`; syntax; invalid id; an id not above the last one; wrong number of arguments.
fn xadd(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let options = AddOptions::parse(&mut args, call.config)?;
    if args.is_empty() || args.len() % 2 == 1 {
        return Err(call.wrong_arity());
    }
    if options.id == NewId::Given(StreamId::ZERO) {
        return Err(CommandError::StreamIdZero);
    }
    let found = call.keyspace.peek::<Stream>(key)?;
    if found.is_none() && options.must_exist {
        return Ok(Reply::Null);
    }
    let last_id = found.map_or(StreamId::ZERO, Stream::last_id);
    let id = options.id.choose(last_id, call.now.millis())?;
    let words = args.rest().map(Blob::from).collect();
    let stream = call.keyspace.write_or_create(key, Stream::default)?;
    stream.add(Entry { id, words }, node_limits(call.config));
    let trimmed = options.trim.map_or(0, |trim| stream.trim(trim));
    call.keyspace.answer_here();
    call.keyspace.changed(key, Event::stream("xadd"));
    if trimmed > 0 {
        call.keyspace.notify(key, Event::stream("xtrim"));
    }
    Ok(id_reply(id))
}

/// `XDEL key id [id ...]`: replies with the number of entries that were deleted. Errors: `WRONGTYPE`; invalid id.
fn xdel(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    if call.keyspace.peek::<Stream>(key)?.is_none() {
        return Ok(Reply::Integer(0));
    }
    let ids = parse_ids(args)?;
    let Some(stream) = call.keyspace.write::<Stream>(key)? else {
        return Ok(Reply::Integer(0));
    };
    let deleted = ids.into_iter().filter(|id| stream.delete(*id)).count();
    if deleted > 0 {
        call.keyspace
            .changed(key, Event::stream("xdel").unawaited().counting(deleted));
    }
    Ok(Reply::count(deleted))
}

/// `XLEN key`: replies with the number of entries. Errors: `WRONGTYPE`.
fn xlen(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key] = call.words()?;
    let stream = call.keyspace.read::<Stream>(key)?;
    Ok(Reply::count(stream.map_or(0, Stream::len)))
}

/// `XRANGE key start end [COUNT count]`: replies with an array of entries, each an array of its id and its fields and values.
///
/// Errors: `WRONGTYPE`; invalid id; not an integer; syntax.
fn xrange(call: &mut ReadCall<'_>) -> CommandResult {
    range(call, false)
}

/// `XREVRANGE key end start [COUNT count]`: as XRANGE, from the last entry to the first.
fn xrevrange(call: &mut ReadCall<'_>) -> CommandResult {
    range(call, true)
}

/// `XSETID key id [ENTRIESADDED count] [MAXDELETEDID id]`: replies with `OK`.
///
/// Errors: `WRONGTYPE`; no such key; invalid id; syntax; an id or count that contradicts the entries.
fn xsetid(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let id = parse_id(args.next()?, 0)?;
    let (mut entries_added, mut max_deleted_id) = (None, None);
    while !args.is_empty() {
        if args.len() > 1 && args.keyword("ENTRIESADDED") {
            let count = Some(args.integer()?).filter(|count| *count >= 0);
            entries_added = Some(count.ok_or(CommandError::EntriesAddedNegative)?);
        } else if args.len() > 1 && args.keyword("MAXDELETEDID") {
            let deleted = parse_id(args.next()?, 0)?;
            if id < deleted {
                return Err(CommandError::StreamIdBelowGiven);
            }
            max_deleted_id = Some(deleted).filter(|deleted| *deleted != StreamId::ZERO);
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let stream = call.keyspace.write::<Stream>(key)?;
    let stream = stream.ok_or(CommandError::NoSuchKey)?;
    if let Some(last) = stream.last() {
        if id < last.id {
            return Err(CommandError::StreamIdBelowTop);
        }
        if entries_added.is_some_and(|count| count < stream.len() as i64) {
            return Err(CommandError::EntriesAddedTooFew);
        }
    }
    stream.set_last_id(id, entries_added, max_deleted_id);
    let event = Event::stream("xsetid").unwatched().unawaited();
    call.keyspace.answer_here();
    call.keyspace.changed(key, event);
    Ok(Reply::OK)
}

/// `XTRIM key MAXLEN | MINID [= | ~] threshold [LIMIT count]`: replies with the number of entries that were removed.
///
/// Errors: `WRONGTYPE`; syntax; not an integer; invalid id.
fn xtrim(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let mut options = TrimOptions::default();
    while !args.is_empty() {
        if !options.parse_next(&mut args)? {
            return Err(CommandError::Syntax);
        }
    }
    let trim = options.finish(call.config, true)?;
    let trim = trim.ok_or(CommandError::TrimWithoutStrategy)?;
    let Some(stream) = call.keyspace.write::<Stream>(key)? else {
        return Ok(Reply::Integer(0));
    };
    let trimmed = stream.trim(trim);
    if trimmed > 0 {
        let event = Event::stream("xtrim").unawaited().told(Told::Last);
        call.keyspace.changed(key, event.counting(trimmed));
    }
    Ok(Reply::count(trimmed))
}

/// The id of an entry to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NewId {
    /// The time, or what follows the last id.
    Auto,
    /// These milliseconds, with the next free sequence number.
    AutoSeq(u64),
    Given(StreamId),
}

impl NewId {
    fn parse(text: &[u8]) -> Result<NewId, CommandError> {
        if text == b"*" {
            return Ok(NewId::Auto);
        }
        match StreamId::parse_without_seq(text) {
            Some(ms) => Ok(NewId::AutoSeq(ms)),
            None => parse_id(text, 0).map(NewId::Given),
        }
    }

    /// The id itself. Errors: no id is left; not above the last id.
    fn choose(self, last: StreamId, now_ms: i64) -> Result<StreamId, CommandError> {
        if last == StreamId::MAX {
            return Err(CommandError::StreamExhausted);
        }
        let now = StreamId {
            ms: now_ms.max(0) as u64,
            seq: 0,
        };
        let id = match self {
            NewId::Auto if now.ms > last.ms => Some(now),
            NewId::Auto => last.next(),
            NewId::AutoSeq(ms) if ms == last.ms => {
                last.seq.checked_add(1).map(|seq| StreamId { ms, seq })
            }
            NewId::AutoSeq(ms) => Some(StreamId { ms, seq: 0 }),
            NewId::Given(id) => Some(id),
        };
        id.filter(|id| *id > last)
            .ok_or(CommandError::StreamIdNotAbove)
    }
}

#[derive(Clone, Copy, Debug)]
struct AddOptions {
    must_exist: bool,
    trim: Option<Trim>,
    id: NewId,
}

impl AddOptions {
    /// Reads the options and the id behind them.
    fn parse(args: &mut Args<'_>, config: &Config) -> Result<AddOptions, CommandError> {
        let (mut trim, mut must_exist) = (TrimOptions::default(), false);
        let id = loop {
            if args.keyword("NOMKSTREAM") {
                must_exist = true;
            } else if !trim.parse_next(args)? {
                break NewId::parse(args.next()?)?;
            }
        };
        Ok(AddOptions {
            must_exist,
            trim: trim.finish(config, false)?,
            id,
        })
    }
}

/// `MAXLEN | MINID [= | ~] threshold [LIMIT count]`
#[derive(Clone, Copy, Debug, Default)]
struct TrimOptions {
    to: Option<TrimTo>,
    is_approximate: bool,
    limit: Option<i64>,
}

impl TrimOptions {
    /// Reads one option, if the next word is one.
    fn parse_next(&mut self, args: &mut Args<'_>) -> Result<bool, CommandError> {
        let has_value = args.len() > 1;
        if has_value && args.keyword("MAXLEN") {
            self.parse_form(args)?;
            let len = usize::try_from(args.integer()?);
            let len = len.map_err(|_| CommandError::TrimMaxlenNegative)?;
            self.to = Some(TrimTo::Len(len));
        } else if has_value && args.keyword("MINID") {
            self.parse_form(args)?;
            self.to = Some(TrimTo::Id(parse_id(args.next()?, 0)?));
        } else if has_value && args.keyword("LIMIT") {
            let limit = Some(args.integer()?).filter(|limit| *limit >= 0);
            self.limit = Some(limit.ok_or(CommandError::TrimLimitNegative)?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn parse_form(&mut self, args: &mut Args<'_>) -> Result<(), CommandError> {
        if self.to.is_some() {
            return Err(CommandError::TrimStrategies);
        }
        self.is_approximate = args.len() > 1 && args.keyword("~");
        if !self.is_approximate && args.len() > 1 {
            args.keyword("=");
        }
        Ok(())
    }

    fn finish(self, config: &Config, is_required: bool) -> Result<Option<Trim>, CommandError> {
        let Some(to) = self.to else {
            return match self.limit {
                Some(1..) => Err(CommandError::TrimLimitNeedsStrategy),
                // Redis cannot tell this limit from none where it looks for the strategy.
                Some(_) if !is_required => Err(CommandError::TrimLimitNeedsApproximation),
                _ if is_required => Err(CommandError::TrimWithoutStrategy),
                _ => Ok(None),
            };
        };
        if self.limit.is_some() && !self.is_approximate {
            return Err(CommandError::TrimLimitNeedsApproximation);
        }
        let limit = match self.limit {
            Some(limit) => limit,
            None if self.is_approximate => default_limit(config),
            None => 0,
        };
        Ok(Some(Trim {
            to,
            is_approximate: self.is_approximate,
            limit: limit as usize,
        }))
    }
}

/// A hundred nodes, within bounds where `stream-node-max-entries` has none.
fn default_limit(config: &Config) -> i64 {
    match config.stream_node_max_entries.saturating_mul(100) {
        limit @ 1.. => limit.min(1_000_000),
        _ => 10_000,
    }
}

fn node_limits(config: &Config) -> NodeLimits {
    NodeLimits {
        bytes_max: config.stream_node_max_bytes.max(0) as usize,
        entries_max: config.stream_node_max_entries.max(0) as usize,
    }
}

fn range(call: &mut ReadCall<'_>, is_reverse: bool) -> CommandResult {
    let mut args = call.args();
    let (key, first, second) = (args.next()?, args.next()?, args.next()?);
    let (start, end) = if is_reverse {
        (second, first)
    } else {
        (first, second)
    };
    let (start, end) = (parse_start(start)?, parse_end(end)?);
    let mut count = None;
    while !args.is_empty() {
        if args.len() < 2 || !args.keyword("COUNT") {
            return Err(CommandError::Syntax);
        }
        // Redis marks "no COUNT" by -1, but makes 0 of a negative one before it looks.
        count = Some(args.integer()?.max(0) as usize);
    }
    let Some(stream) = call.keyspace.read::<Stream>(key)? else {
        return Ok(Reply::Array(Vec::new()));
    };
    if count == Some(0) {
        return Ok(Reply::NullArray);
    }
    let count = count.unwrap_or(usize::MAX);
    let entries = stream.range(start, end);
    let replies = if is_reverse {
        entries.rev().take(count).map(entry_reply).collect()
    } else {
        entries.take(count).map(entry_reply).collect()
    };
    Ok(Reply::Array(replies))
}

/// An id as a bulk string.
pub(super) fn id_reply(id: StreamId) -> Reply {
    Reply::bulk(id.to_string())
}

/// An entry as an array of its id and its fields and values.
pub(super) fn entry_reply(entry: &Entry) -> Reply {
    let words = entry.words.iter().cloned().map(Reply::Bulk).collect();
    Reply::Array(vec![id_reply(entry.id), Reply::Array(words)])
}

/// Reads an id without special forms; `seq` stands for a sequence number that is left out. Errors: invalid id.
pub(super) fn parse_id(text: &[u8], seq: u64) -> Result<StreamId, CommandError> {
    StreamId::parse(text, seq).ok_or(CommandError::StreamIdInvalid)
}

/// Reads an id, `-` for the lowest one or `+` for the highest one. Errors: invalid id.
pub(super) fn parse_id_or_end(text: &[u8], seq: u64) -> Result<StreamId, CommandError> {
    match text {
        [b'-'] | [b'-', 0, ..] => Ok(StreamId::ZERO),
        [b'+'] | [b'+', 0, ..] => Ok(StreamId::MAX),
        text => parse_id(text, seq),
    }
}

/// Reads ids to the end of the arguments. Errors: invalid id.
pub(super) fn parse_ids(args: Args<'_>) -> Result<Vec<StreamId>, CommandError> {
    args.rest().map(|text| parse_id(text, 0)).collect()
}

/// Reads the start of a range, exclusive behind a `(`. Errors: invalid id; nothing is behind it.
pub(super) fn parse_start(text: &[u8]) -> Result<StreamId, CommandError> {
    match text {
        [b'(', id @ ..] if !id.is_empty() => parse_id(id, 0)?
            .next()
            .ok_or(CommandError::StreamStartInvalid),
        text => parse_id_or_end(text, 0),
    }
}

/// Reads the end of a range, exclusive behind a `(`. Errors: invalid id; nothing is before it.
pub(super) fn parse_end(text: &[u8]) -> Result<StreamId, CommandError> {
    match text {
        [b'(', id @ ..] if !id.is_empty() => parse_id(id, u64::MAX)?
            .previous()
            .ok_or(CommandError::StreamEndInvalid),
        text => parse_id_or_end(text, u64::MAX),
    }
}
