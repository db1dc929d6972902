//! The tokio twin.

use super::{Partition, Partitions, ShardedCursor, ShardedPage, layout::Layout};
use crate::{
    AsyncRedisStore, Commit, Committed, Document, Event, Execution, ListFilter, Settings,
    StoreError, aio::Connections, transport::Priority,
};

/// A store that is spread over partitions, over asynchronous connections; see [the module](super).
///
/// ```no_run
/// # async fn example() -> Result<(), store::StoreError> {
/// use store::{Execution, Settings, cluster::aio::Cluster, sharded::{AsyncShardedStore, Partitions}};
///
/// let nodes = Cluster::new(["redis://10.0.0.1:7000/", "redis://10.0.0.2:7000/"])?;
/// let mut store = AsyncShardedStore::open(nodes, &Settings::new("orders")?, Partitions::new(64)?).await?;
/// store.save(&mut Execution::new("order-17", "order")).await?;
/// // A worker that has nothing else to do sweeps one partition after the other.
/// let partition = store.next_partition();
/// for entry in store.partition(partition)?.pending_outbox().await? {
///     println!("{:?}", entry.target_id);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AsyncShardedStore<P> {
    store: AsyncRedisStore<P>,
    layout: Layout,
    /// The partition whose settings the store has.
    at: Option<Partition>,
    next: Partition,
}

impl<P: Connections> AsyncShardedStore<P> {
    /// Over these connections. The number of partitions is noted in Redis by the first who opens the store, and is the same for
    /// ever.
    ///
    /// A dropped future has noted the number or not.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a prefix with braces, [`StoreError::Layout`] if the store has another number of partitions,
    /// [`StoreError::Corrupt`], [`StoreError::Refused`], [`StoreError::Io`]: try again.
    pub async fn open(
        connections: P,
        settings: &Settings,
        partitions: Partitions,
    ) -> Result<Self, StoreError> {
        let layout = Layout::new(settings, partitions)?;
        let mut store = AsyncRedisStore::with_connections(connections, layout.home()?);
        store.run(layout.record()?).await?;
        let next = partitions.of("");
        Ok(Self {
            store,
            layout,
            at: None,
            next,
        })
    }

    /// Sets where sweeps begin: workers that differ in it do not sweep the same partition at the same time.
    #[must_use]
    pub fn sweep_from(mut self, offset: u16) -> Self {
        let count = self.partitions().count();
        if let Some(partition) = self.partitions().get(offset % count) {
            self.next = partition;
        }
        self
    }

    /// How many partitions there are.
    pub fn partitions(&self) -> Partitions {
        self.layout.partitions()
    }

    /// Where the execution with this id lies.
    pub fn partition_of(&self, id: &str) -> Partition {
        self.partitions().of(id)
    }

    /// The settings of a partition, for a transport of its own.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a partition of a store with more of them.
    pub fn settings_of(&self, partition: Partition) -> Result<Settings, StoreError> {
        self.layout.settings(partition)
    }

    /// The partition to sweep next: each in its turn, so that none waits for more than all others.
    pub fn next_partition(&mut self) -> Partition {
        let partition = self.next;
        self.next = self.partitions().after(partition);
        partition
    }

    /// The store of a partition: all that a store can do, on what lies there. What is set on it lasts until another partition is
    /// asked for.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a partition of a store with more of them.
    pub fn partition(
        &mut self,
        partition: Partition,
    ) -> Result<&mut AsyncRedisStore<P>, StoreError> {
        if self.at != Some(partition) {
            self.store.set_settings(self.layout.settings(partition)?);
            self.at = Some(partition);
        }
        Ok(&mut self.store)
    }

    /// The store of the partition that the execution with this id lies in.
    ///
    /// # Errors
    /// None but those of the settings, which were checked when the store was opened.
    pub fn of(&mut self, id: &str) -> Result<&mut AsyncRedisStore<P>, StoreError> {
        self.partition(self.partition_of(id))
    }

    /// As [`AsyncRedisStore::load`].
    ///
    /// # Errors
    /// As there. A dropped future is as there, too.
    pub async fn load(&mut self, id: &str) -> Result<Option<Execution>, StoreError> {
        self.of(id)?.load(id).await
    }

    /// As [`AsyncRedisStore::load_for_event`].
    ///
    /// # Errors
    /// As there. A dropped future is as there, too.
    pub async fn load_for_event(
        &mut self,
        id: &str,
        event_id: &str,
    ) -> Result<Option<(Execution, bool)>, StoreError> {
        self.of(id)?.load_for_event(id, event_id).await
    }

    /// As [`AsyncRedisStore::save`].
    ///
    /// # Errors
    /// As there. A dropped future is as there, too.
    pub async fn save<D: Document>(&mut self, document: &mut D) -> Result<Committed, StoreError> {
        self.commit(document, &Commit::new()).await
    }

    /// As [`AsyncRedisStore::commit`]. Events for executions in other partitions wait in the outbox of this one.
    ///
    /// # Errors
    /// As there. A dropped future is as there, too.
    pub async fn commit<D: Document>(
        &mut self,
        document: &mut D,
        commit: &Commit,
    ) -> Result<Committed, StoreError> {
        let partition = self.partition_of(document.id());
        self.partition(partition)?.commit(document, commit).await
    }

    /// Queues an event for an execution, in the partition that it lies in; see
    /// [`AsyncRedisTransport::publish`](crate::transport::AsyncRedisTransport::publish).
    ///
    /// A dropped future has queued it or not; a repetition may queue it twice.
    ///
    /// # Errors
    /// As there.
    pub async fn publish(
        &mut self,
        id: &str,
        event: &Event,
        priority: Priority,
    ) -> Result<u64, StoreError> {
        let publish = self.layout.publish(id, event, priority)?;
        self.of(id)?.run(publish).await
    }

    pub(crate) fn into_parts(self) -> (AsyncRedisStore<P>, Layout, Partition) {
        (self.store, self.layout, self.next)
    }

    /// A page of one partition, from all of them in turn; see [`AsyncRedisStore::list_executions`].
    ///
    /// # Errors
    /// As there, and [`StoreError::Invalid`] for a cursor of another store. A dropped future is as there, too.
    pub async fn list_executions(
        &mut self,
        filter: &ListFilter,
        limit: u32,
        cursor: Option<ShardedCursor>,
    ) -> Result<ShardedPage, StoreError> {
        let partitions = self.partitions();
        let (partition, cursor) = ShardedCursor::place(cursor, partitions)?;
        let page = self
            .partition(partition)?
            .list_executions(filter, limit, cursor)
            .await?;
        Ok(ShardedPage::new(page, partition, partitions))
    }
}
