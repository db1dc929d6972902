//! Sparse registers: runs of equal ones. `00nnnnnn` is up to 64 zeros, `01nnnnnn nnnnnnnn` up to 16,384, and `1vvvvvnn` up to
//! four registers of a value up to 32.

use std::fmt::Write;

use smallvec::SmallVec;

use super::estimate::Histogram;
use super::{Corrupted, HEADER_LEN, REGISTERS, dense, forget_count, make_dense};

/// The highest value that a run can have; a higher one makes the `HyperLogLog` dense.
const VALUE_MAX: u8 = 32;
const VALUES_MAX: usize = 4;
const ZEROS_MAX: usize = 64;
/// Runs that are looked at, from the one before a changed run on, for neighbours to be joined.
const JOINED_MAX: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    Zeros(usize),
    /// Zeros whose number takes two bytes.
    ManyZeros(usize),
    Values(u8, usize),
}

impl Run {
    /// The run that begins at a byte; a second byte beyond the end counts as 0.
    fn read(bytes: &[u8], at: usize) -> Option<Run> {
        let first = *bytes.get(at)?;
        let low = usize::from(first & 0x3f);
        Some(match first >> 6 {
            0 => Run::Zeros(low + 1),
            1 => {
                let second = bytes.get(at + 1).copied().unwrap_or(0);
                Run::ManyZeros((low << 8 | usize::from(second)) + 1)
            }
            _ => Run::Values((first >> 2 & 0x1f) + 1, usize::from(first & 3) + 1),
        })
    }

    /// Bytes that the run takes.
    fn width(self) -> usize {
        match self {
            Run::ManyZeros(_) => 2,
            Run::Zeros(_) | Run::Values(..) => 1,
        }
    }

    /// Registers that the run stands for.
    fn len(self) -> usize {
        match self {
            Run::Zeros(len) | Run::ManyZeros(len) | Run::Values(_, len) => len,
        }
    }
}

/// The byte of a run of values; the value is 1 to 32, the length 1 to 4.
fn values(value: u8, len: usize) -> u8 {
    0x80 | (value.wrapping_sub(1) & 0x1f) << 2 | (len.wrapping_sub(1) & 3) as u8
}

/// Appends a run of zeros, at most 16,384.
pub(super) fn push_zeros(bytes: &mut impl Extend<u8>, len: usize) {
    let coded = len.saturating_sub(1);
    if len > ZEROS_MAX {
        bytes.extend([0x40 | (coded >> 8 & 0x3f) as u8, coded as u8]);
    } else {
        bytes.extend([coded as u8]);
    }
}

fn runs(bytes: &[u8]) -> impl Iterator<Item = Run> {
    let mut at = HEADER_LEN;
    std::iter::from_fn(move || {
        let run = Run::read(bytes, at)?;
        at += run.width();
        Some(run)
    })
}

/// Calls `visit` with every register that is not 0. Errors: there are more or fewer than 16,384 registers, which is noticed when
/// those before were visited.
pub(super) fn visit(bytes: &[u8], mut visit: impl FnMut(usize, u8)) -> Result<(), Corrupted> {
    let mut first = 0_usize;
    for run in runs(bytes) {
        if first + run.len() > REGISTERS {
            return Err(Corrupted);
        }
        if let Run::Values(value, len) = run {
            (first..first + len).for_each(|register| visit(register, value));
        }
        first += run.len();
    }
    if first == REGISTERS {
        Ok(())
    } else {
        Err(Corrupted)
    }
}

/// How many registers have each value. Errors: there are more or fewer than 16,384.
pub(super) fn histogram(bytes: &[u8]) -> Result<Histogram, Corrupted> {
    let (mut histogram, mut registers) = (Histogram::default(), 0);
    for run in runs(bytes) {
        registers += run.len();
        if registers > REGISTERS {
            return Err(Corrupted);
        }
        let value = match run {
            Run::Values(value, _) => value,
            Run::Zeros(_) | Run::ManyZeros(_) => 0,
        };
        histogram.count(value, run.len());
    }
    if registers == REGISTERS {
        Ok(histogram)
    } else {
        Err(Corrupted)
    }
}

