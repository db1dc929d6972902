//! [`Footprint`]: what a command reads and writes, hence which commands commute. It follows from the command's row; for EXEC
//! from what the connection watched and queued; for scripts from the keys that they declare, and afterwards from the commands
//! that they called.
//!
//! This is what every reduction trusts: a footprint may name too much, never too little. Keys and elements are kept as hashes,
//! since two that share one only make more commands dependent.
//!
//! # What commuting means
//! Two commands whose footprints do not conflict can change places between neighbours: each gets the reply that it got, whoever
//! waits for keys or listens to channels hears the same, and the key space is equal afterwards: the same keys with the same
//! values, times to live and watchers. Not a part of that is
//! * in which order the table of keys holds the keys, and a hash or set its elements, and in which encoding,
//! * the state of connections and the statistics that CLIENT LIST, INFO, MONITOR or SLOWLOG tell, which commands change that
//!   touch nothing otherwise,
//!
//! as long as no command looks. Whoever uses footprints must note those that do ([`Static::reveals`]) and then take more for
//! dependent ([`Footprint::coarsen`], [`Footprint::mind_order_of_keys`], [`Footprint::mind_connections`]).
//!
//! # Time
//! The clock does not move by itself: in an exploration it moves by acts that nobody's connection does and that touch
//! everything, and by timers when no command can run. Commands that read the clock (TTL, SET with EX) have a mark for it, so that
//! it is known whom the passing of time concerns besides the keys that expire.

mod elements;
mod rows;
mod session;

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

#[cfg(feature = "sweep")]
use crate::calls::Calls;
use crate::command::Access;

pub(crate) use rows::key_positions;
pub(crate) use session::{Audience, SessionState, Static};

/// Keys' hashes are below this: what is above stands for something that is no key.
const NO_KEY: u64 = 1 << 63;
/// The script cache, which EVALSHA reads and EVAL fills.
const SCRIPT_CACHE: u64 = NO_KEY;
/// What libraries of functions keep between calls.
const FUNCTIONS: u64 = NO_KEY + 1;
/// Channels and who listens to them.
const CHANNELS: u64 = NO_KEY + 2;
/// The server's random numbers: each that is drawn changes the next.
const CHANCE: u64 = NO_KEY + 3;
/// The time of day.
const CLOCK: u64 = NO_KEY + 4;
/// In which order the table of keys holds them.
#[cfg(feature = "explore")]
const ORDER_OF_KEYS: u64 = NO_KEY + 5;

/// The states between two steps, for whom they are looked at.
#[cfg(feature = "explore")]
const STATES: u64 = NO_KEY + 8;

/// Connections, their state and the statistics of what they did.
const CONNECTIONS: u64 = NO_KEY + 6;

/// What a command touches.
#[cfg_attr(
    not(feature = "explore"),
    allow(unreachable_pub, reason = "the explorer makes it public")
)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    touches: Touches,
    everything: bool,
}

/// Most commands touch one key or two.
type Touches = SmallVec<[Touch; 2]>;

/// A key, or what stands for something else, and what is done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Touch {
    key: u64,
    part: Part,
}

/// What is touched of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Any of it is read, but for the order of its elements.
    Read,
    /// Any of it may change.
    Write,
    /// One element.
    Element {
        kind: Kind,
        element: u64,
        deed: Deed,
    },
}

/// What kind of value an element belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Hash,
    Set,
    SortedSet,
}

/// What is done with an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    /// Looked up.
    Read,
    /// Set or added, with the key if there is none.
    Put,
    /// Taken out, with the key if it was the last.
    Remove,
}

impl Part {
    fn writes(self) -> bool {
        !matches!(
            self,
            Part::Read
                | Part::Element {
                    deed: Deed::Read,
                    ..
                }
        )
    }

    /// Whether the order of two accesses to one key can matter.
    fn conflicts(self, other: Part) -> bool {
        if !self.writes() && !other.writes() {
            return false;
        }
        match (self, other) {
            (
                Part::Element {
                    kind,
                    element,
                    deed,
                },
                Part::Element {
                    kind: other_kind,
                    element: other_element,
                    deed: other_deed,
                },
            ) if kind == other_kind && element != other_element => {
                // The last element takes the key with its time to live along.
                matches!(
                    (deed, other_deed),
                    (Deed::Put, Deed::Remove) | (Deed::Remove, Deed::Put)
                )
            }
            _ => true,
        }
    }

