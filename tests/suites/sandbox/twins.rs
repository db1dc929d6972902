//! For each public escape or overflow a check that this server passes, and a broken twin that fails it: a plain Lua, or the
//! smallest piece of code that lacks the bound whose lack was the fault.

use fakeserver::{Reply, Server};
use mlua::{Lua, Table, Value, Variadic};

use super::server;

/// Runs a script: its result as text, or the text of its error.
type Run<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// A check of what scripts can do to whatever runs them.
type Check = fn(Run<'_>) -> Result<(), String>;

fn run_on_server(server: &Server, script: &str) -> Result<String, String> {
    match server.command(["EVAL", script, "0"]) {
        Reply::Bulk(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
        Reply::Integer(n) => Ok(n.to_string()),
        Reply::Null => Ok("nil".to_owned()),
        Reply::Error(error) => Err(error.to_string()),
        other => panic!("{script}: {other:?}"),
    }
}

fn run_in(lua: &Lua, script: &str) -> Result<String, String> {
    match lua.load(script).eval::<Value>() {
        Ok(value) => value.to_string().map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// A plain Lua with one thing in it that is naive.
fn naive(change: impl Fn(&Lua, &Table) -> mlua::Result<()>) -> Lua {
    let lua = Lua::new();
    change(&lua, &lua.globals()).unwrap();
    lua
}

/// The server passes the check, the twin does not.
fn holds_and_can_fail(check: Check, twin: Run<'_>) {
    let server = server();
    check(&|script| run_on_server(&server, script)).unwrap();
    let failure = check(twin).expect_err("the broken twin passes");
    // That something else is broken in the twin would prove nothing.
    assert!(failure.starts_with("unsound"), "{failure}");
}

fn expect(
    run: Run<'_>,
    script: &str,
    is_sound: impl Fn(&Result<String, String>) -> bool,
) -> Result<(), String> {
    let result = run(script);
    if is_sound(&result) {
        return Ok(());
    }
    Err(format!("unsound: {script}: {result:?}"))
}

fn expect_error(run: Run<'_>, script: &str, text: &str) -> Result<(), String> {
    expect(
        run,
        script,
        |result| matches!(result, Err(error) if error.contains(text)),
    )
}

/// Errors of every kind end a script with a text (CVE-2022-24736: where none was, a null pointer was read).
fn errors_have_a_text(run: Run<'_>) -> Result<(), String> {
    for value in [
        "'text'",
        "3",
        "nil",
        "false",
        "{}",
        "{err = 3}",
        "{err = {}}",
        "error",
        "coroutine.create(error)",
        "setmetatable({}, {__tostring = error})",
    ] {
        let script = format!("error({value})");
        expect(
            run,
            &script,
            |result| matches!(result, Err(text) if !text.is_empty()),
        )?;
    }
    Ok(())
}

#[test]
fn an_error_that_is_no_text_is_no_null_pointer() {
    let lua = Lua::new();
    let pcall: mlua::Function = lua.globals().get("pcall").unwrap();
    holds_and_can_fail(errors_have_a_text, &|script| {
        let script = lua.load(script).into_function().unwrap();
        let (_, error): (bool, Value) = pcall.call(script).unwrap();
        // As if whatever was raised were a string: for what is none, C's `lua_tostring` has no address.
        Err(match error {
            Value::String(text) => text.to_string_lossy(),
            _ => String::new(),
        })
    });
}

/// The text has as many digits as there can be (CVE-2024-31449: the least number has no opposite).
fn hexadecimal_digits_are_eight_at_most(run: Run<'_>) -> Result<(), String> {
    for digits in [
        "1",
        "8",
        "9",
        "-1",
        "-8",
        "-9",
        "2147483647",
        "-2147483647",
        "-2147483648",
        "2147483648",
        "4294967295",
        "-4294967296",
        "1e308",
        "0/0",
    ] {
        let script = format!("return #bit.tohex(65535, {digits})");
        expect(
            run,
            &script,
            |result| matches!(result, Ok(length) if length.parse().is_ok_and(|length: u64| length <= 8)),
        )?;
    }
    Ok(())
}

#[test]
fn bit_tohex_does_not_write_outside_of_its_buffer() {
    let lua = naive(|lua, globals| {
        let bit = lua.create_table()?;
        let tohex = lua.create_function(|_, (_, digits): (f64, f64)| {
            let mut digits = digits as i64 as i32;
            if digits < 0 {
                digits = digits.wrapping_neg();
            }
            if digits > 8 {
                digits = 8;
            }
            // What C's size would make of it; the text itself does not fit into memory.
            let size = digits as u32;
            Ok("0".repeat(size.min(64) as usize))
        })?;
        bit.set("tohex", tohex)?;
        globals.set("bit", bit)
    });
    holds_and_can_fail(hexadecimal_digits_are_eight_at_most, &|script| {
        run_in(&lua, script)
    });
}

/// Nothing of a script runs when its values are collected, and the memory of none is given away while it is in use
/// (CVE-2024-46981: finalizers ran while the state was being closed).
fn collecting_runs_nothing(run: Run<'_>) -> Result<(), String> {
    for make in [
        "newproxy(true)",
        "setmetatable({}, {})",
        "coroutine.create(error)",
    ] {
        let script = format!(
            "local ran = false
            pcall(function()
                local object = {make}
                getmetatable(object).__gc = function() ran = true end
            end)
            collectgarbage() collectgarbage()
            return tostring(ran)"
        );
        expect(run, &script, |result| result.as_deref() == Ok("false"))?;
    }
    Ok(())
}

#[test]
fn no_finalizer_is_run() {
    let lua = Lua::new();
    holds_and_can_fail(collecting_runs_nothing, &|script| run_in(&lua, script));
}

/// Ranges of more values than a stack holds are refused, however they are counted (CVE-2025-46817).
fn unpacking_counts_its_range(run: Run<'_>) -> Result<(), String> {
    for range in [
        "1, 1e8",
        "0, 2147483647",
        "-1, 2147483647",
        "-2147483648, 2147483647",
        "-2147483647, 2147483646",
        "-2147483648, 0",
    ] {
        let script = format!("return select('#', unpack({{}}, {range}))");
        expect_error(run, &script, "too many results to unpack")?;
    }
    Ok(())
}

#[test]
fn unpack_does_not_overflow_in_its_count() {
    let lua = naive(|lua, globals| {
        let unpack = lua.create_function(|_, (table, from, to): (Table, f64, f64)| {
            let (from, to) = (from as i32, to as i32);
            if from > to {
                return Ok(Variadic::new());
            }
            // A compiler may take a count of 1 or less for impossible here, so only the upper bound is left.
            let count = to.wrapping_sub(from).wrapping_add(1);
            if count > 8000 {
                return Err(mlua::Error::runtime("too many results to unpack"));
            }
            (0..count)
                .map(|at| table.get::<Value>(from + at))
                .collect::<mlua::Result<Variadic<_>>>()
        })?;
        globals.set("unpack", unpack)
    });
    holds_and_can_fail(unpacking_counts_its_range, &|script| run_in(&lua, script));
}

/// A long string ends at its own number of equals signs and no other (CVE-2025-46819: their number overflowed).
fn long_strings_count_their_signs(run: Run<'_>) -> Result<(), String> {
    let signs = |count| "=".repeat(count);
    for (open, close) in [
        (0, 256),
        (1, 257),
        (3, 65_539),
        (65_536, 0),
        (70_000, 70_001),
    ] {
        let script = format!("return [{}[x]{}]", signs(open), signs(close));
        expect_error(run, &script, "unfinished long string")?;
    }
    let script = format!("return [{0}[x]{0}]", signs(70_000));
    expect(run, &script, |result| result.as_deref() == Ok("x"))
}

#[test]
fn the_signs_of_long_strings_are_counted_without_an_overflow() {
    // A lexer whose counter is too small.
    let lexer = |script: &str| {
        let signs = |text: &str| {
            let count = text.bytes().take_while(|byte| *byte == b'=').count();
            (
                count as u8,
                text.get(count + 1..).unwrap_or_default().to_owned(),
            )
        };
        let (level, rest) = signs(script.strip_prefix("return [").unwrap());
        let (text, end) = rest.split_once(']').unwrap();
        if signs(end).0 == level {
            Ok(text.to_owned())
        } else {
            Err("unfinished long string".to_owned())
        }
    };
    holds_and_can_fail(long_strings_count_their_signs, &lexer);
}

/// The name of a chunk outlives a collection while the chunk is read (CVE-2025-49844: nothing but the parser held it).
fn names_of_chunks_outlive_a_collection(run: Run<'_>) -> Result<(), String> {
    let script = "
        local function read()
            local step = 0
            return function()
                step = step + 1
                for i = 1, 100 do local garbage = {('x'):rep(i)} end
                collectgarbage()
                return ({'local a = 1 ', 'a = = 2', nil})[step]
            end
        end
        for i = 1, 5 do
            local _, text = load(read(), '=chunk' .. i)
            if not text:find('chunk' .. i .. ':1:', 1, true) then return text end
        end
        return 'sound'";
    expect(run, script, |result| result.as_deref() == Ok("sound"))
}

#[test]
fn what_only_the_parser_holds_is_not_collected() {
    let lua = Lua::new();
    // The source is held, the name is not.
    let loader = "
        local load_text = loadstring
        function load(read, name)
            local held = setmetatable({{name}}, {__mode = 'v'})
            local source = ''
            for piece in read do source = source .. piece end
            return load_text(source, held[1] and held[1][1] or '=?')
        end";
    lua.load(loader).exec().unwrap();
    holds_and_can_fail(names_of_chunks_outlive_a_collection, &|script| {
        run_in(&lua, script)
    });
}

/// Source nests as deep as the parser's stack allows, and no deeper.
fn nesting_has_a_bound(run: Run<'_>) -> Result<(), String> {
    for depth in [250, 10_000] {
        let script = format!("return {}1{}", "(".repeat(depth), ")".repeat(depth));
        expect_error(run, &script, "chunk has too many syntax levels")?;
    }
    Ok(())
}

#[test]
fn the_parser_counts_its_levels() {
    holds_and_can_fail(nesting_has_a_bound, &|script| {
        let inner = script.strip_prefix("return ").unwrap();
        Ok(inner.trim_matches(['(', ')']).to_owned())
    });
}

/// Lengths that packed data claims are compared with what there is.
fn claimed_lengths_are_checked(run: Run<'_>) -> Result<(), String> {
    for (script, text) in [
        (
            "return cmsgpack.unpack('\\219\\127\\255\\255\\255x')",
            "Missing bytes",
        ),
        (
            "return cmsgpack.unpack('\\219\\255\\255\\255\\255x')",
            "Missing bytes",
        ),
        (
            "return struct.unpack('>Ic0', '\\127\\255\\255\\255x')",
            "data string too short",
        ),
        (
            "return struct.unpack('>Ic0', '\\255\\255\\255\\251x')",
            "data string too short",
        ),
    ] {
        expect_error(run, script, text)?;
    }
    Ok(())
}

#[test]
fn lengths_of_packed_data_do_not_overflow() {
    let lua = naive(|lua, globals| {
        // Whether so many bytes are there, with C's ints: the sum of position and length overflows.
        let take = |data: &[u8], at: usize, error: &'static str| {
            let length = i32::from_be_bytes(data[at..at + 4].try_into().unwrap());
            let end = (at as i32 + 4).wrapping_add(length);
            if end > data.len() as i32 {
                return Err(mlua::Error::runtime(error));
            }
            Ok("what lies behind".to_owned())
        };
        let (cmsgpack, structs) = (lua.create_table()?, lua.create_table()?);
        let unpack = lua.create_function(move |_, data: mlua::LuaString| {
            take(&data.as_bytes(), 1, "Missing bytes in input.")
        })?;
        cmsgpack.set("unpack", unpack)?;
        let unpack = lua.create_function(move |_, (_, data): (String, mlua::LuaString)| {
            take(&data.as_bytes(), 0, "data string too short")
        })?;
        structs.set("unpack", unpack)?;
        globals.set("cmsgpack", cmsgpack)?;
        globals.set("struct", structs)
    });
    holds_and_can_fail(claimed_lengths_are_checked, &|script| run_in(&lua, script));
}

/// Lengths at which a header of Redis' strings becomes another.
const HEADERS: [usize; 3] = [1 << 5, 1 << 8, 1 << 16];

/// A string that grows and shrinks across the sizes of its header stays what it is (CVE-2023-41056: the new size was taken for
/// one of the old header). `append` and `cut` reply with the string.
fn strings_survive_their_resizing(
    append: &mut dyn FnMut(&[u8]) -> Vec<u8>,
    cut: &mut dyn FnMut(usize) -> Vec<u8>,
) -> Result<(), String> {
    let mut wanted = Vec::new();
    for border in HEADERS {
        for length in border - 2..border + 3 {
            let piece: Vec<u8> = (wanted.len()..length).map(|at| at as u8).collect();
            wanted.extend_from_slice(&piece);
            if append(&piece) != wanted {
                return Err(format!("unsound: grown to {length} bytes"));
            }
        }
    }
    for border in HEADERS.iter().rev() {
        for length in (border - 2..border + 3).rev() {
            wanted.truncate(length);
            if cut(length) != wanted {
                return Err(format!("unsound: cut to {length} bytes"));
            }
        }
    }
    Ok(())
}

#[test]
fn a_string_that_is_resized_has_room_for_its_bytes() {
    let server = server();
    let value = || match server.command(["GET", "k"]) {
        Reply::Bulk(value) => value.to_vec(),
        other => panic!("{other:?}"),
    };
    let mut append = |piece: &[u8]| {
        server.command([&b"APPEND"[..], b"k", piece]);
        value()
    };
    let script = "redis.call('SET', KEYS[1], redis.call('GETRANGE', KEYS[1], 0, ARGV[1] - 1))";
    let mut cut = |length: usize| {
        server.command(["EVAL", script, "1", "k", &length.to_string()]);
        value()
    };
    strings_survive_their_resizing(&mut append, &mut cut).unwrap();

    // The twin grows its buffer and keeps the header, whose length has one byte.
    let buffer = std::cell::RefCell::new((Vec::new(), 0_u8));
    let shown = || {
        let (bytes, length) = &*buffer.borrow();
        bytes[..usize::from(*length)].to_vec()
    };
    let mut append = |piece: &[u8]| {
        buffer.borrow_mut().0.extend_from_slice(piece);
        let length = buffer.borrow().0.len() as u8;
        buffer.borrow_mut().1 = length;
        shown()
    };
    let mut cut = |length: usize| {
        buffer.borrow_mut().1 = length as u8;
        shown()
    };
    let failure = strings_survive_their_resizing(&mut append, &mut cut).unwrap_err();
    assert_eq!(failure, "unsound: grown to 256 bytes");
}
