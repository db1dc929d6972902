//! [`World`]: an engine with a few sessions, and what each has heard.

use std::fmt::{Debug, Write as _};

use fakeserver::clock::Timestamp;
use fakeserver::command::lookup;
use fakeserver::config::Config;
use fakeserver::engine::{Engine, Peer};
use fakeserver::explore::{Footprint, Footprints, Granularity};
use fakeserver::session::SessionId;
use fakeserver::wire::{Reply, Request};

use crate::mutants::Mutant;

/// Words of a command.
pub(crate) type Words = Vec<Vec<u8>>;

/// Who sends a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    A,
    B,
    /// It may be blocked.
    Waiter,
    /// It may have subscribed.
    Listener,
    /// It fills the server and looks at it.
    Control,
}

const SESSIONS: usize = 5;

/// Something that can change places with something else.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Command(Words),
    /// Time passes, for keys and for whoever waits.
    Advance(i64),
}

/// An engine, and what it has done since it was new.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) footprints: Footprints,
    sessions: [SessionId; SESSIONS],
    heard: [Vec<Reply>; SESSIONS],
    now: Timestamp,
}

/// All that can be seen of a world, but for orders.
#[derive(Debug)]
pub(crate) struct Seen {
    heard: [Vec<Reply>; SESSIONS],
    keys: String,
    others: Vec<Reply>,
}

impl Seen {
    /// Whether both are the same. Of replies the text is compared, since NaN differs from itself.
    pub(crate) fn is(&self, other: &Seen) -> bool {
        self.keys == other.keys && format!("{self:?}") == format!("{other:?}")
    }

    /// Where two differ.
    pub(crate) fn difference(&self, other: &Seen) -> String {
        let mut text = String::new();
        let mut tell = |what: &str, one: &dyn Debug, other: &dyn Debug| {
            let (one, other) = (format!("{one:?}"), format!("{other:?}"));
            if one != other {
                let _ = writeln!(text, "  {what}: {one}\n  or: {other}");
            }
        };
        let whose = ["A", "B", "waiter", "listener", "control"];
        for (at, whose) in whose.iter().enumerate() {
            tell(whose, &self.heard[at], &other.heard[at]);
        }
        tell("keys", &self.keys, &other.keys);
        tell("others", &self.others, &other.others);
        text
    }
}

impl World {
    pub(crate) fn new() -> World {
        let config = Config {
            admin: true,
            ..Config::default()
        };
        let now = Timestamp::from_millis(1_700_000_000_000);
        let mut engine = Engine::new(config, now);
        let footprints = Footprints::of_engine(&mut engine, Granularity::Element);
        let sessions = [(); SESSIONS].map(|()| engine.connect_direct(Peer::default(), now));
        World {
            engine,
            footprints,
            sessions,
            heard: Default::default(),
            now,
        }
    }

    /// New connections, about which nothing is known.
    pub(crate) fn renew(&mut self) {
        for id in self.sessions {
            self.engine.disconnect(id);
        }
        let now = self.now;
        self.sessions = [(); SESSIONS].map(|()| self.engine.connect_direct(Peer::default(), now));
        self.forget();
        self.heard = Default::default();
    }

    /// What is known of footprints is forgotten.
    pub(crate) fn forget(&mut self) {
        self.footprints = Footprints::of_engine(&mut self.engine, Granularity::Element);
    }

    pub(crate) fn id(&self, who: Who) -> SessionId {
        self.sessions[who as usize]
    }

    /// Time passes without anything coming of it.
    pub(crate) fn pass(&mut self, millis: i64) {
        self.now = Timestamp::from_millis(self.now.millis() + millis);
    }

