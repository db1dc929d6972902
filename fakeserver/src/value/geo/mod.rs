//! Positions on the earth as scores of sorted sets, byte for byte as Redis computes with them (geo.c, geohash.c,
//! `geohash_helper.c`). The order of floating-point operations is Redis', since the last bit shows.

mod cell;
mod search;

use cell::{Cell, Projection, STEPS_MAX};
pub use search::{Search, Shape};

/// The largest longitude.
const LONGITUDE_MAX: f64 = 180.0;
/// The largest latitude of the Web Mercator projection.
const LATITUDE_MAX: f64 = 85.051_128_78;
/// Metres: the mean radius that Redis takes the earth to have.
const EARTH_RADIUS: f64 = 6_372_797.560_856;
const RADIANS: f64 = std::f64::consts::PI / 180.0;
/// The digits of a geohash, five bits each.
const GEOHASH_DIGITS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
/// Characters of a geohash; the last one stands for bits that a score does not have.
const GEOHASH_LEN: usize = 11;

/// A place on the earth, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// East of Greenwich.
    pub longitude: f64,
    /// North of the equator.
    pub latitude: f64,
}

impl Position {
    /// A position that a score can stand for: none near the poles.
    pub fn new(longitude: f64, latitude: f64) -> Option<Position> {
        let is_valid = longitude.abs() <= LONGITUDE_MAX && latitude.abs() <= LATITUDE_MAX;
        is_valid.then_some(Position {
            longitude,
            latitude,
        })
    }

    /// The position of a score: the middle of its cell, whose sides are some decimetres long.
    pub fn of_score(score: f64) -> Position {
        let cell = Cell::of_bits(to_bits(score), STEPS_MAX);
        let area = cell.area();
        let middle = |range: cell::Range, max: f64| {
            let sum = range.min + range.max;
            (sum / 2.0).clamp(-max, max)
        };
        Position {
            longitude: middle(area.longitude, LONGITUDE_MAX),
            latitude: middle(area.latitude, LATITUDE_MAX),
        }
    }

    /// The score that stands for the position.
    pub fn score(self) -> f64 {
        Cell::of(self, STEPS_MAX, Projection::MERCATOR).scores().0
    }

    /// The geohash, which has ranges of its own.
    pub fn geohash(self) -> [u8; GEOHASH_LEN] {
        let bits = Cell::of(self, STEPS_MAX, Projection::GEOHASH).bits();
        let mut digits = [GEOHASH_DIGITS[0]; GEOHASH_LEN];
        for (at, digit) in digits.iter_mut().take(GEOHASH_LEN - 1).enumerate() {
            let shift = 2 * STEPS_MAX as usize - 5 * (at + 1);
            *digit = GEOHASH_DIGITS[(bits >> shift & 31) as usize];
        }
        digits
    }

    /// Metres to another position, by the haversine formula.
    pub fn distance(self, other: Position) -> f64 {
        let (longitude, other_longitude) = (self.longitude * RADIANS, other.longitude * RADIANS);
        let v = ((other_longitude - longitude) / 2.0).sin();
        if v == 0.0 {
            return self.latitude_distance(other);
        }
        let (latitude, other_latitude) = (self.latitude * RADIANS, other.latitude * RADIANS);
        let u = ((other_latitude - latitude) / 2.0).sin();
        let a = u * u + latitude.cos() * other_latitude.cos() * v * v;
        2.0 * EARTH_RADIUS * a.sqrt().asin()
    }

    /// Metres to the parallel of another position.
    fn latitude_distance(self, other: Position) -> f64 {
        EARTH_RADIUS * (other.latitude * RADIANS - self.latitude * RADIANS).abs()
    }
}

/// A score as unsigned integer, of any value as a processor of today converts it.
fn to_bits(score: f64) -> u64 {
    const HALF: f64 = (1_u64 << 63) as f64;
    if score >= HALF {
        to_integer(score - HALF) as u64 ^ 1 << 63
    } else {
        to_integer(score) as u64
    }
}

/// A double as integer; one that is out of all bounds becomes the least integer, as a processor has it.
pub fn to_integer(value: f64) -> i64 {
    const BOUND: f64 = (1_u64 << 63) as f64;
    if (-BOUND..BOUND).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

/// A distance as Redis prints it, with four decimals.
pub fn format_distance(distance: f64) -> String {
    let scaled = to_integer((distance * 10_000.0).round_ties_even());
    let (sign, digits) = (if scaled < 0 { "-" } else { "" }, scaled.unsigned_abs());
    format!("{sign}{}.{:04}", digits / 10_000, digits % 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_stands_for_its_position() {
        let palermo = Position::new(13.361_389, 38.115_556).unwrap();
        assert_eq!(palermo.score(), 3_479_099_956_230_698.0);
        assert_eq!(&palermo.geohash(), b"sqc8b49rny0");
        let found = Position::of_score(palermo.score());
        assert!(palermo.distance(found) < 0.5);
        assert_eq!(found.score(), palermo.score());
    }

    #[test]
    fn there_are_no_positions_beyond_the_edges() {
        assert!(Position::new(180.0, LATITUDE_MAX).is_some());
        for (longitude, latitude) in [(180.1, 0.0), (0.0, -85.06), (f64::INFINITY, 0.0)] {
            assert_eq!(Position::new(longitude, latitude), None);
        }
    }

    #[test]
    fn any_score_has_a_position() {
        for score in [-1.0, 1e300, f64::NEG_INFINITY, f64::INFINITY, 9.3e18, -0.0] {
            let Position {
                longitude,
                latitude,
            } = Position::of_score(score);
            assert!(Position::new(longitude, latitude).is_some(), "{score}");
        }
    }

    #[test]
    fn distances_have_four_decimals() {
        let cases = [
            (0.0, "0.0000"),
            (0.000_05, "0.0000"),
            (0.000_16, "0.0002"),
            (166_274.151_6, "166274.1516"),
            (f64::INFINITY, "-922337203685477.5808"),
        ];
        for (distance, text) in cases {
            assert_eq!(format_distance(distance), text);
        }
    }
}
