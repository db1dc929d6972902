//! The library `struct`: values to and from the layout of C structures, as Lua's struct 0.2 in 7.0.15 does it.

use mlua::{IntoLua, Lua, LuaString, MultiValue, Table, Value};

use super::arguments::{Arguments, truncate};
use super::raise::{argument_error, library_error};

/// Greatest size of an integer, in bytes.
const INTEGER_SIZE_MAX: usize = 32;
/// Alignment that `!` stands for.
const ALIGN_MAX: usize = 8;
/// Most values that one call unpacks: what Lua's stack holds.
const RESULTS_MAX: usize = 7_990;

pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    library.raw_set("pack", lua.create_function(pack)?)?;
    library.raw_set("unpack", lua.create_function(unpack)?)?;
    library.raw_set("size", lua.create_function(size)?)?;
    Ok(library)
}

/// A cursor over a format, with what it has set so far.
struct Format<'a> {
    lua: &'a Lua,
    text: &'a [u8],
    big_endian: bool,
    align: usize,
}

/// One option of a format that stands for data.
struct Item {
    option: u8,
    size: usize,
    padding: usize,
}

impl<'a> Format<'a> {
    fn new(lua: &'a Lua, text: &'a [u8]) -> Format<'a> {
        // C reads the format up to its first zero byte.
        let end = memchr::memchr(0, text).unwrap_or(text.len());
        Format {
            lua,
            text: text.get(..end).unwrap_or_default(),
            big_endian: false,
            align: 1,
        }
    }

    /// The next option, its size, and the padding in front of it if `len` bytes precede it.
    fn next(&mut self, len: usize) -> mlua::Result<Option<Item>> {
        let Some((&option, rest)) = self.text.split_first() else {
            return Ok(None);
        };
        self.text = rest;
        let size = match option {
            b'B' | b'b' | b'x' => 1,
            b'H' | b'h' => 2,
            b'L' | b'l' | b'T' | b'd' => 8,
            b'f' => 4,
            b'c' => self.number(1)?,
            b'i' | b'I' => {
                let size = self.number(4)?;
                if size > INTEGER_SIZE_MAX {
                    let text =
                        format!("integral size {size} is larger than limit of {INTEGER_SIZE_MAX}");
                    return Err(library_error(self.lua, text));
                }
                size
            }
            _ => 0,
        };
        let unit = if size == 0 || option == b'c' {
            1
        } else {
            size.min(self.align).max(1)
        };
        let padding = unit.wrapping_sub(len & (unit - 1)) & (unit - 1);
        Ok(Some(Item {
            option,
            size,
            padding,
        }))
    }

    fn number(&mut self, default: usize) -> mlua::Result<usize> {
        let digits = self
            .text
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if digits == 0 {
            return Ok(default);
        }
        let (number, rest) = self.text.split_at(digits);
        self.text = rest;
        let value = number.iter().try_fold(0_i32, |value, digit| {
            value.checked_mul(10)?.checked_add(i32::from(digit - b'0'))
        });
        let value = value.ok_or_else(|| library_error(self.lua, "integral size overflow"))?;
        Ok(value as usize)
    }

    /// An option that stands for no data: byte order, alignment, blank.
    fn control(&mut self, option: u8) -> mlua::Result<()> {
        match option {
            b' ' => {}
            b'>' => self.big_endian = true,
            b'<' => self.big_endian = false,
            b'!' => {
                let align = self.number(ALIGN_MAX)?;
                if !align.is_power_of_two() {
                    let text = format!("alignment {align} is not a power of 2");
                    return Err(library_error(self.lua, text));
                }
                self.align = align;
            }
            option => {
                let text = format!("invalid format option '{}'", char::from(option));
                return Err(argument_error(self.lua, 1, &text));
            }
        }
        Ok(())
    }
}

/// `struct.pack(format, ...)`
fn pack(lua: &Lua, values: MultiValue) -> mlua::Result<LuaString> {
    let mut values = values;
    // The C function marks the end of its arguments with a nil, which its error texts show.
    if !values.is_empty() {
        values.push_back(Value::Nil);
    }
    let args = Arguments::new(lua, values);
    let text = args.string(1)?;
    let mut format = Format::new(lua, &text);
    let (mut out, mut position) = (Vec::new(), 2);
    while let Some(item) = format.next(out.len())? {
        out.resize(out.len() + item.padding, 0);
        match item.option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                put_integer(
                    &mut out,
                    args.number(position)?,
                    item.size,
                    format.big_endian,
                );
            }
            b'x' => {
                out.push(0);
                continue;
            }
            b'f' => put(
                &mut out,
                &(args.number(position)? as f32).to_le_bytes(),
                format.big_endian,
            ),
            b'd' => put(
                &mut out,
                &args.number(position)?.to_le_bytes(),
                format.big_endian,
            ),
            b'c' | b's' => {
                let string = args.string(position)?;
                let size = if item.size == 0 {
                    string.len()
                } else {
                    item.size
                };
                let Some(taken) = string.get(..size) else {
                    return Err(argument_error(lua, position + 1, "string too short"));
                };
                out.extend_from_slice(taken);
                if item.option == b's' {
                    out.push(0);
                }
            }
            option => {
                format.control(option)?;
                continue;
            }
        }
        position += 1;
    }
    lua.create_string(out)
}

