//! Scripts that would never end, or take all memory: on the fake each ends with an error, and the next script finds a server
//! in order. (redis-server answers some of these by hanging, so they run on the fake alone.)

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use fakeserver::{Reply, Server};

/// Scripts that no limit of Lua's own stops, and what their error speaks of.
const RUNAWAYS: [(&str, &str); 7] = [
    (
        "while true do end",
        "more instructions than its limit allows",
    ),
    (
        "while true do pcall(function() while true do end end) end",
        "more instructions than its limit allows",
    ),
    (
        "local s = 'a' while true do s = s .. s end",
        "not enough memory",
    ),
    (
        "local t, i = {}, 0 while true do i = i + 1 t[i] = {i} end",
        "not enough memory",
    ),
    ("return {unpack({}, 1, 1e8)}", "too many results to unpack"),
    (
        "local function f() return 1 + f() end return f()",
        "stack overflow",
    ),
    (
        "local t = {} for i = 1, 40 do t = {t, t} end return cjson.encode(t)",
        "more instructions than its limit allows",
    ),
];

fn bounded() -> Server {
    Server::builder().script_instructions(100_000_000).build()
}

#[test]
fn a_runaway_script_ends_with_an_error_and_the_next_one_runs() {
    let server = bounded();
    for (script, text) in RUNAWAYS {
        let Reply::Error(error) = server.command(["EVAL", script, "0"]) else {
            panic!("{script} ended without an error");
        };
        let error = error.to_string();
        assert!(error.contains(text), "{script}: {error}");
        assert_eq!(
            server.command(["EVAL", "return 1", "0"]),
            Reply::Integer(1),
            "after {script}"
        );
    }
}

#[test]
fn what_a_script_wrote_before_its_limit_stays_as_redis_keeps_it() {
    let server = bounded();
    let reply = server.command(["EVAL", "redis.call('SET', 'k', 'v') while true do end", "0"]);
    assert!(reply.is_error(), "{reply:?}");
    assert_eq!(server.command(["GET", "k"]), Reply::bulk("v"));
}
