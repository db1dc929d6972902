//! [`Step`]: what the server saw in a run, one command after the other.

use super::schedule::Role;
use super::seen::{self, Seen};
use crate::command::{Access, lookup};
use crate::footprint::{Footprint, key_positions};
use crate::wire::{Reply, Request};

/// One command that ran, or something that the schedule did.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// Whose; none for what the schedule did.
    pub(super) role: Option<Role>,
    /// Which of the program's connections, from 1.
    pub(super) connection: usize,
    /// The command; for what the schedule did, the keys that are gone.
    pub(super) request: Request,
    /// What was queued, for EXEC.
    pub(super) queued: Vec<Request>,
    /// The reply, also if it was lost; none if the command still waits.
    pub(super) reply: Option<Reply>,
    /// What others can see of it.
    pub(super) footprint: Footprint,
    /// Its number among the program's visible commands.
    pub(super) point: Option<usize>,
    /// Whether it is the first visible command of what the program sent in one piece.
    pub(super) begins: bool,
    /// Whether it changed the key space.
    pub(super) changed: bool,
    /// Whether some key had a time to live behind it.
    pub(super) mortal: bool,
    /// What happened to it, or what the schedule did.
    pub(super) note: Option<String>,
}

impl Step {
    /// Something that the schedule did, and to which keys.
    pub(super) fn event(what: String, keys: Request) -> Step {
        Step {
            role: None,
            connection: 0,
            request: keys,
            queued: Vec::new(),
            reply: None,
            footprint: Footprint::default(),
            point: None,
            begins: false,
            changed: false,
            mortal: false,
            note: Some(what),
        }
    }

    /// What the judges of causes are to know: `interrupted` is A there.
    pub(super) fn seen(&self, interrupted: Role) -> Seen {
        let words = |request: &Request| request.words().map(<[u8]>::to_vec).collect::<Vec<_>>();
        let role = match self.role {
            None => seen::Role::Server,
            Some(role) if role == interrupted => seen::Role::A,
            Some(Role::After) => seen::Role::After,
            Some(_) => seen::Role::B,
        };
        let keys = self.keys();
        let of = |wanted: Access| {
            let keys = keys.iter().filter(|(_, access)| *access == wanted);
            keys.map(|(key, _)| key.clone()).collect()
        };
        let (mut written, mut told) = (of(Access::Write), words(&self.request));
        if self.role.is_none() {
            written = std::mem::take(&mut told);
            told.extend(self.note.iter().map(|note| note.clone().into_bytes()));
        }
        Seen {
            role,
            connection: self.connection,
            words: told,
            reply: self.reply.clone(),
            reads: of(Access::Read),
            writes: written,
            transaction: self.queued.iter().map(words).collect(),
            missing: false,
        }
    }

    /// Keys that the command and what it had queued name, and what is done with each.
    pub(super) fn keys(&self) -> Vec<(Vec<u8>, Access)> {
        let requests = std::iter::once(&self.request).chain(&self.queued);
        requests.flat_map(keys_of).collect()
    }

    /// Whether the command is EVALSHA, or has one queued.
    pub(super) fn calls_by_hash(&self) -> bool {
        let is = |request: &Request| request.name().to_ascii_uppercase().starts_with(b"EVALSHA");
        is(&self.request) || self.queued.iter().any(is)
    }
}

fn keys_of(request: &Request) -> Vec<(Vec<u8>, Access)> {
    let Some(row) = lookup(request.name()) else {
        return Vec::new();
    };
    let positions = key_positions(row, request).into_iter();
    let keys = positions.filter_map(|(at, access)| Some((request.get(at)?.to_vec(), access)));
    keys.collect()
}

/// Whether a command tells or sets what only its own connection is concerned with, or what no program decides by. It may run at
/// any time.
pub(super) fn is_quiet(request: &Request) -> bool {
    let sub = || request.get(1).unwrap_or_default().to_ascii_uppercase();
    match request.name().to_ascii_uppercase().as_slice() {
        b"CLIENT" => !matches!(
            sub().as_slice(),
            b"KILL" | b"LIST" | b"PAUSE" | b"UNPAUSE" | b"UNBLOCK" | b"TRACKING"
        ),
        b"CONFIG" => sub() == b"GET",
        b"INFO" | b"COMMAND" | b"TIME" | b"LOLWUT" | b"LASTSAVE" | b"ROLE" => true,
        _ => false,
    }
}
