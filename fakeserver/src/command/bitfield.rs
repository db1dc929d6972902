//! BITFIELD: integers of any width at any bit of a string (bitops.c, `bitfieldGeneric`).

use super::bitmap::checked_offset;
use super::{
    Args, Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words, WriteCall,
};
use crate::config::Config;
use crate::error::CommandError;
use crate::keyspace::Event;
use crate::value::{StringValue, number};
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Bitmap, &[
    //             name           arity  flags      keys            handler
    Command::write("BITFIELD",    -2,    &[DenyOom], KeySpec::FIRST, bitfield).since("3.2.0"),
    Command::read ("BITFIELD_RO", -2,    &[Fast],    KeySpec::FIRST, bitfield_ro).since("6.0.0"),
]);

/// `BITFIELD key [GET encoding offset | [OVERFLOW WRAP | SAT | FAIL] SET encoding offset value | INCRBY encoding offset
/// increment ...]`: replies with an array of the read, the old and the new integers, null where FAIL prevented a write.
///
/// Errors: syntax; bad encoding, offset, overflow type or integer; `WRONGTYPE`.
fn bitfield(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let steps = parse(args, call.config)?;
    let Some(len) = steps.iter().filter_map(Step::written_len).max() else {
        let string = call.keyspace.read::<StringValue>(key)?;
        return Ok(read_all(&steps, string));
    };
    let empty = || StringValue::Raw(Vec::new());
    let string = call.keyspace.write_or_create(key, empty)?;
    let was_raw = matches!(string, StringValue::Raw(_));
    let bytes = string.raw_mut();
    let grows = bytes.len() < len;
    if grows {
        bytes.resize(len, 0);
    }
    let (mut replies, mut changed) = (Vec::with_capacity(steps.len()), false);
    for step in &steps {
        let (reply, changes) = step.run(bytes);
        changed |= changes || (grows && step.is_write() && reply != Reply::Null);
        replies.push(reply);
    }
    if changed {
        call.keyspace.answer_here();
        call.keyspace.changed(key, Event::string("setbit"));
    } else if grows || !was_raw {
        // Redis leaves the string filled up and raw where no write changed anything, and tells nobody.
        call.keyspace.stats.dirty += 1;
    }
    Ok(Reply::Array(replies))
}

/// `BITFIELD_RO key [GET encoding offset ...]`: replies with an array of the integers.
///
/// Errors: syntax; bad encoding or offset; another subcommand; `WRONGTYPE`.
fn bitfield_ro(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let steps = parse(args, call.config)?;
    if steps.iter().any(Step::is_write) {
        return Err(CommandError::BitfieldReadOnly);
    }
    let string = call.keyspace.read::<StringValue>(key)?;
    Ok(read_all(&steps, string))
}

fn read_all(steps: &[Step], string: Option<&StringValue>) -> Reply {
    let bytes = string.map(StringValue::bytes);
    let bytes = bytes.as_deref().unwrap_or_default();
    let values = steps.iter().map(|step| step.read(bytes));
    Reply::Array(values.map(|value| Reply::Integer(value as i64)).collect())
}

/// What a write does with a value that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Get,
    Set(i64),
    Increment(i64),
}

/// One subcommand.
#[derive(Clone, Copy, Debug)]
struct Step {
    operation: Operation,
    overflow: Overflow,
    encoding: Encoding,
    offset: u64,
}

impl Step {
    fn is_write(&self) -> bool {
        self.operation != Operation::Get
    }

    /// Bytes that a string must have for this to be written.
    fn written_len(&self) -> Option<usize> {
        let last = self.offset + u64::from(self.encoding.bits) - 1;
        self.is_write().then_some((last / 8) as usize + 1)
    }

    fn read(&self, bytes: &[u8]) -> i128 {
        self.encoding
            .value(read_bits(bytes, self.offset, self.encoding.bits))
    }

    /// Redis reckons the room above a value in 64 bits; where that wraps, a very small one is taken for too large a one.
    fn saturates_upwards(&self, value: i64) -> bool {
        let room = (self.encoding.max() as i64).wrapping_sub(value);
        let narrow = self.encoding.is_signed && self.encoding.bits < 64;
        narrow && self.overflow == Overflow::Saturate && room < 0
    }

    /// Runs this on a string that is long enough; the reply, and whether the string is another one now.
    fn run(&self, bytes: &mut [u8]) -> (Reply, bool) {
        let old = self.read(bytes);
        let wanted = match self.operation {
            Operation::Get => return (Reply::Integer(old as i64), false),
            Operation::Set(value) if self.saturates_upwards(value) => self.encoding.max(),
            // An unsigned field takes a negative value for the large number with the same bits.
            Operation::Set(value) if self.encoding.is_signed => i128::from(value),
            Operation::Set(value) => i128::from(value as u64),
            Operation::Increment(by) => old + i128::from(by),
        };
        let Some(new) = self.encoding.fit(wanted, self.overflow) else {
            return (Reply::Null, false);
        };
        write_bits(bytes, self.offset, self.encoding.bits, new as u64);
        let reply = match self.operation {
            Operation::Set(_) => old,
            Operation::Get | Operation::Increment(_) => new,
        };
        (Reply::Integer(reply as i64), old != new)
    }
}

