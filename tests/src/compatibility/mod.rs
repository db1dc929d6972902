//! [`Survey`]: which of the ways to use each command the transcripts show, and the tables of `fakeserver/COMPATIBILITY.md`.

mod coverage;
mod described;
mod remark;
mod syntax;
mod table;
mod walk;

pub use coverage::Survey;
pub use described::{Described, documentation, recorded};
pub use remark::{Kind, Remark};
pub use syntax::{Choice, Syntax, Usage};
pub use table::{MARKS, with_generated};
pub use walk::walk;
