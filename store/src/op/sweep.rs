//! Removing executions that ended long ago.

use super::{ListExecutions, Operation, PurgeMany, Replies, Step, over, validate};
use crate::{
    Cursor, ExecutionPage, ListFilter, Rejection, Settings, StoreError, Sweep, SweptPage, Undated,
};

/// A page of a listing, then a purge of those in it that ended before a moment.
///
/// The cost is that of the page and of one walk over timers, outbox and spawns, whose entries are compared on this side; no
/// command of it holds the server up for longer than a page of a thousand entries does.
#[derive(Debug)]
pub struct SweepFinished {
    settings: Settings,
    sweep: Sweep,
    page: SweptPage,
    state: State,
}

#[derive(Debug)]
enum State {
    Listing(ListExecutions),
    Purging(Vec<String>, PurgeMany),
    Over,
}

impl SweepFinished {
    /// From this cursor on (none: from the start).
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a moment that is not a number, or a status that is not an end.
    pub fn new(
        settings: &Settings,
        sweep: Sweep,
        limit: u32,
        cursor: Option<Cursor>,
    ) -> Result<Self, StoreError> {
        validate::time("time of a sweep", sweep.finished_before_s)?;
        if !sweep.status.iter().all(|status| status.is_finished()) {
            return Err(StoreError::Invalid {
                what: "status of a sweep",
                reason: Rejection::OutOfRange,
            });
        }
        let filter = ListFilter {
            status: Some(sweep.status.clone()),
            ..ListFilter::default()
        };
        Ok(Self {
            state: State::Listing(ListExecutions::new(settings, filter, limit, cursor)),
            settings: settings.clone(),
            sweep,
            page: SweptPage::default(),
        })
    }

    fn listed(&mut self, listed: ExecutionPage) -> Result<Step<SweptPage>, StoreError> {
        self.page.unreadable = listed.unreadable;
        self.page.next_cursor = listed.next_cursor;
        let mut victims = Vec::new();
        for summary in listed.items {
            let due = match summary.finished_at {
                Some(finished_at) => finished_at < self.sweep.finished_before_s,
                None if self.sweep.undated == Undated::Purge => true,
                None => {
                    self.page.undated += 1;
                    false
                }
            };
            if due {
                victims.push((summary.id, summary.version));
            }
        }
        let ids = victims.iter().map(|(id, _)| id.clone()).collect();
        let purge = PurgeMany::new(&self.settings, victims)?;
        Ok(self.purge(ids, purge, Replies::Start))
    }

    fn purge(
        &mut self,
        ids: Vec<String>,
        mut purge: PurgeMany,
        replies: Replies,
    ) -> Step<SweptPage> {
        match purge.step(replies) {
            Step::Send(batch) => {
                self.state = State::Purging(ids, purge);
                Step::Send(batch)
            }
            Step::Done(Err(error)) => Step::Done(Err(error)),
            Step::Done(Ok(purged)) => {
                for (id, purged) in ids.into_iter().zip(purged) {
                    let list = if purged {
                        &mut self.page.purged
                    } else {
                        &mut self.page.moved
                    };
                    list.push(id);
                }
                Step::Done(Ok(std::mem::take(&mut self.page)))
            }
        }
    }
}

impl Operation for SweepFinished {
    const NAME: &'static str = "sweep_finished";

    type Output = SweptPage;

    fn step(&mut self, replies: Replies) -> Step<SweptPage> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Listing(mut list) => match list.step(replies) {
                Step::Send(batch) => {
                    self.state = State::Listing(list);
                    Step::Send(batch)
                }
                Step::Done(listed) => listed
                    .and_then(|listed| self.listed(listed))
                    .unwrap_or_else(|error| Step::Done(Err(error))),
            },
            State::Purging(ids, purge) => self.purge(ids, purge, replies),
            State::Over => over(),
        }
    }
}
