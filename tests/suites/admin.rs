//! FAKE, by which a test in any language steers the server, and the same from Rust: the clock, faults, a dump, a reset.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::time::{Duration, Instant};

use fakeserver::wire::request::split_words;
use fakeserver::{Clock, Server};
use tests::frame::Frame;
use tests::raw::{PATIENCE, Raw, Received};

const START: i64 = 1_722_150_000_000;

/// How long nothing has to come for the test to believe that nothing will.
const SILENCE: Duration = Duration::from_millis(50);

/// A server that can be steered, and how connections to it are made.
struct Steered {
    server: Server,
    connect: fn(&Server) -> Raw,
}

impl Steered {
    /// Runs a test on a server with a socket and on one without.
    fn each(test: impl Fn(&Steered)) {
        let builder = || Server::builder().admin(true).clock(Clock::frozen_at(START));
        test(&Steered {
            server: builder().build(),
            connect: Raw::memory,
        });
        test(&Steered {
            server: builder().start(),
            connect: |server| Raw::tcp(("127.0.0.1", server.port())).unwrap(),
        });
    }

    fn raw(&self) -> Raw {
        (self.connect)(&self.server)
    }
}

fn words(line: &str) -> Vec<Vec<u8>> {
    split_words(line.as_bytes()).unwrap()
}

fn call(raw: &mut Raw, line: &str) -> String {
    raw.call(&words(line)).to_lines().join(" ")
}

fn send(raw: &mut Raw, line: &str) {
    raw.request(&words(line));
}

