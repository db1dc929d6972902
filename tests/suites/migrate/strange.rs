//! Targets that are no servers: what they say and when they fall silent.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fakeserver::Server;
use tests::raw::{Raw, Received};

use crate::{End, READING, ask, words};

/// A server that answers the first bytes of each connection with other bytes and then closes it, or says no more.
struct Odd {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl Odd {
    fn start(answer: &'static [u8], closes: bool) -> Odd {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    let mut room = [0; 4096];
                    // The other end may be gone at any time, and then this is over too.
                    let _ = stream.read(&mut room);
                    let _ = stream.write_all(answer);
                    if closes {
                        let _ = stream.shutdown(Shutdown::Write);
                    }
                    while stream.read(&mut room).is_ok_and(|len| len > 0) {}
                });
            }
        });
        Odd { port, connections }
    }
}

/// What it says, whether it closes; which keys are to go there; the reply, which of them are left, and how many connections it took.
type OddCase = (
    &'static [u8],
    bool,
    &'static str,
    &'static str,
    &'static str,
    usize,
);

const ODD: &[OddCase] = &[
    (b"+OK\r\n+OK\r\n", false, "k", "+OK", "", 1),
    (b"+OK\n+OK\n", false, "k", "+OK", "", 1),
    (b"\r\n\r\n", false, "k", "+OK", "", 1),
    (b"$3\r\nabc\r\n", false, "k", "+OK", "", 1),
    (b"\n\n", false, "k", READING, "k", 2),
    (b"", true, "k", READING, "k", 2),
    (b"", true, "k q r", READING, "k q r", 2),
    (b"+OK\r\n", true, "k", READING, "k", 2),
    (b"+OK\r\n", false, "k", READING, "k", 1),
    (b"+OK\r\n+O", true, "k", READING, "k", 2),
    (b"+OK\r\n+OK\r\n+OK\r\n", true, "k q r", READING, "r", 1),
    (b"+OK\r\n+OK\r\n+OK\r\n", false, "k q r", READING, "r", 1),
    (
        b"+OK\r\n-FOO bar\r\n",
        true,
        "k q r",
        "-ERR Target instance replied with error: FOO bar",
        "k q r",
        1,
    ),
    (
        b"+OK\r\n-FOO bar\r\n+OK\r\n",
        true,
        "k q r",
        "-ERR Target instance replied with error: FOO bar",
        "k r",
        1,
    ),
    (
        b"+OK\r\n-FOO bar\r\n-BAR\r\n+OK\r\n",
        false,
        "k q r",
        "-ERR Target instance replied with error: FOO bar",
        "k q",
        1,
    ),
    (
        b"-SELECT x\r\n-FOO bar\r\n+OK\r\n+OK\r\n",
        false,
        "k q r",
        "-ERR Target instance replied with error: SELECT x",
        "k q r",
        1,
    ),
    (b"-SELECT x\r\n", true, "k", READING, "k", 2),
    (
        b"+OK\r\n-a\rb\0c\r\n",
        false,
        "k",
        "-ERR Target instance replied with error: a b",
        "k",
        1,
    ),
    (
        b"+OK\r\n-\r\n",
        false,
        "k",
        "-ERR Target instance replied with error: ",
        "k",
        1,
    ),
];

#[test]
fn what_a_strange_target_says_leads_to_the_reply_that_redis_gives() {
    let sources = [Some(End::fake()), End::real()];
    for source in sources.into_iter().flatten() {
        let mut raw = source.raw();
        for (answer, closes, keys, reply, left, connections) in ODD {
            let case = format!(
                "{}: {} {closes} {keys}",
                source.name(),
                answer.escape_ascii()
            );
            for key in keys.split(' ') {
                ask(&mut raw, &format!("SET {key} v"));
            }
            let odd = Odd::start(answer, *closes);
            // Where nothing more comes, time has to end.
            let is_silent = !closes && *reply == READING && *connections == 1;
            let timeout_ms = if is_silent { 1000 } else { 20_000 };
            let request = format!(
                "MIGRATE 127.0.0.1 {} '' 0 {timeout_ms} KEYS {keys}",
                odd.port
            );
            assert_eq!(ask(&mut raw, &request), *reply, "{case}");
            let there = |key: &&str| ask(&mut raw, &format!("EXISTS {key}")) == ":1";
            let there: Vec<&str> = keys.split(' ').filter(there).collect();
            assert_eq!(there.join(" "), *left, "{case}");
            assert_eq!(
                odd.connections.load(Ordering::SeqCst),
                *connections,
                "{case}"
            );
            ask(&mut raw, "FLUSHALL");
        }
    }
}

#[test]
fn a_long_error_is_cut_where_redis_cuts_it() {
    const LONG: &[u8] = &{
        let mut bytes = [b'x'; 2000];
        let head = b"+OK\r\n-";
        let mut at = 0;
        while at < head.len() {
            bytes[at] = head[at];
            at += 1;
        }
        bytes
    };
    for source in [Some(End::fake()), End::real()].into_iter().flatten() {
        let mut raw = source.raw();
        let odd = Odd::start(LONG, false);
        ask(&mut raw, "SET k v");
        let reply = ask(
            &mut raw,
            &format!("MIGRATE 127.0.0.1 {} k 0 5000", odd.port),
        );
        let wanted = format!(
            "-ERR Target instance replied with error: {}",
            "x".repeat(1022)
        );
        assert_eq!(reply, wanted, "{}", source.name());
    }
}

#[test]
fn nobody_listens_there() {
    // The port of a client's end is nobody else's meanwhile.
    let server = Server::start();
    let client = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    let port = client.local_addr().unwrap().port();
    for source in [Some(End::fake()), End::real()].into_iter().flatten() {
        let mut raw = source.raw();
        ask(&mut raw, "SET k v");
        let reply = ask(&mut raw, &format!("MIGRATE 127.0.0.1 {port} k 0 1000"));
        // Where the machine refuses a connection before it is under way, redis-server says the other.
        let known = ["writing to target instance", "connecting to the client"];
        let is_known = known
            .iter()
            .any(|doing| reply == format!("-IOERR error or timeout {doing}"));
        assert!(is_known, "{}: {reply}", source.name());
        assert_eq!(ask(&mut raw, "GET k"), "$1 v");
    }
}

#[test]
fn nobody_else_is_served_while_a_migration_waits() {
    for source in [Some(End::fake()), End::real()].into_iter().flatten() {
        let odd = Odd::start(b"", false);
        let (mut raw, mut other) = (source.raw(), source.raw());
        ask(&mut raw, "SET k v");
        ask(&mut other, "PING");
        raw.request(&words(&format!("MIGRATE 127.0.0.1 {} k 0 500", odd.port)));
        while odd.connections.load(Ordering::SeqCst) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        // When the other one is answered, the migration has been long before.
        assert_eq!(ask(&mut other, "PING"), "+PONG");
        let Received::Frame(reply) = raw.receive(Duration::from_millis(50)) else {
            panic!("{}: the other one was served first", source.name());
        };
        assert_eq!(reply.to_lines().join(" "), READING);
    }
}

#[test]
fn a_server_ends_though_a_migration_waits() {
    let server = Server::start();
    let odd = Odd::start(b"", false);
    let mut raw = Raw::tcp(("127.0.0.1", server.port())).unwrap();
    ask(&mut raw, "SET k v");
    raw.request(&words(&format!(
        "MIGRATE 127.0.0.1 {} k 0 100000000",
        odd.port
    )));
    while odd.connections.load(Ordering::SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    // It would take a day if it waited for the migration.
    drop(server);
}
