//! Calls of the libraries: cjson, cmsgpack, struct, bit, string, table, math.

use std::fmt::Write as _;

use super::{DEPTH_MAX, Lua, TextOf};

impl Lua {
    pub(super) fn json(&mut self) {
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

    pub(super) fn msgpack(&mut self) {
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

    /// Bytes in the form that cmsgpack reads.
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

    pub(super) fn packed(&mut self) {
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

    pub(super) fn bits(&mut self) {
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

    pub(super) fn strings(&mut self) {
        if self.random.bool() {
            let spec = self.pick(SPECS);
            let _ = write!(TextOf(self), "string.format, '{spec}', ");
            return if self.random.bool() {
                self.number();
            } else {
                self.plain();
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
                let pattern = self.pick(PATTERNS);
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

    pub(super) fn tables(&mut self) {
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
}

const SPECS: &[&str] = &[
    "%d", "%5d", "%-5d|", "%05d", "%+d", "%i", "%u", "%c", "%x", "%X", "%#x", "%o", "%e", "%.3E",
    "%f", "%.2f", "%g", "%.14g", "%10.3f", "%s", "%10s|", "%-10s|", "%.2s", "%q", "%%", "%", "%y",
    "%5.5.5d", "%123d", "%s %s",
];

const PATTERNS: &[&str] = &[
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
];
