//! [`Footprint`]: which keys a command reads and writes, hence which commands commute. It follows from the command's row; for
//! EXEC from what the connection watched and queued.
//!
//! This is what every reduction trusts: a footprint may name too much, never too little. Keys are kept as hashes, since two
//! keys that share one only make more commands dependent.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use crate::command::{Access, Flag, Group, Row, lookup};
use crate::wire::Request;

/// Stands for the script cache, which EVALSHA reads and EVAL fills. No key's hash, but for a coincidence that does no harm.
const SCRIPT_CACHE: u64 = u64::MAX;
/// Stands for what libraries of functions keep between calls.
const FUNCTIONS: u64 = SCRIPT_CACHE - 1;

/// Stands for channels and who listens to them.
const CHANNELS: u64 = SCRIPT_CACHE - 2;

/// Where the first option of a geo command may stand.
const GEO_OPTIONS_AT: usize = 5;

/// What a command touches.
#[cfg_attr(
    not(feature = "explore"),
    allow(unreachable_pub, reason = "the explorer makes it public")
)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    reads: SmallVec<[u64; 4]>,
    writes: SmallVec<[u64; 4]>,
    everything: bool,
}

#[cfg_attr(
    not(feature = "explore"),
    allow(unreachable_pub, reason = "the explorer makes it public")
)]
impl Footprint {
    pub(crate) fn everything() -> Footprint {
        Footprint {
            everything: true,
            ..Footprint::default()
        }
    }

    /// That of what empties the script cache.
    #[cfg(feature = "explore")]
    pub(crate) fn script_cache() -> Footprint {
        let mut footprint = Footprint::default();
        footprint.add(SCRIPT_CACHE, Access::Write);
        footprint
    }

    /// Whether it touches nothing that another connection can see.
    pub fn is_empty(&self) -> bool {
        !self.everything && self.reads.is_empty() && self.writes.is_empty()
    }

    /// Whether it may change something.
    #[cfg(feature = "explore")]
    pub fn may_write(&self) -> bool {
        self.everything || !self.writes.is_empty()
    }

    /// Whether the order of two commands with these footprints can matter.
    pub fn conflicts(&self, other: &Footprint) -> bool {
        if self.is_empty() || other.is_empty() {
            return false;
        }
        let meets = |writes: &[u64], other: &Footprint| {
            writes
                .iter()
                .any(|key| other.writes.contains(key) || other.reads.contains(key))
        };
        self.everything
            || other.everything
            || meets(&self.writes, other)
            || meets(&other.writes, self)
    }

    #[cfg(feature = "mutants")]
    pub(crate) fn without_writes(mut self) -> Footprint {
        self.reads.append(&mut self.writes);
        self
    }

    fn add(&mut self, key: u64, access: Access) {
        match access {
            Access::Read => self.reads.push(key),
            Access::Write => self.writes.push(key),
        }
    }

    fn extend(&mut self, other: &Footprint) {
        self.reads.extend_from_slice(&other.reads);
        self.writes.extend_from_slice(&other.writes);
        self.everything |= other.everything;
    }
}

/// What a connection has been told by commands that only it can see; the explorer's own copy, so that any server will do.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionState {
    watched: SmallVec<[u64; 4]>,
    queued: Option<Footprint>,
}

/// A command's footprint as far as its words say, computed once when it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Static {
    row: Option<&'static Row>,
    own: Footprint,
}

impl Static {
    pub(crate) fn of(request: &Request) -> Static {
        let row = lookup(request.name());
        // A server elsewhere may know a command that this one does not.
        let own = row.map_or_else(Footprint::everything, |row| from_row(row, request));
        #[cfg(feature = "mutants")]
        let own = crate::mutant::own(row.map_or("", Row::name), own);
        Static { row, own }
    }

    /// The command's name in upper case; nothing if it is unknown.
    #[cfg(feature = "explore")]
    pub(crate) fn name(&self) -> &'static str {
        self.row.map_or("", Row::name)
    }

    /// Whether the command may change settings of the server.
    #[cfg(feature = "explore")]
    pub(crate) fn is_admin(&self) -> bool {
        self.row.is_some_and(|row| row.has(Flag::Admin))
    }

    fn is(&self, name: &str) -> bool {
        self.row.is_some_and(|row| row.name() == name)
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
            Some(queued) if command.is("EXEC") => {
                let mut footprint = queued.clone();
                footprint.reads.extend_from_slice(&self.watched);
                footprint
            }
            // Queued, or refused.
            Some(_) => Footprint::default(),
        }
    }

    /// Whether a command that ran now would touch nothing that others see, which is cheaper to know than its footprint.
    pub(crate) fn is_local(&self, command: &Static) -> bool {
        #[cfg(feature = "mutants")]
        if let Some(wrong) = self.mutated(command) {
            return wrong.is_empty();
        }
        match &self.queued {
            None => command.own.is_empty(),
            Some(queued) => !command.is("EXEC") || (queued.is_empty() && self.watched.is_empty()),
        }
    }

    #[cfg(feature = "mutants")]
    fn mutated(&self, command: &Static) -> Option<Footprint> {
        use crate::mutant::Mutant;
        match &self.queued {
            None if command.is("WATCH") && Mutant::WatchTouchesNothing.is_present() => {
                Some(Footprint::default())
            }
            Some(queued) if command.is("EXEC") && Mutant::ExecIgnoresWatched.is_present() => {
                Some(queued.clone())
            }
            _ => None,
        }
    }

    /// Takes note of a command that ran; `refused` if it was answered with an error.
    pub(crate) fn ran(&mut self, command: &Static, refused: bool) {
        let Some(row) = command.row else {
            return;
        };
        match (row.name(), &mut self.queued) {
            ("MULTI", queued) if !refused => *queued = Some(Footprint::default()),
            ("EXEC" | "DISCARD", Some(_)) | ("RESET", _) => *self = SessionState::default(),
            ("WATCH", None) if !refused => self.watched.extend_from_slice(&command.own.reads),
            ("UNWATCH", None) => self.watched.clear(),
            (_, Some(queued)) if !refused => queued.extend(&command.own),
            _ => {}
        }
    }
}

