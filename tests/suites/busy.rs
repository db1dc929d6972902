//! Scripts that take too long: the others are told so and can end them. On the fake over TCP and on the real server, and where
//! time, threads or the socket are the fake's own, on that alone.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::time::{Duration, Instant};

use fakeserver::clock::Timestamp;
use fakeserver::config::Config;
use fakeserver::engine::{Engine, Peer};
use fakeserver::{Clock, Reply, Server};
use tests::frame::Frame;
use tests::raw::{PATIENCE, Raw, Received};
use tests::server::{Backend, Kind};

const ENDLESS: &str = "while true do end";
/// Takes a part of a second on redis-server and some seconds here, where Lua may not be optimized.
const LONG: &str = "local n = 0 while n < 3e7 do n = n + 1 end return 'done'";
const BUSY: &str =
    "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
const UNKILLABLE: &str = "-UNKILLABLE Sorry the script already executed write commands against the dataset. You can \
     either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.";
const KILLED: &str = "-ERR Script killed by user with SCRIPT KILL...";

/// Runs a test on every server that has a socket.
fn each(test: impl Fn(&Backend)) {
    for kind in Backend::kinds()
        .iter()
        .filter(|kind| **kind != Kind::Memory)
    {
        let backend = Backend::start(*kind);
        let mut control = backend.raw();
        assert_eq!(
            call(&mut control, "CONFIG SET busy-reply-threshold 30"),
            "+OK"
        );
        test(&backend);
    }
}

/// The reply to an inline request, `|` for line ends.
fn call(con: &mut Raw, line: &str) -> String {
    con.send(format!("{line}\r\n").as_bytes());
    read(con)
}

fn read(con: &mut Raw) -> String {
    match con.receive(PATIENCE) {
        Received::Frame(frame) => text(&frame),
        other => format!("{other:?}"),
    }
}

fn text(frame: &Frame) -> String {
    let bytes = frame.to_bytes();
    let text = String::from_utf8_lossy(&bytes).replace("\r\n", "|");
    text.strip_suffix('|').unwrap_or(&text).to_owned()
}

/// A connection whose script runs, and has run for so long that others are told.
fn slow(backend: &Backend, script: &str) -> Raw {
    let mut caller = backend.raw();
    caller.request(&["EVAL", script, "0"]);
    await_busy(backend);
    caller
}

fn await_busy(backend: &Backend) {
    let until = Instant::now() + PATIENCE;
    while call(&mut backend.raw(), "PING") != BUSY {
        assert!(
            Instant::now() < until,
            "the server never says that it is busy"
        );
    }
}

fn kill(backend: &Backend, caller: &mut Raw) -> String {
    assert_eq!(call(&mut backend.raw(), "SCRIPT KILL"), "+OK");
    read(caller)
}

#[test]
fn others_hear_that_the_server_is_busy_until_the_script_is_killed() {
    each(|backend| {
        let mut early = backend.raw();
        assert_eq!(call(&mut early, "SET k v"), "+OK");
        let mut caller = slow(backend, ENDLESS);
        let mut late = backend.raw();
        for con in [&mut early, &mut late] {
            for line in [
                "GET k",
                "EVAL x 0",
                "SCRIPT EXISTS x",
                "SHUTDOWN",
                "SHUTDOWN SAVE",
                "TIME",
            ] {
                assert_eq!(call(con, line), BUSY, "{line}");
            }
            assert_eq!(
                call(con, "GET"),
                "-ERR wrong number of arguments for 'get' command"
            );
            assert_eq!(call(con, "SHUTDOWN NOSAVE SAVE"), "-ERR syntax error");
            for line in ["WATCH k", "UNWATCH", "MULTI", "DISCARD"] {
                assert_eq!(call(con, line), "+OK", "{line}");
            }
            assert!(call(con, "HELLO 2").starts_with("*14|"));
            assert_eq!(call(con, "RESET"), "+RESET");
        }
        let mut leaving = backend.raw();
        assert_eq!(call(&mut leaving, "QUIT"), "+OK");
        assert_eq!(leaving.receive(PATIENCE), Received::Closed);
        let ended = kill(backend, &mut caller);
        assert!(
            ended.starts_with(KILLED) && ended.ends_with(", on @user_script:1."),
            "{ended}"
        );
        assert_eq!(call(&mut early, "GET k"), "$1|v");
        assert_eq!(
            call(&mut late, "SCRIPT KILL"),
            "-NOTBUSY No scripts in execution right now."
        );
    });
}

