//! [`Faults`]: what may go wrong in a schedule.

use std::time::Duration;

use smallvec::SmallVec;

use super::schedule::{ADVANCE_MAX, Act, Choice};
use super::strategy::Head;

/// Different stretches of time that may pass.
const ADVANCES_MAX: usize = 4;

/// Keys whose time may be up, at each point of a schedule: each is a branch.
const EXPIRE_MAX: u32 = 16;

/// Which faults a schedule may hold: lost connections, and what happens to the server. All share one budget.
///
/// They strike only where a command can be seen by others: a connection that breaks at a `MULTI` or a queued command leaves the
/// server as one that breaks at the `EXEC`. What happens to the server happens in front of a command that can run, and is
/// offered only where it changes something: a key's time can be up only if a key has a deadline, the script cache is emptied
/// only if it holds a script.
///
/// ```
/// # #[cfg(feature = "explore")] {
/// use fakeserver::explore::Faults;
/// use std::time::Duration;
///
/// let faults = Faults::at_most(1)
///     .drop_before()
///     .lose_reply()
///     .advance(Duration::from_secs(10))
///     .expire()
///     .flush_scripts()
///     .restart()
///     .failover(2);
/// assert_eq!(faults.most(), 1);
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are independent of each other"
)]
pub struct Faults {
    pub(super) left: usize,
    drop_before: bool,
    lose_reply: bool,
    /// Those of no length are not there.
    advances: [Duration; ADVANCES_MAX],
    expire: bool,
    flush_scripts: bool,
    restart: bool,
    restart_empty: bool,
    failover: u32,
}

/// What there is at a server that something can happen to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Holdings {
    /// Keys that have a deadline, as far as they count.
    pub(super) deadlines: u32,
    /// Whether a script is cached.
    pub(super) scripts: bool,
    /// Whether there is a key or a function.
    pub(super) data: bool,
    /// Steps that can be undone.
    pub(super) undoable: u32,
}

impl Faults {
    /// No faults.
    pub const fn none() -> Faults {
        Faults {
            left: 0,
            drop_before: false,
            lose_reply: false,
            advances: [Duration::ZERO; ADVANCES_MAX],
            expire: false,
            flush_scripts: false,
            restart: false,
            restart_empty: false,
            failover: 0,
        }
    }

    /// At most so many in one schedule; none until a kind is added.
    pub const fn at_most(count: usize) -> Faults {
        Faults {
            left: count,
            ..Faults::none()
        }
    }

    /// A connection may break before a command runs.
    #[must_use]
    pub const fn drop_before(mut self) -> Faults {
        self.drop_before = true;
        self
    }

    /// A connection may break after a command has run and before its reply arrives.
    #[must_use]
    pub const fn lose_reply(mut self) -> Faults {
        self.lose_reply = true;
        self
    }

    /// So much time may pass while a command waits for its turn, in whole microseconds and at most a year: the server's clock
    /// goes on, and the clients' timers go off as their time comes. Of different lengths there can be four; of more, the last
    /// one is replaced.
    #[must_use]
    pub fn advance(mut self, by: Duration) -> Faults {
        let by = Duration::from_micros(by.min(ADVANCE_MAX).as_micros() as u64);
        let known = |slot: &Duration| *slot == by || slot.is_zero();
        let slot = self.advances.iter().position(known);
        self.advances[slot.unwrap_or(ADVANCES_MAX - 1)] = by;
        self
    }

    /// The time of a key that has a deadline may be up, of each of the first 16 by deadline.
    #[must_use]
    pub const fn expire(mut self) -> Faults {
        self.expire = true;
        self
    }

    /// The script cache may be emptied.
    #[must_use]
    pub const fn flush_scripts(mut self) -> Faults {
        self.flush_scripts = true;
        self
    }

    /// The server may start anew and keep its keys: all connections break and the script cache is empty.
    #[must_use]
    pub const fn restart(mut self) -> Faults {
        self.restart = true;
        self
    }

