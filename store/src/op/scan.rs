//! `SCAN`, `HSCAN`, `ZSCAN`: walking over what may be large, a page at a time.

use redis::{Cmd, Value, cmd};

use super::{Replies, protocol_error, reply};
use crate::StoreError;

/// Pages after which a walk is given up: a walk over a thousand million entries has as many, and a server whose cursors never
/// come to an end has more.
const PAGES_MAX: u32 = 1 << 20;

/// A walk, and how far it is.
#[derive(Debug)]
pub(crate) struct Scan {
    command: &'static str,
    /// None for the database itself.
    key: Option<String>,
    pattern: Option<String>,
    pub(crate) count: u32,
    cursor: u64,
    pages: u32,
}

impl Scan {
    /// Over the keys that match, from this cursor on.
    pub(crate) fn keys(pattern: String, count: u32, cursor: u64) -> Self {
        Self {
            command: "SCAN",
            key: None,
            pattern: Some(pattern),
            count,
            cursor,
            pages: 0,
        }
    }

    /// Over the fields of a hash.
    pub(crate) fn hash(key: String, count: u32) -> Self {
        Self {
            command: "HSCAN",
            key: Some(key),
            ..Self::keys(String::new(), count, 0)
        }
        .matching(None)
    }

    /// Over the members of a sorted set, or over those that match.
    pub(crate) fn sorted_set(key: String, pattern: Option<String>, count: u32) -> Self {
        Self {
            command: "ZSCAN",
            key: Some(key),
            ..Self::keys(String::new(), count, 0)
        }
        .matching(pattern)
    }

    fn matching(mut self, pattern: Option<String>) -> Self {
        self.pattern = pattern;
        self
    }

    /// How many pages were read.
    pub(crate) fn pages(&self) -> u32 {
        self.pages
    }

    /// Where the walk goes on; none at the end.
    pub(crate) fn cursor(&self) -> Option<u64> {
        (self.cursor != 0).then_some(self.cursor)
    }

    /// The command for the next page.
    pub(crate) fn command(&self) -> Cmd {
        let mut command = cmd(self.command);
        if let Some(key) = &self.key {
            command.arg(key);
        }
        command.arg(self.cursor);
        if let Some(pattern) = &self.pattern {
            command.arg("MATCH").arg(pattern);
        }
        command.arg("COUNT").arg(self.count).take()
    }

    /// The page that the server answered, as a flat list.
    pub(crate) fn page(&mut self, replies: Replies) -> Result<Value, StoreError> {
        let [scan] = replies.harmless()?;
        let place = self.key.as_ref().or(self.pattern.as_ref());
        let scan = reply::accepted(scan, self.command, place.map_or("", String::as_str))?;
        let (next, found) = parts(scan, self.command)?;
        self.pages += 1;
        if self.pages > PAGES_MAX {
            return Err(protocol_error("a walk over the keys does not end").into());
        }
        self.cursor = next;
        Ok(found)
    }

    /// As [`Scan::page`], as single names.
    pub(crate) fn names(&mut self, replies: Replies) -> Result<Vec<Vec<u8>>, StoreError> {
        let found = self.page(replies)?;
        let names = reply::items(found).map(|names| names.into_iter().map(reply::bytes));
        names
            .and_then(Iterator::collect)
            .ok_or_else(|| reply::unexpected(self.command))
    }

    /// As [`Scan::page`], as fields with values, or members with scores.
    pub(crate) fn pairs(&mut self, replies: Replies) -> Result<Vec<Pair>, StoreError> {
        pairs(self.page(replies)?, self.command)
    }
}

/// Where a walk goes on, 0 at the end, and what it has found.
pub(crate) fn parts(scan: Value, command: &'static str) -> Result<(u64, Value), StoreError> {
    let parts = reply::items(scan).and_then(|parts| {
        let [next, found] = <[Value; 2]>::try_from(parts).ok()?;
        // Cursors use all 64 bits.
        let next = std::str::from_utf8(&reply::bytes(next)?)
            .ok()?
            .parse()
            .ok()?;
        Some((next, found))
    });
    parts.ok_or_else(|| reply::unexpected(command))
}

/// Fields with values, or members with scores.
pub(crate) fn pairs(found: Value, command: &'static str) -> Result<Vec<Pair>, StoreError> {
    let pair = |(first, second)| Some((reply::bytes(first)?, reply::bytes(second)?));
    let pairs = reply::pairs(found).map(|pairs| pairs.into_iter().map(pair));
    pairs
        .and_then(Iterator::collect)
        .ok_or_else(|| reply::unexpected(command))
}

/// A field and its value, or a member and its score.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);
