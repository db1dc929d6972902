//! String commands that read or set whole values, and counters (`t_string.c`); parts of strings are in `string_range`.

use super::{
    Args, Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words, WriteCall,
};
use crate::clock::Timestamp;
use crate::error::CommandError;
use crate::keyspace::{Event, Typed};
use crate::value::{LongDouble, StringValue, number};
use crate::wire::Reply;
use Flag::*;

/// Keys that alternate with values.
const PAIRS: KeySpec = KeySpec::Range {
    first: 1,
    last: -1,
    step: 2,
};

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::String, &[
    //             name           arity  flags             keys            handler
    Command::write("DECR",         2,    &[DenyOom, Fast], KeySpec::FIRST, decr),
    Command::write("DECRBY",       3,    &[DenyOom, Fast], KeySpec::FIRST, decrby),
    Command::read ("GET",          2,    &[Fast],          KeySpec::FIRST, get),
    Command::write("GETDEL",       2,    &[Fast],          KeySpec::FIRST, getdel).since("6.2.0"),
    Command::write("GETEX",       -2,    &[Fast],          KeySpec::FIRST, getex).since("6.2.0"),
    Command::write("GETSET",       3,    &[DenyOom, Fast], KeySpec::FIRST, getset),
    Command::write("INCR",         2,    &[DenyOom, Fast], KeySpec::FIRST, incr),
    Command::write("INCRBY",       3,    &[DenyOom, Fast], KeySpec::FIRST, incrby),
    Command::write("INCRBYFLOAT",  3,    &[DenyOom, Fast], KeySpec::FIRST, incrbyfloat).since("2.6.0"),
    Command::read ("MGET",        -2,    &[Fast],          KeySpec::ALL,   mget),
    Command::write("MSET",        -3,    &[DenyOom],       PAIRS,          mset).since("1.0.1"),
    Command::write("MSETNX",      -3,    &[DenyOom],       PAIRS,          msetnx).since("1.0.1"),
    Command::write("PSETEX",       4,    &[DenyOom],       KeySpec::FIRST, psetex).since("2.6.0"),
    Command::write("SET",         -3,    &[DenyOom],       KeySpec::FIRST, set),
    Command::write("SETEX",        4,    &[DenyOom],       KeySpec::FIRST, setex).since("2.0.0"),
    Command::write("SETNX",        3,    &[DenyOom, Fast], KeySpec::FIRST, setnx),
]);

/// `DECR key`: takes 1 from an integer, missing counts as 0; replies with the new value.
///
/// Errors: `WRONGTYPE`; not an integer; overflow of `i64`.
fn decr(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key] = call.words()?;
    increment(call, key, -1)
}

/// `DECRBY key decrement`: as [`decr`], by any integer. Errors: the smallest integer, which has no negative.
fn decrby(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key, decrement] = call.words()?;
    let decrement = number::parse_integer(decrement).ok_or(CommandError::NotAnInteger)?;
    let by = decrement
        .checked_neg()
        .ok_or(CommandError::DecrementOverflow)?;
    increment(call, key, by)
}

/// `GET key`: replies with the string, or null. Errors: `WRONGTYPE`.
fn get(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key] = call.words()?;
    Ok(bulk_or_null(call.keyspace.read::<StringValue>(key)?))
}

/// `GETDEL key`: replies with the string, or null, and removes the key. Errors: `WRONGTYPE`.
fn getdel(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key] = call.words()?;
    let reply = bulk_or_null(call.keyspace.read::<StringValue>(key)?);
    if call.keyspace.remove(key).is_some() {
        call.keyspace.answer_here();
        call.keyspace.changed(key, Event::generic("del"));
    }
    Ok(reply)
}

