//! SCAN, and what HSCAN, SSCAN and ZSCAN share with it (db.c, `scanGenericCommand`).
//!
//! A container's scan command goes through these in Redis' order:
//!
//! ```text
//! let cursor = scan::parse_cursor(cursor)?;                        // first error: invalid cursor
//! let Some(hash) = call.keyspace.read::<Hash>(key)? else {
//!     return Ok(scan::reply(0, Vec::new()));                       // the options of a missing key are not looked at
//! };
//! let options = ScanOptions::parse(args)?;                         // MATCH and COUNT
//! // small encodings: all elements that `options.matches`, cursor 0; hash tables:
//! let next = options.page(cursor, dict, |field, value| ...);       // visits all, `options.matches` selects
//! Ok(scan::reply(next, items))
//! ```

use std::cell::Cell;

use super::{Args, Command, CommandResult, ControlCall, Family, Flag, Group, KeySpec, Words};
use crate::error::CommandError;
use crate::keyspace::Keyspace;
use crate::value::{Blob, Dict, glob};
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Generic, &[
    //               name    arity  flags        keys           handler
    Command::control("SCAN", -2,    &[ReadOnly], KeySpec::None, scan).since("2.8.0"),
]);

/// Elements per call where the client names no COUNT.
const COUNT_DEFAULT: i64 = 10;

/// Buckets that one call walks at most for each element that is asked for, so that a sparse table holds up nobody.
const BUCKETS_PER_ELEMENT: u64 = 10;

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`: replies with the next cursor and an array of keys.
///
/// Errors: invalid cursor; not an integer; syntax. A due key that is met is removed, which is why this is no `read` command.
fn scan(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let cursor = parse_cursor(args.next()?)?;
    let options = ScanOptions::parse_with_type(args)?;
    let keyspace = &mut call.engine.keyspace;
    let (next, met) = options.keys(cursor, keyspace);
    let mut keys = Vec::new();
    for key in met {
        let due = keyspace.remove_if_due(&key);
        let selected = match options.type_name {
            // Redis compares the type after the removal, so TYPE none selects just the keys that were due.
            Some(wanted) => keyspace
                .inspect_quietly(&key)
                .map_or("none", |entry| entry.value().type_name())
                .as_bytes()
                .eq_ignore_ascii_case(wanted),
            None => !due,
        };
        if selected {
            keys.push(Reply::Bulk(key));
        }
    }
    Ok(reply(next, keys))
}

/// Reads a cursor as C's `strtoul` does: a sign is allowed, a negative number wraps, nothing at all is 0, a NUL ends it.
///
/// Errors: invalid cursor.
pub(super) fn parse_cursor(word: &[u8]) -> Result<u64, CommandError> {
    let text = &word[..memchr::memchr(0, word).unwrap_or(word.len())];
    let (negative, digits) = match text {
        [] => return Ok(0),
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return Err(CommandError::InvalidCursor);
    }
    let mut cursor: u64 = 0;
    for digit in digits {
        cursor = Some(digit)
            .filter(|digit| digit.is_ascii_digit())
            .and_then(|digit| cursor.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
            .ok_or(CommandError::InvalidCursor)?;
    }
    Ok(if negative {
        cursor.wrapping_neg()
    } else {
        cursor
    })
}

/// The reply of a scan command: the next cursor as a bulk string, and the elements.
pub(super) fn reply(cursor: u64, items: Vec<Reply>) -> Reply {
    Reply::Array(vec![Reply::bulk(cursor.to_string()), Reply::Array(items)])
}

/// The options of a scan command.
#[derive(Clone, Debug)]
pub(super) struct ScanOptions<'a> {
    pattern: Option<&'a [u8]>,
    count: u64,
    type_name: Option<&'a [u8]>,
}

impl<'a> ScanOptions<'a> {
    /// Reads `[MATCH pattern] [COUNT count]` to the end of the arguments; of repeated ones the last counts.
    ///
    /// Errors: not an integer; a count below 1 or another word is a syntax error.
    pub(super) fn parse(args: Args<'a>) -> Result<ScanOptions<'a>, CommandError> {
        ScanOptions::parse_words(args, false)
    }

    /// Reads what [`ScanOptions::parse`] does and `[TYPE type]`.
    fn parse_with_type(args: Args<'a>) -> Result<ScanOptions<'a>, CommandError> {
        ScanOptions::parse_words(args, true)
    }

    fn parse_words(
        mut args: Args<'a>,
        type_allowed: bool,
    ) -> Result<ScanOptions<'a>, CommandError> {
        let mut options = ScanOptions {
            pattern: None,
            count: COUNT_DEFAULT as u64,
            type_name: None,
        };
        while !args.is_empty() {
            if args.keyword("COUNT") {
                let count = args.integer()?;
                options.count = u64::try_from(count)
                    .ok()
                    .filter(|count| *count > 0)
                    .ok_or(CommandError::Syntax)?;
            } else if args.keyword("MATCH") {
                options.pattern = Some(args.next()?).filter(|pattern| *pattern != b"*");
            } else if type_allowed && args.keyword("TYPE") {
                options.type_name = Some(args.next()?);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }

    /// Whether MATCH lets an element through; for hashes and sorted sets it looks at the field or member.
    pub(super) fn matches(&self, element: &[u8]) -> bool {
        self.pattern
            .is_none_or(|pattern| glob::matches(pattern, element, false))
    }

    /// Visits one call's share of a table from `cursor` on, matching or not; the next cursor.
    pub(super) fn page<'d, V>(
        &self,
        cursor: u64,
        dict: &'d Dict<V>,
        mut visit: impl FnMut(&'d Blob, &'d V),
    ) -> u64 {
        let budget = Budget::new(self.count);
        let visit = |key: &'d Blob, value: &'d V| {
            budget.element();
            visit(key, value);
        };
        dict.scan(cursor, visit, || budget.bucket())
    }

    /// One call's share of the keys that match, due ones included, and the next cursor.
    fn keys(&self, cursor: u64, keyspace: &Keyspace) -> (u64, Vec<Blob>) {
        let budget = Budget::new(self.count);
        let mut keys = Vec::new();
        let visit = |key: &Blob, _: &_| {
            budget.element();
            if self.matches(key) {
                keys.push(key.clone());
            }
        };
        let next = keyspace.scan(cursor, visit, || budget.bucket());
        (next, keys)
    }
}

/// How much of a table one call may still walk.
#[derive(Debug)]
struct Budget {
    elements: Cell<u64>,
    buckets: Cell<u64>,
}

impl Budget {
    fn new(count: u64) -> Budget {
        Budget {
            elements: Cell::new(count),
            buckets: Cell::new(count.saturating_mul(BUCKETS_PER_ELEMENT)),
        }
    }

    fn element(&self) {
        self.elements.set(self.elements.get().saturating_sub(1));
    }

    /// Counts a bucket; whether the call has done its share.
    fn bucket(&self) -> bool {
        let left = self.buckets.get();
        self.buckets.set(left.saturating_sub(1));
        left == 0 || self.elements.get() == 0
    }
}
