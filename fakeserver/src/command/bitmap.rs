//! Bitmap commands (bitops.c): strings seen as bits, the highest bit of the first byte being bit 0. BITFIELD is in `bitfield`.

use super::{
    Access, Args, Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words, WriteCall,
};
use crate::config::Config;
use crate::error::CommandError;
use crate::keyspace::{Event, Typed};
use crate::value::string::Bytes;
use crate::value::{StringValue, number};
use crate::wire::{Reply, Request};
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Bitmap, &[
    //             name       arity  flags      keys                          handler
    Command::read ("BITCOUNT", -2,   &[],        KeySpec::FIRST,              bitcount).since("2.6.0"),
    Command::write("BITOP",    -4,   &[DenyOom], KeySpec::Custom(bitop_keys), bitop).since("2.6.0"),
    Command::read ("BITPOS",   -3,   &[],        KeySpec::FIRST,              bitpos).since("2.8.7"),
    Command::read ("GETBIT",    3,   &[Fast],    KeySpec::FIRST,              getbit).since("2.2.0"),
    Command::write("SETBIT",    4,   &[DenyOom], KeySpec::FIRST,              setbit).since("2.2.0"),
]);

/// `BITCOUNT key [start end [BYTE | BIT]]`: replies with the number of set bits, 0 for a missing key.
///
/// Errors: `WRONGTYPE`; for a key that exists: not an integer, syntax.
fn bitcount(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let Some(string) = call.keyspace.read::<StringValue>(key)? else {
        return Ok(Reply::Integer(0));
    };
    let bytes = string.bytes();
    if args.is_empty() {
        return Ok(Reply::Integer(count_ones(&bytes)));
    }
    if args.len() == 1 || args.len() > 3 {
        return Err(CommandError::Syntax);
    }
    let (start, end) = (args.integer()?, args.integer()?);
    // Redis looks at the unit only after this.
    if start < 0 && end < 0 && start > end {
        return Ok(Reply::Integer(0));
    }
    let unit = Unit::parse(args)?;
    let Some((first, last)) = unit.bits(start, end, bytes.len()) else {
        return Ok(Reply::Integer(0));
    };
    let inner = &bytes[(first / 8) as usize..=(last / 8) as usize];
    let outside = u32::from(before(inner.first(), first)) + u32::from(behind(inner.last(), last));
    Ok(Reply::Integer(count_ones(inner) - i64::from(outside)))
}

/// Set bits of the byte that holds bit `first`, which lie before it.
fn before(byte: Option<&u8>, first: u64) -> u8 {
    let kept = 0xff_u8 >> (first % 8);
    byte.map_or(0, |byte| (byte & !kept).count_ones() as u8)
}

/// Set bits of the byte that holds bit `last`, which lie behind it.
fn behind(byte: Option<&u8>, last: u64) -> u8 {
    let kept = !(0x7f_u8 >> (last % 8));
    byte.map_or(0, |byte| (byte & !kept).count_ones() as u8)
}

fn count_ones(bytes: &[u8]) -> i64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words
        .iter()
        .map(|word| u64::from_ne_bytes(*word).count_ones());
    let rest = rest.iter().map(|byte| byte.count_ones());
    words.chain(rest).map(i64::from).sum()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    And,
    Or,
    Xor,
    Not,
}

