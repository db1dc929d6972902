//! [`Search`]: what is near a position, found in the cells that cover it.

use super::cell::{Cell, Projection, STEPS_MAX};
use super::{EARTH_RADIUS, Position, RADIANS};

/// Metres: half of the equator, as Redis rounds it.
const MERCATOR_MAX: f64 = 20_037_726.37;
/// Steps to a neighbour to the east and to the north, in the order in which Redis looks at them: the middle itself, north,
/// south, east, west, and the corners.
const NEIGHBOURS: [(i32, i32); 9] = [
    (0, 0),
    (0, 1),
    (0, -1),
    (1, 0),
    (-1, 0),
    (1, 1),
    (-1, 1),
    (1, -1),
    (-1, -1),
];

/// What is searched, around its centre.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Everything within a radius.
    Circle {
        /// In the search's unit.
        radius: f64,
    },
    /// Everything within half of a width along the parallel, and half of a height along the meridian.
    Rectangle {
        /// In the search's unit.
        width: f64,
        /// In the search's unit.
        height: f64,
    },
}

/// A search for positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// Where.
    pub center: Position,
    /// How far.
    pub shape: Shape,
    /// Metres of the unit in which the shape is measured.
    pub unit: f64,
}

/// The degrees around a shape.
struct Bounds {
    west: f64,
    east: f64,
    south: f64,
    north: f64,
}

impl Search {
    /// Metres from the centre to a position, unless it is out of the shape.
    pub fn distance_to(&self, position: Position) -> Option<f64> {
        match self.shape {
            Shape::Circle { radius } => {
                let distance = self.center.distance(position);
                let is_outside = distance > radius * self.unit;
                (!is_outside).then_some(distance)
            }
            Shape::Rectangle { width, height } => {
                let (width, height) = (width * self.unit, height * self.unit);
                if position.latitude_distance(self.center) > height / 2.0 {
                    return None;
                }
                let on_parallel = Position {
                    latitude: position.latitude,
                    ..self.center
                };
                let is_outside = position.distance(on_parallel) > width / 2.0;
                (!is_outside).then(|| self.center.distance(position))
            }
        }
    }

    /// The scores to look at, as ranges that exclude their end, in Redis' order. All members of the shape have one of them,
    /// but for what Redis misses as well.
    pub fn ranges(&self) -> Vec<(f64, f64)> {
        let bounds = self.bounds();
        let mut steps = self.steps();
        let cell = |steps| Cell::of(self.center, steps, Projection::MERCATOR);
        if steps > 1 && bounds.exceed_neighbours_of(cell(steps)) {
            steps -= 1;
        }
        let middle = cell(steps);
        let mut found = Vec::with_capacity(NEIGHBOURS.len());
        // The middle is not compared with the next one.
        let mut last = None;
        for (at, (east, north)) in NEIGHBOURS.into_iter().enumerate() {
            if steps >= 2 && bounds.end_before(middle, east, north) {
                continue;
            }
            let neighbour = middle.neighbour(east, north);
            // In a world of four cells both sides are the same.
            if last == Some(neighbour) {
                continue;
            }
            found.push(neighbour.scores());
            last = (at > 0).then_some(neighbour);
        }
        found
    }

    /// Metres from the centre to the farthest point.
    fn reach(&self) -> f64 {
        let reach = match self.shape {
            Shape::Circle { radius } => radius,
            Shape::Rectangle { width, height } => {
                ((width / 2.0) * (width / 2.0) + (height / 2.0) * (height / 2.0)).sqrt()
            }
        };
        reach * self.unit
    }

    /// How often the world is halved so that a cell and its neighbours cover the shape.
    fn steps(&self) -> u32 {
        let (mut reach, latitude) = (self.reach(), self.center.latitude.abs());
        if reach == 0.0 {
            return STEPS_MAX;
        }
        let mut steps = 1_i32;
        while reach < MERCATOR_MAX {
            reach *= 2.0;
            steps += 1;
        }
        steps -= 2;
        // Towards the poles cells are narrow.
        steps -= i32::from(latitude > 66.0) + i32::from(latitude > 80.0);
        steps.clamp(1, STEPS_MAX as i32) as u32
    }

    /// The degrees around the shape, wider at its side that is nearer to the pole (and narrower at the other).
    fn bounds(&self) -> Bounds {
        let (width, height) = match self.shape {
            Shape::Circle { radius } => (radius, radius),
            Shape::Rectangle { width, height } => (width / 2.0, height / 2.0),
        };
        let (width, height) = (self.unit * width, self.unit * height);
        let Position {
            longitude,
            latitude,
        } = self.center;
        let up = height / EARTH_RADIUS / RADIANS;
        let edge = if latitude < 0.0 {
            latitude - up
        } else {
            latitude + up
        };
        let aside = width / EARTH_RADIUS / (edge * RADIANS).cos() / RADIANS;
        Bounds {
            west: longitude - aside,
            east: longitude + aside,
            south: latitude - up,
            north: latitude + up,
        }
    }
}

impl Bounds {
    /// Whether a cell with its neighbours is too small.
    fn exceed_neighbours_of(&self, cell: Cell) -> bool {
        let area = |east, north| cell.neighbour(east, north).area();
        area(0, 1).latitude.max < self.north
            || area(0, -1).latitude.min > self.south
            || area(1, 0).longitude.max < self.east
            || area(-1, 0).longitude.min > self.west
    }

    /// Whether nothing of the shape is as far in the direction of a neighbour.
    fn end_before(&self, cell: Cell, east: i32, north: i32) -> bool {
        let area = cell.area();
        (north < 0 && area.latitude.min < self.south)
            || (north > 0 && area.latitude.max > self.north)
            || (east < 0 && area.longitude.min < self.west)
            || (east > 0 && area.longitude.max > self.east)
    }
}