#[test]
fn a_transaction_that_meets_a_busy_server_is_lost() {
    each(|backend| {
        let (mut whole, mut half) = (backend.raw(), backend.raw());
        for con in [&mut whole, &mut half] {
            assert_eq!(call(con, "MULTI"), "+OK");
            assert_eq!(call(con, "SET k v"), "+QUEUED");
        }
        let mut caller = slow(backend, ENDLESS);
        let busy = BUSY.strip_prefix('-').unwrap();
        let aborted = format!("-EXECABORT Transaction discarded because of: {busy}");
        assert_eq!(call(&mut whole, "EXEC"), aborted);
        assert_eq!(call(&mut whole, "GET k"), BUSY);
        assert_eq!(call(&mut half, "SET k w"), BUSY);
        let mut pipeline = backend.raw();
        pipeline.send(b"PING\r\nMULTI\r\nSET a b\r\nEXEC\r\nWATCH a\r\n");
        for reply in [BUSY, "+OK", BUSY, &aborted, "+OK"] {
            assert_eq!(read(&mut pipeline), reply);
        }
        kill(backend, &mut caller);
        assert_eq!(
            call(&mut half, "EXEC"),
            "-EXECABORT Transaction discarded because of previous errors."
        );
        assert_eq!(call(&mut half, "EXISTS k a"), ":0");
    });
}

#[test]
fn no_script_catches_its_own_end() {
    let scripts = [
        "while true do pcall(function() while true do end end) end",
        "while true do xpcall(function() while true do end end, function() return 1 end) end",
        "while true do redis.call('GET', 'x') end",
        "while true do redis.pcall('GET', 'x') end",
        "local t = setmetatable({}, {__index = function() while true do end end}) while true do pcall(function() return t.x end) end",
        "while true do pcall(string.gsub, 'a', 'a', function() while true do end end) end",
        "while true do pcall(table.sort, {1, 2, 3}, function() while true do end end) end",
        "while true do load(function() while true do end end) end",
    ];
    each(|backend| {
        for script in scripts {
            let mut caller = slow(backend, script);
            let ended = kill(backend, &mut caller);
            assert!(ended.starts_with(KILLED), "{script}: {ended}");
        }
    });
    // On redis-server each such coroutine catches its end, and so the script goes on for ever.
    let backend = Backend::start(Kind::Tcp);
    call(&mut backend.raw(), "CONFIG SET busy-reply-threshold 30");
    let script =
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end";
    let mut caller = slow(&backend, script);
    assert!(kill(&backend, &mut caller).starts_with(KILLED));
}

#[test]
fn a_killed_script_goes_on_to_its_next_line() {
    let killed = KILLED.strip_prefix('-').unwrap();
    let caught = format!("*2|$5|false|$45|{killed}");
    let handled = format!("*2|$5|false|$50|table{killed}");
    let twice = format!("*3|$4|true|$5|false|$45|{killed}");
    let at = |line: u32| format!(", on @user_script:{line}.");
    let cases = [
        ("pcall(f) return 1", ":1".to_owned()),
        ("pcall(f) pcall(type, 1) return 2", ":2".to_owned()),
        (
            "pcall(f) return redis.call('SET', 'k', 1)",
            "+OK".to_owned(),
        ),
        (
            "local ok, err = pcall(f) return {tostring(ok), err}",
            caught.clone(),
        ),
        (
            "local a, b, err = pcall(pcall, f) return {tostring(a), tostring(b), err}",
            twice,
        ),
        (
            "local ok, err = xpcall(f, function(err) return type(err) .. err.err end) return {tostring(ok), err}",
            handled,
        ),
        (
            "local ok, err = coroutine.resume(coroutine.create(f)) return {tostring(ok), err.err}",
            caught,
        ),
        (
            "coroutine.resume(coroutine.create(f))\nreturn 7",
            ":7".to_owned(),
        ),
        (
            "local f, err = load(f) return type(err)",
            "$5|table".to_owned(),
        ),
        ("pcall(f)\nreturn 1", at(2)),
        ("pcall(f)\n\nreturn redis.call('SET', 'k', 1)", at(3)),
        ("pcall(f) for i = 1, 3 do end return 2", at(1)),
        (
            "pcall(f) local g = function() return 5 end return g()",
            at(1),
        ),
        ("xpcall(f, function(err)\nreturn err\nend) return 1", at(3)),
        ("while true do\npcall(f)\nend", at(2)),
    ];
    each(|backend| {
        for (script, wanted) in &cases {
            let script = format!("local f = function() while true do end end {script}");
            let mut caller = slow(backend, &script);
            let ended = kill(backend, &mut caller);
            assert!(ended.ends_with(wanted.as_str()), "{script}: {ended}");
            if wanted.starts_with(',') {
                assert!(ended.starts_with(KILLED), "{script}: {ended}");
            }
        }
        // The next script is followed no more closely than any other.
        assert_eq!(
            call(&mut backend.raw(), "EVAL \"pcall(type)\\nreturn 1\" 0"),
            ":1"
        );
    });
}

