//! Libraries of functions to bytes and back (rdb.c, `rdbSaveFunctions` and `rdbFunctionLoad`).

use super::read::Reader;
use super::write::{self, Compression};
use crate::value::Blob;

/// In front of a library's code.
const LIBRARY: u8 = 245;
/// In front of a library's name, engine, description and code, as release candidates of 7.0 wrote them.
const EARLY_LIBRARY: u8 = 246;

/// The payload of libraries with these codes.
pub(crate) fn dump_functions<'a>(
    codes: impl Iterator<Item = &'a [u8]>,
    compression: Compression,
) -> Vec<u8> {
    let mut out = write::Out::new(compression);
    for code in codes {
        out.push(LIBRARY);
        write::string(&mut out, code);
    }
    super::seal(out)
}

/// The codes of the libraries in what [`super::verify`] let through, one after the other; what is wrong, where something is.
pub(crate) fn read_functions(
    payload: &[u8],
) -> impl Iterator<Item = Result<Blob, &'static str>> + '_ {
    let mut reader = Reader(payload);
    std::iter::from_fn(move || {
        let [kind] = reader.chunk()?;
        Some(match kind {
            LIBRARY => reader.string().ok_or("Failed loading library payload"),
            EARLY_LIBRARY => early_library(&mut reader),
            _ => Err("given type is not a function"),
        })
    })
}

fn early_library(reader: &mut Reader<'_>) -> Result<Blob, &'static str> {
    let name = reader.string().ok_or("Failed loading library name")?;
    let engine = reader.string().ok_or("Failed loading engine name")?;
    let described = reader
        .length()
        .ok_or("Failed loading library description indicator")?;
    if described > 0 {
        reader
            .string()
            .ok_or("Failed loading library description")?;
    }
    let code = reader.string().ok_or("Failed loading library blob")?;
    let parts: [&[u8]; 6] = [b"#!", &engine, b" name=", &name, b"\n", &code];
    Ok(Blob::from(parts.concat()))
}