/// `i5`, `u63`.
#[derive(Clone, Copy, Debug)]
struct Encoding {
    is_signed: bool,
    /// 1 to 64, to 63 without a sign.
    bits: u32,
}

impl Encoding {
    fn parse(word: &[u8]) -> Result<Encoding, CommandError> {
        let (is_signed, bits, bits_max) = match word {
            [b'i', bits @ ..] => (true, bits, 64),
            [b'u', bits @ ..] => (false, bits, 63),
            _ => return Err(CommandError::BitfieldEncoding),
        };
        number::parse_integer(bits)
            .filter(|bits| (1..=bits_max).contains(bits))
            .map(|bits| Encoding {
                is_signed,
                bits: bits as u32,
            })
            .ok_or(CommandError::BitfieldEncoding)
    }

    fn min(self) -> i128 {
        if self.is_signed {
            -(1 << (self.bits - 1))
        } else {
            0
        }
    }

    fn max(self) -> i128 {
        self.min() + (1 << self.bits) - 1
    }

    /// The number that a field's bits mean.
    fn value(self, bits: u64) -> i128 {
        let value = i128::from(bits);
        if value > self.max() {
            value - (1 << self.bits)
        } else {
            value
        }
    }

    /// The value that is stored for `wanted`, if any is.
    fn fit(self, wanted: i128, overflow: Overflow) -> Option<i128> {
        if (self.min()..=self.max()).contains(&wanted) {
            return Some(wanted);
        }
        match overflow {
            Overflow::Fail => None,
            Overflow::Saturate => Some(wanted.clamp(self.min(), self.max())),
            Overflow::Wrap => Some(self.value((wanted & ((1 << self.bits) - 1)) as u64)),
        }
    }
}

fn read_bits(bytes: &[u8], offset: u64, bits: u32) -> u64 {
    let (first, shift) = ((offset / 8) as usize, (offset % 8) as u32);
    // 64 bits at any offset lie in at most nine bytes; what lies behind the string is zero.
    let window = (0..9).fold(0_u128, |window, at| {
        window << 8 | u128::from(bytes.get(first + at).copied().unwrap_or(0))
    });
    let mask = u128::MAX >> (128 - bits);
    (window >> (72 - shift - bits) & mask) as u64
}

fn write_bits(bytes: &mut [u8], offset: u64, bits: u32, value: u64) {
    let (first, shift) = ((offset / 8) as usize, (offset % 8) as u32);
    let below = 72 - shift - bits;
    let mask = (u128::MAX >> (128 - bits)) << below;
    let value = u128::from(value) << below & mask;
    for at in 0..9 {
        let place = 8 * (8 - at as u32);
        let (mask, value) = ((mask >> place) as u8, (value >> place) as u8);
        if let Some(byte) = bytes.get_mut(first + at) {
            *byte = *byte & !mask | value;
        }
    }
}

fn parse(mut args: Args<'_>, config: &Config) -> Result<Vec<Step>, CommandError> {
    let (mut steps, mut overflow) = (Vec::new(), Overflow::Wrap);
    while !args.is_empty() {
        let left = args.len() - 1;
        if left >= 1 && args.keyword("OVERFLOW") {
            overflow = parse_overflow(&mut args)?;
            continue;
        }
        let is_get = left >= 2 && args.keyword("GET");
        let is_set = !is_get && left >= 3 && args.keyword("SET");
        let is_known = is_get || is_set || (left >= 3 && args.keyword("INCRBY"));
        if !is_known {
            return Err(CommandError::Syntax);
        }
        let encoding = Encoding::parse(args.next()?)?;
        let offset = field_offset(args.next()?, encoding, config)?;
        let operation = if is_get {
            Operation::Get
        } else if is_set {
            Operation::Set(args.integer()?)
        } else {
            Operation::Increment(args.integer()?)
        };
        steps.push(Step {
            operation,
            overflow,
            encoding,
            offset,
        });
    }
    Ok(steps)
}

fn parse_overflow(args: &mut Args<'_>) -> Result<Overflow, CommandError> {
    let types = [
        ("WRAP", Overflow::Wrap),
        ("SAT", Overflow::Saturate),
        ("FAIL", Overflow::Fail),
    ];
    types
        .into_iter()
        .find(|(name, _)| args.keyword(name))
        .map(|(_, overflow)| overflow)
        .ok_or(CommandError::BitfieldOverflowType)
}

/// Reads `bit`, or `#field` in units of the encoding's width.
fn field_offset(word: &[u8], encoding: Encoding, config: &Config) -> Result<u64, CommandError> {
    let offset = match word {
        [b'#', field @ ..] => number::parse_integer(field)
            .and_then(|field| field.checked_mul(i64::from(encoding.bits))),
        bit => number::parse_integer(bit),
    };
    offset
        .and_then(|offset| checked_offset(offset, config))
        .ok_or(CommandError::BitOffset)
}
