//! Sorted set commands on single members; ranges, set operations and pops have files of their own.

use smallvec::SmallVec;

use super::sample::Sample;
use super::scan::{self, ScanOptions};
use super::{
    Args, Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words, WriteCall,
};
use crate::error::CommandError;
use crate::keyspace::{Event, Told};
use crate::value::sorted_set::Sizing;
use crate::value::{Blob, SortedSet, number};
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::SortedSet, &[
    //             name           arity  flags             keys            handler
    Command::write("ZADD",        -4,    &[DenyOom, Fast], KeySpec::FIRST, zadd).since("1.2.0"),
    Command::read ("ZCARD",        2,    &[Fast],          KeySpec::FIRST, zcard).since("1.2.0"),
    Command::write("ZINCRBY",      4,    &[DenyOom, Fast], KeySpec::FIRST, zincrby).since("1.2.0"),
    Command::read ("ZMSCORE",     -3,    &[Fast],          KeySpec::FIRST, zmscore).since("6.2.0"),
    Command::read ("ZRANDMEMBER", -2,    &[],              KeySpec::FIRST, zrandmember).since("6.2.0"),
    Command::read ("ZRANK",        3,    &[Fast],          KeySpec::FIRST, zrank).since("2.0.0"),
    Command::write("ZREM",        -3,    &[Fast],          KeySpec::FIRST, zrem).since("1.2.0"),
    Command::read ("ZREVRANK",     3,    &[Fast],          KeySpec::FIRST, zrevrank).since("2.0.0"),
    Command::read ("ZSCAN",       -3,    &[],              KeySpec::FIRST, zscan).since("2.8.0"),
    Command::read ("ZSCORE",       3,    &[Fast],          KeySpec::FIRST, zscore).since("1.2.0"),
]);

/// `ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]`: sets or, with INCR, raises scores.
///
/// Replies with the number of new members, with CH of new and changed ones, with INCR with the new score as a double or null
/// if the options forbade it. Errors: `WRONGTYPE`; syntax; options that exclude each other; not a float; NaN.
fn zadd(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let options = AddOptions::parse(&mut args)?;
    add(call, key, options, args)
}

/// `ZCARD key`: replies with the number of members. Errors: `WRONGTYPE`.
fn zcard(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key] = call.words()?;
    let set = call.keyspace.read::<SortedSet>(key)?;
    Ok(Reply::count(set.map_or(0, SortedSet::len)))
}

/// `ZINCRBY key increment member`: replies with the new score as a double. Errors: `WRONGTYPE`; not a float; NaN.
fn zincrby(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let options = AddOptions {
        increment: true,
        ..AddOptions::default()
    };
    add(call, key, options, args)
}

/// `ZMSCORE key member [member ...]`: replies with an array of doubles, null for what is no member. Errors: `WRONGTYPE`.
fn zmscore(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let set = call.keyspace.read::<SortedSet>(args.next()?)?;
    let scores = args.rest().map(|member| {
        set.and_then(|set| set.score(member))
            .map_or(Reply::Null, Reply::Double)
    });
    Ok(Reply::Array(scores.collect()))
}

/// `ZRANDMEMBER key [count [WITHSCORES]]`: replies with a random member or null; with a count, with an array of so many
/// different members, or of just so many with repetition if it is negative; WITHSCORES makes them pairs.
///
/// Errors: `WRONGTYPE`; not an integer; a count out of range; syntax.
fn zrandmember(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    if args.is_empty() {
        let Some(set) = call.keyspace.read::<SortedSet>(key)? else {
            return Ok(Reply::Null);
        };
        let member = set.at(call.rng.usize(0..set.len().max(1)));
        return Ok(member.map_or(Reply::Null, |(member, _)| Reply::Bulk(member.clone())));
    }
    let count = args.integer()?;
    if count == i64::MIN {
        return Err(CommandError::OutOfRangeBetween {
            min: -i64::MAX,
            max: i64::MAX,
        });
    }
    let with_scores = args.keyword("WITHSCORES");
    args.finish()?;
    if with_scores && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(CommandError::OutOfRange);
    }
    let Some(set) = call.keyspace.read::<SortedSet>(key)? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let members = draw(set, Sample::of(count)?, call.rng);
    Ok(members_reply(members, with_scores))
}

/// `ZRANK key member`: replies with the number of members before this one, or null. Errors: `WRONGTYPE`.
fn zrank(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key, member] = call.words()?;
    let set = call.keyspace.read::<SortedSet>(key)?;
    let rank = set.and_then(|set| set.rank(member));
    Ok(rank.map_or(Reply::Null, Reply::count))
}

