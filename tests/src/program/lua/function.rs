//! Libraries of functions.

use std::fmt::Write as _;

use fastrand::Rng;

use super::{Lua, TextOf};

/// A library as a program loads it.
pub(in crate::program) struct Library {
    /// What is loaded; now and then it cannot be.
    pub source: Vec<u8>,
    /// What can be called once it is there.
    pub functions: Vec<Function>,
}

/// A function, and the grammar of what follows its name: number of keys, keys, arguments.
pub(in crate::program) struct Function {
    pub name: &'static str,
    pub arguments: &'static str,
}

/// Names of libraries, each with those of its functions. The last library wants a function of the first one; where there
/// were two such functions, the server would name whichever its hash table has first.
const LIBRARIES: &[(&str, &[&str])] = &[
    ("lib0", &["f0", "f1", "f2"]),
    ("lib1", &["f3", "f4", "F0"]),
    ("lib2", &["f5", "f0"]),
];

/// What a library of an odd header has, for the same reason.
const ODD: &[&str] = &["f6"];

/// The library that follows from a seed.
pub(in crate::program) fn library(seed: u64) -> Library {
    let mut maker = Lua {
        random: Rng::with_seed(seed),
        out: Vec::new(),
    };
    let functions = maker.library();
    Library {
        source: maker.out,
        functions,
    }
}

impl Lua {
    fn library(&mut self) -> Vec<Function> {
        let (name, mut names) = LIBRARIES[self.random.usize(..LIBRARIES.len())];
        let odd = self.random.u8(0..12) == 0;
        if odd {
            names = ODD;
            let header = self.pick(HEADERS);
            self.text(header);
        } else {
            let _ = write!(TextOf(self), "#!lua name={name}");
        }
        self.text("\nlocal n = 0\n");
        if !odd && self.random.u8(0..8) == 0 {
            let own = format!("'g{name}'");
            let line = self.pick(WHILE_LOADING).replace("'g'", &own);
            self.text(&line);
            self.text("\n");
        }
        let count = self.random.usize(1..=names.len());
        let functions = names.iter().take(count);
        functions.map(|name| self.function(name)).collect()
    }

    /// A registration, in either of its forms.
    fn function(&mut self, name: &'static str) -> Function {
        let flags = self.random.bool();
        if flags {
            let _ = write!(
                TextOf(self),
                "redis.register_function{{function_name='{name}', callback="
            );
        } else {
            let _ = write!(TextOf(self), "redis.register_function('{name}', ");
        }
        self.text("function(keys, args) ");
        let arguments = self.body();
        self.text(" end");
        if flags {
            let odd = self.random.u8(0..12) == 0;
            let flags = self.pick(if odd { ODD_FLAGS } else { FLAGS });
            self.text(flags);
            if self.random.bool() {
                self.text(", description='what it does'");
            }
            self.text("}\n");
        } else {
            self.text(")\n");
        }
        Function { name, arguments }
    }

    fn body(&mut self) -> &'static str {
        if self.random.u8(0..4) > 0 {
            let (body, arguments) = BODIES[self.random.usize(..BODIES.len())];
            self.text(body);
            return arguments;
        }
        match self.random.u8(0..4) {
            0 => self.conversion(),
            1 => self.error(),
            2 => self.calls(),
            _ => self.shown(),
        }
        "0"
    }
}

