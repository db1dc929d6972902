//! Searches for what is near a position (geo.c): GEOSEARCH, and what it took the place of.

use super::geo::coordinates;
use super::geo_options::{Destination, Details, Direction, Form, Limit, Options, Storing};
use super::{
    Access, Args, Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, WriteCall,
};
use crate::error::CommandError;
use crate::keyspace::{Event, Keyspace, Typed};
use crate::value::geo::{Position, Search, format_distance, to_integer};
use crate::value::ordered::Item;
use crate::value::sorted_set::Sizing;
use crate::value::sorting::sort_front;
use crate::value::{Blob, SortedSet};
use crate::wire::{Reply, Request};
use Flag::*;

/// Position of the first option of GEORADIUS and GEORADIUSBYMEMBER.
const RADIUS_OPTIONS_AT: usize = 6;
const BY_MEMBER_OPTIONS_AT: usize = 5;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Geo, &[
    //             name                    arity  flags                    keys                                handler
    Command::write("GEORADIUS",            -6,    &[DenyOom, MovableKeys], KeySpec::Custom(radius_keys),       georadius).since("3.2.0"),
    Command::write("GEORADIUSBYMEMBER",    -5,    &[DenyOom, MovableKeys], KeySpec::Custom(by_member_keys),    georadiusbymember).since("3.2.0"),
    Command::read ("GEORADIUSBYMEMBER_RO", -5,    &[],                     KeySpec::FIRST,                     georadiusbymember_ro).since("3.2.10"),
    Command::read ("GEORADIUS_RO",         -6,    &[],                     KeySpec::FIRST,                     georadius_ro).since("3.2.10"),
    Command::read ("GEOSEARCH",            -7,    &[],                     KeySpec::FIRST,                     geosearch).since("6.2.0"),
    Command::write("GEOSEARCHSTORE",       -8,    &[DenyOom],              KeySpec::Custom(to_and_from),       geosearchstore).since("6.2.0"),
]);

/// `GEORADIUS key longitude latitude radius M | KM | FT | MI [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC]
/// [STORE key | STOREDIST key]`: replies with an array of the members within a radius, or of arrays of a member and of what WITH
/// asks for (distance as bulk string, score as integer, coordinates as array); with STORE keeps them with their scores or
/// distances and replies with their number.
///
/// Errors: `WRONGTYPE`; not a float; coordinates beyond the edges; an unknown unit; syntax; not an integer; options that exclude
/// each other.
fn georadius(call: &mut WriteCall<'_>) -> CommandResult {
    run(call, Form::Coordinates(Storing::Option))
}

/// `GEORADIUSBYMEMBER key member radius M | KM | FT | MI [...]`: as [`georadius`], around a member.
///
/// Errors: as [`georadius`]; no such member.
fn georadiusbymember(call: &mut WriteCall<'_>) -> CommandResult {
    run(call, Form::Member(Storing::Option))
}

/// `GEORADIUSBYMEMBER_RO key member radius M | KM | FT | MI [...]`: as [`georadiusbymember`], without STORE.
fn georadiusbymember_ro(call: &mut ReadCall<'_>) -> CommandResult {
    let (found, _) = find(call.keyspace, call.request, Form::Member(Storing::Never))?;
    Ok(found.reply())
}

/// `GEORADIUS_RO key longitude latitude radius M | KM | FT | MI [...]`: as [`georadius`], without STORE.
fn georadius_ro(call: &mut ReadCall<'_>) -> CommandResult {
    let (found, _) = find(
        call.keyspace,
        call.request,
        Form::Coordinates(Storing::Never),
    )?;
    Ok(found.reply())
}

/// `GEOSEARCH key FROMMEMBER member | FROMLONLAT longitude latitude BYRADIUS radius M | KM | FT | MI | BYBOX width height
/// M | KM | FT | MI [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]`: replies as [`georadius`].
///
/// Errors: as [`georadius`]; no such member; no centre or no shape.
fn geosearch(call: &mut ReadCall<'_>) -> CommandResult {
    let (found, _) = find(call.keyspace, call.request, Form::Options)?;
    Ok(found.reply())
}

/// `GEOSEARCHSTORE destination source FROMMEMBER member | FROMLONLAT longitude latitude BYRADIUS radius M | KM | FT | MI |
/// BYBOX width height M | KM | FT | MI [ASC | DESC] [COUNT count [ANY]] [STOREDIST]`: keeps what GEOSEARCH would answer; replies
/// with the number of members.
///
/// Errors: as [`geosearch`].
fn geosearchstore(call: &mut WriteCall<'_>) -> CommandResult {
    run(call, Form::Destination)
}

fn to_and_from(request: &Request) -> Vec<(usize, Access)> {
    let pair = [(1, Access::Write), (2, Access::Read)];
    pair.into_iter().take(request.len() - 1).collect()
}

fn radius_keys(request: &Request) -> Vec<(usize, Access)> {
    source_and_stores(request, RADIUS_OPTIONS_AT)
}

fn by_member_keys(request: &Request) -> Vec<(usize, Access)> {
    source_and_stores(request, BY_MEMBER_OPTIONS_AT)
}

/// The key that is searched, and those behind the first STORE and the first STOREDIST.
fn source_and_stores(request: &Request, options_at: usize) -> Vec<(usize, Access)> {
    let mut keys: Vec<_> = (1..request.len().min(2))
        .map(|at| (at, Access::Read))
        .collect();
    for name in ["STORE", "STOREDIST"] {
        let mut options = options_at..request.len().saturating_sub(1);
        let is_named = |at: &usize| {
            let word = request.get(*at);
            word.is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()))
        };
        let option = options.find(is_named);
        keys.extend(option.map(|at| (at + 1, Access::Write)));
    }
    keys
}

