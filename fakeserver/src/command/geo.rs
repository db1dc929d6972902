//! Commands on positions (geo.c), which are scores of sorted sets; searches are in `geo_search`.

use smallvec::SmallVec;

use super::sorted_set::{AddOptions, Exists, add_pairs};
use super::{
    Args, Command, CommandResult, Family, Flag, Group, KeySpec, ReadCall, Words, WriteCall,
};
use crate::error::CommandError;
use crate::value::geo::{Position, format_distance};
use crate::value::{SortedSet, number};
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Geo, &[
    //             name       arity  flags       keys            handler
    Command::write("GEOADD",  -5,    &[DenyOom], KeySpec::FIRST, geoadd).since("3.2.0"),
    Command::read ("GEODIST", -4,    &[],        KeySpec::FIRST, geodist).since("3.2.0"),
    Command::read ("GEOHASH", -2,    &[],        KeySpec::FIRST, geohash).since("3.2.0"),
    Command::read ("GEOPOS",  -2,    &[],        KeySpec::FIRST, geopos).since("3.2.0"),
]);

/// `GEOADD key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]`: sets positions; replies as ZADD, with
/// the number of new members, with CH of new and changed ones.
///
/// Errors: syntax; not a float; coordinates beyond the edges; `WRONGTYPE`.
fn geoadd(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let (mut nx, mut xx, mut count_changed) = (false, false, false);
    loop {
        if args.keyword("NX") {
            nx = true;
        } else if args.keyword("XX") {
            xx = true;
        } else if args.keyword("CH") {
            count_changed = true;
        } else {
            break;
        }
    }
    if args.is_empty() || args.len() % 3 != 0 || nx && xx {
        return Err(CommandError::Syntax);
    }
    let mut pairs = SmallVec::<[(f64, &[u8]); 4]>::new();
    while !args.is_empty() {
        let score = position(&mut args)?.score();
        pairs.push((score, args.next()?));
    }
    let options = AddOptions::new(Exists::of(nx, xx), count_changed);
    add_pairs(call, key, options, pairs.into_iter())
}

/// `GEODIST key member member [M | KM | FT | MI]`: replies with the distance of two members as bulk string with four decimals, or
/// null if one is missing.
///
/// Errors: an unknown unit; syntax; `WRONGTYPE`.
fn geodist(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (key, one, other) = (args.next()?, args.next()?, args.next()?);
    let unit = match args.len() {
        0 => 1.0,
        1 => unit(&mut args)?,
        _ => return Err(CommandError::Syntax),
    };
    let set = call.keyspace.read::<SortedSet>(key)?;
    let (Some(one), Some(other)) = (position_of(set, one), position_of(set, other)) else {
        return Ok(Reply::Null);
    };
    Ok(Reply::bulk(format_distance(one.distance(other) / unit)))
}

/// `GEOHASH key [member ...]`: replies with an array of geohashes of eleven characters, null for what is no member.
///
/// Errors: `WRONGTYPE`.
fn geohash(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let set = call.keyspace.read::<SortedSet>(args.next()?)?;
    let hashes = args.rest().map(|member| match position_of(set, member) {
        Some(position) => Reply::bulk(position.geohash()),
        None => Reply::Null,
    });
    Ok(Reply::Array(hashes.collect()))
}

/// `GEOPOS key [member ...]`: replies with an array of longitudes and latitudes, a null array for what is no member.
///
/// Errors: `WRONGTYPE`.
fn geopos(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let set = call.keyspace.read::<SortedSet>(args.next()?)?;
    let positions = args.rest().map(|member| {
        let position = position_of(set, member);
        position.map_or(Reply::NullArray, coordinates)
    });
    Ok(Reply::Array(positions.collect()))
}

/// The position of a member, if there is one.
pub(super) fn position_of(set: Option<&SortedSet>, member: &[u8]) -> Option<Position> {
    set?.score(member).map(Position::of_score)
}

/// Longitude and latitude as an array.
pub(super) fn coordinates(position: Position) -> Reply {
    let Position {
        longitude,
        latitude,
    } = position;
    Reply::Array(vec![
        Reply::PlainDouble(longitude),
        Reply::PlainDouble(latitude),
    ])
}

/// Reads a longitude and a latitude. Errors: not a float; beyond the edges.
pub(super) fn position(args: &mut Args<'_>) -> Result<Position, CommandError> {
    let (longitude, latitude) = (args.float()?, args.float()?);
    Position::new(longitude, latitude).ok_or_else(|| {
        CommandError::GeoPositionInvalid(format!("{longitude:.6},{latitude:.6}").into())
    })
}

/// Reads a length of any unit; `what` is its name in the error. Errors: not a float.
pub(super) fn length(args: &mut Args<'_>, what: &'static str) -> Result<f64, CommandError> {
    number::parse_float(args.next()?).ok_or(CommandError::GeoNotNumeric(what))
}

/// Reads a unit of length; how many metres it is. Errors: unknown.
pub(super) fn unit(args: &mut Args<'_>) -> Result<f64, CommandError> {
    let word = args.next()?;
    [("m", 1.0), ("km", 1000.0), ("ft", 0.3048), ("mi", 1609.34)]
        .into_iter()
        .find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()))
        .map(|(_, metres)| metres)
        .ok_or(CommandError::GeoUnitUnknown)
}
