//! Broken relays and sweepers: each does in several commands what ours does in one script.

use crate::scenario::Jam;

/// What is broken in a relay or a sweeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CrowdFlaw {
    /// An entry is published, then acknowledged: the Python relay's way.
    PublishThenAck,
    /// A timer's score is read, then the timer removed: the Python sweeper's way.
    FireInTwo,
}

impl CrowdFlaw {
    /// All of them.
    pub const ALL: [CrowdFlaw; 2] = [CrowdFlaw::PublishThenAck, CrowdFlaw::FireInTwo];

    /// Where it shows.
    pub fn jam(self) -> Jam {
        match self {
            CrowdFlaw::PublishThenAck => Jam::Relays,
            CrowdFlaw::FireInTwo => Jam::Sweepers,
        }
    }
}
