//! The functions of `string` that search: as Lua's own, but within the script's budget. And two others whose C versions can be
//! made to overflow or to run for ever, `string.rep` and `unpack`.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use mlua::{Function, IntoLua, Lua, LuaString, MultiValue, Table, Value};

use super::arguments::{Arguments, as_number, number_text, truncate, type_name};
use super::pattern::{Capture, Matcher, PatternError};
use super::raise::{Raised, library_error};
use super::sandbox::{Shared, budget_spent};

/// Values that Lua's stack holds (`LUAI_MAXCSTACK`).
const STACK_MAX: i64 = 8_000;
/// Bytes that make a search with a pattern.
const SPECIALS: &[u8] = b"^$*+?.([%-";

pub(super) fn add(lua: &Lua, real: &Table, shared: &Arc<Shared>) -> mlua::Result<()> {
    let string: Table = real.raw_get("string")?;
    let budget = Arc::clone(shared);
    let find = lua.create_function(move |lua, values| find(lua, values, &budget, true))?;
    string.raw_set("find", find)?;
    let budget = Arc::clone(shared);
    let matches =
        lua.create_function(move |lua, values| self::find(lua, values, &budget, false))?;
    string.raw_set("match", matches)?;
    let budget = Arc::clone(shared);
    let gmatch = lua.create_function(move |lua, values| gmatch(lua, values, &budget))?;
    string.raw_set("gmatch", &gmatch)?;
    string.raw_set("gfind", gmatch)?;
    let budget = Arc::clone(shared);
    let rep = lua.create_function(move |lua, values| rep(lua, values, &budget))?;
    string.raw_set("rep", rep)?;
    real.raw_set("unpack", lua.create_function(unpack)?)
}

/// `gsub` calls back into the script, by `protected`, which catches what the callback raises.
pub(super) fn add_gsub(
    lua: &Lua,
    real: &Table,
    shared: &Arc<Shared>,
    protected: &Function,
) -> mlua::Result<()> {
    let string: Table = real.raw_get("string")?;
    let index = lua.load("local table, key = ... return table[key]");
    let callbacks = Callbacks {
        protected: protected.clone(),
        index: index.set_name("=sandbox").into_function()?,
    };
    let budget = Arc::clone(shared);
    let gsub = lua.create_function(move |lua, values| gsub(lua, values, &budget, &callbacks))?;
    string.raw_set("gsub", gsub)
}

/// How `gsub` runs what is the script's own.
struct Callbacks {
    /// As `pcall`, without a conversion of the error.
    protected: Function,
    /// `index(table, key)`: what the table has there, or its metatable.
    index: Function,
}

impl Callbacks {
    /// Calls a function that the script may have made. Errors: what it raised.
    fn call(&self, function_and_arguments: Vec<Value>) -> mlua::Result<Value> {
        let call = MultiValue::from_vec(function_and_arguments);
        match self.protected.call(call)? {
            (true, value) => Ok(value),
            (false, Value::Error(error)) => Err(Raised::of(&error).into()),
            (false, value) => Err(Raised::Value(value).into()),
        }
    }

    /// What a table of replacements holds.
    fn look_up(&self, table: &Table, key: Value) -> mlua::Result<Value> {
        if table.metatable().is_none() {
            return table.raw_get(key);
        }
        let index = Value::Function(self.index.clone());
        self.call(vec![index, Value::Table(table.clone()), key])
    }
}

/// Runs a matcher on the script's budget.
fn with_matcher<'a, R>(
    lua: &Lua,
    shared: &Shared,
    text: &'a [u8],
    pattern: &'a [u8],
    work: impl FnOnce(&mut Matcher<'a>) -> Result<R, PatternError>,
) -> mlua::Result<R> {
    let mut matcher = Matcher::new(text, pattern, shared.budget.load(Relaxed));
    let result = work(&mut matcher);
    shared.budget.store(matcher.steps, Relaxed);
    result.map_err(|error| match error {
        PatternError::Malformed(text) => library_error(lua, text),
        PatternError::Exhausted => budget_spent(),
    })
}

