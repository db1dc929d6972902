//! Wrong footprints, each of which has to be noticed.

use fakeserver::wire::Request;

use crate::pairs::{Check, Found};

/// What a wrong footprint does to a command.
enum Wrong {
    /// It touches nothing.
    Nothing,
    /// It touches what another command touches.
    Instead(fn(&Request) -> Vec<Vec<u8>>),
    /// That it ran is not noticed.
    Forgotten,
    /// Nothing comes of what it touches.
    Alone,
}

pub(crate) struct Mutant {
    name: &'static str,
    /// The rows that it gets wrong.
    rows: &'static [&'static str],
    /// The rows that these are tried with; none stands for all.
    with: &'static [&'static str],
    wrong: Wrong,
}

impl Mutant {
    pub(crate) fn concerns(&self, request: &Request) -> bool {
        let name = String::from_utf8_lossy(request.name()).to_ascii_lowercase();
        self.rows.contains(&name.as_str())
    }

    pub(crate) fn forgets(&self, request: &Request) -> bool {
        matches!(self.wrong, Wrong::Forgotten) && self.concerns(request)
    }

    pub(crate) fn isolates(&self, request: &Request) -> bool {
        matches!(self.wrong, Wrong::Alone) && self.concerns(request)
    }

    /// The command whose footprint is taken; none if that is empty.
    pub(crate) fn instead(&self, request: &Request) -> Option<Request> {
        match self.wrong {
            Wrong::Nothing if self.concerns(request) => None,
            Wrong::Instead(words) if self.concerns(request) => Some(Request::new(words(request))),
            _ => Some(request.clone()),
        }
    }
}

/// The same words under another name.
fn renamed(request: &Request, name: &str) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = request.words().map(<[u8]>::to_vec).collect();
    words[0] = name.as_bytes().to_vec();
    words
}

/// `name` of the first key.
fn of_key(request: &Request, name: &str) -> Vec<Vec<u8>> {
    let key = request.get(1).unwrap_or_default();
    vec![name.as_bytes().to_vec(), key.to_vec()]
}

const fn empty(name: &'static str, rows: &'static [&'static str]) -> Mutant {
    Mutant {
        name,
        rows,
        with: &[],
        wrong: Wrong::Nothing,
    }
}

const fn instead(
    name: &'static str,
    rows: &'static [&'static str],
    words: fn(&Request) -> Vec<Vec<u8>>,
) -> Mutant {
    Mutant {
        name,
        rows,
        with: &[],
        wrong: Wrong::Instead(words),
    }
}

impl Mutant {
    const fn with(self, rows: &'static [&'static str]) -> Mutant {
        Mutant { with: rows, ..self }
    }
}

const HASHES: &[&str] = &["hdel", "hget", "hlen", "hset", "hsetnx"];

#[rustfmt::skip]
const MUTANTS: &[Mutant] = &[
    empty("GET touches nothing", &["get"]),
    empty("WATCH touches nothing", &["watch"]),
    Mutant { name: "EXEC ignores what is watched", rows: &["watch"], with: &[], wrong: Wrong::Forgotten },
    empty("TTL ignores the clock", &["ttl", "pttl"]).with(&["(advance)"]),
    empty("PUBLISH is heard by nobody", &["publish"]),
    empty("SUBSCRIBE is no matter of others", &["subscribe"]),
    Mutant { name: "LPUSH and RPUSH serve nobody", rows: &["lpush", "rpush"], with: &["lpush", "rpush", "lrange", "llen", "rpop"], wrong: Wrong::Alone },
    instead("INCR only reads", &["incr"], |request| of_key(request, "GET")),
    instead("PFCOUNT only reads", &["pfcount"], |request| renamed(request, "MGET")).with(&["dump", "get", "strlen", "watch"]),
    instead("GETEX only reads", &["getex"], |request| of_key(request, "GET")),
    instead("SORT ignores its target", &["sort"], |request| of_key(request, "LLEN")),
    instead("SORT ignores patterns", &["sort"], |request| {
        let words = renamed(request, "SORT");
        words.into_iter().filter(|word| !word.contains(&b'*')).collect()
    }).with(&["append", "del", "incr", "set", "hset"]),
    instead("OBJECT only reads", &["object"], |request| {
        vec![b"GET".to_vec(), request.get(2).unwrap_or_default().to_vec()]
    }).with(&["exists", "get", "hget", "lrange"]),
    instead("SRANDMEMBER draws nothing", &["srandmember"], |request| of_key(request, "SCARD"))
        .with(&["hrandfield", "srandmember", "zrandmember"]),
    instead("HDEL only reads", &["hdel"], |request| renamed(request, "HMGET")).with(HASHES),
    instead("ZREM takes no key along", &["zrem"], |request| {
        let mut words = renamed(request, "ZADD");
        words.splice(2..2, [b"1".to_vec()]);
        words.truncate(4);
        words
    }).with(&["zadd", "zincrby"]),
    instead("HLEN looks at one field", &["hlen"], |request| {
        [of_key(request, "HGET"), vec![b"nosuch".to_vec()]].concat()
    }).with(HASHES),
    instead("ZRANGE looks at one member", &["zrange"], |request| {
        [of_key(request, "ZSCORE"), vec![b"nosuch".to_vec()]].concat()
    }).with(&["zadd", "zincrby", "zrem"]),
    instead("SADD adds another member", &["sadd"], |request| {
        [of_key(request, "SADD"), vec![b"nosuch".to_vec()]].concat()
    }).with(&["sadd", "sismember", "smismember", "srem"]),
    instead("EVAL only reads", &["eval"], |request| renamed(request, "EVAL_RO"))
        .with(&["get", "hgetall", "incr", "lpush", "set"]),
];

/// Cases after which a wrong footprint counts as unnoticed.
const CASES_MAX: usize = 10_000;

#[test]
fn wrong_footprints_are_noticed() {
    for mutant in MUTANTS {
        let mut check = Check::new(11).with_mutant(mutant);
        let found = check.find(mutant.rows, mutant.with, CASES_MAX);
        assert!(matches!(found, Found::Fault(_)), "{}", mutant.name);
        eprintln!("{}: after {} cases", mutant.name, check.cases);
    }
}