/// A member that was found.
#[derive(Clone, Debug)]
struct Found {
    member: Blob,
    position: Position,
    distance: f64,
    score: f64,
}

/// The members that were found, in the reply's order.
#[derive(Debug)]
struct Findings {
    members: Vec<Found>,
    unit: f64,
    details: Details,
}

/// Runs a command that may keep its result.
fn run(call: &mut WriteCall<'_>, form: Form) -> CommandResult {
    let (found, destination) = find(call.keyspace, call.request, form)?;
    match destination.key {
        Some(key) => Ok(store(call, form, key, &found, destination.distances)),
        None => Ok(found.reply()),
    }
}

/// Searches. Redis looks at the key before it reads any argument.
fn find<'a>(
    keyspace: &Keyspace,
    request: &'a Request,
    form: Form,
) -> Result<(Findings, Destination<'a>), CommandError> {
    let mut args = Args::new(request, 1);
    let first = args.next()?;
    let source = match form {
        Form::Destination => args.next()?,
        _ => first,
    };
    let set = keyspace.read::<SortedSet>(source)?;
    let mut options = Options::parse(args, form, set)?;
    if form == Form::Destination {
        options.destination.key = Some(first);
    }
    options.check(form, request)?;
    let mut findings = Findings {
        members: Vec::new(),
        unit: 1.0,
        details: options.details,
    };
    if let (Some(set), Some(center), Some((shape, unit))) = (set, options.center, options.shape) {
        let search = Search {
            center,
            shape,
            unit,
        };
        findings.unit = unit;
        let found = search_set(set, &search, options.limit);
        findings.members = limited(found, options.direction, options.limit);
    }
    Ok((findings, options.destination))
}

/// The members of a sorted set that a search finds, in the order of the cells and of their scores.
fn search_set(set: &SortedSet, search: &Search, limit: Limit) -> Vec<Found> {
    let enough = if limit.any { limit.count } else { None };
    let is_enough = |found: &[Found]| enough.is_some_and(|enough| found.len() >= enough);
    let mut found = Vec::new();
    for (min, max) in search.ranges() {
        let start = set.partition_point(|item| item.score < min);
        for item in set.range(start..set.len()) {
            if item.score >= max || is_enough(&found) {
                break;
            }
            let position = Position::of_score(item.score);
            if let Some(distance) = search.distance_to(position) {
                found.push(Found {
                    member: item.member.clone(),
                    position,
                    distance,
                    score: item.score,
                });
            }
        }
    }
    found
}

/// Orders what was found as far as it is wanted. Of a number of members the nearest are taken, if any order is as good.
fn limited(mut found: Vec<Found>, direction: Option<Direction>, limit: Limit) -> Vec<Found> {
    let wanted = limit
        .count
        .map_or(found.len(), |count| count.min(found.len()));
    let nearest = (limit.count.is_some() && !limit.any).then_some(Direction::Ascending);
    let compare = |one: &Found, other: &Found| one.distance.total_cmp(&other.distance);
    match direction.or(nearest) {
        None => {}
        Some(Direction::Ascending) if wanted == found.len() => found.sort_by(compare),
        Some(Direction::Descending) if wanted == found.len() => {
            found.sort_by(|one, other| compare(other, one));
        }
        Some(Direction::Ascending) => sort_front(&mut found, wanted, compare),
        Some(Direction::Descending) => {
            sort_front(&mut found, wanted, |one, other| compare(other, one));
        }
    }
    found.truncate(wanted);
    found
}

/// Puts what was found in the place of whatever the destination held; replies with the number of members.
fn store(
    call: &mut WriteCall<'_>,
    form: Form,
    key: &[u8],
    found: &Findings,
    distances: bool,
) -> Reply {
    let score = |one: &Found| match distances {
        // From the other side of the earth a distance may be no number, which no score can be.
        true if one.distance.is_nan() => f64::INFINITY,
        true => one.distance / found.unit,
        false => one.score,
    };
    let item = |one: &Found| Item {
        member: one.member.clone(),
        score: score(one),
    };
    let items: Vec<_> = found.members.iter().map(item).collect();
    let len = items.len();
    if len > 0 {
        let sizing = Sizing::new(call.config, call.keyspace.seed());
        let set = SortedSet::collect(items, sizing);
        let event = match form {
            Form::Destination => "geosearchstore",
            _ => "georadiusstore",
        };
        call.keyspace.set(key, set.into_value());
        let event = Event::sorted_set(event).counting(len);
        call.keyspace.changed(key, event);
    } else if call.keyspace.remove(key).is_some() {
        call.keyspace.changed(key, Event::generic("del"));
    }
    Reply::count(len)
}

impl Findings {
    fn reply(self) -> Reply {
        let Findings {
            members,
            unit,
            details,
        } = self;
        let items = members.into_iter().map(|found| {
            let member = Reply::Bulk(found.member);
            if !details.any() {
                return member;
            }
            let mut told = vec![member];
            if details.distance {
                told.push(Reply::bulk(format_distance(found.distance / unit)));
            }
            if details.score {
                told.push(Reply::Integer(to_integer(found.score)));
            }
            if details.coordinates {
                told.push(coordinates(found.position));
            }
            Reply::Array(told)
        });
        Reply::Array(items.collect())
    }
}
