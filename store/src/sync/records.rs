//! Whole executions: checks, status, fork, purge, sweep, listing.

use crate::{
    Cursor, Execution, ExecutionPage, ExecutionSummary, Forkable, ListFilter, Listing,
    OrderedCursor, OrderedPage, RedisStore, Settings, StoreError, Sweep, SweptPage, Version, op,
    sync::{Connections, Reopening},
};

impl RedisStore<Reopening> {
    /// Over a connection of its own to this URL, opened with the first call and again after it was lost. A reply that
    /// takes longer than five seconds counts as lost; [`Reopening::response_timeout`] sets another limit.
    ///
    /// The first call asks the server whether it is fit, as [`check`](Self::check) does, and ends with
    /// [`StoreError::Unfit`] or [`StoreError::Refused`] if it is not or does not say; so does every call until it is. To ask
    /// before anything else is done, use [`connect`](Self::connect); to never ask,
    /// [`with_connections`](Self::with_connections) over a [`Reopening`].
    ///
    /// # Errors
    /// [`StoreError::Io`] if the URL is malformed.
    pub fn from_url(url: &str) -> Result<Self, StoreError> {
        let connections = Reopening::new(redis::Client::open(url)?);
        let mut store = Self::with_connections(connections, Settings::default());
        store.link.unchecked = Some(op::Check::new(&store.settings));
        Ok(store)
    }

    /// As [`RedisStore::from_url`], with these settings, but opens the connection and asks the server whether it is fit now,
    /// not with the first call.
    ///
    /// # Errors
    /// As [`RedisStore::check`], and [`StoreError::Io`] for a malformed URL or a server that is not there.
    pub fn connect(url: &str, settings: Settings) -> Result<Self, StoreError> {
        let mut store = Self::from_url(url)?.settings(settings);
        store.link.unchecked = None;
        store.check()?;
        Ok(store)
    }
}

impl<P: Connections> RedisStore<P> {
    /// Asks the server whether it would lose data or refuse commits as it is set up: evicts keys, is a replica, runs no
    /// scripts for this user. A store from [`RedisStore::from_url`] asks with its first call, one over connections of
    /// other sources not by itself.
    ///
    /// # Errors
    /// [`StoreError::Unfit`]; [`StoreError::Refused`] if this user may not even ask; [`StoreError::Io`]. Trying again is
    /// safe.
    pub fn check(&mut self) -> Result<(), StoreError> {
        let operation = op::Check::new(&self.settings);
        self.run(operation)
    }

    /// Where the execution with this id stands, if there is one: its summary, which takes less of its row to be in order
    /// than a load does.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Io`]. Trying again is safe.
    pub fn status(&mut self, id: &str) -> Result<Option<ExecutionSummary>, StoreError> {
        let operation = op::LoadStatus::new(&self.settings, id);
        self.run(operation)
    }

    /// Whether the execution with this id has handled this event.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Io`].
    pub fn is_processed(&mut self, id: &str, event_id: &str) -> Result<bool, StoreError> {
        let operation = op::IsProcessed::new(&self.settings, id, event_id);
        self.run(operation)
    }

    /// Stores a copy of the execution with the first id, as it stands, under the second, at version 1; the copy, or none if
    /// there is nothing to copy. See [`op::Fork`] for what is not copied, and why.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] if the new id is taken; [`StoreError::Conflict`] if the execution was changed
    /// meanwhile: trying again is safe. [`StoreError::Corrupt`], [`StoreError::Invalid`] for a row that can not be read, or
    /// not be written. [`StoreError::Indeterminate`] if the reply was lost: the copy is stored wholly or not at all, a
    /// load of the new id tells.
    pub fn fork(&mut self, id: &str, new_id: &str) -> Result<Option<Execution>, StoreError> {
        let operation = self.link.built(op::Fork::new(&self.settings, id, new_id))?;
        self.run(operation)
    }

    /// As `fork`, for any kind of document.
    ///
    /// # Errors
    /// As there.
    pub fn fork_as<D: Forkable>(
        &mut self,
        id: &str,
        new_id: &str,
    ) -> Result<Option<D>, StoreError> {
        let operation = self
            .link
            .built(op::Fork::<D>::of(&self.settings, id, new_id))?;
        self.run(operation)
    }

