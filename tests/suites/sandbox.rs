//! Scripts that try to get out of their environment, or to bring the server down: the next client finds everything in order.
//!
//! What redis-server answers is in `transcripts/sandbox.resp`; here is what needs several scripts, what the real server does not
//! survive, and what is too large for a transcript.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

#[path = "sandbox/twins.rs"]
mod twins;

use std::fmt::Write as _;

use fakeserver::{Reply, Server};
use mlua::Lua;

fn server() -> Server {
    Server::builder().script_instructions(100_000_000).build()
}

fn eval(server: &Server, script: &str) -> Reply {
    server.command(["EVAL", script, "0"])
}

/// The error that a script ends with.
fn error(server: &Server, script: &str) -> String {
    let shown: String = script.chars().take(200).collect();
    match eval(server, script) {
        Reply::Error(error) => error.to_string(),
        other => panic!("{shown} ends without an error: {other:?}"),
    }
}

/// What the victim of a script sees: whoever comes next.
const VICTIM: &str = "
    local sum = 0
    for i, v in ipairs({1, 2, 3}) do sum = sum + v end
    local ok = pcall(function() return ('x') + 1 end)
    local called = redis.call('GET', 'secret')
    return {sum, tostring(ok), called, ('ab'):rep(2), tostring(next({})), cjson.encode({1}), bit.tohex(255)}";

/// The victim's view in a sound server.
fn sound() -> Reply {
    let server = server();
    server.command(["SET", "secret", "s3"]);
    eval(&server, VICTIM)
}

/// Scripts that change what the next script finds, wherever that is possible.
const POISONS: [(&str, &str); 14] = [
    (
        "CVE-2022-24735",
        "redis.call = function() return 'evil' end",
    ),
    (
        "CVE-2022-24735",
        "rawset(redis, 'call', function() return 'evil' end)",
    ),
    ("CVE-2022-24735", "table.insert(redis, 'evil')"),
    (
        "CVE-2022-24735",
        "string.rep = function() return 'evil' end",
    ),
    ("CVE-2022-24735", "next = function() return 'evil' end"),
    (
        "CVE-2022-24735",
        "rawset(_G, 'ipairs', function() return function() end end)",
    ),
    (
        "CVE-2022-24735",
        "setmetatable(_G, {__index = function() return 'evil' end})",
    ),
    ("CVE-2022-24735", "getmetatable(_G).__newindex = nil"),
    (
        "CVE-2022-24735",
        "cjson.encode = function() return 'evil' end",
    ),
    (
        "CVE-2022-24735",
        "for _, t in pairs({bit, math, table, cmsgpack, struct}) do rawset(t, 'tohex', 1) end",
    ),
    (
        "CVE-2025-46818",
        "getmetatable('').__index = function() return function() return 'evil' end end",
    ),
    (
        "CVE-2025-46818",
        "getmetatable('').__add = function() return 'evil' end",
    ),
    (
        "CVE-2025-46818",
        "rawset(getmetatable(''), '__add', function() return 'evil' end)",
    ),
    (
        "CVE-2025-46818",
        "getmetatable(getmetatable('')).__newindex = nil",
    ),
];

#[test]
fn no_script_changes_what_the_next_one_finds() {
    let sound = sound();
    for (name, poison) in POISONS {
        let server = server();
        server.command(["SET", "secret", "s3"]);
        eval(&server, poison);
        assert_eq!(eval(&server, VICTIM), sound, "{name}: {poison}");
    }
}

#[test]
fn the_poisons_work_in_a_plain_lua() {
    let mut harmed = Vec::new();
    for (name, poison) in POISONS {
        let lua = Lua::new();
        let prelude = "redis = {call = function() return 's3' end} cjson = {encode = function() return '[1]' end}
            bit = {tohex = function() return '000000ff' end} cmsgpack, struct = {}, {} ";
        lua.load(prelude).exec().unwrap();
        let view = |lua: &Lua| {
            let results = lua.load(VICTIM).eval::<Vec<mlua::Value>>();
            results.map_or_else(|error| error.to_string(), |values| format!("{values:?}"))
        };
        let before = view(&lua);
        // What is not possible in a plain Lua harms nobody there.
        let _ = lua.load(poison).exec();
        if view(&lua) != before {
            harmed.push(name);
        }
    }
    for name in ["CVE-2022-24735", "CVE-2025-46818"] {
        assert!(harmed.contains(&name), "the victim does not notice {name}");
    }
}

#[test]
fn nothing_of_the_system_is_in_reach() {
    let server = server();
    let missing = [
        "debug", "dofile", "getfenv", "io", "jit", "loadfile", "module", "newproxy", "os",
        "package", "print", "require", "setfenv",
    ];
    for name in missing {
        let text = error(&server, &format!("return {name}.x"));
        assert!(
            text.contains(&format!("nonexistent global variable '{name}'")),
            "{name}: {text}"
        );
        let looks = format!("return tostring(rawget(_G, '{name}'))");
        assert_eq!(eval(&server, &looks), Reply::bulk("nil"), "{name}");
    }
    // The broken twin: a Lua with its standard libraries has nearly all of them.
    let lua = Lua::new();
    let there = missing
        .iter()
        .filter(|name| !lua.globals().get::<mlua::Value>(**name).unwrap().is_nil());
    assert!(there.count() >= 8);
}