    /// Runs an act; what it touched.
    pub(crate) fn run(&mut self, who: Who, act: &Act, mutant: Option<&Mutant>) -> Footprint {
        let words = match act {
            Act::Command(words) => words,
            Act::Advance(millis) => {
                self.pass(*millis);
                self.engine.handle_timeout(self.now);
                self.listen();
                return everything();
            }
        };
        let request = Request::new(words);
        let id = self.id(who);
        self.listen();
        let before = self.heard[who as usize].len();
        self.engine.submit(id, request.clone(), self.now);
        self.listen();
        let refused = self.heard[who as usize][before..]
            .iter()
            .any(Reply::is_error);
        if mutant.is_some_and(|mutant| mutant.forgets(&request)) {
            return Footprint::default();
        }
        // What prepares a case is no command of a client.
        if who == Who::Control {
            return everything();
        }
        let engine = &mut self.engine;
        let footprint = self.footprints.ran(engine, id, &request, refused);
        match mutant {
            Some(mutant) if mutant.concerns(&request) => self.predict(who, act, Some(mutant)),
            _ => footprint,
        }
    }

    /// What an act will touch.
    pub(crate) fn predict(&mut self, who: Who, act: &Act, mutant: Option<&Mutant>) -> Footprint {
        let Act::Command(words) = act else {
            return everything();
        };
        let request = Request::new(words);
        let id = self.id(who);
        let instead = match mutant {
            Some(mutant) => mutant.instead(&request),
            None => Some(request),
        };
        if mutant.is_some_and(|mutant| mutant.isolates(&Request::new(words))) {
            return Footprints::default().predict(id, &Request::new(words));
        }
        match instead {
            Some(request) => self.footprints.predict(id, &request),
            None => Footprint::default(),
        }
    }

    /// Runs a command that is no part of what is compared; its reply.
    fn ask(&mut self, words: &[&str]) -> Reply {
        let id = self.id(Who::Control);
        self.engine.submit(id, Request::new(words), self.now);
        self.engine.poll_reply(id).expect("it is answered at once")
    }

    fn listen(&mut self) {
        for (id, heard) in self.sessions.iter().zip(&mut self.heard) {
            while let Some(reply) = self.engine.poll_reply(*id) {
                heard.push(in_order(reply));
            }
        }
    }

    /// What there is to see.
    pub(crate) fn look(&mut self) -> Seen {
        let keys = match self.ask(&["FAKE", "DUMP"]) {
            Reply::Verbatim(_, text) => String::from_utf8_lossy(text.as_ref()).into_owned(),
            reply => panic!("no dump: {reply:?}"),
        };
        let others = [
            &["FUNCTION", "LIST", "WITHCODE"][..],
            &["PUBSUB", "NUMPAT"],
            &["PUBSUB", "NUMSUB", "news", "sport"],
        ];
        Seen {
            heard: std::mem::take(&mut self.heard),
            keys,
            others: others.map(|words| self.ask(words)).to_vec(),
        }
    }

    /// Whether each of them would find its transaction aborted.
    pub(crate) fn probe(&mut self) {
        for who in [Who::A, Who::B] {
            for name in ["MULTI", "EXEC"] {
                self.engine
                    .submit(self.id(who), Request::new([name]), self.now);
            }
        }
        self.listen();
    }
}

/// The members of sets and the pairs of maps in one order: through Lua they come in that of its tables.
fn in_order(reply: Reply) -> Reply {
    let all = |items: Vec<Reply>| -> Vec<Reply> { items.into_iter().map(in_order).collect() };
    match reply {
        Reply::Array(items) => Reply::Array(all(items)),
        Reply::Set(items) => {
            let mut items = all(items);
            items.sort_by_cached_key(|item| format!("{item:?}"));
            Reply::Set(items)
        }
        Reply::Map(pairs) => {
            let pairs = pairs.into_iter();
            let mut pairs: Vec<_> = pairs
                .map(|(key, value)| (in_order(key), in_order(value)))
                .collect();
            pairs.sort_by_cached_key(|pair| format!("{pair:?}"));
            Reply::Map(pairs)
        }
        other => other,
    }
}

fn everything() -> Footprint {
    let mut footprints = Footprints::default();
    let flush = Request::new(["FLUSHALL"]);
    assert!(lookup(flush.name()).is_some());
    footprints.predict(SessionId(0), &flush)
}
