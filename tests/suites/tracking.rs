//! CLIENT TRACKING where no transcript can follow: messages to connections that are named by the numbers that a server gave
//! them, and what a server forgets at random or as time goes by.
//!
//! In a script, `a> WORD ...` sends a request, `a: LINE LINE ...` is the next thing that connection a receives, `<a>` its
//! number, `hello3 a` changes its
//! protocol, and `close a` ends it. Nothing more than is written comes to any connection.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use fakeserver::wire::request::split_words;
use tests::frame::Frame;
use tests::raw::{PATIENCE, Raw, Received};
use tests::server::Backend;

/// How long a connection must stay silent at the end.
const SILENCE: Duration = Duration::from_millis(40);

struct Clients<'a> {
    backend: &'a Backend,
    open: BTreeMap<char, Raw>,
    numbers: BTreeMap<char, i64>,
}

impl Clients<'_> {
    fn raw(&mut self, name: char) -> &mut Raw {
        let (backend, numbers) = (self.backend, &mut self.numbers);
        self.open.entry(name).or_insert_with(|| {
            let mut raw = backend.raw();
            let reply = raw.call(&["CLIENT", "ID"]).to_lines().concat();
            let id = reply.strip_prefix(":").map(str::parse);
            let Some(Ok(id)) = id else {
                panic!("CLIENT ID replies with a number");
            };
            numbers.insert(name, id);
            raw
        })
    }

    /// A script's line with numbers in the place of names.
    fn numbered(&mut self, line: &str) -> String {
        let mut text = String::new();
        let mut rest = line;
        while let Some((before, behind)) = rest.split_once('<') {
            let name = behind.chars().next().unwrap();
            if !self.numbers.contains_key(&name) {
                self.raw(name);
            }
            text.push_str(before);
            text.push_str(&self.numbers[&name].to_string());
            rest = &behind[2..];
        }
        text + rest
    }

    /// Ends a connection and waits until the server knows.
    fn close(&mut self, name: char) {
        self.open.remove(&name);
        let id = format!("id={} ", self.numbers[&name]);
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let list = self.backend.raw().call(&["CLIENT", "LIST"]);
            if !list.to_lines().iter().any(|line| line.contains(&id)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("the server does not notice that {name} is gone");
    }
}

fn play(script: &str) {
    Backend::each(|backend| {
        let mut clients = Clients {
            backend,
            open: BTreeMap::new(),
            numbers: BTreeMap::new(),
        };
        for line in script.lines().map(str::trim) {
            let numbered = clients.numbered(line);
            if let Some(name) = line.strip_prefix("close ") {
                clients.close(name.chars().next().unwrap());
                continue;
            }
            if let Some((version, name)) = line
                .strip_prefix("hello")
                .and_then(|rest| rest.split_once(' '))
            {
                let raw = clients.raw(name.chars().next().unwrap());
                let hello = raw.call(&["HELLO", version]);
                assert!(!hello.is_error(), "{line}");
                continue;
            }
            let (name, text) = numbered.split_at(3);
            let raw = clients.raw(name.chars().next().unwrap());
            if name.ends_with("> ") {
                raw.request(&split_words(text.as_bytes()).unwrap());
                continue;
            }
            let got = match raw.receive(PATIENCE) {
                Received::Frame(frame) => frame.to_lines().join(" "),
                other => format!("{other:?}"),
            };
            assert_eq!(got, text, "{line} on {:?}", backend.kind());
        }
        for (name, mut raw) in clients.open {
            let more = raw.receive(SILENCE);
            assert_eq!(more, Received::Silence, "{name} on {:?}", backend.kind());
        }
    });
}

