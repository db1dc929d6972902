//! Lua that programs run: values of all kinds on their way between script, libraries and reply.
//!
//! A source is made from one seed. It has a statement a line, so that it can be made shorter line by line; what a line needs is in
//! that line.

use std::fmt::Write as _;

use fastrand::Rng;

/// Deeper values are not made.
const DEPTH_MAX: usize = 3;

/// Everything a script saw, as text that does not depend on addresses.
const SHOW: &str = "local function show(v) local t = type(v) if t == 'table' then local out = {} for k, x in pairs(v) do \
                    out[#out + 1] = show(k) .. '=' .. show(x) end table.sort(out) return '{' .. table.concat(out, ',') .. '}' \
                    elseif t == 'string' then return string.format('%q', v) elseif t == 'number' then return \
                    string.format('%.17g', v) elseif t == 'function' or t == 'userdata' then return t end return tostring(v) end";

/// A call that may fail, its results shown or its error.
const TRY: &str = "local function try(f, ...) local r = {pcall(f, ...)} for i = 1, table.maxn(r) do r[i] = show(r[i]) or 'nil' end \
                   return table.concat(r, ' ') end";

/// The source of a script that follows from a seed.
pub(super) fn source(seed: u64) -> Vec<u8> {
    let mut maker = Lua {
        random: Rng::with_seed(seed),
        out: Vec::new(),
    };
    maker.script();
    maker.out
}

struct Lua {
    random: Rng,
    out: Vec<u8>,
}

impl Lua {
    fn script(&mut self) {
        match self.random.u8(0..8) {
            0 => self.conversion(),
            1 => self.error(),
            2 => self.calls(),
            _ => self.shown(),
        }
    }

    fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.random.usize(..of.len())]
    }

    /// A value that becomes the reply.
    fn conversion(&mut self) {
        if self.random.bool() {
            let line = self.pick(&[
                "redis.setresp(3)\n",
                "redis.setresp(2)\n",
                "redis.setresp(4)\n",
                "redis.setresp()\n",
            ]);
            self.text(line);
        }
        self.text("return ");
        self.reply(0);
    }

    fn reply(&mut self, depth: usize) {
        if depth == DEPTH_MAX {
            return self.plain();
        }
        match self.random.u8(0..12) {
            0 => {
                let one = self.pick(&[
                    "{ok='FINE'}",
                    "{ok='two words'}",
                    "{ok=''}",
                    "{ok=1}",
                    "{ok={}}",
                    "{ok='a\\r\\nb'}",
                    "redis.status_reply('GOOD')",
                ]);
                self.text(one);
            }
            1 => {
                let one = self.pick(&[
                    "{err='ERR mine'}",
                    "{err='mine'}",
                    "{err=''}",
                    "{err=5}",
                    "{err='-X y'}",
                    "{err='a\\nb'}",
                    "redis.error_reply('MINE no')",
                    "redis.error_reply('-MINE no')",
                    "redis.error_reply('one')",
                    "{err='E x', ok='y'}",
                ]);
                self.text(one);
            }
            2 => {
                self.text("{double=");
                self.number();
                self.text("}");
            }
            3 => {
                let one = self.pick(&[
                    "{big_number='12345678901234567890123'}",
                    "{big_number='1\\r\\n2'}",
                    "{big_number=12}",
                    "{verbatim_string={string='hello', format='txt'}}",
                    "{verbatim_string={string='hello', format='markdown'}}",
                    "{verbatim_string={string='hello'}}",
                    "{verbatim_string='x'}",
                    "{double='1.5'}",
                    "{double=true}",
                    "{map=1}",
                    "{set='x'}",
                    "{map={}}",
                    "{set={}}",
                ]);
                self.text(one);
            }
            // A map of more than one entry comes in the order of a Lua table.
            4 => {
                self.text("{map={[");
                self.key();
                self.text("]=");
                self.reply(depth + 1);
                self.text("}}");
            }
            5 => {
                self.text("{set={[");
                self.key();
                self.text("]=true}}");
            }
            6..=8 => {
                self.text("{");
                for _ in 0..self.random.u8(0..4) {
                    self.reply(depth + 1);
                    self.text(", ");
                }
                self.text("}");
            }
            _ => self.plain(),
        }
    }

    fn plain(&mut self) {
        match self.random.u8(0..4) {
            0 => self.string(),
            1 => self.number(),
            _ => {
                let one = self.pick(&["true", "false", "nil", "{}", "print", "KEYS", "_G.x"]);
                self.text(one);
            }
        }
    }

    fn key(&mut self) {
        if self.random.bool() {
            self.string();
        } else {
            self.integer();
        }
    }

    fn number(&mut self) {
        let one = self.pick(&[
            "0",
            "1",
            "-1",
            "3.99",
            "-3.99",
            "1e15",
            "1e17",
            "2^53",
            "2^53+1",
            "2^63",
            "-2^63",
            "1e100",
            "-1e100",
            "0/0",
            "1/0",
            "-1/0",
            "0.1",
            "1e-7",
            "123456789.123",
            "-0",
            "2^31",
            "2^32",
            "-2^31-1",
            "100",
            "255",
            "65536",
            "1.5",
            "0.5",
            "2.5",
        ]);
        self.text(one);
    }

    fn integer(&mut self) {
        let one = self.pick(&["0", "1", "2", "-1", "3", "10", "-5", "100", "4294967296"]);
        self.text(one);
    }

    fn string(&mut self) {
        let one = self.pick(&[
            "''",
            "'a'",
            "'hello world'",
            "'10'",
            "'-1.5e3'",
            "'0x10'",
            "' 7 '",
            "'\\0\\255'",
            "'a\\r\\nb'",
            "'nan'",
            "'inf'",
            "'\\\"quoted\\\"'",
            "'\\195\\169'",
            "'\\226\\130'",
            "'/'",
            "'\\127\\1'",
            "string.rep('x', 300)",
            "string.rep('y', 70000)",
        ]);
        self.text(one);
    }

    /// A value for a library.
    fn value(&mut self, depth: usize) {
        if depth == DEPTH_MAX {
            return self.plain();
        }
        match self.random.u8(0..8) {
            0 | 1 => self.number(),
            2 => self.string(),
            3 => {
                self.text("{");
                for _ in 0..self.random.u8(0..5) {
                    self.value(depth + 1);
                    self.text(", ");
                }
                self.text("}");
            }
            4 => {
                self.text("{[");
                self.key();
                self.text("]=");
                self.value(depth + 1);
                self.text("}");
            }
            5 => {
                let one = self.pick(&[
                    "cjson.null",
                    "{1, 2, nil, 4}",
                    "{[5]=1}",
                    "{[1]=1, [40]=2}",
                    "{[1.5]=2}",
                    "{[true]=1}",
                    "{{}, {}}",
                ]);
                self.text(one);
            }
            _ => self.plain(),
        }
    }

    fn error(&mut self) {
        let one = self.pick(&[
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
        ]);
        self.text(one);
    }

    /// Replies of commands on their way through a script.
    fn calls(&mut self) {
        self.text(SHOW);
        self.text("\n");
        if self.random.bool() {
            self.text("redis.setresp(3)\n");
        }
        for _ in 0..self.random.u8(1..5) {
            let command = self.pick(&[
                "'SET', 's0', '1'",
                "'SET', 's0', 1.5, 'GET'",
                "'GET', 's0'",
                "'GET', 'nosuch'",
                "'INCRBYFLOAT', 'c0', '0.1'",
                "'HSET', 'h0', 'f0', '1'",
                "'HGETALL', 'h0'",
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
            ]);
            let call = self.pick(&["call", "pcall"]);
            let _ = write!(TextOf(self), "local r = redis.{call}({command})\n");
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

    /// Calls of the libraries, each result shown.
    fn shown(&mut self) {
        self.text(SHOW);
        self.text("\n");
        self.text(TRY);
        self.text("\nlocal out = {}\n");
        for _ in 0..self.random.u8(1..7) {
            self.text("out[#out + 1] = try(");
            match self.random.u8(0..8) {
                0 | 1 => self.json(),
                2 | 3 => self.msgpack(),
                4 => self.packed(),
                5 => self.bits(),
                6 => self.strings(),
                _ => self.tables(),
            }
            self.text(")\n");
        }
        self.text("return out");
    }

    fn json(&mut self) {
        if self.random.u8(0..3) == 0 {
            self.text("cjson.encode, ");
            return self.value(0);
        }
        let again = self.random.bool();
        if again {
            self.text("function(t) return cjson.encode(cjson.decode(t)) end, ");
        } else {
            self.text("cjson.decode, ");
        }
        let mut text = Vec::new();
        self.json_text(0, &mut text);
        self.damage(&mut text);
        self.bytes(&text);
    }

    fn json_text(&mut self, depth: usize, out: &mut Vec<u8>) {
        match self.random.u8(0..if depth < DEPTH_MAX { 8 } else { 6 }) {
            0 => out.extend_from_slice(
                self.pick(&[
                    "null",
                    "true",
                    "false",
                    "nul",
                    "NaN",
                    "Infinity",
                    "-Infinity",
                ])
                .as_bytes(),
            ),
            1 | 2 => out.extend_from_slice(
                self.pick(&[
                    "0",
                    "1",
                    "-1",
                    "1.5",
                    "1e3",
                    "1E-7",
                    "-0",
                    "01",
                    "1.",
                    ".5",
                    "+1",
                    "0x1F",
                    "12345678901234567890",
                    "1e400",
                    "1e-400",
                    "-",
                    "9007199254740993",
                    "0.1",
                    "3.14159265358979",
                ])
                .as_bytes(),
            ),
            3..=5 => self.json_string(out),
            6 => {
                out.push(b'[');
                for at in 0..self.random.u8(0..4) {
                    if at > 0 {
                        out.extend_from_slice(self.pick(&[",", ", ", " ,\n"]).as_bytes());
                    }
                    self.json_text(depth + 1, out);
                }
                out.push(b']');
            }
            _ => {
                out.push(b'{');
                if self.random.bool() {
                    self.json_string(out);
                    out.extend_from_slice(self.pick(&[":", ": ", "\t:"]).as_bytes());
                    self.json_text(depth + 1, out);
                }
                out.push(b'}');
            }
        }
    }

    fn json_string(&mut self, out: &mut Vec<u8>) {
        let one = self.pick(&[
            r#""""#,
            r#""a""#,
            r#""\u00e9""#,
            r#""\ud83d\ude00""#,
            r#""\ud83d""#,
            r#""\udc00x""#,
            r#""\u0000""#,
            r#""\n\t\b\f\r\/\\\"""#,
            r#""\x""#,
            r#""\u12""#,
            "\"tab\there\"",
            "\"line\nend\"",
            r#""open"#,
            "\"\u{e9}\"",
            r#""10""#,
            r#""key""#,
        ]);
        out.extend_from_slice(one.as_bytes());
    }

    fn msgpack(&mut self) {
        match self.random.u8(0..4) {
            0 => {
                self.text("cmsgpack.pack, ");
                self.value(0);
                if self.random.bool() {
                    self.text(", ");
                    self.value(1);
                }
            }
            1 => {
                self.text("function(...) return cmsgpack.unpack(cmsgpack.pack(...)) end, ");
                self.value(0);
                self.text(", ");
                self.value(1);
            }
            _ => {
                let function = self.pick(&["unpack", "unpack", "unpack_one", "unpack_limit"]);
                let _ = write!(TextOf(self), "cmsgpack.{function}, ");
                let mut bytes = Vec::new();
                for _ in 0..self.random.u8(1..4) {
                    self.packed_value(0, &mut bytes);
                }
                self.damage(&mut bytes);
                self.bytes(&bytes);
                let arguments = match function {
                    "unpack" => 0,
                    "unpack_one" => self.random.u8(0..2),
                    _ => self.random.u8(1..3),
                };
                for _ in 0..arguments {
                    let one = self.pick(&[
                        ", 0", ", 1", ", 2", ", -1", ", 3", ", 100", ", '1'", ", 1.5",
                    ]);
                    self.text(one);
                }
            }
        }
    }

    /// Bytes in MessagePack's form.
    fn packed_value(&mut self, depth: usize, out: &mut Vec<u8>) {
        let kinds = if depth < DEPTH_MAX { 8 } else { 5 };
        match self.random.u8(0..kinds) {
            0 => out.push(self.random.u8(..)),
            1 => out.push([0xc0, 0xc2, 0xc3, 0x00, 0x7f, 0xe0, 0xff][self.random.usize(..7)]),
            2 => {
                let (head, len) = [
                    (0xcc, 1),
                    (0xcd, 2),
                    (0xce, 4),
                    (0xcf, 8),
                    (0xd0, 1),
                    (0xd1, 2),
                    (0xd2, 4),
                    (0xd3, 8),
                    (0xca, 4),
                    (0xcb, 8),
                ][self.random.usize(..10)];
                out.push(head);
                let high = self.random.bool();
                out.extend((0..len).map(|at| {
                    if high && at == 0 {
                        0x80
                    } else {
                        self.random.u8(0..4)
                    }
                }));
            }
            3 | 4 => {
                let len = self.random.u8(0..5);
                match self.random.u8(0..4) {
                    0 => out.extend([0xd9, len]),
                    1 => out.extend([0xda, 0, len]),
                    2 => out.extend([0xc4, len]),
                    _ => out.push(0xa0 | len),
                }
                out.extend((0..len).map(|_| self.random.u8(..)));
            }
            5 | 6 => {
                let len = self.random.u8(0..4);
                if self.random.bool() {
                    out.push(0x90 | len);
                } else {
                    out.extend([0xdc, 0, len]);
                }
                for _ in 0..len {
                    self.packed_value(depth + 1, out);
                }
            }
            _ => {
                let len = self.random.u8(0..2);
                if self.random.bool() {
                    out.push(0x80 | len);
                } else {
                    out.extend([0xde, 0, len]);
                }
                for _ in 0..len {
                    out.push(0xa1);
                    out.push(b'k');
                    self.packed_value(depth + 1, out);
                }
            }
        }
    }

    fn format(&mut self) -> String {
        let mut format = String::new();
        for _ in 0..self.random.u8(1..5) {
            format.push_str(self.pick(&[
                "b", "B", "h", "H", "l", "L", "T", "f", "d", "s", "c0", "c3", "c", "i", "I", "i1",
                "i2", "i3", "i8", "I4", "I8", "i16", "i33", "x", "!", "!4", "!3", ">", "<", "=",
                " ", "q", "i0",
            ]));
        }
        format
    }

    fn packed(&mut self) {
        let format = self.format();
        match self.random.u8(0..4) {
            0 => {
                let _ = write!(TextOf(self), "struct.size, '{format}'");
            }
            1 | 2 => {
                let both = self.pick(&[
                    "struct.pack",
                    "function(f, ...) return struct.unpack(f, struct.pack(f, ...)) end",
                ]);
                let _ = write!(TextOf(self), "{both}, '{format}'");
                for _ in 0..self.random.u8(0..5) {
                    self.text(", ");
                    if self.random.u8(0..3) == 0 {
                        self.string();
                    } else {
                        self.number();
                    }
                }
            }
            _ => {
                let _ = write!(TextOf(self), "struct.unpack, '{format}', ");
                let bytes: Vec<u8> = (0..self.random.u8(0..24))
                    .map(|_| self.random.u8(..) & self.random.u8(..))
                    .collect();
                self.bytes(&bytes);
                if self.random.bool() {
                    self.text(", ");
                    self.integer();
                }
            }
        }
    }

    fn bits(&mut self) {
        let function = self.pick(&[
            "tobit", "tohex", "bnot", "band", "bor", "bxor", "lshift", "rshift", "arshift", "rol",
            "ror", "bswap",
        ]);
        let _ = write!(TextOf(self), "bit.{function}");
        for _ in 0..self.random.u8(0..4) {
            self.text(", ");
            if self.random.u8(0..6) == 0 {
                self.string();
            } else {
                self.number();
            }
        }
    }

    fn strings(&mut self) {
        if self.random.bool() {
            let spec = self.pick(&[
                "%d", "%5d", "%-5d|", "%05d", "%+d", "%i", "%u", "%c", "%x", "%X", "%#x", "%o",
                "%e", "%.3E", "%f", "%.2f", "%g", "%.14g", "%10.3f", "%s", "%10s|", "%-10s|",
                "%.2s", "%q", "%%", "%", "%y", "%5.5.5d", "%123d", "%s %s",
            ]);
            let _ = write!(TextOf(self), "string.format, '{spec}', ");
            return if self.random.bool() {
                self.number()
            } else {
                self.plain()
            };
        }
        let function = self.pick(&[
            "find", "match", "gsub", "gmatch", "sub", "byte", "rep", "upper", "lower", "len",
            "reverse", "char",
        ]);
        let _ = write!(TextOf(self), "string.{function}, ");
        match function {
            "find" | "match" | "gsub" | "gmatch" => {
                self.string();
                let pattern = self.pick(&[
                    "l+",
                    "(h)(.)",
                    "^h",
                    "o$",
                    "%w+",
                    "[^%s]+",
                    "[a-",
                    "%",
                    "(",
                    "()",
                    "%b()",
                    "%f[%w]",
                    ".-",
                    "(a*(.)%w(%s*))",
                    "[%a_]",
                    "x*",
                    "%1",
                    "[]]",
                    "l",
                    "",
                ]);
                let _ = write!(TextOf(self), ", '{pattern}'");
                match function {
                    "gsub" => {
                        let with = self.pick(&[
                            "'<%0>'",
                            "'%1'",
                            "'%2'",
                            "'%'",
                            "{h='H'}",
                            "function(x) return x .. x end",
                            "5",
                            "nil",
                            "''",
                        ]);
                        let _ = write!(TextOf(self), ", {with}");
                    }
                    "find" | "match" if self.random.bool() => {
                        self.text(", ");
                        self.integer();
                    }
                    _ => {}
                }
            }
            "char" | "rep" => {
                if function == "rep" {
                    self.text("'ab', ");
                }
                self.integer();
            }
            _ => {
                self.string();
                for _ in 0..self.random.u8(0..3) {
                    self.text(", ");
                    self.integer();
                }
            }
        }
    }

    fn tables(&mut self) {
        let one = self.pick(&[
            "function(t) table.insert(t, 5, 'x') return t end, ",
            "function(t) table.insert(t, 'x') return t end, ",
            "function(t) return table.remove(t), t end, ",
            "function(t) return table.remove(t, 1), t end, ",
            "function(t) table.sort(t) return t end, ",
            "function(t) table.sort(t, function(a, b) return true end) return #t end, ",
            "table.concat, ",
            "function(t) return table.concat(t, ',', 2, 3) end, ",
            "table.maxn, ",
            "table.getn, ",
            "unpack, ",
            "function(t) return select(2, unpack(t)) end, ",
            "next, ",
            "ipairs, ",
            "rawlen, ",
            "function(v) return type(v) == 'table' or tostring(v) end, ",
            "tonumber, ",
            "function(t) return tonumber(t, 16) end, ",
            "type, ",
            "math.floor, ",
            "math.ceil, ",
            "math.fmod, 7, ",
            "math.max, 1, ",
            "math.sqrt, ",
            "math.abs, ",
            "math.modf, ",
            "math.frexp, ",
            "math.ldexp, 1, ",
            "math.pow, 2, ",
            "redis.sha1hex, ",
            "function(v) return #v end, ",
            "function(v) return v == v end, ",
            "function(v) return v .. '' end, ",
            "function(v) return v + 1 end, ",
            "function(v) return v % 3 end, ",
        ]);
        self.text(one);
        if one.contains("function(t) table") || self.random.bool() {
            self.value(0);
        } else {
            self.number();
        }
    }

    /// Now and then a text is cut, or one of its bytes is another.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let at = self.random.usize(..bytes.len());
        match self.random.u8(0..10) {
            0 => bytes.truncate(at),
            1 => bytes[at] ^= 1 << self.random.u8(0..8),
            2 => bytes.push(self.random.u8(..)),
            _ => {}
        }
    }

    /// Bytes as a literal.
    fn bytes(&mut self, bytes: &[u8]) {
        self.text("'");
        for byte in bytes {
            let _ = match byte {
                b'\'' | b'\\' => write!(TextOf(self), "\\{}", *byte as char),
                b' '..=b'~' => write!(TextOf(self), "{}", *byte as char),
                _ => write!(TextOf(self), "\\{byte:03}"),
            };
        }
        self.text("'");
    }
}

/// Lets text be written to a source.
struct TextOf<'a>(&'a mut Lua);

impl std::fmt::Write for TextOf<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.text(text);
        Ok(())
    }
}