    /// Removes the execution with this id and what belongs to it, if its version is this one: dedupe marks, trace, timers,
    /// events addressed to it, spawn intents that it issued. Whether there was such a row; without any row what is left of
    /// one is removed too. See [`op::PurgeMany`] for what a rival may leave behind.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], [`StoreError::Corrupt`], [`StoreError::Refused`], [`StoreError::Io`]. Trying again is safe;
    /// after a lost reply the answer may be no although the first attempt removed it.
    pub fn purge(&mut self, id: &str, expected: Version) -> Result<bool, StoreError> {
        let operation = self
            .link
            .built(op::Purge::new(&self.settings, id, expected))?;
        self.run(operation)
    }

    /// Removes the executions of one page that ended before a moment, with what belongs to them. Call it with the cursor
    /// of the last answer until there is none.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], [`StoreError::Corrupt`], [`StoreError::Refused`], [`StoreError::Io`]. Trying again is safe;
    /// some of the page may have been removed.
    pub fn sweep_finished(
        &mut self,
        sweep: &Sweep,
        limit: u32,
        cursor: Option<Cursor>,
    ) -> Result<SweptPage, StoreError> {
        let operation = self.link.built(op::SweepFinished::new(
            &self.settings,
            sweep.clone(),
            limit,
            cursor,
        ))?;
        self.run(operation)
    }

    /// The ids that begin with this text, each once, in order. All of them are held in memory.
    ///
    /// # Errors
    /// [`StoreError::Io`]. Trying again is safe.
    pub fn ids_with_prefix(&mut self, id_prefix: &str) -> Result<Vec<String>, StoreError> {
        let operation = op::IdsWithPrefix::new(&self.settings, id_prefix);
        self.run(operation)
    }

    /// A page of the executions that match; see [`op::ListExecutions`] for what a page is. `limit` is a hint.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn list_executions(
        &mut self,
        filter: &ListFilter,
        limit: u32,
        cursor: Option<Cursor>,
    ) -> Result<ExecutionPage, StoreError> {
        let operation = op::ListExecutions::new(&self.settings, filter.clone(), limit, cursor);
        self.run(operation)
    }

    /// A page of the executions in the order of their first commits, exactly `limit` of them while there are as many; only
    /// with [`Index::Ordered`](crate::Index::Ordered), whose conditions it shares.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a limit of 0, [`StoreError::Corrupt`], [`StoreError::Io`]. Trying again is safe.
    pub fn list_ordered(
        &mut self,
        filter: &ListFilter,
        limit: u32,
        cursor: Option<OrderedCursor>,
    ) -> Result<OrderedPage, StoreError> {
        let operation = self.link.built(op::ListOrdered::new(
            &self.settings,
            filter.clone(),
            limit,
            cursor,
        ))?;
        self.run(operation)
    }

    /// Brings the index in line with the rows: to be run once when the setting is turned on, and after another kind of
    /// writer was there. How many entries were added or removed.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Refused`], [`StoreError::Io`]. Trying again is safe.
    pub fn rebuild_index(&mut self) -> Result<u64, StoreError> {
        let operation = op::RebuildIndex::new(&self.settings);
        self.run(operation)
    }

    /// All executions of a listing, each once, page after page as they are asked for.
    pub fn executions(&mut self, listing: Listing) -> Executions<'_, P> {
        Executions {
            store: self,
            listing,
        }
    }
}

/// The executions of a listing, each once; see [`Listing`].
#[derive(Debug)]
pub struct Executions<'s, P> {
    store: &'s mut RedisStore<P>,
    listing: Listing,
}

impl<P> Executions<'_, P> {
    /// Where a new listing can go on if this one ended with an error.
    pub fn cursor(&self) -> Option<Cursor> {
        self.listing.cursor()
    }
}

impl<P: Connections> Iterator for Executions<'_, P> {
    type Item = Result<ExecutionSummary, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.listing.pop() {
                return Some(item);
            }
            let operation = self.listing.ask(&self.store.settings)?;
            let page = self.store.run(operation);
            self.listing.take(page);
        }
    }
}
