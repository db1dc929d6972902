//! The options of searches for positions.

use super::Args;
use super::geo::{length, position, position_of, unit};
use crate::error::CommandError;
use crate::value::SortedSet;
use crate::value::geo::{Position, Shape};
use crate::wire::Request;

/// Where a command names the centre, and what it may do with the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Coordinates and a radius stand in front.
    Coordinates(Storing),
    /// A member and a radius stand in front.
    Member(Storing),
    /// Options say all.
    Options,
    /// The same behind a destination.
    Destination,
}

/// Whether an option keeps the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storing {
    /// There is none.
    Never,
    /// `STORE` or `STOREDIST`.
    Option,
}

impl Form {
    fn is_search(self) -> bool {
        matches!(self, Form::Options | Form::Destination)
    }

    fn has_store_option(self) -> bool {
        matches!(
            self,
            Form::Coordinates(Storing::Option) | Form::Member(Storing::Option)
        )
    }
}

/// The order of members by their distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// The nearest first.
    Ascending,
    /// The farthest first.
    Descending,
}

/// How many members are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limit {
    /// All if there is none.
    pub(super) count: Option<usize>,
    /// The first ones that are found will do.
    pub(super) any: bool,
}

/// What is told of each member.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Details {
    pub(super) distance: bool,
    pub(super) score: bool,
    pub(super) coordinates: bool,
}

impl Details {
    /// Whether anything but the member is told.
    pub(super) fn any(self) -> bool {
        self.distance || self.score || self.coordinates
    }
}

/// Where a result is kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Destination<'a> {
    /// Nowhere if there is none.
    pub(super) key: Option<&'a [u8]>,
    /// The members' scores are their distances.
    pub(super) distances: bool,
}

/// What the centre was given as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CenterFrom {
    Member,
    Coordinates,
}

/// A command's options.
#[derive(Debug, Default)]
pub(super) struct Options<'a> {
    /// None where the key is missing: a member has no position then, but the options are read all the same.
    pub(super) center: Option<Position>,
    center_from: Option<CenterFrom>,
    /// The shape, and the metres of its unit.
    pub(super) shape: Option<(Shape, f64)>,
    pub(super) direction: Option<Direction>,
    pub(super) limit: Limit,
    pub(super) details: Details,
    pub(super) destination: Destination<'a>,
}

