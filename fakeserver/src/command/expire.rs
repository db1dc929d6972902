//! Deadlines of keys (expire.c).

use super::{
    Args, Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words, WriteCall,
};
use crate::error::CommandError;
use crate::keyspace::{Event, Reason};
use crate::resolve::printable_at_end;
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Generic, &[
    //             name           arity  flags    keys            handler
    Command::write("EXPIRE",      -3,    &[Fast], KeySpec::FIRST, expire),
    Command::write("EXPIREAT",    -3,    &[Fast], KeySpec::FIRST, expireat).since("1.2.0"),
    Command::read ("EXPIRETIME",   2,    &[Fast], KeySpec::FIRST, expiretime).since("7.0.0"),
    Command::write("PERSIST",      2,    &[Fast], KeySpec::FIRST, persist).since("2.2.0"),
    Command::write("PEXPIRE",     -3,    &[Fast], KeySpec::FIRST, pexpire).since("2.6.0"),
    Command::write("PEXPIREAT",   -3,    &[Fast], KeySpec::FIRST, pexpireat).since("2.6.0"),
    Command::read ("PEXPIRETIME",  2,    &[Fast], KeySpec::FIRST, pexpiretime).since("7.0.0"),
    Command::read ("PTTL",         2,    &[Fast], KeySpec::FIRST, pttl).since("2.6.0"),
    Command::read ("TTL",          2,    &[Fast], KeySpec::FIRST, ttl),
]);

const SECOND_MS: i64 = 1000;

/// `EXPIRE key seconds [NX | XX | GT | LT]`: gives a key a deadline from now; replies with 1, or with 0 if the key is missing or
/// the condition does not hold. A deadline that is not in the future removes the key.
///
/// Errors: not an integer; an unknown option, or options that exclude each other; invalid expire time.
fn expire(call: &mut WriteCall<'_>) -> CommandResult {
    let now = call.now.millis();
    set_deadline(call, SECOND_MS, now)
}

/// `EXPIREAT key unix-time-seconds [NX | XX | GT | LT]`: as [`expire`], with a point in time.
fn expireat(call: &mut WriteCall<'_>) -> CommandResult {
    set_deadline(call, SECOND_MS, 0)
}

/// `EXPIRETIME key`: replies with the deadline in seconds since the epoch, -1 without one, -2 for a missing key.
fn expiretime(call: &mut ReadCall<'_>) -> CommandResult {
    answer_deadline(call, |deadline, _| nearest_second(deadline))
}

/// `PERSIST key`: takes a key's deadline away; replies with 1, or with 0 if there was none.
fn persist(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, key] = call.words()?;
    let had_deadline = call.keyspace.exists_for_write(key) && call.keyspace.deadline(key).is_some();
    if had_deadline {
        call.keyspace.set_deadline(key, None);
        call.keyspace.changed(key, Event::generic("persist"));
    }
    Ok(Reply::flag(had_deadline))
}

/// `PEXPIRE key milliseconds [NX | XX | GT | LT]`: as [`expire`], in milliseconds.
fn pexpire(call: &mut WriteCall<'_>) -> CommandResult {
    let now = call.now.millis();
    set_deadline(call, 1, now)
}

/// `PEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT]`: as [`expireat`], in milliseconds.
fn pexpireat(call: &mut WriteCall<'_>) -> CommandResult {
    set_deadline(call, 1, 0)
}

/// `PEXPIRETIME key`: as [`expiretime`], in milliseconds.
fn pexpiretime(call: &mut ReadCall<'_>) -> CommandResult {
    answer_deadline(call, |deadline, _| deadline)
}

/// `PTTL key`: as [`ttl`], in milliseconds.
fn pttl(call: &mut ReadCall<'_>) -> CommandResult {
    answer_deadline(call, |deadline, now| deadline.saturating_sub(now).max(0))
}

/// `TTL key`: replies with the remaining time in seconds, rounded to the nearest, -1 without a deadline, -2 for a missing key.
fn ttl(call: &mut ReadCall<'_>) -> CommandResult {
    answer_deadline(call, |deadline, now| {
        nearest_second(deadline.saturating_sub(now).max(0))
    })
}