#[test]
fn a_script_that_has_called_a_write_cannot_be_killed() {
    each(|backend| {
        for write in ["redis.call('SET', 'k', 1)", "redis.pcall('LPUSH', 'k', 1)"] {
            let mut caller = slow(backend, &format!("{write} {LONG}"));
            assert_eq!(
                call(&mut backend.raw(), "SCRIPT KILL"),
                UNKILLABLE,
                "{write}"
            );
            assert_eq!(read(&mut caller), "$4|done", "{write}");
        }
        let mut caller = slow(backend, "pcall(redis.call, 'SET', 'k') while true do end");
        assert!(
            kill(backend, &mut caller).starts_with(KILLED),
            "nothing was called"
        );
    });
}

#[test]
fn a_killed_script_ends_one_command_of_a_transaction_and_of_a_pipeline() {
    each(|backend| {
        let mut caller = backend.raw();
        for line in [
            "MULTI",
            "SET k 1",
            &format!("EVAL \"{ENDLESS}\" 0"),
            "SET k 2",
        ] {
            call(&mut caller, line);
        }
        caller.send(b"EXEC\r\n");
        await_busy(backend);
        let replies = kill(backend, &mut caller);
        assert!(
            replies.starts_with(&format!("*3|+OK|{KILLED}")),
            "{replies}"
        );
        assert!(replies.ends_with("|+OK"), "{replies}");
        caller.send(format!("EVAL \"{ENDLESS}\" 0\r\nGET k\r\n").as_bytes());
        await_busy(backend);
        assert!(kill(backend, &mut caller).starts_with(KILLED));
        assert_eq!(read(&mut caller), "$1|2");
    });
}

#[test]
fn a_script_whose_caller_is_gone_can_be_killed() {
    each(|backend| {
        drop(slow(backend, ENDLESS));
        let mut other = backend.raw();
        assert_eq!(call(&mut other, "GET k"), BUSY);
        assert_eq!(call(&mut other, "SCRIPT KILL"), "+OK");
        let until = Instant::now() + PATIENCE;
        while call(&mut other, "PING") != "+PONG" {
            assert!(Instant::now() < until, "the script goes on");
        }
    });
}

const BUSY_FUNCTION: &str =
    "-BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";

#[test]
fn functions_and_scripts_are_each_killed_by_a_command_of_their_own() {
    each(|backend| {
        let mut con = backend.raw();
        let library =
            "#!lua name=lib\nredis.register_function('f', function() while true do end end)";
        con.request(&["FUNCTION", "LOAD", library]);
        assert_eq!(read(&mut con), "$3|lib");
        let mut caller = backend.raw();
        caller.request(&["FCALL", "f", "0"]);
        while call(&mut con, "PING") != BUSY_FUNCTION {}
        for line in [
            "SCRIPT KILL",
            "SHUTDOWN",
            "FUNCTION LIST",
            "FCALL f 0",
            "EVAL x 0",
        ] {
            assert_eq!(call(&mut con, line), BUSY_FUNCTION, "{line}");
        }
        let stats = call(&mut con, "FUNCTION STATS");
        let running = "*4|$14|running_script|*6|$4|name|$1|f|$7|command|*3|$5|FCALL|$1|f|$1|0|$11|duration_ms|:";
        assert!(stats.starts_with(running), "{stats}");
        assert_eq!(call(&mut con, "FUNCTION KILL"), "+OK");
        assert_eq!(
            read(&mut caller),
            format!("{KILLED} script: f, on @user_function:2.")
        );
        let mut caller = slow(backend, ENDLESS);
        assert_eq!(call(&mut con, "FUNCTION KILL"), BUSY);
        assert_eq!(call(&mut con, "FUNCTION STATS"), BUSY);
        kill(backend, &mut caller);
        assert_eq!(
            call(&mut con, "FUNCTION KILL"),
            "-NOTBUSY No scripts in execution right now."
        );
    });
}