/// Where a command's keys are, and what it does with each.
pub(crate) fn key_positions(row: &Row, request: &Request) -> Vec<(usize, Access)> {
    let kind = if row.has(Flag::ReadOnly) || row.name() == "WATCH" {
        Access::Read
    } else {
        Access::Write
    };
    row.keys().positions(request, kind)
}

fn from_row(row: &'static Row, request: &Request) -> Footprint {
    let mut footprint = Footprint::default();
    for (at, access) in key_positions(row, request) {
        if let Some(key) = request.get(at) {
            footprint.add(hashed(key), access);
        }
    }
    if row.group() == Group::Geo && row.has(Flag::MovableKeys) {
        repeated_stores(request).for_each(|key| footprint.add(key, Access::Write));
    }
    match (row.group(), row.name()) {
        (Group::Scripting, "EVALSHA" | "EVALSHA_RO") => footprint.add(SCRIPT_CACHE, Access::Read),
        (Group::Scripting, "EVAL" | "EVAL_RO") => footprint.add(SCRIPT_CACHE, Access::Write),
        (Group::Scripting, "SCRIPT") => {
            let subcommand = request.get(1).unwrap_or_default().to_ascii_uppercase();
            match subcommand.as_slice() {
                b"LOAD" => footprint.add(SCRIPT_CACHE, Access::Write),
                b"EXISTS" => footprint.add(SCRIPT_CACHE, Access::Read),
                _ => {}
            }
        }
        (Group::Scripting, "FCALL" | "FCALL_RO") => footprint.add(FUNCTIONS, Access::Write),
        (Group::PubSub, name) if !hears_of_keys(name, request) => {
            footprint.add(CHANNELS, Access::Write);
        }
        // CLIENT can see and close other connections.
        (Group::Connection, name) if name != "CLIENT" => return Footprint::default(),
        (Group::Transactions, "MULTI" | "DISCARD" | "UNWATCH" | "EXEC") => {
            return Footprint::default();
        }
        _ => {}
    }
    if footprint.is_empty() {
        return Footprint::everything();
    }
    footprint
}

/// Whether a subscription may be to keyspace events, which any write can send.
fn hears_of_keys(name: &str, request: &Request) -> bool {
    match name {
        "PSUBSCRIBE" => true,
        "SUBSCRIBE" => request
            .words()
            .skip(1)
            .any(|channel| channel.starts_with(b"__key")),
        _ => false,
    }
}

/// A key's hash; the top bit is kept free for what is no key.
fn hashed(key: &[u8]) -> u64 {
    FixedState::default().hash_one(key) >> 1
}

