//! Trying again, within bounds: for callers who want it. Nothing in a store tries again by itself.

mod decision;
mod host;
mod pacing;
mod policy;
mod run;
mod tries;

#[cfg(feature = "sync")]
pub(crate) use self::host::at_once;
pub use self::{
    decision::{Decision, Retried, Round},
    pacing::Pacing,
    policy::RetryPolicy,
};
pub(crate) use self::{host::Host, run::with_retry, tries::Tries};
