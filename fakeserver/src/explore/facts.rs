//! [`Facts`]: what turned out in earlier runs and makes commands touch more than their words say.
//!
//! A strategy that leaves out schedules trusts what a command will touch before it has run. Two kinds of it are guesses: that a
//! script touches no key but those that it declares, and that nobody looks at the order in which a hash or set holds its elements
//! or the table of keys its keys, so that commands on different elements, or on different new keys, commute. Each guess is good
//! until the first command that shows it to be wrong, and up to that command all that was left out was rightly left out: the
//! exploration meets it. Then the fact is kept, and the exploration begins anew. There are at most as many facts as keys and
//! scripts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::fast::FixedState;

use super::Granularity;
use super::lane::fingerprint;
use crate::calls::Calls;
use crate::footprint::{Footprint, SessionState, Static};
use crate::wire::Request;

/// Commands that are kept with what they touch: a workload sends the same few in each schedule.
const KNOWN_MAX: usize = 1024;

/// What is known of keys and scripts.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are independent of each other"
)]
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    granularity: Granularity,
    /// Keys whose elements' order is looked at.
    whole: BTreeSet<u64>,
    /// Keys of which single elements were taken to be touched.
    fine: BTreeSet<u64>,
    /// What scripts and functions touch besides their keys.
    scripts: BTreeMap<u64, Footprint>,
    /// The order of the table of keys is looked at.
    order_of_keys: bool,
    /// Connections are looked at.
    connections: bool,
    /// Anything is looked at.
    all: bool,
    has_changed: bool,
    /// Commands by their fingerprints, as they are taken to be until something else turns out.
    known: HashMap<u64, (Request, Arc<Static>), FixedState>,
}

impl Facts {
    /// Nothing is known.
    pub(crate) fn new(granularity: Granularity) -> Facts {
        Facts {
            granularity,
            ..Facts::default()
        }
    }

    /// A command as it is taken to be when it is sent.
    pub(crate) fn of(&mut self, request: &Request) -> Arc<Static> {
        let fingerprint = fingerprint(request);
        if let Some((known, command)) = self.known.get(&fingerprint)
            && known == request
        {
            return Arc::clone(command);
        }
        let command = Arc::new(self.examine(request));
        if self.known.len() < KNOWN_MAX {
            let known = (request.clone(), Arc::clone(&command));
            self.known.insert(fingerprint, known);
        }
        command
    }

    fn examine(&mut self, request: &Request) -> Static {
        let mut command = Static::fine(request);
        self.note_reveals(&command, request);
        let script = command.script();
        command.adapt(|own| {
            if let Some(more) = script.and_then(|script| self.scripts.get(&script)) {
                own.extend(more);
            }
            self.adapt(own);
        });
        command
    }

    /// What a command that ran scripts has touched, given the commands that those called. Facts that it shows are kept.
    pub(crate) fn observe(
        &mut self,
        session: &SessionState,
        command: &Static,
        calls: &Calls,
    ) -> Footprint {
        let mut called = Footprint::default();
        for request in &calls.requests {
            let call = Static::fine(request);
            self.note_reveals(&call, request);
            called.extend(call.own());
        }
        if calls.are_more {
            called = Footprint::everything();
            self.note_all();
        }
        self.adapt(&mut called);
        let more = session.footprint(command).lacks(&called);
        if !more.is_empty() {
            for script in session.scripts(command) {
                self.scripts.entry(script).or_default().extend(&more);
            }
            self.known.clear();
            self.has_changed = true;
        }
        session.footprint_with(command, &called)
    }

    /// Whether a fact was added since the last time: what was left out until now may have been left out wrongly.
    pub(crate) fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    fn adapt(&mut self, footprint: &mut Footprint) {
        if self.granularity == Granularity::Key || self.all {
            footprint.coarsen(|_| true);
        } else {
            footprint.coarsen(|key| self.whole.contains(&key));
            self.fine.extend(footprint.fine_keys());
        }
        if self.order_of_keys {
            footprint.mind_order_of_keys();
        }
        if self.connections {
            footprint.mind_connections();
        }
    }

    fn note_reveals(&mut self, command: &Static, request: &Request) {
        let reveals = command.reveals(request);
        let mut is_news = false;
        for key in reveals.keys {
            let is_new = self.whole.insert(key);
            is_news |= is_new;
            self.has_changed |= is_new && self.fine.contains(&key);
        }
        let wide = [
            reveals.order_of_keys && !std::mem::replace(&mut self.order_of_keys, true),
            reveals.connections && !std::mem::replace(&mut self.connections, true),
        ];
        if wide.contains(&true) {
            is_news = true;
            self.has_changed = true;
        }
        if reveals.all {
            self.note_all();
        }
        if is_news {
            self.known.clear();
        }
    }

    fn note_all(&mut self) {
        if !std::mem::replace(&mut self.all, true) {
            self.has_changed = true;
            self.known.clear();
        }
        self.order_of_keys = true;
        self.connections = true;
    }
}
