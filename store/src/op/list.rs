//! Listing executions.

use std::collections::BTreeSet;

use redis::cmd;

use super::{Batch, Operation, Replies, Step, over, reply, scan::Scan};
use crate::{
    Cursor, ExecutionPage, ExecutionSummary, ListFilter, Settings, StoreError, UnreadableRow,
    codec, keys::Keys,
};

/// The server is asked for at least so many keys at a time, whatever the caller's limit, and at most for so many: it answers
/// nobody else meanwhile.
const COUNT_MIN: u32 = 20;
const COUNT_MAX: u32 = 1_000;

/// A page is given out after so many scans that found nothing: the caller may want to stop.
const SCANS_MAX: u32 = 16;

/// `SCAN`, then `MGET`, again while nothing was found: one page of the executions.
///
/// Redis can not look into a row, so that filters apply here. A page has as many items as the server's scan happened to
/// meet; it is empty only at the end, or after sixteen scans that met nothing. An execution that is there all the time is
/// met at least once, and perhaps in two pages.
#[derive(Debug)]
pub struct ListExecutions {
    keys: Keys,
    filter: ListFilter,
    scan: Scan,
    unreadable: Vec<UnreadableRow>,
    state: Listing,
}

#[derive(Debug)]
enum Listing {
    Scanning,
    Reading(Vec<Vec<u8>>),
    Over,
}

impl ListExecutions {
    /// From this cursor on (none: from the start).
    pub fn new(
        settings: &Settings,
        filter: ListFilter,
        limit: u32,
        cursor: Option<Cursor>,
    ) -> Self {
        let keys = settings.keys().clone();
        Self {
            filter,
            scan: Scan::keys(
                keys.execution_pattern(),
                limit.clamp(COUNT_MIN, COUNT_MAX),
                cursor.map_or(0, |cursor| cursor.0),
            ),
            keys,
            unreadable: Vec::new(),
            state: Listing::Scanning,
        }
    }

    fn scan(&mut self) -> Step<ExecutionPage> {
        self.state = Listing::Scanning;
        Step::Send(Batch::shared([self.scan.command()]))
    }

    fn scanned(&mut self, replies: Replies) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut found = self.scan.names(replies)?;
        found.retain(|key| self.keys.execution_id(key).is_some());
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// These items as a page, or on to the next scan if there are none.
    fn met(&mut self, mut items: Vec<ExecutionSummary>) -> Step<ExecutionPage> {
        let more = self.scan.cursor().is_some() && self.scan.pages() < SCANS_MAX;
        if items.is_empty() && more {
            // The fewer there are among foreign keys, the further apart the round trips.
            self.scan.count = self.scan.count.saturating_mul(2).min(COUNT_MAX);
            return self.scan();
        }
        items.sort_by(|left, right| left.id.cmp(&right.id));
        Step::Done(Ok(ExecutionPage {
            items,
            unreadable: std::mem::take(&mut self.unreadable),
            next_cursor: self.scan.cursor().map(Cursor),
        }))
    }

    fn read(
        &mut self,
        found: &[Vec<u8>],
        replies: Replies,
    ) -> Result<Vec<ExecutionSummary>, StoreError> {
        let [rows] = replies.harmless()?;
        let rows = reply::accepted(rows, "MGET", &self.keys.execution_pattern())?;
        let rows = reply::items(rows).ok_or_else(|| reply::unexpected("MGET"))?;
        let mut items = Vec::new();
        for (key, row) in found.iter().zip(rows) {
            // Nothing there: deleted since the scan, or not a string.
            let Some(row) = reply::bytes(row).filter(|row| !row.is_empty()) else {
                continue;
            };
            match own_summary(&self.keys, key, &row) {
                Ok(summary) if self.filter.matches(&summary) => items.push(summary),
                Ok(_) => {}
                Err(reason) => self.unreadable.push(UnreadableRow {
                    key: String::from_utf8_lossy(key).into_owned(),
                    reason,
                }),
            }
        }
        Ok(items)
    }
}

/// The summary in the row of this key.
pub(super) fn own_summary(keys: &Keys, key: &[u8], row: &[u8]) -> Result<ExecutionSummary, String> {
    let summary = codec::decode_summary(row)?;
    // A store whose prefix ends in our key names would put its rows under our keys.
    if keys.execution_id(key) == Some(summary.id.as_bytes()) {
        Ok(summary)
    } else {
        Err(format!("holds execution {}", summary.id))
    }
}

impl Operation for ListExecutions {
    const NAME: &'static str = "list_executions";

    type Output = ExecutionPage;

    fn step(&mut self, replies: Replies) -> Step<ExecutionPage> {
        let result = match (std::mem::replace(&mut self.state, Listing::Over), replies) {
            (Listing::Scanning, Replies::Start) => return self.scan(),
            (Listing::Scanning, replies) => self.scanned(replies).map(|found| {
                if found.is_empty() {
                    return self.met(Vec::new());
                }
                let rows = cmd("MGET").arg(&found).take();
                self.state = Listing::Reading(found);
                Step::Send(Batch::shared([rows]))
            }),
            (Listing::Reading(found), replies) => {
                self.read(&found, replies).map(|items| self.met(items))
            }
            (Listing::Over, _) => return over(),
        };
        result.unwrap_or_else(|error| Step::Done(Err(error)))
    }
}

/// `SCAN` to its end: the ids that begin with a text, each once, in order.
///
/// All of them are held in memory. An execution that comes or goes meanwhile may be among them or not.
#[derive(Debug)]
pub struct IdsWithPrefix {
    keys: Keys,
    id_prefix: String,
    scan: Scan,
    found: BTreeSet<String>,
}

impl IdsWithPrefix {
    /// Of this store.
    pub fn new(settings: &Settings, id_prefix: &str) -> Self {
        let keys = settings.keys().clone();
        Self {
            scan: Scan::keys(keys.execution_pattern_of(id_prefix), COUNT_MAX, 0),
            keys,
            id_prefix: id_prefix.to_owned(),
            found: BTreeSet::new(),
        }
    }
}

impl Operation for IdsWithPrefix {
    const NAME: &'static str = "ids_with_prefix";

    type Output = Vec<String>;

    fn step(&mut self, replies: Replies) -> Step<Vec<String>> {
        if let Replies::Start = replies {
            return Step::Send(Batch::shared([self.scan.command()]));
        }
        let found = match self.scan.names(replies) {
            Ok(found) => found,
            Err(error) => return Step::Done(Err(error)),
        };
        for key in found {
            // An id that is not text is no id of ours.
            let id = self.keys.execution_id(&key);
            let id = id.and_then(|id| std::str::from_utf8(id).ok());
            if let Some(id) = id.filter(|id| id.starts_with(&self.id_prefix)) {
                self.found.insert(id.to_owned());
            }
        }
        if self.scan.cursor().is_some() {
            return Step::Send(Batch::shared([self.scan.command()]));
        }
        Step::Done(Ok(std::mem::take(&mut self.found).into_iter().collect()))
    }
}
