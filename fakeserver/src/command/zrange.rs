//! Sorted set commands on ranges: by rank, by score, by member.

use std::ops::Range;

use super::sorted_set::members_reply;
use super::{
    Access, Args, Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words, WriteCall,
};
use crate::error::CommandError;
use crate::keyspace::{Event, Told, Typed};
use crate::value::ordered::Item;
use crate::value::sorted_set::Sizing;
use crate::value::{SortedSet, number};
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::SortedSet, &[
    //             name               arity  flags       keys            handler
    Command::read ("ZCOUNT",            4,   &[Fast],    KeySpec::FIRST, zcount).since("2.0.0"),
    Command::read ("ZLEXCOUNT",         4,   &[Fast],    KeySpec::FIRST, zlexcount).since("2.8.9"),
    Command::read ("ZRANGE",           -4,   &[],        KeySpec::FIRST, zrange).since("1.2.0"),
    Command::read ("ZRANGEBYLEX",      -4,   &[],        KeySpec::FIRST, zrangebylex).since("2.8.9"),
    Command::read ("ZRANGEBYSCORE",    -4,   &[],        KeySpec::FIRST, zrangebyscore).since("1.0.5"),
    Command::write("ZRANGESTORE",      -5,   &[DenyOom], TO_AND_FROM,    zrangestore).since("6.2.0"),
    Command::write("ZREMRANGEBYLEX",    4,   &[],        KeySpec::FIRST, zremrangebylex).since("2.8.9"),
    Command::write("ZREMRANGEBYRANK",   4,   &[],        KeySpec::FIRST, zremrangebyrank).since("2.0.0"),
    Command::write("ZREMRANGEBYSCORE",  4,   &[],        KeySpec::FIRST, zremrangebyscore).since("1.2.0"),
    Command::read ("ZREVRANGE",        -4,   &[],        KeySpec::FIRST, zrevrange).since("1.2.0"),
    Command::read ("ZREVRANGEBYLEX",   -4,   &[],        KeySpec::FIRST, zrevrangebylex).since("2.8.9"),
    Command::read ("ZREVRANGEBYSCORE", -4,   &[],        KeySpec::FIRST, zrevrangebyscore).since("2.2.0"),
]);

/// `ZCOUNT key min max`: replies with the number of members with such scores. Errors: `WRONGTYPE`; not a float.
fn zcount(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key, min, max] = call.words()?;
    let range = Selection::parse(By::Score, min, max)?;
    count(call, key, range)
}

/// `ZLEXCOUNT key min max`: replies with the number of such members. Errors: `WRONGTYPE`; not a valid string range item.
fn zlexcount(call: &mut ReadCall<'_>) -> CommandResult {
    let [_, key, min, max] = call.words()?;
    let range = Selection::parse(By::Lex, min, max)?;
    count(call, key, range)
}

/// `ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`: replies with an array of members, with
/// WITHSCORES with pairs.
///
/// Errors: `WRONGTYPE`; syntax; not an integer, float or valid string range item.
fn zrange(call: &mut ReadCall<'_>) -> CommandResult {
    range(call, None, None)
}

/// `ZRANGEBYLEX key min max [LIMIT offset count]`: as ZRANGE BYLEX.
fn zrangebylex(call: &mut ReadCall<'_>) -> CommandResult {
    range(call, Some(By::Lex), Some(Direction::Forward))
}

/// `ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]`: as ZRANGE BYSCORE.
fn zrangebyscore(call: &mut ReadCall<'_>) -> CommandResult {
    range(call, Some(By::Score), Some(Direction::Forward))
}

/// `ZRANGESTORE dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]`: replaces `dst` by what ZRANGE would answer;
/// replies with the number of members.
///
/// Errors: `WRONGTYPE` of `src`; syntax; not an integer, float or valid string range item.
fn zrangestore(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (destination, source) = (args.next()?, args.next()?);
    let query = Query::parse(args, None, None, Scores::Refused)?;
    let sizing = Sizing::new(call.config, call.keyspace.seed());
    let mut result = SortedSet::new();
    if let Some(set) = call.keyspace.read::<SortedSet>(source)? {
        let ranks = query.ranks(set);
        // Redis knows the length beforehand of a range of ranks alone; any other result grows as if by ZADD.
        if let Selection::Rank { .. } = query.selection {
            result = SortedSet::for_len(ranks.len(), sizing);
        }
        for item in set.range(ranks) {
            result.insert(&item.member, item.score, sizing);
        }
    }
    Ok(store(call, destination, result, "zrangestore"))
}

