//! `MIGRATE` between two servers, in all ways in which fakes and redis-servers can be two: fake to fake, and with `REDIS_URL` set
//! also fake to real, real to fake, and real to real on redis-servers of the test's own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::time::Duration;

use fakeserver::config::Permission;
use fakeserver::{Builder, Clock, Config, Server};
use tests::frame::Frame;
use tests::local::LocalServer;
use tests::raw::{PATIENCE, Raw, Received};
use tests::server::real_url;

#[path = "migrate/strange.rs"]
mod strange;

/// Why nothing more can be read, to the client.
const READING: &str = "-IOERR error or timeout reading to target instance";

/// A server at one end.
enum End {
    Fake(Server),
    Real(LocalServer),
}

impl End {
    fn fake() -> End {
        End::Fake(builder().start())
    }

    /// A redis-server, if there are to be any.
    fn real() -> Option<End> {
        real_url()?;
        let settings = ["--save", "", "--enable-debug-command", "yes"];
        LocalServer::start(&settings).map(End::Real)
    }

    fn port(&self) -> u16 {
        match self {
            End::Fake(server) => server.port(),
            End::Real(server) => server.url().rsplit(':').next().unwrap().parse().unwrap(),
        }
    }

    fn raw(&self) -> Raw {
        Raw::tcp(("127.0.0.1", self.port())).unwrap()
    }

    fn name(&self) -> &'static str {
        match self {
            End::Fake(_) => "fake",
            End::Real(_) => "real",
        }
    }
}

fn builder() -> Builder {
    Server::builder().config(Config {
        enable_debug_command: Permission::Yes,
        ..Config::default()
    })
}

/// Two servers and a connection to each.
struct Pair {
    from: End,
    to: End,
    source: Raw,
    target: Raw,
}

impl Pair {
    fn new(from: End, to: End) -> Pair {
        let (source, target) = (from.raw(), to.raw());
        Pair {
            from,
            to,
            source,
            target,
        }
    }

    /// All pairs that there are here, one after the other.
    fn each(mut test: impl FnMut(&mut Pair)) {
        test(&mut Pair::new(End::fake(), End::fake()));
        let reals = (End::real(), End::real(), End::real(), End::real());
        if let (Some(a), Some(b), Some(c), Some(d)) = reals {
            test(&mut Pair::new(End::fake(), a));
            test(&mut Pair::new(b, End::fake()));
            test(&mut Pair::new(c, d));
        }
    }

    /// Requests, one a line: `a> ...` to the source, `b> ...` to the target, `->` to and what is wanted. PORT is the target's.
    fn check(&mut self, script: &str) {
        let names = format!("{} to {}", self.from.name(), self.to.name());
        for line in script
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            let (side, rest) = line.split_once("> ").unwrap();
            let (request, want) = rest.split_once(" -> ").unwrap_or((rest, ""));
            let request = request.replace("PORT", &self.to.port().to_string());
            let raw = if side == "a" {
                &mut self.source
            } else {
                &mut self.target
            };
            let got = ask(raw, &request);
            assert!(
                want.is_empty() || got == want,
                "{names}: {line}\n got {got}"
            );
        }
    }
}

/// A reply on one line; `''` among the words is an empty one.
fn ask(raw: &mut Raw, request: &str) -> String {
    raw.call(&words(request)).to_lines().join(" ")
}

fn words(request: &str) -> Vec<&str> {
    let words = request.split(' ');
    words
        .map(|word| if word == "''" { "" } else { word })
        .collect()
}

/// A line of INFO.
fn figure(raw: &mut Raw, name: &str) -> String {
    let Frame::Blob(_, info) = raw.call(&["INFO"]) else {
        panic!("no text");
    };
    let info = String::from_utf8(info).unwrap();
    let mut lines = info.lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap().to_owned()
}

/// Values of every type, in both encodings where there are two.
const VALUES: &[&str] = &[
    "SET s:int 12345",
    "SET s:text some-text",
    "SETRANGE s:long 5000 x",
    "RPUSH l:small a b 3",
    "SADD set:ints 1 2 3",
    "SADD set:text a b c",
    "HSET h:small f v g 7",
    "ZADD z:small 1 a 2.5 b -inf c",
    "XADD x 1-1 f v",
    "XADD x 2-1 g w",
    "XGROUP CREATE x group 0",
    "XREADGROUP GROUP group alice COUNT 1 STREAMS x >",
    "PFADD hll a b c",
    "GEOADD geo 13.361389 38.115556 Palermo",
];

/// A short string that was written piece by piece is none of the short ones until it is loaded, on redis-server too.
const CHANGES_ENCODING: &str = "hll";