#[test]
fn a_subscriber_in_resp2_hears_for_another_connection() {
    play(
        "b> SUBSCRIBE __redis__:invalidate
        b: *3 $9 subscribe $20 __redis__:invalidate :1
        a> CLIENT TRACKING ON REDIRECT <b>
        a: +OK
        a> CLIENT GETREDIR
        a: :<b>
        a> CLIENT TRACKINGINFO
        a: *6 $5 flags *1 $2 on $8 redirect :<b> $8 prefixes *0
        a> GET k
        a: $-1
        c> SET k 1
        b: *3 $7 message $20 __redis__:invalidate *1 $1 k
        c: +OK
        c> SET k 1
        c: +OK
        a> GET k
        a: $1 1
        a> SET k 2
        a: +OK
        b: *3 $7 message $20 __redis__:invalidate *1 $1 k
        c> FLUSHALL
        b: *3 $7 message $20 __redis__:invalidate $-1
        c: +OK
        a> FLUSHALL
        b: *3 $7 message $20 __redis__:invalidate $-1
        a: +OK
        b> UNSUBSCRIBE
        b: *3 $11 unsubscribe $20 __redis__:invalidate :0
        a> GET k
        a: $-1
        c> SET k 3
        c: +OK
        b> PSUBSCRIBE x*
        b: *3 $10 psubscribe $2 x* :1
        a> GET k
        a: $1 3
        c> SET k 4
        b: *3 $7 message $20 __redis__:invalidate *1 $1 k
        c: +OK
        a> CLIENT TRACKING OFF
        a: +OK
        a> CLIENT GETREDIR
        a: :-1",
    );
}

#[test]
fn all_keys_are_spelled_in_the_protocol_of_who_asked() {
    play(
        "b> SUBSCRIBE x
        b: *3 $9 subscribe $1 x :1
        hello3 a
        a> CLIENT TRACKING ON REDIRECT <b>
        a: +OK
        c> FLUSHALL
        b: *3 $7 message $20 __redis__:invalidate _
        c: +OK
        a> FLUSHALL
        a: +OK
        b: *3 $7 message $20 __redis__:invalidate _
        a> MULTI
        a: +OK
        a> GET k
        a: +QUEUED
        a> FLUSHALL
        a: +QUEUED
        a> EXEC
        a: *2 _ +OK
        b: *3 $7 message $20 __redis__:invalidate _
        hello3 d
        a> CLIENT TRACKING ON REDIRECT <d>
        a: +OK
        c> FLUSHALL
        c: +OK
        d: >2 $10 invalidate _
        hello2 a
        c> FLUSHALL
        c: +OK
        d: >2 $10 invalidate $-1
        a> FLUSHALL
        a: +OK
        d: >2 $10 invalidate $-1
        a> GET k
        a: $-1
        c> SET k 1
        c: +OK
        d: >2 $10 invalidate *1 $1 k",
    );
}

#[test]
fn a_connection_in_resp3_hears_for_others() {
    play(
        "hello3 b
        a> CLIENT TRACKING ON REDIRECT <b>
        a: +OK
        a> GET k
        a: $-1
        c> SET k 3
        b: >2 $10 invalidate *1 $1 k
        c: +OK
        hello3 a
        a> GET k
        a: $1 3
        a> MULTI
        a: +OK
        a> SET k 1
        a: +QUEUED
        a> GET k
        a: +QUEUED
        a> SET k 1
        a: +QUEUED
        a> EXEC
        a: *3 +OK $1 1 +OK
        b: >2 $10 invalidate *1 $1 k
        b: >2 $10 invalidate *1 $1 k
        b> SUBSCRIBE x
        b: >3 $9 subscribe $1 x :1
        a> GET k
        a: $1 1
        c> SET k 3
        b: >2 $10 invalidate *1 $1 k
        c: +OK
        e> CLIENT TRACKING ON REDIRECT <b>
        e: +OK
        e> GET k
        e: $1 3
        a> GET k
        a: $1 3
        c> SET k 3
        b: >2 $10 invalidate *1 $1 k
        b: >2 $10 invalidate *1 $1 k
        c: +OK
        a> CLIENT TRACKING OFF
        a: +OK
        a> CLIENT TRACKING ON BCAST PREFIX x REDIRECT <b>
        a: +OK
        c> MSET x1 1 x2 2
        b: >2 $10 invalidate *2 $2 x1 $2 x2
        c: +OK
        a> CLIENT TRACKING ON BCAST PREFIX y
        a: +OK
        c> MSET x1 1 y2 2
        a: >2 $10 invalidate *1 $2 x1
        a: >2 $10 invalidate *1 $2 y2
        c: +OK",
    );
}

