//! The ids in order: listing by them, and bringing them in line with the rows.

use redis::{Value, cmd};

use super::{
    Batch, Call, Operation, Replies, Step,
    list::own_summary,
    over, reply,
    scan::Scan,
    script::{INDEX_PAGE, INDEX_REPAIR},
};
use crate::{
    ExecutionSummary, ListFilter, OrderedCursor, OrderedPage, Rejection, Settings, StoreError,
    UnreadableRow, codec, keys::Keys,
};

/// Entries that are looked at in one round trip at most.
const COUNT_MAX: u32 = 1_000;

/// A page is given out after so many looks at the index: the caller may want to stop.
const LOOKS_MAX: u32 = 16;

/// A script over the index, then `MGET`, again until the page is full: executions in the order of the index.
///
/// The cost is that of the entries that are looked at, whatever else the database holds. An entry whose row has gone is
/// passed over. An execution that is there all the time comes exactly once.
#[derive(Debug)]
pub struct ListOrdered {
    keys: Keys,
    filter: ListFilter,
    limit: usize,
    cursor: Option<OrderedCursor>,
    looks: u32,
    page: OrderedPage,
    state: Listing,
}

#[derive(Debug)]
enum Listing {
    Start,
    Looking(Call),
    Reading(Vec<OrderedCursor>),
    Over,
}

impl ListOrdered {
    /// Behind this cursor (none: from the oldest on), at most so many.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a limit of nothing.
    pub fn new(
        settings: &Settings,
        filter: ListFilter,
        limit: u32,
        cursor: Option<OrderedCursor>,
    ) -> Result<Self, StoreError> {
        if limit == 0 {
            return Err(StoreError::Invalid {
                what: "limit",
                reason: Rejection::OutOfRange,
            });
        }
        Ok(Self {
            keys: settings.keys().clone(),
            filter,
            limit: limit as usize,
            cursor,
            looks: 0,
            page: OrderedPage {
                items: Vec::new(),
                unreadable: Vec::new(),
                next_cursor: None,
            },
            state: Listing::Start,
        })
    }

    fn count(&self) -> usize {
        self.limit.min(COUNT_MAX as usize)
    }

    fn look(&mut self) -> Step<OrderedPage> {
        self.looks += 1;
        let mut arguments = vec![self.count().to_string().into_bytes()];
        if let Some(OrderedCursor { score, id }) = &self.cursor {
            arguments.extend([score.clone().into_bytes(), id.clone().into_bytes()]);
        }
        let mut call = Call::new(&INDEX_PAGE, vec![self.keys.index()], arguments);
        let batch = call.by_hash();
        self.state = Listing::Looking(call);
        Step::Send(batch)
    }

    fn looked(&mut self, replies: Replies) -> Result<Step<OrderedPage>, StoreError> {
        let [entries] = replies.harmless()?;
        let entries = reply::accepted(entries, "EVALSHA", &self.keys.index())?;
        let unexpected = || reply::unexpected("EVALSHA");
        let entries = reply::pairs(entries).ok_or_else(unexpected)?;
        let entry = |(member, score): (Value, Value)| {
            let text = |value| String::from_utf8(reply::bytes(value)?).ok();
            let score = match score {
                Value::Double(score) => codec::python_float(score),
                score => text(score)?,
            };
            Some(OrderedCursor {
                score,
                id: text(member)?,
            })
        };
        let entries: Option<Vec<_>> = entries.into_iter().map(entry).collect();
        let entries = entries.ok_or_else(unexpected)?;
        if entries.is_empty() {
            return Ok(self.end(None));
        }
        let mut rows = cmd("MGET");
        for OrderedCursor { id, .. } in &entries {
            rows.arg(self.keys.execution(id));
        }
        self.state = Listing::Reading(entries);
        Ok(Step::Send(Batch::shared([rows])))
    }