#[test]
fn a_script_that_does_not_hold_is_noticed() {
    for wrong in [
        "a> MIGRATE 127.0.0.1 PORT k 0 5000 -> +NOKEY",
        "a> MIGRATE 127.0.0.1 PORT k 0 5000 COPY -> +OK\na> GET k -> $-1",
        "a> MIGRATE 127.0.0.1 PORT k 0 5000 -> +OK\nb> GET k -> $1 w",
    ] {
        let run = || {
            let mut pair = Pair::new(End::fake(), End::fake());
            pair.check("a> SET k v -> +OK");
            pair.check(wrong);
        };
        assert!(std::panic::catch_unwind(run).is_err(), "{wrong}");
    }
}

#[test]
fn values_of_all_types_arrive_as_they_were() {
    Pair::each(|pair| {
        for request in VALUES {
            ask(&mut pair.source, request);
        }
        for at in 0..600 {
            for (command, key) in [("SADD", "set:large"), ("RPUSH", "l:large")] {
                ask(&mut pair.source, &format!("{command} {key} member-{at}"));
            }
            ask(&mut pair.source, &format!("HSET h:large field-{at} {at}"));
            ask(&mut pair.source, &format!("ZADD z:large {at} member-{at}"));
        }
        let Frame::Items(_, keys) = pair.source.call(&["KEYS", "*"]) else {
            panic!("no array of keys");
        };
        let mut keys: Vec<String> = keys
            .into_iter()
            .map(|key| key.to_lines().pop().unwrap())
            .collect();
        keys.sort();
        assert_eq!(keys.len(), 15);
        let names = keys.join(" ");
        let digest = |raw: &mut Raw| ask(raw, &format!("DEBUG DIGEST-VALUE {names}"));
        let encodings = |raw: &mut Raw| -> Vec<String> {
            let keys = keys.iter().filter(|key| *key != CHANGES_ENCODING);
            let asked = keys.map(|key| ask(raw, &format!("OBJECT ENCODING {key}")));
            asked.collect()
        };
        let before = (digest(&mut pair.source), encodings(&mut pair.source));
        let port = pair.to.port();
        let moved = ask(
            &mut pair.source,
            &format!("MIGRATE 127.0.0.1 {port} '' 0 20000 KEYS {names}"),
        );
        assert_eq!(moved, "+OK");
        assert_eq!(
            (digest(&mut pair.target), encodings(&mut pair.target)),
            before
        );
        pair.check("a> DBSIZE -> :0\nb> DBSIZE -> :15");
        pair.check("b> XPENDING x group -> *4 :1 $3 1-1 $3 1-1 *1 *2 $5 alice $1 1");
    });
}

#[test]
fn keys_go_with_their_time_to_live_into_another_database() {
    Pair::each(|pair| {
        pair.check(
            "a> SELECT 2 -> +OK
             a> SET k v PX 100000 -> +OK
             a> SET for-ever v -> +OK
             a> MIGRATE 127.0.0.1 PORT '' 5 5000 KEYS k for-ever missing -> +OK
             a> DBSIZE -> :0
             b> DBSIZE -> :0
             b> SELECT 5 -> +OK
             b> TTL for-ever -> :-1
             b> GET k -> $1 v",
        );
        let left = ask(&mut pair.target, "PTTL k");
        let left: i64 = left.trim_start_matches(':').parse().unwrap();
        assert!((50_000..=100_000).contains(&left), "{left}");
        // The connection has that database selected still.
        pair.check(
            "a> SET k 2 -> +OK
             a> MIGRATE 127.0.0.1 PORT k 5 5000 REPLACE -> +OK
             a> SET k 3 -> +OK
             a> MIGRATE 127.0.0.1 PORT k 0 5000 -> +OK
             b> GET k -> $1 2
             b> SELECT 0 -> +OK
             b> GET k -> $1 3",
        );
    });
}

