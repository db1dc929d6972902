//! What no transcript can hold: requests with an address that a server gives, work in the background, the end of a server,
//! and replies that tell of every command.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fakeserver::clock::Clock;
use fakeserver::config::Permission;
use fakeserver::{Config, Server};
use serde_json::Value;
use tests::frame::Frame;
use tests::json::to_json;
use tests::local::LocalServer;
use tests::raw::{PATIENCE, Raw, Received};
use tests::server::{Backend, Kind, real_url};

fn call(raw: &mut Raw, request: &str) -> String {
    let words: Vec<&str> = request.split(' ').collect();
    raw.call(&words).to_lines().join(" ")
}

/// Waits until nothing is written in the background.
fn until_idle(raw: &mut Raw) {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let info = call(raw, "INFO persistence");
        let busy = [
            "rdb_bgsave_in_progress:1",
            "aof_rewrite_in_progress:1",
            "aof_rewrite_scheduled:1",
        ];
        if !busy.iter().any(|field| info.contains(field)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the server does not come to an end with saving");
}

#[test]
fn saving_in_the_background_is_said_to_begin() {
    Backend::each(|backend| {
        let mut raw = backend.raw();
        until_idle(&mut raw);
        let before = call(&mut raw, "LASTSAVE");
        for (request, reply) in [
            ("BGSAVE", "+Background saving started"),
            ("BGSAVE SCHEDULE", "+Background saving started"),
            (
                "BGREWRITEAOF",
                "+Background append only file rewriting started",
            ),
        ] {
            assert_eq!(call(&mut raw, request), reply, "{request}");
            until_idle(&mut raw);
        }
        assert!(call(&mut raw, "LASTSAVE") >= before);
    });
}

#[test]
fn a_client_is_killed_by_its_address() {
    Backend::each(|backend| {
        if backend.kind() == Kind::Memory {
            // Connections without a socket share one address.
            return;
        }
        let (mut killer, mut victim) = (backend.raw(), backend.raw());
        let Frame::Blob(_, info) = victim.call(&["CLIENT", "INFO"]) else {
            panic!("CLIENT INFO replies with text");
        };
        let info = String::from_utf8(info).unwrap();
        let address = info
            .split(' ')
            .find_map(|field| field.strip_prefix("addr="));
        let request = format!("CLIENT KILL {}", address.unwrap());
        assert_eq!(call(&mut killer, &request), "+OK");
        assert_eq!(victim.receive(PATIENCE), Received::Closed);
        assert_eq!(call(&mut killer, &request), "-ERR No such client");
    });
}

#[test]
fn shutdown_ends_the_fake_in_each_form() {
    for options in [
        &[][..],
        &["NOSAVE"],
        &["SAVE"],
        &["NOW"],
        &["FORCE"],
        &["NOSAVE", "NOW", "FORCE"],
    ] {
        let server = Server::start();
        let mut raw = Raw::tcp(("127.0.0.1", server.port())).unwrap();
        raw.request(&[&["SHUTDOWN"], options].concat());
        assert_eq!(raw.receive(PATIENCE), Received::Closed, "{options:?}");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let ended = async { tokio::time::timeout(PATIENCE, server.until_shutdown()).await };
        assert!(runtime.block_on(ended).is_ok(), "{options:?}");
    }
}

/// A server that a test may end: the fake, or a redis-server of its own where there is one.
fn mortals() -> Vec<(u16, Box<dyn std::any::Any>)> {
    let allowed = Config {
        enable_debug_command: Permission::Yes,
        ..Config::default()
    };
    let fake = Server::builder().config(allowed).start();
    let mut mortals: Vec<(u16, Box<dyn std::any::Any>)> = vec![(fake.port(), Box::new(fake))];
    if real_url().is_some()
        && let Some(real) = LocalServer::start(&["--save", "", "--enable-debug-command", "yes"])
    {
        let port = real.url().rsplit(':').next().unwrap().parse().unwrap();
        mortals.push((port, Box::new(real)));
    }
    mortals
}

#[test]
fn debug_ends_the_server_as_a_crash_does() {
    for request in [
        "DEBUG SEGFAULT",
        "DEBUG PANIC",
        "DEBUG ASSERT",
        "DEBUG OOM",
        "DEBUG segfault x y",
    ] {
        for (port, _server) in mortals() {
            let connect = || Raw::tcp(("127.0.0.1", port));
            let (mut raw, mut other) = (connect().unwrap(), connect().unwrap());
            assert_eq!(call(&mut other, "PING"), "+PONG");
            assert_eq!(call(&mut raw, "MULTI"), "+OK");
            assert_eq!(call(&mut raw, request), "+QUEUED");
            raw.request(&["EXEC"]);
            for raw in [&mut raw, &mut other] {
                assert_eq!(raw.receive(PATIENCE), Received::Closed, "{request}");
            }
            let until = Instant::now() + PATIENCE;
            while connect().is_ok() {
                assert!(Instant::now() < until, "{request}: it goes on");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

#[test]
fn debug_matches_random_texts() {
    let backend = Backend::start(Kind::Memory);
    let reply = call(&mut backend.raw(), "DEBUG STRINGMATCH-TEST");
    assert_eq!(reply, "+Apparently Redis did not crash: test passed");
}

#[test]
fn debug_loadaof_leaves_the_data_of_the_fake_as_it_is() {
    let backend = Backend::start(Kind::Memory);
    let mut raw = backend.raw();
    call(&mut raw, "SET k v");
    assert_eq!(call(&mut raw, "DEBUG LOADAOF"), "+OK");
    assert_eq!(call(&mut raw, "GET k"), "$1 v");
}

#[test]
fn command_and_its_subcommands_tell_of_the_same_commands() {
    Backend::each(|backend| {
        let mut raw = backend.raw();
        raw.call(&["HELLO", "3"]);
        // A redis-server that has just started still moves its commands, and this one's subcommands, to larger tables, a bucket
        // with each search (dict.c, `_dictRehashStep`), and their order changes until that is done.
        (0..512).for_each(|_| drop(raw.call(&["COMMAND", "COUNT"])));
        let all = to_json(&raw.call(&["COMMAND"]));
        assert_eq!(to_json(&raw.call(&["COMMAND", "INFO"])), all);
        let (mut names, mut subcommands) = (BTreeSet::new(), BTreeSet::new());
        let name_of = |entry: &Value| entry[0].as_str().unwrap().to_owned();
        for entry in all.as_array().unwrap() {
            names.insert(name_of(entry));
            subcommands.extend(entry[9].as_array().unwrap().iter().map(name_of));
        }
        let docs = to_json(&raw.call(&["COMMAND", "DOCS"]));
        let documented: BTreeSet<String> = docs.as_object().unwrap().keys().cloned().collect();
        assert_eq!(documented, names);
        let list = to_json(&raw.call(&["COMMAND", "LIST"]));
        let listed = list.as_array().unwrap().iter();
        let listed: BTreeSet<String> = listed.map(|name| name.as_str().unwrap().into()).collect();
        assert_eq!(listed, &names | &subcommands);
    });
}

/// Has clients denied something in every way.
fn be_denied(backend: &Backend) {
    const SCRIPT: &str = "return redis.pcall('set', 'k', 1).err";
    let (mut admin, mut raw) = (backend.raw(), backend.raw());
    call(
        &mut admin,
        "ACL SETUSER erin reset on nopass +get +eval +multi +exec +publish ~k",
    );
    call(&mut admin, "ACL LOG RESET");
    for request in [
        "AUTH erin any",
        "GET k",
        "GET other",
        "GET other",
        "CONFIG GET x",
        "PUBLISH c x",
        "auth nobody any",
        "HELLO 3 AUTH nobody any",
        "MULTI",
        "SET k 1",
        "EXEC",
        "MULTI",
        "GET k",
    ] {
        call(&mut raw, request);
    }
    call(&mut admin, "ACL SETUSER erin resetkeys");
    call(&mut raw, "EXEC");
    raw.call(&["EVAL", SCRIPT, "0"]);
}

#[test]
fn denials_are_logged() {
    const LOGGED: &[(i64, &str, &str, &str, &str, &str)] = &[
        (1, "command", "lua", "set", "erin", "eval"),
        (1, "key", "multi", "k", "erin", "exec"),
        (1, "command", "multi", "set", "erin", "set"),
        (1, "auth", "toplevel", "HELLO", "nobody", "hello"),
        (1, "auth", "toplevel", "auth", "nobody", "auth"),
        (1, "channel", "toplevel", "c", "erin", "publish"),
        (1, "command", "toplevel", "config|get", "erin", "config|get"),
        (2, "key", "toplevel", "other", "erin", "get"),
    ];
    Backend::each(|backend| {
        be_denied(backend);
        let mut raw = backend.raw();
        raw.call(&["HELLO", "3"]);
        let log = to_json(&raw.call(&["ACL", "LOG", "100"]));
        let log = log.as_array().unwrap();
        for (entry, logged) in log.iter().zip(LOGGED) {
            let text = |name: &str| entry[name].as_str().unwrap();
            let client = text("client-info");
            let found = (
                entry["count"].as_i64().unwrap(),
                text("reason"),
                text("context"),
                text("object"),
                text("username"),
                client
                    .split(" cmd=")
                    .nth(1)
                    .unwrap()
                    .split(' ')
                    .next()
                    .unwrap(),
            );
            assert_eq!(found, *logged);
            assert!(client.contains(" user=erin "), "{client}");
            assert_eq!(entry.as_object().unwrap().len(), 7);
        }
        assert_eq!(log.len(), LOGGED.len());
        assert!(
            log[1]["client-info"]
                .as_str()
                .unwrap()
                .contains(" flags=x ")
        );
        assert!(
            log[1]["client-info"]
                .as_str()
                .unwrap()
                .contains(" multi=1 ")
        );
        let two = to_json(&raw.call(&["ACL", "LOG", "2"]));
        assert_eq!(two.as_array().unwrap().len(), 2);
        assert_eq!(call(&mut raw, "ACL LOG RESET"), "+OK");
        assert_eq!(call(&mut raw, "ACL LOG"), "*0");
        call(&mut raw, "ACL DELUSER erin");
    });
}

/// How often each denial of the log happened, and how long ago the last time was.
fn counts_and_ages(raw: &mut Raw) -> Vec<(i64, f64)> {
    let log = to_json(&raw.call(&["ACL", "LOG"]));
    let entries = log.as_array().unwrap().iter();
    // Names and values in turn.
    let number = |value: &Value| match value {
        Value::String(text) => text.parse().unwrap(),
        value => value.as_f64().unwrap(),
    };
    entries
        .map(|entry| (number(&entry[1]) as i64, number(&entry[11])))
        .collect()
}

#[test]
fn denials_within_a_minute_are_one_entry() {
    let server = Server::builder().clock(Clock::frozen_at(1000)).build();
    let backend = Backend::from_fake(server);
    let server = backend.fake().unwrap();
    let (mut admin, mut raw) = (backend.raw(), backend.raw());
    call(&mut admin, "ACL SETUSER erin on nopass");
    call(&mut raw, "AUTH erin any");
    call(&mut raw, "GET k");
    server.advance(Duration::from_secs(60));
    call(&mut raw, "GET k");
    server.advance(Duration::from_millis(1500));
    assert_eq!(counts_and_ages(&mut admin), [(2, 1.5)]);
    server.advance(Duration::from_secs(59));
    call(&mut raw, "GET k");
    assert_eq!(counts_and_ages(&mut admin), [(1, 0.0), (2, 60.5)]);
    call(&mut admin, "CONFIG SET acllog-max-len 1");
    call(&mut raw, "SET k 1");
    assert_eq!(counts_and_ages(&mut admin), [(1, 0.0)]);
}

#[test]
fn who_deletes_itself_is_answered_first() {
    Backend::each(|backend| {
        let (mut admin, mut raw) = (backend.raw(), backend.raw());
        let mut other = backend.raw();
        call(&mut admin, "ACL SETUSER erin on nopass +@all ~*");
        call(&mut raw, "AUTH erin any");
        call(&mut other, "AUTH erin any");
        assert_eq!(call(&mut raw, "ACL DELUSER erin"), ":1");
        assert_eq!(raw.receive(PATIENCE), Received::Closed);
        assert_eq!(other.receive(PATIENCE), Received::Closed);
        assert_eq!(call(&mut admin, "ACL USERS"), "*1 $7 default");
    });
}

#[test]
fn passwords_are_not_shown_to_monitors() {
    Backend::each(|backend| {
        let (mut monitor, mut raw) = (backend.raw(), backend.raw());
        call(&mut monitor, "MONITOR");
        for (request, shown) in [
            ("AUTH secret", r#""AUTH" "(redacted)""#),
            ("AUTH default secret", r#""AUTH" "(redacted)" "(redacted)""#),
            ("AUTH a b c", r#""AUTH" "a" "b" "c""#),
            (
                "HELLO 2 SETNAME me AUTH default secret",
                r#""HELLO" "2" "SETNAME" "me" "AUTH" "(redacted)" "(redacted)""#,
            ),
            ("HELLO x AUTH a b", r#""HELLO" "x" "AUTH" "a" "b""#),
        ] {
            call(&mut raw, request);
            let Received::Frame(seen) = monitor.receive(PATIENCE) else {
                panic!("{request} is not seen");
            };
            let seen = seen.to_lines().join(" ");
            assert!(seen.ends_with(&format!("] {shown}")), "{seen}");
        }
    });
}

/// The value of a field of INFO, or of a client's line.
fn field(text: &str, name: &str) -> i64 {
    let text = text.replace("\\x0d\\x0a", " ");
    let words = text.split(' ');
    let found = words.filter_map(|word| word.split_once(['=', ':']));
    let mut values = found.filter(|(field, _)| *field == name);
    values
        .next()
        .and_then(|(_, value)| value.parse().ok())
        .unwrap()
}

fn lazily_freed(raw: &mut Raw) -> i64 {
    field(&call(raw, "INFO memory"), "lazyfreed_objects")
}

#[test]
fn values_that_are_freed_in_the_background_are_counted() {
    // The setting, what is asked, and how many of the values count without the setting and with it.
    const CASES: &[(&str, &[&str], [i64; 2])] = &[
        ("user-del", &["UNLINK hash"], [1, 1]),
        ("user-del", &["UNLINK hash hash other"], [1, 1]),
        ("user-del", &["DEL hash"], [0, 1]),
        ("user-del", &["UNLINK small"], [0, 0]),
        ("user-del", &["HDEL hash f1"], [0, 0]),
        ("server-del", &["DEL hash"], [0, 0]),
        ("server-del", &["SET hash 1"], [0, 1]),
        ("server-del", &["RENAME small hash"], [0, 1]),
        ("server-del", &["RENAME hash small"], [0, 0]),
        ("server-del", &["MOVE hash 1"], [0, 0]),
        ("server-del", &["COPY small hash REPLACE"], [0, 1]),
        ("server-del", &["SUNIONSTORE hash nosuch"], [0, 1]),
        ("expire", &["PEXPIREAT hash 1"], [0, 1]),
        ("user-flush", &["FLUSHALL"], [0, 2]),
        ("user-flush", &["FLUSHDB"], [0, 2]),
        ("user-flush", &["FLUSHDB SYNC"], [0, 0]),
        ("user-flush", &["FLUSHALL ASYNC"], [2, 2]),
    ];
    const MAKE: &str = "for i = 1, 65 do redis.call('HSET', 'hash', 'f' .. i, ('x'):rep(65)) end \
                        redis.call('HSET', 'small', 'f', 'v')";
    Backend::each(|backend| {
        let mut raw = backend.raw();
        for (setting, requests, counts) in CASES {
            for (value, count) in ["no", "yes"].into_iter().zip(counts) {
                call(&mut raw, "FLUSHALL SYNC");
                raw.call(&["EVAL", MAKE, "0"]);
                let setting = format!("CONFIG SET lazyfree-lazy-{setting}");
                call(&mut raw, &format!("{setting} {value}"));
                let before = lazily_freed(&mut raw);
                for request in *requests {
                    call(&mut raw, request);
                }
                call(&mut raw, &format!("{setting} no"));
                let until = Instant::now() + PATIENCE;
                // Another thread counts it in the real server.
                while lazily_freed(&mut raw) < before + count && Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let freed = lazily_freed(&mut raw) - before;
                assert_eq!(freed, *count, "{setting} {value}: {requests:?}");
            }
        }
        call(&mut raw, "CONFIG RESETSTAT");
        assert_eq!(lazily_freed(&mut raw), 0);
    });
}

#[test]
fn a_client_is_told_what_its_buffers_take() {
    const FIELDS: [&str; 5] = ["qbuf", "qbuf-free", "argv-mem", "multi-mem", "obl"];
    let figures = |text: &str| FIELDS.map(|name| field(text, name));
    Backend::each(|backend| {
        let (mut raw, mut other) = (backend.raw(), backend.raw());
        let id = call(&mut raw, "CLIENT ID").replace(':', "");
        let list = format!("CLIENT LIST ID {id}");
        assert_eq!(figures(&call(&mut other, &list)), [0, 20474, 0, 0, 0]);
        let own = call(&mut raw, "CLIENT INFO");
        assert_eq!(figures(&own), [26, 20448, 10, 0, 0]);
        assert_eq!(
            field(&own, "tot-mem") - field(&own, "rbs"),
            768 + 20480 + 26
        );
        call(&mut raw, "MULTI");
        call(&mut raw, "SET a b");
        call(&mut raw, "GET a");
        let queued = call(&mut other, &list);
        assert_eq!(figures(&queued), [0, 20474, 0, 49, 0]);
        assert_eq!(
            field(&queued, "tot-mem") - field(&queued, "rbs"),
            768 + 20480 + 49 + 48
        );
        call(&mut raw, "DISCARD");
        raw.send(b"*2\r\n$3\r\nGET\r\n$100\r\nabc");
        while field(&call(&mut other, &list), "qbuf") == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let half = call(&mut other, &list);
        assert_eq!(figures(&half), [3, 20471, 3, 0, 0]);
    });
}