#[test]
fn what_waited_before_the_script_is_served_after_it() {
    each(|backend| {
        let (mut waiting, mut patient) = (backend.raw(), backend.raw());
        waiting.send(b"BLPOP list 0\r\n");
        patient.send(b"BLPOP never 0.05\r\n");
        let mut probe = backend.raw();
        while !call(&mut probe, "INFO clients").contains("blocked_clients:2") {}
        let script = format!("redis.call('RPUSH', 'list', 'job') {LONG}");
        let mut caller = slow(backend, &script);
        assert_eq!(
            waiting.receive(Duration::from_millis(20)),
            Received::Silence
        );
        assert_eq!(read(&mut caller), "$4|done");
        assert_eq!(read(&mut waiting), "*2|$4|list|$3|job");
        assert_eq!(read(&mut patient), "*-1");
    });
}

#[test]
fn without_a_threshold_the_others_wait() {
    each(|backend| {
        let mut con = backend.raw();
        assert_eq!(call(&mut con, "CONFIG SET lua-time-limit 0"), "+OK");
        let mut caller = backend.raw();
        let script = "local n = 0 while n < 3e5 do n = n + 1 redis.call('GET', 'x') end return n";
        caller.request(&["EVAL", script, "0"]);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(call(&mut con, "PING"), "+PONG");
        assert_eq!(read(&mut caller), ":300000");
    });
}

#[test]
fn a_shutdown_without_saving_ends_the_script_and_the_server() {
    let backend = Backend::start(Kind::Tcp);
    call(&mut backend.raw(), "CONFIG SET busy-reply-threshold 30");
    let mut caller = slow(&backend, ENDLESS);
    let mut other = backend.raw();
    other.send(b"SHUTDOWN NOSAVE\r\n");
    assert_eq!(other.receive(PATIENCE), Received::Closed);
    assert_eq!(caller.receive(PATIENCE), Received::Closed);
}

#[test]
fn a_server_that_is_dropped_amid_a_script_ends() {
    let server = Server::builder().script_instructions(0).start();
    let mut caller = Raw::tcp(("127.0.0.1", server.port())).unwrap();
    caller.request(&["EVAL", ENDLESS, "0"]);
    std::thread::sleep(Duration::from_millis(50));
    drop(server);
    assert_eq!(caller.receive(PATIENCE), Received::Closed);
}

#[test]
fn threads_without_a_socket_are_told_as_well() {
    let server = Server::builder().script_instructions(0).build();
    server.command(["CONFIG", "SET", "busy-reply-threshold", "30"]);
    std::thread::scope(|scope| {
        let callers = [(); 4].map(|()| {
            scope.spawn(|| {
                while !is_busy(&server.command(["GET", "k"])) {}
                server.command(["WATCH", "k"])
            })
        });
        let running = scope.spawn(|| server.command(["EVAL", ENDLESS, "0"]));
        for caller in callers {
            assert_eq!(caller.join().unwrap(), Reply::OK);
        }
        assert_eq!(server.command(["SCRIPT", "KILL"]), Reply::OK);
        assert!(running.join().unwrap().is_error());
    });
    assert_eq!(server.command(["GET", "k"]), Reply::Null);
}

#[test]
fn a_script_takes_long_by_the_servers_clock() {
    let clock = Clock::frozen_at(1_000_000);
    let server = Server::builder()
        .clock(clock.clone())
        .script_instructions(0)
        .build();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| server.command(["EVAL", ENDLESS, "0"]));
        let other = scope.spawn(|| server.command(["GET", "k"]));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!running.is_finished(), "time stands still");
        // Who asks while it runs waits until it is slow, so that time has to go on meanwhile.
        while !running.is_finished() {
            let kill = scope.spawn(|| server.command(["SCRIPT", "KILL"]));
            while !kill.is_finished() {
                clock.advance(Duration::from_secs(6));
                std::thread::yield_now();
            }
        }
        assert!(running.join().unwrap().is_error());
        other.join().unwrap();
    });
}

#[test]
fn an_engine_without_a_driver_runs_each_script_to_its_end() {
    let now = Timestamp::from_millis(0);
    let config = Config {
        busy_reply_threshold: 1,
        script_instructions_max: 10_000_000,
        ..Config::default()
    };
    let mut engine = Engine::new(config, now);
    let id = engine.connect(Peer::default(), now);
    engine.receive(id, b"EVAL \"while true do end\" 0\r\nPING\r\n", now);
    let mut out = Vec::new();
    engine.poll_transmit(id, &mut out);
    let out = String::from_utf8_lossy(&out);
    assert!(
        out.contains("more instructions than its limit allows"),
        "{out}"
    );
    assert!(out.ends_with("+PONG\r\n"), "{out}");
}

fn is_busy(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(error) if Some(error.to_string().as_str()) == BUSY.strip_prefix('-'))
}