/// `ZREM key member [member ...]`: replies with the number of members that were removed. Errors: `WRONGTYPE`.
fn zrem(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let Some(set) = call.keyspace.write::<SortedSet>(key)? else {
        return Ok(Reply::Integer(0));
    };
    let removed = args.rest().filter(|member| set.remove(member).is_some());
    let removed = removed.count();
    if removed > 0 {
        let event = Event::sorted_set("zrem").told(Told::Last);
        call.keyspace.changed(key, event.counting(removed));
    }
    Ok(Reply::count(removed))
}

/// `ZREVRANK key member`: replies with the number of members behind this one, or null. Errors: `WRONGTYPE`.
fn zrevrank(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key, member] = call.words()?;
    let set = call.keyspace.read::<SortedSet>(key)?;
    let rank = set.and_then(|set| Some(set.len() - 1 - set.rank(member)?));
    Ok(rank.map_or(Reply::Null, Reply::count))
}

/// `ZSCAN key cursor [MATCH pattern] [COUNT count]`: replies with the next cursor and an array of members and scores, the
/// scores as bulk strings in both protocols.
///
/// Errors: `WRONGTYPE`; invalid cursor; not an integer; syntax.
fn zscan(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let cursor = scan::parse_cursor(args.next()?)?;
    let Some(set) = call.keyspace.read::<SortedSet>(key)? else {
        return Ok(scan::reply(0, Vec::new()));
    };
    let options = ScanOptions::parse(args)?;
    let mut items = Vec::new();
    let mut visit = |member: &Blob, spelling: &dyn Fn() -> String| {
        if options.matches(member) {
            items.push(Reply::Bulk(member.clone()));
            items.push(Reply::bulk(spelling()));
        }
    };
    let next = match set.table() {
        Ok(table) => options.page(cursor, table, |member, score| {
            visit(member, &|| number::format_double(*score));
        }),
        Err(listpack) => {
            listpack.for_each(|item| visit(&item.member, &|| listpack_spelling(item.score)));
            0
        }
    };
    Ok(scan::reply(next, items))
}

/// `ZSCORE key member`: replies with the score as a double, or null. Errors: `WRONGTYPE`.
fn zscore(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key, member] = call.words()?;
    let set = call.keyspace.read::<SortedSet>(key)?;
    let score = set.and_then(|set| set.score(member));
    Ok(score.map_or(Reply::Null, Reply::Double))
}

/// The largest integer that a listpack keeps as one.
const LISTPACK_INTEGER_MAX: f64 = (1_i64 << 62) as f64;

/// A score as ZSCAN finds it in a listpack, where integers stand with all their digits.
fn listpack_spelling(score: f64) -> String {
    if score.fract() == 0.0 && score.abs() <= LISTPACK_INTEGER_MAX {
        (score as i64).to_string()
    } else {
        number::format_double(score)
    }
}

/// Which members `ZADD` may touch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Exists {
    /// All.
    #[default]
    Any,
    /// Those that are not there.
    OnlyNew,
    /// Those that are there.
    OnlyOld,
}

impl Exists {
    /// As the options NX and XX say, of which one may be given.
    pub(super) fn of(nx: bool, xx: bool) -> Exists {
        match (nx, xx) {
            (true, _) => Exists::OnlyNew,
            (_, true) => Exists::OnlyOld,
            _ => Exists::Any,
        }
    }
}

/// Which new scores `ZADD` lets pass for a member that has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Compare {
    #[default]
    Any,
    Greater,
    Less,
}

/// The options of `ZADD`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AddOptions {
    exists: Exists,
    compare: Compare,
    count_changed: bool,
    increment: bool,
}

impl AddOptions {
    /// Those that GEOADD has as well.
    pub(super) fn new(exists: Exists, count_changed: bool) -> AddOptions {
        AddOptions {
            exists,
            count_changed,
            ..AddOptions::default()
        }
    }

    /// Reads the options in front of the scores. What excludes what is told before a score is looked at, but after the number
    /// of words (`t_zset.c`, `zaddGenericCommand`).
    fn parse(args: &mut Args<'_>) -> Result<AddOptions, CommandError> {
        let mut options = AddOptions::default();
        let (mut nx, mut xx, mut gt, mut lt) = (false, false, false, false);
        loop {
            if args.keyword("NX") {
                nx = true;
            } else if args.keyword("XX") {
                xx = true;
            } else if args.keyword("CH") {
                options.count_changed = true;
            } else if args.keyword("INCR") {
                options.increment = true;
            } else if args.keyword("GT") {
                gt = true;
            } else if args.keyword("LT") {
                lt = true;
            } else {
                break;
            }
        }
        if args.is_empty() || args.len() % 2 == 1 {
            return Err(CommandError::Syntax);
        }
        if nx && xx {
            return Err(CommandError::ZaddXxAndNx);
        }
        if [gt, lt, nx].iter().filter(|given| **given).count() > 1 {
            return Err(CommandError::ZaddComparisons);
        }
        if options.increment && args.len() > 2 {
            return Err(CommandError::IncrementSinglePair);
        }
        options.exists = Exists::of(nx, xx);
        options.compare = match (gt, lt) {
            (true, _) => Compare::Greater,
            (_, true) => Compare::Less,
            _ => Compare::Any,
        };
        Ok(options)
    }

