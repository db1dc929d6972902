//! [`SessionState`]: what a command touches given what its connection did before.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use super::rows;
#[cfg(feature = "explore")]
use super::rows::Reveals;
use super::{Footprint, Part};
use crate::command::{Flag, Row};
use crate::wire::Request;

/// Names scripts and functions, as hashes.
pub(crate) type Scripts = SmallVec<[u64; 1]>;

/// Who hears what others do, once a command has run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Audience {
    /// Nobody, but for channels.
    #[default]
    Nobody,
    /// Somebody may listen to events of keys.
    Events,
    /// Somebody sees every command, or settings make commands depend on each other that have no key in common.
    Everybody,
}

/// What a connection has been told by commands that only it can see; the explorer's own copy, so that any server will do.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionState {
    watched: SmallVec<[u64; 4]>,
    queued: Option<Queued>,
}

/// Commands between MULTI and EXEC.
#[derive(Clone, Debug, Default)]
struct Queued {
    own: Footprint,
    certain: Footprint,
    scripts: Scripts,
    audience: Audience,
}

/// A command's footprint as far as its words say, computed once when it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Static {
    row: Option<&'static Row>,
    pub(super) own: Footprint,
    /// The script that it runs, and what it touches whatever that calls.
    script: Option<Box<(u64, Footprint)>>,
    audience: Audience,
}

impl Static {
    /// With whole keys.
    pub(crate) fn of(request: &Request) -> Static {
        let mut command = Static::fine(request);
        command.own.coarsen(|_| true);
        command
    }

    /// With single elements of hashes, sets and sorted sets; whoever uses it minds [`Static::reveals`].
    pub(crate) fn fine(request: &Request) -> Static {
        let row = rows::row_of(request);
        // A server elsewhere may know a command that this one does not.
        let own = row.map_or_else(Footprint::everything, |row| rows::footprint(row, request));
        #[cfg(feature = "mutants")]
        let own = crate::mutant::own(row.map_or("", Row::name), own);
        Static {
            row,
            script: row.and_then(|row| script(row, request, &own)),
            audience: row.map_or(Audience::Everybody, |row| audience(row, request)),
            own,
        }
    }

    /// What orders the command shows.
    #[cfg(feature = "explore")]
    pub(crate) fn reveals(&self, request: &Request) -> Reveals {
        rows::reveals(self.row, request, &self.own)
    }

    /// What it touches as far as its words say.
    #[cfg(feature = "explore")]
    pub(crate) fn own(&self) -> &Footprint {
        &self.own
    }

    /// Changes what it is taken to touch, by what is known of keys.
    #[cfg(feature = "explore")]
    pub(crate) fn adapt(&mut self, change: impl FnOnce(&mut Footprint)) {
        change(&mut self.own);
    }

    /// The command's name in upper case, without its container's; nothing if it is unknown.
    #[cfg(feature = "explore")]
    pub(crate) fn name(&self) -> &'static str {
        self.row.map_or("", Row::name)
    }

    /// Whether the command may change settings of the server.
    #[cfg(feature = "explore")]
    pub(crate) fn is_admin(&self) -> bool {
        self.row.is_some_and(|row| row.has(Flag::Admin))
    }

    /// The script or function that it runs.
    pub(crate) fn script(&self) -> Option<u64> {
        self.script.as_ref().map(|script| script.0)
    }

    /// What it touches if it ran a script that called commands of this footprint.
    fn certain(&self) -> &Footprint {
        self.script.as_ref().map_or(&self.own, |script| &script.1)
    }

    fn is(&self, name: &str) -> bool {
        self.row.is_some_and(|row| row.full_name() == name)
    }

    /// Whether it runs at once inside of MULTI, and is not EXEC.
    fn is_never_queued(&self) -> bool {
        self.row.is_some_and(|row| row.has(Flag::NoQueue)) && !self.is("exec")
    }
}

/// The script that a command runs, with what the command touches besides what the script calls.
fn script(row: &Row, request: &Request, own: &Footprint) -> Option<Box<(u64, Footprint)>> {
    if !matches!(
        row.full_name(),
        "eval" | "eval_ro" | "evalsha" | "evalsha_ro" | "fcall" | "fcall_ro"
    ) {
        return None;
    }
    let name = request.get(1).unwrap_or_default().to_ascii_lowercase();
    let mut certain = own.clone();
    certain.touches.retain(|touch| touch.key >= super::NO_KEY);
    Some(Box::new((FixedState::default().hash_one(name), certain)))
}