/// The runs as text.
pub(super) fn describe(bytes: &[u8]) -> String {
    let mut text = String::new();
    for run in runs(bytes) {
        let blank = if text.is_empty() { "" } else { " " };
        let written = match run {
            Run::Zeros(len) => write!(text, "{blank}z:{len}"),
            Run::ManyZeros(len) => write!(text, "{blank}Z:{len}"),
            Run::Values(value, len) => write!(text, "{blank}v:{value},{len}"),
        };
        written.expect("a string takes any text");
    }
    text
}

/// Where a register is.
struct Place {
    run: Run,
    at: usize,
    /// Where the run before begins, or this one if it is the first.
    before: usize,
    /// The run's first register.
    first: usize,
}

fn find(bytes: &[u8], register: usize) -> Option<Place> {
    let (mut at, mut before, mut first) = (HEADER_LEN, HEADER_LEN, 0);
    while let Some(run) = Run::read(bytes, at) {
        if register < first + run.len() {
            return Some(Place {
                run,
                at,
                before,
                first,
            });
        }
        before = at;
        at += run.width();
        first += run.len();
    }
    None
}

/// Gives a register a value if it has a lower one; whether it had. A string that would become longer than `len_max` becomes
/// dense instead. Errors: there is no such register, or the others cannot be read.
pub(super) fn raise(
    bytes: &mut Vec<u8>,
    register: usize,
    value: u8,
    len_max: usize,
) -> Result<bool, Corrupted> {
    if value > VALUE_MAX {
        return raise_as_dense(bytes, register, value);
    }
    let place = find(bytes, register).ok_or(Corrupted)?;
    if matches!(place.run, Run::Values(old, _) if old >= value) {
        return Ok(false);
    }
    let parts = split(&place, register, value);
    let (len, width) = (bytes.len(), place.run.width());
    if parts.len() > width && len + parts.len() - width > len_max {
        return raise_as_dense(bytes, register, value);
    }
    let end = (place.at + width).min(len);
    bytes.splice(place.at..end, parts.iter().copied());
    // Half a run at the end was counted as a whole one.
    bytes.truncate(len + parts.len() - width);
    join_values(bytes, place.before);
    forget_count(bytes);
    Ok(true)
}

/// What takes the place of a run when one of its registers gets another value: that one, and what is left on both sides.
fn split(place: &Place, register: usize, value: u8) -> SmallVec<[u8; 8]> {
    let (before, after) = (
        register - place.first,
        place.first + place.run.len() - 1 - register,
    );
    let mut parts = SmallVec::new();
    let rest = |parts: &mut SmallVec<[u8; 8]>, len: usize| match place.run {
        _ if len == 0 => {}
        Run::Values(old, _) => parts.push(values(old, len)),
        Run::Zeros(_) | Run::ManyZeros(_) => push_zeros(parts, len),
    };
    rest(&mut parts, before);
    parts.push(values(value, 1));
    rest(&mut parts, after);
    parts
}

/// Joins neighbours of the same value, from a run on.
fn join_values(bytes: &mut Vec<u8>, from: usize) {
    let mut at = from;
    for _ in 0..JOINED_MAX {
        let Some(run) = Run::read(bytes, at) else {
            return;
        };
        let next = Run::read(bytes, at + 1);
        if let (Run::Values(value, len), Some(Run::Values(other, more))) = (run, next)
            && value == other
            && len + more <= VALUES_MAX
        {
            bytes[at] = values(value, len + more);
            bytes.remove(at + 1);
        } else {
            at += run.width();
        }
    }
}

fn raise_as_dense(bytes: &mut Vec<u8>, register: usize, value: u8) -> Result<bool, Corrupted> {
    make_dense(bytes)?;
    Ok(dense::raise(bytes, register, value))
}