    /// Whether what conflicts with the other one conflicts with this too.
    fn covers(self, other: Part) -> bool {
        match (self, other) {
            (Part::Write, _) => true,
            (Part::Read, other) => !other.writes(),
            (
                Part::Element {
                    kind,
                    element,
                    deed,
                },
                Part::Element {
                    kind: other_kind,
                    element: other_element,
                    deed: other_deed,
                },
            ) => {
                (kind, element) == (other_kind, other_element)
                    && (deed == other_deed || other_deed == Deed::Read)
            }
            (Part::Element { .. }, _) => false,
        }
    }

    fn whole(self) -> Part {
        if self.writes() {
            Part::Write
        } else {
            Part::Read
        }
    }
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

    /// Whether it touches nothing that another connection can see.
    pub fn is_empty(&self) -> bool {
        !self.everything && self.touches.is_empty()
    }

    /// Whether it may change something.
    #[cfg(feature = "explore")]
    pub fn may_write(&self) -> bool {
        self.everything || self.touches.iter().any(|touch| touch.part.writes())
    }

    #[cfg(feature = "mutants")]
    pub(crate) fn without_writes(mut self) -> Footprint {
        for touch in &mut self.touches {
            touch.part = Part::Read;
        }
        self
    }

    /// Whether the order of two commands with these footprints can matter.
    pub fn conflicts(&self, other: &Footprint) -> bool {
        if self.is_empty() || other.is_empty() {
            return false;
        }
        self.everything
            || other.everything
            || self.touches.iter().any(|touch| {
                let mut others = other.touches.iter();
                others.any(|other| touch.key == other.key && touch.part.conflicts(other.part))
            })
    }

    /// Whether all that conflicts with the other one conflicts with this.
    #[cfg(feature = "explore")]
    pub fn covers(&self, other: &Footprint) -> bool {
        self.everything || (!other.everything && other.touches.iter().all(|touch| self.has(*touch)))
    }

    fn has(&self, other: Touch) -> bool {
        let mut touches = self.touches.iter();
        touches.any(|touch| touch.key == other.key && touch.part.covers(other.part))
    }

    fn push(&mut self, key: u64, part: Part) {
        let touch = Touch { key, part };
        if !self.has(touch) {
            self.touches.push(touch);
        }
    }

    fn add(&mut self, key: u64, access: Access) {
        let part = match access {
            Access::Read => Part::Read,
            Access::Write => Part::Write,
        };
        self.push(key, part);
    }

    pub(crate) fn extend(&mut self, other: &Footprint) {
        for touch in &other.touches {
            self.push(touch.key, touch.part);
        }
        self.everything |= other.everything;
    }

    /// What is left of it if it only changes the state of its connection.
    pub(crate) fn of_connections(&self) -> Footprint {
        let touches = self.touches.iter().copied();
        Footprint {
            touches: touches.filter(|touch| touch.key == CONNECTIONS).collect(),
            everything: false,
        }
    }

    /// Forgets which elements of these keys are touched.
    pub(crate) fn coarsen(&mut self, is_whole: impl Fn(u64) -> bool) {
        let fine = |touch: &Touch| matches!(touch.part, Part::Element { .. });
        if !self
            .touches
            .iter()
            .any(|touch| fine(touch) && is_whole(touch.key))
        {
            return;
        }
        for Touch { key, part } in std::mem::take(&mut self.touches) {
            let part = if is_whole(key) { part.whole() } else { part };
            self.push(key, part);
        }
    }
}

/// A key's hash.
fn hashed(key: &[u8]) -> u64 {
    FixedState::default().hash_one(key) & (NO_KEY - 1)
}