#[test]
fn no_bytecode_is_run() {
    let server = server();
    let copy =
        "local code = string.dump(function() return 1 end) return tostring(loadstring(code))";
    assert_eq!(
        eval(&server, copy),
        Reply::bulk("nil"),
        "it can be made, as in Redis"
    );
    let compiled = Lua::new()
        .load("return 1")
        .into_function()
        .unwrap()
        .dump(true);
    assert!(!compiled.is_empty());
    let escaped = compiled.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "\\{byte:03}");
        text
    });
    for load in [
        "loadstring(code)",
        "load(function() local c = code code = nil return c end)",
    ] {
        let script = format!(
            "local code = \"{escaped}\" local f, err = {load} return tostring(f) .. tostring(err)"
        );
        let Reply::Bulk(reply) = eval(&server, &script) else {
            panic!("{load}: no text");
        };
        assert!(String::from_utf8_lossy(&reply).starts_with("nil"), "{load}");
    }
    assert!(server.command([&b"EVAL"[..], &compiled, b"0"]).is_error());
}

/// Scripts of a size or depth that no transcript holds, with what their error says.
fn giants() -> Vec<(&'static str, String, &'static str)> {
    let long =
        |open: &str, times: usize, close: &str| open.repeat(times) + "1" + &close.repeat(times);
    vec![
        ("calls", "local function f() return 1 + f() end return f()".into(), "stack overflow"),
        ("gsub in gsub", "local function f() return (string.gsub('x', 'x', f)) end return f()".into(), "C stack overflow"),
        ("sort in sort", "local function f(a, b) table.sort({1, 2, 3}, f) return a < b end table.sort({1, 2, 3}, f)".into(), "C stack overflow"),
        ("coroutine in coroutine", "local function f() return coroutine.wrap(f)() end return f()".into(), "C stack overflow"),
        ("tostring", "local t = setmetatable({}, {__tostring = function(s) return tostring(s) end}) return tostring(t)".into(), "C stack overflow"),
        ("index", "local t t = setmetatable({}, {__index = function(_, k) return t[k .. 'x'] end}) return t.x".into(), "C stack overflow"),
        ("index in a circle", "local t = setmetatable({}, {}) getmetatable(t).__index = t return t.x".into(), "loop in gettable"),
        ("call in a circle", "local t = setmetatable({}, {}) getmetatable(t).__call = t return t()".into(), "attempt to call"),
        ("parentheses", format!("return {}", long("(", 200_000, ")")), "chunk has too many syntax levels"),
        ("tables", format!("return {}", long("{", 100_000, "}")), "chunk has too many syntax levels"),
        ("functions", format!("return {}", long("function() return ", 10_000, " end")), "chunk has too many syntax levels"),
        ("minus signs", format!("return {}1", "- ".repeat(100_000)), "chunk has too many syntax levels"),
        ("powers", format!("return {}1", "1^".repeat(100_000)), "chunk has too many syntax levels"),
        ("concatenations", format!("return {}'a'", "'a'..".repeat(100_000)), "chunk has too many syntax levels"),
        ("long string", format!("return [{}", "=".repeat(1_000_000)), "invalid long string delimiter"),
        ("unfinished long string", format!("return [{}[", "=".repeat(1_000_000)), "unfinished long string"),
        ("constants", format!("return #{{{}}}", (0..300_000).fold(String::new(), |mut all, n| { let _ = write!(all, "'{n}',"); all })), "constant table overflow"),
        ("locals", format!("local a {}", "local b ".repeat(250)), "has more than 200 local variables"),
        ("digits", format!("return 0x{}g", "f".repeat(1_000_000)), "malformed number"),
        ("code", format!("local x = 0 {} error('end')", "x = x + 1 ".repeat(1_000_000)), "end"),
        ("comment", format!("--{}\nerror('end')", "x".repeat(10_000_000)), "end"),
        ("text", format!("local s = '{}' error(#s)", "x".repeat(10_000_000)), "10000000"),
        ("repeated text", "return string.rep('abcdefgh', 2147483647)".into(), "not enough memory"),
        ("doubled text", "local s = 'x' while true do s = s .. s end".into(), "not enough memory"),
        ("joined text", "local t = {} for i = 1, 100 do t[i] = string.rep('x', 1e7) end return #table.concat(t)".into(), "not enough memory"),
        ("table", "local t, i = {}, 0 while true do i = i + 1 t[i] = {i} end".into(), "not enough memory"),
        ("replaced text", "return #string.gsub(string.rep('x', 1e6), 'x', string.rep('y', 1000))".into(), "not enough memory"),
        ("loaded text", "return load(function() return string.rep('x', 1e6) end)".into(), "not enough memory"),
        ("reply", "local t = {string.rep('x', 1e6)} for i = 1, 12 do t = {t, t} end return t".into(), "not enough memory"),
        ("reply in a circle", "local t = {} t[1] = t t[2] = t return t".into(), ""),
        ("JSON", "local t = {string.rep('x', 1e6)} for i = 1, 12 do t = {t, t} end return cjson.encode(t)".into(), "not enough memory"),
        ("nested JSON", "cjson.decode_max_depth(1e6) return cjson.decode(string.rep('[', 1e6))".into(), "Found too many nested data structures"),
        ("MessagePack", "local t = {string.rep('x', 1e6)} for i = 1, 12 do t = {t, t} end return cmsgpack.pack(t)".into(), "not enough memory"),
        ("arguments", "return unpack({}, 1, 1e8)".into(), "too many results to unpack"),
        ("arguments of a call", "local t = {} for i = 1, 9000 do t[i] = 'x' end return redis.call('DEL', unpack(t))".into(), "too many results to unpack"),
        ("pattern", "return string.find(string.rep('a', 40), string.rep('a?', 40) .. string.rep('a', 40) .. 'b')".into(), "limit"),
        ("deep pattern", "return string.find(string.rep('a', 300000), string.rep('a?', 300000) .. 'b')".into(), "pattern too complex"),
        ("slow pattern", "return string.match(string.rep('a', 200000), '.-.-.-b')".into(), "limit"),
        ("brackets", "return string.match(string.rep('(', 100000), '%b()')".into(), "limit"),
        ("error without text", "error({})".into(), "unknown error"),
        ("error with a metatable", "error(setmetatable({}, {__index = function() error('x') end, __tostring = function() while true do end end}))".into(), "unknown error"),
    ]
}

