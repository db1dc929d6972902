//! Stands in for the metrics where the feature is off: no clock is read.

#![allow(clippy::unused_self, reason = "the same calls as with the feature")]

use super::Outcome;

#[derive(Debug, Clone, Default)]
pub(crate) struct Clock {}

#[derive(Debug)]
pub(crate) struct Moment;

impl Clock {
    pub(super) fn now(&self) -> Moment {
        Moment
    }

    pub(super) fn since(&self, _: &Moment) -> Moment {
        Moment
    }
}

pub(super) fn retried(_: &'static str, _: &'static str) {}

pub(super) fn count(_: &'static str, _: &'static str, _: Outcome, _: u32, _: Moment) {}