/// `ZREMRANGEBYLEX key min max`: replies with the number of members that were removed. Errors: as ZLEXCOUNT.
fn zremrangebylex(call: &mut WriteCall<'_>) -> CommandResult {
    remove(call, By::Lex, "zremrangebylex")
}

/// `ZREMRANGEBYRANK key start stop`: replies with the number of members that were removed. Errors: `WRONGTYPE`; not an
/// integer.
fn zremrangebyrank(call: &mut WriteCall<'_>) -> CommandResult {
    remove(call, By::Rank, "zremrangebyrank")
}

/// `ZREMRANGEBYSCORE key min max`: replies with the number of members that were removed. Errors: as ZCOUNT.
fn zremrangebyscore(call: &mut WriteCall<'_>) -> CommandResult {
    remove(call, By::Score, "zremrangebyscore")
}

/// `ZREVRANGE key start stop [WITHSCORES]`: as ZRANGE REV.
fn zrevrange(call: &mut ReadCall<'_>) -> CommandResult {
    range(call, Some(By::Rank), Some(Direction::Reverse))
}

/// `ZREVRANGEBYLEX key max min [LIMIT offset count]`: as ZRANGE BYLEX REV.
fn zrevrangebylex(call: &mut ReadCall<'_>) -> CommandResult {
    range(call, Some(By::Lex), Some(Direction::Reverse))
}

/// `ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]`: as ZRANGE BYSCORE REV.
fn zrevrangebyscore(call: &mut ReadCall<'_>) -> CommandResult {
    range(call, Some(By::Score), Some(Direction::Reverse))
}

/// The destination stands at 1, the source behind it.
const TO_AND_FROM: KeySpec = KeySpec::Custom(|request| {
    let places = [(1, Access::Write), (2, Access::Read)];
    places
        .into_iter()
        .filter(|(at, _)| *at < request.len())
        .collect()
});

/// What a range is measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Reverse,
}

/// Whether a command knows WITHSCORES, and then whether it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scores {
    Refused,
    Without,
    With,
}

/// A lower or upper limit of scores.
#[derive(Clone, Copy, Debug)]
struct ScoreLimit {
    score: f64,
    exclusive: bool,
}

impl ScoreLimit {
    fn parse(text: &[u8]) -> Result<ScoreLimit, CommandError> {
        let (exclusive, number) = match text {
            [b'(', number @ ..] => (true, number),
            number => (false, number),
        };
        let score = number::parse_range_limit(number).ok_or(CommandError::ScoreRangeInvalid)?;
        Ok(ScoreLimit { score, exclusive })
    }

    fn is_below(self, score: f64) -> bool {
        self.score < score || (self.score == score && !self.exclusive)
    }

    fn is_above(self, score: f64) -> bool {
        self.score > score || (self.score == score && !self.exclusive)
    }
}

/// A lower or upper limit of members.
#[derive(Clone, Copy, Debug)]
enum LexLimit<'a> {
    First,
    Last,
    Inclusive(&'a [u8]),
    Exclusive(&'a [u8]),
}

impl<'a> LexLimit<'a> {
    fn parse(text: &'a [u8]) -> Result<LexLimit<'a>, CommandError> {
        match text {
            [b'[', member @ ..] => Ok(LexLimit::Inclusive(member)),
            [b'(', member @ ..] => Ok(LexLimit::Exclusive(member)),
            // Redis looks at these two as C strings: a NUL byte ends them.
            [b'-'] | [b'-', 0, ..] => Ok(LexLimit::First),
            [b'+'] | [b'+', 0, ..] => Ok(LexLimit::Last),
            _ => Err(CommandError::LexRangeInvalid),
        }
    }

    fn is_below(self, member: &[u8]) -> bool {
        match self {
            LexLimit::First => true,
            LexLimit::Last => false,
            LexLimit::Inclusive(limit) => limit <= member,
            LexLimit::Exclusive(limit) => limit < member,
        }
    }

    fn is_above(self, member: &[u8]) -> bool {
        match self {
            LexLimit::First => false,
            LexLimit::Last => true,
            LexLimit::Inclusive(limit) => limit >= member,
            LexLimit::Exclusive(limit) => limit > member,
        }
    }
}

/// A range of members.
#[derive(Clone, Copy, Debug)]
enum Selection<'a> {
    /// From a rank up to and including another, negative ones counted from the end.
    Rank {
        start: i64,
        stop: i64,
    },
    Score {
        min: ScoreLimit,
        max: ScoreLimit,
    },
    Lex {
        min: LexLimit<'a>,
        max: LexLimit<'a>,
    },
}

impl<'a> Selection<'a> {
    fn parse(by: By, min: &'a [u8], max: &'a [u8]) -> Result<Selection<'a>, CommandError> {
        let rank = |text| number::parse_integer(text).ok_or(CommandError::NotAnInteger);
        Ok(match by {
            By::Rank => Selection::Rank {
                start: rank(min)?,
                stop: rank(max)?,
            },
            By::Score => Selection::Score {
                min: ScoreLimit::parse(min)?,
                max: ScoreLimit::parse(max)?,
            },
            By::Lex => Selection::Lex {
                min: LexLimit::parse(min)?,
                max: LexLimit::parse(max)?,
            },
        })
    }

    /// The ranks of the members inside of the range, for a walk in a direction.
    fn ranks(self, set: &SortedSet, direction: Direction) -> Range<usize> {
        match self {
            Selection::Rank { start, stop } => rank_range(set.len(), start, stop, direction),
            Selection::Score { min, max } => {
                let start = set.partition_point(|item| !min.is_below(item.score));
                let end = set.partition_point(|item| max.is_above(item.score));
                start..end.max(start)
            }
            Selection::Lex { min, max } if !lex_reaches(set, min, max) => 0..0,
            Selection::Lex { min, max } if set.is_listpack() => {
                lex_walk(set, (min, max), direction, 0)
            }
            Selection::Lex { min, max } => {
                let start = set.partition_point(|item| !min.is_below(&item.member));
                let end = set.partition_point(|item| max.is_above(&item.member));
                start..end.max(start)
            }
        }
    }
}