#[test]
fn what_the_target_refuses_stays_and_the_rest_goes() {
    Pair::each(|pair| {
        pair.check(
            "a> MSET a 1 b 2 c 3 -> +OK
             b> SET b old -> +OK
             a> MIGRATE 127.0.0.1 PORT '' 0 5000 KEYS a b c -> -ERR Target instance replied with error: BUSYKEY Target key name already exists.
             a> MGET a b c -> *3 $-1 $1 2 $-1
             b> MGET a b c -> *3 $1 1 $3 old $1 3
             a> MIGRATE 127.0.0.1 PORT b 0 5000 COPY REPLACE -> +OK
             a> GET b -> $1 2
             b> GET b -> $1 2
             a> MIGRATE 127.0.0.1 PORT b 99 5000 -> -ERR Target instance replied with error: ERR DB index is out of range
             a> MIGRATE 127.0.0.1 PORT b -1 5000 COPY REPLACE -> +OK
             a> GET b -> $1 2
             a> MIGRATE 127.0.0.1 PORT b 0 5000 AUTH pw -> -ERR Target instance replied with error: ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
             a> MIGRATE 127.0.0.1 PORT b 0 5000 AUTH2 nobody pw -> -ERR Target instance replied with error: WRONGPASS invalid username-password pair or user is disabled.
             b> ACL SETUSER mover on >pw +@all -restore ~* -> +OK
             a> MIGRATE 127.0.0.1 PORT b 0 5000 AUTH2 mover pw REPLACE -> -ERR Target instance replied with error: NOPERM this user has no permissions to run the 'restore' command
             b> ACL SETUSER mover +restore +select -> +OK
             a> MIGRATE 127.0.0.1 PORT b 0 5000 AUTH2 mover pw REPLACE -> +OK
             b> CONFIG SET requirepass secret -> +OK
             b> CLIENT KILL SKIPME yes TYPE normal -> :1
             a> SET q v -> +OK
             a> MIGRATE 127.0.0.1 PORT q 0 5000 -> -ERR Target instance replied with error: NOAUTH Authentication required.
             a> MIGRATE 127.0.0.1 PORT q 0 5000 AUTH secret -> +OK
             a> EXISTS q b -> :0
             b> CONFIG SET maxmemory 1 -> +OK
             a> SET q v -> +OK
             a> MIGRATE 127.0.0.1 PORT q 0 5000 -> -ERR Target instance replied with error: OOM command not allowed when used memory > 'maxmemory'.
             a> GET q -> $1 v",
        );
    });
}

#[test]
fn a_connection_is_kept_and_opened_anew_when_the_target_has_closed_it() {
    Pair::each(|pair| {
        pair.check("a> MSET a 1 b 2 c 3 -> +OK");
        let received = |raw: &mut Raw| -> usize {
            let figure = figure(raw, "total_connections_received");
            figure.parse().unwrap()
        };
        let before = received(&mut pair.target);
        pair.check(
            "a> MIGRATE 127.0.0.1 PORT a 0 5000 -> +OK
             a> MIGRATE 127.0.0.1 PORT b 0 5000 -> +OK",
        );
        assert_eq!(received(&mut pair.target), before + 1);
        assert_eq!(figure(&mut pair.source, "migrate_cached_sockets"), "1");
        pair.check(
            "b> CLIENT KILL SKIPME yes TYPE normal -> :1
             a> MIGRATE 127.0.0.1 PORT c 0 5000 -> +OK
             b> MGET a b c -> *3 $1 1 $1 2 $1 3",
        );
        assert_eq!(received(&mut pair.target), before + 2);
        // By another name of the same place it is another connection, and there are 64 of them at most.
        for zeros in 1..70 {
            let request = format!(
                "MIGRATE 127.0.0.1 {}PORT a 0 5000 REPLACE",
                "0".repeat(zeros)
            );
            pair.check(&format!("a> SET a 1 -> +OK\na> {request} -> +OK"));
        }
        assert_eq!(figure(&mut pair.source, "migrate_cached_sockets"), "64");
    });
}