fn push_captures(
    lua: &Lua,
    matcher: &Matcher<'_>,
    (start, end): (usize, usize),
    whole: bool,
    results: &mut Vec<Value>,
) -> mlua::Result<Result<(), PatternError>> {
    let count = match matcher.values_len() {
        0 => usize::from(whole),
        count => count,
    };
    for index in 0..count {
        match matcher.capture(index, start, end) {
            Ok(capture) => results.push(capture_value(lua, capture)?),
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(()))
}

fn capture_value(lua: &Lua, capture: Capture<'_>) -> mlua::Result<Value> {
    match capture {
        Capture::Position(at) => Ok(Value::Number(at as f64)),
        Capture::Text(text) => lua.create_string(text).map(Value::String),
    }
}

/// `string.find(text, pattern [, init [, plain]])`, `string.match(text, pattern [, init])`
fn find(lua: &Lua, values: MultiValue, shared: &Shared, find: bool) -> mlua::Result<MultiValue> {
    let args = Arguments::new(lua, values);
    let (text, pattern) = (args.text(1)?, args.text(2)?);
    let init = match args.get(3) {
        None | Some(Value::Nil) => 1,
        Some(_) => args.integer(3)?,
    };
    let init = if init < 0 {
        init.saturating_add(text.len() as i64 + 1)
    } else {
        init
    };
    let init = ((init - 1).max(0) as usize).min(text.len());
    let plain = find && !matches!(args.get(4), None | Some(Value::Nil | Value::Boolean(false)));
    let pattern_end = memchr::memchr(0, &pattern).unwrap_or(pattern.len());
    if find
        && (plain
            || !pattern[..pattern_end]
                .iter()
                .any(|byte| SPECIALS.contains(byte)))
    {
        let found = memchr::memmem::find(&text[init..], &pattern).map(|at| at + init);
        return Ok(MultiValue::from_vec(match found {
            Some(at) => vec![
                Value::Number(at as f64 + 1.0),
                Value::Number((at + pattern.len()) as f64),
            ],
            None => vec![Value::Nil],
        }));
    }
    let anchored = pattern.first() == Some(&b'^');
    let mut results = Vec::new();
    let captured = with_matcher(
        lua,
        shared,
        &text,
        &pattern[usize::from(anchored)..],
        |matcher| {
            let last = if anchored { init } else { text.len() };
            for start in init..=last {
                let Some(end) = matcher.match_at(start)? else {
                    continue;
                };
                if find {
                    results.extend([Value::Number(start as f64 + 1.0), Value::Number(end as f64)]);
                }
                return match push_captures(lua, matcher, (start, end), !find, &mut results) {
                    Ok(result) => result.map(|()| Ok(())),
                    Err(error) => Ok(Err(error)),
                };
            }
            results.push(Value::Nil);
            Ok(Ok(()))
        },
    )?;
    captured.map(|()| MultiValue::from_vec(results))
}

/// `string.gmatch(text, pattern)`: an iterator over all matches. A `^` is no anchor here.
fn gmatch(lua: &Lua, values: MultiValue, shared: &Arc<Shared>) -> mlua::Result<Function> {
    let args = Arguments::new(lua, values);
    let (text, pattern) = (args.string(1)?, args.string(2)?);
    let (budget, mut from) = (Arc::clone(shared), 0);
    lua.create_function_mut(move |lua, _: MultiValue| {
        let mut results = Vec::new();
        let captured = with_matcher(lua, &budget, &text, &pattern, |matcher| {
            let first = from;
            for start in first..=text.len() {
                let Some(end) = matcher.match_at(start)? else {
                    continue;
                };
                from = if end == start { end + 1 } else { end };
                return match push_captures(lua, matcher, (start, end), true, &mut results) {
                    Ok(result) => result.map(|()| Ok(())),
                    Err(error) => Ok(Err(error)),
                };
            }
            from = text.len() + 1;
            results.push(Value::Nil);
            Ok(Ok(()))
        })?;
        captured.map(|()| MultiValue::from_vec(results))
    })
}

/// `string.gsub(text, pattern, replacement [, count])`: the text with matches replaced, and how many there were.
fn gsub(
    lua: &Lua,
    values: MultiValue,
    shared: &Shared,
    callbacks: &Callbacks,
) -> mlua::Result<(LuaString, f64)> {
    let args = Arguments::new(lua, values);
    let (text, pattern) = (args.text(1)?, args.text(2)?);
    let replacement = match args.get(3) {
        Some(value @ (Value::String(_) | Value::Table(_) | Value::Function(_))) => value.clone(),
        Some(value @ (Value::Integer(_) | Value::Number(_))) => {
            number_text(as_number(value).unwrap_or_default()).into_lua(lua)?
        }
        _ => return Err(args.error(3, "string/function/table expected")),
    };
    let most = match args.get(4) {
        None | Some(Value::Nil) => text.len() as i64 + 1,
        Some(_) => args.integer(4)?,
    };
    let anchored = pattern.first() == Some(&b'^');
    let pattern = &pattern[usize::from(anchored)..];
    let (mut out, mut at, mut count) = (Vec::new(), 0, 0);
    while count < most {
        // The matcher is made anew for each place, since a callback may use up the budget in between.
        let mut matcher = Matcher::new(&text, pattern, shared.budget.load(Relaxed));
        let found = matcher.match_at(at);
        shared.budget.store(matcher.steps, Relaxed);
        let found = found.map_err(|error| pattern_error(lua, &error))?;
        if let Some(end) = found {
            count += 1;
            replace(
                lua,
                &matcher,
                (at, end),
                &text,
                &replacement,
                callbacks,
                &mut out,
            )?;
        }
        match found {
            Some(end) if end > at => at = end,
            _ if at < text.len() => {
                out.push(text[at]);
                at += 1;
            }
            _ => break,
        }
        if anchored {
            break;
        }
        if shared.is_too_much(out.len()) {
            return Err(Raised::Text(b"not enough memory".to_vec()).into());
        }
    }
    out.extend_from_slice(text.get(at..).unwrap_or_default());
    Ok((lua.create_string(out)?, count as f64))
}

fn pattern_error(lua: &Lua, error: &PatternError) -> mlua::Error {
    match error {
        PatternError::Malformed(text) => library_error(lua, text),
        PatternError::Exhausted => budget_spent(),
    }
}

/// Appends what stands in a match's place.
fn replace(
    lua: &Lua,
    matcher: &Matcher<'_>,
    (start, end): (usize, usize),
    text: &[u8],
    replacement: &Value,
    callbacks: &Callbacks,
    out: &mut Vec<u8>,
) -> mlua::Result<()> {
    let value = match replacement {
        Value::String(template) => {
            return expand(lua, matcher, (start, end), &template.as_bytes(), out);
        }
        Value::Table(table) => {
            let key = matcher
                .capture(0, start, end)
                .map_err(|error| pattern_error(lua, &error))?;
            callbacks.look_up(table, capture_value(lua, key)?)?
        }
        function => {
            let mut call = vec![function.clone()];
            push_captures(lua, matcher, (start, end), true, &mut call)?
                .map_err(|error| pattern_error(lua, &error))?;
            callbacks.call(call)?
        }
    };
    match &value {
        Value::Nil | Value::Boolean(false) => {
            out.extend_from_slice(text.get(start..end).unwrap_or_default());
        }
        Value::String(text) => out.extend_from_slice(&text.as_bytes()),
        value => {
            let Some(n) = as_number(value) else {
                let text = format!("invalid replacement value (a {})", type_name(value));
                return Err(library_error(lua, text));
            };
            out.extend_from_slice(number_text(n).as_bytes());
        }
    }
    Ok(())
}

/// A replacement text with `%0` to `%9` for captures; a `%` in front of another byte is left out.
fn expand(
    lua: &Lua,
    matcher: &Matcher<'_>,
    (start, end): (usize, usize),
    template: &[u8],
    out: &mut Vec<u8>,
) -> mlua::Result<()> {
    let mut bytes = template.iter();
    while let Some(byte) = bytes.next() {
        if *byte != b'%' {
            out.push(*byte);
            continue;
        }
        let digit = bytes.next().copied().unwrap_or(0);
        let index = match digit {
            b'0' => {
                out.extend_from_slice(matcher_text(matcher, start, end));
                continue;
            }
            b'1'..=b'9' => usize::from(digit - b'1'),
            other => {
                out.push(other);
                continue;
            }
        };
        match matcher
            .capture(index, start, end)
            .map_err(|error| pattern_error(lua, &error))?
        {
            Capture::Position(at) => out.extend_from_slice(at.to_string().as_bytes()),
            Capture::Text(text) => out.extend_from_slice(text),
        }
    }
    Ok(())
}

fn matcher_text<'a>(matcher: &Matcher<'a>, start: usize, end: usize) -> &'a [u8] {
    matcher.text().get(start..end).unwrap_or_default()
}

