//! List commands that wait.

use super::{Family, Group};

pub(super) const FAMILY: Family = Family::new(Group::List, &[]);
