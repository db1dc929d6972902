//! Whole executions: checks, status, fork, purge, sweep, listing.

use crate::{
    AsyncRedisStore, Cursor, Execution, ExecutionPage, ExecutionSummary, Forkable, ListFilter,
    Listing, OrderedCursor, OrderedPage, Settings, StoreError, Sweep, SweptPage, Version,
    aio::{Connections, Reopening},
    op,
};

impl AsyncRedisStore<Reopening> {
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

    /// As [`AsyncRedisStore::from_url`], with these settings, but opens the connection and asks the server whether it is fit now,
    /// not with the first call.
    ///
    /// A dropped future has changed nothing.
    ///
    /// # Errors
    /// As [`AsyncRedisStore::check`], and [`StoreError::Io`] for a malformed URL or a server that is not there.
    pub async fn connect(url: &str, settings: Settings) -> Result<Self, StoreError> {
        let mut store = Self::from_url(url)?.settings(settings);
        store.link.unchecked = None;
        store.check().await?;
        Ok(store)
    }
}

impl<P: Connections> AsyncRedisStore<P> {
    /// Asks the server whether it would lose data or refuse commits as it is set up: evicts keys, is a replica, runs no
    /// scripts for this user. A store from [`AsyncRedisStore::from_url`] asks with its first call, one over connections of
    /// other sources not by itself.
    ///
    /// A dropped future has changed nothing.
    ///
    /// # Errors
    /// [`StoreError::Unfit`]; [`StoreError::Refused`] if this user may not even ask; [`StoreError::Io`]. Trying again is
    /// safe.
    pub async fn check(&mut self) -> Result<(), StoreError> {
        let operation = op::Check::new(&self.settings);
        self.run(operation).await
    }

    /// Where the execution with this id stands, if there is one: its summary, which takes less of its row to be in order
    /// than a load does.
    ///
    /// A dropped future has changed nothing.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Io`]. Trying again is safe.
    pub async fn status(&mut self, id: &str) -> Result<Option<ExecutionSummary>, StoreError> {
        let operation = op::LoadStatus::new(&self.settings, id);
        self.run(operation).await
    }

    /// Whether the execution with this id has handled this event.
    ///
    /// A dropped future has changed nothing.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Io`].
    pub async fn is_processed(&mut self, id: &str, event_id: &str) -> Result<bool, StoreError> {
        let operation = op::IsProcessed::new(&self.settings, id, event_id);
        self.run(operation).await
    }

    /// Stores a copy of the execution with the first id, as it stands, under the second, at version 1; the copy, or none if
    /// there is nothing to copy. See [`op::Fork`] for what is not copied, and why.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] if the new id is taken; [`StoreError::Conflict`] if the execution was changed
    /// meanwhile: trying again is safe. [`StoreError::Corrupt`], [`StoreError::Invalid`] for a row that can not be read, or
    /// not be written. [`StoreError::Indeterminate`] if the reply was lost: the copy is stored wholly or not at all, a
    /// load of the new id tells.
    ///
    /// A dropped future may have stored the copy or not.
    pub async fn fork(&mut self, id: &str, new_id: &str) -> Result<Option<Execution>, StoreError> {
        let operation = self.link.built(op::Fork::new(&self.settings, id, new_id))?;
        self.run(operation).await
    }

    /// As `fork`, for any kind of document.
    ///
    /// A dropped future may have stored the copy or not.
    ///
    /// # Errors
    /// As there.
    pub async fn fork_as<D: Forkable>(
        &mut self,
        id: &str,
        new_id: &str,
    ) -> Result<Option<D>, StoreError> {
        let operation = self
            .link
            .built(op::Fork::<D>::of(&self.settings, id, new_id))?;
        self.run(operation).await
    }

    /// Removes the execution with this id and what belongs to it, if its version is this one: dedupe marks, trace, timers,
    /// events addressed to it, spawn intents that it issued. Whether there was such a row; without any row what is left of
    /// one is removed too. See [`op::PurgeMany`] for what a rival may leave behind.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], [`StoreError::Corrupt`], [`StoreError::Refused`], [`StoreError::Io`]. Trying again is safe;
    /// after a lost reply the answer may be no although the first attempt removed it.
    ///
    /// A dropped future may have removed something or not.
    pub async fn purge(&mut self, id: &str, expected: Version) -> Result<bool, StoreError> {
        let operation = self
            .link
            .built(op::Purge::new(&self.settings, id, expected))?;
        self.run(operation).await
    }

    /// Removes the executions of one page that ended before a moment, with what belongs to them. Call it with the cursor
    /// of the last answer until there is none.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], [`StoreError::Corrupt`], [`StoreError::Refused`], [`StoreError::Io`]. Trying again is safe;
    /// some of the page may have been removed.
    ///
    /// A dropped future may have removed something or not.
    pub async fn sweep_finished(
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
        self.run(operation).await
    }

    /// The ids that begin with this text, each once, in order. All of them are held in memory.
    ///
    /// A dropped future has changed nothing.
    ///
    /// # Errors
    /// [`StoreError::Io`]. Trying again is safe.
    pub async fn ids_with_prefix(&mut self, id_prefix: &str) -> Result<Vec<String>, StoreError> {
        let operation = op::IdsWithPrefix::new(&self.settings, id_prefix);
        self.run(operation).await
    }

    /// A page of the executions that match; see [`op::ListExecutions`] for what a page is. `limit` is a hint.
    ///
    /// A dropped future has changed nothing.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub async fn list_executions(
        &mut self,
        filter: &ListFilter,
        limit: u32,
        cursor: Option<Cursor>,
    ) -> Result<ExecutionPage, StoreError> {
        let operation = op::ListExecutions::new(&self.settings, filter.clone(), limit, cursor);
        self.run(operation).await
    }

    /// A page of the executions in the order of their first commits, exactly `limit` of them while there are as many; only
    /// with [`Index::Ordered`](crate::Index::Ordered), whose conditions it shares.
    ///
    /// A dropped future has changed nothing.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a limit of 0, [`StoreError::Corrupt`], [`StoreError::Io`]. Trying again is safe.
    pub async fn list_ordered(
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
        self.run(operation).await
    }

    /// Brings the index in line with the rows: to be run once when the setting is turned on, and after another kind of
    /// writer was there. How many entries were added or removed.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Refused`], [`StoreError::Io`]. Trying again is safe.
    ///
    /// A dropped future may have repaired a part; running it again does the rest.
    pub async fn rebuild_index(&mut self) -> Result<u64, StoreError> {
        let operation = op::RebuildIndex::new(&self.settings);
        self.run(operation).await
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
    store: &'s mut AsyncRedisStore<P>,
    listing: Listing,
}

impl<P> Executions<'_, P> {
    /// Where a new listing can go on if this one ended with an error.
    pub fn cursor(&self) -> Option<Cursor> {
        self.listing.cursor()
    }
}

impl<P: Connections> Executions<'_, P> {
    /// The next one; none at the end.
    ///
    /// A dropped future loses nothing: the same page is asked for again.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for a row that can not be read, after which the listing goes on; any other is the last.
    pub async fn next(&mut self) -> Option<Result<ExecutionSummary, StoreError>> {
        loop {
            if let Some(item) = self.listing.pop() {
                return Some(item);
            }
            let operation = self.listing.ask(&self.store.settings)?;
            let page = self.store.run(operation).await;
            self.listing.take(page);
        }
    }
}
