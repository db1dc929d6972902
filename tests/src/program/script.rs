//! Scripts that programs run.

/// A script and the grammar of what follows it: number of keys, keys, arguments.
pub(super) struct Script {
    pub source: &'static str,
    pub arguments: &'static str,
}

const fn script(source: &'static str, arguments: &'static str) -> Script {
    Script { source, arguments }
}

/// The first are drawn more often: they run any command.
pub(super) const SCRIPTS: &[Script] = &[
    script("return redis.call(unpack(ARGV))", "0 command"),
    script("return redis.pcall(unpack(ARGV))", "0 command"),
    script(
        "redis.setresp(3); return redis.call(unpack(ARGV))",
        "0 command",
    ),
    script(
        "return redis.call('SET', KEYS[1], ARGV[1])",
        "1 string value",
    ),
    script(
        "local v = redis.call('GET', KEYS[1]) if v then return tonumber(v) else return false end",
        "1 string",
    ),
    script(
        "local dump = redis.call('DUMP', KEYS[1]) return dump and redis.call('RESTORE', KEYS[2], ARGV[1], dump, 'REPLACE')",
        "2 key newkey 0",
    ),
    script("return {1, 'two', {3, false, 4.9}, true, nil, 5}", "0"),
    script("return KEYS", "2 key key value"),
    script("return ARGV", "1 key value member"),
    script(
        "redis.call('INCR', KEYS[1]) return redis.call('LPUSH', KEYS[1], 'x')",
        "1 counter",
    ),
    script(
        "local r = redis.pcall('INCR', KEYS[1]) if type(r) == 'table' then return r.err end return r",
        "1 key",
    ),
    script("return redis.error_reply('MINE not now')", "0"),
    script("return redis.status_reply('GOOD')", "0"),
    script("return {ok = 'FINE'}", "0"),
    script("return {err = 'MINE again'}", "0"),
    script("return redis.sha1hex(ARGV[1])", "0 value"),
    script("return cjson.encode(cjson.decode(ARGV[1]))", "0 json"),
    script(
        "local t = cjson.decode(ARGV[1]) return type(t) == 'table' and #t or tostring(t)",
        "0 json",
    ),
    script(
        "return tostring(redis.call('EXISTS', KEYS[1]) == 1)",
        "1 key",
    ),
    script("return #redis.call('HGETALL', KEYS[1])", "1 hash"),
    script("return -3.99", "0"),
    script("error('boom')", "0"),
    script("return nosuch", "0"),
    script("return (", "0"),
    script("return redis.call('NOSUCH')", "0"),
    script("return redis.call('GET')", "0"),
];