impl<'a> Options<'a> {
    /// Reads all arguments behind the key that is searched.
    pub(super) fn parse(
        mut args: Args<'a>,
        form: Form,
        set: Option<&SortedSet>,
    ) -> Result<Options<'a>, CommandError> {
        let mut options = Options::default();
        match form {
            Form::Coordinates(_) => {
                options.center = Some(position(&mut args)?);
                options.read_radius(&mut args)?;
            }
            Form::Member(_) if set.is_none() => {
                // Without a key to search in, Redis does not look at the member and the radius.
                for _ in 0..3 {
                    args.next()?;
                }
            }
            Form::Member(_) => {
                options.read_member(&mut args, set)?;
                options.read_radius(&mut args)?;
            }
            Form::Options | Form::Destination => {}
        }
        while !args.is_empty() {
            options.read(&mut args, form, set)?;
        }
        Ok(options)
    }

    /// What excludes what, which Redis looks at when all is read.
    pub(super) fn check(&self, form: Form, request: &Request) -> Result<(), CommandError> {
        if self.destination.key.is_some() && self.details.any() {
            return Err(CommandError::GeoStoreWithDetails(match form {
                Form::Destination => "GEOSEARCHSTORE",
                _ => "STORE option in GEORADIUS",
            }));
        }
        let one_of = |options: &str| {
            let name = String::from_utf8_lossy(request.name());
            CommandError::custom(format!(
                "ERR exactly one of {options} can be specified for {name}"
            ))
        };
        if form.is_search() && self.center_from.is_none() {
            return Err(one_of("FROMMEMBER or FROMLONLAT"));
        }
        if form.is_search() && self.shape.is_none() {
            return Err(one_of("BYRADIUS and BYBOX"));
        }
        if self.limit.any && self.limit.count.is_none() {
            return Err(CommandError::GeoAnyWithoutCount);
        }
        Ok(())
    }

    fn read(
        &mut self,
        args: &mut Args<'a>,
        form: Form,
        set: Option<&SortedSet>,
    ) -> Result<(), CommandError> {
        if args.keyword("WITHDIST") {
            self.details.distance = true;
        } else if args.keyword("WITHHASH") {
            self.details.score = true;
        } else if args.keyword("WITHCOORD") {
            self.details.coordinates = true;
        } else if args.keyword("ANY") {
            self.limit.any = true;
        } else if args.keyword("ASC") {
            self.direction = Some(Direction::Ascending);
        } else if args.keyword("DESC") {
            self.direction = Some(Direction::Descending);
        } else if args.keyword("COUNT") {
            let count = args.integer()?;
            if count <= 0 {
                return Err(CommandError::AutoclaimCount);
            }
            self.limit.count = Some(count as usize);
        } else if form.has_store_option() {
            self.read_store(args)?;
        } else if form.is_search() {
            self.read_search(args, form, set)?;
        } else {
            return Err(CommandError::Syntax);
        }
        Ok(())
    }

    fn read_store(&mut self, args: &mut Args<'a>) -> Result<(), CommandError> {
        let distances = args.keyword("STOREDIST");
        if !distances && !args.keyword("STORE") {
            return Err(CommandError::Syntax);
        }
        self.destination = Destination {
            key: Some(args.next()?),
            distances,
        };
        Ok(())
    }

    /// Reads an option of GEOSEARCH. The same one may come again, and the last one counts; values that are missing are a syntax
    /// error before any is looked at.
    fn read_search(
        &mut self,
        args: &mut Args<'a>,
        form: Form,
        set: Option<&SortedSet>,
    ) -> Result<(), CommandError> {
        let (values, from) = (args.len() - 1, self.center_from);
        let is_circle = self
            .shape
            .map(|(shape, _)| matches!(shape, Shape::Circle { .. }));
        if form == Form::Destination && args.keyword("STOREDIST") {
            self.destination.distances = true;
        } else if values >= 1 && from != Some(CenterFrom::Coordinates) && args.keyword("FROMMEMBER")
        {
            self.read_member(args, set)?;
            self.center_from = Some(CenterFrom::Member);
        } else if values >= 2 && from != Some(CenterFrom::Member) && args.keyword("FROMLONLAT") {
            self.center = Some(position(args)?);
            self.center_from = Some(CenterFrom::Coordinates);
        } else if values >= 2 && is_circle != Some(false) && args.keyword("BYRADIUS") {
            self.read_radius(args)?;
        } else if values >= 3 && is_circle != Some(true) && args.keyword("BYBOX") {
            self.read_box(args)?;
        } else {
            return Err(CommandError::Syntax);
        }
        Ok(())
    }

    fn read_member(
        &mut self,
        args: &mut Args<'a>,
        set: Option<&SortedSet>,
    ) -> Result<(), CommandError> {
        let member = args.next()?;
        if set.is_some() {
            let position = position_of(set, member);
            self.center = Some(position.ok_or(CommandError::GeoMemberMissing)?);
        }
        Ok(())
    }

    fn read_radius(&mut self, args: &mut Args<'a>) -> Result<(), CommandError> {
        let radius = length(args, "radius")?;
        if radius < 0.0 {
            return Err(CommandError::GeoRadiusNegative);
        }
        self.shape = Some((Shape::Circle { radius }, unit(args)?));
        Ok(())
    }

    fn read_box(&mut self, args: &mut Args<'a>) -> Result<(), CommandError> {
        let (width, height) = (length(args, "width")?, length(args, "height")?);
        if width < 0.0 || height < 0.0 {
            return Err(CommandError::GeoBoxNegative);
        }
        self.shape = Some((Shape::Rectangle { width, height }, unit(args)?));
        Ok(())
    }
}
