//! Lua that programs run: values of all kinds on their way between script, libraries and reply.
//!
//! A source is made from one seed. It has a statement a line, so that it can be made shorter line by line; what a line needs is in
//! that line.

mod function;
mod library;
mod statement;

use std::fmt::Write as _;

use fastrand::Rng;

pub(super) use function::{Library, library};

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
                let one = self.pick(STATUSES);
                self.text(one);
            }
            1 => {
                let one = self.pick(FAILURES);
                self.text(one);
            }
            2 => {
                self.text("{double=");
                self.number();
                self.text("}");
            }
            3 => {
                let one = self.pick(RESP3);
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

const STATUSES: &[&str] = &[
    "{ok='FINE'}",
    "{ok='two words'}",
    "{ok=''}",
    "{ok=1}",
    "{ok={}}",
    "{ok='a\\r\\nb'}",
    "redis.status_reply('GOOD')",
];

const FAILURES: &[&str] = &[
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
];

const RESP3: &[&str] = &[
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
];

/// Lets text be written to a source.
struct TextOf<'a>(&'a mut Lua);

impl std::fmt::Write for TextOf<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.text(text);
        Ok(())
    }
}
