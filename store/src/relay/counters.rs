//! Counters that are behind what they have given out.

use redis::{Value, cmd};

use super::Origin;
use crate::{
    Settings, StoreError, Version,
    op::{Batch, Operation, Replies, Script, Step, over, reply},
    transport::Call,
};

static RAISE: Script = Script::new(
    concat!(
        include_str!("../transport/lua/prelude.lua"),
        include_str!("lua/raise.lua")
    ),
    || RAISE.digest(),
);

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
    Scanning(usize),
    Raising(Call),
    Over,
}

impl RepairCounters {
    /// Of this store.
    pub fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            largest: [0; 2],
            state: State::Scanning(0),
        }
    }

    fn scan(&self, at: usize, cursor: &[u8]) -> Step<Repaired> {
        let key = ORIGINS.map(|origin| origin.key(self.settings.keys()))[at].clone();
        let mut scan = cmd("HSCAN");
        scan.arg(key).arg(cursor).arg("COUNT").arg(SCAN_COUNT);
        Step::Send(Batch::shared([scan]))
    }

    fn scanned(&mut self, at: usize, replies: Replies) -> Result<Vec<u8>, StoreError> {
        let unexpected = || reply::unexpected("HSCAN");
        let key = ORIGINS.map(|origin| origin.key(self.settings.keys()))[at].clone();
        let [scanned] = replies.harmless()?;
        let scanned = reply::accepted(scanned, "HSCAN", &key)?;
        let parts = reply::items(scanned).ok_or_else(unexpected)?;
        let Ok([cursor, fields]) = <[Value; 2]>::try_from(parts) else {
            return Err(unexpected());
        };
        for (field, _) in reply::pairs(fields).ok_or_else(unexpected)? {
            // What is no number is poison, and nothing that a counter could meet.
            let Some(seq) = reply::integer(&field) else {
                continue;
            };
            if seq >= Version::EDGE.get() {
                return Err(StoreError::Corrupt {
                    key,
                    field: Some(seq.to_string()),
                    reason: "seq has reached 2^53 - 1".to_owned(),
                });
            }
            self.largest[at] = self.largest[at].max(seq);
        }
        reply::bytes(cursor).ok_or_else(unexpected)
    }

    fn raise(&mut self) -> Step<Repaired> {
        let keys = ORIGINS.map(|origin| origin.counter(self.settings.keys()));
        let least = self.largest.map(|seq| seq.to_string().into_bytes());
        let mut call = Call::new(&RAISE, keys.into(), least.into());
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
            State::Scanning(at) if matches!(replies, Replies::Start) => {
                self.state = State::Scanning(at);
                self.scan(at, b"0")
            }
            State::Scanning(at) => match self.scanned(at, replies) {
                Err(error) => Step::Done(Err(error)),
                Ok(cursor) if cursor != b"0" => {
                    self.state = State::Scanning(at);
                    self.scan(at, &cursor)
                }
                Ok(_) if at + 1 < ORIGINS.len() => {
                    self.state = State::Scanning(at + 1);
                    self.scan(at + 1, b"0")
                }
                Ok(_) => self.raise(),
            },
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
