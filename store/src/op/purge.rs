//! Removing executions with all that belongs to them.

use std::collections::{BTreeMap, BTreeSet};

use redis::Value;

use super::{
    Batch, Call, Operation, Replies, Step, over, reply,
    scan::{Pair, Scan},
    script::PURGE,
    validate,
};
use crate::{Settings, StoreError, Version, codec, keys::Keys};

/// Entries that the server is asked for at a time.
const COUNT: u32 = 1_000;

/// `ZSCAN`, `HSCAN` of what all executions share, then one script for each execution: removes its row, dedupe marks, trace
/// and trace counter, its timers, the events addressed to it and the spawn intents that it issued, if its version is the
/// expected one. Answers for each whether a row was removed.
///
/// Who belongs to whom is found before, in pages; the script gets the names, so that its own cost is that of what it
/// removes, however much others have. Timers and spawn intents of an execution come only with its commits, which move its
/// version: none of them is left behind. An event that somebody else addresses to it after the page was read stays in the
/// outbox; whoever delivers it finds no row and drops it.
///
/// Without a row, what is left of one is removed and the answer is no.
#[derive(Debug)]
pub struct PurgeMany {
    keys: Keys,
    is_indexed: bool,
    victims: Vec<Victim>,
    by_id: BTreeMap<String, usize>,
    purged: Vec<bool>,
    state: State,
}

#[derive(Debug)]
struct Victim {
    id: String,
    expected: Version,
    timers: BTreeSet<Vec<u8>>,
    outbox: BTreeMap<Vec<u8>, Vec<u8>>,
    spawns: BTreeMap<Vec<u8>, Vec<u8>>,
}

#[derive(Debug)]
enum State {
    Timers(Scan),
    Outbox(Scan),
    Spawns(Scan),
    Removing(Call),
    Over,
}

impl PurgeMany {
    /// Of these executions, each at the version that it was seen at.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for an id whose keys could be another's.
    pub fn new(
        settings: &Settings,
        victims: impl IntoIterator<Item = (String, Version)>,
    ) -> Result<Self, StoreError> {
        let keys = settings.keys().clone();
        let mut by_id = BTreeMap::new();
        let mut purge = Vec::new();
        for (id, expected) in victims {
            validate::execution_id(settings, "execution id", &id)?;
            by_id.insert(id.clone(), purge.len());
            purge.push(Victim {
                id,
                expected,
                timers: BTreeSet::new(),
                outbox: BTreeMap::new(),
                spawns: BTreeMap::new(),
            });
        }
        // The server can pick out one execution's timers, but not those of several.
        let pattern = match purge.as_slice() {
            [victim] => Some(keys.timer_pattern(&victim.id)),
            _ => None,
        };
        Ok(Self {
            state: State::Timers(Scan::sorted_set(keys.timers(), pattern, COUNT)),
            keys,
            is_indexed: settings.is_indexed(),
            victims: purge,
            by_id,
            purged: Vec::new(),
        })
    }

    fn victim(&mut self, id: &str) -> Option<&mut Victim> {
        self.victims.get_mut(*self.by_id.get(id)?)
    }

    fn keep_timers(&mut self, found: Vec<Pair>) {
        for (member, _) in found {
            let id = member.split(|byte| *byte == 0).next().unwrap_or_default();
            let Ok(id) = std::str::from_utf8(id).map(str::to_owned) else {
                continue;
            };
            if let Some(victim) = self.victim(&id) {
                victim.timers.insert(member);
            }
        }
    }

    fn keep_events(&mut self, found: Vec<Pair>) {
        for (field, value) in found {
            if let Some(victim) = codec::outbox_target(&value).and_then(|id| self.victim(&id)) {
                victim.outbox.insert(field, value);
            }
        }
    }

    fn keep_spawns(&mut self, found: Vec<Pair>) {
        for (field, value) in found {
            if let Some(victim) = codec::spawn_parent(&value).and_then(|id| self.victim(&id)) {
                victim.spawns.insert(field, value);
            }
        }
    }

    /// The script for the next victim; the answer if there is none.
    fn remove(&mut self) -> Step<Vec<bool>> {
        let Some(victim) = self.victims.get_mut(self.purged.len()) else {
            return Step::Done(Ok(std::mem::take(&mut self.purged)));
        };
        let mut call = victim.call(&self.keys, self.is_indexed);
        let batch = call.by_hash();
        self.state = State::Removing(call);
        Step::Send(batch)
    }

