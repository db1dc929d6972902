//! Union, intersection and difference of sorted sets and plain sets, whose members count with a score of 1.

use super::sorted_set::members_reply;
use super::zrange::store;
use super::{
    Args, Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words, WriteCall,
};
use crate::error::CommandError;
use crate::keyspace::{Keyspace, Value};
use crate::value::ordered::{self, Item};
use crate::value::sorted_set::Sizing;
use crate::value::{Blob, Dict, Set, SortedSet};
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::SortedSet, &[
    //             name          arity  flags                    keys                          handler
    Command::read ("ZDIFF",       -3,   &[MovableKeys],          KeySpec::CountAt(1),          zdiff).since("6.2.0"),
    Command::write("ZDIFFSTORE",  -4,   &[DenyOom, MovableKeys], KeySpec::DestinationAndCount, zdiffstore).since("6.2.0"),
    Command::read ("ZINTER",      -3,   &[MovableKeys],          KeySpec::CountAt(1),          zinter).since("6.2.0"),
    Command::read ("ZINTERCARD",  -3,   &[MovableKeys],          KeySpec::CountAt(1),          zintercard).since("7.0.0"),
    Command::write("ZINTERSTORE", -4,   &[DenyOom, MovableKeys], KeySpec::DestinationAndCount, zinterstore).since("2.0.0"),
    Command::read ("ZUNION",      -3,   &[MovableKeys],          KeySpec::CountAt(1),          zunion).since("6.2.0"),
    Command::write("ZUNIONSTORE", -4,   &[DenyOom, MovableKeys], KeySpec::DestinationAndCount, zunionstore).since("2.0.0"),
]);

/// `ZDIFF numkeys key [key ...] [WITHSCORES]`: replies with the members of the first key that no other key holds, by score.
///
/// Errors: `WRONGTYPE`; no key; not an integer; syntax.
fn zdiff(call: &mut ReadCall<'_>) -> CommandResult {
    answer(call, Algebra::Difference)
}

/// `ZDIFFSTORE destination numkeys key [key ...]`: replaces the destination by what ZDIFF would answer; replies with the
/// number of members.
fn zdiffstore(call: &mut WriteCall<'_>) -> CommandResult {
    replace(call, Algebra::Difference, "zdiffstore")
}

/// `ZINTER numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]`: replies with the members
/// that all keys hold, by score.
///
/// Errors: `WRONGTYPE`; no key; not an integer; a weight that is no float; syntax.
fn zinter(call: &mut ReadCall<'_>) -> CommandResult {
    answer(call, Algebra::Intersection)
}

/// `ZINTERCARD numkeys key [key ...] [LIMIT limit]`: replies with the number of members that all keys hold, at most with the
/// limit if it is not 0.
///
/// Errors: `WRONGTYPE`; no key; not an integer; a negative limit; syntax.
fn zintercard(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let keys = parse_keys(&mut args, call.row().full_name())?;
    let sources = sources(call.keyspace, &keys)?;
    let options = Options::parse(args, Algebra::Intersection, Output::Count, keys.len())?;
    let mut count = 0;
    intersect(&sources, &options, &mut |_, _| {
        count += 1;
        count != options.limit
    });
    Ok(Reply::count(count))
}

/// `ZINTERSTORE destination numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM | MIN | MAX]`: replaces the destination
/// by what ZINTER would answer; replies with the number of members.
fn zinterstore(call: &mut WriteCall<'_>) -> CommandResult {
    replace(call, Algebra::Intersection, "zinterstore")
}

/// `ZUNION numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]`: replies with the members
/// that any key holds, by score.
///
/// Errors: `WRONGTYPE`; no key; not an integer; a weight that is no float; syntax.
fn zunion(call: &mut ReadCall<'_>) -> CommandResult {
    answer(call, Algebra::Union)
}

/// `ZUNIONSTORE destination numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM | MIN | MAX]`: replaces the destination
/// by what ZUNION would answer; replies with the number of members.
fn zunionstore(call: &mut WriteCall<'_>) -> CommandResult {
    replace(call, Algebra::Union, "zunionstore")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algebra {
    Union,
    Intersection,
    Difference,
}

/// What becomes of the result, on which it depends which options there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    Reply,
    Store,
    Count,
}

