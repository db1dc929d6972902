//! How connections act upon each other: killed, unblocked, paused, shown to monitors, too many, too slow to read.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use fakeserver::{Clock, Config, Server};
use tests::frame::Frame;
use tests::raw::{PATIENCE, Raw, Received};
use tests::server::Backend;

/// How long nothing must come to count as nothing.
const SILENCE: Duration = Duration::from_millis(40);

fn reply(raw: &mut Raw) -> String {
    match raw.receive(PATIENCE) {
        Received::Frame(frame) => frame.to_lines().join(" "),
        other => panic!("no reply but {other:?}"),
    }
}

fn call(raw: &mut Raw, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    raw.request(&words);
    reply(raw)
}

fn id(raw: &mut Raw) -> String {
    call(raw, "CLIENT ID").trim_start_matches(':').to_owned()
}

/// The value of one field of a client's line in CLIENT LIST.
fn field(raw: &mut Raw, id: &str, name: &str) -> String {
    let line = call(raw, &format!("CLIENT LIST ID {id}"));
    let start = format!("{name}=");
    let found = line.split(' ').find_map(|field| field.strip_prefix(&start));
    found
        .unwrap_or_else(|| panic!("no {name} in {line}"))
        .to_owned()
}

/// Waits until another client is blocked, as the server sees it.
fn wait_until_blocked(raw: &mut Raw, id: &str) {
    while field(raw, id, "flags") != "b" {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_killed_client_is_gone_and_its_waiting_with_it() {
    Backend::each(|backend| {
        let (mut killer, mut victim) = (backend.raw(), backend.raw());
        let victim_id = id(&mut victim);
        victim.request(&["BLPOP", "list", "0"]);
        wait_until_blocked(&mut killer, &victim_id);
        assert_eq!(
            call(&mut killer, &format!("CLIENT KILL ID {victim_id}")),
            ":1"
        );
        assert_eq!(victim.receive(PATIENCE), Received::Closed);
        assert_eq!(call(&mut killer, "RPUSH list a"), ":1");
        assert_eq!(call(&mut killer, "LLEN list"), ":1");
        assert_eq!(
            call(&mut killer, &format!("CLIENT KILL ID {victim_id}")),
            ":0"
        );
    });
}

/// Clients look whether a connection has ended before they write to it, and never again until the reply is due.
#[test]
fn a_killed_client_is_closed_before_the_killer_is_answered() {
    Backend::each(|backend| {
        let Some(url) = backend.url() else { return };
        let address = url.trim_start_matches("redis://").trim_end_matches('/');
        let mut killer = backend.raw();
        for _ in 0..50 {
            let mut victim = TcpStream::connect(address).unwrap();
            victim.write_all(b"CLIENT ID\r\n").unwrap();
            let mut line = [0; 32];
            let len = victim.read(&mut line).unwrap();
            let victim_id = String::from_utf8_lossy(&line[1..len]).trim().to_owned();
            victim.set_nonblocking(true).unwrap();
            assert_eq!(
                call(&mut killer, &format!("CLIENT KILL ID {victim_id}")),
                ":1"
            );
            assert_eq!(victim.read(&mut line).ok(), Some(0));
        }
    });
}

#[test]
fn who_kills_itself_gets_its_reply_first() {
    Backend::each(|backend| {
        let mut own = backend.raw();
        let own_id = id(&mut own);
        assert_eq!(call(&mut own, &format!("CLIENT KILL ID {own_id}")), ":0");
        let kill = format!("CLIENT KILL ID {own_id} SKIPME no");
        assert_eq!(call(&mut own, &kill), ":1");
        assert_eq!(own.receive(PATIENCE), Received::Closed);
    });
}

#[test]
fn an_unblocked_client_is_answered_and_goes_on() {
    Backend::each(|backend| {
        let (mut other, mut waiter) = (backend.raw(), backend.raw());
        let waiter_id = id(&mut waiter);
        for (reason, expected) in [
            ("", "*-1"),
            (" TIMEOUT", "*-1"),
            (" ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK"),
        ] {
            waiter.request(&["BLPOP", "list", "0"]);
            waiter.request(&["PING"]);
            wait_until_blocked(&mut other, &waiter_id);
            let unblock = format!("CLIENT UNBLOCK {waiter_id}{reason}");
            assert_eq!(call(&mut other, &unblock), ":1");
            assert_eq!(reply(&mut waiter), expected);
            assert_eq!(reply(&mut waiter), "+PONG");
            assert_eq!(call(&mut other, &unblock), ":0");
        }
    });
}

#[test]
fn a_pause_of_writes_lets_reads_pass_and_keeps_the_order() {
    Backend::each(|backend| {
        let (mut pauser, mut writer) = (backend.raw(), backend.raw());
        let writer_id = id(&mut writer);
        assert_eq!(call(&mut pauser, "CLIENT PAUSE 100000 WRITE"), "+OK");
        assert_eq!(call(&mut writer, "GET k"), "$-1");
        writer.request(&["SET", "k", "1"]);
        writer.request(&["GET", "k"]);
        wait_until_blocked(&mut pauser, &writer_id);
        assert_eq!(writer.receive(SILENCE), Received::Silence);
        assert_eq!(call(&mut pauser, "GET k"), "$-1");
        // It is no blocking command that could be unblocked; redis-server 7.0.15 itself crashes here.
        if backend.fake().is_some() {
            let unblock = format!("CLIENT UNBLOCK {writer_id}");
            assert_eq!(call(&mut pauser, &unblock), ":0");
        }
        assert_eq!(call(&mut pauser, "CLIENT UNPAUSE"), "+OK");
        assert_eq!(reply(&mut writer), "+OK");
        assert_eq!(reply(&mut writer), "$1 1");
    });
}

#[test]
fn a_pause_holds_a_transaction_that_writes_and_no_other() {
    Backend::each(|backend| {
        let (mut pauser, mut client) = (backend.raw(), backend.raw());
        call(&mut client, "MULTI");
        call(&mut client, "SET k 1");
        assert_eq!(call(&mut pauser, "CLIENT PAUSE 100000 WRITE"), "+OK");
        client.request(&["EXEC"]);
        assert_eq!(client.receive(SILENCE), Received::Silence);
        call(&mut pauser, "MULTI");
        call(&mut pauser, "GET k");
        assert_eq!(call(&mut pauser, "EXEC"), "*1 $-1");
        assert_eq!(call(&mut pauser, "CLIENT UNPAUSE"), "+OK");
        assert_eq!(reply(&mut client), "*1 +OK");
    });
}

#[test]
fn a_pause_ends_by_the_servers_clock() {
    let server = Server::builder().clock(Clock::frozen_at(1_000_000)).build();
    let (mut pauser, mut client) = (Raw::memory(&server), Raw::memory(&server));
    assert_eq!(call(&mut pauser, "CLIENT PAUSE 500"), "+OK");
    client.request(&["PING"]);
    assert_eq!(client.receive(SILENCE), Received::Silence);
    server.advance(Duration::from_millis(499));
    assert_eq!(client.receive(SILENCE), Received::Silence);
    server.advance(Duration::from_millis(1));
    assert_eq!(reply(&mut client), "+PONG");
}

#[test]
fn no_key_is_deleted_during_a_pause_but_due_ones_are_hidden() {
    let server = Server::builder().clock(Clock::frozen_at(1_000_000)).build();
    let mut raw = Raw::memory(&server);
    call(&mut raw, "SET k v PX 10");
    call(&mut raw, "SET watched v PX 10");
    assert_eq!(call(&mut raw, "CLIENT PAUSE 500 WRITE"), "+OK");
    server.advance(Duration::from_millis(100));
    assert_eq!(call(&mut raw, "GET k"), "$-1");
    assert_eq!(call(&mut raw, "DBSIZE"), ":2");
    assert!(call(&mut raw, "INFO stats").contains("expired_keys:0"));
    server.advance(Duration::from_millis(500));
    assert_eq!(call(&mut raw, "DBSIZE"), ":0");
    assert!(call(&mut raw, "INFO stats").contains("expired_keys:2"));
}

#[test]
fn a_monitor_sees_what_is_run_but_no_administration() {
    let server = Server::builder().clock(Clock::frozen_at(1_500)).build();
    let (mut monitor, mut client) = (Raw::memory(&server), Raw::memory(&server));
    assert_eq!(call(&mut monitor, "MONITOR"), "+OK");
    client.request(&[b"SET".as_slice(), b"a\"\\", b"\x00\n"]);
    assert_eq!(reply(&mut client), "+OK");
    call(&mut client, "CONFIG GET port");
    call(&mut client, "MULTI");
    call(&mut client, "GET k");
    call(&mut client, "EXEC");
    for command in [
        r#""SET" "a\"\\" "\x00\n""#,
        r#""MULTI""#,
        r#""GET" "k""#,
        r#""EXEC""#,
    ] {
        let Received::Frame(Frame::Line(line)) = monitor.receive(PATIENCE) else {
            panic!("nothing shown where {command} should be");
        };
        let line = String::from_utf8(line).unwrap();
        let (source, shown) = line.split_once("] ").unwrap();
        assert!(source.starts_with("+1.500000 [0 "), "{source}");
        assert_eq!(shown, command);
    }
    assert_eq!(call(&mut monitor, "RESET"), "+RESET");
    call(&mut client, "PING");
    assert_eq!(monitor.receive(SILENCE), Received::Silence);
}

#[test]
fn a_client_too_many_is_told_so_and_closed() {
    let config = Config {
        maxclients: 1,
        ..Config::default()
    };
    let server = Server::builder().config(config).build();
    let (mut first, mut second) = (Raw::memory(&server), Raw::memory(&server));
    assert_eq!(reply(&mut second), "-ERR max number of clients reached");
    assert_eq!(second.receive(PATIENCE), Received::Closed);
    assert_eq!(call(&mut first, "PING"), "+PONG");
    let stats = call(&mut first, "INFO stats");
    assert!(stats.contains("rejected_connections:1"), "{stats}");
}

#[test]
fn a_subscriber_that_does_not_read_is_closed_at_its_limit() {
    let server = Server::new();
    let (mut publisher, mut subscriber) = (Raw::memory(&server), Raw::memory(&server));
    let limit = [
        "CONFIG",
        "SET",
        "client-output-buffer-limit",
        "pubsub 100000 0 0",
    ];
    assert!(!publisher.call(&limit).is_error());
    assert_eq!(
        call(&mut subscriber, "SUBSCRIBE ch"),
        "*3 $9 subscribe $2 ch :1"
    );
    let message = "x".repeat(1000);
    let mut delivered = 0;
    while call(&mut publisher, &format!("PUBLISH ch {message}")) == ":1" {
        delivered += 1;
        assert!(delivered < 1000, "the limit does not hold");
    }
    assert!(delivered > 50, "closed after {delivered} messages");
}

#[test]
fn statistics_tell_calls_refusals_and_failures_apart() {
    Backend::each(|backend| {
        let mut raw = backend.raw();
        call(&mut raw, "SET text x");
        call(&mut raw, "CONFIG RESETSTAT");
        call(&mut raw, "GET text");
        call(&mut raw, "GET");
        call(&mut raw, "INCR text");
        call(&mut raw, "LPUSH text x");
        call(&mut raw, "NOSUCH");
        let stats = call(&mut raw, "INFO commandstats");
        for (name, expected) in [
            ("get", ["calls=1", "rejected_calls=1", "failed_calls=0"]),
            ("incr", ["calls=1", "rejected_calls=0", "failed_calls=1"]),
            ("lpush", ["calls=1", "rejected_calls=0", "failed_calls=1"]),
        ] {
            let start = stats.find(&format!("cmdstat_{name}:")).unwrap();
            let line = stats[start..].split("\\x0d").next().unwrap();
            assert!(expected.iter().all(|part| line.contains(part)), "{line}");
        }
        let errors = call(&mut raw, "INFO errorstats");
        assert!(errors.contains("errorstat_ERR:count=3"), "{errors}");
        assert!(errors.contains("errorstat_WRONGTYPE:count=1"), "{errors}");
    });
}

#[test]
fn shutdown_ends_a_server_that_listens() {
    let server = Server::start();
    let mut raw = Raw::tcp(("127.0.0.1", server.port())).unwrap();
    raw.request(&["SHUTDOWN", "NOSAVE"]);
    assert_eq!(raw.receive(PATIENCE), Received::Closed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let ended = async { tokio::time::timeout(PATIENCE, server.until_shutdown()).await };
    assert!(runtime.block_on(ended).is_ok());
}

/// What was sent while the server did something else is run in the order in which it was sent, whoever sent it.
#[test]
fn requests_that_wait_are_run_in_the_order_of_their_arrival() {
    const SPIN: &str = "local n = 0 while n < 2e6 do n = n + 1 end";
    Backend::each(|backend| {
        if backend.url().is_none() {
            // In memory a request is run when it is sent.
            return;
        }
        let mut spinning = backend.raw();
        for count in [2, 3, 10] {
            let mut senders: Vec<Raw> = (0..count).map(|_| backend.raw()).collect();
            for sender in &mut senders {
                assert_eq!(call(sender, "PING"), "+PONG");
            }
            assert_eq!(call(&mut spinning, "FLUSHALL"), "+OK");
            spinning.request(&["EVAL", SPIN, "0"]);
            for (place, sender) in senders.iter_mut().enumerate() {
                sender.request(&["RPUSH", "list", &place.to_string()]);
            }
            for sender in &mut senders {
                let _ = reply(sender);
            }
            assert_eq!(reply(&mut spinning), "$-1");
            let order = call(&mut spinning, "LRANGE list 0 -1");
            let expected: Vec<String> = (0..count).map(|place| format!("$1 {place}")).collect();
            assert_eq!(order, format!("*{count} {}", expected.join(" ")));
        }
    });
}