fn nearest_second(millis: i64) -> i64 {
    millis / SECOND_MS + i64::from(millis % SECOND_MS >= SECOND_MS / 2)
}

fn answer_deadline(call: &mut ReadCall<'_>, answer: impl FnOnce(i64, i64) -> i64) -> CommandResult {
    let [_, key] = call.words()?;
    let Some(entry) = call.keyspace.inspect(key) else {
        return Ok(Reply::Integer(-2));
    };
    let now = call.now.millis();
    let answer = entry
        .deadline()
        .map_or(-1, |deadline| answer(deadline, now));
    Ok(Reply::Integer(answer))
}

fn set_deadline(call: &mut WriteCall<'_>, unit_ms: i64, base: i64) -> CommandResult {
    let mut args = call.args();
    let (key, time) = (args.next()?, args.next()?);
    let conditions = Conditions::parse(args)?;
    let time = crate::value::number::parse_integer(time).ok_or(CommandError::NotAnInteger)?;
    let deadline = time
        .checked_mul(unit_ms)
        .and_then(|time| time.checked_add(base))
        .ok_or_else(|| CommandError::InvalidExpire(call.row.full_name()))?;
    if !call.keyspace.exists_for_write(key)
        || !conditions.hold(call.keyspace.deadline(key), deadline)
    {
        return Ok(Reply::Integer(0));
    }
    if deadline <= call.now.millis() {
        call.keyspace.delete(key, Reason::Expired);
        call.keyspace.changed(key, Event::generic("del"));
    } else {
        call.keyspace.set_deadline(key, Some(deadline));
        call.keyspace.answer_here();
        call.keyspace.changed(key, Event::generic("expire"));
    }
    Ok(Reply::Integer(1))
}

/// What the present deadline must be for a new one to be set.
#[derive(Clone, Copy, Debug, Default)]
struct Conditions {
    /// NX or XX: there is none, there is one.
    presence: Option<Presence>,
    /// GT or LT: the new one is later, earlier. None counts as later than all.
    order: Option<Order>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Missing,
    Existing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Later,
    Earlier,
}

impl Conditions {
    /// All words are looked at before it is checked whether they exclude each other.
    fn parse(mut args: Args<'_>) -> Result<Conditions, CommandError> {
        let (mut nx, mut xx, mut gt, mut lt) = (false, false, false, false);
        while let Some(word) = args.peek() {
            let option = [
                ("NX", &mut nx),
                ("XX", &mut xx),
                ("GT", &mut gt),
                ("LT", &mut lt),
            ]
            .into_iter()
            .find_map(|(name, seen)| args.keyword(name).then_some(seen));
            match option {
                Some(seen) => *seen = true,
                None => return Err(unsupported(word)),
            }
        }
        if nx && (xx || gt || lt) {
            return Err(CommandError::ExpireConditionsExclude);
        }
        if gt && lt {
            return Err(CommandError::ExpireOrdersExclude);
        }
        let presence = match (nx, xx) {
            (true, _) => Some(Presence::Missing),
            (false, true) => Some(Presence::Existing),
            (false, false) => None,
        };
        let order = match (gt, lt) {
            (true, _) => Some(Order::Later),
            (false, true) => Some(Order::Earlier),
            (false, false) => None,
        };
        Ok(Conditions { presence, order })
    }

    fn hold(self, present: Option<i64>, new: i64) -> bool {
        let presence = match self.presence {
            None => true,
            Some(Presence::Missing) => present.is_none(),
            Some(Presence::Existing) => present.is_some(),
        };
        let order = match self.order {
            None => true,
            Some(Order::Later) => present.is_some_and(|present| new > present),
            Some(Order::Earlier) => present.is_none_or(|present| new < present),
        };
        presence && order
    }
}

fn unsupported(word: &[u8]) -> CommandError {
    CommandError::custom([b"ERR Unsupported option ", printable_at_end(word)].concat())
}