/// What a function does, and what it is called with.
const BODIES: &[(&str, &str)] = &[
    ("return {keys, args, #keys, #args}", "2 key key value"),
    ("n = n + 1 return n", "0"),
    ("return redis.call(unpack(args))", "0 command"),
    ("return redis.pcall(unpack(args))", "0 command"),
    (
        "redis.setresp(3) return redis.call(unpack(args))",
        "0 command",
    ),
    (
        "return redis.call('SET', keys[1], args[1])",
        "1 string value",
    ),
    ("return redis.call('GET', keys[1])", "1 string"),
    (
        "local r = redis.pcall('INCR', keys[1]) if type(r) == 'table' then return {r.err, r.ok} end return r",
        "1 key",
    ),
    (
        "redis.call('INCR', keys[1]) return redis.call('LPUSH', keys[1], 'x')",
        "1 counter",
    ),
    (
        "redis.setresp(3) return redis.call('HGETALL', keys[1])['nosuch']",
        "1 hash",
    ),
    (
        "redis.setresp(2) return redis.call('ZSCORE', keys[1], args[1])",
        "1 zset member",
    ),
    ("return redis.call('PUBLISH', 'news', args[1])", "0 value"),
    ("return redis.error_reply('MINE not now')", "0"),
    ("return redis.status_reply('GOOD')", "0"),
    ("return cjson.encode(args)", "0 json"),
    ("return {double = 1.5}", "0"),
    ("error({err = 'MINE now'})", "0"),
    ("error('boom')", "0"),
    ("return KEYS", "0"),
    ("x = 1", "0"),
    ("keys[1] = 'other' return keys", "1 key"),
    ("return redis.register_function('g', function() end)", "0"),
    ("return redis.call('FCALL', 'f0', 0)", "0"),
    ("return redis.call('FUNCTION', 'FLUSH')", "0"),
    ("return redis.call('NOSUCH')", "0"),
    ("return type(redis.REDIS_VERSION)", "0"),
    ("return redis.log(redis.LOG_DEBUG, 'quiet')", "0"),
];

const FLAGS: &[&str] = &[
    ", flags={'no-writes'}",
    ", flags={'no-writes'}",
    ", flags={'no-writes', 'allow-stale'}",
    ", flags={'allow-oom', 'no-cluster', 'allow-cross-slot-keys'}",
    ", flags={'no-writes', 'no-writes'}",
    ", flags={}",
];

const ODD_FLAGS: &[&str] = &[
    ", flags={'nosuch'}",
    ", flags={x = 'no-writes'}",
    ", flags={1}",
    ", flags='no-writes'",
];

const HEADERS: &[&str] = &[
    "#!lua",
    "#!lua name=",
    "#!lua name=a b",
    "#!lua name=lib-0",
    "#!js name=lib0",
    "#!LUA name=lib0",
    "#!lua engine=x name=lib0",
    "#!lua name=lib0 name=lib1",
    "#!lua  name=lib0 ",
    "#!lua name=\"lib0\"",
    "#!lua name='lib1'",
    "#! lua name=lib0",
    "-- no header",
    "",
    "#!lua\tname=lib0",
    "#!",
];

/// Lines of a library outside of its functions.
const WHILE_LOADING: &[&str] = &[
    "local t = {1, 2, 3}",
    "redis.call('PING')",
    "redis.pcall('PING')",
    "redis.setresp(3)",
    "redis.log(redis.LOG_DEBUG, 'loading')",
    "local t = cjson.encode({1, redis.sha1hex('')})",
    "x = 1",
    "local t = nosuch",
    "error('while it loads')",
    "error({err = 'MINE now'})",
    "return 1",
    "do return end",
    "for i = 1,",
    "local f = loadstring('return 1')()",
    "redis.register_function()",
    "redis.register_function('g')",
    "redis.register_function('g', 1)",
    "redis.register_function(1, function() end)",
    "redis.register_function('', function() end)",
    "redis.register_function('g-h', function() end)",
    "redis.register_function('g', function() end, 1)",
    "redis.register_function({})",
    "redis.register_function(1)",
    "redis.register_function{function_name='g'}",
    "redis.register_function{callback=function() end}",
    "redis.register_function{function_name='g', callback=1}",
    "redis.register_function{function_name=1, callback=function() end}",
    "redis.register_function{function_name='g', callback=function() end, more=1}",
    "redis.register_function{function_name='g', callback=function() end, description=5}",
    "redis.register_function{function_name='g', callback=function() end, [1]='x'}",
    "redis.register_function('f0', function() return 'twice' end)",
    "redis.register_function('g', redis.call)",
    "pcall(redis.register_function, 'g', function() return 'g' end)",
    "local ok, e = pcall(redis.register_function, 'g', 1) redis.register_function('g', function() return e end)",
    "redis.acl_check_cmd('GET', 'x')",
    "redis.breakpoint()",
    "KEYS[1] = 1",
    "setmetatable(_G, {})",
    "redis.x = 1",
    "math.random = nil",
];