/// Keys behind STORE and STOREDIST that the row does not name: of several the last one is written, but key specs see the first.
fn repeated_stores(request: &Request) -> impl Iterator<Item = u64> {
    let is_store = |word: &[u8]| {
        word.eq_ignore_ascii_case(b"STORE") || word.eq_ignore_ascii_case(b"STOREDIST")
    };
    let stores = move |at: &usize| request.get(*at).is_some_and(is_store);
    let options = (GEO_OPTIONS_AT..request.len()).filter(stores);
    options.filter_map(|at| request.get(at + 1)).map(hashed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn footprint(session: &SessionState, words: &[&str]) -> Footprint {
        session.footprint(&Static::of(&Request::new(words)))
    }

    fn run(session: &mut SessionState, words: &[&str]) {
        session.ran(&Static::of(&Request::new(words)), false);
    }

    #[test]
    fn reads_commute_and_writes_to_a_key_do_not() {
        let session = SessionState::default();
        let [get, set, other] = [
            &["GET", "k"][..],
            &["SET", "k", "v"],
            &["SET", "other", "v"],
        ]
        .map(|words| footprint(&session, words));
        assert!(!get.conflicts(&get));
        assert!(get.conflicts(&set) && set.conflicts(&get) && set.conflicts(&set));
        assert!(!set.conflicts(&other) && !get.conflicts(&other));
    }

    #[test]
    fn an_estimate_that_is_kept_is_a_write() {
        let session = SessionState::default();
        let of = |words: &[&str]| footprint(&session, words);
        let (one, several) = (of(&["PFCOUNT", "k"]), of(&["PFCOUNT", "k", "other"]));
        assert!(one.conflicts(&of(&["GET", "k"])) && one.conflicts(&of(&["WATCH", "k"])));
        assert!(!several.conflicts(&of(&["GET", "k"])));
        let merge = of(&["PFMERGE", "k", "other"]);
        assert!(merge.conflicts(&of(&["GET", "k"])) && !merge.conflicts(&of(&["GET", "other"])));
    }

    #[test]
    fn a_search_writes_where_its_result_is_kept() {
        let session = SessionState::default();
        let of = |words: &str| {
            let words: Vec<_> = words.split(' ').collect();
            footprint(&session, &words)
        };
        let read = |key: &str| of(&format!("ZCARD {key}"));
        let search = of("GEORADIUS k 1 2 3 km");
        assert!(!search.conflicts(&read("k")) && search.conflicts(&of("DEL k")));
        let stored = of("GEORADIUSBYMEMBER k m 3 km STORE a STOREDIST b store c");
        for (key, written) in [
            ("a", true),
            ("b", true),
            ("c", true),
            ("k", false),
            ("m", false),
        ] {
            assert_eq!(stored.conflicts(&read(key)), written, "{key}");
        }
        let stored = of("GEOSEARCHSTORE to from FROMMEMBER m BYRADIUS 1 km");
        assert!(stored.conflicts(&read("to")) && !stored.conflicts(&read("from")));
    }

    #[test]
    fn messages_and_keys_commute_unless_keys_are_listened_to() {
        let session = SessionState::default();
        let of = |words: &[&str]| footprint(&session, words);
        let (publish, set) = (of(&["PUBLISH", "c", "m"]), of(&["SET", "k", "v"]));
        assert!(!publish.conflicts(&set));
        assert!(publish.conflicts(&of(&["SUBSCRIBE", "c"])));
        assert!(!of(&["SUBSCRIBE", "c"]).conflicts(&set));
        for events in [
            &["SUBSCRIBE", "c", "__keyevent@0__:set"][..],
            &["PSUBSCRIBE", "c*"],
        ] {
            assert!(of(events).conflicts(&set), "{events:?}");
        }
    }

    #[test]
    fn a_script_is_loaded_for_those_who_call_it() {
        let session = SessionState::default();
        let of = |words: &[&str]| footprint(&session, words);
        let load = of(&["SCRIPT", "LOAD", "return 1"]);
        assert!(load.conflicts(&of(&["EVALSHA", "f", "0"])));
        assert!(load.conflicts(&of(&["script", "exists", "f"])));
        assert!(!load.conflicts(&of(&["SET", "k", "v"])));
        assert!(of(&["SCRIPT", "FLUSH"]).conflicts(&of(&["SET", "k", "v"])));
    }

    #[test]
    fn functions_may_see_what_other_functions_keep() {
        let session = SessionState::default();
        let [one, other] = ["k", "other"].map(|key| footprint(&session, &["FCALL", "f", "1", key]));
        assert!(one.conflicts(&other));
        assert!(!one.conflicts(&footprint(&session, &["GET", "other"])));
        let load = footprint(&session, &["FUNCTION", "LOAD", "code"]);
        assert!(load.conflicts(&one));
    }

    #[test]
    fn exec_touches_what_was_watched_and_queued() {
        let mut session = SessionState::default();
        run(&mut session, &["WATCH", "w"]);
        run(&mut session, &["MULTI"]);
        assert!(footprint(&session, &["SET", "q", "v"]).is_empty());
        run(&mut session, &["SET", "q", "v"]);
        let exec = footprint(&session, &["EXEC"]);
        let plain = SessionState::default();
        assert!(exec.conflicts(&footprint(&plain, &["SET", "w", "v"])));
        assert!(!exec.conflicts(&footprint(&plain, &["GET", "w"])));
        assert!(exec.conflicts(&footprint(&plain, &["GET", "q"])));
        assert!(!exec.conflicts(&footprint(&plain, &["SET", "x", "v"])));
        run(&mut session, &["EXEC"]);
        assert!(footprint(&session, &["EXEC"]).is_empty());
    }

    #[test]
    fn a_command_without_keys_conflicts_with_all_but_local_ones() {
        let session = SessionState::default();
        let everything = Footprint::everything();
        assert!(everything.conflicts(&footprint(&session, &["GET", "k"])));
        assert!(everything.conflicts(&footprint(&session, &["NOSUCHCOMMAND"])));
        for local in [&["MULTI"][..], &["UNWATCH"], &["PING"]] {
            assert!(footprint(&session, local).is_empty(), "{local:?}");
        }
    }
}