/// How the scores of a member in several keys become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn parse(args: &mut Args<'_>) -> Result<Aggregate, CommandError> {
        if args.keyword("SUM") {
            Ok(Aggregate::Sum)
        } else if args.keyword("MIN") {
            Ok(Aggregate::Min)
        } else if args.keyword("MAX") {
            Ok(Aggregate::Max)
        } else {
            Err(CommandError::Syntax)
        }
    }

    /// A NaN never replaces a smallest or largest score, and a sum that is NaN counts as 0.
    fn join(self, one: f64, other: f64) -> f64 {
        match self {
            Aggregate::Sum => zero_if_nan(one + other),
            Aggregate::Min => {
                if other < one {
                    other
                } else {
                    one
                }
            }
            Aggregate::Max => {
                if other > one {
                    other
                } else {
                    one
                }
            }
        }
    }
}

/// A weight of 0 times an infinity counts as 0.
fn zero_if_nan(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

#[derive(Clone, Debug)]
struct Options {
    /// One for each key; none if all weigh 1.
    weights: Vec<f64>,
    aggregate: Aggregate,
    with_scores: bool,
    /// At how many members counting ends; 0 for never.
    limit: usize,
}

impl Options {
    fn parse(
        mut args: Args<'_>,
        algebra: Algebra,
        output: Output,
        keys_len: usize,
    ) -> Result<Options, CommandError> {
        let mut options = Options {
            weights: Vec::new(),
            aggregate: Aggregate::Sum,
            with_scores: false,
            limit: 0,
        };
        let joins = algebra != Algebra::Difference && output != Output::Count;
        while !args.is_empty() {
            if joins && args.len() > keys_len && args.keyword("WEIGHTS") {
                options.weights.clear();
                for _ in 0..keys_len {
                    let weight = args.float().map_err(|_| CommandError::WeightNotAFloat)?;
                    options.weights.push(weight);
                }
            } else if joins && args.len() > 1 && args.keyword("AGGREGATE") {
                options.aggregate = Aggregate::parse(&mut args)?;
            } else if output == Output::Reply && args.keyword("WITHSCORES") {
                options.with_scores = true;
            } else if output == Output::Count && args.len() > 1 && args.keyword("LIMIT") {
                let limit = args.integer().ok().and_then(|limit| limit.try_into().ok());
                options.limit = limit.ok_or(CommandError::LimitNegative)?;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }

    fn weight(&self, source: usize) -> f64 {
        self.weights.get(source).copied().unwrap_or(1.0)
    }
}

/// Reads `numkeys key [key ...]`.
fn parse_keys<'a>(args: &mut Args<'a>, name: &str) -> Result<Vec<&'a [u8]>, CommandError> {
    let count = args.integer()?;
    if count < 1 {
        return Err(CommandError::NoInputKeys(name.into()));
    }
    let count = usize::try_from(count)
        .ok()
        .filter(|count| *count <= args.len());
    (0..count.ok_or(CommandError::Syntax)?)
        .map(|_| args.next())
        .collect()
}

/// What a key that takes part holds.
#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Nothing,
    Sorted(&'a SortedSet),
    Plain(&'a Set),
}

impl Source<'_> {
    fn len(self) -> usize {
        match self {
            Source::Nothing => 0,
            Source::Sorted(set) => set.len(),
            Source::Plain(set) => set.len(),
        }
    }

    fn score(self, member: &Blob) -> Option<f64> {
        match self {
            Source::Nothing => None,
            Source::Sorted(set) => set.score(member),
            Source::Plain(set) => set.contains(member).then_some(1.0),
        }
    }

    /// Visits all members until `visit` answers no.
    fn visit(self, visit: &mut dyn FnMut(&Blob, f64) -> bool) {
        match self {
            Source::Nothing => {}
            Source::Sorted(set) => {
                set.iter().all(|item| visit(&item.member, item.score));
            }
            Source::Plain(set) => {
                set.iter().all(|member| visit(&member.to_blob(), 1.0));
            }
        }
    }
}

/// The values of the keys. Errors: `WRONGTYPE`, which comes before what is wrong with an option.
fn sources<'a>(keyspace: &'a Keyspace, keys: &[&[u8]]) -> Result<Vec<Source<'a>>, CommandError> {
    let source = |key: &&[u8]| match keyspace.read_any(key) {
        None => Ok(Source::Nothing),
        Some(Value::SortedSet(set)) => Ok(Source::Sorted(set)),
        Some(Value::Set(set)) => Ok(Source::Plain(set)),
        Some(_) => Err(CommandError::WrongType),
    };
    keys.iter().map(source).collect()
}