/// `BITOP AND | OR | XOR | NOT destkey key [key ...]`: stores the result of a bitwise operation, shorter strings being filled
/// up with zeros; replies with its length. An empty result removes the destination.
///
/// Errors: syntax; NOT of several keys; `WRONGTYPE`.
fn bitop(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let word = args.next()?;
    let operation = [
        ("AND", Operation::And),
        ("OR", Operation::Or),
        ("XOR", Operation::Xor),
        ("NOT", Operation::Not),
    ]
    .into_iter()
    .find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()))
    .map(|(_, operation)| operation)
    .ok_or(CommandError::Syntax)?;
    let destination = args.next()?;
    if operation == Operation::Not && args.len() != 1 {
        return Err(CommandError::BitopNotOfSeveral);
    }
    let mut sources = Vec::with_capacity(args.len());
    for key in args.rest() {
        let string = call.keyspace.read::<StringValue>(key)?;
        sources.push(string.map_or(Bytes::Slice(&[]), StringValue::bytes));
    }
    let result = combine(operation, &sources);
    let len = result.len();
    if len > 0 {
        call.keyspace
            .set(destination, StringValue::Raw(result).into_value());
        call.keyspace.changed(destination, Event::string("set"));
    } else if call.keyspace.remove(destination).is_some() {
        call.keyspace.changed(destination, Event::generic("del"));
    }
    Ok(Reply::count(len))
}

fn combine(operation: Operation, sources: &[Bytes<'_>]) -> Vec<u8> {
    let len = sources.iter().map(|source| source.len()).max().unwrap_or(0);
    let Some((first, others)) = sources.split_first() else {
        return Vec::new();
    };
    let mut result = first.to_vec();
    result.resize(len, 0);
    if operation == Operation::Not {
        for byte in &mut result {
            *byte = !*byte;
        }
    }
    for other in others {
        let (common, rest) = result.split_at_mut(other.len());
        let pairs = common.iter_mut().zip(other.iter());
        match operation {
            Operation::And => {
                pairs.for_each(|(byte, other)| *byte &= other);
                rest.fill(0);
            }
            Operation::Or => pairs.for_each(|(byte, other)| *byte |= other),
            Operation::Xor => pairs.for_each(|(byte, other)| *byte ^= other),
            Operation::Not => {}
        }
    }
    result
}

fn bitop_keys(request: &Request) -> Vec<(usize, Access)> {
    let access = |at| if at == 2 { Access::Write } else { Access::Read };
    (2..request.len()).map(|at| (at, access(at))).collect()
}

/// `BITPOS key bit [start [end [BYTE | BIT]]]`: replies with the position of the first bit that is `bit`, or -1. Without an end
/// a string counts as followed by zeros, a missing key as all zeros.
///
/// Errors: not an integer; a bit that is neither 0 nor 1; `WRONGTYPE`; for a key that exists: syntax.
fn bitpos(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (key, bit) = (args.next()?, args.integer()?);
    if bit != 0 && bit != 1 {
        return Err(CommandError::BitposOfOtherBit);
    }
    let Some(string) = call.keyspace.read::<StringValue>(key)? else {
        return Ok(Reply::Integer(-bit));
    };
    if args.len() > 3 {
        return Err(CommandError::Syntax);
    }
    let bytes = string.bytes();
    let start = if args.is_empty() { 0 } else { args.integer()? };
    // Redis looks at the unit before it looks at the end, which it stands behind.
    let mut behind_end = args.clone();
    behind_end.next_if_any();
    let unit = Unit::parse(behind_end)?;
    let end = if args.is_empty() {
        None
    } else {
        Some(args.integer()?)
    };
    let Some((first, last)) = unit.bits(start, end.unwrap_or(-1), bytes.len()) else {
        return Ok(Reply::Integer(-1));
    };
    Ok(Reply::Integer(match find(&bytes, bit == 1, first, last) {
        Some(at) => at as i64,
        None if bit == 0 && end.is_none() => bytes.len() as i64 * 8,
        None => -1,
    }))
}

/// The first of the bits `first` to `last` that is set or not set.
fn find(bytes: &[u8], set: bool, first: u64, last: u64) -> Option<u64> {
    let flip = if set { 0 } else { 0xff };
    let (first_byte, last_byte) = ((first / 8) as usize, (last / 8) as usize);
    let masked = |at: usize| {
        let from = if at == first_byte { first % 8 } else { 0 };
        bytes.get(at).map_or(0, |byte| byte ^ flip) & 0xff >> from
    };
    let at = if masked(first_byte) != 0 {
        first_byte
    } else {
        let others = bytes.get(first_byte + 1..=last_byte)?;
        first_byte + 1 + others.iter().position(|byte| byte ^ flip != 0)?
    };
    let found = at as u64 * 8 + u64::from(masked(at).leading_zeros());
    (found <= last).then_some(found)
}

/// `GETBIT key offset`: replies with the bit, 0 beyond the string's end. Errors: bad offset; `WRONGTYPE`.
fn getbit(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key, offset] = call.words()?;
    let offset = bit_offset(offset, call.config)?;
    let string = call.keyspace.read::<StringValue>(key)?;
    let byte = string.and_then(|string| string.bytes().get((offset / 8) as usize).copied());
    Ok(Reply::flag(byte.unwrap_or(0) & 0x80 >> (offset % 8) != 0))
}