/// `GETEX key [EX seconds | PX milliseconds | EXAT unix-seconds | PXAT unix-milliseconds | PERSIST]`: replies with the string,
/// or null, and changes its deadline. A deadline in the past removes the key.
///
/// Errors: syntax; `WRONGTYPE`; for a key that exists: not an integer, invalid expire time.
fn getex(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let ttl = parse_getex(args)?;
    let Some(value) = call.keyspace.read::<StringValue>(key)? else {
        return Ok(Reply::Null);
    };
    let reply = Reply::Bulk(value.to_blob());
    call.keyspace.answer_here();
    match ttl {
        Ttl::Clear => {}
        Ttl::Persist => {
            if call.keyspace.deadline(key).is_some() {
                call.keyspace.set_deadline(key, None);
                call.keyspace.changed(key, Event::generic("persist"));
            }
        }
        Ttl::Until(expiry) => {
            let deadline = expiry.deadline(call.now, call.row.full_name())?;
            if expiry.is_absolute && deadline <= call.now.millis() {
                call.keyspace.remove(key);
                call.keyspace.changed(key, Event::generic("del"));
            } else {
                call.keyspace.set_deadline(key, Some(deadline));
                call.keyspace.changed(key, Event::generic("expire"));
            }
        }
    }
    Ok(reply)
}

/// `GETSET key value`: sets the string, without a deadline; replies with the old one, or null. Errors: `WRONGTYPE`.
fn getset(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key, value] = call.words()?;
    let reply = bulk_or_null(call.keyspace.read::<StringValue>(key)?);
    call.keyspace.answer_here();
    store(call, key, value);
    Ok(reply)
}

/// `INCR key`: adds 1 to an integer, missing counts as 0; replies with the new value.
///
/// Errors: `WRONGTYPE`; not an integer; overflow of `i64`.
fn incr(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key] = call.words()?;
    increment(call, key, 1)
}

/// `INCRBY key increment`: as [`incr`], by any integer.
fn incrby(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key, increment_by] = call.words()?;
    let by = number::parse_integer(increment_by).ok_or(CommandError::NotAnInteger)?;
    increment(call, key, by)
}

fn increment(call: &mut WriteCall<'_>, key: &[u8], by: i64) -> CommandResult {
    let value = if let Some(string) = call.keyspace.write::<StringValue>(key)? {
        let old = string.integer().ok_or(CommandError::NotAnInteger)?;
        let new = old.checked_add(by).ok_or(CommandError::IncrementOverflow)?;
        *string = StringValue::Integer(new);
        new
    } else {
        let value = StringValue::Integer(by).into_value();
        call.keyspace.set(key, value);
        by
    };
    call.keyspace.changed(key, Event::string("incrby"));
    Ok(Reply::Integer(value))
}

/// `INCRBYFLOAT key increment`: adds to a number, missing counts as 0; replies with the new value as a bulk string.
///
/// Computes with the 64-bit mantissa of x87's `long double` and prints 17 decimals without trailing zeros, as Redis does.
/// Errors: `WRONGTYPE`; not a float, the value being looked at first; an infinite result.
fn incrbyfloat(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key, increment] = call.words()?;
    let old = match call.keyspace.peek::<StringValue>(key)? {
        Some(string) => LongDouble::parse(&string.bytes()).ok_or(CommandError::NotAFloat)?,
        None => LongDouble::ZERO,
    };
    let by = LongDouble::parse(increment).ok_or(CommandError::NotAFloat)?;
    let new = old
        .checked_add(by)
        .ok_or(CommandError::IncrementNotFinite)?
        .to_string();
    // Redis keeps the result as text even where it is the spelling of an integer.
    let value = StringValue::Text(new.as_str().into());
    match call.keyspace.write::<StringValue>(key)? {
        Some(string) => *string = value,
        None => call.keyspace.set(key, value.into_value()),
    }
    call.keyspace.changed(key, Event::string("incrbyfloat"));
    Ok(Reply::bulk(new))
}

/// `MGET key [key ...]`: replies with an array of the strings, null where there is none or another type.
fn mget(call: &mut ReadCall<'_>) -> CommandResult {
    let keyspace = call.keyspace;
    let values = call.args().rest().map(|key| {
        let value = keyspace.read_any(key).and_then(StringValue::of);
        bulk_or_null(value)
    });
    Ok(Reply::Array(values.collect()))
}

/// `MSET key value [key value ...]`: sets all of them; replies with `OK`. Errors: a key without a value.
fn mset(call: &mut WriteCall<'_>) -> CommandResult {
    store_pairs(call)?;
    Ok(Reply::OK)
}

