//! [`Cell`]: the world halved again and again in both directions, the bits of both interleaved to a geohash.

use super::{LATITUDE_MAX, LONGITUDE_MAX, Position};

/// Halvings of a score: 52 bits.
pub(super) const STEPS_MAX: u32 = 26;

/// How bits are moved apart, from the widest distance to the narrowest, and which are kept.
const SPREAD: [(u32, u64); 5] = [
    (16, 0x0000_ffff_0000_ffff),
    (8, 0x00ff_00ff_00ff_00ff),
    (4, 0x0f0f_0f0f_0f0f_0f0f),
    (2, 0x3333_3333_3333_3333),
    (1, 0x5555_5555_5555_5555),
];

/// From one degree to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub min: f64,
    pub max: f64,
}

impl Range {
    const fn around_zero(max: f64) -> Range {
        Range { min: -max, max }
    }

    /// Which of `2^steps` parts a value is in.
    fn part(self, value: f64, steps: u32) -> u32 {
        let offset = (value - self.min) / (self.max - self.min);
        (offset * (1_u64 << steps) as f64) as u32
    }

    /// One of `2^steps` parts.
    fn of_part(self, part: u32, steps: u32) -> Range {
        let (parts, scale) = ((1_u64 << steps) as f64, self.max - self.min);
        let edge = |part: u32| self.min + f64::from(part) / parts * scale;
        Range {
            min: edge(part),
            max: edge(part.wrapping_add(1)),
        }
    }
}

/// What is halved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Projection {
    longitude: Range,
    latitude: Range,
}

impl Projection {
    /// What scores stand for.
    pub(super) const MERCATOR: Projection = Projection {
        longitude: Range::around_zero(LONGITUDE_MAX),
        latitude: Range::around_zero(LATITUDE_MAX),
    };
    /// What the letters of a geohash stand for.
    pub(super) const GEOHASH: Projection = Projection {
        longitude: Range::around_zero(LONGITUDE_MAX),
        latitude: Range::around_zero(90.0),
    };
}

/// A rectangle of degrees.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub longitude: Range,
    pub latitude: Range,
}

/// One of `4^steps` parts of the world. A position at the eastern or northern edge is in a part beyond the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    longitude: u32,
    latitude: u32,
    steps: u32,
}

impl Cell {
    /// The cell of a position.
    pub(super) fn of(position: Position, steps: u32, projection: Projection) -> Cell {
        Cell {
            longitude: projection.longitude.part(position.longitude, steps),
            latitude: projection.latitude.part(position.latitude, steps),
            steps,
        }
    }

    /// The cell of a geohash.
    pub(super) fn of_bits(bits: u64, steps: u32) -> Cell {
        Cell {
            longitude: gather(bits >> 1),
            latitude: gather(bits),
            steps,
        }
    }

    /// The geohash.
    pub(super) fn bits(self) -> u64 {
        spread(self.longitude) << 1 | spread(self.latitude)
    }

    /// The cell so many cells to the east and to the north, around the world.
    pub(super) fn neighbour(self, east: i32, north: i32) -> Cell {
        let last = (1_u32 << self.steps) - 1;
        let moved = |part: u32, by: i32| match by {
            0 => part,
            by => part.wrapping_add_signed(by) & last,
        };
        Cell {
            longitude: moved(self.longitude, east),
            latitude: moved(self.latitude, north),
            ..self
        }
    }

    /// The degrees that the cell covers.
    pub(super) fn area(self) -> Area {
        let projection = Projection::MERCATOR;
        Area {
            longitude: projection.longitude.of_part(self.longitude, self.steps),
            latitude: projection.latitude.of_part(self.latitude, self.steps),
        }
    }

    /// The lowest score of the cell, and the first one above all of its own.
    pub(super) fn scores(self) -> (f64, f64) {
        let shift = 2 * (STEPS_MAX - self.steps);
        let bits = self.bits();
        let aligned = |bits: u64| (bits << shift) as f64;
        (aligned(bits), aligned(bits.wrapping_add(1)))
    }
}

/// Puts a zero in front of every bit.
fn spread(part: u32) -> u64 {
    let widen = |bits: u64, (shift, kept): &(u32, u64)| (bits | bits << shift) & kept;
    SPREAD.iter().fold(u64::from(part), widen)
}

/// Takes every other bit, from the lowest on.
fn gather(bits: u64) -> u32 {
    let mut bits = bits & SPREAD[4].1;
    for at in (0..4).rev() {
        bits = (bits | bits >> SPREAD[at + 1].0) & SPREAD[at].1;
    }
    (bits | bits >> SPREAD[0].0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_interleaved_and_taken_apart() {
        let mut rng = fastrand::Rng::with_seed(3);
        for _ in 0..1000 {
            let (longitude, latitude) = (rng.u32(..), rng.u32(..));
            let mut bits = 0_u64;
            for bit in 0..32 {
                bits |= u64::from(longitude >> bit & 1) << (2 * bit + 1);
                bits |= u64::from(latitude >> bit & 1) << (2 * bit);
            }
            let cell = Cell::of_bits(bits, STEPS_MAX);
            assert_eq!((cell.longitude, cell.latitude), (longitude, latitude));
            assert_eq!(cell.bits(), bits);
        }
    }

    #[test]
    fn neighbours_go_around_the_world() {
        let cell = Cell::of_bits(0, 3);
        let far = cell.neighbour(-1, -1);
        assert_eq!((far.longitude, far.latitude), (7, 7));
        assert_eq!(far.neighbour(1, 1), cell);
    }
}