#[test]
fn a_connection_that_hears_for_another_acts_itself() {
    play(
        r#"hello3 b
        a> CLIENT TRACKING ON REDIRECT <b>
        a: +OK
        b> SET k 3
        b: +OK
        a> GET k
        a: $1 3
        b> SET k 5
        b: >2 $10 invalidate *1 $1 k
        b: +OK
        a> GET k
        a: $1 5
        b> EXPIRE k 100
        b: :1
        b: >2 $10 invalidate *1 $1 k
        a> GET k
        a: $1 5
        b> ZADD z 1 m 2 n
        b: :2
        a> ZCARD z
        a: :2
        b> ZPOPMIN z
        b: *2 >2 $10 invalidate *1 $1 z $1 m ,1
        a> GET k
        a: $1 5
        b> EVAL "redis.call('SET','k',3) return 4" 0
        b: >2 $10 invalidate *1 $1 k
        b: :4
        a> MGET k l
        a: *2 $1 3 $-1
        b> MULTI
        b: +OK
        b> GET k
        b: +QUEUED
        b> SET k 5
        b: +QUEUED
        b> DEL l
        b: +QUEUED
        b> DEL z
        b: +QUEUED
        b> EXEC
        b: *4 $1 3 >2 $10 invalidate *1 $1 k +OK :0 :1"#,
    );
}

#[test]
fn a_client_is_told_when_nobody_hears_for_it() {
    play(
        "c> SET k 5
        c: +OK
        hello3 a
        a> CLIENT TRACKING ON REDIRECT <f>
        a: +OK
        a> GET k
        a: $1 5
        close f
        c> SET k 4
        a: >2 $21 tracking-redir-broken :<f>
        c: +OK
        a> CLIENT TRACKINGINFO
        a: %3 $5 flags ~2 $2 on $15 broken_redirect $8 redirect :<f> $8 prefixes *0
        a> CLIENT GETREDIR
        a: :<f>
        a> GET k
        a: $1 4
        a> SET k 4
        a: +OK
        a: >2 $21 tracking-redir-broken :<f>
        a> FLUSHALL
        a: +OK
        a: >2 $21 tracking-redir-broken :<f>
        c> FLUSHALL
        a: >2 $21 tracking-redir-broken :<f>
        c: +OK
        hello2 a
        a> GET k
        a: $-1
        c> SET k 4
        c: +OK
        a> CLIENT TRACKINGINFO
        a: *6 $5 flags *2 $2 on $15 broken_redirect $8 redirect :<f> $8 prefixes *0
        a> CLIENT TRACKING ON
        a: +OK
        a> CLIENT TRACKINGINFO
        a: *6 $5 flags *1 $2 on $8 redirect :0 $8 prefixes *0
        hello3 a
        a> CLIENT TRACKING ON REDIRECT <a>
        a: +OK
        a> GET k
        a: $1 4
        a> SET k 4
        a: +OK
        a: >2 $10 invalidate *1 $1 k
        a> CLIENT TRACKING ON REDIRECT <g> REDIRECT <g>
        a: -ERR A client can only redirect to a single other client
        a> CLIENT TRACKING ON REDIRECT <g>
        a: +OK
        close g",
    );
}