    /// The score that a member gets; none if the options forbid it one. Errors: NaN.
    fn score(self, old: Option<f64>, score: f64) -> Result<Option<f64>, CommandError> {
        let Some(old) = old else {
            return Ok((self.exists != Exists::OnlyOld).then_some(score));
        };
        if self.exists == Exists::OnlyNew {
            return Ok(None);
        }
        let score = if self.increment { old + score } else { score };
        if score.is_nan() {
            return Err(CommandError::ScoreNan);
        }
        let passes = match self.compare {
            Compare::Any => true,
            Compare::Greater => score > old,
            Compare::Less => score < old,
        };
        Ok(passes.then_some(score))
    }
}

/// What `ZADD` and `ZINCRBY` share: sets the scores of the pairs that `args` still holds.
fn add(call: &mut WriteCall<'_>, key: &[u8], options: AddOptions, args: Args<'_>) -> CommandResult {
    let mut scores = SmallVec::<[f64; 8]>::new();
    let mut pairs = args.clone();
    while !pairs.is_empty() {
        scores.push(pairs.float()?);
        pairs.next()?;
    }
    let members = args.rest().skip(1).step_by(2);
    add_pairs(call, key, options, scores.into_iter().zip(members))
}

/// Sets the scores of members, as `ZADD` does.
pub(super) fn add_pairs<'a>(
    call: &mut WriteCall<'_>,
    key: &[u8],
    options: AddOptions,
    pairs: impl Iterator<Item = (f64, &'a [u8])>,
) -> CommandResult {
    let nothing = if options.increment {
        Reply::Null
    } else {
        Reply::Integer(0)
    };
    if options.exists == Exists::OnlyOld && call.keyspace.peek::<SortedSet>(key)?.is_none() {
        return Ok(nothing);
    }
    let sizing = Sizing::new(call.config, call.keyspace.seed());
    let set = call.keyspace.write_or_create(key, SortedSet::new)?;
    let (mut added, mut updated, mut last) = (0, 0, None);
    for (score, member) in pairs {
        let old = set.score(member);
        last = options.score(old, score)?;
        if let Some(score) = last
            && old != Some(score)
        {
            set.insert(member, score, sizing);
            added += usize::from(old.is_none());
            updated += usize::from(old.is_some());
        }
    }
    if added + updated > 0 {
        let name = if options.increment { "zincr" } else { "zadd" };
        let event = Event::sorted_set(name).counting(added + updated);
        call.keyspace.answer_here();
        call.keyspace.changed(key, event);
    }
    Ok(match last {
        Some(score) if options.increment => Reply::Double(score),
        None if options.increment => nothing,
        _ if options.count_changed => Reply::count(added + updated),
        _ => Reply::count(added),
    })
}

/// So many random members with their scores.
fn draw(set: &SortedSet, sample: Sample, rng: &mut fastrand::Rng) -> Vec<(Blob, f64)> {
    let all = matches!(sample, Sample::Distinct(count) if count >= set.len());
    if all {
        // Redis walks a sorted set from its end when it answers all of it.
        let items = set.iter().rev();
        return items
            .map(|item| (item.member.clone(), item.score))
            .collect();
    }
    let mut indexes = sample.draw(set.len(), rng);
    if set.is_listpack() && matches!(sample, Sample::Distinct(_)) {
        indexes.sort_unstable();
    }
    let found = indexes.into_iter().filter_map(|index| set.at(index));
    found
        .map(|(member, score)| (member.clone(), score))
        .collect()
}

/// An array of members, or pairs of them with their scores.
pub(super) fn members_reply(
    members: impl IntoIterator<Item = (Blob, f64)>,
    with_scores: bool,
) -> Reply {
    let members = members.into_iter();
    if with_scores {
        let pair = |(member, score)| (Reply::Bulk(member), Reply::Double(score));
        Reply::Pairs(members.map(pair).collect())
    } else {
        Reply::Array(members.map(|(member, _)| Reply::Bulk(member)).collect())
    }
}