/// `string.rep(text, count)`
fn rep(lua: &Lua, values: MultiValue, shared: &Shared) -> mlua::Result<LuaString> {
    let args = Arguments::new(lua, values);
    let text = args.text(1)?;
    // The count is an int in C.
    let count = args.integer(2)? as i32;
    let count = if text.is_empty() {
        0
    } else {
        count.max(0) as usize
    };
    if shared.is_too_much(text.len().saturating_mul(count)) {
        return Err(Raised::Text(b"not enough memory".to_vec()).into());
    }
    lua.create_string(text.repeat(count))
}

/// `unpack(list [, from [, to]])`, where Lua's own is not trusted with it: see `sandbox.lua`.
fn unpack(lua: &Lua, values: MultiValue) -> mlua::Result<MultiValue> {
    let args = Arguments::of_caller(lua, values, "unpack");
    let Some(Value::Table(table)) = args.get(1) else {
        return Err(args.type_error(1, "table", args.get(1)));
    };
    let from = match args.get(2) {
        None | Some(Value::Nil) => 1,
        Some(_) => i64::from(truncate(args.number(2)?) as i32),
    };
    let to = match args.get(3) {
        None | Some(Value::Nil) => table.raw_len() as i64,
        Some(_) => i64::from(truncate(args.number(3)?) as i32),
    };
    if to - from >= STACK_MAX - args.len() as i64 {
        return Err(args.failure("too many results to unpack"));
    }
    let mut results = Vec::with_capacity((to - from + 1).max(0) as usize);
    for index in from..=to {
        results.push(table.raw_get(index)?);
    }
    Ok(MultiValue::from_vec(results))
}
