//! All executions of a listing, each once: what both twins' iterators share.

use std::collections::{BTreeSet, VecDeque};

use crate::{
    Cursor, ExecutionPage, ExecutionSummary, ListFilter, Rejection, Settings, StoreError, op,
};

/// How many ids a listing remembers unless told otherwise: at 32 characters each they take about 100 MB.
pub const SEEN_MAX_DEFAULT: usize = 1 << 20;

/// The server's pages as one listing. A scan may meet an execution twice while others come and go; here each comes once.
///
/// A row that can not be read comes as [`StoreError::Corrupt`] and ends nothing. Any other error is the last that comes;
/// [`Listing::cursor`] is then where a new listing can go on. So is the listing that has seen more ids than it may
/// remember: it ends with [`StoreError::Invalid`], for it could not keep its word.
#[derive(Debug)]
pub struct Listing {
    filter: ListFilter,
    page_len: u32,
    seen: BTreeSet<String>,
    seen_max: usize,
    ready: VecDeque<Result<ExecutionSummary, StoreError>>,
    cursor: Option<Cursor>,
    ended: bool,
}

impl Listing {
    /// Of the executions that match, from this cursor on (none: from the start), with a hint how many to read at a time.
    pub fn new(filter: ListFilter, page_len: u32, cursor: Option<Cursor>) -> Self {
        Self {
            filter,
            page_len,
            seen: BTreeSet::new(),
            seen_max: SEEN_MAX_DEFAULT,
            ready: VecDeque::new(),
            cursor,
            ended: false,
        }
    }

    /// Sets how many ids it remembers.
    #[must_use]
    pub fn seen_max(mut self, ids: usize) -> Self {
        self.seen_max = ids;
        self
    }

    /// Where the page after the last one that was read begins; none at the start and at the end.
    pub fn cursor(&self) -> Option<Cursor> {
        self.cursor
    }

    /// The next execution of the pages that were read.
    pub(crate) fn pop(&mut self) -> Option<Result<ExecutionSummary, StoreError>> {
        self.ready.pop_front()
    }

    /// What to ask for the next page; none after the last.
    pub(crate) fn ask(&self, settings: &Settings) -> Option<op::ListExecutions> {
        (!self.ended).then(|| {
            op::ListExecutions::new(settings, self.filter.clone(), self.page_len, self.cursor)
        })
    }

    /// Takes the page that was asked for.
    pub(crate) fn take(&mut self, page: Result<ExecutionPage, StoreError>) {
        let page = match page {
            Ok(page) => page,
            Err(error) => return self.end(error),
        };
        for row in page.unreadable {
            if self.is_new(&row.key) {
                self.ready.push_back(Err(StoreError::Corrupt {
                    key: row.key,
                    field: None,
                    reason: row.reason,
                }));
            }
        }
        for summary in page.items {
            if self.is_new(&summary.id) {
                self.ready.push_back(Ok(summary));
            }
        }
        if self.seen.len() > self.seen_max {
            return self.end(StoreError::Invalid {
                what: "listing",
                reason: Rejection::TooMany,
            });
        }
        self.cursor = page.next_cursor;
        self.ended = self.cursor.is_none();
    }

    fn is_new(&mut self, name: &str) -> bool {
        !self.seen.contains(name) && self.seen.insert(name.to_owned())
    }

    fn end(&mut self, error: StoreError) {
        self.ready.push_back(Err(error));
        self.ended = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Status, UnreadableRow, Version};

    fn page(ids: &[&str], bad: &[&str], next: Option<u64>) -> ExecutionPage {
        ExecutionPage {
            items: ids
                .iter()
                .map(|id| ExecutionSummary {
                    id: (*id).to_owned(),
                    definition_id: "d".to_owned(),
                    status: Status::Done,
                    outcome: None,
                    active_path: None,
                    version: Version::new(1),
                    parent_id: None,
                    finished_at: None,
                })
                .collect(),
            unreadable: bad
                .iter()
                .map(|key| UnreadableRow {
                    key: (*key).to_owned(),
                    reason: "not JSON".to_owned(),
                })
                .collect(),
            next_cursor: next.map(Cursor),
        }
    }

    fn drain(listing: &mut Listing) -> Vec<String> {
        std::iter::from_fn(|| listing.pop())
            .map(|item| match item {
                Ok(summary) => summary.id,
                Err(error) => error.to_string(),
            })
            .collect()
    }

    #[test]
    fn what_two_pages_hold_comes_once() {
        let mut listing = Listing::new(ListFilter::default(), 10, None);
        listing.take(Ok(page(&["a", "b"], &["k"], Some(7))));
        assert_eq!(
            drain(&mut listing),
            ["corrupt value in k: not JSON", "a", "b"]
        );
        listing.take(Ok(page(&["b", "c"], &["k"], None)));
        assert_eq!(drain(&mut listing), ["c"]);
        assert!(listing.ask(&Settings::default()).is_none());
    }

    #[test]
    fn an_error_or_too_many_ids_end_it_where_it_can_go_on() {
        let lost = StoreError::from(op::protocol_error("gone"));
        let mut listing = Listing::new(ListFilter::default(), 10, None).seen_max(2);
        listing.take(Ok(page(&["a"], &[], Some(7))));
        listing.take(Err(lost));
        assert_eq!(
            (drain(&mut listing).len(), listing.cursor()),
            (2, Some(Cursor(7)))
        );
        assert!(listing.ask(&Settings::default()).is_none());

        let mut listing = Listing::new(ListFilter::default(), 10, None).seen_max(2);
        listing.take(Ok(page(&["a", "b", "c"], &[], Some(7))));
        assert_eq!(drain(&mut listing).len(), 4);
        assert!(listing.ask(&Settings::default()).is_none());
    }
}