#[cfg(feature = "sweep")]
impl Footprint {
    /// What scripts have touched that called these commands.
    pub(crate) fn of_calls(calls: &Calls) -> Footprint {
        let mut footprint = Footprint {
            everything: calls.are_more,
            ..Footprint::default()
        };
        for request in &calls.requests {
            footprint.extend(&Static::of(request).own);
        }
        footprint
    }

    /// What the passing of time touches, but for keys that expire.
    pub(crate) fn of_time() -> Footprint {
        let mut footprint = Footprint::default();
        footprint.push(CLOCK, Part::Write);
        footprint
    }
}

#[cfg(feature = "explore")]
impl Footprint {
    /// From now on it conflicts with all others of which this was said.
    pub(crate) fn shows_in_states(&mut self) {
        self.push(STATES, Part::Write);
    }

    /// That of what empties the script cache.
    pub(crate) fn script_cache() -> Footprint {
        let mut footprint = Footprint::default();
        footprint.push(SCRIPT_CACHE, Part::Write);
        footprint
    }

    /// Keys of which it touches single elements.
    pub(crate) fn fine_keys(&self) -> impl Iterator<Item = u64> {
        let fine = |touch: &&Touch| matches!(touch.part, Part::Element { .. });
        self.touches.iter().filter(fine).map(|touch| touch.key)
    }

    /// Takes for dependent all that may change the order in which the table of keys holds them. Looking at a due key removes it.
    pub(crate) fn mind_order_of_keys(&mut self) {
        if self.touches.iter().any(|touch| touch.key < NO_KEY) {
            self.push(ORDER_OF_KEYS, Part::Write);
        }
    }

    /// Takes for visible what otherwise only its own connection sees.
    pub(crate) fn mind_connections(&mut self) {
        self.push(CONNECTIONS, Part::Read);
    }

    /// Takes in what happens because of it: clients that wait for its keys are served, and those who listen hear of it.
    pub(crate) fn surround(&mut self, waiting: &[Footprint], audience: Audience) {
        let mut served: SmallVec<[bool; 4]> = waiting.iter().map(|_| false).collect();
        while let Some(at) =
            (0..waiting.len()).find(|at| !served[*at] && self.serves(&waiting[*at]))
        {
            served[at] = true;
            self.extend(&waiting[at]);
        }
        match audience {
            Audience::Nobody => {}
            Audience::Events if self.touches.iter().any(|touch| touch.key < NO_KEY) => {
                // They come in one order with all that is published.
                self.push(CHANNELS, Part::Write);
            }
            Audience::Events => {}
            Audience::Everybody => self.everything |= !self.is_empty(),
        }
    }

    /// Whether a command that waits for keys may be run because of this one.
    fn serves(&self, waiting: &Footprint) -> bool {
        let writes = |key: u64| {
            let mut touches = self.touches.iter();
            touches.any(|touch| touch.key == key && touch.part.writes())
        };
        self.everything || waiting.touches.iter().any(|touch| writes(touch.key))
    }