    fn read(
        &mut self,
        entries: Vec<OrderedCursor>,
        replies: Replies,
    ) -> Result<Step<OrderedPage>, StoreError> {
        let [rows] = replies.harmless()?;
        let rows = reply::accepted(rows, "MGET", &self.keys.index())?;
        let rows = reply::items(rows).ok_or_else(|| reply::unexpected("MGET"))?;
        let is_last = entries.len() < self.count();
        for (entry, row) in entries.into_iter().zip(rows) {
            if let Some(row) = reply::bytes(row).filter(|row| !row.is_empty()) {
                self.keep(&entry.id, &row);
            }
            self.cursor = Some(entry);
            if self.page.items.len() == self.limit {
                let next = self.cursor.take();
                return Ok(self.end(next));
            }
        }
        if is_last {
            return Ok(self.end(None));
        }
        if self.looks == LOOKS_MAX {
            let next = self.cursor.take();
            return Ok(self.end(next));
        }
        Ok(self.look())
    }

    fn keep(&mut self, id: &str, row: &[u8]) {
        let key = self.keys.execution(id);
        match own_summary(&self.keys, key.as_bytes(), row) {
            Ok(summary) if self.filter.matches(&summary) => self.page.items.push(summary),
            Ok(_) => {}
            Err(reason) => self.page.unreadable.push(UnreadableRow { key, reason }),
        }
    }

    fn end(&mut self, next_cursor: Option<OrderedCursor>) -> Step<OrderedPage> {
        Step::Done(Ok(OrderedPage {
            items: std::mem::take(&mut self.page.items),
            unreadable: std::mem::take(&mut self.page.unreadable),
            next_cursor,
        }))
    }
}

impl Operation for ListOrdered {
    const NAME: &'static str = "list_ordered";

    type Output = OrderedPage;

    fn step(&mut self, replies: Replies) -> Step<OrderedPage> {
        let result = match (std::mem::replace(&mut self.state, Listing::Over), replies) {
            (Listing::Start, Replies::Start) => return self.look(),
            (Listing::Looking(mut call), replies) => {
                if let Some(batch) = call.next(&replies) {
                    self.state = Listing::Looking(call);
                    return Step::Send(batch);
                }
                self.looked(replies)
            }
            (Listing::Reading(entries), replies) => self.read(entries, replies),
            (Listing::Start | Listing::Over, _) => return over(),
        };
        result.unwrap_or_else(|error| Step::Done(Err(error)))
    }
}

/// `SCAN` over the rows, `ZSCAN` over the index, and a script for each page of either: adds what is missing, removes what has
/// no row; answers how many entries that were.
///
/// A row that is added stands at its `created_at` if it has one, else before all others. Commits and purges may go on
/// meanwhile; the script looks at each row itself.
#[derive(Debug)]
pub struct RebuildIndex {
    keys: Keys,
    changed: u64,
    state: Rebuilding,
}

#[derive(Debug)]
enum Rebuilding {
    Rows(Scan),
    Reading(Scan, Vec<Vec<u8>>),
    Adding(Scan, Call),
    Entries(Scan),
    Removing(Scan, Call),
    Over,
}

impl RebuildIndex {
    /// Of this store.
    pub fn new(settings: &Settings) -> Self {
        let keys = settings.keys().clone();
        Self {
            state: Rebuilding::Rows(Scan::keys(keys.execution_pattern(), COUNT_MAX, 0)),
            keys,
            changed: 0,
        }
    }

    fn send(&mut self, scan: Scan, state: fn(Scan) -> Rebuilding) -> Step<u64> {
        let batch = Batch::shared([scan.command()]);
        self.state = state(scan);
        Step::Send(batch)
    }

    /// On with the rows, or over to the entries.
    fn after_rows(&mut self, scan: Scan) -> Step<u64> {
        if scan.cursor().is_some() {
            return self.send(scan, Rebuilding::Rows);
        }
        let entries = Scan::sorted_set(self.keys.index(), None, COUNT_MAX);
        self.send(entries, Rebuilding::Entries)
    }

    fn after_entries(&mut self, scan: Scan) -> Step<u64> {
        if scan.cursor().is_some() {
            return self.send(scan, Rebuilding::Entries);
        }
        Step::Done(Ok(self.changed))
    }