/// Whether the last member is not below the range and the first one not above it. Where scores differ that is no matter of
/// course, and Redis looks at these two before all others (`t_zset.c`, `zslIsInLexRange`).
fn lex_reaches(set: &SortedSet, min: LexLimit<'_>, max: LexLimit<'_>) -> bool {
    let mut items = set.iter();
    let first = items.next();
    let last = items.next_back().or(first);
    first.is_some_and(|item| max.is_above(&item.member))
        && last.is_some_and(|item| min.is_below(&item.member))
}

fn rank_range(len: usize, start: i64, stop: i64, direction: Direction) -> Range<usize> {
    let len = len as i64;
    let from_front = |rank: i64| if rank < 0 { rank + len } else { rank };
    let start = from_front(start).clamp(0, len);
    let end = from_front(stop).saturating_add(1).clamp(start, len);
    match direction {
        Direction::Forward => start as usize..end as usize,
        Direction::Reverse => (len - end) as usize..(len - start) as usize,
    }
}

/// The members of a small set between two limits as Redis finds them there: by walking, so that a set whose scores differ,
/// which is not in the order of its members, has one right answer too. What is skipped is not looked at (`t_zset.c`,
/// `zzlFirstInLexRange` and `genericZrangebylexCommand`).
fn lex_walk(
    set: &SortedSet,
    (min, max): (LexLimit<'_>, LexLimit<'_>),
    direction: Direction,
    skipped: usize,
) -> Range<usize> {
    let len = set.len();
    let above_min = |item: &&Item| min.is_below(&item.member);
    let below_max = |item: &&Item| max.is_above(&item.member);
    match direction {
        Direction::Forward => {
            let first = set.iter().take_while(|item| !above_min(item)).count();
            if !set
                .range(first..len)
                .next()
                .is_some_and(|item| below_max(&item))
            {
                return 0..0;
            }
            let first = first.saturating_add(skipped).min(len);
            first..first + set.range(first..len).take_while(below_max).count()
        }
        Direction::Reverse => {
            let items = set.iter().rev();
            let end = len - items.take_while(|item| !below_max(item)).count();
            if !set
                .range(0..end)
                .next_back()
                .is_some_and(|item| above_min(&item))
            {
                return 0..0;
            }
            let end = end.saturating_sub(skipped);
            end - set.range(0..end).rev().take_while(above_min).count()..end
        }
    }
}

/// `LIMIT`: so many members are skipped, so many answered; a negative offset skips all, a negative count answers all.
#[derive(Clone, Copy, Debug)]
struct Limit {
    offset: i64,
    count: i64,
}

impl Limit {
    fn apply(self, ranks: &Range<usize>, direction: Direction) -> Range<usize> {
        let len = ranks.len();
        let skipped = usize::try_from(self.offset).map_or(len, |offset| offset.min(len));
        let left = len - skipped;
        let taken = usize::try_from(self.count).map_or(left, |count| count.min(left));
        let start = match direction {
            Direction::Forward => ranks.start + skipped,
            Direction::Reverse => ranks.end - skipped - taken,
        };
        start..start + taken
    }
}

/// What a range command asks for.
#[derive(Clone, Copy, Debug)]
struct Query<'a> {
    selection: Selection<'a>,
    direction: Direction,
    limit: Limit,
    scores: Scores,
}