/// `MSETNX key value [key value ...]`: sets all of them if none exists; replies with 1 or 0. Errors: a key without a value.
fn msetnx(call: &mut WriteCall<'_>) -> CommandResult {
    if call.args().len() % 2 == 1 {
        return Err(call.wrong_arity());
    }
    let any = call
        .args()
        .rest()
        .step_by(2)
        .any(|key| call.keyspace.exists_for_write(key));
    if !any {
        store_pairs(call)?;
    }
    Ok(Reply::flag(!any))
}

fn store_pairs(call: &mut WriteCall<'_>) -> Result<(), CommandError> {
    let mut args = call.args();
    if args.len() % 2 == 1 {
        return Err(call.wrong_arity());
    }
    while let Some(key) = args.next_if_any() {
        let value = args.next()?;
        store(call, key, value);
    }
    Ok(())
}

/// `PSETEX key milliseconds value`: sets the string and its time to live; replies with `OK`.
///
/// Errors: not an integer; invalid expire time.
fn psetex(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key, ttl, value] = call.words()?;
    set_expiring(call, key, value, Expiry::relative(ttl, Unit::Milliseconds))
}

/// `SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-seconds | PXAT unix-milliseconds | KEEPTTL]`:
/// replies with `OK`, with null if NX or XX prevented it, with GET with the old string or null.
///
/// Errors: syntax; not an integer; invalid expire time; with GET `WRONGTYPE`.
fn set(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (key, value) = (args.next()?, args.next()?);
    if args.is_empty() {
        store(call, key, value);
        return Ok(Reply::OK);
    }
    let options = SetOptions::parse(args)?;
    let deadline = match &options.ttl {
        SetTtl::Until(expiry) => Some(expiry.deadline(call.now, call.row.full_name())?),
        SetTtl::Clear | SetTtl::Keep => None,
    };
    let (done, refused) = if options.get {
        let old = bulk_or_null(call.keyspace.read::<StringValue>(key)?);
        (old.clone(), old)
    } else {
        (Reply::OK, Reply::Null)
    };
    let wanted = match options.condition {
        None => true,
        Some(Condition::Missing) => !call.keyspace.exists_for_write(key),
        Some(Condition::Existing) => call.keyspace.exists_for_write(key),
    };
    if !wanted {
        return Ok(refused);
    }
    let string = StringValue::new(value).into_value();
    if options.ttl == SetTtl::Keep {
        call.keyspace.replace(key, string);
    } else {
        call.keyspace.set(key, string);
    }
    if options.get {
        call.keyspace.answer_here();
    }
    call.keyspace.changed(key, Event::string("set"));
    if deadline.is_some() {
        expire(call, key, deadline);
    }
    Ok(done)
}

/// `SETEX key seconds value`: sets the string and its time to live; replies with `OK`.
///
/// Errors: not an integer; invalid expire time.
fn setex(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key, ttl, value] = call.words()?;
    set_expiring(call, key, value, Expiry::relative(ttl, Unit::Seconds))
}

/// `SETNX key value`: sets the string if the key does not exist; replies with 1 or 0.
fn setnx(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key, value] = call.words()?;
    let missing = !call.keyspace.exists_for_write(key);
    if missing {
        store(call, key, value);
    }
    Ok(Reply::flag(missing))
}

fn set_expiring(
    call: &mut WriteCall<'_>,
    key: &[u8],
    value: &[u8],
    expiry: Expiry<'_>,
) -> CommandResult {
    let deadline = expiry.deadline(call.now, call.row.full_name())?;
    store(call, key, value);
    expire(call, key, Some(deadline));
    Ok(Reply::OK)
}

fn store(call: &mut WriteCall<'_>, key: &[u8], value: &[u8]) {
    call.keyspace.set(key, StringValue::new(value).into_value());
    call.keyspace.changed(key, Event::string("set"));
}

/// Gives a key that was just set its deadline; Redis does not count this as a second change.
fn expire(call: &mut WriteCall<'_>, key: &[u8], deadline: Option<i64>) {
    call.keyspace.set_deadline(key, deadline);
    call.keyspace.notify(key, Event::generic("expire"));
}

fn bulk_or_null(value: Option<&StringValue>) -> Reply {
    value.map_or(Reply::Null, |value| Reply::Bulk(value.to_blob()))
}

/// What SET asks of the key before it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    /// NX
    Missing,
    /// XX
    Existing,
}

/// What SET does with the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SetTtl<'a> {
    Clear,
    Keep,
    Until(Expiry<'a>),
}

