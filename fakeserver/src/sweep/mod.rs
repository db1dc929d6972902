//! The race sweep's report: as data, as text and as a page.
#![allow(dead_code, reason = "the sweep itself calls it")]

pub mod report;

mod cause;
mod repair;
mod seen;
mod text;
mod view;

#[cfg(test)]
mod samples;