    fn removed(call: &Call, replies: Replies) -> Result<bool, StoreError> {
        let [removed] = replies.harmless()?;
        if let Value::ServerError(error) = &removed {
            return Err(match call.corrupt_key(error) {
                Some(key) => StoreError::Corrupt {
                    key: key.to_owned(),
                    field: None,
                    reason: "of another type, or without an integer `version`".to_owned(),
                },
                None => reply::refusal(error, "EVALSHA", ""),
            });
        }
        reply::integer(&removed)
            .map(|removed| removed == 1)
            .ok_or_else(|| reply::unexpected("EVALSHA"))
    }

    fn scan(&mut self, scan: Scan, state: fn(Scan) -> State) -> Step<Vec<bool>> {
        let batch = Batch::shared([scan.command()]);
        self.state = state(scan);
        Step::Send(batch)
    }
}

impl Victim {
    fn call(&mut self, keys: &Keys, is_indexed: bool) -> Call {
        let counts = [self.timers.len(), self.outbox.len(), self.spawns.len()];
        let mut arguments = vec![self.expected.to_string().into_bytes()];
        arguments.extend(counts.map(|count| count.to_string().into_bytes()));
        arguments.extend(std::mem::take(&mut self.timers));
        for entries in [&mut self.outbox, &mut self.spawns] {
            for (field, value) in std::mem::take(entries) {
                arguments.extend([field, value]);
            }
        }
        arguments.push(self.id.clone().into_bytes());
        let mut names = vec![
            keys.execution(&self.id),
            keys.timers(),
            keys.outbox(),
            keys.spawns(),
            keys.processed(&self.id),
            keys.trace(&self.id),
            keys.trace_seq(&self.id),
        ];
        names.extend(is_indexed.then(|| keys.index()));
        Call::new(&PURGE, names, arguments)
    }
}

impl Operation for PurgeMany {
    const NAME: &'static str = "purge_many";

    type Output = Vec<bool>;

    fn step(&mut self, replies: Replies) -> Step<Vec<bool>> {
        let state = std::mem::replace(&mut self.state, State::Over);
        if let (State::Timers(scan), Replies::Start) = (&state, &replies) {
            if self.victims.is_empty() {
                return Step::Done(Ok(Vec::new()));
            }
            let batch = Batch::shared([scan.command()]);
            self.state = state;
            return Step::Send(batch);
        }
        let result = match state {
            State::Timers(mut scan) => scan.pairs(replies).map(|found| {
                self.keep_timers(found);
                if scan.cursor().is_some() {
                    return self.scan(scan, State::Timers);
                }
                let outbox = Scan::hash(self.keys.outbox(), COUNT);
                self.scan(outbox, State::Outbox)
            }),
            State::Outbox(mut scan) => scan.pairs(replies).map(|found| {
                self.keep_events(found);
                if scan.cursor().is_some() {
                    return self.scan(scan, State::Outbox);
                }
                let spawns = Scan::hash(self.keys.spawns(), COUNT);
                self.scan(spawns, State::Spawns)
            }),
            State::Spawns(mut scan) => scan.pairs(replies).map(|found| {
                self.keep_spawns(found);
                if scan.cursor().is_some() {
                    return self.scan(scan, State::Spawns);
                }
                self.remove()
            }),
            State::Removing(mut call) => {
                if let Some(batch) = call.next(&replies) {
                    self.state = State::Removing(call);
                    return Step::Send(batch);
                }
                Self::removed(&call, replies).map(|removed| {
                    self.purged.push(removed);
                    self.remove()
                })
            }
            State::Over => return over(),
        };
        result.unwrap_or_else(|error| Step::Done(Err(error)))
    }
}

/// As [`PurgeMany`] for one execution: whether its row was removed.
#[derive(Debug)]
pub struct Purge(PurgeMany);

impl Purge {
    /// Of the execution with this id, at the version that it was seen at.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for an id whose keys could be another's.
    pub fn new(settings: &Settings, id: &str, expected: Version) -> Result<Self, StoreError> {
        PurgeMany::new(settings, [(id.to_owned(), expected)]).map(Self)
    }
}

impl Operation for Purge {
    const NAME: &'static str = "purge";

    type Output = bool;

    fn step(&mut self, replies: Replies) -> Step<bool> {
        match self.0.step(replies) {
            Step::Send(batch) => Step::Send(batch),
            Step::Done(result) => Step::Done(result.map(|purged| purged == [true])),
        }
    }
}