#[test]
fn it_can_be_queued_and_called_by_scripts_and_watchers_and_listeners_hear_of_it() {
    Pair::each(|pair| {
        pair.check(
            "a> CONFIG SET notify-keyspace-events KEA -> +OK
             a> MSET a 1 b 2 c 3 d 4 -> +OK
             b> SET b old -> +OK",
        );
        let mut watcher = pair.from.raw();
        assert_eq!(ask(&mut watcher, "WATCH a"), "+OK");
        // What it causes itself, a client hears in front of the reply or behind it.
        let mut own = pair.from.raw();
        own.call(&["HELLO", "3"]);
        assert_eq!(
            ask(&mut own, "SUBSCRIBE __keyevent@0__:del"),
            ">3 $9 subscribe $18 __keyevent@0__:del :1"
        );
        let port = pair.to.port();
        own.request(&words(&format!(
            "MIGRATE 127.0.0.1 {port} '' 0 5000 KEYS a b c"
        )));
        let heard: Vec<String> = (0..3)
            .map(|_| match own.receive(PATIENCE) {
                Received::Frame(frame) => frame.to_lines().join(" "),
                other => panic!("{other:?}"),
            })
            .collect();
        let told = |key: &str| format!(">3 $7 message $18 __keyevent@0__:del $1 {key}");
        let error =
            "-ERR Target instance replied with error: BUSYKEY Target key name already exists.";
        assert_eq!(heard, [told("a"), error.to_owned(), told("c")]);
        assert_eq!(ask(&mut watcher, "MULTI"), "+OK");
        assert_eq!(ask(&mut watcher, "EXEC"), "*-1");
        pair.check(
            "a> MULTI -> +OK
             a> MIGRATE 127.0.0.1 PORT b 0 5000 REPLACE COPY -> +QUEUED
             a> MIGRATE 127.0.0.1 PORT nothing 0 5000 -> +QUEUED
             a> MIGRATE 127.0.0.1 PORT b 0 5000 -> +QUEUED
             a> EXEC -> *3 +OK +NOKEY -ERR Target instance replied with error: BUSYKEY Target key name already exists.
             b> GET b -> $1 2",
        );
        let script = "return {redis.call('MIGRATE', ARGV[1], ARGV[2], KEYS[1], 0, 5000), redis.call('EXISTS', KEYS[1])}";
        let port = port.to_string();
        let reply = pair
            .source
            .call(&["EVAL", script, "1", "d", "127.0.0.1", &port]);
        assert_eq!(reply.to_lines().join(" "), "*2 +OK :0");
        pair.check("b> GET d -> $1 4");
    });
}

#[test]
fn a_server_without_a_socket_has_no_way_to_another_one() {
    let (here, there) = (Server::new(), Server::start());
    here.command(["SET", "k", "v"]);
    let port = there.port().to_string();
    let reply = here.command(["MIGRATE", "127.0.0.1", &port, "k", "0", "1000"]);
    let wanted = "IOERR error or timeout connecting to the client";
    assert_eq!(
        reply,
        fakeserver::Reply::Error(fakeserver::CommandError::custom(wanted))
    );
}

#[test]
fn a_test_can_move_a_key_from_one_server_of_its_own_to_another() {
    let (here, there) = (Server::start(), Server::start());
    here.command(["SET", "k", "v"]);
    let port = there.port().to_string();
    let request = ["MIGRATE", "127.0.0.1", &port, "k", "0", "5000"];
    assert_eq!(here.command(request), fakeserver::Reply::OK);
    assert_eq!(there.command(["GET", "k"]), fakeserver::Reply::bulk("v"));
    assert_eq!(here.command(["GET", "k"]), fakeserver::Reply::Null);
}

#[test]
fn servers_that_migrate_to_each_other_and_to_themselves_come_to_an_end() {
    for (a, b) in [
        (Some(End::fake()), Some(End::fake())),
        (End::real(), End::real()),
    ] {
        let (Some(a), Some(b)) = (a, b) else { continue };
        let (mut one, mut other) = (a.raw(), b.raw());
        ask(&mut one, "SET there v");
        ask(&mut other, "SET back v");
        // Each waits for the other, which serves nobody meanwhile, if they begin at the same time.
        one.request(&words(&format!(
            "MIGRATE 127.0.0.1 {} there 0 100",
            b.port()
        )));
        other.request(&words(&format!(
            "MIGRATE 127.0.0.1 {} back 0 100",
            a.port()
        )));
        for raw in [&mut one, &mut other] {
            let Received::Frame(reply) = raw.receive(PATIENCE) else {
                panic!("no reply");
            };
            let reply = reply.to_lines().join(" ");
            assert!(reply == "+OK" || reply == READING, "{reply}");
        }
        ask(&mut one, "SET self v");
        let port = a.port();
        assert_eq!(
            ask(&mut one, &format!("MIGRATE 127.0.0.1 {port} self 1 100")),
            READING
        );
        assert_eq!(ask(&mut one, "GET self"), "$1 v");
    }
}

#[test]
fn a_connection_that_nobody_needs_is_closed_after_eleven_seconds() {
    let clock = Clock::frozen_at(1_700_000_000_000);
    let (here, there) = (builder().clock(clock).start(), Server::start());
    let port = there.port().to_string();
    here.command(["SET", "k", "v"]);
    assert_eq!(
        here.command(["MIGRATE", "127.0.0.1", &port, "k", "0", "5000"]),
        fakeserver::Reply::OK
    );
    let mut raw = Raw::tcp(("127.0.0.1", here.port())).unwrap();
    here.advance(Duration::from_millis(10_999));
    assert_eq!(figure(&mut raw, "migrate_cached_sockets"), "1");
    here.advance(Duration::from_millis(1));
    assert_eq!(figure(&mut raw, "migrate_cached_sockets"), "0");
}
