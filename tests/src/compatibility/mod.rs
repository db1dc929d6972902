//! [`Survey`]: which of the ways to use each command the transcripts show.

mod coverage;
mod described;
mod syntax;
mod walk;

pub use coverage::{Exception, Shown, Survey};
pub use described::{Described, documentation, recorded};
pub use syntax::{Choice, Syntax, Usage};
pub use walk::walk;
