//! Taking an entry off that was worked off.

use super::Entry;
use crate::{
    Settings,
    op::{Call, Operation, Replies, Script, Step, reply},
};

static ACK: Script = Script::new(include_str!("lua/ack.lua"));

/// One script: removes an entry if it is still the one that was read; whether it was.
///
/// After a loss of data a seq may be given out again: by its number alone an entry that nobody has worked off would go.
/// Whatever goes wrong with the connection is [`StoreError::Io`](crate::StoreError::Io): a repetition removes nothing else.
#[derive(Debug)]
pub struct AckEntry {
    call: Call,
}

impl AckEntry {
    /// This entry.
    pub fn new<E: Entry>(settings: &Settings, entry: &E) -> Self {
        let arguments = vec![
            entry.seq().to_string().into_bytes(),
            entry.stored().to_vec(),
        ];
        let keys = vec![E::ORIGIN.key(settings.keys())];
        Self {
            call: Call::new(&ACK, keys, arguments),
        }
    }
}

impl Operation for AckEntry {
    const NAME: &'static str = "ack_entry";

    type Output = bool;

    fn step(&mut self, replies: Replies) -> Step<bool> {
        script_answer(&mut self.call, replies)
    }
}

/// A script that answers how many it has changed and that may be repeated: whether it was any.
pub(super) fn script_answer(call: &mut Call, replies: Replies) -> Step<bool> {
    if let Some(batch) = call.next(&replies) {
        return Step::Send(batch);
    }
    Step::Done(replies.harmless().and_then(|[changed]| {
        reply::integer(&call.accepted(changed)?)
            .map(|changed| changed != 0)
            .ok_or_else(|| reply::unexpected("EVALSHA"))
    }))
}
