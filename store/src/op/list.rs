//! Listing executions.

use redis::{Value, cmd};

use super::{Batch, Operation, Replies, Step, over, reply};
use crate::{
    Cursor, ExecutionPage, ListFilter, Settings, StoreError, UnreadableRow, codec, keys::Keys,
};

/// The server is asked for at least so many keys at a time, whatever the caller's limit.
const COUNT_MIN: u32 = 20;

/// `SCAN`, then `MGET`: one page of the executions.
///
/// Redis can not look into a row, so that filters apply here. A page has as many items as the server's scan happened to
/// meet, none included; an execution that is there all the time is met at least once, and perhaps in two pages.
#[derive(Debug)]
pub struct ListExecutions {
    keys: Keys,
    filter: ListFilter,
    count: u32,
    cursor: u64,
    state: Listing,
}

#[derive(Debug)]
enum Listing {
    Scanning,
    Reading { next: u64, found: Vec<Vec<u8>> },
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
        Self {
            keys: settings.keys().clone(),
            filter,
            count: limit.max(COUNT_MIN),
            cursor: cursor.map_or(0, |cursor| cursor.0),
            state: Listing::Scanning,
        }
    }

    fn scanned(&mut self, replies: Replies) -> Result<(u64, Vec<Vec<u8>>), StoreError> {
        let [scan] = replies.harmless()?;
        let scan = reply::accepted(scan, "SCAN", &self.keys.execution_pattern())?;
        let unexpected = || reply::unexpected("SCAN");
        let Ok([next, found]) = <[Value; 2]>::try_from(reply::items(scan).ok_or_else(unexpected)?)
        else {
            return Err(unexpected());
        };
        // Cursors use all 64 bits.
        let next =
            reply::bytes(next).and_then(|next| std::str::from_utf8(&next).ok()?.parse().ok());
        let found = reply::items(found)
            .ok_or_else(unexpected)?
            .into_iter()
            .map(reply::bytes);
        let mut found: Vec<_> = found.collect::<Option<_>>().ok_or_else(unexpected)?;
        found.retain(|key| self.keys.execution_id(key).is_some());
        found.sort_unstable();
        found.dedup();
        Ok((next.ok_or_else(unexpected)?, found))
    }

    fn page(&self, next: u64, found: &[Vec<u8>], rows: Vec<Value>) -> ExecutionPage {
        let mut page = ExecutionPage {
            items: Vec::new(),
            unreadable: Vec::new(),
            next_cursor: (next != 0).then_some(Cursor(next)),
        };
        for (key, row) in found.iter().zip(rows) {
            // Nothing there: deleted since the scan, or not a string.
            let Some(row) = reply::bytes(row).filter(|row| !row.is_empty()) else {
                continue;
            };
            let summary = codec::decode_summary(&row).and_then(|summary| {
                let own = self.keys.execution_id(key) == Some(summary.id.as_bytes());
                if own {
                    Ok(summary)
                } else {
                    Err(format!("holds execution {}", summary.id))
                }
            });
            match summary {
                Ok(summary) if self.filter.matches(&summary) => page.items.push(summary),
                Ok(_) => {}
                Err(reason) => {
                    page.unreadable.push(UnreadableRow {
                        key: String::from_utf8_lossy(key).into_owned(),
                        reason,
                    });
                }
            }
        }
        page.items.sort_by(|left, right| left.id.cmp(&right.id));
        page
    }

    fn end(&mut self, result: Result<ExecutionPage, StoreError>) -> Step<ExecutionPage> {
        self.state = Listing::Over;
        Step::Done(result)
    }
}

impl Operation for ListExecutions {
    type Output = ExecutionPage;

    fn step(&mut self, replies: Replies) -> Step<ExecutionPage> {
        match (std::mem::replace(&mut self.state, Listing::Over), replies) {
            (Listing::Scanning, Replies::Start) => {
                self.state = Listing::Scanning;
                let mut scan = cmd("SCAN");
                scan.arg(self.cursor)
                    .arg("MATCH")
                    .arg(self.keys.execution_pattern())
                    .arg("COUNT")
                    .arg(self.count);
                Step::Send(Batch::shared([scan]))
            }
            (Listing::Scanning, replies) => match self.scanned(replies) {
                Ok((next, found)) if found.is_empty() => {
                    let page = self.page(next, &[], Vec::new());
                    self.end(Ok(page))
                }
                Ok((next, found)) => {
                    let rows = cmd("MGET").arg(&found).take();
                    self.state = Listing::Reading { next, found };
                    Step::Send(Batch::shared([rows]))
                }
                Err(error) => self.end(Err(error)),
            },
            (Listing::Reading { next, found }, replies) => {
                let page = replies.harmless().and_then(|[rows]| {
                    let rows = reply::accepted(rows, "MGET", &self.keys.execution_pattern())?;
                    let rows = reply::items(rows).ok_or_else(|| reply::unexpected("MGET"))?;
                    Ok(self.page(next, &found, rows))
                });
                self.end(page)
            }
            (Listing::Over, _) => over(),
        }
    }
}