#[derive(Debug)]
struct SetOptions<'a> {
    condition: Option<Condition>,
    get: bool,
    ttl: SetTtl<'a>,
}

impl<'a> SetOptions<'a> {
    /// Words may be repeated, but those that exclude each other are a syntax error.
    fn parse(mut args: Args<'a>) -> Result<SetOptions<'a>, CommandError> {
        let mut options = SetOptions {
            condition: None,
            get: false,
            ttl: SetTtl::Clear,
        };
        while !args.is_empty() {
            if options.condition != Some(Condition::Existing) && args.keyword("NX") {
                options.condition = Some(Condition::Missing);
            } else if options.condition != Some(Condition::Missing) && args.keyword("XX") {
                options.condition = Some(Condition::Existing);
            } else if args.keyword("GET") {
                options.get = true;
            } else if !matches!(options.ttl, SetTtl::Until(_)) && args.keyword("KEEPTTL") {
                options.ttl = SetTtl::Keep;
            } else {
                let expiry = Expiry::parse(&mut args)?;
                options.ttl = match options.ttl {
                    SetTtl::Clear => SetTtl::Until(expiry),
                    SetTtl::Until(other) if other.is_same_option(expiry) => SetTtl::Until(expiry),
                    SetTtl::Until(_) | SetTtl::Keep => return Err(CommandError::Syntax),
                };
            }
        }
        Ok(options)
    }
}

/// What GETEX does with the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ttl<'a> {
    Clear,
    Persist,
    Until(Expiry<'a>),
}

fn parse_getex(mut args: Args<'_>) -> Result<Ttl<'_>, CommandError> {
    let mut ttl = Ttl::Clear;
    while !args.is_empty() {
        if !matches!(ttl, Ttl::Until(_)) && args.keyword("PERSIST") {
            ttl = Ttl::Persist;
        } else {
            let expiry = Expiry::parse(&mut args)?;
            ttl = match ttl {
                Ttl::Clear => Ttl::Until(expiry),
                Ttl::Until(other) if other.is_same_option(expiry) => Ttl::Until(expiry),
                Ttl::Until(_) | Ttl::Persist => return Err(CommandError::Syntax),
            };
        }
    }
    Ok(ttl)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Seconds,
    Milliseconds,
}

/// A time to live or a deadline as the client wrote it; it is read only once the command needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Expiry<'a> {
    text: &'a [u8],
    unit: Unit,
    is_absolute: bool,
}

impl<'a> Expiry<'a> {
    fn relative(text: &'a [u8], unit: Unit) -> Expiry<'a> {
        Expiry {
            text,
            unit,
            is_absolute: false,
        }
    }

    /// Reads `EX`, `PX`, `EXAT` or `PXAT` with its time; any other word is a syntax error.
    fn parse(args: &mut Args<'a>) -> Result<Expiry<'a>, CommandError> {
        let options = [
            ("EX", Unit::Seconds, false),
            ("PX", Unit::Milliseconds, false),
            ("EXAT", Unit::Seconds, true),
            ("PXAT", Unit::Milliseconds, true),
        ];
        for (name, unit, is_absolute) in options {
            if args.keyword(name) {
                let text = args.next()?;
                return Ok(Expiry {
                    text,
                    unit,
                    is_absolute,
                });
            }
        }
        Err(CommandError::Syntax)
    }

    fn is_same_option(self, other: Expiry<'_>) -> bool {
        self.unit == other.unit && self.is_absolute == other.is_absolute
    }

    /// The deadline in milliseconds since the epoch. Errors: not an integer; not positive, or beyond `i64`.
    fn deadline(self, now: Timestamp, command: &'static str) -> Result<i64, CommandError> {
        let time = number::parse_integer(self.text).ok_or(CommandError::NotAnInteger)?;
        let factor = match self.unit {
            Unit::Seconds => 1000,
            Unit::Milliseconds => 1,
        };
        Some(time)
            .filter(|time| *time > 0)
            .and_then(|time| time.checked_mul(factor))
            .and_then(|millis| {
                let base = if self.is_absolute { 0 } else { now.millis() };
                millis.checked_add(base)
            })
            .ok_or(CommandError::InvalidExpire(command))
    }
}