fn audience(row: &Row, request: &Request) -> Audience {
    match row.full_name() {
        _ if rows::hears_of_keys(row, request) => Audience::Events,
        // A limit of memory, a pause and the like.
        "monitor" | "config|set" | "client|pause" | "client|tracking" | "replicaof" | "slaveof"
        | "failover" => Audience::Everybody,
        name if name.starts_with("debug") => Audience::Everybody,
        _ => Audience::Nobody,
    }
}

impl SessionState {
    /// Whether commands are queued for EXEC.
    #[cfg(feature = "sweep")]
    pub(crate) fn is_queueing(&self) -> bool {
        self.queued.is_some()
    }

    /// The footprint of a command if it ran now.
    pub(crate) fn footprint(&self, command: &Static) -> Footprint {
        #[cfg(feature = "mutants")]
        if let Some(wrong) = self.mutated(command) {
            return wrong;
        }
        match &self.queued {
            None => command.own.clone(),
            Some(queued) if command.is("exec") => self.of_exec(command, queued.own.clone()),
            Some(_) if command.is_never_queued() => command.own.clone(),
            // Queued, or refused.
            Some(_) => command.own.of_connections(),
        }
    }

    fn of_exec(&self, command: &Static, mut footprint: Footprint) -> Footprint {
        footprint.extend(&command.own);
        for key in &self.watched {
            footprint.push(*key, Part::Read);
        }
        footprint
    }

    /// Whether a command that ran now would touch nothing that others see, which is cheaper to know than its footprint.
    pub(crate) fn is_local(&self, command: &Static) -> bool {
        #[cfg(feature = "mutants")]
        if let Some(wrong) = self.mutated(command) {
            return wrong.is_empty();
        }
        match &self.queued {
            None => command.own.is_empty(),
            Some(queued) if command.is("exec") => {
                let mut parts = [&queued.own, &command.own].into_iter();
                self.watched.is_empty() && parts.all(Footprint::is_empty)
            }
            Some(_) if command.is_never_queued() => command.own.is_empty(),
            Some(_) => command.own.of_connections().is_empty(),
        }
    }

    #[cfg(feature = "mutants")]
    fn mutated(&self, command: &Static) -> Option<Footprint> {
        use crate::mutant::Mutant;
        match &self.queued {
            None if command.is("watch") && Mutant::WatchTouchesNothing.is_present() => {
                Some(Footprint::default())
            }
            Some(queued) if command.is("exec") && Mutant::ExecIgnoresWatched.is_present() => {
                Some(queued.own.clone())
            }
            _ => None,
        }
    }

    /// The scripts that a command runs if it runs now.
    pub(crate) fn scripts(&self, command: &Static) -> Scripts {
        match &self.queued {
            None => command.script().into_iter().collect(),
            Some(queued) if command.is("exec") => queued.scripts.clone(),
            Some(_) => Scripts::new(),
        }
    }

    /// The footprint of a command that runs scripts, given what those called.
    pub(crate) fn footprint_with(&self, command: &Static, called: &Footprint) -> Footprint {
        let mut footprint = match &self.queued {
            Some(queued) if command.is("exec") => self.of_exec(command, queued.certain.clone()),
            _ => command.certain().clone(),
        };
        footprint.extend(called);
        footprint
    }

    /// Takes note of a command that ran; `refused` if it was answered with an error. Who hears of others' commands because of
    /// it.
    pub(crate) fn ran(&mut self, command: &Static, refused: bool) -> Audience {
        let Some(row) = command.row else {
            return command.audience;
        };
        match (row.full_name(), &mut self.queued) {
            ("multi", queued) if !refused => *queued = Some(Queued::default()),
            ("exec", Some(queued)) => {
                let audience = queued.audience;
                *self = SessionState::default();
                return audience;
            }
            ("discard", Some(_)) | ("reset", _) => *self = SessionState::default(),
            ("watch", None) if !refused => {
                let keys = command.own.touches.iter().map(|touch| touch.key);
                self.watched.extend(keys);
            }
            ("unwatch", None) => self.watched.clear(),
            (_, Some(queued)) if !refused => queued.add(command),
            (_, None) => return command.audience,
            _ => {}
        }
        Audience::Nobody
    }
}

impl Queued {
    fn add(&mut self, command: &Static) {
        self.own.extend(&command.own);
        self.certain.extend(command.certain());
        self.scripts.extend(command.script());
        self.audience = self.audience.max(command.audience);
    }
}