#[test]
fn what_is_too_large_or_too_deep_ends_with_an_error_and_the_server_lives() {
    let server = server();
    for (name, script, text) in giants() {
        let reply = eval(&server, &script);
        // A circle ends in an error deep inside of the reply.
        if !text.is_empty() {
            let Reply::Error(error) = &reply else {
                panic!("{name} ends without an error");
            };
            assert!(error.to_string().contains(text), "{name}: {error}");
        }
        drop(reply);
        assert_eq!(eval(&server, "return 1"), Reply::Integer(1), "after {name}");
    }
}

#[test]
fn a_million_keys_and_arguments_reach_a_script() {
    let server = server();
    let words = |n: usize| (0..n).map(|n| n.to_string().into_bytes());
    let head = [
        &b"EVAL"[..],
        b"return {#KEYS, #ARGV, KEYS[#KEYS]}",
        b"1000000",
    ];
    let request = head.iter().map(|word| word.to_vec());
    let reply = server.command(request.chain(words(1_000_000)).chain(words(3)));
    let wanted = [
        Reply::Integer(1_000_000),
        Reply::Integer(3),
        Reply::bulk("999999"),
    ];
    assert_eq!(reply, Reply::Array(wanted.into()));
}

#[test]
fn the_collector_runs_nothing_of_a_script() {
    let server = server();
    eval(
        &server,
        "setmetatable({}, {__gc = function() redis.call('SET', 'ran', 1) end}) collectgarbage()",
    );
    for _ in 0..3 {
        eval(&server, "collectgarbage()");
    }
    server.command(["SCRIPT", "FLUSH"]);
    assert_eq!(server.command(["GET", "ran"]), Reply::Null);
    let text = error(&server, "return newproxy(true)");
    assert!(
        text.contains("nonexistent global variable 'newproxy'"),
        "{text}"
    );
}

#[test]
fn the_parser_survives_a_collection_at_any_time() {
    let server = server();
    // Names of chunks and constants that only the parser holds (CVE-2025-49844), and long strings at a buffer's end
    // (CVE-2025-46819).
    let script = "
        collectgarbage('setpause', 0) collectgarbage('setstepmul', 100000)
        for i = 1, 60 do
            local name = string.rep('n', 3000) .. i
            local f = loadstring('local a = {' .. string.rep(\"'c' .. 'd',\", 50) .. '} return [==[' .. string.rep('x', i) .. ']==]', name)
            assert(#f() == i)
            assert(not loadstring('return [' .. string.rep('=', 2000 + i), name))
            assert(not loadstring('x = = ' .. i, name))
        end
        collectgarbage('setpause', 200) collectgarbage('setstepmul', 200)
        return 'sound'";
    assert_eq!(eval(&server, script), Reply::bulk("sound"));
}

#[test]
fn memory_and_instructions_are_settings() {
    let small = Server::builder().script_memory(4 * 1024 * 1024).build();
    let text = error(&small, "return #string.rep('x', 8 * 1024 * 1024)");
    assert!(text.contains("not enough memory"), "{text}");
    let short = Server::builder().script_instructions(1_000_000).build();
    let text = error(&short, "for i = 1, 1e7 do end");
    assert!(
        text.contains("more instructions than its limit allows"),
        "{text}"
    );
    let free = Server::builder()
        .script_instructions(0)
        .script_memory(0)
        .build();
    let script = "for i = 1, 1e6 do end return #string.rep('x', 300 * 1024 * 1024)";
    assert_eq!(eval(&free, script), Reply::Integer(300 * 1024 * 1024));
}
