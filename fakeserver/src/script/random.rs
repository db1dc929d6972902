//! `math.random` and `math.randomseed`: the server's own generator, so that every script sees the same sequence everywhere.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mlua::{Lua, MultiValue, Value};

use super::arguments::Arguments;
use super::raise::{argument_error, library_error};

/// The 48-bit linear congruential generator of `lrand48` (rand.c).
#[derive(Debug)]
pub(super) struct Lrand48(AtomicU64);

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;

const START: u64 = 0x1234_ABCD_330E;

impl Default for Lrand48 {
    /// A server that nobody has seeded begins here, at every start.
    fn default() -> Lrand48 {
        Lrand48(AtomicU64::new(START))
    }
}

impl Lrand48 {
    /// Back to the beginning.
    #[cfg(feature = "explore")]
    pub(super) fn reset(&self) {
        self.0.store(START, Relaxed);
    }

    fn seed(&self, seed: u32) {
        self.0.store(u64::from(seed) << 16 | 0x330E, Relaxed);
    }

    /// A number below 2^31.
    fn next(&self) -> u32 {
        let state = self
            .0
            .load(Relaxed)
            .wrapping_mul(MULTIPLIER)
            .wrapping_add(INCREMENT)
            & MASK;
        self.0.store(state, Relaxed);
        (state >> 17) as u32
    }

    /// `math.random([m [, n]])`.
    pub(super) fn random(&self, lua: &Lua, values: MultiValue) -> mlua::Result<Value> {
        const MAX: u32 = i32::MAX as u32;
        let fraction = f64::from(self.next() % MAX) / f64::from(MAX);
        let args = Arguments::new(lua, values);
        let (low, high, last) = match args.len() {
            0 => return Ok(Value::Number(fraction)),
            1 => (1, args.integer(1)? as i32, 1),
            2 => (args.integer(1)? as i32, args.integer(2)? as i32, 2),
            _ => return Err(library_error(lua, "wrong number of arguments")),
        };
        if low > high {
            return Err(argument_error(lua, last, "interval is empty"));
        }
        let count = high.wrapping_sub(low).wrapping_add(1);
        Ok(Value::Number(
            (fraction * f64::from(count)).floor() + f64::from(low),
        ))
    }

    /// `math.randomseed(n)`.
    pub(super) fn randomseed(&self, lua: &Lua, values: MultiValue) -> mlua::Result<()> {
        self.seed(Arguments::new(lua, values).integer(1)? as u32);
        Ok(())
    }
}