    fn repair(&self, entries: impl IntoIterator<Item = (String, String)>) -> Call {
        let (mut names, mut arguments) = (vec![self.keys.index()], Vec::new());
        for (id, score) in entries {
            names.push(self.keys.execution(&id));
            arguments.extend([id.into_bytes(), score.into_bytes()]);
        }
        Call::new(&INDEX_REPAIR, names, arguments)
    }

    fn met(&mut self, mut scan: Scan, replies: Replies) -> Result<Step<u64>, StoreError> {
        let mut found = scan.names(replies)?;
        found.retain(|key| self.keys.execution_id(key).is_some());
        if found.is_empty() {
            return Ok(self.after_rows(scan));
        }
        let rows = cmd("MGET").arg(&found).take();
        self.state = Rebuilding::Reading(scan, found);
        Ok(Step::Send(Batch::shared([rows])))
    }

    fn read(
        &mut self,
        scan: Scan,
        found: &[Vec<u8>],
        replies: Replies,
    ) -> Result<Step<u64>, StoreError> {
        let [rows] = replies.harmless()?;
        let rows = reply::accepted(rows, "MGET", &self.keys.index())?;
        let rows = reply::items(rows).ok_or_else(|| reply::unexpected("MGET"))?;
        let mut entries = Vec::new();
        for (key, row) in found.iter().zip(rows) {
            let summary = reply::bytes(row).and_then(|row| {
                let summary: ExecutionSummary = own_summary(&self.keys, key, &row).ok()?;
                Some((summary.id, codec::created_at(&row)))
            });
            entries.extend(summary.map(|(id, at)| (id, codec::python_float(at.unwrap_or(0.0)))));
        }
        if entries.is_empty() {
            return Ok(self.after_rows(scan));
        }
        let mut call = self.repair(entries);
        let batch = call.by_hash();
        self.state = Rebuilding::Adding(scan, call);
        Ok(Step::Send(batch))
    }

    fn listed(&mut self, mut scan: Scan, replies: Replies) -> Result<Step<u64>, StoreError> {
        let found = scan.pairs(replies)?;
        let ids = found
            .into_iter()
            .filter_map(|(id, _)| String::from_utf8(id).ok());
        let mut call = self.repair(ids.map(|id| (id, String::new())));
        if call.keys().len() == 1 {
            return Ok(self.after_entries(scan));
        }
        let batch = call.by_hash();
        self.state = Rebuilding::Removing(scan, call);
        Ok(Step::Send(batch))
    }

    fn repaired(&mut self, replies: Replies) -> Result<(), StoreError> {
        let [changed] = replies.harmless()?;
        let changed = reply::accepted(changed, "EVALSHA", &self.keys.index())?;
        let changed = reply::integer(&changed).ok_or_else(|| reply::unexpected("EVALSHA"))?;
        self.changed = self.changed.saturating_add(changed.unsigned_abs());
        Ok(())
    }
}

impl Operation for RebuildIndex {
    const NAME: &'static str = "rebuild_index";

    type Output = u64;

    fn step(&mut self, replies: Replies) -> Step<u64> {
        let result = match std::mem::replace(&mut self.state, Rebuilding::Over) {
            Rebuilding::Rows(scan) if matches!(replies, Replies::Start) => {
                return self.send(scan, Rebuilding::Rows);
            }
            Rebuilding::Rows(scan) => self.met(scan, replies),
            Rebuilding::Reading(scan, found) => self.read(scan, &found, replies),
            Rebuilding::Adding(scan, mut call) => {
                if let Some(batch) = call.next(&replies) {
                    self.state = Rebuilding::Adding(scan, call);
                    return Step::Send(batch);
                }
                self.repaired(replies).map(|()| self.after_rows(scan))
            }
            Rebuilding::Entries(scan) => self.listed(scan, replies),
            Rebuilding::Removing(scan, mut call) => {
                if let Some(batch) = call.next(&replies) {
                    self.state = Rebuilding::Removing(scan, call);
                    return Step::Send(batch);
                }
                self.repaired(replies).map(|()| self.after_entries(scan))
            }
            Rebuilding::Over => return over(),
        };
        result.unwrap_or_else(|error| Step::Done(Err(error)))
    }
}