fn put(out: &mut Vec<u8>, little: &[u8], big_endian: bool) {
    let from = out.len();
    out.extend_from_slice(little);
    if big_endian && let Some(written) = out.get_mut(from..) {
        written.reverse();
    }
}

fn put_integer(out: &mut Vec<u8>, number: f64, size: usize, big_endian: bool) {
    let value = if number.is_nan() {
        1 << 63
    } else if number < 0.0 {
        truncate(number) as u64
    } else if number < 18_446_744_073_709_551_616.0 {
        number as u64
    } else {
        // What the conversion of the x86-64 compiler leaves of a number that is too large.
        0
    };
    let mut bytes = [0; INTEGER_SIZE_MAX];
    for (byte, low) in bytes.iter_mut().zip(value.to_le_bytes()) {
        *byte = low;
    }
    put(out, bytes.get(..size).unwrap_or_default(), big_endian);
}

/// `struct.unpack(format, data [, position])`: the values, and the position behind them.
fn unpack(lua: &Lua, values: MultiValue) -> mlua::Result<MultiValue> {
    let args = Arguments::new(lua, values);
    let (text, data) = (args.string(1)?, args.string(2)?);
    let position = match args.get(3) {
        None | Some(Value::Nil) => 1,
        Some(_) => args.integer(3)?,
    };
    if position == 0 {
        return Err(argument_error(lua, 3, "offset must be 1 or greater"));
    }
    // A negative position is a huge one, since C has it in an unsigned number.
    let mut at = (position as u64 - 1) as usize;
    let short = || argument_error(lua, 2, "data string too short");
    let mut format = Format::new(lua, &text);
    let mut results: Vec<Value> = Vec::new();
    while let Some(item) = format.next(at)? {
        at = at.saturating_add(item.padding);
        let mut size = item.size;
        let mut bytes = at
            .checked_add(size)
            .and_then(|end| data.get(at..end))
            .ok_or_else(short)?;
        if results.len() > RESULTS_MAX {
            return Err(library_error(lua, "stack overflow (too many results)"));
        }
        match item.option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let is_signed = item.option.is_ascii_lowercase();
                results.push(Value::Number(get_integer(
                    bytes,
                    format.big_endian,
                    is_signed,
                )));
            }
            b'x' => {}
            b'f' => {
                let bytes = in_little_order(bytes, format.big_endian);
                results.push(Value::Number(f64::from(f32::from_le_bytes(bytes))));
            }
            b'd' => {
                let bytes = in_little_order(bytes, format.big_endian);
                results.push(Value::Number(f64::from_le_bytes(bytes)));
            }
            b'c' => {
                if size == 0 {
                    let previous = lua.coerce_number(results.pop().unwrap_or(Value::Nil));
                    let Ok(Some(previous)) = previous else {
                        return Err(library_error(lua, "format 'c0' needs a previous size"));
                    };
                    size = truncate(previous) as u64 as usize;
                    bytes = at
                        .checked_add(size)
                        .and_then(|end| data.get(at..end))
                        .ok_or_else(short)?;
                }
                results.push(LuaString::wrap(bytes).into_lua(lua)?);
            }
            b's' => {
                let rest = data.get(at..).unwrap_or_default();
                let Some(len) = memchr::memchr(0, rest) else {
                    return Err(library_error(lua, "unfinished string in data"));
                };
                size = len + 1;
                results.push(LuaString::wrap(rest.get(..len).unwrap_or_default()).into_lua(lua)?);
            }
            option => format.control(option)?,
        }
        at += size;
    }
    results.push(Value::Number((at + 1) as f64));
    Ok(MultiValue::from_vec(results))
}

fn in_little_order<const N: usize>(bytes: &[u8], big_endian: bool) -> [u8; N] {
    let mut copy: [u8; N] = bytes.try_into().unwrap_or([0; N]);
    if big_endian {
        copy.reverse();
    }
    copy
}

fn get_integer(bytes: &[u8], big_endian: bool, is_signed: bool) -> f64 {
    let shift_in = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    let value = if big_endian {
        bytes.iter().fold(0, shift_in)
    } else {
        bytes.iter().rev().fold(0, shift_in)
    };
    if !is_signed {
        return value as f64;
    }
    // The shift counts modulo 64, as the machine's does.
    let mask = u64::MAX.wrapping_shl((bytes.len() as u32).wrapping_mul(8).wrapping_sub(1));
    let value = if value & mask == 0 {
        value
    } else {
        value | mask
    };
    value as i64 as f64
}

/// `struct.size(format)`
fn size(lua: &Lua, values: MultiValue) -> mlua::Result<f64> {
    let args = Arguments::new(lua, values);
    let text = args.string(1)?;
    let mut format = Format::new(lua, &text);
    let mut total = 0_usize;
    while let Some(item) = format.next(total)? {
        total = total.saturating_add(item.padding);
        match item.option {
            b's' => return Err(argument_error(lua, 1, "option 's' has no fixed size")),
            b'c' if item.size == 0 => {
                return Err(argument_error(lua, 1, "option 'c0' has no fixed size"));
            }
            option if !option.is_ascii_alphanumeric() => format.control(option)?,
            _ => {}
        }
        total = total.saturating_add(item.size);
    }
    Ok(total as f64)
}