    /// What is missing here of another one, if it is no key.
    pub(crate) fn lacks(&self, other: &Footprint) -> Footprint {
        if self.everything {
            return Footprint::default();
        }
        if other.everything {
            return Footprint::everything();
        }
        let missing = other.touches.iter().filter(|touch| !self.has(**touch));
        let touches: Touches = missing.copied().collect();
        if touches.iter().any(|touch| touch.key < NO_KEY) {
            return Footprint::everything();
        }
        Footprint {
            touches,
            everything: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Request;

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

    #[cfg(feature = "explore")]
    #[test]
    fn elements_of_a_key_commute_until_the_last_may_go() {
        let fine = |words: &str| {
            let words: Vec<_> = words.split(' ').collect();
            Static::fine(&Request::new(words)).own.clone()
        };
        for (one, other, conflict) in [
            ("HSET h a 1 b 2", "HSET h c 1", false),
            ("HSET h a 1 b 2", "HSET h b 1", true),
            ("HSET h a b", "HGET h b", false),
            ("HMGET h a b", "HINCRBY h b 1", true),
            ("HDEL h a", "HGET h b", false),
            ("HDEL h a", "HDEL h b c", false),
            ("HDEL h a", "HSET h b 1", true),
            ("HSET h a 1", "HLEN h", true),
            ("HSET h a 1", "WATCH h", true),
            ("HGET h a", "HLEN h", false),
            ("HSET h a 1", "SADD h b", true),
            ("HGET h a", "SISMEMBER h b", false),
            ("ZADD z NX CH 1 a 2 b", "ZSCORE z b", true),
            ("ZADD z NX CH 1 a 2 b", "ZADD z INCR 1 c", false),
            ("ZINCRBY z 1 a", "ZREM z b", true),
            ("SMOVE s t a", "SREM s b", false),
            ("SMOVE s t a", "SADD t b", false),
            ("SMOVE s t a", "SADD s b", true),
            ("GEOADD g 1 1 a", "ZADD g 1 b", true),
        ] {
            let (one_print, other_print) = (fine(one), fine(other));
            assert_eq!(
                one_print.conflicts(&other_print),
                conflict,
                "{one}; {other}"
            );
            assert_eq!(
                other_print.conflicts(&one_print),
                conflict,
                "{other}; {one}"
            );
            let session = SessionState::default();
            let whole = |words: &str| footprint(&session, &words.split(' ').collect::<Vec<_>>());
            assert!(whole(one).covers(&one_print) && whole(other).covers(&other_print));
        }
    }

    #[test]
    fn a_sort_by_other_keys_reads_any_key() {
        let session = SessionState::default();
        let of = |words: &[&str]| footprint(&session, words);
        let set = of(&["SET", "weight_1", "2"]);
        assert!(of(&["SORT", "l", "BY", "weight_*"]).conflicts(&set));
        assert!(of(&["SORT_RO", "l", "GET", "*"]).conflicts(&set));
        assert!(!of(&["SORT", "l", "BY", "nosort", "GET", "#"]).conflicts(&set));
    }

    #[test]
    fn a_key_that_goes_to_another_server_touches_everything() {
        let session = SessionState::default();
        let of = |words: &[&str]| footprint(&session, words);
        let migrate = of(&["MIGRATE", "localhost", "6379", "k", "0", "100"]);
        assert!(migrate.conflicts(&of(&["GET", "other"])));
        assert!(migrate.conflicts(&migrate));
    }

    #[cfg(feature = "explore")]
    #[test]
    fn who_waits_or_listens_makes_other_commands_dependent() {
        let session = SessionState::default();
        let of = |words: &[&str]| footprint(&session, words);
        let (from, to) = (of(&["RPUSH", "from", "a"]), of(&["RPUSH", "to", "b"]));
        let around = |print: &Footprint, waiting: &[Footprint], audience: Audience| {
            let mut print = print.clone();
            print.surround(waiting, audience);
            print
        };
        let waiting = [
            of(&["BLMOVE", "between", "to", "LEFT", "LEFT", "0"]),
            of(&["BLMOVE", "from", "between", "LEFT", "LEFT", "0"]),
        ];
        assert!(!from.conflicts(&to));
        assert!(around(&from, &waiting, Audience::Nobody).conflicts(&to));
        let publish = of(&["PUBLISH", "c", "m"]);
        for other in [&to, &publish] {
            let [one, other] = [&from, other].map(|print| around(print, &[], Audience::Events));
            assert!(one.conflicts(&other));
        }
        assert!(!around(&from, &[], Audience::Events).conflicts(&of(&["TIME"])));
        assert!(around(&from, &[], Audience::Everybody).conflicts(&to));
    }

    #[test]
    fn chance_and_use_are_seen_by_who_comes_next() {
        let session = SessionState::default();
        let of = |words: &[&str]| footprint(&session, words);
        assert!(of(&["SRANDMEMBER", "s"]).conflicts(&of(&["HRANDFIELD", "h"])));
        assert!(of(&["OBJECT", "IDLETIME", "k"]).conflicts(&of(&["GET", "k"])));
        assert!(!of(&["OBJECT", "IDLETIME", "k"]).conflicts(&of(&["GET", "other"])));
        assert!(of(&["RESET"]).conflicts(&of(&["PUBLISH", "c", "m"])));
        assert!(!of(&["TIME"]).is_empty());
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