/// `SETBIT key offset value`: sets a bit, filling the string up with zeros; replies with the old bit.
///
/// Errors: bad offset; bad bit; `WRONGTYPE`.
fn setbit(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key, offset, bit] = call.words()?;
    let offset = bit_offset(offset, call.config)?;
    let set = match number::parse_integer(bit) {
        Some(0) => false,
        Some(1) => true,
        _ => return Err(CommandError::NotABit),
    };
    let (at, mask) = ((offset / 8) as usize, 0x80_u8 >> (offset % 8));
    let old = call
        .keyspace
        .peek::<StringValue>(key)?
        .and_then(|string| string.bytes().get(at).copied());
    let was_set = old.unwrap_or(0) & mask != 0;
    let empty = || StringValue::Raw(Vec::new());
    let string = call.keyspace.write_or_create(key, empty)?;
    let was_raw = matches!(string, StringValue::Raw(_));
    let bytes = string.raw_mut();
    if old.is_some() && was_set == set {
        if !was_raw {
            // Redis makes the string raw without telling anybody.
            call.keyspace.stats.dirty += 1;
        }
        return Ok(Reply::flag(was_set));
    }
    if bytes.len() <= at {
        bytes.resize(at + 1, 0);
    }
    if let Some(byte) = bytes.get_mut(at) {
        *byte = if set { *byte | mask } else { *byte & !mask };
    }
    call.keyspace.changed(key, Event::string("setbit"));
    Ok(Reply::flag(was_set))
}

/// Reads a bit's offset; its byte must fit into the longest string.
pub(super) fn bit_offset(word: &[u8], config: &Config) -> Result<u64, CommandError> {
    number::parse_integer(word)
        .and_then(|offset| checked_offset(offset, config))
        .ok_or(CommandError::BitOffset)
}

/// The offset, if it lies in a string that may exist.
pub(super) fn checked_offset(offset: i64, config: &Config) -> Option<u64> {
    (offset >= 0 && offset / 8 < config.proto_max_bulk_len).then_some(offset as u64)
}

/// What `start` and `end` of BITCOUNT and BITPOS count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Byte,
    Bit,
}

impl Unit {
    /// Reads `[BYTE | BIT]` to the end of the arguments.
    fn parse(mut args: Args<'_>) -> Result<Unit, CommandError> {
        let unit = if args.keyword("BIT") {
            Unit::Bit
        } else {
            args.keyword("BYTE");
            Unit::Byte
        };
        args.finish()?;
        Ok(unit)
    }

    /// The first and last bit that are meant in a string of `len` bytes; none if there is none.
    fn bits(self, start: i64, end: i64, len: usize) -> Option<(u64, u64)> {
        let per_unit = match self {
            Unit::Byte => 8,
            Unit::Bit => 1,
        };
        let total = len as i64 * 8 / per_unit;
        let from_end = |at: i64| {
            if at < 0 {
                at.saturating_add(total).max(0)
            } else {
                at
            }
        };
        let (start, end) = (from_end(start), from_end(end).min(total - 1));
        (start <= end).then(|| {
            let (start, end) = (start as u64, end as u64);
            let per_unit = per_unit as u64;
            (start * per_unit, end * per_unit + per_unit - 1)
        })
    }
}
