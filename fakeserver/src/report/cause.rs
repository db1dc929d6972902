//! [`Cause`]: which steps are to blame.

use serde::{Deserialize, Serialize};

use super::picture::{Access, Mark};

/// Who read, who wrote between, who overwrote: indexes into the steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// The key that all three touch.
    pub key: String,
    /// What was read and no longer true later.
    pub read: usize,
    /// What made it untrue.
    pub written: usize,
    /// What was done in the belief that it still held; none if nothing was.
    pub overwritten: Option<usize>,
}

impl Cause {
    /// The part of a step of this access in it.
    pub(crate) fn mark(&self, at: usize, access: Access) -> Option<Mark> {
        match at {
            _ if at == self.read && access == Access::Write => Some(Mark::Relied),
            _ if at == self.read => Some(Mark::Read),
            _ if at == self.written => Some(Mark::Written),
            _ if self.overwritten == Some(at) => Some(Mark::Overwritten),
            _ => None,
        }
    }
}
