//! LCS (`t_string.c`, `lcsCommand`).

use super::{Args, Command, CommandResult, Family, Group, KeySpec, ReadCall, Words};
use crate::error::CommandError;
use crate::keyspace::Typed;
use crate::value::StringValue;
use crate::wire::Reply;

/// Both strings.
const KEYS: KeySpec = KeySpec::Range {
    first: 1,
    last: 2,
    step: 1,
};

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::String, &[
    //             name  arity  flags keys  handler
    Command::read("LCS", -3,    &[],  KEYS, lcs).since("7.0.0"),
]);

/// `LCS key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]`: replies with the longest common subsequence as a
/// bulk string, with LEN with its length, with IDX with a map of `matches` (ranges in both strings, last one first) and `len`.
///
/// Errors: a key of another type (not `WRONGTYPE`); syntax; not an integer; LEN with IDX; too much memory.
fn lcs(call: &mut ReadCall<'_>) -> CommandResult {
    let mut args = call.args();
    let (a, b) = (args.next()?, args.next()?);
    let (a, b) = (call.keyspace.read_any(a), call.keyspace.read_any(b));
    let text = |value| match value {
        Some(value) => StringValue::of(value)
            .map(StringValue::to_blob)
            .ok_or(CommandError::LcsOfOtherTypes),
        None => Ok(crate::value::Blob::default()),
    };
    // Redis looks at both types before it complains, and at the options only after that.
    let (a, b) = (text(a)?, text(b)?);
    let options = Options::parse(args)?;
    let table = Table::new(&a, &b, call.config.proto_max_bulk_len.max(0) as usize)?;
    Ok(match options.output {
        Output::Length => Reply::count(table.len()),
        Output::Text => Reply::bulk(table.text()),
        Output::Indexes => Reply::Map(vec![
            (Reply::bulk("matches"), options.matches(&table)),
            (Reply::bulk("len"), Reply::count(table.len())),
        ]),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    Text,
    Length,
    Indexes,
}

#[derive(Debug)]
struct Options {
    output: Output,
    match_len_min: i64,
    with_match_len: bool,
}

impl Options {
    fn parse(mut args: Args<'_>) -> Result<Options, CommandError> {
        let (mut length, mut indexes) = (false, false);
        let mut options = Options {
            output: Output::Text,
            match_len_min: 0,
            with_match_len: false,
        };
        while !args.is_empty() {
            if args.keyword("IDX") {
                indexes = true;
            } else if args.keyword("LEN") {
                length = true;
            } else if args.keyword("WITHMATCHLEN") {
                options.with_match_len = true;
            } else if args.keyword("MINMATCHLEN") {
                options.match_len_min = args.integer()?;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        options.output = match (length, indexes) {
            (true, true) => return Err(CommandError::LcsLengthAndIndexes),
            (true, false) => Output::Length,
            (false, true) => Output::Indexes,
            (false, false) => Output::Text,
        };
        Ok(options)
    }

    fn matches(&self, table: &Table<'_>) -> Reply {
        let range = |start: usize, len: usize| {
            Reply::Array(vec![Reply::count(start), Reply::count(start + len - 1)])
        };
        let long_enough = |found: &&Match| found.len as i64 >= self.match_len_min;
        let reply = |found: &Match| {
            let mut items = vec![range(found.a, found.len), range(found.b, found.len)];
            if self.with_match_len {
                items.push(Reply::count(found.len));
            }
            Reply::Array(items)
        };
        Reply::Array(
            table
                .matches()
                .iter()
                .filter(long_enough)
                .map(reply)
                .collect(),
        )
    }
}

/// A run of bytes that both strings share.
#[derive(Debug)]
struct Match {
    /// Where it starts in the first string.
    a: usize,
    /// Where it starts in the second string.
    b: usize,
    len: usize,
}

/// Lengths of the longest common subsequences of all pairs of prefixes.
#[derive(Debug)]
struct Table<'a> {
    a: &'a [u8],
    b: &'a [u8],
    lengths: Vec<u32>,
}

impl<'a> Table<'a> {
    /// Errors: the table would be larger than `bytes_max`.
    fn new(a: &'a [u8], b: &'a [u8], bytes_max: usize) -> Result<Table<'a>, CommandError> {
        let cells = (a.len() + 1).checked_mul(b.len() + 1);
        let cells = cells
            .filter(|cells| cells.checked_mul(4).is_some_and(|bytes| bytes <= bytes_max))
            .ok_or(CommandError::LcsTooLarge)?;
        let mut table = Table {
            a,
            b,
            lengths: vec![0; cells],
        };
        for i in 1..=a.len() {
            for j in 1..=b.len() {
                let length = if a[i - 1] == b[j - 1] {
                    table.at(i - 1, j - 1) + 1
                } else {
                    table.at(i - 1, j).max(table.at(i, j - 1))
                };
                table.lengths[i * (b.len() + 1) + j] = length;
            }
        }
        Ok(table)
    }

    fn at(&self, i: usize, j: usize) -> u32 {
        self.lengths[i * (self.b.len() + 1) + j]
    }

    fn len(&self) -> usize {
        self.at(self.a.len(), self.b.len()) as usize
    }

    /// The subsequence that Redis finds: from the ends backwards, where two are equally long by leaving out of the second
    /// string. `visit` is told the indexes of each byte, last one first.
    fn walk(&self, mut visit: impl FnMut(usize, usize)) {
        let (mut i, mut j) = (self.a.len(), self.b.len());
        while i > 0 && j > 0 {
            if self.a[i - 1] == self.b[j - 1] {
                (i, j) = (i - 1, j - 1);
                visit(i, j);
            } else if self.at(i - 1, j) > self.at(i, j - 1) {
                i -= 1;
            } else {
                j -= 1;
            }
        }
    }

    fn text(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.len());
        self.walk(|i, _| text.push(self.a[i]));
        text.reverse();
        text
    }

    /// Runs without a gap in either string, last one first.
    fn matches(&self) -> Vec<Match> {
        let mut matches: Vec<Match> = Vec::new();
        self.walk(|a, b| match matches.last_mut() {
            Some(last) if last.a == a + 1 && last.b == b + 1 => {
                (last.a, last.b, last.len) = (a, b, last.len + 1);
            }
            _ => matches.push(Match { a, b, len: 1 }),
        });
        matches
    }
}
