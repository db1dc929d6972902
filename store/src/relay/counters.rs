//! Counters that are behind what they have given out.

use super::Origin;
use crate::{
    Settings, StoreError, Version,
    op::{
        Batch, Call, Operation, Replies, Script, Step, over, reply,
        scan::{Pair, Scan},
    },
};

static RAISE: Script = Script::new(concat!(
    include_str!("../transport/lua/prelude.lua"),
    include_str!("lua/raise.lua")
));

/// Fields that one `HSCAN` looks at.
const SCAN_COUNT: u32 = 1000;

const ORIGINS: [Origin; 2] = [Origin::Outbox, Origin::Spawns];

/// Which counters were behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Repaired {
    /// That of the outbox.
    pub outbox: bool,
    /// That of the spawns.
    pub spawns: bool,
}

/// Raises the counters of outbox and spawns to the largest seq that still waits, if they are below it; which were.
///
/// Redis may lose its last writes (a fail-over, a restart from an old file), and a counter may have been lost alone: the next
/// commit would then be given a seq at which another entry waits, and overwrite it. To be run before the first commit after
/// a start. The cost is that of a walk over both hashes in pages; it may be repeated, and run beside others.
///
/// What it can not know is a seq whose entry is gone too: a relay that still has that entry in memory must not acknowledge by
/// the number alone ([`AckEntry`](super::AckEntry)).
#[derive(Debug)]
pub struct RepairCounters {
    settings: Settings,
    largest: [i64; 2],
    state: State,
}

#[derive(Debug)]
enum State {
    Scanning(usize, Scan),
    Raising(Call),
    Over,
}

impl RepairCounters {
    /// Of this store.
    pub fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            largest: [0; 2],
            state: State::Scanning(0, Scan::hash(settings.keys().outbox(), SCAN_COUNT)),
        }
    }

    fn scan(&mut self, at: usize, scan: Scan) -> Step<Repaired> {
        let batch = Batch::shared([scan.command()]);
        self.state = State::Scanning(at, scan);
        Step::Send(batch)
    }

    fn keep(&mut self, at: usize, found: &[Pair]) -> Result<(), StoreError> {
        for (field, _) in found {
            // What is no number is poison, and nothing that a counter could meet.
            let seq = std::str::from_utf8(field).ok();
            let Some(seq) = seq.and_then(|seq| seq.parse::<i64>().ok()) else {
                continue;
            };
            if seq >= Version::EDGE.get() {
                return Err(StoreError::Corrupt {
                    key: ORIGINS[at].key(self.settings.keys()),
                    field: Some(seq.to_string()),
                    reason: "seq has reached 2^53 - 1".to_owned(),
                });
            }
            self.largest[at] = self.largest[at].max(seq);
        }
        Ok(())
    }

    /// On with this hash, or with the next, or with the counters.
    fn walk_on(&mut self, at: usize, scan: Scan) -> Step<Repaired> {
        if scan.cursor().is_some() {
            return self.scan(at, scan);
        }
        match ORIGINS.get(at + 1) {
            Some(origin) => {
                let scan = Scan::hash(origin.key(self.settings.keys()), SCAN_COUNT);
                self.scan(at + 1, scan)
            }
            None => self.raise(),
        }
    }

    fn raise(&mut self) -> Step<Repaired> {
        let keys = ORIGINS.map(|origin| origin.counter(self.settings.keys()));
        let least = self.largest.map(|seq| seq.to_string().into_bytes());
        let mut call = Call::new(&RAISE, keys.into(), least);
        let batch = call.by_hash();
        self.state = State::Raising(call);
        Step::Send(batch)
    }
}

impl Operation for RepairCounters {
    const NAME: &'static str = "repair_counters";

    type Output = Repaired;

    fn step(&mut self, replies: Replies) -> Step<Repaired> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Scanning(at, scan) if matches!(replies, Replies::Start) => self.scan(at, scan),
            State::Scanning(at, mut scan) => {
                let kept = scan.pairs(replies).and_then(|found| self.keep(at, &found));
                match kept {
                    Ok(()) => self.walk_on(at, scan),
                    Err(error) => Step::Done(Err(error)),
                }
            }
            State::Raising(mut call) => {
                if let Some(batch) = call.next(&replies) {
                    self.state = State::Raising(call);
                    return Step::Send(batch);
                }
                Step::Done(replies.harmless().and_then(|[raised]| {
                    let raised = reply::items(call.accepted(raised)?);
                    let raised: Option<Vec<i64>> =
                        raised.and_then(|raised| raised.iter().map(reply::integer).collect());
                    match raised.as_deref() {
                        Some([outbox, spawns]) => Ok(Repaired {
                            outbox: *outbox != 0,
                            spawns: *spawns != 0,
                        }),
                        _ => Err(reply::unexpected("EVALSHA")),
                    }
                }))
            }
            State::Over => over(),
        }
    }
}
