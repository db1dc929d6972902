//! Errors, and commands whose replies a script looks at.

use std::fmt::Write as _;

use super::{Lua, SHOW, TextOf};

impl Lua {
    pub(super) fn error(&mut self) {
        let one = self.pick(ERRORS);
        self.text(one);
    }

    /// Replies of commands on their way through a script.
    pub(super) fn calls(&mut self) {
        self.text(SHOW);
        self.text("\n");
        if self.random.bool() {
            self.text("redis.setresp(3)\n");
        }
        for _ in 0..self.random.u8(1..5) {
            let command = self.pick(COMMANDS);
            let call = self.pick(&["call", "pcall"]);
            let _ = writeln!(TextOf(self), "local r = redis.{call}({command})");
        }
        let last = self.pick(&[
            "return r",
            "return show(r)",
            "return {r, type(r)}",
            "return type(r) == 'table' and (r.err or r.ok or #r) or tostring(r)",
            "return cjson.encode(r)",
            "return cmsgpack.pack(r)",
        ]);
        self.text(last);
    }
}

const ERRORS: &[&str] = &[
    "error('boom')",
    "error({err='MINE now'})",
    "error({err='MINE now', more=1})",
    // A table without `err` would end redis-server 7.0.15.
    "error()",
    "error(nil)",
    "error(5)",
    "error(true)",
    "error('no place', 0)",
    "error('twice', 2)",
    "return nosuch",
    "nosuch = 1",
    "return nil .. 'x'",
    "return {} < {}",
    "return 1 < 'x'",
    "return #5",
    "return ('x')()",
    "return nil.x",
    "local t = nil\nreturn t.x.y",
    "return -{}",
    "return 1 + 'x'",
    "return 1 + '2'",
    "for i = 1, 'x' do end",
    "for i = 1, 10, 0 do return i end",
    "return setmetatable({}, {__index = function() error('deep') end}).x",
    "return tostring(setmetatable({}, {__tostring = function() return 'mine' end}))",
    "redis.call('SET', 'x')",
    "return redis.call()",
    "return redis.call(1)",
    "return redis.call({})",
    "return redis.call('GET', {})",
    "return redis.call('GET', nil)",
    "return redis.call('GET', true)",
    "return redis.pcall('GET', {})",
    "return redis.pcall()",
    "return redis.call('SET', 'n0', 1.5)",
    "return {redis.call('SET', 'n0', 1e17), redis.call('GET', 'n0')}",
    "return redis.call('MULTI')",
    "return redis.pcall('SUBSCRIBE', 'x')",
    "return redis.call('EVAL', 'return 1', 0)",
    "return redis.sha1hex()",
    "return redis.sha1hex(1, 2)",
    "return redis.log()",
    "return redis.log(redis.LOG_DEBUG, 'quiet')",
    "return redis.log(9, 'x')",
    "return redis.error_reply()",
    "return redis.status_reply({})",
    "return redis.set_repl(redis.REPL_ALL)",
    "return redis.set_repl(99)",
    "return redis.replicate_commands()",
    "return redis.breakpoint()",
    "return redis.acl_check_cmd('GET', 'x')",
    "return redis.acl_check_cmd('NOSUCH')",
    "redis.x = 1",
    "string.x = 1",
    "getmetatable('').__index = 1",
    "return rawset(redis, 'x', 1)",
    "rawset(_G, 'x', 1)\nreturn x",
    "return loadstring('return 1 +')",
    "return {loadstring('return 1 +')}",
    "return loadstring('return ...')(7)",
    "return {pcall(error)}",
    "return {pcall(error, {err='E'})}",
    "return {xpcall(function() error('in') end, function(e) return 'seen ' .. e end)}",
    "local r = redis.pcall('LPUSH', 's0', 'x')\nreturn r",
    "local r = redis.pcall('NOSUCH', 'x')\nreturn {r.err, tostring(r.ok), tostring(r.source), tostring(r.line)}",
    "local ok, e = pcall(redis.call, 'HSET', 'x')\nreturn {tostring(ok), type(e), e.err}",
    "error(redis.pcall('NOSUCH'))",
    "return redis.pcall('EVALSHA', 'x', 0)",
    "goto x",
    "return 'unfinished",
    "return 1 return 2",
    "local a <const> = 1",
    "return 0x7fffffffffffffff",
    "break",
    "return ...",
    "return select('#', ...)",
    "return coroutine.wrap(function() coroutine.yield(3) end)()",
    "return {coroutine.resume(coroutine.create(function() error('co') end))}",
    "return string.rep('x', -1)",
    "return collectgarbage('count') > 0",
    "return type(os.clock())",
    "return os.time",
    "return math.random(0)",
    "math.randomseed(1)\nreturn {math.random(10), math.random(5, 7), tostring(math.random())}",
    "math.randomseed(2^31)\nreturn {math.random(1000), math.random(1000), math.random(1000)}",
];

const COMMANDS: &[&str] = &[
    "'SET', 's0', '1'",
    "'SET', 's0', 1.5, 'GET'",
    "'GET', 's0'",
    "'GET', 'nosuch'",
    "'INCRBYFLOAT', 'c0', '0.1'",
    "'HSET', 'h0', 'f0', '1'",
    "'HSET', 'h2', 'f0', '1'",
    "'HGETALL', 'h9'",
    "'HSET', 'h9', 'f', '1'",
    "'HGETALL', 'nosuch'",
    "'SMEMBERS', 'nosuch'",
    "'SADD', 't2', '1'",
    "'SMEMBERS', 't2'",
    "'ZADD', 'z2', '1.5', 'a'",
    "'ZSCORE', 'z2', 'a'",
    "'ZRANGE', 'z2', 0, -1, 'WITHSCORES'",
    "'ZINCRBY', 'z2', '0.1', 'a'",
    "'ZMSCORE', 'z2', 'a', 'nosuch'",
    "'ZPOPMIN', 'z2'",
    "'LPUSH', 'l2', 'a', 'b'",
    "'LRANGE', 'l2', 0, -1",
    "'LPOP', 'l2', 5",
    "'BLPOP', 'nosuch', 1",
    "'XADD', 'x1', '9-*', 'f', 'v'",
    "'XRANGE', 'x1', '-', '+'",
    "'XREAD', 'STREAMS', 'x1', '0'",
    "'XINFO', 'STREAM', 'x1'",
    "'CONFIG', 'GET', 'maxmemory'",
    "'PING'",
    "'PING', 'x'",
    "'ECHO', '\\0\\1'",
    "'TYPE', 's0'",
    "'EXISTS', 's0'",
    "'OBJECT', 'ENCODING', 'z2'",
    "'SELECT', '1'",
    "'LCS', 's0', 's1', 'IDX'",
    "'INFO', 'nosuch'",
    "'TIME', 'x'",
    "'SCRIPT', 'EXISTS', 'x'",
    "'PUBLISH', 'news', 'x'",
    "'WAIT', '0', '0'",
    "'HRANDFIELD', 'nosuch', '1', 'WITHVALUES'",
    "'DEBUG', 'PROTOCOL', 'map'",
];