/// The sources with their weights, from the smallest to the largest: the order in which Redis adds up, which shows in the
/// last digit of a sum.
fn by_len<'a>(sources: &[Source<'a>], options: &Options) -> Vec<(Source<'a>, f64)> {
    let weighed = sources.iter().enumerate();
    let mut weighed: Vec<_> = weighed
        .map(|(at, source)| (*source, options.weight(at)))
        .collect();
    weighed.sort_by_key(|(source, _)| source.len());
    weighed
}

fn unite(sources: &[Source<'_>], options: &Options, seed: u64) -> Vec<Item> {
    let mut scores = Dict::new(seed);
    for (source, weight) in by_len(sources, options) {
        source.visit(&mut |member, score| {
            let score = zero_if_nan(weight * score);
            let mut is_new = false;
            let joined = scores.get_or_insert_with(member, || {
                is_new = true;
                score
            });
            if !is_new {
                *joined = options.aggregate.join(*joined, score);
            }
            true
        });
    }
    let items = scores.iter().map(|(member, score)| Item {
        score: *score,
        member: member.clone(),
    });
    items.collect()
}

/// Visits the members that all sources hold until `visit` answers no.
fn intersect(sources: &[Source<'_>], options: &Options, visit: &mut dyn FnMut(&Blob, f64) -> bool) {
    let weighed = by_len(sources, options);
    let Some(((smallest, weight), others)) = weighed.split_first() else {
        return;
    };
    smallest.visit(&mut |member, score| {
        let first = zero_if_nan(weight * score);
        let joined = others.iter().try_fold(first, |joined, (other, weight)| {
            let score = other.score(member)?;
            Some(options.aggregate.join(joined, weight * score))
        });
        joined.is_none_or(|score| visit(member, score))
    });
}

fn subtract(sources: &[Source<'_>], visit: &mut dyn FnMut(&Blob, f64) -> bool) {
    let Some((first, others)) = sources.split_first() else {
        return;
    };
    first.visit(&mut |member, score| {
        let elsewhere = others.iter().any(|other| other.score(member).is_some());
        elsewhere || visit(member, score)
    });
}

/// The result of an operation, in no particular order.
fn compute(algebra: Algebra, sources: &[Source<'_>], options: &Options, seed: u64) -> Vec<Item> {
    let mut items = Vec::new();
    let mut keep = |member: &Blob, score: f64| {
        let member = member.clone();
        items.push(Item { score, member });
        true
    };
    match algebra {
        Algebra::Union => return unite(sources, options, seed),
        Algebra::Intersection => intersect(sources, options, &mut keep),
        Algebra::Difference => subtract(sources, &mut keep),
    }
    items
}

/// What the commands that answer their result share.
fn answer(call: &mut ReadCall<'_>, algebra: Algebra) -> CommandResult {
    let mut args = call.args();
    let keys = parse_keys(&mut args, call.row().full_name())?;
    let sources = sources(call.keyspace, &keys)?;
    let options = Options::parse(args, algebra, Output::Reply, keys.len())?;
    let mut items = compute(algebra, &sources, &options, call.keyspace.seed());
    ordered::sort(&mut items);
    let members = items.into_iter().map(|item| (item.member, item.score));
    Ok(members_reply(members, options.with_scores))
}

/// What the commands that store their result share.
fn replace(call: &mut WriteCall<'_>, algebra: Algebra, event: &'static str) -> CommandResult {
    let mut args = call.args();
    let destination = args.next()?;
    let keys = parse_keys(&mut args, call.row().full_name())?;
    let sources = sources(call.keyspace, &keys)?;
    let options = Options::parse(args, algebra, Output::Store, keys.len())?;
    let seed = call.keyspace.seed();
    let items = compute(algebra, &sources, &options, seed);
    let result = SortedSet::collect(items, Sizing::new(call.config, seed));
    Ok(store(call, destination, result, event))
}
