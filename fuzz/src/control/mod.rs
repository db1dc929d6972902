//! Broken stores: each is the real operation with one place changed, and each must be caught.

mod commit;
mod crowd;
mod single;
mod transport;

pub use self::commit::BrokenCommit;
pub use self::crowd::CrowdFlaw;
pub use self::single::{BrokenDelete, BrokenResolve, Mark};
pub use self::transport::{InTurn, TransportFlaw};
use fakeserver::explore::Faults;

use crate::scenario::{Hunt, Scenario};
use crate::spec::Clause;

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flaw {
    /// The row is read without a watch.
    NoWatch,
    /// The row is watched after it was read.
    WatchAfterGet,
    /// The stored version is not compared.
    NoVersionCheck,
    /// The version moves by two.
    BumpTwice,
    /// Where the stored version is another, the commit takes that one and goes on.
    Rebase,
    /// The row is written once more after the transaction.
    RowWrittenTwice,
    /// A lost reply to EXEC is taken for a conflict.
    LostIsConflict,
    /// A counter that all executions share is watched with the row.
    WatchTooMuch,
    /// The version in memory moves before the commit has landed.
    BumpBeforeSuccess,
    /// The outbox is written before the transaction.
    OutboxOutside,
    /// The spawn intents are written before the transaction.
    SpawnsOutside,
    /// The event is marked as processed before its effect.
    MarkBeforeEffect,
    /// The timer is deleted without regard to its present time.
    UnguardedDelete,
    /// The trace step is written before the transaction.
    TraceOutside,
    /// Numbers of an attempt that failed are used for the next.
    KeepNumbers,
    /// After a lost reply the event is handled again without asking whether it was.
    BlindRetry,
    /// Outbox and spawn intents are written in a second transaction.
    TwoTransactions,
    /// An event is taken off the outbox before it is delivered.
    AckBeforeDelivery,
    /// After a lost reply a row at the next version is taken for one's own.
    BelieveVersion,
}

impl Flaw {
    /// All of them.
    pub const ALL: [Flaw; 19] = [
        Flaw::NoWatch,
        Flaw::WatchAfterGet,
        Flaw::NoVersionCheck,
        Flaw::BumpTwice,
        Flaw::Rebase,
        Flaw::RowWrittenTwice,
        Flaw::LostIsConflict,
        Flaw::WatchTooMuch,
        Flaw::BumpBeforeSuccess,
        Flaw::OutboxOutside,
        Flaw::SpawnsOutside,
        Flaw::MarkBeforeEffect,
        Flaw::UnguardedDelete,
        Flaw::TraceOutside,
        Flaw::KeepNumbers,
        Flaw::BlindRetry,
        Flaw::TwoTransactions,
        Flaw::AckBeforeDelivery,
        Flaw::BelieveVersion,
    ];

    /// Its name in reports and replay strings.
    pub fn name(self) -> &'static str {
        match self {
            Flaw::NoWatch => "GET-SET without WATCH",
            Flaw::WatchAfterGet => "WATCH after GET",
            Flaw::NoVersionCheck => "no version check",
            Flaw::BumpTwice => "version moved by two",
            Flaw::Rebase => "stale write rebased",
            Flaw::RowWrittenTwice => "row written again after EXEC",
            Flaw::LostIsConflict => "lost reply taken for a conflict",
            Flaw::WatchTooMuch => "shared counter watched too",
            Flaw::BumpBeforeSuccess => "version bumped before success",
            Flaw::OutboxOutside => "outbox written outside the transaction",
            Flaw::SpawnsOutside => "spawns written outside the transaction",
            Flaw::MarkBeforeEffect => "dedupe mark written before the effect",
            Flaw::UnguardedDelete => "unguarded delete_timer",
            Flaw::TraceOutside => "trace written outside the transaction",
            Flaw::KeepNumbers => "numbers kept for the next attempt",
            Flaw::BlindRetry => "blind retry after a lost reply",
            Flaw::TwoTransactions => "effects in a second transaction",
            Flaw::AckBeforeDelivery => "acknowledged before delivery",
            Flaw::BelieveVersion => "resolved by the version alone",
        }
    }

    /// Whether it is a change to the commit itself.
    pub(crate) fn is_in_commit(self) -> bool {
        !matches!(
            self,
            Flaw::UnguardedDelete
                | Flaw::BlindRetry
                | Flaw::AckBeforeDelivery
                | Flaw::MarkBeforeEffect
                | Flaw::BelieveVersion
        )
    }

    /// Where it shows.
    pub fn scenario(self) -> Scenario {
        match self {
            Flaw::WatchTooMuch => Scenario::Neighbours,
            Flaw::UnguardedDelete => Scenario::Timers,
            Flaw::AckBeforeDelivery => Scenario::Relay,
            Flaw::BlindRetry => Scenario::StateOnly,
            Flaw::BelieveVersion => Scenario::Resolve,
            Flaw::NoWatch
            | Flaw::WatchAfterGet
            | Flaw::NoVersionCheck
            | Flaw::BumpTwice
            | Flaw::Rebase => Scenario::Mixed,
            _ => Scenario::Complex,
        }
    }

    /// Which broken connections it takes to show.
    pub fn faults(self) -> Faults {
        match self {
            // A command that did not run and is answered with a conflict would break another clause.
            Flaw::LostIsConflict => Faults::at_most(1).lose_reply(),
            Flaw::BlindRetry
            | Flaw::TwoTransactions
            | Flaw::AckBeforeDelivery
            | Flaw::BelieveVersion => Hunt::faults(1),
            _ => Faults::none(),
        }
    }

    /// The clause that is there for it.
    pub fn clause(self) -> Clause {
        match self {
            Flaw::NoWatch
            | Flaw::WatchAfterGet
            | Flaw::NoVersionCheck
            | Flaw::BumpTwice
            | Flaw::BelieveVersion => Clause::Versions,
            Flaw::Rebase | Flaw::RowWrittenTwice => Clause::Row,
            Flaw::LostIsConflict => Clause::Verdict,
            Flaw::WatchTooMuch => Clause::Progress,
            Flaw::BumpBeforeSuccess => Clause::Memory,
            Flaw::OutboxOutside => Clause::Outbox,
            Flaw::SpawnsOutside => Clause::Spawns,
            Flaw::MarkBeforeEffect => Clause::Processed,
            Flaw::UnguardedDelete => Clause::Timers,
            Flaw::TraceOutside => Clause::Trace,
            Flaw::KeepNumbers => Clause::Order,
            Flaw::BlindRetry => Clause::Once,
            Flaw::TwoTransactions => Clause::Whole,
            Flaw::AckBeforeDelivery => Clause::Delivered,
        }
    }
}