/// The next reply, or that the connection is closed.
fn next(raw: &mut Raw) -> String {
    match raw.receive(PATIENCE) {
        Received::Frame(frame) => frame.to_lines().join(" "),
        Received::Closed => "closed".to_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_word_is_unknown_unless_it_is_allowed() {
    let server = Server::start();
    let mut raw = Raw::tcp(("127.0.0.1", server.port())).unwrap();
    let unknown = "-ERR unknown command 'FAKE', with args beginning with: 'CLOCK' 'NOW' ";
    assert_eq!(call(&mut raw, "FAKE CLOCK NOW"), unknown);
    Steered::each(|steered| {
        let mut raw = steered.raw();
        assert_eq!(call(&mut raw, "FAKE CLOCK NOW"), format!(":{START}"));
        assert_eq!(call(&mut raw, "fake clock now"), format!(":{START}"));
        assert!(
            !call(&mut raw, "COMMAND LIST")
                .to_lowercase()
                .contains("fake")
        );
        assert_eq!(call(&mut raw, "COMMAND INFO FAKE"), "*1 $-1");
        let script = "EVAL \"return redis.pcall('FAKE', 'CLOCK', 'NOW')\" 0";
        assert!(call(&mut raw, script).starts_with("-ERR Unknown Redis command"));
    });
}

#[test]
fn a_password_is_asked_for_first() {
    let server = Server::builder().admin(true).password("secret").start();
    let mut raw = Raw::tcp(("127.0.0.1", server.port())).unwrap();
    assert_eq!(
        call(&mut raw, "FAKE RESET"),
        "-NOAUTH Authentication required."
    );
    assert_eq!(call(&mut raw, "AUTH secret"), "+OK");
    assert_eq!(call(&mut raw, "FAKE RESET"), "+OK");
    assert_eq!(
        call(&mut raw, "CONFIG GET requirepass"),
        "*2 $11 requirepass $6 secret"
    );
}

#[test]
fn time_moves_before_advance_replies() {
    Steered::each(|steered| {
        let (mut raw, mut waiting) = (steered.raw(), steered.raw());
        assert_eq!(call(&mut raw, "SET k v PX 1000"), "+OK");
        send(&mut waiting, "BLPOP list 1.5");
        send(&mut waiting, "INCR after");
        assert_eq!(waiting.receive(SILENCE), Received::Silence);
        assert_eq!(
            call(&mut raw, "FAKE CLOCK ADVANCE 1000"),
            format!(":{}", START + 1000)
        );
        assert_eq!(call(&mut raw, "PTTL k"), ":0");
        assert_eq!(
            call(&mut raw, "FAKE CLOCK ADVANCE 1"),
            format!(":{}", START + 1001)
        );
        assert_eq!(call(&mut raw, "EXISTS k"), ":0");
        // In one batch: whoever waited has gone on before the request behind is run.
        send(&mut raw, "FAKE CLOCK ADVANCE 500");
        send(&mut raw, "GET after");
        assert_eq!(next(&mut raw), format!(":{}", START + 1501));
        assert_eq!(next(&mut raw), "$1 1");
        assert_eq!(
            (next(&mut waiting), next(&mut waiting)),
            ("*-1".to_owned(), ":1".to_owned())
        );
        assert_eq!(call(&mut raw, "TIME"), "*2 $10 1722150001 $6 501000");
        assert_eq!(call(&mut raw, "FAKE CLOCK FREEZE 5"), ":5");
        assert_eq!(steered.server.clock().now().millis(), 5);
    });
}

#[test]
fn a_thousand_keys_are_gone_when_advance_replies() {
    Steered::each(|steered| {
        let mut raw = steered.raw();
        for key in 0..1000 {
            call(&mut raw, &format!("SET k{key} v PX {}", 1 + key));
        }
        call(&mut raw, "FAKE CLOCK ADVANCE 1001");
        assert_eq!(call(&mut raw, "DBSIZE"), ":0");
    });
}

#[test]
fn a_clock_that_runs_again_ends_waiting_by_itself() {
    Steered::each(|steered| {
        let (mut raw, mut waiting) = (steered.raw(), steered.raw());
        send(&mut waiting, "BLPOP list 0.05");
        assert_eq!(waiting.receive(SILENCE), Received::Silence);
        let before = Clock::real().now().millis();
        let now = call(&mut raw, "FAKE CLOCK REAL");
        assert!(now[1..].parse::<i64>().unwrap() >= before, "{now}");
        assert_eq!(next(&mut waiting), "*-1");
        send(&mut waiting, "BLPOP list 0.2");
        let at = call(&mut raw, "FAKE CLOCK FREEZE");
        assert_eq!(call(&mut raw, "FAKE CLOCK NOW"), at);
        assert!(steered.server.clock().is_frozen());
    });
}

#[test]
fn waiting_for_real_time_begins_when_the_clock_is_let_go() {
    Steered::each(|steered| {
        let (mut raw, mut waiting) = (steered.raw(), steered.raw());
        call(&mut raw, "FAKE CLOCK FREEZE");
        send(&mut waiting, "BLPOP list 0.2");
        assert_eq!(waiting.receive(SILENCE), Received::Silence);
        call(&mut raw, "FAKE CLOCK REAL");
        assert_eq!(next(&mut waiting), "*-1");
    });
}

#[test]
fn a_command_fails_once_or_always_with_the_text_that_was_asked_for() {
    Steered::each(|steered| {
        let mut raw = steered.raw();
        assert_eq!(
            call(&mut raw, "FAKE FAIL SET NTH 2 ERROR \"OOM used up\""),
            "+OK"
        );
        assert_eq!(call(&mut raw, "SET k 1"), "+OK");
        assert_eq!(call(&mut raw, "set k 2"), "-OOM used up");
        assert_eq!(call(&mut raw, "SET k 3"), "+OK");
        assert_eq!(
            call(&mut raw, "FAKE FAIL get ALWAYS ERROR \"LOADING wait\""),
            "+OK"
        );
        assert_eq!(call(&mut raw, "FAKE FAIL GET ERROR \"ERR second\""), "+OK");
        assert_eq!(call(&mut raw, "GET k"), "-LOADING wait");
        assert_eq!(call(&mut raw, "GET k"), "-LOADING wait");
        assert_eq!(call(&mut raw, "FAKE FAIL CLEAR"), ":1");
        assert_eq!(call(&mut raw, "GET k"), "$1 3");
        assert_eq!(
            call(&mut raw, "FAKE FAIL CONFIG|GET ERROR \"ERR no\""),
            "+OK"
        );
        assert_eq!(call(&mut raw, "CONFIG SET maxmemory 0"), "+OK");
        assert_eq!(call(&mut raw, "CONFIG GET maxmemory"), "-ERR no");
        assert_eq!(
            call(&mut raw, "FAKE FAIL CONFIG NTH 2 ERROR \"ERR no\""),
            "+OK"
        );
        assert_eq!(call(&mut raw, "CONFIG SET maxmemory 0"), "+OK");
        assert_eq!(call(&mut raw, "CONFIG GET maxmemory"), "-ERR no");
        assert_eq!(call(&mut raw, "FAKE FAIL * NTH 2 ERROR \"ERR any\""), "+OK");
        assert_eq!(call(&mut raw, "PING"), "+PONG");
        assert_eq!(call(&mut raw, "FAKE CLOCK NOW"), format!(":{START}"));
        assert_eq!(call(&mut raw, "ECHO x"), "-ERR any");
    });
}

#[test]
fn what_fails_in_a_transaction_fails_as_it_would_without_us() {
    Steered::each(|steered| {
        let mut raw = steered.raw();
        call(&mut raw, "FAKE FAIL INCR ERROR \"ERR no\"");
        assert_eq!(call(&mut raw, "MULTI"), "+OK");
        assert_eq!(call(&mut raw, "SET k 1"), "+QUEUED");
        assert_eq!(call(&mut raw, "INCR k"), "-ERR no");
        let aborted = "-EXECABORT Transaction discarded because of previous errors.";
        assert_eq!(call(&mut raw, "EXEC"), aborted);
        call(&mut raw, "FAKE FAIL EXEC ERROR \"EXECABORT no\"");
        assert_eq!(call(&mut raw, "MULTI"), "+OK");
        assert_eq!(call(&mut raw, "SET k 1"), "+QUEUED");
        assert_eq!(call(&mut raw, "EXEC"), "-EXECABORT no");
        assert_eq!(call(&mut raw, "EXEC"), "-ERR EXEC without MULTI");
        assert_eq!(call(&mut raw, "EXISTS k"), ":0");
    });
}

#[test]
fn a_connection_breaks_before_or_behind_the_command() {
    Steered::each(|steered| {
        let mut control = steered.raw();
        for (fault, applied) in [("DROP-BEFORE", ":0"), ("DROP-AFTER", ":1")] {
            call(&mut control, &format!("FAKE FAIL SET {fault}"));
            let mut raw = steered.raw();
            // What was answered before still comes; what stands behind is not run.
            for request in ["ECHO before", "SET k v", "SET behind v"] {
                send(&mut raw, request);
            }
            assert_eq!(next(&mut raw), "$6 before", "{fault}");
            assert_eq!(next(&mut raw), "closed", "{fault}");
            assert_eq!(call(&mut control, "EXISTS k"), applied, "{fault}");
            assert_eq!(call(&mut control, "EXISTS behind"), ":0", "{fault}");
            call(&mut control, "FLUSHALL");
        }
    });
}

#[test]
fn a_transaction_is_run_and_its_reply_lost() {
    Steered::each(|steered| {
        let (mut control, mut raw) = (steered.raw(), steered.raw());
        call(&mut control, "FAKE FAIL EXEC DROP-AFTER");
        for request in ["MULTI", "INCR k", "INCR k"] {
            call(&mut raw, request);
        }
        send(&mut raw, "EXEC");
        assert_eq!(next(&mut raw), "closed");
        assert_eq!(call(&mut control, "GET k"), "$1 2");
    });
}

#[test]
fn what_a_waiting_client_is_given_can_be_lost_on_the_way() {
    Steered::each(|steered| {
        let (mut control, mut raw) = (steered.raw(), steered.raw());
        call(&mut control, "FAKE FAIL BLPOP DROP-AFTER");
        send(&mut raw, "BLPOP list 0");
        assert_eq!(raw.receive(SILENCE), Received::Silence);
        assert_eq!(call(&mut control, "RPUSH list job"), ":1");
        assert_eq!(next(&mut raw), "closed");
        assert_eq!(call(&mut control, "LLEN list"), ":0");
    });
}

#[test]
fn a_reply_is_late_by_the_clock_of_the_server() {
    Steered::each(|steered| {
        let (mut control, mut raw) = (steered.raw(), steered.raw());
        call(&mut control, "FAKE FAIL INCR DELAY 1000");
        for request in ["INCR k", "GET k"] {
            send(&mut raw, request);
        }
        assert_eq!(raw.receive(SILENCE), Received::Silence);
        assert_eq!(call(&mut control, "GET k"), "$1 1");
        call(&mut control, "FAKE CLOCK ADVANCE 999");
        assert_eq!(raw.receive(SILENCE), Received::Silence);
        call(&mut control, "FAKE CLOCK ADVANCE 1");
        assert_eq!(
            (next(&mut raw), next(&mut raw)),
            (":1".to_owned(), "$1 1".to_owned())
        );
        // And by real time, with a reply that is itself waited for.
        call(&mut control, "FAKE CLOCK REAL");
        call(&mut control, "FAKE FAIL BLPOP DELAY 100");
        send(&mut raw, "BLPOP list 0");
        assert_eq!(raw.receive(SILENCE), Received::Silence);
        let pushed = Instant::now();
        call(&mut control, "RPUSH list job");
        assert_eq!(next(&mut raw), "*2 $4 list $3 job");
        assert!(pushed.elapsed() >= Duration::from_millis(90));
        // Who does not wait for it is forgotten with it.
        call(&mut control, "FAKE FAIL PING DELAY 50");
        send(&mut raw, "PING");
        drop(raw);
        std::thread::sleep(2 * SILENCE);
        assert_eq!(call(&mut control, "PING"), "+PONG");
    });
}

#[test]
fn a_request_that_is_held_back_counts_once() {
    Steered::each(|steered| {
        let (mut control, mut raw) = (steered.raw(), steered.raw());
        call(&mut control, "FAKE FAIL SET NTH 2 ERROR \"ERR no\"");
        call(&mut control, "CLIENT PAUSE 1000 WRITE");
        send(&mut raw, "SET k 1");
        assert_eq!(raw.receive(SILENCE), Received::Silence);
        call(&mut control, "FAKE CLOCK ADVANCE 1000");
        assert_eq!(next(&mut raw), "+OK");
        assert_eq!(call(&mut raw, "SET k 2"), "-ERR no");
    });
}

#[test]
fn a_dump_shows_every_type_in_a_stable_order() {
    let expected = "\
db 0
\"a b\" string \"\\x00\\n\\\"\" (expires in 5000 ms)
\"hash\" hash (expires in 1 ms)
  \"f1\" \"2\"
  \"f2\" \"1\"
\"list\" list
  \"z\"
  \"a\"
\"set\" set
  \"10\"
  \"9\"
  \"x\"
\"zset\" zset
  -inf \"low\"
  1.5 \"b\"
db 3
\"s\" stream
  1-1 \"f\" \"v\"
  2-1 \"g\" \"w\"
  last id 2-1
  group \"g\" at 1-1
    consumer \"c\"
    pending 1-1 \"c\", delivered 1 times
";
    Steered::each(|steered| {
        let mut raw = steered.raw();
        assert_eq!(steered.server.dump(), "");
        for request in [
            "SELECT 3",
            "XADD s 1-1 f v",
            "XGROUP CREATE s g 0",
            "XREADGROUP GROUP g c STREAMS s >",
            "XADD s 2-1 g w",
            "SELECT 0",
            "ZADD zset 1.5 b -inf low",
            "SADD set x 9 10",
            "RPUSH list z a",
            "HSET hash f2 1 f1 2",
            "PEXPIRE hash 1",
            "SET \"a b\" \"\\x00\\n\\\"\" EX 5",
            "SET due v PX 0",
        ] {
            call(&mut raw, request);
        }
        assert_eq!(steered.server.dump(), expected);
        raw.call(&["HELLO", "3"]);
        let reply = raw.call(&["FAKE", "DUMP"]);
        assert!(
            matches!(&reply, Frame::Blob(b'=', text) if text.starts_with(b"txt:db 0\n")),
            "{reply:?}"
        );
        steered.server.advance(Duration::from_millis(2));
        assert!(!steered.server.dump().contains("hash"));
    });
}

#[test]
fn reset_leaves_nothing_behind_but_the_caller() {
    Steered::each(|steered| {
        let (mut raw, mut idle, mut waiting) = (steered.raw(), steered.raw(), steered.raw());
        assert_eq!(call(&mut idle, "PING"), "+PONG");
        send(&mut waiting, "BLPOP list 0");
        assert_eq!(waiting.receive(SILENCE), Received::Silence);
        for request in [
            "SELECT 2",
            "SET k v",
            "SCRIPT LOAD \"return 1\"",
            "CONFIG SET maxmemory 1000000 notify-keyspace-events KEA",
            "CLIENT PAUSE 100000 WRITE",
            "FAKE FAIL GET ALWAYS ERROR \"ERR no\"",
            "FAKE RESET",
        ] {
            assert!(!call(&mut raw, request).starts_with('-'), "{request}");
        }
        assert_eq!(
            (next(&mut idle), next(&mut waiting)),
            ("closed".into(), "closed".into())
        );
        assert_eq!(call(&mut raw, "GET k"), "$-1");
        assert_eq!(call(&mut raw, "SET k v"), "+OK");
        assert_eq!(
            call(&mut raw, "CONFIG GET maxmemory"),
            "*2 $9 maxmemory $1 0"
        );
        let sha = "SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
        assert_eq!(call(&mut raw, sha), "*1 :0");
        assert!(!steered.server.clock().is_frozen());
        assert_eq!(call(&mut steered.raw(), "PING"), "+PONG");
    });
}

#[test]
fn wrong_usage_is_told_what_is_wrong() {
    let syntax = "-ERR syntax error, try FAKE HELP";
    let range = "-ERR milliseconds are out of range, the clock goes from 0 to 253402300799999";
    Steered::each(|steered| {
        let mut raw = steered.raw();
        for (request, reply) in [
            ("FAKE", syntax),
            ("FAKE NONSENSE", syntax),
            ("FAKE DUMP x", syntax),
            ("FAKE RESET x", syntax),
            ("FAKE CLOCK", syntax),
            ("FAKE CLOCK NOW x", syntax),
            ("FAKE CLOCK ADVANCE", syntax),
            ("FAKE CLOCK ADVANCE 1 2", syntax),
            (
                "FAKE CLOCK ADVANCE x",
                "-ERR value is not an integer or out of range",
            ),
            ("FAKE CLOCK ADVANCE -1", range),
            ("FAKE CLOCK ADVANCE 253402300799999", range),
            ("FAKE CLOCK FREEZE 253402300800000", range),
            ("FAKE FAIL", syntax),
            ("FAKE FAIL GET", syntax),
            ("FAKE FAIL GET ERROR", syntax),
            ("FAKE FAIL GET ERROR a b", syntax),
            ("FAKE FAIL GET ALWAYS", syntax),
            (
                "FAKE FAIL GET DELAY 1.5",
                "-ERR value is not an integer or out of range",
            ),
            (
                "FAKE FAIL GET NTH 0 DROP-AFTER",
                "-ERR NTH counts from 1 on",
            ),
            (
                "FAKE FAIL NOSUCH DROP-AFTER",
                "-ERR there is no command 'NOSUCH' that could fail",
            ),
            (
                "FAKE FAIL CONFIG|X DROP-AFTER",
                "-ERR there is no command 'CONFIG|X' that could fail",
            ),
            (
                "FAKE FAIL GET ERROR \"\"",
                "-ERR the text of an error is one line, and not empty",
            ),
            (
                "FAKE FAIL GET ERROR \"a\\nb\"",
                "-ERR the text of an error is one line, and not empty",
            ),
        ] {
            assert_eq!(call(&mut raw, request), reply, "{request}");
        }
        assert!(call(&mut raw, "FAKE HELP").contains("FAIL CLEAR"));
        for _ in 0..1024 {
            call(&mut raw, "FAKE FAIL GET NTH 2000 DROP-AFTER");
        }
        let full = "-ERR there are 1024 faults already";
        assert_eq!(call(&mut raw, "FAKE FAIL GET DROP-AFTER"), full);
    });
}

#[test]
fn the_same_faults_are_there_from_rust() {
    let server = Server::builder().clock(Clock::frozen_at(START)).build();
    let mut raw = Raw::memory(&server);
    server
        .fail("EVALSHA")
        .with_error("NOSCRIPT No matching script.");
    let sha = "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0";
    call(&mut raw, "SCRIPT LOAD \"return 1\"");
    assert_eq!(call(&mut raw, sha), "-NOSCRIPT No matching script.");
    assert_eq!(call(&mut raw, sha), ":1");
    server.fail("GET").always().delay(Duration::from_secs(1));
    send(&mut raw, "GET k");
    assert_eq!(raw.receive(SILENCE), Received::Silence);
    server.advance(Duration::from_secs(1));
    assert_eq!(next(&mut raw), "$-1");
    assert_eq!(server.clear_faults(), 1);
    server.fail("INCR").nth(2).drop_after();
    assert_eq!(call(&mut raw, "INCR k"), ":1");
    send(&mut raw, "INCR k");
    assert_eq!(next(&mut raw), "closed");
    server.fail("INCR").drop_before();
    let mut raw = Raw::memory(&server);
    send(&mut raw, "INCR k");
    assert_eq!(next(&mut raw), "closed");
    assert_eq!(server.dump(), "db 0\n\"k\" string \"2\"\n");
}

#[test]
fn connections_without_a_socket_break_too() {
    let server = Server::new();
    let (mut blocking, mut other) = (server.connection(), server.connection());
    let incr = redis::cmd("INCR").arg("k").to_owned();
    let is_broken =
        |result: redis::RedisResult<i64>| result.is_err_and(|error| error.is_io_error());
    server.fail("INCR").drop_after();
    assert!(is_broken(incr.query(&mut blocking)));
    assert!(is_broken(incr.query(&mut blocking)), "it stays closed");
    assert_eq!(incr.query(&mut other), Ok(2));
    server.fail("INCR").drop_before();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut connection = server.async_connection();
        assert!(is_broken(incr.query_async(&mut connection).await));
        server.fail("BLPOP").drop_after();
        let mut waiting = server.async_connection();
        let blpop = redis::cmd("BLPOP").arg("list").arg(0).to_owned();
        let pushed = async {
            tokio::time::sleep(SILENCE).await;
            server.command(["RPUSH", "list", "job"])
        };
        let (popped, _) = tokio::join!(blpop.query_async(&mut waiting), pushed);
        assert!(is_broken(popped));
    });
    assert_eq!(server.dump(), "db 0\n\"k\" string \"2\"\n");
}