    /// The server may start anew with nothing: a cache without persistence.
    #[must_use]
    pub const fn restart_empty(mut self) -> Faults {
        self.restart_empty = true;
        self
    }

    /// A replica may take the place of the server that has not got the last steps that wrote, from one to so many of them. All
    /// connections break. As with a real replica of 7.0.15 functions are there, and scripts are not cached. One that has got
    /// all of them is [`Faults::restart`].
    #[must_use]
    pub const fn failover(mut self, lost: u32) -> Faults {
        self.failover = lost;
        self
    }

    /// Most faults of one schedule.
    pub fn most(&self) -> usize {
        let without = Faults {
            left: self.left,
            ..Faults::none()
        };
        if *self == without { 0 } else { self.left }
    }

    /// How many steps that wrote must be kept for a failover.
    pub(super) fn undo_steps(&self) -> u32 {
        if self.left > 0 { self.failover } else { 0 }
    }

    /// Whether something may happen to the server.
    pub(super) fn strikes_world(&self) -> bool {
        let wanted = self.expire || self.flush_scripts || self.restart || self.restart_empty;
        self.left > 0 && (wanted || self.failover > 0 || !self.advances[0].is_zero())
    }

    /// Allows what these choices hold.
    pub(super) fn allow(&mut self, choices: &[Choice]) {
        let faults = choices.iter().filter(|choice| choice.is_fault());
        let mut count = 0;
        for fault in faults {
            count += 1;
            *self = match fault.act {
                Act::Execute => *self,
                Act::DropBefore => self.drop_before(),
                Act::LoseReply => self.lose_reply(),
                Act::Advance(by) => self.advance(by),
                Act::Expire(_) => self.expire(),
                Act::FlushScripts => self.flush_scripts(),
                Act::Restart { keeps_data: true } => self.restart(),
                Act::Restart { keeps_data: false } => self.restart_empty(),
                Act::Failover { lost } => self.failover(self.failover.max(lost)),
            };
        }
        self.left = self.left.max(count);
    }

    /// What may happen to a connection whose next command this is.
    pub(super) fn acts(self, head: &Head) -> impl Iterator<Item = Act> + use<> {
        let offered = self.left > 0 && !head.local;
        // A lost reply to a command that changes nothing is, for all, a command that did not run.
        let changes = head.footprint.may_write();
        [
            (self.drop_before, Act::DropBefore),
            (
                self.lose_reply && (changes || !self.drop_before),
                Act::LoseReply,
            ),
        ]
        .into_iter()
        .filter_map(move |(wanted, act)| (offered && wanted).then_some(act))
    }

    /// What may happen to the server; `before` is what happened to it since the last command, if something did.
    pub(super) fn world_acts(&self, holds: Holdings, before: Option<Act>) -> SmallVec<[Act; 4]> {
        let mut acts = SmallVec::new();
        if !self.strikes_world() {
            return acts;
        }
        let lengths = self.advances.iter().filter(|by| !by.is_zero());
        acts.extend(lengths.map(|by| Act::Advance(*by)));
        if self.expire {
            // Of two keys that go one after the other the earlier number goes first; the other order is the same.
            let from = match before {
                Some(Act::Expire(nth)) => nth,
                _ => 0,
            };
            acts.extend((from..holds.deadlines.min(EXPIRE_MAX)).map(Act::Expire));
        }
        if self.flush_scripts && holds.scripts {
            acts.push(Act::FlushScripts);
        }
        if self.restart {
            acts.push(Act::Restart { keeps_data: true });
        }
        if self.restart_empty && (holds.data || !self.restart) {
            acts.push(Act::Restart { keeps_data: false });
        }
        let lost = 1..=holds.undoable.min(self.failover);
        acts.extend(lost.map(|lost| Act::Failover { lost }));
        acts
    }
}
