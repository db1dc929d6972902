//! `REPLCONF`: what a replica tells its master about itself, before it asks for the data.

use super::{CommandResult, ControlCall, Words};
use crate::error::CommandError;
use crate::value::number;
use crate::wire::Reply;
use crate::wire::request::split_words;

/// `REPLCONF [option value ...]`: replies with `OK`, and does nothing, since no replica follows; silent behind `ACK` and
/// `GETACK`, which only a replica and its master answer.
///
/// Options are `LISTENING-PORT`, `IP-ADDRESS`, `CAPA`, `ACK`, `GETACK`, `RDB-ONLY` and `RDB-FILTER-ONLY`. Errors: another option;
/// one without a value; a value that is none of its option.
pub(super) fn replconf(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    if args.len() % 2 != 0 {
        return Err(CommandError::Syntax);
    }
    while !args.is_empty() {
        if args.keyword("LISTENING-PORT") {
            args.integer()?;
        } else if args.keyword("IP-ADDRESS") || args.keyword("CAPA") {
            args.next()?;
        } else if args.keyword("ACK") || args.keyword("GETACK") {
            return Ok(Reply::Nothing);
        } else if args.keyword("RDB-ONLY") {
            let (min, max) = (0, 1);
            let only = number::parse_integer(args.next()?).ok_or(CommandError::NotAnInteger)?;
            if !(min..=max).contains(&only) {
                return Err(CommandError::OutOfRangeBetween { min, max });
            }
        } else if args.keyword("RDB-FILTER-ONLY") {
            check_filter(args.next()?)?;
        } else {
            return Err(refused("Unrecognized REPLCONF option: ", args.next()?));
        }
    }
    Ok(Reply::OK)
}

/// A filter is a list of words, of which `functions` is the only one there is.
fn check_filter(filter: &[u8]) -> Result<(), CommandError> {
    let Some(words) = split_words(filter) else {
        return Err(CommandError::custom("ERR Missing rdb-filter-only values"));
    };
    let unknown = words
        .iter()
        .find(|word| !word.eq_ignore_ascii_case(b"functions"));
    unknown.map_or(Ok(()), |word| {
        Err(refused("Unsupported rdb-filter-only option: ", word))
    })
}

fn refused(reason: &str, word: &[u8]) -> CommandError {
    CommandError::custom([b"ERR ", reason.as_bytes(), word].concat())
}
