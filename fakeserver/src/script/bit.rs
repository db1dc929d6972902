//! The library `bit`: operations on 32-bit integers, as `LuaBitOp` 1.0.2 has them.

use mlua::{Function, Lua, LuaString, MultiValue, Table};

use super::arguments::Arguments;

pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let bit = lua.create_table()?;
    let unary = |operation: fn(i32) -> i32| -> mlua::Result<Function> {
        lua.create_function(move |lua, values| operation_of_one(lua, values, operation))
    };
    bit.raw_set("tobit", unary(|value| value)?)?;
    bit.raw_set("bnot", unary(|value| !value)?)?;
    bit.raw_set("bswap", unary(i32::swap_bytes)?)?;
    let many = |operation: fn(i32, i32) -> i32| -> mlua::Result<Function> {
        lua.create_function(move |lua, values| operation_of_many(lua, values, operation))
    };
    bit.raw_set("band", many(|a, b| a & b)?)?;
    bit.raw_set("bor", many(|a, b| a | b)?)?;
    bit.raw_set("bxor", many(|a, b| a ^ b)?)?;
    let shift = |operation: fn(i32, u32) -> i32| -> mlua::Result<Function> {
        lua.create_function(move |lua, values| {
            let args = Arguments::new(lua, values);
            let value = number(&args, 1)?;
            Ok(operation(value, number(&args, 2)? as u32 & 31))
        })
    };
    bit.raw_set("lshift", shift(|value, by| value << by)?)?;
    bit.raw_set("rshift", shift(|value, by| (value as u32 >> by) as i32)?)?;
    bit.raw_set("arshift", shift(|value, by| value >> by)?)?;
    bit.raw_set("rol", shift(i32::rotate_left)?)?;
    bit.raw_set("ror", shift(i32::rotate_right)?)?;
    bit.raw_set("tohex", lua.create_function(tohex)?)?;
    Ok(bit)
}

/// An argument as 32 bits: adding 2^52 + 2^51 leaves a double's integer part, rounded, in its lowest bits.
fn number(args: &Arguments<'_>, position: usize) -> mlua::Result<i32> {
    let value = args.number(position)? + 6_755_399_441_055_744.0;
    Ok(value.to_bits() as u32 as i32)
}

fn operation_of_one(lua: &Lua, values: MultiValue, operation: fn(i32) -> i32) -> mlua::Result<i32> {
    number(&Arguments::new(lua, values), 1).map(operation)
}

fn operation_of_many(
    lua: &Lua,
    values: MultiValue,
    operation: fn(i32, i32) -> i32,
) -> mlua::Result<i32> {
    let args = Arguments::new(lua, values);
    let mut result = number(&args, 1)?;
    // The last argument is looked at first, as an error tells.
    for position in (2..=args.len()).rev() {
        result = operation(result, number(&args, position)?);
    }
    Ok(result)
}

/// `bit.tohex(value [, digits])`: hexadecimal digits, in upper case if their number is negative.
fn tohex(lua: &Lua, values: MultiValue) -> mlua::Result<LuaString> {
    let args = Arguments::new(lua, values);
    let value = number(&args, 1)? as u32;
    let digits = match args.get(2) {
        None => 8,
        Some(_) => number(&args, 2)?,
    };
    let text = if digits < 0 {
        format!("{value:08X}")
    } else {
        format!("{value:08x}")
    };
    let shown = digits.unsigned_abs().min(8) as usize;
    lua.create_string(text.get(8 - shown..).unwrap_or_default())
}