/// The integer of a field of INFO.
fn field(raw: &mut Raw, section: &str, name: &str) -> i64 {
    let Frame::Blob(_, info) = raw.call(&["INFO", section]) else {
        panic!("INFO replies with text");
    };
    let info = String::from_utf8(info).unwrap();
    let mut fields = info.lines();
    let value = fields.find_map(|field| field.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap().parse().unwrap()
}

fn counts(raw: &mut Raw) -> [i64; 4] {
    [
        field(raw, "clients", "tracking_clients"),
        field(raw, "stats", "tracking_total_keys"),
        field(raw, "stats", "tracking_total_items"),
        field(raw, "stats", "tracking_total_prefixes"),
    ]
}

#[test]
fn info_counts_what_is_remembered() {
    Backend::each(|backend| {
        let (mut a, mut b) = (backend.raw(), backend.raw());
        a.call(&["CLIENT", "TRACKING", "ON"]);
        a.call(&["CLIENT", "TRACKING", "ON", "NOLOOP"]);
        assert_eq!(counts(&mut a), [1, 0, 0, 0]);
        a.call(&["MGET", "k", "l", "k"]);
        b.call(&["CLIENT", "TRACKING", "ON"]);
        b.call(&["MGET", "l", "m"]);
        assert_eq!(counts(&mut a), [2, 3, 4, 0]);
        a.call(&["SET", "l", "1"]);
        assert_eq!(counts(&mut a), [2, 2, 2, 0]);
        // Who is gone is found when the key changes.
        b.call(&["CLIENT", "TRACKING", "OFF"]);
        assert_eq!(counts(&mut a), [1, 2, 2, 0]);
        b.call(&["SET", "m", "1"]);
        assert_eq!(counts(&mut a), [1, 1, 1, 0]);
        b.call(&[
            "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "x", "PREFIX", "y",
        ]);
        a.call(&["RESET"]);
        a.call(&["CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "y"]);
        assert_eq!(counts(&mut a), [2, 1, 1, 2]);
        b.call(&["FLUSHALL"]);
        b.call(&["CLIENT", "TRACKING", "OFF"]);
        assert_eq!(counts(&mut a), [1, 0, 0, 1]);
        a.call(&["CLIENT", "TRACKING", "OFF"]);
        assert_eq!(counts(&mut a), [0, 0, 0, 0]);
    });
}

#[test]
fn client_list_shows_what_a_client_asked_for() {
    Backend::each(|backend| {
        let mut raw = backend.raw();
        let mut shown = |request: &[&str]| {
            if !request.is_empty() {
                raw.call(&[&["CLIENT", "TRACKING"], request].concat());
            }
            let info = raw.call(&["CLIENT", "INFO"]).to_lines().concat();
            let field = |name: &str| {
                let mut fields = info.split(' ');
                let value = fields.find_map(|field| field.strip_prefix(name));
                value.unwrap().to_owned()
            };
            (field("flags="), field("redir="))
        };
        let pair = |flags: &str, redirect: &str| (flags.to_owned(), redirect.to_owned());
        assert_eq!(shown(&[]), pair("N", "-1"));
        assert_eq!(shown(&["ON"]), pair("t", "0"));
        assert_eq!(shown(&["OFF"]), pair("N", "-1"));
        assert_eq!(shown(&["ON", "BCAST"]), pair("tB", "0"));
    });
}

#[test]
fn too_many_keys_are_forgotten_some_at_a_time() {
    Backend::each(|backend| {
        let (mut reader, mut other) = (backend.raw(), backend.raw());
        reader.call(&["HELLO", "3"]);
        reader.call(&["CLIENT", "TRACKING", "ON"]);
        let keys: Vec<String> = (0..400).map(|n| format!("k{n}")).collect();
        let request: Vec<&str> = ["MGET"]
            .into_iter()
            .chain(keys.iter().map(String::as_str))
            .collect();
        reader.call(&request);
        other.call(&["CONFIG", "SET", "tracking-table-max-keys", "10"]);
        let mut forgotten = BTreeSet::new();
        while forgotten.len() < 390 {
            let Received::Frame(frame) = reader.receive(PATIENCE) else {
                panic!("only {} of 390 keys are forgotten", forgotten.len());
            };
            let lines = frame.to_lines();
            assert_eq!(lines[..4], [">2", "$10", "invalidate", "*1"]);
            assert!(keys.contains(&lines[5]) && forgotten.insert(lines[5].clone()));
        }
        assert_eq!(reader.receive(SILENCE), Received::Silence);
        assert_eq!(counts(&mut other), [1, 10, 10, 0]);
        other.call(&["CONFIG", "SET", "tracking-table-max-keys", "1000000"]);
    });
}

#[test]
fn a_client_hears_of_a_key_whose_time_is_over() {
    Backend::each(|backend| {
        let mut raw = backend.raw();
        raw.call(&["HELLO", "3"]);
        raw.call(&["CLIENT", "TRACKING", "ON"]);
        raw.call(&["SET", "k", "v", "PX", "20"]);
        raw.call(&["EXISTS", "k"]);
        let Received::Frame(frame) = raw.receive(PATIENCE) else {
            panic!("nobody is told");
        };
        assert_eq!(frame.to_lines().join(" "), ">2 $10 invalidate *1 $1 k");
    });
}
