//! PFDEBUG and PFSELFTEST: a `HyperLogLog` seen from inside, for tests of the server itself.

use super::hyperloglog::encoding_of;
use super::{Command, CommandResult, ControlCall, Family, Flag, Group, KeySpec, Words, WriteCall};
use crate::error::CommandError;
use crate::resolve;
use crate::value::StringValue;
use crate::value::hyperloglog::{self, Corrupted, Encoding, REGISTERS};
use crate::wire::Reply;
use Flag::*;

/// Elements that PFSELFTEST adds: a tenth of Redis', since debug builds are slow.
const SELF_TEST_ELEMENTS: u64 = 1_000_000;
/// As long as fewer elements than this were added, a `HyperLogLog` is sparse with the default settings.
const SELF_TEST_SPARSE_MAX: u64 = 1500;
const SPARSE_LEN_MAX: usize = 3000;
/// Estimates are off by more than so many standard errors about never.
const SELF_TEST_DEVIATIONS: f64 = 6.0;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::HyperLogLog, &[
    //               name        arity  flags              keys           handler
    Command::write  ("PFDEBUG",     3,  &[DenyOom, Admin], KeySpec::Range { first: 2, last: 2, step: 1 }, pfdebug).since("2.8.9"),
    Command::control("PFSELFTEST",  1,  &[Admin],          KeySpec::None, pfselftest).since("2.8.9"),
]);

/// `PFDEBUG GETREG | DECODE | ENCODING | TODENSE key`: replies with an array of all registers, having made the `HyperLogLog` dense;
/// with the runs of a sparse one as bulk string; with its encoding as simple string; with whether it was made dense.
///
/// Errors: no such key; `WRONGTYPE`; no `HyperLogLog`; a corrupted one; DECODE of a dense one; an unknown subcommand.
fn pfdebug(call: &mut WriteCall<'_>) -> CommandResult {
    let [_, subcommand, key] = call.words()?;
    let string = call.keyspace.write::<StringValue>(key)?;
    let string = string.ok_or(CommandError::HyperLogLogMissing)?;
    let encoding = encoding_of(string)?;
    let was_raw = matches!(string, StringValue::Raw(_));
    let bytes = string.raw_mut();
    let mut made_dense = false;
    let reply = match subcommand.to_ascii_uppercase().as_slice() {
        b"GETREG" => hyperloglog::make_dense(bytes).map(|made| {
            made_dense = made;
            let registers = hyperloglog::dense_registers(bytes);
            Reply::Array(
                registers
                    .map(|value| Reply::Integer(value.into()))
                    .collect(),
            )
        }),
        b"DECODE" if encoding == Encoding::Sparse => Ok(Reply::bulk(hyperloglog::runs(bytes))),
        b"DECODE" => Ok(Reply::Error(CommandError::HyperLogLogNotSparse)),
        b"ENCODING" => Ok(Reply::simple(match encoding {
            Encoding::Dense => "dense",
            Encoding::Sparse => "sparse",
        })),
        b"TODENSE" => hyperloglog::make_dense(bytes).map(|made| {
            made_dense = made;
            Reply::flag(made)
        }),
        _ => Ok(Reply::Error(unknown(subcommand))),
    };
    if made_dense || !was_raw {
        // Another representation of the same: nobody who watches is told.
        call.keyspace.changed_unwatched(key);
    }
    Ok(reply?)
}

fn unknown(subcommand: &[u8]) -> CommandError {
    let subcommand = resolve::printable(subcommand, usize::MAX);
    CommandError::custom([b"ERR Unknown PFDEBUG subcommand '", subcommand, b"'"].concat())
}

/// `PFSELFTEST`: adds many elements to a sparse and a dense `HyperLogLog`; replies with `OK` if both agree and estimate well.
///
/// Errors: they do not.
fn pfselftest(call: &mut ControlCall<'_>) -> CommandResult {
    let seed = call.engine.rng.u64(..);
    let (mut sparse, mut dense) = (hyperloglog::empty(), hyperloglog::empty());
    hyperloglog::make_dense(&mut dense)?;
    let mut checkpoint = 1;
    for element in 1..=SELF_TEST_ELEMENTS {
        let bytes = (element ^ seed).to_le_bytes();
        hyperloglog::add(&mut sparse, &bytes, SPARSE_LEN_MAX)?;
        hyperloglog::add(&mut dense, &bytes, SPARSE_LEN_MAX)?;
        if element == checkpoint {
            check_estimate(&sparse, &dense, element)??;
            checkpoint *= 10;
        }
    }
    Ok(Reply::OK)
}

/// Whether both `HyperLogLog`s are what they should be after so many elements.
fn check_estimate(
    sparse: &[u8],
    dense: &[u8],
    elements: u64,
) -> Result<Result<(), CommandError>, Corrupted> {
    let failed = |text: String| Ok(Err(CommandError::custom(format!("ERR TESTFAILED {text}"))));
    let is_sparse = hyperloglog::encoding(sparse) == Some(Encoding::Sparse);
    if elements < SELF_TEST_SPARSE_MAX && !is_sparse {
        return failed("sparse encoding not used".to_owned());
    }
    let estimate = hyperloglog::count(dense)?;
    if estimate != hyperloglog::count(sparse)? {
        return failed("dense/sparse disagree".to_owned());
    }
    let error = estimate.abs_diff(elements);
    let relative = 1.04 / (REGISTERS as f64).sqrt() * SELF_TEST_DEVIATIONS;
    if error > (relative * elements as f64).ceil() as u64 {
        return failed(format!("Too big error. card:{elements} abserr:{error}"));
    }
    Ok(Ok(()))
}