impl<'a> Query<'a> {
    /// Reads the limits and options; `by` and `direction` are what the command's name says, if it does.
    fn parse(
        mut args: Args<'a>,
        by: Option<By>,
        direction: Option<Direction>,
        scores: Scores,
    ) -> Result<Query<'a>, CommandError> {
        let (first, second) = (args.next()?, args.next()?);
        let (mut by, mut direction, mut scores) = (by, direction, scores);
        let mut limit = Limit {
            offset: 0,
            count: -1,
        };
        while !args.is_empty() {
            if scores != Scores::Refused && args.keyword("WITHSCORES") {
                scores = Scores::With;
            } else if args.len() > 2 && args.keyword("LIMIT") {
                limit.offset = args.integer()?;
                limit.count = args.integer()?;
            } else if direction.is_none() && args.keyword("REV") {
                direction = Some(Direction::Reverse);
            } else if by.is_none() && args.keyword("BYLEX") {
                by = Some(By::Lex);
            } else if by.is_none() && args.keyword("BYSCORE") {
                by = Some(By::Score);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        let by = by.unwrap_or(By::Rank);
        let direction = direction.unwrap_or(Direction::Forward);
        // A count of -1 is what Redis takes for "no LIMIT was given".
        if limit.count != -1 && by == By::Rank {
            return Err(CommandError::LimitNeedsScoreOrLex);
        }
        if scores == Scores::With && by == By::Lex {
            return Err(CommandError::WithScoresInLexRange);
        }
        let (min, max) = match direction {
            Direction::Reverse if by != By::Rank => (second, first),
            _ => (first, second),
        };
        Ok(Query {
            selection: Selection::parse(by, min, max)?,
            direction,
            limit,
            scores,
        })
    }

    fn ranks(self, set: &SortedSet) -> Range<usize> {
        match self.selection {
            Selection::Rank { .. } => self.selection.ranks(set, self.direction),
            Selection::Lex { min, max } if set.is_listpack() && lex_reaches(set, min, max) => {
                let skipped = usize::try_from(self.limit.offset).unwrap_or(usize::MAX);
                let ranks = lex_walk(set, (min, max), self.direction, skipped);
                let limit = Limit {
                    offset: 0,
                    ..self.limit
                };
                limit.apply(&ranks, self.direction)
            }
            _ => {
                let ranks = self.selection.ranks(set, self.direction);
                self.limit.apply(&ranks, self.direction)
            }
        }
    }
}

/// What the commands that answer a range share.
fn range(call: &mut ReadCall<'_>, by: Option<By>, direction: Option<Direction>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let query = Query::parse(args, by, direction, Scores::Without)?;
    let Some(set) = call.keyspace.read::<SortedSet>(key)? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let items = set.range(query.ranks(set));
    let members = |item: &Item| (item.member.clone(), item.score);
    let with_scores = query.scores == Scores::With;
    Ok(match query.direction {
        Direction::Forward => members_reply(items.map(members), with_scores),
        Direction::Reverse => members_reply(items.rev().map(members), with_scores),
    })
}

fn count(call: &mut ReadCall<'_>, key: &[u8], selection: Selection<'_>) -> CommandResult {
    let set = call.keyspace.read::<SortedSet>(key)?;
    let ranks = set.map(|set| selection.ranks(set, Direction::Forward));
    Ok(Reply::count(ranks.map_or(0, |ranks| ranks.len())))
}

fn remove(call: &mut WriteCall<'_>, by: By, event: &'static str) -> CommandResult {
    let [_, key, min, max] = call.words()?;
    let selection = Selection::parse(by, min, max)?;
    let Some(set) = call.keyspace.write::<SortedSet>(key)? else {
        return Ok(Reply::Integer(0));
    };
    let ranks = selection.ranks(set, Direction::Forward);
    let removed = set.drain(ranks).len();
    if removed > 0 {
        call.keyspace
            .changed(key, Event::sorted_set(event).counting(removed));
    }
    Ok(Reply::count(removed))
}

/// Puts the result of a command in the place of whatever its destination held; replies with the number of members.
pub(super) fn store(
    call: &mut WriteCall<'_>,
    destination: &[u8],
    result: SortedSet,
    event: &'static str,
) -> Reply {
    let len = result.len();
    if len > 0 {
        call.keyspace.set(destination, result.into_value());
        call.keyspace.changed(
            destination,
            Event::sorted_set(event).told(Told::BeforeReply),
        );
    } else if call.keyspace.remove(destination).is_some() {
        call.keyspace.answer_here();
        call.keyspace.changed(destination, Event::generic("del"));
    }
    Reply::count(len)
}
